"""How many consumers a group should have, beside the bare interpreter's loop: `python -m benchmarks.sizing`.

Every number of consumers with every number of queues per broker, of ten topics on two brokers. Seconds are to read, and
ratios to a loop of a million rounds in the same run to compare.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from benchmarks.measuring import machine, ratio
from benchmarks.sections import Hold, Section, least, loop, measure, parser_of
from benchmarks.sections import broken as sections_broken
from rmqlb.engine.allocate.rules import WITHOUT_SETTINGS
from rmqlb.engine.size_group.size_group import size_group
from rmqlb.model.route import BrokerData, QueueData, TopicRouteData
from rmqlb.model.size_group import SizeLimits, SizeQuestion

ROUNDS = 10**6
TOPICS = 10
SIZES = ((12, 4), (25, 8), (50, 16))
"""Numbers of consumers, and of queues per broker, from 1 on; each row has four times the pairs of the one above."""
EVEN = SizeLimits(max_imbalance=1.1, no_idle=True)
ROBUST = SizeLimits(max_imbalance=1.1, no_idle=True, survive=1, survive_broker=True)
CASES: dict[str, tuple[tuple[str, ...], SizeLimits]] = {
    "AVG": (("AVG",), EVEN),
    "AVG, losses": (("AVG",), ROBUST),
    "all strategies": (WITHOUT_SETTINGS, EVEN),
    "all strategies, losses": (WITHOUT_SETTINGS, ROBUST),
}
LARGEST = "50 x 16"
HOLDS: Mapping[tuple[str, ...], Hold] = {
    ("sizes", "AVG", LARGEST): Hold(most=10),
    ("sizes", "AVG, losses", LARGEST): Hold(most=25),
    ("sizes", "all strategies", LARGEST): Hold(most=150),
    ("sizes", "all strategies, losses", LARGEST): Hold(most=600),
}
"""In units of the bare loop; several times what was measured, to catch a wrong order of magnitude."""


def topics(number: int = TOPICS) -> tuple[TopicRouteData, ...]:
    """So many topics on two brokers."""
    brokers = ("broker-a", "broker-b")
    datas = tuple(QueueData(name, 8, 8, 6) for name in brokers)
    found = tuple(BrokerData("c", name, {0: "loopback"}) for name in brokers)
    return tuple(TopicRouteData(f"T{at:02d}", datas, found) for at in range(number))


def sizes(turns: int, pairs: Sequence[tuple[int, int]] = SIZES) -> Section:
    """All sizes of one group, by how many there are."""
    section = Section(("compared", "consumers x queues per broker", "seconds", "time / loop", "grows"))
    routes = topics()
    for name, (strategies, limits) in CASES.items():
        before: float | None = None
        for consumers, queues in pairs:
            question = SizeQuestion(
                limits=limits, consumers=(1, consumers), queues_per_broker=(1, queues), strategies=strategies
            )
            ours, bare = _turns(partial(size_group, "g", routes, question), turns)
            spread = ratio(ours, bare)
            grows = "" if before is None else f"{min(ours) / before:.1f}"
            section.rows.append((name, f"{consumers} x {queues}", f"{min(ours):.2g}", spread, grows))
            section.ratios["sizes", name, f"{consumers} x {queues}"] = spread
            before = min(ours)
    return section


def _turns(call: Callable[[], object], turns: int) -> tuple[list[float], list[float]]:
    ours, bare = [], []
    for _ in range(turns):
        ours.append(least(call))
        bare.append(least(lambda: loop(ROUNDS)))
    return ours, bare


def broken(sections: Sequence[Section]) -> list[str]:
    """A line for each hold that is broken; some have none."""
    return sections_broken(sections, defaultdict(Hold, HOLDS))


def main() -> None:
    """Measure, print the table, and with `--check` end with 1 when a hold is broken."""
    options = parser_of("benchmarks.sizing", __doc__, ("sizes",), turns=3).parse_args()
    sys.stdout.write(f"{machine()}, {options.turns} turns\n")
    measure({"sizes": partial(sizes, options.turns)}, broken, check=options.check)


if __name__ == "__main__":
    main()
