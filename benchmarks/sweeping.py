"""Every loss, alone and in pairs, of growing clusters: `python -m benchmarks.sweeping`.

One section by size, one by what has to be run for every case. Both give seconds to read, and ratios to a loop of a
million rounds in the same run to compare.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import date
from functools import partial
from time import process_time
from typing import NamedTuple

from benchmarks.measuring import machine, ratio
from benchmarks.sections import Hold, Section, least, loop, measure, parser_of
from benchmarks.sections import broken as sections_broken
from rmqlb.engine.allocate.rules import NAMES
from rmqlb.engine.sweep_failures.sweep import SweepRequest, sweep_snapshot
from rmqlb.model.group import Connection, ConsumerGroup, MemberReport, MemberView, QueueState, Seen
from rmqlb.model.policy import Policy
from rmqlb.model.route import BrokerData, QueueData, TopicRouteData
from rmqlb.model.snapshot import ClusterSnapshot, RouteSighting
from rmqlb.model.sweep_failures import FailureSweep
from rmqlb.sources.user_files.policy_file import built_in_text, parse_policy

ROUNDS = 10**6
HOLDS: dict[tuple[str, ...], Hold] = {
    ("sizes", "100 x 8 x 20"): Hold(most=250),
    ("strategies", "AVG"): Hold(most=60),
    ("strategies", "CONSISTENT_HASH"): Hold(most=1500),
}
"""In units of the bare loop; several times what was measured, to catch a wrong order of magnitude."""

SIZES = ((25, 8, 20), (50, 8, 20), (100, 8, 20), (200, 8, 20), (100, 16, 20), (100, 8, 40))
_SEEN = Seen("http://127.0.0.1:8082", None)
_CLASSES = {"AVG": "AllocateMessageQueueAveragely", "CONSISTENT_HASH": "AllocateMessageQueueConsistentHash"}
_DAY = date(2026, 6, 15)


class Fleet(NamedTuple):
    """So many groups, each on a topic of its own on all brokers, with so many consumers."""

    groups: int
    brokers: int
    consumers: int
    strategy: str = "AVG"

    @property
    def text(self) -> str:
        return f"{self.groups} x {self.brokers} x {self.consumers}"

    def halves(self) -> tuple[Fleet, ...]:
        """With half as many of one thing."""
        return (
            self._replace(groups=self.groups // 2),
            self._replace(brokers=self.brokers // 2),
            self._replace(consumers=self.consumers // 2),
        )

    def snapshot(self) -> ClusterSnapshot:
        """Each broker has a slave on another machine, each consumer a machine of its own."""
        datas = tuple(
            BrokerData("c", f"broker-{at:02d}", {0: f"10.0.0.{at + 1}:10911", 1: f"10.0.1.{at + 1}:10911"})
            for at in range(self.brokers)
        )
        routes, groups = {}, {}
        for at in range(self.groups):
            number = 4 + 4 * (at % 3)
            queues = tuple(QueueData(data.broker_name, number, number, 6) for data in datas)
            route = TopicRouteData(f"T{at:04d}", queues, datas)
            routes[route.topic] = RouteSighting(route, _SEEN)
            groups[f"g{at:04d}"] = self._group(at, route)
        return ClusterSnapshot("dump", "a benchmark", routes=routes, groups=groups)

    def _group(self, at: int, route: TopicRouteData) -> ConsumerGroup:
        ids = [f"10.{1 + at // 250}.{at % 250}.{number + 1}@{number}#1" for number in range(self.consumers)]
        return ConsumerGroup(
            f"g{at:04d}",
            _SEEN,
            message_model="CLUSTERING",
            consume_type="CONSUME_PASSIVELY",
            topics=(route.topic,),
            views=(MemberView(tuple(map(Connection, ids)), _SEEN),),
            queues={queue: QueueState(None, 100 + queue.queue_id, 100) for queue in route.subscribe_queues()},
            reports={each: MemberReport(each, strategy_class=_CLASSES[self.strategy]) for each in ids},
        )


def policy() -> Policy:
    """What `sweep-failures` holds against each case by itself."""
    return parse_policy(built_in_text("built_in_sweep_policy.yaml"), "built-in policy", NAMES)


def sweep(snapshot: ClusterSnapshot, rules: Policy, jobs: int = 1) -> FailureSweep:
    """Single losses and pairs of them."""
    request = SweepRequest(sorted(snapshot.groups), sorted(snapshot.routes), jobs=jobs)
    return sweep_snapshot(snapshot, rules, request, _DAY)[0]


def sizes(turns: int, chosen: Sequence[tuple[int, int, int]] = SIZES) -> Section:
    """Growing clusters; *grows* is the processor's time in units of the row with half as many of one thing."""
    headers = (
        "groups x brokers x consumers",
        "cases",
        "results computed",
        "processor s",
        "seconds",
        "time / loop",
        "grows",
    )
    section = Section(headers)
    before: dict[str, float] = {}
    for size in chosen:
        fleet = Fleet(*size)
        snapshot, rules = fleet.snapshot(), policy()
        began = process_time()
        found = sweep(snapshot, rules)
        spent = process_time() - began
        ours, bare = _turns(partial(sweep, snapshot, rules), turns)
        spread = ratio(ours, bare)
        grows = next((f"{spent / before[half.text]:.1f}" for half in fleet.halves() if half.text in before), "")
        cases, computed = f"{found.cases.all:,}", f"{found.cases.computed:,}"
        section.rows.append((fleet.text, cases, computed, f"{spent:.2g}", f"{min(ours):.2g}", spread, grows))
        section.ratios["sizes", fleet.text] = spread
        before[fleet.text] = spent
    return section


def strategies(turns: int, size: tuple[int, int, int] = (20, 8, 20)) -> Section:
    """A strategy that looks at places alone, and one that is run for every case: by one process, and by two."""
    section = Section((f"{Fleet(*size).text} under", "jobs", "seconds", "time / loop"))
    for strategy, jobs in (("AVG", 1), ("CONSISTENT_HASH", 1), ("CONSISTENT_HASH", 2)):
        snapshot, rules = Fleet(*size, strategy).snapshot(), policy()
        ours, bare = _turns(partial(sweep, snapshot, rules, jobs), turns)
        section.rows.append((strategy, jobs, f"{min(ours):.2g}", ratio(ours, bare)))
        section.ratios["strategies", strategy if jobs == 1 else f"{strategy}, {jobs} jobs"] = ratio(ours, bare)
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
    parts: dict[str, Callable[[int], Section]] = {"sizes": sizes, "strategies": strategies}
    options = parser_of("benchmarks.sweeping", __doc__, parts, turns=3).parse_args()
    sys.stdout.write(f"{machine()}, {options.turns} turns\n")
    chosen = {name: partial(part, options.turns) for name, part in parts.items() if name in (options.only or parts)}
    measure(chosen, broken, check=options.check)


if __name__ == "__main__":
    main()
