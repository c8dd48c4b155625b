"""Show a result once, or again and again, and end as its `--fail-on` conditions say.

Conditions are parsed before any work and judged before anything is on stdout; the exit code reports them.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import typer
from msgspec.structs import replace

from rmqlb.cli.common.declare import Options, Text, written
from rmqlb.cli.common.options import OutputOptions, SourceOptions
from rmqlb.cli.common.output_files import PageOptions
from rmqlb.cli.common.reading import Reading, ask
from rmqlb.cli.common.terminal import SnapshotView, Terminal
from rmqlb.cli.exit_codes import ExitCode
from rmqlb.cli.results import schema_of
from rmqlb.errors import DataError, UsageError
from rmqlb.model.result import Result, TriedCondition
from rmqlb.verbs import amounts
from rmqlb.views.envelope import imported
from rmqlb.views.report import Report

Shown = TypeVar("Shown", bound=Result)
_SHORTEST_S = 0.1


class WatchFlag(Options):
    watch: bool = written.flag("Take samples until Ctrl-C. In a pipe, write changes as JSON lines.")


class WatchOptions(WatchFlag):
    every: Text = written("TIME", "Time between samples. Needs --watch; default: 5s.")
    samples: int | None = written("N", "Maximum number of samples. Needs --watch; default: no limit.", min=1)


def show(look: Callable[[], SnapshotView], options: WatchOptions, terminal: Terminal) -> SnapshotView:
    """Show a moment, once or while it is watched; a met condition ends either with its exit code."""
    if not options.watch:
        for option, value in (("--every", options.every), ("--samples", options.samples)):
            if value is not None:
                hint = "--watch --every 5s --samples 3 takes three samples"
                raise UsageError(f"{option} needs --watch", hint=hint)
        seen = look()
        terminal.show(seen.report, seen.snapshot, seen.findings)
    else:
        from rmqlb.cli.common.watch import watch

        every = options.every or "5s"
        every_s = amounts.seconds(every, "--every")
        if every_s < _SHORTEST_S:
            raise UsageError(f"--every {every}: shorter than 100ms")
        terminal.must_redraw_or_stream()
        seen = watch(look, terminal, every_s, options.samples)
    judge(seen.tried, terminal)
    return seen


def answer(
    command: str,
    report: str | Callable[[Any], Report],
    source: SourceOptions,
    options: Options,
    output: OutputOptions,
    watching: WatchOptions | None = None,
    *,
    module: str = "",
    formats: tuple[str, ...] = (),
    doing: str,
    hint: str = "",
    **more: Any,
) -> Any:
    """Ask the verb of a command with its options and `more`, show the result (`show_verb`), and return it.

    `module` has the verb below `rmqlb.verbs` and the report below `rmqlb.views`; default: the command's name.
    """
    verb = command.replace("-", "_")
    module = module or verb
    terminal = Terminal(command, output, formats, options if isinstance(options, PageOptions) else None)
    question = ask(imported(f"verbs.{module}.{verb}"), Reading(source, terminal), options, **more)
    shown = f"{module}.{report}" if isinstance(report, str) else report
    return show_verb(question, shown, terminal, watching, doing=doing, hint=hint)


def show_verb(
    ask: Callable[..., Shown],
    report: str | Callable[[Any], Report],
    terminal: Terminal,
    watching: WatchOptions | None = None,
    *,
    doing: str,
    hint: str = "",
) -> Shown:
    """Ask a verb, show its result, once or while it is watched, and return it.

    Args:
        ask: the verb with its arguments, but for `progress`.
        report: MODULE.NAME below `rmqlb.views`, imported where it is needed, or the function.
        watching: None is a verb that cannot be watched, and that judges itself what a missing part of the source means.
        doing: the work, as `planning`, for the progress line.
        hint: what to do where a condition's figure is unknown.
    """
    results: list[Shown] = []

    def look() -> SnapshotView:
        with terminal.progress(verb=doing) as progress:
            results[:] = [ask(progress=progress)]
        result, tried = results[0], conditions_of(results[0])
        require_known(tried, hint)
        if terminal.writes_data_alone:
            shown = Report(schema_of(result), result, (), ())
        else:
            shown = (imported(f"views.{report}") if isinstance(report, str) else report)(result)
        return SnapshotView(shown, result.meta.snapshot, result.meta.findings, tried)

    seen = show(look, watching or WatchOptions(), terminal)
    missing = [part for part in seen.snapshot.unread if part.is_of_server]
    if missing and watching is not None:
        others = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        terminal.say(f"incomplete: {missing[0].what}{others} could not be read")
        raise typer.Exit(ExitCode.DATA)
    return results[0]


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
        terminal.say(f"condition met: {condition.text} (its value is {figure})")
    if met:
        raise typer.Exit(ExitCode.CONDITION)
