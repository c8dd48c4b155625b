"""The options of `simulate-rebalance` and `plan-rollout`: what happens, how consumers are configured, and trials."""

from typing import Annotated, Any

from msgspec import Struct

from rmqlb.cli.common.options import GroupsOptions, SourceOptions, about_option, panel, shown_option
from rmqlb.cli.common.terminal import Terminal

RATE_HINT = "say how many messages come: --rate R or --rates-since FILE"

happens_option = panel("What happens")
members_option = panel("How the consumers are configured")
trials_option = panel("Trials")

MembersStrategy = Annotated[
    str | None,
    about_option(
        metavar="STRATEGY", help="Or FILE.py:NAME, which is run. Default: as consumers report or show, otherwise AVG."
    ),
]

_ARGUMENTS = {
    "consumer_type": "consumer_types",
    "event": "events",
    "for_": "duration",
    "pause": "pauses",
    "rate": "rates",
    "timer": "timers",
}
"""Option → the argument of the verb, where they differ."""


def arguments_of(options: Struct) -> dict[str, Any]:
    """The options as a verb's arguments; a repeatable one that is not given is left out."""
    names = options.__struct_fields__
    found = {_ARGUMENTS.get(name, name): getattr(options, name) for name in names}
    return {name: value for name, value in found.items() if value is not None}


class GroupsOverTimeOptions(GroupsOptions, frozen=True):
    """Which groups, on which topics, with which consumers at the beginning."""

    explain: Annotated[bool, shown_option("--explain", help="List what each consumer does when, and why.")] = False


class EventOptions(Struct, frozen=True):
    event: Annotated[
        list[str] | None,
        happens_option(
            metavar="'VERB WHO@TIME'",
            help="Something that happens, as 'leave ID@30s', or @FILE with one per line; repeatable.",
        ),
    ] = None
    for_: Annotated[
        str | None,
        happens_option("--for", metavar="TIME", help="Simulate for that time; default: until it has converged."),
    ] = None
    all_new: Annotated[
        bool, happens_option("--all-new", help="All consumers start at 0s; default: they have run for a while.")
    ] = False
    broadcasting: Annotated[
        bool, happens_option("--broadcasting", help="BROADCASTING; default: what the source says, or CLUSTERING.")
    ] = False

    def arguments(self) -> dict[str, Any]:
        """The verb's arguments, with the lines of `@FILE` (raises UsageError)."""
        from rmqlb.verbs.rebalance_events import event_texts

        return {**arguments_of(self), "events": event_texts(self.event or ())}


class MemberOptions(Struct, frozen=True):
    """How the consumers are configured; the defaults are what the source says, and then the client's own."""

    client: Annotated[
        str | None,
        members_option(
            metavar="VERSION", help="Version of the RocketMQ client library; default: as consumers report, or 5.5.0."
        ),
    ] = None
    orderly: Annotated[bool, members_option("--orderly", help="A MessageListenerOrderly: queues are locked.")] = False
    consumer_type: Annotated[
        list[str] | None,
        members_option(
            metavar="[ID=]push|pull|lite-pull|assign",
            help="Which kind a consumer is, or all; default: as the source says, or push; repeatable.",
        ),
    ] = None
    consume_from: Annotated[
        str | None,
        members_option(metavar="last|first|timestamp", help="consumeFromWhere; default: as the source says, or last."),
    ] = None
    timer: Annotated[
        list[str] | None,
        members_option(
            metavar="NAME=TIME", help="A clock that differs from its default: rebalance-wait=10s; repeatable."
        ),
    ] = None
    latency: Annotated[str, members_option(metavar="TIME", help="A request's way to a broker and back.")] = "1ms"
    consume_time: Annotated[str, members_option(metavar="TIME", help="How long the listener takes for a message.")] = (
        "0s"
    )
    rate: Annotated[
        list[str] | None,
        members_option(
            metavar="[TOPIC=]R",
            help="Messages per second of the topic, or of each, spread evenly over its queues; repeatable.",
        ),
    ] = None
    rates_since: Annotated[
        str | None, members_option(metavar="FILE", help="An earlier snapshot: each queue's rate is what came since.")
    ] = None

    def arguments(self, source: SourceOptions, terminal: Terminal) -> dict[str, Any]:
        """The verb's arguments, with the earlier snapshot (raises UsageError)."""
        from rmqlb.cli.common.reading import earlier_snapshot

        return {**arguments_of(self), "rates_since": earlier_snapshot(source, self.rates_since, terminal)}


class TrialOptions(Struct, frozen=True):
    trials: Annotated[
        str | None,
        trials_option(metavar="N", help="Also run N times with other phases of the clocks: p50, p95 and max."),
    ] = None
    trial: Annotated[str, trials_option(metavar="K", help="Which of them to look at, from 0.")] = "0"
    seed: Annotated[int, trials_option(help="Random seed.")] = 1
