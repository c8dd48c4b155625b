"""The changes that `plan-rebalance` plans and `simulate-rebalance` simulates."""

from typing import Any

from rmqlb.cli.common.declare import Panel, Text, Texts
from rmqlb.cli.common.set_option import SettingsOptions, setting
from rmqlb.model.limits import MOST_CONSUMERS

_members, _route = Panel("What changes: consumers"), Panel("What changes: route")


class ChangeOptions(SettingsOptions):
    scale_to: Text = _members("N", "N consumers in the end: add, or remove the last.")
    add: Texts = _members("N|ID", "Add N consumers or this one.")
    remove: Texts = _members("N|ID", "Remove the last N in sorted order or this one.")
    replace_ids: Texts = _members("--replace OLD=NEW", "One id goes, another comes.")
    to_strategy: Text = _members("STRATEGY", "The strategy afterwards, or FILE.py:NAME.")
    add_brokers: Texts = _route(
        "--add-broker NAME[:READ[:WRITE]]",
        "A broker that gets queues of the topics; counts default to those of the other brokers.",
    )
    remove_brokers: Texts = _route("--remove-broker NAME", "A broker that is lost.")
    remove_masters: Texts = setting("remove-master")
    read_queues: Texts = _route("[BROKER=]N", "New number of read queues.")
    write_queues: Texts = _route("[BROKER=]N", "New number of write queues.")

    def arguments(self) -> dict[str, Any]:
        from rmqlb.verbs import parse

        return super().arguments() | {
            "scale_to": None if self.scale_to is None else parse.scale_to(self.scale_to, MOST_CONSUMERS),
            "add": [parse.added(text) for text in self.add or ()],
            "remove": [parse.count_or_id(text, "--remove") for text in self.remove or ()],
            "replace_ids": [parse.pair(text, "--replace") for text in self.replace_ids or ()],
        }
