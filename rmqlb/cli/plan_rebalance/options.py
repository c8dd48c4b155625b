"""The options of `plan-rebalance`: the strategy before, and what changes."""

from typing import Annotated

from msgspec import Struct

from rmqlb.cli.common.options import PopShare, about_option, panel
from rmqlb.model.limits import MOST_CONSUMERS

members_option = panel("What changes: consumers")
route_option = panel("What changes: route")


class PlanOptions(Struct, frozen=True):
    """The strategy before, and what changes, all of it at once."""

    strategy: Annotated[
        str | None,
        about_option(
            metavar="STRATEGY|all",
            help="Or FILE.py:NAME, which is run. Default: as consumers report or show; all compares.",
        ),
    ] = None
    pop_share: PopShare = None
    scale_to: Annotated[
        int | None,
        members_option(metavar="N", min=0, max=MOST_CONSUMERS, help="N consumers in the end: add, or remove the last."),
    ] = None
    add: Annotated[list[str] | None, members_option(metavar="N|ID", help="Add N consumers or this one.")] = None
    remove: Annotated[
        list[str] | None, members_option(metavar="N|ID", help="Remove the last N in sorted order or this one.")
    ] = None
    replace_: Annotated[
        list[str] | None, members_option("--replace", metavar="OLD=NEW", help="One id goes, another comes.")
    ] = None
    to_strategy: Annotated[
        str | None, members_option(metavar="STRATEGY", help="The strategy afterwards, or FILE.py:NAME.")
    ] = None
    add_broker: Annotated[
        list[str] | None,
        route_option(
            metavar="NAME[:READ[:WRITE]]",
            help="A broker that gets queues of the topics; counts default to those of the other brokers.",
        ),
    ] = None
    remove_broker: Annotated[list[str] | None, route_option(metavar="NAME", help="A broker that is lost.")] = None
    remove_master: Annotated[
        list[str] | None, route_option(metavar="NAME", help="A broker whose master is lost; its slaves stay.")
    ] = None
    read_queues: Annotated[list[str] | None, route_option(metavar="[BROKER=]N", help="New number of read queues.")] = (
        None
    )
    write_queues: Annotated[
        list[str] | None, route_option(metavar="[BROKER=]N", help="New number of write queues.")
    ] = None
