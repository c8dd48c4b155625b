"""`rmqlb check`."""

from typing import TYPE_CHECKING, Annotated

import typer
from msgspec import Struct
from typer import Option

from rmqlb.cli.common.options import OutputOptions, SourceOptions, StrategyOptions, command
from rmqlb.cli.common.terminal import Terminal
from rmqlb.cli.exit_codes import ExitCode
from rmqlb.errors import UsageError
from rmqlb.model.words import counted

if TYPE_CHECKING:
    from rmqlb.model.check_result import CheckResult

_FOR_CI = ("junit", "sarif")


class CheckOptions(Struct, frozen=True):
    policy: Annotated[
        str | None,
        Option(
            "-p",
            "--policy",
            metavar="FILE|-",
            help="The rules and waivers: YAML or JSON, or - for stdin; default: a built-in policy for everything.",
        ),
    ] = None
    today: Annotated[
        str | None, Option(metavar="YYYY-MM-DD", help="The day on which waivers are looked at; default: today.")
    ] = None
    fail_from: Annotated[
        str,
        Option(metavar="SEVERITY", help="The lowest severity that decides the exit code: error, warning or info."),
    ] = "error"
    print_policy: Annotated[
        bool, Option("--print-policy", help="Print the built-in policy as YAML with comments, to edit, and end.")
    ] = False


@command
def check(
    source: SourceOptions, strategy_options: StrategyOptions, output: OutputOptions, chosen: CheckOptions
) -> None:
    """Check a cluster against a policy: limits for its groups and topics, with waivers that expire.

    Examples:
      rmqlb check -s examples/cluster.json

      rmqlb check --print-policy

      rmqlb check -p examples/policy.yaml -s examples/cluster.json --today 2026-11-21

      rmqlb check -p examples/policy.yaml -s examples/cluster.json --today 2026-11-21 -o junit

      rmqlb check -p examples/policy.yaml -s examples/cluster.json --today 2027-01-01 -o sarif

    Besides the common formats there are -o junit (JUnit XML), -o sarif (SARIF 2.1.0) and -o prometheus (OpenMetrics).

    Limits of groups: minConsumers, imbalance, idle, unassigned, duplicateOwners, duplicateClientIds,
    movedOnConsumerLoss, movedOnBrokerLoss, mixedStrategies, mixedSubscriptions, splitViews, withoutLock, lag,
    strategies, forbiddenFindings (codes of rmqlb diagnose). Of topics: minBrokers, writableBrokers, missingMasters.

    A limit that cannot be judged, because something is unknown, is incomplete and has not passed; so is a rule that
    matches no group or topic. A failed limit goes before what is incomplete.

    Exit codes: 0 all limits passed or are waived, 2 usage or a malformed policy, 3 a limit failed, 4 incomplete,
    5 endpoint unreachable.
    """
    from rmqlb.cli.common.reading import Reader
    from rmqlb.verbs import amounts
    from rmqlb.verbs import check as verb

    terminal = Terminal("check", output, more_formats=(*_FOR_CI, "prometheus"))
    if chosen.print_policy:
        from rmqlb.sources.user_files.policy_file import built_in_text

        if chosen.policy is not None:
            raise UsageError("--print-policy prints the built-in policy, and --policy names another one")
        terminal.write(built_in_text())
        return
    if source.source == "-" and chosen.policy == "-":
        raise UsageError("-s - and --policy - both read stdin")
    today = None if chosen.today is None else amounts.day(chosen.today, "--today")
    reader = Reader(source, terminal)
    with terminal.progress(verb="checking") as progress:
        result = verb.check(
            reader,
            chosen.policy,
            today=today,
            fail_from=chosen.fail_from,
            strategy_options=strategy_options.texts,
            progress=progress,
        )
    _show(result, terminal)
    _end(result, terminal)


def _show(result: "CheckResult", terminal: Terminal) -> None:
    meta = result.meta
    if terminal.format not in _FOR_CI:
        from rmqlb.views.check import check_report

        terminal.show(check_report(result), meta.snapshot, meta.findings)
        return
    with terminal.progress(verb="writing") as progress:
        progress("the result", 0, 0)
        if terminal.format == "junit":
            from rmqlb.views.formats.junit import as_junit

            text = as_junit(meta.made_from, meta.snapshot.taken_at)
        else:
            from rmqlb.version import __version__
            from rmqlb.views.formats.sarif import as_sarif

            text = as_sarif(meta.made_from, __version__, int(_exit_code(result)))
    terminal.write(text)
    terminal.warn(meta.findings)


def _exit_code(result: "CheckResult") -> ExitCode:
    return {"failed": ExitCode.CONDITION, "incomplete": ExitCode.DATA}.get(result.outcome, ExitCode.OK)


def _end(result: "CheckResult", terminal: Terminal) -> None:
    for verdict, judged, suffix in (
        ("failed", result.failed, ""),
        ("incomplete", result.incomplete, " could not be judged"),
    ):
        if number := sum(one.decides(result.fail_from) for one in judged):
            terminal.say(f"{verdict}: {counted(number, 'limit')}{suffix}")
    if (code := _exit_code(result)) != ExitCode.OK:
        raise typer.Exit(code)
