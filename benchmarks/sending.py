"""A producer's sends, beside the bare interpreter: `python -m benchmarks.sending`.

Traces: a million attempts as JSON lines, of whole processes. Trials: 1,000 simulations of 1,000 messages, on all cores.

Only the standard library is imported before the traces, for the reason that `measuring.run` gives.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from inspect import getsource
from typing import TYPE_CHECKING

from benchmarks.installation import ROOT
from benchmarks.measuring import in_turns, machine, peak_megabytes, ratio, seconds
from benchmarks.sections import Hold, Section, least, loop, measure, parser_of
from benchmarks.sections import broken as sections_broken

if TYPE_CHECKING:
    from rmqlb.model.route import TopicRouteData
    from rmqlb.model.simulate_send import Attempt

OFF, ON = "latency fault off", "latency fault on"
HOLDS: Mapping[tuple[str, ...], Hold] = {
    ("trace", OFF): Hold(most=250),
    ("trace", ON): Hold(most=250),
    ("trace, peak", OFF): Hold(most=1.5),
    ("trace, peak", ON): Hold(most=1.5),
    ("trials, seconds",): Hold(most=10),
}
"""Times in units of the bare loop's, peaks in units of one attempt's; trials in seconds on two cores."""
ATTEMPTS = 10**6


def traces(rounds: int, attempts: int = ATTEMPTS) -> Section:
    """Time and peak memory of whole processes: the bare loop, one attempt, and many."""
    start_up, bare = "rmqlb, one attempt", f"python, a loop of {attempts:,} rounds"
    cases = {f"rmqlb, {attempts:,} attempts, {name}": name for name in (OFF, ON)}
    commands = {
        bare: [sys.executable, "-c", f"{getsource(loop)}\nloop({attempts})"],
        start_up: _traced(1, latency_fault=False),
        **{label: _traced(attempts, latency_fault=name == ON) for label, name in cases.items()},
    }
    usages = in_turns(commands, rounds)
    section = Section(("process", "peak, MB", "seconds", "time / loop", "peak / one attempt"))
    for label, own in usages.items():
        time = ratio(seconds(own), seconds(usages[bare]))
        peak = ratio([use.peak_bytes for use in own], [use.peak_bytes for use in usages[start_up]])
        section.rows.append(
            (label, peak_megabytes(own), f"{min(seconds(own)):.2g}", time, peak if label in cases else "")
        )
        if label in cases:
            section.ratios["trace", cases[label]] = time
            section.ratios["trace, peak", cases[label]] = peak
    return section


def _traced(attempts: int, *, latency_fault: bool) -> list[str]:
    imports = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from benchmarks.sending import trace"
    return [sys.executable, "-c", f"{imports}; trace({attempts}, {latency_fault})"]


def trace(attempts: int, latency_fault: bool) -> None:
    """Write attempts as JSON lines to the null device; with latency fault one broker always refuses."""
    import msgspec

    from rmqlb.engine.send.simulate import simulate_send
    from rmqlb.model.send_scenario import NEWEST, Failure, Reaction, SendScenario

    encode = msgspec.json.Encoder().encode
    failures = (Failure("broker-b", Reaction("refused", "refused", cost_us=1000)),) if latency_fault else ()
    scenario = SendScenario(NEWEST, latency_fault=latency_fault, messages=attempts, failures=failures)
    with open(os.devnull, "wb") as lines:

        def sink(attempt: Attempt) -> None:
            lines.write(encode(attempt) + b"\n")

        simulate_send(_route(), scenario, sink=sink)


def trials(turns: int, number: int = 1000, messages: int = 1000) -> Section:
    """Seconds of many simulations of one failure, with latency fault on and off."""
    from rmqlb.engine.send.trials import simulate_trials
    from rmqlb.model.send_scenario import NEWEST, Failure, Moment, Reaction, SendScenario

    section = Section((f"{number:,} trials of {messages:,} messages", "seconds"))
    failure = Failure(
        "broker-b", Reaction("refused", "refused", cost_us=1000), Moment(us=messages * 200), Moment(us=messages * 600)
    )
    slowest: list[float] = [0.0] * turns
    for fault in (OFF, ON):
        scenario = SendScenario(NEWEST, latency_fault=fault == ON, messages=messages, failures=(failure,))
        times = [least(partial(simulate_trials, _route(), scenario, number), 1) for _ in range(turns)]
        section.rows.append((fault, f"{min(times):.2g}"))
        slowest = [max(pair) for pair in zip(slowest, times, strict=True)]
    section.ratios["trials, seconds",] = ratio(slowest, [1.0] * turns)
    return section


def _route() -> TopicRouteData:
    from rmqlb.model.route import BrokerData, QueueData, TopicRouteData

    names = tuple(f"broker-{letter}" for letter in "abcd")
    return TopicRouteData(
        "OrderEvents",
        tuple(QueueData(name, 8, 8, perm=6) for name in names),
        tuple(BrokerData("c", name, {0: f"{name}:10911"}) for name in names),
    )


def broken(sections: Sequence[Section]) -> list[str]:
    """A line for each hold that is broken."""
    return sections_broken(sections, HOLDS)


def main() -> None:
    """Measure, print the tables, and with `--check` end with 1 when a hold is broken."""
    parts: dict[str, Callable[[int], Section]] = {"traces": traces, "trials": trials}
    options = parser_of("benchmarks.sending", __doc__, parts, turns=3).parse_args()
    sys.stdout.write(f"{machine()}, {options.turns} turns\n")
    chosen = {name: partial(part, options.turns) for name, part in parts.items() if name in (options.only or parts)}
    measure(chosen, broken, check=options.check)


if __name__ == "__main__":
    main()
