from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from rmqlb.cli.common.declare import Panel, Text, Texts, command, own
from rmqlb.cli.common.options import LagOptions, OutputOptions, SourceOptions, StrategyOptions
from rmqlb.cli.common.output_files import PageOptions
from rmqlb.cli.common.reading import Reading, ask, earlier_files
from rmqlb.cli.common.show_or_watch import WatchFlag, WatchOptions, show
from rmqlb.cli.common.terminal import SnapshotView, Terminal
from rmqlb.cli.exit_codes import ExitCode
from rmqlb.errors import UsageError

if TYPE_CHECKING:
    from rmqlb.model.diagnosis import Diagnosis
    from rmqlb.model.result import TriedCondition

_samples = Panel("Samples")
_MOST = 10


class DiagnoseOptions(PageOptions, StrategyOptions, LagOptions):
    group: Texts = own("-g GROUP", "Consumer groups by name or pattern ('pay-*'); repeatable.", positional="GROUP")
    all_groups: bool = own.flag("Diagnose all groups except RocketMQ's own.")
    fail_on: Text = own("error|warning", "Exit 3 if a finding has this severity or worse.", for_verb=False)
    every: str = _samples("TIME", "Time between samples.", "10s", for_verb=False)
    samples: int | None = _samples(
        "N",
        "Maximum number of samples; default: 3. Fewer are enough if they decide all checks; with --watch, there is no "
        "limit.",
        min=1,
        for_verb=False,
    )
    stacks: bool = _samples.flag("Collect stack traces of blocked consume threads.")


@command
def diagnose(source: SourceOptions, options: DiagnoseOptions, output: OutputOptions, flag: WatchFlag) -> None:
    """Diagnose a consumer group: likely causes first, with evidence, consequence and remedy.

    Examples:
      rmqlb diagnose -s examples/four-groups.yaml -g dup-svc
      rmqlb diagnose -s examples/four-groups.yaml -g '*-svc' --fail-on error
      rmqlb diagnose -s examples/faults.json --earlier examples/faults-before.json -g ship-svc -o json

    A cause explains wrong owners if its prediction matches all observed owners. A check without enough data is unknown;
    the output gives the reason. If a check depends on a change over time, rmqlb takes more samples of a running
    cluster, at the interval of --every.

    Exit codes: 0 done, 2 usage, 3 a finding reaches the severity of --fail-on, 4 a group does not exist, an --earlier
    file is not an earlier snapshot of the group, or with --fail-on a check is unknown, 5 endpoint unreachable.
    """
    from rmqlb.model.diagnosis import DiagnosisOfGroups
    from rmqlb.model.result import ERROR, WARNING
    from rmqlb.model.snapshot import ClusterSnapshot
    from rmqlb.verbs import diagnose as verb
    from rmqlb.verbs.amounts import given, one_of
    from rmqlb.views.diagnose import diagnoses_report, diagnosis_report

    terminal = Terminal("diagnose", output, more_formats=("jsonl", "prometheus"), files=options)
    lowest = given(one_of, options.fail_on, "--fail-on", (ERROR, WARNING))
    reader = Reading(source, terminal)
    samples, watched = options.samples, list[ClusterSnapshot]() if flag.watch else None
    if samples is not None and samples > _MOST and not flag.watch:
        raise UsageError(f"--samples {samples}: at most {_MOST}", hint="--watch has no limit")
    every = "10s" if flag.watch else options.every  # the verb itself never waits in a watch
    compared = max(3, min(samples or 3, _MOST)) if flag.watch else samples or 3
    diagnosing = ask(verb.diagnose, reader, options, every=every, samples=compared, watched=watched)
    earlier = earlier_files(options.earlier or (), reader)
    seen: list[Diagnosis] = []

    def look() -> SnapshotView:
        with terminal.progress(verb="diagnosing") as progress:
            found = diagnosing(earlier=() if seen else earlier, progress=progress)  # a watch remembers them
        seen[:] = found.groups if isinstance(found, DiagnosisOfGroups) else (found,)
        tried = () if lowest is None else (_tried(seen, lowest),)
        if isinstance(found, DiagnosisOfGroups):
            report = diagnoses_report(found, live=reader.live)
        else:
            report = diagnosis_report(found, live=reader.live)
        return SnapshotView(report, found.meta.snapshot, found.meta.findings, tried)

    watching = WatchOptions(watch=True, every=options.every, samples=samples) if flag.watch else WatchOptions()
    show(look, watching, terminal)
    number = 0 if lowest is None else sum(bool(each.unknown) for each in seen)
    if number:
        terminal.say(f"incomplete: --fail-on {lowest} could not be decided for {number} of the groups")
        raise typer.Exit(ExitCode.DATA)


def _tried(groups: "Sequence[Diagnosis]", lowest: str) -> "TriedCondition":
    from rmqlb.model.result import ERROR, WARNING, TriedCondition

    counted = (ERROR,) if lowest == ERROR else (ERROR, WARNING)
    number = sum(one.severity in counted for each in groups for one in each.findings)
    return TriedCondition("errors>0" if lowest == ERROR else "errors and warnings>0", number, number > 0)
