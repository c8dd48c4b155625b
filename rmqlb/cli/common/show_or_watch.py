"""Show a result once, or again and again, and end as its `--fail-on` conditions say.

Conditions are parsed before any work and judged before anything is on stdout; the exit code reports them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer
from msgspec import Struct
from msgspec.structs import replace

from rmqlb.cli.common.options import SourceOptions, output_option
from rmqlb.cli.common.terminal import SnapshotView, Terminal
from rmqlb.cli.exit_codes import ExitCode
from rmqlb.errors import DataError, UsageError
from rmqlb.model.condition import TriedCondition
from rmqlb.model.result import Result
from rmqlb.verbs import amounts

if TYPE_CHECKING:
    from rmqlb.views.report import Report

Shown = TypeVar("Shown", bound=Result)
_SHORTEST_S = 0.1


class WatchOptions(Struct, frozen=True):
    watch: Annotated[
        str | None,
        output_option(
            metavar="TIME", help="Look again every TIME until Ctrl-C; in a pipe, JSON lines of what changes."
        ),
    ] = None
    rounds: Annotated[int | None, output_option(min=1, metavar="N", help="With --watch: end after N looks.")] = None


def check_watch(options: WatchOptions, source: SourceOptions, consumers: str | None, terminal: Terminal) -> None:
    """Refuse a watch that is impossible, before any work (raises UsageError)."""
    if options.watch is None:
        if options.rounds is not None:
            raise UsageError("--rounds goes with --watch", hint="--watch 5s --rounds 3 looks three times")
        return
    if amounts.seconds(options.watch, "--watch") < _SHORTEST_S:
        raise UsageError(f"--watch {options.watch}: shorter than 100ms")
    if "-" in (source.source, (consumers or "").removeprefix("@")):
        raise UsageError("--watch reads its source again and again, and stdin can be read once", hint="name a file")
    terminal.must_redraw_or_stream()


def show(look: Callable[[], SnapshotView], options: WatchOptions, terminal: Terminal) -> SnapshotView:
    """Show a moment, once or while it is watched; a met condition ends either with its exit code."""
    if options.watch is None:
        seen = look()
        terminal.show(seen.report, seen.snapshot, seen.findings)
    else:
        from rmqlb.cli.common.watch import watch

        seen = watch(look, terminal, amounts.seconds(options.watch, "--watch"), options.rounds)
    judge(seen.tried, terminal)
    return seen


def show_verb(
    ask: Callable[..., Shown],
    report: Callable[[Shown], Report],
    source: SourceOptions,
    options: WatchOptions,
    terminal: Terminal,
    *,
    verb: str,
    consumers: str | None = None,
    unknown_hint: str = "",
) -> None:
    """Ask a verb and show its result, once or while it is watched.

    Args:
        ask: the verb with its arguments; the source and `progress` follow here.
        verb: the work, as `planning`, for the progress line.
        consumers: `--consumers` as typed, which may read stdin.
        unknown_hint: what to do where a condition's figure is unknown.
    """
    from rmqlb.cli.common.reading import Reader

    check_watch(options, source, consumers, terminal)
    reader = Reader(source, terminal)

    def look() -> SnapshotView:
        with terminal.progress(verb=verb) as progress:
            result = ask(reader, progress=progress)
        return _view(result, report, unknown_hint)

    seen = show(look, options, terminal)
    missing = [part for part in seen.snapshot.unread if part.is_of_server]
    if missing:
        others = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        terminal.say(f"incomplete: {missing[0].what}{others} could not be read")
        raise typer.Exit(ExitCode.DATA)


def show_once(
    ask: Callable[..., Shown],
    report: Callable[[Shown], Report],
    terminal: Terminal,
    *,
    verb: str,
    unknown_hint: str = "",
) -> Shown:
    """Ask a verb that has its sources, show its result, and return it; the arguments are those of `show_verb`."""
    with terminal.progress(verb=verb) as progress:
        result = ask(progress=progress)
    seen = _view(result, report, unknown_hint)
    terminal.show(seen.report, seen.snapshot, seen.findings)
    judge(seen.tried, terminal)
    return result


def _view(result: Shown, report: Callable[[Shown], Report], unknown_hint: str) -> SnapshotView:
    tried = conditions_of(result)
    require_known(tried, unknown_hint)
    return SnapshotView(report(result), result.meta.snapshot, result.meta.findings, tried)


def conditions_of(result: Result) -> tuple[TriedCondition, ...]:
    """The conditions that a result answers; of several groups those of each, with its name."""
    found: tuple[TriedCondition, ...] = getattr(result, "conditions", ())
    for part in getattr(result, "groups", ()):
        own = getattr(part, "conditions", ())
        found += tuple(replace(each, text=f"{each.text} in group {part.group}") for each in own)
    return found


def require_known(tried: Sequence[TriedCondition], hint: str) -> None:
    """Refuse an unknown figure (raises DataError), unless another condition is met."""
    unknown = next((condition.text for condition in tried if condition.met is None), None)
    if unknown and not any(condition.met for condition in tried):
        raise DataError(f"--fail-on {unknown}: the figure is unknown", hint=hint, code="figure-not-seen")


def judge(tried: Sequence[TriedCondition], terminal: Terminal) -> None:
    """End the command when a condition is met; a figure is shown with all digits that the comparison saw."""
    met = [condition for condition in tried if condition.met]
    for condition in met:
        value = condition.value
        # A met condition without a figure has no end.
        figure = "without end" if value is None else f"{value:.12g}" if isinstance(value, float) else str(value)
        terminal.say(f"condition met: {condition.text} (it is {figure})")
    if met:
        raise typer.Exit(ExitCode.CONDITION)
