"""A producer's sends, beside RocketMQ's own picks and the bare interpreter: `python -m benchmarks.sending`.

Four sections: one million attempts written as JSON lines; picks of a queue, beside RocketMQ's own
`MQFaultStrategy` in a warmed-up JVM; totals alone, of up to 10^9 messages; and many trials at once.

Rule of this file: what imports rmqlb is imported after the traces, for the reason that `measuring.run` gives.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from inspect import getsource

from benchmarks.installation import ROOT
from benchmarks.measuring import in_turns, machine, peak_megabytes, ratio, seconds
from benchmarks.sections import Hold, Section, loop, measure, parser_of
from benchmarks.sections import broken as sections_broken

HOLDS: Mapping[tuple[str, ...], Hold] = {
    ("picks", "latency fault off"): Hold(least=0.005),
    ("picks", "latency fault on"): Hold(least=0.005),
    ("picks", "latency fault on, one broker isolated"): Hold(least=0.005),
    ("totals beside picks", "latency fault off"): Hold(least=2),
    ("totals beside picks", "latency fault on"): Hold(least=2),
    ("totals beside picks", "latency fault on, one broker isolated"): Hold(least=0.5),
    ("trace", "latency fault off"): Hold(most=250),
    ("trace", "latency fault on"): Hold(most=250),
    ("trace, peak", "latency fault off"): Hold(most=1.5),
    ("trace, peak", "latency fault on"): Hold(most=1.5),
    ("totals", "60 s", "latency fault off"): Hold(most=20),
    ("totals", "60 s", "latency fault on"): Hold(most=20),
    ("totals", "a twentieth of all", "latency fault off"): Hold(most=20),
    ("totals", "a twentieth of all", "latency fault on"): Hold(most=700),
    ("trials",): Hold(least=0.3),
}
"""Of picks and totals, in units of RocketMQ's picks a second; of traces, in units of the bare loop's time and of the
start-up's peak; of totals, the most messages in units of the fewest; of trials, attempts in units of the bare loop's
rounds a second, the least of all rows. All are several times what was measured: they catch a wrong order of magnitude.
"""

ATTEMPTS = 10**6


# Traces


def traces(rounds: int, attempts: int = ATTEMPTS) -> Section:
    """Whole processes: the bare loop, rmqlb's start-up, and so many attempts."""
    start_up, bare = "rmqlb, one attempt", f"python, a loop of {attempts:,} rounds"
    cases = {f"rmqlb, {attempts:,} attempts, {name}": name for name in ("latency fault off", "latency fault on")}
    commands = {
        bare: [sys.executable, "-c", f"{getsource(loop)}\nloop({attempts})"],
        start_up: _traced(1, latency_fault=False),
        **{label: _traced(attempts, latency_fault=name.endswith("on")) for label, name in cases.items()},
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
    imports = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from benchmarks.producer import trace"
    return [sys.executable, "-c", f"{imports}; trace({attempts}, {latency_fault})"]


# The whole


def broken(sections: Sequence[Section]) -> list[str]:
    """A line for each hold that is broken, and for each thing that was not there to be measured."""
    return sections_broken(sections, HOLDS)


def main() -> None:
    """Measure, print the tables, and with `--check` end with 1 when a hold is broken or was not measured."""
    parts: dict[str, Callable[[int], Section]] = {"traces": traces, "picks": picks, "totals": totals, "trials": trials}
    options = parser_of("benchmarks.sending", __doc__, parts, turns=5).parse_args()
    sys.stdout.write(f"{machine()}, {options.turns} turns\n")
    chosen = {name: partial(part, options.turns) for name, part in parts.items() if name in (options.only or parts)}
    measure(chosen, broken, check=options.check)


def picks(turns: int) -> Section:
    """Of RocketMQ's own classes, where Java, Maven and the jars are here, and of ours."""
    from benchmarks import producer
    from benchmarks.rocketmq import SELECTIONS, Selections, java_if_here

    with java_if_here(SELECTIONS, Selections) as java:
        return producer.picks(java, turns)


def totals(turns: int) -> Section:
    """By the number of messages."""
    from benchmarks import producer

    return producer.totals(turns)


def trials(turns: int) -> Section:
    """Many at once."""
    from benchmarks import producer

    return producer.trials(turns)


if __name__ == "__main__":
    main()
