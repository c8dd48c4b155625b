"""`rmqlb diagnose`."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec import Struct
from typer import Option

from rmqlb.cli.common.options import OutputOptions, SourceOptions, StrategyOptions, command, panel
from rmqlb.cli.common.show_or_watch import WatchOptions, check_watch, show
from rmqlb.cli.common.terminal import SnapshotView, Terminal
from rmqlb.cli.exit_codes import ExitCode
from rmqlb.errors import UsageError

if TYPE_CHECKING:
    from rmqlb.model.condition import TriedCondition
    from rmqlb.model.diagnosis import Diagnosis
    from rmqlb.verbs.source import Earlier

_looks_option = panel("Looks")


class DiagnoseOptions(Struct, frozen=True):
    """The groups, and what fails."""

    group: Annotated[
        list[str] | None,
        Option("-g", "--group", metavar="GROUP", help="Consumer groups, by name or as 'pay-*'; repeatable."),
    ] = None
    all_groups: Annotated[bool, Option("--all-groups", help="All groups except RocketMQ's own.")] = False
    fail_on: Annotated[
        str | None, Option(metavar="error|warning", help="Exit 3 when a finding is at least so grave.")
    ] = None


class LookOptions(Struct, frozen=True):
    """The number of looks, and what they read."""

    earlier: Annotated[
        list[str] | None,
        _looks_option(
            metavar="FILE|-", help="An earlier snapshot of the same cluster, which shows what changes; repeatable."
        ),
    ] = None
    interval: Annotated[str, _looks_option(metavar="TIME", help="The time between two looks at a running cluster.")] = (
        "10s"
    )
    looks: Annotated[
        int,
        _looks_option(
            min=1, max=10, metavar="N", help="The most looks; fewer where they decide what a change over time decides."
        ),
    ] = 3
    stacks: Annotated[
        bool, _looks_option("--stacks", help="Ask blocked consumers for the stack traces of their consume threads.")
    ] = False


@command
def diagnose(
    source: SourceOptions,
    chosen: DiagnoseOptions,
    looks: LookOptions,
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
    from rmqlb.model.finding import ERROR, WARNING
    from rmqlb.model.snapshot import suggestion
    from rmqlb.verbs import diagnose as verb
    from rmqlb.views.diagnose import diagnoses_report, diagnosis_report

    terminal = Terminal("diagnose", output, more_formats=("jsonl", "prometheus"))
    check_watch(watching, source, None, terminal)
    lowest, severities = chosen.fail_on, (ERROR, WARNING)
    if lowest is not None and lowest not in severities:
        hint = suggestion("severities", lowest, severities)
        raise UsageError(f"--fail-on {lowest}: neither error nor warning", hint=hint)
    ask = partial(
        verb.diagnose,
        Reader(source, terminal),
        chosen.group,
        all_groups=chosen.all_groups,
        interval=looks.interval,
        looks=looks.looks,
        stacks=looks.stacks,
        strategy_options=strategy_options.texts,
        watched=None if watching.watch is None else [],
    )
    earlier = _earlier(looks, source, terminal)
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


def _earlier(looks: LookOptions, source: SourceOptions, terminal: Terminal) -> "tuple[Earlier, ...]":
    """The files of `--earlier` (raises UsageError)."""
    from msgspec.structs import replace

    from rmqlb.cli.common.reading import Reader
    from rmqlb.sources.source_text import is_live, shown_source
    from rmqlb.verbs.source import Earlier

    files = tuple(dict.fromkeys(looks.earlier or ()))
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


def _tried(groups: "Sequence[Diagnosis]", lowest: str) -> "TriedCondition":
    from rmqlb.model.condition import TriedCondition
    from rmqlb.model.finding import ERROR, WARNING

    counted = (ERROR,) if lowest == ERROR else (ERROR, WARNING)
    number = sum(one.severity in counted for each in groups for one in each.findings)
    return TriedCondition("errors>0" if lowest == ERROR else "errors and warnings>0", number, number > 0)
