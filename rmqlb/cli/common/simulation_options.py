from rmqlb.cli.common.declare import Panel, Text, Texts, about
from rmqlb.cli.common.options import RATE_HELP
from rmqlb.cli.common.set_option import SettingsOptions, setting, timers

RATE_HINT = "say how many messages come: --rate R or --set earlier=FILE"
_members = Panel("How the consumers are configured")


class MemberOptions(SettingsOptions):
    """How the consumers are configured; the defaults are what the source says, and then the client's own."""

    strategy: Text = about(
        "STRATEGY", "Or FILE.py:NAME, which is run. Default: as consumers report or show, otherwise AVG."
    )
    orderly: bool = _members.flag("A MessageListenerOrderly: queues are locked.")
    rates: Texts = _members("--rate [TOPIC=]R", RATE_HELP)
    sdk: Texts = setting("sdk")
    client_version: Text = setting("client-version")
    consumer_types: Texts = setting("consumer-type")
    consume_from: Text = setting("consume-from")
    round_trip: str = setting("round-trip")
    consume_time: str = setting("consume-time")
    rates_since: Text = setting("earlier", stdin="-")
    seed: int = setting("seed")
    timers: Texts = timers()
