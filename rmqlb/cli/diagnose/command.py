"""`rmqlb diagnose`."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import typer

from rmqlb.cli.common.options import OutputOptions, SourceOptions, StrategyOptions, command
from rmqlb.cli.common.show_or_watch import WatchOptions, check_watch, show
from rmqlb.cli.common.terminal import SnapshotView, Terminal
from rmqlb.cli.diagnose.options import DiagnoseOptions, LookOptions
from rmqlb.cli.exit_codes import ExitCode
from rmqlb.errors import UsageError

if TYPE_CHECKING:
    from rmqlb.model.condition import TriedCondition
    from rmqlb.model.diagnosis import Diagnosis
    from rmqlb.model.finding import Severity
    from rmqlb.verbs.source import Earlier


@command
def diagnose(
    source: SourceOptions,
    chosen: DiagnoseOptions,
    looking: LookOptions,
    strategy_options: StrategyOptions,
    output: OutputOptions,
    watching: WatchOptions,
) -> None:
    """Say why a consumer group is as it is: the likeliest cause first, with evidence, consequence and remedy.

    Examples:
      rmqlb diagnose -s examples/four-groups.yaml -g dup-svc

      rmqlb diagnose -s examples/four-groups.yaml -g '*-svc' --fail-on error

      rmqlb diagnose -s examples/faults.json --earlier examples/faults-before.json -g ship-svc -o json

    A cause of wrong owners is one whose prediction equals all observed owners. What cannot be decided is unknown, with
    the reason. A running cluster is read again, --interval later, where a change over time decides.

    Exit codes: 0 done, 2 usage, 3 a finding is as grave as --fail-on says, 4 a group is not there, an --earlier file is
    not an earlier look at it, or with --fail-on something is unknown, 5 endpoint unreachable.
    """
    from rmqlb.cli.common.reading import Reader
    from rmqlb.model.diagnosis import DiagnosisOfGroups
    from rmqlb.verbs import diagnose as verb
    from rmqlb.views.diagnosis.several import diagnoses_report
    from rmqlb.views.diagnosis.view import diagnosis_report

    terminal = Terminal("diagnose", output, more_formats=("jsonl", "prometheus"))
    check_watch(watching, source, None, terminal)
    lowest = _lowest(chosen.fail_on)
    ask = partial(
        verb.diagnose,
        Reader(source, terminal),
        chosen.group,
        all_groups=chosen.all_groups,
        interval=looking.interval,
        looks=looking.looks,
        stacks=looking.stacks,
        strategy_options=strategy_options.texts,
        watched=None if watching.watch is None else [],
    )
    earlier = _earlier(looking, source, terminal)
    seen: list[Diagnosis] = []

    def look() -> SnapshotView:
        with terminal.progress(verb="diagnosing") as progress:
            found = ask(earlier=() if seen else earlier, progress=progress)  # a watch remembers them
        seen[:] = found.groups if isinstance(found, DiagnosisOfGroups) else (found,)
        tried = () if lowest is None else (_tried(seen, lowest),)
        report = diagnoses_report(found) if isinstance(found, DiagnosisOfGroups) else diagnosis_report(found)
        return SnapshotView(report, found.meta.snapshot, found.meta.findings, tried)

    show(look, watching, terminal)
    number = 0 if lowest is None else sum(bool(each.unknown) for each in seen)
    if number:
        terminal.say(f"incomplete: --fail-on {lowest} could not be decided for all rules of {number} of the groups")
        raise typer.Exit(ExitCode.DATA)


def _earlier(looking: LookOptions, source: SourceOptions, terminal: Terminal) -> "tuple[Earlier, ...]":
    """The files of `--earlier` (raises UsageError)."""
    from msgspec.structs import replace

    from rmqlb.cli.common.reading import Reader
    from rmqlb.sources.source_text import is_live, shown_source
    from rmqlb.verbs.source import Earlier

    files = tuple(dict.fromkeys(looking.earlier or ()))
    if source.source == "-" and "-" in files:
        raise UsageError("-s - and --earlier - both read stdin")
    for file in files:
        if is_live(file):
            raise UsageError(
                f"--earlier {shown_source(file)}: a running cluster shows no earlier look",
                hint="name a snapshot that fetch-routes wrote before",
            )
    own = replace(source, active_context=None, ignored_context_note=None)
    return tuple(Earlier(Reader(replace(own, source=file), terminal), file) for file in files)


def _lowest(text: "str | None") -> "Severity | None":
    from rmqlb.model.finding import ERROR, WARNING
    from rmqlb.model.snapshot import suggestion

    if text is None:
        return None
    for each in (ERROR, WARNING):
        if text == each:
            return each
    raise UsageError(
        f"--fail-on {text}: neither error nor warning", hint=suggestion("severities", text, (ERROR, WARNING))
    )


def _tried(groups: "Sequence[Diagnosis]", lowest: "Severity") -> "TriedCondition":
    from rmqlb.model.condition import TriedCondition
    from rmqlb.model.finding import ERROR, SEVERITIES

    most = SEVERITIES.index(lowest)
    number = sum(SEVERITIES.index(one.severity) <= most for each in groups for one in each.findings)
    return TriedCondition("errors>0" if lowest == ERROR else "errors and warnings>0", number, number > 0)
