"""The options of `simulate-rebalance` and `plan-rollout`: what happens, how consumers are configured, and trials."""

from typing import Any

from rmqlb.cli.common.declare import Options, Panel, Text, Texts, about, shown
from rmqlb.cli.common.options import RATE_HELP, RATES_SINCE_HELP, GroupsOptions

RATE_HINT = "say how many messages come: --rate R or --rates-since FILE"

_happens, _members, TRIALS = map(Panel, ("What happens", "How the consumers are configured", "Trials"))


class GroupsOverTimeOptions(GroupsOptions):
    explain: bool = shown.flag("List what each consumer does when, and why.")


class EventOptions(Options):
    events: Texts = _happens(
        "--event 'VERB WHO@TIME'", "Something that happens, as 'leave ID@30s', or @FILE with one per line; repeatable."
    )
    duration: Text = _happens("--for TIME", "Simulate for that time; default: until it has converged.")
    all_new: bool = _happens.flag("All consumers start at 0s; default: they have run for a while.")
    broadcasting: bool = _happens.flag("BROADCASTING; default: what the source says, or CLUSTERING.")

    def arguments(self) -> dict[str, Any]:
        """The verb's arguments, with the lines of `@FILE` (raises UsageError)."""
        from rmqlb.verbs.rebalance_events import event_texts

        return super().arguments() | {"events": event_texts(self.events or ())}


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
    rates_since: Text = _members("FILE", RATES_SINCE_HELP, stdin="-")


class TrialOptions(Options):
    trials: Text = TRIALS("N", "Also run N times with other phases of the clocks: p50, p95 and max.")
    trial: str = TRIALS("K", "Which of them to look at, from 0.", "0")
    seed: int = TRIALS("", "Random seed.", 1)
