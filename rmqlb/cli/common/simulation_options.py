from rmqlb.cli.common.declare import Options, Panel, Text, Texts, about
from rmqlb.cli.common.options import RATE_HELP, RATES_SINCE_HELP

RATE_HINT = "say how many messages come: --rate R or --earlier FILE"
_members = Panel("How the consumers are configured")


class MemberOptions(Options):
    """How the consumers are configured; the defaults are what the source says, and then the client's own."""

    strategy: Text = about(
        "STRATEGY", "Or FILE.py:NAME, which is run. Default: as consumers report or show, otherwise AVG."
    )
    client: Text = _members(
        "VERSION", "Version of the RocketMQ client library; default: as consumers report, or 5.5.0."
    )
    orderly: bool = _members.flag("A MessageListenerOrderly: queues are locked.")
    consumer_types: Texts = _members(
        "--consumer-type [ID=]push|pull|lite-pull|assign",
        "Which kind a consumer is, or all; default: as the source says, or push; repeatable.",
    )
    consume_from: Text = _members("last|first|timestamp", "consumeFromWhere; default: as the source says, or last.")
    timers: Texts = _members(
        "--timer NAME=TIME", "A clock that differs from its default: rebalance-wait=10s; repeatable."
    )
    latency: str = _members("TIME", "A request's way to a broker and back.", "1ms")
    consume_time: str = _members("TIME", "How long the listener takes for a message.", "0s")
    rates: Texts = _members("--rate [TOPIC=]R", RATE_HELP)
    rates_since: Text = _members("--earlier FILE", RATES_SINCE_HELP, stdin="-")
