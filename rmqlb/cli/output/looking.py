"""Commands that show a moment, once or again and again.

Typer reads the annotations when the program starts, so they are values here, not text.
"""

from collections.abc import Callable, Iterable
from typing import Annotated

from msgspec import Struct
from typer import Option

from rmqlb.cli.options.shared import OUTPUT, SourceOptions
from rmqlb.cli.output.judging import judge
from rmqlb.cli.output.terminal import Terminal
from rmqlb.cli.values import amounts
from rmqlb.errors import UsageError
from rmqlb.model.finding import Finding
from rmqlb.model.plan import TriedCondition
from rmqlb.model.snapshot import ClusterSnapshot
from rmqlb.views.report import Report

_SHORTEST_S = 0.1


class WatchOptions(Struct, frozen=True):
    """Whether to look again, and how often."""

    watch: Annotated[
        str | None,
        Option(
            metavar="TIME",
            help="Look again every TIME until Ctrl-C; in a pipe, JSON lines of what changes.",
            rich_help_panel=OUTPUT,
        ),
    ] = None
    rounds: Annotated[
        int | None, Option(min=1, metavar="N", help="With --watch: end after N looks.", rich_help_panel=OUTPUT)
    ] = None


class Look(Struct, frozen=True):
    """What a command sees at one moment.

    Attributes:
        report: what there is to show; it has rows.
        snapshot: where it comes from.
        findings: its warnings.
        tried: the conditions of `--fail-on`.
    """

    report: Report
    snapshot: ClusterSnapshot
    findings: tuple[Finding, ...]
    tried: tuple[TriedCondition, ...] = ()


def check_watch(options: WatchOptions, source: SourceOptions, consumers: str | None, terminal: Terminal) -> None:
    """Refuse, before any work, a watch that cannot be kept.

    Raises:
        UsageError: the interval is none, the format cannot show changes, or stdin would be read twice.
    """
    if options.watch is None:
        if options.rounds is not None:
            raise UsageError("--rounds goes with --watch", hint="--watch 5s --rounds 3 looks three times")
        return
    if amounts.seconds(options.watch, "--watch") < _SHORTEST_S:
        raise UsageError(f"--watch {options.watch}: shorter than 100ms")
    if "-" in (source.source, (consumers or "").removeprefix("@")):
        raise UsageError("--watch reads its source again and again, and stdin can be read once", hint="name a file")
    terminal.must_redraw_or_stream()


def show(look: Callable[[], Look], options: WatchOptions, terminal: Terminal) -> None:
    """Show what there is to see, once or as long as it is watched; conditions that are met end either.

    Raises:
        RmqlbError: the first look fails.
    """
    if options.watch is None:
        seen = look()
        terminal.show(seen.report, seen.snapshot, seen.findings)
    else:
        from rmqlb.cli.output.watch import watch

        seen = watch(look, terminal, amounts.seconds(options.watch, "--watch"), options.rounds)
    judge(seen.tried, terminal)


def met(tried: Iterable[TriedCondition]) -> bool:
    """One of the conditions is met."""
    return any(condition.met for condition in tried)
