from typing import TYPE_CHECKING

import typer

from rmqlb.cli.common.declare import command, own
from rmqlb.cli.common.options import EarlierOptions, OutputOptions, PolicyOptions, SourceOptions
from rmqlb.cli.common.reading import Reading, ask
from rmqlb.cli.common.terminal import Terminal
from rmqlb.cli.exit_codes import ExitCode
from rmqlb.model.result import counted

if TYPE_CHECKING:
    from rmqlb.model.policy import CheckResult

_FOR_CI = ("junit", "sarif")


class CheckOptions(PolicyOptions, EarlierOptions):
    fail_on: str = own(
        "SEVERITY", "Exit 3 if a failed limit has this severity or worse. SEVERITY is error, warning or info.", "error"
    )


@command
def check(source: SourceOptions, output: OutputOptions, chosen: CheckOptions) -> None:
    """Check a cluster against a policy: limits for groups and topics, with waivers that expire.

    Examples:
      rmqlb check -s examples/cluster.json
      rmqlb check --print-policy
      rmqlb check -p examples/policy.yaml -s examples/cluster.json --today 2026-11-21
      rmqlb check -p examples/policy.yaml -s examples/cluster.json --today 2026-11-21 -o junit
      rmqlb check -p examples/policy.yaml -s examples/cluster.json --today 2027-01-01 -o sarif
      rmqlb check -p examples/policy.yaml -s examples/cluster-later.json --earlier examples/cluster.json

    In addition to the common formats, check writes -o junit (JUnit XML), -o sarif (SARIF 2.1.0) and -o prometheus
    (OpenMetrics).

    Group limits: minConsumers, imbalance, idle, unassigned, duplicateOwners, duplicateClientIds,
    movedOnConsumerLoss, movedOnBrokerLoss, mixedStrategies, mixedSubscriptions, splitViews, withoutLock, lag,
    maxDrainTime, strategies, forbiddenFindings (codes of rmqlb diagnose). Topic limits: minBrokers, writableBrokers,
    missingMasters. maxDrainTime needs an earlier snapshot.

    If data is missing, a limit is incomplete, which is not a pass. A rule that matches no group or topic is incomplete
    too. If one limit failed and another is incomplete, the exit code is 3.

    Exit codes: 0 all limits passed or are waived, 2 usage or a malformed policy, 3 a limit failed, 4 a limit is
    incomplete, 5 endpoint unreachable.
    """
    from rmqlb.verbs import amounts
    from rmqlb.verbs import check as verb

    terminal = Terminal("check", output, more_formats=(*_FOR_CI, "prometheus"))
    if (text := chosen.printed_policy()) is not None:
        terminal.write(text)
        return
    today = amounts.given(amounts.day, chosen.today, "--today")
    checking = ask(verb.check, Reading(source, terminal), chosen, today=today)
    with terminal.progress(verb="checking") as progress:
        result = checking(progress=progress)
    code = {"failed": ExitCode.CONDITION, "incomplete": ExitCode.DATA}.get(result.outcome, ExitCode.OK)
    _show(result, terminal, code)
    for verdict, judged, suffix in (
        ("failed", result.failed, ""),
        ("incomplete", result.incomplete, " could not be judged"),
    ):
        if number := sum(one.decides(result.fail_on) for one in judged):
            terminal.say(f"{verdict}: {counted(number, 'limit')}{suffix}")
    if code != ExitCode.OK:
        raise typer.Exit(code)


def _show(result: "CheckResult", terminal: Terminal, code: ExitCode) -> None:
    meta = result.meta
    if terminal.format not in _FOR_CI:
        from rmqlb.views.check import check_report

        terminal.show(check_report(result), meta.snapshot, meta.findings)
        return
    from rmqlb.version import __version__
    from rmqlb.views.formats.ci_reports import as_junit, as_sarif

    with terminal.progress(verb="writing") as progress:
        progress("the result", 0, 0)
        is_junit = terminal.format == "junit"
        checked = meta.made_from
        text = as_junit(checked, meta.snapshot.taken_at) if is_junit else as_sarif(checked, __version__, int(code))
    terminal.write(text)
    terminal.warn(meta.findings)
