"""The options of `record` alone."""

from typing import Annotated

from msgspec import Struct
from typer import Option

from rmqlb.cli.common.options import about_option, panel, shown_option
from rmqlb.cli.common.pictures import PictureOptions

_replay_option = panel("Replay")


class WatchedOptions(Struct, frozen=True):
    """What is watched, how often and for how long."""

    group: Annotated[str | None, Option("-g", "--group", metavar="GROUP", help="The consumer group.")] = None
    topic: Annotated[
        list[str] | None,
        Option("-t", "--topic", metavar="TOPIC", help="Only this topic; repeatable; default: the group's topics."),
    ] = None
    every: Annotated[
        str | None,
        about_option(metavar="TIME", help="Time between two looks, 1s at the least; default 1s."),
    ] = None
    until: Annotated[
        str | None,
        about_option(
            metavar="converged|TIME",
            help="End when the group has changed and is converged, after a time (90s), or at one "
            "(2026-11-22T16:00:00Z).",
        ),
    ] = None
    for_: Annotated[
        str | None,
        about_option("--for", metavar="TIME", help="End after it whatever happens; default 10m."),
    ] = None
    event_at: Annotated[
        str | None,
        about_option(
            metavar="TIME", help="When the event happened, as 2026-11-22T16:00:00.250Z; default: the first change seen."
        ),
    ] = None


class RecordedOptions(PictureOptions, frozen=True):
    """The pictures, and the conditions."""

    fail_on: Annotated[
        list[str] | None,
        shown_option(
            metavar="CONDITION",
            help="Exit 3 when it is met: 'differences>0', 'longest-gap-at-most-ms>5000'; repeatable.",
        ),
    ] = None


class PredictionOptions(Struct, frozen=True):
    """What is compared, and what is read again."""

    against: Annotated[
        list[str] | None,
        _replay_option(
            metavar="FILE|-",
            help="Compare with this plan, or simulation (several are its trials), that -o json wrote before.",
        ),
    ] = None
    tolerance: Annotated[
        str, _replay_option(metavar="TIME", help="So much earlier or later than predicted is as predicted.")
    ] = "1s"
    replay: Annotated[
        str | None,
        _replay_option(metavar="FILE|-", help="Show a recording again that -o json wrote, instead of a live group."),
    ] = None
