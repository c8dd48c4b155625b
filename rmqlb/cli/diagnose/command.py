"""`rmqlb diagnose`."""

from typing import TYPE_CHECKING

import typer

from rmqlb.cli.common.options import OutputOptions, SourceOptions, StrategyOptions, command
from rmqlb.cli.common.show_or_watch import WatchOptions, check_watch, show
from rmqlb.cli.common.terminal import SnapshotView, Terminal
from rmqlb.cli.diagnose.options import DiagnoseOptions, LookOptions
from rmqlb.cli.exit_codes import ExitCode

if TYPE_CHECKING:
    from rmqlb.model.condition import TriedCondition
    from rmqlb.model.diagnosis import DiagnosisOfGroups
    from rmqlb.model.finding import Severity


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
    from rmqlb.cli.diagnose.gather import Gatherer
    from rmqlb.engine.diagnose.diagnose import diagnose as diagnose_group
    from rmqlb.engine.diagnose.group_looks import evidence_of, of_several
    from rmqlb.engine.source_findings import source_findings
    from rmqlb.verbs.strategies import Strategies
    from rmqlb.views.diagnosis.several import diagnoses_report
    from rmqlb.views.diagnosis.view import diagnosis_report

    terminal = Terminal("diagnose", output, more_formats=("jsonl", "prometheus"))
    check_watch(watching, source, None, terminal)
    lowest = _lowest(chosen.fail_on)
    strategies = Strategies(strategy_options.strategy_option)
    strategies.must_apply(reported=True)
    gatherer = Gatherer(source, chosen, looking, terminal, strategies.settings_for, watched=watching.watch is not None)
    seen: list[DiagnosisOfGroups] = []

    def look() -> SnapshotView:
        looks, findings = gatherer.look()
        last = next(iter(looks.values()))[-1]
        with terminal.progress(verb="diagnosing") as progress:
            diagnoses = []
            for done, (name, its) in enumerate(looks.items()):
                progress("groups", done, len(looks))
                diagnoses.append(
                    diagnose_group(evidence_of(its, name, strategies.settings_for(list(its[-1].routes), name)))
                )
        whole = of_several(diagnoses)
        seen[:] = [whole]
        tried = () if lowest is None else (_tried(whole, lowest),)
        report = diagnoses_report(whole) if gatherer.several else diagnosis_report(diagnoses[0])
        return SnapshotView(report, last, (*findings, *source_findings(last)), tried)

    show(look, watching, terminal)
    if lowest is not None and any(each.unknown for whole in seen for each in whole.groups):
        number = sum(bool(each.unknown) for whole in seen for each in whole.groups)
        terminal.say(f"incomplete: --fail-on {lowest} could not be decided for all rules of {number} of the groups")
        raise typer.Exit(ExitCode.DATA)


def _lowest(text: "str | None") -> "Severity | None":
    from rmqlb.errors import UsageError
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


def _tried(whole: "DiagnosisOfGroups", lowest: "Severity") -> "TriedCondition":
    from rmqlb.model.condition import TriedCondition
    from rmqlb.model.finding import ERROR, SEVERITIES

    most = SEVERITIES.index(lowest)
    number = sum(SEVERITIES.index(one.severity) <= most for each in whole.groups for one in each.findings)
    return TriedCondition("errors>0" if lowest == ERROR else "errors and warnings>0", number, number > 0)
