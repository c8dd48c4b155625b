from rmqlb.cli.common.declare import Panel, Text, Texts, about
from rmqlb.cli.common.options import GivenRates
from rmqlb.cli.common.set_option import SettingsOptions, setting, timers

RATE_HINT = "say how many messages come: --rate R or --set earlier=FILE"
_members = Panel("Consumers")


class MemberOptions(SettingsOptions, GivenRates):
    """Consumers; the defaults are what the source says, and then the client's own."""

    strategy: Text = about(
        "STRATEGY",
        "Allocation strategy, or FILE.py:NAME. FILE.py is run; default: as consumers report or show, otherwise AVG.",
    )
    orderly: bool = _members.flag("Ordered consumption (MessageListenerOrderly).")
    sdk: Texts = setting("sdk")
    client_version: Text = setting("client-version")
    consumer_types: Texts = setting("consumer-type")
    consume_from: Text = setting("consume-from")
    round_trip: str = setting("round-trip")
    consume_time: str = setting("consume-time")
    rates_since: Text = setting("earlier", stdin="-")
    seed: int = setting("seed")
    timers: Texts = timers()
