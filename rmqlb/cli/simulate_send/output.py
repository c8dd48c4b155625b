"""Sends simulated and shown: row by row as they happen, or whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from rmqlb.cli.common.fail_on import judge, require_known
from rmqlb.cli.common.progress import Progress
from rmqlb.cli.common.terminal import Terminal
from rmqlb.engine.fail_on_figures.conditions import Condition
from rmqlb.engine.fail_on_figures.of_sends import try_on_send, try_on_trials
from rmqlb.engine.send.profile import PROFILES
from rmqlb.engine.send.simulate import simulate_send
from rmqlb.errors import DataError, UsageError
from rmqlb.model.client_versions import ClientVersions
from rmqlb.model.condition import TriedCondition
from rmqlb.model.finding import INFO, Finding
from rmqlb.model.send_report import SendReport
from rmqlb.model.send_scenario import JAVA, SendScenario

if TYPE_CHECKING:
    from rmqlb.cli.simulate_send.inputs import Gathered
    from rmqlb.cli.simulate_send.options import WhatOptions

_MOST_KEPT = 2_000_000


def stream(
    found: Gathered,
    terminal: Terminal,
    asked: Sequence[Condition],
    what: WhatOptions,
) -> None:
    """Every attempt as a JSON line, as soon as it ends; with --trace every lost message too, after its last attempt."""
    from rmqlb.views.formats.machine import JsonLines

    if what.compare or what.compare_clients or what.compare_sdks or len(found.sdks) > 1 or what.trials:
        raise UsageError(
            "-o jsonl streams the attempts of one simulation", hint="use -o json for comparisons and trials"
        )
    lines = JsonLines(terminal.write)
    total = _expected(found.scenario)
    with terminal.progress(verb="simulating", beside_rows=True) as progress:
        progress("messages", 0, total)
        report = simulate_send(
            found.route,
            found.scenario,
            sink=lines.add,
            lost_sink=lines.add if what.trace else None,
            progress=lambda sent: progress("messages", sent, total),
        )
    lines.flush()
    tried = [try_on_send(condition, report) for condition in asked]
    terminal.warn((*found.findings, *report.findings))
    require_known(tried, _hint(asked, tried))
    judge(tried, terminal)


def write(
    found: Gathered,
    terminal: Terminal,
    asked: Sequence[Condition],
    what: WhatOptions,
    trials: int | None,
    precision: float | None,
) -> None:
    """Simulate, and show what came of it."""
    from rmqlb.views.send.view import send_report

    scenario = found.scenario
    _check_compared(what, scenario)
    if what.trace and scenario.messages is not None and scenario.messages * (1 + scenario.retries) > _MOST_KEPT:
        raise UsageError(
            f"--trace of {scenario.messages} messages would keep millions of attempts", hint="stream them with -o jsonl"
        )
    with terminal.progress(verb="simulating") as progress:
        total = _expected(scenario)
        progress("messages", 0, total)

        def sent(messages: int) -> None:
            progress("messages", messages, max(total, messages) if total else 0)

        report = simulate_send(found.route, scenario, trace=what.trace or None, progress=sent)
        others = []
        if what.compare:
            other = replace(scenario, latency_fault=not scenario.latency_fault)
            others.append(simulate_send(found.route, other, trace=False, progress=sent))
        clients = list(_clients(found, progress)) if what.compare_clients else []
        sdks, left_out = _sdks(found, progress) if what.compare_sdks or len(found.sdks) > 1 else ([], [])
        estimates = None
        if trials is not None:
            from rmqlb.engine.send.trials import simulate_trials

            estimates = simulate_trials(
                found.route, scenario, trials, precision=precision, progress=lambda n: progress("trials", n, trials)
            )
    tried = [
        try_on_send(condition, report) if estimates is None else try_on_trials(condition, estimates, report)
        for condition in asked
    ]
    require_known(tried, _hint(asked, tried))
    shown = send_report(
        report,
        others=others,
        clients=clients,
        sdks=sdks,
        trials=estimates,
        conditions=tried,
        trace=what.trace,
        keys=found.keys,
    )
    terminal.show(shown, found.snapshot, (*found.findings, *left_out, *report.findings))
    judge(tried, terminal)


def _check_compared(what: WhatOptions, scenario: SendScenario) -> None:
    if (what.compare or what.compare_clients) and scenario.sdk != JAVA:
        option = "--compare" if what.compare else "--compare-clients"
        raise UsageError(f"{option} compares what Java's producers do", hint="leave --sdk out, or use --compare-sdks")


def _hint(asked: Sequence[Condition], tried: Sequence[TriedCondition]) -> str:
    """What to ask instead of the first condition that nobody can judge."""
    unknown = next((condition for condition, found in zip(asked, tried, strict=True) if found.met is None), None)
    if unknown is None or unknown.percent or unknown.name == "share":
        return "no message is stored or none is sent, so that nothing is a share of them: ask for lost"
    return "trials do not count it: ask for it without --trials"


def _expected(scenario: SendScenario) -> int:
    """About how many messages there will be; 0 when that cannot be foreseen."""
    ends = [] if scenario.messages is None else [scenario.messages]
    if scenario.rate is not None and scenario.duration_us is not None:
        ends.append(int(scenario.rate * scenario.duration_us / 1_000_000))
    return min(ends, default=0)


def _clients(found: Gathered, progress: Progress) -> Iterator[tuple[ClientVersions, SendReport]]:
    for done, profile in enumerate(PROFILES):
        progress("client versions", done, len(PROFILES))
        version = ".".join(map(str, profile.since))
        yield profile.versions, simulate_send(found.route, replace(found.scenario, client_version=version), trace=False)


def _sdks(found: Gathered, progress: Progress) -> tuple[list[SendReport], list[Finding]]:
    """The same by producers of each SDK, each with the retries that are its own, and why some are left out."""
    from rmqlb.cli.simulate_send.inputs import of_sdk, own_first_poll, own_retries
    from rmqlb.engine.send.sdks.profile import simulated

    chosen = list(found.sdks) if len(found.sdks) > 1 else simulated()
    reports, left_out = list[SendReport](), list[Finding]()
    for done, asked in enumerate(chosen):
        progress("SDKs", done, len(chosen))
        name, version = of_sdk(asked, found.scenario.client_version)
        scenario = replace(found.scenario, client_version=version)
        if name != JAVA:  # the others have none
            scenario = replace(scenario, latency_fault=False, detector=False)
        first = scenario.first_poll_us if found.first_poll_given else own_first_poll(name, scenario.poll_us)
        scenario = replace(scenario, sdk=name, retries=own_retries(name, found.retries), first_poll_us=first)
        try:
            reports.append(simulate_send(found.route, scenario, trace=False))
        except (DataError, UsageError) as unknown:
            if isinstance(unknown, UsageError) and scenario.mode != "async":
                raise  # it is no other SDK's
            left_out.append(Finding("sdk-not-simulated", f"{name} is left out: {unknown.problem}", severity=INFO))
    return reports, left_out
