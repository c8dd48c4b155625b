"""The options of verbs that plan or simulate groups: changes, and consumers."""

from typing import Any

from rmqlb.cli.common.declare import Panel, Text, Texts, about
from rmqlb.cli.common.options import GivenRates
from rmqlb.cli.common.set_option import SettingsOptions, setting, timers
from rmqlb.model.limits import MOST_CONSUMERS

RATE_HINT = "pass the rate: --rate R or --set earlier=FILE; lag also needs --set consume-time=TIME"
_members, _route, _consumers = map(Panel, ("Consumer changes", "Route changes", "Consumers"))


class ChangeFlags(SettingsOptions):
    scale_to: Text = _members("N", "Number of consumers after the change. The last ones in sorted order are removed.")
    add: Texts = _members("N|ID", "Consumers to add: a count or a client ID.")
    remove: Texts = _members(
        "N|ID", "Consumers to remove: a count or a client ID. A count removes the last in sorted order."
    )
    replace_ids: Texts = _members("--replace OLD=NEW", "Client ID to replace, and its replacement.")
    to_strategy: Text = _members("STRATEGY", "Strategy after the change, or FILE.py:NAME.")
    add_brokers: Texts = _route(
        "--add-broker NAME[:READ[:WRITE]]",
        "Broker to add to the route. Queue counts default to those of the other brokers.",
    )
    remove_brokers: Texts = _route("--remove-broker NAME", "Broker to remove from the route.")
    remove_masters: Texts = setting("remove-master=BROKER")
    read_queues: Texts = _route("[BROKER=]N", "Read queues per broker, or of BROKER only.")
    write_queues: Texts = _route("[BROKER=]N", "Write queues per broker, or of BROKER only.")

    def arguments(self) -> dict[str, Any]:
        from rmqlb.verbs import parse

        return super().arguments() | {
            "scale_to": None if self.scale_to is None else parse.scale_to(self.scale_to, MOST_CONSUMERS),
            "add": [parse.added(text) for text in self.add or ()],
            "remove": [parse.count_or_id(text, "--remove") for text in self.remove or ()],
            "replace_ids": [parse.pair(text, "--replace") for text in self.replace_ids or ()],
        }


class MemberOptions(SettingsOptions, GivenRates):
    """Consumers; the defaults are what the source says, and then the client's own."""

    strategy: Text = about(
        "STRATEGY",
        "Allocation strategy, or FILE.py:NAME. FILE.py is run; default: as consumers report, or as their queues "
        "show, otherwise AVG.",
    )
    orderly: bool = _consumers.flag("Ordered consumption (MessageListenerOrderly).")
    sdk: Texts = setting("sdk=[ID=]java|go|cpp")
    client_version: Text = setting("client-version=VERSION")
    consumer_types: Texts = setting("consumer-type=[ID=]push|pull|lite-pull|assign")
    consume_from: Text = setting("consume-from=last|first|timestamp")
    round_trip: str = setting("round-trip=TIME", "1ms")
    consume_time: str = setting("consume-time=TIME", "0s")
    rates_since: Text = setting("earlier=FILE|TIME", stdin="-")
    seed: int = setting("seed=N", 1)
    timers: Texts = timers()
