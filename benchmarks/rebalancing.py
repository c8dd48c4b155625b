"""A group over time, beside the bare interpreter's loop: `python -m benchmarks.rebalancing`.

One section for single simulations of growing groups, one for many trials of one group. Both give seconds to read, and
ratios to a loop of a million rounds in the same run to compare.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial

from benchmarks.measuring import machine, ratio
from benchmarks.sections import Hold, Section, least, loop, measure, parser_of
from benchmarks.sections import broken as sections_broken
from rmqlb.engine.assignment.assign import Members
from rmqlb.engine.rebalance.simulate import restarts, simulate_group, simulate_group_trials
from rmqlb.model.group_scenario import SECOND_US, Event, GroupScenario
from rmqlb.model.message_queue import sort_client_ids
from rmqlb.model.route import BrokerData, QueueData, TopicRouteData

ROUNDS = 10**6
HOLDS = {
    ("minutes", "join", "100 x 1,000"): Hold(most=40),
    ("minutes", "rolling restart", "100 x 1,000"): Hold(most=80),
    ("trials", "join"): Hold(most=100),
    ("trials", "rolling restart"): Hold(most=500),
}
"""In units of the bare loop; several times what was measured, to catch a wrong order of magnitude."""

SIZES = ((10, 100), (30, 300), (100, 1000), (300, 3000))
MOST_RESTARTED = 100
"""Each restart is told to every member by every broker, twice: a longer series says no more than that."""
TRIALS = 1000


def group(members: int) -> Members:
    """So many members, whose ids have the form that clients give themselves."""
    ids = (f"10.0.{number // 250}.{number % 250 + 1}@{1000 + number}#{number:015d}" for number in range(members))
    return Members(tuple(sort_client_ids(ids)), "AVG")


def topic(queues: int, brokers: int = 8) -> TopicRouteData:
    """So many queues, spread over the brokers."""
    names = [f"broker-{number:02d}" for number in range(brokers)]
    datas = tuple(
        QueueData(name, queues // brokers + (place < queues % brokers), 1, 6) for place, name in enumerate(names)
    )
    return TopicRouteData("OrderEvents", datas, tuple(BrokerData("c", name, {0: "loopback"}) for name in names))


def scenario(kind: str, members: Members, minutes: int | None = None) -> GroupScenario:
    """One member joins, or all are restarted in turn within the time."""
    until = None if minutes is None else minutes * 60 * SECOND_US
    if kind == "join":
        return GroupScenario((Event("join", 10 * SECOND_US, "10.9.9.9@1#1"),), until_us=until)
    every = 30 * SECOND_US if until is None else until * 8 // 10 // len(members.client_ids)
    return GroupScenario(
        restarts(members.client_ids, 10 * SECOND_US, every_us=every, down_us=15 * SECOND_US), until_us=until
    )


def minutes(turns: int, sizes: Sequence[tuple[int, int]] = SIZES, length: int = 10) -> Section:
    """Ten simulated minutes of one group, by its size."""
    section = Section(("ten minutes with a", "consumers x queues", "seconds", "time / loop", "grows"))
    for kind in ("join", "rolling restart"):
        before: float | None = None
        for members, queues in sizes:
            if kind != "join" and members > MOST_RESTARTED:
                continue
            made, route = group(members), topic(queues)
            asked = scenario(kind, made, length)

            def run(made: Members = made, route: TopicRouteData = route, asked: GroupScenario = asked) -> object:
                return simulate_group("g", made, [route], asked)

            ours, bare = _turns(run, turns)
            spread = ratio(ours, bare)
            grows = "" if before is None else f"{min(ours) / before:.1f}"
            section.rows.append((kind, f"{members} x {queues:,}", f"{min(ours):.2g}", spread, grows))
            section.ratios["minutes", kind, f"{members} x {queues:,}"] = spread
            before = min(ours)
    return section


def trials(turns: int, number: int = TRIALS) -> Section:
    """Many trials of ten members on 16 queues, until the group is settled."""
    section = Section((f"{number:,} trials of", "seconds", "time / loop"))
    made, route = group(10), topic(16, brokers=2)
    for kind in ("join", "rolling restart"):
        asked = scenario(kind, made)

        def run(asked: GroupScenario = asked) -> object:
            return simulate_group_trials("g", made, [route], asked, number)

        ours, bare = _turns(run, turns)
        section.rows.append((kind, f"{min(ours):.2g}", ratio(ours, bare)))
        section.ratios["trials", kind] = ratio(ours, bare)
    return section


def _turns(call: Callable[[], object], turns: int) -> tuple[list[float], list[float]]:
    ours, bare = [], []
    for _ in range(turns):
        ours.append(least(call))
        bare.append(least(lambda: loop(ROUNDS)))
    return ours, bare


def broken(sections: Sequence[Section]) -> list[str]:
    """A line for each hold that is broken, and for each thing that was not there to be measured; some have no hold."""
    return sections_broken(sections, defaultdict(Hold, HOLDS))


def main() -> None:
    """Measure, print the tables, and with `--check` end with 1 when a hold is broken."""
    parts: dict[str, Callable[[int], Section]] = {"minutes": minutes, "trials": trials}
    options = parser_of("benchmarks.rebalancing", __doc__, parts, turns=3).parse_args()
    sys.stdout.write(f"{machine()}, {options.turns} turns\n")
    chosen = {name: partial(part, options.turns) for name, part in parts.items() if name in (options.only or parts)}
    measure(chosen, broken, check=options.check)


if __name__ == "__main__":
    main()
