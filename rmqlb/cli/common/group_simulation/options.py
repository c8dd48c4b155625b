"""The options of `simulate-rebalance` and `plan-rollout`: what happens, how the members are configured, and trials."""

from typing import Annotated

from msgspec import Struct
from typer import Option

from rmqlb.cli.common.options import GroupOptions

HAPPENS, MEMBERS, TRIALS = "What happens", "How the members are configured", "Trials"


class GroupOverTimeOptions(GroupOptions, frozen=True):
    """Which group, on which topics, with which members at the beginning."""

    explain: Annotated[bool, Option("--explain", help="List what each member does when, and why.")] = False


class EventOptions(Struct, frozen=True):
    """What the group goes through."""

    event: Annotated[
        list[str] | None,
        Option(
            metavar="'VERB WHO@TIME'",
            help="Something that happens, as above; repeatable.",
            rich_help_panel=HAPPENS,
        ),
    ] = None
    for_: Annotated[
        str | None,
        Option("--for", metavar="TIME", help="Simulate so long; else until it is settled.", rich_help_panel=HAPPENS),
    ] = None
    all_new: Annotated[
        bool,
        Option("--all-new", help="The members start at 0s; else they have run for a while.", rich_help_panel=HAPPENS),
    ] = False
    broadcasting: Annotated[
        bool,
        Option(
            "--broadcasting", help="BROADCASTING; else what the source says, or CLUSTERING.", rich_help_panel=HAPPENS
        ),
    ] = False


class MemberOptions(Struct, frozen=True):
    """How the members are configured; the defaults are what the source says, and then the client's own."""

    client: Annotated[
        str | None,
        Option(
            metavar="VERSION",
            help="Version of the RocketMQ client library; else what the members report, or 5.5.0.",
            rich_help_panel=MEMBERS,
        ),
    ] = None
    orderly: Annotated[
        bool,
        Option("--orderly", help="A MessageListenerOrderly: queues are locked.", rich_help_panel=MEMBERS),
    ] = False
    consumer_type: Annotated[
        list[str] | None,
        Option(
            metavar="[ID=]push|pull|lite-pull|assign",
            help="Which consumer a member is, or all; else what the source says, or push; repeatable.",
            rich_help_panel=MEMBERS,
        ),
    ] = None
    consume_from: Annotated[
        str | None,
        Option(
            metavar="last|first|timestamp",
            help="consumeFromWhere; else what the source says, or last.",
            rich_help_panel=MEMBERS,
        ),
    ] = None
    timer: Annotated[
        list[str] | None,
        Option(
            metavar="NAME=TIME",
            help="A clock that differs from its default: rebalance-wait=10s; repeatable.",
            rich_help_panel=MEMBERS,
        ),
    ] = None
    latency: Annotated[
        str, Option(metavar="TIME", help="A request's way to a broker and back.", rich_help_panel=MEMBERS)
    ] = "1ms"
    consume_time: Annotated[
        str, Option(metavar="TIME", help="How long the listener takes for a message.", rich_help_panel=MEMBERS)
    ] = "0s"
    rate: Annotated[
        list[str] | None,
        Option(
            metavar="[TOPIC=]R",
            help="Messages a second of the topic, or of each, spread evenly over its queues; repeatable.",
            rich_help_panel=MEMBERS,
        ),
    ] = None
    rates_since: Annotated[
        str | None,
        Option(
            metavar="FILE",
            help="An earlier snapshot: each queue's rate is what came since.",
            rich_help_panel=MEMBERS,
        ),
    ] = None


class TrialOptions(Struct, frozen=True):
    """How often, with which dice."""

    trials: Annotated[
        str | None,
        Option(
            metavar="N",
            help="Also run N times with other phases of the clocks: median, 95 % and worst.",
            rich_help_panel=TRIALS,
        ),
    ] = None
    trial: Annotated[str, Option(metavar="K", help="Which of them to look at, from 0.", rich_help_panel=TRIALS)] = "0"
    seed: Annotated[int, Option(help="Of everything random.", rich_help_panel=TRIALS)] = 1
