from typing import Any

import pytest
from msgspec.structs import replace

from rmqlb.engine.conditions import parse_condition
from rmqlb.engine.rebalance.simulate import (
    GROUP_FIGURES,
    ROLLOUT_FIGURES,
    figures,
    summarise,
    try_on_group,
    try_on_rollout,
)
from rmqlb.engine.rebalance.timelines import EventLog, Hold
from rmqlb.errors import UsageError
from rmqlb.model.plan import Rollout
from rmqlb.model.simulate_rebalance import GroupFigures, GroupTrials, Interval, OwnerState, QueueTimeline
from tests.engine.rebalance.groups import QUEUE, again, hold, read, spans
from tests.support.group_builders import choice, trials
from tests.support.mismatches import every_case


@every_case(("holds", "latency_us", "redelivered"), [
    # a handover in good order
    ([hold("c1", -500, 220), hold("c2", 230)], 0, [0]),
    # a killed owner stored at 200 and read until 220
    ([hold("c1", -500, 220, persisted=False), hold("c2", 230)], 0, [20]),
    # two owners at once both deliver: c2 from what was stored at 200, c1 until 270
    ([hold("c1", -500, 270), hold("c2", 230)], 0, [70]),
    # two owners that stay, until the end
    ([hold("c1", -500), hold("c2", 230)], 0, [800]),
    # one that dies before it stored anything starts the next where it started: from 205, killed at 240
    ([hold("c1", -500, 205), hold("c2", 205, 240, persisted=False), hold("c3", 245)], 0, [0, 35]),
    # a stored offset is there after half of a round trip: c1 stores 220, which arrives at 230
    ([hold("c1", -500, 220), hold("c2", 229)], 20, [20]),
    ([hold("c1", -500, 220), hold("c2", 230)], 20, [0]),
    # what is stored after a freeze is old: c1 sets the offset back from 400 to 120, and c2 is killed before it stores
    ([hold("c1", -5, 410, freezes=[(120, 400)]), hold("c2", 300, 420, persisted=False), hold("c3", 430)], 0, [310, 300]),
])  # fmt: skip
def test_unstored_messages_are_redelivered(holds: list[Hold], latency_us: int, redelivered: list[int | None]) -> None:
    assert again(read(*holds, latency_us=latency_us)) == redelivered


def test_a_gap_and_an_overlap_are_times_without_owner_and_with_two() -> None:
    gap, overlap = read(hold("c1", -500, 220), hold("c2", 230)), read(hold("c1", -500, 270), hold("c2", 230))
    assert (gap.total_gap_ms, gap.unread_ms, gap.total_overlap_ms) == (0.01, 0.01, 0)
    assert (overlap.total_overlap_ms, overlap.longest_overlap_ms, overlap.total_gap_ms) == (0.04, 0.04, 0)


def test_the_first_owner_of_a_queue_delivers_nothing_again() -> None:
    found = read(hold("c1", 130), there=((100, True),))
    assert [(takeover.redelivered, takeover.unread_ms) for takeover in found.takeovers] == [(0, 0.03)]
    assert spans(found) == [("gone", 0, 100), ("unassigned", 100, 130), ("one", 130, 1000)]


def test_a_pause_is_one_of_the_time_in_which_the_owner_runs() -> None:
    """It is frozen from 30 to 60 and from 90 to 120; its broker is away before, between, behind, and over an edge."""
    held = hold("c1", 0, 150, freezes=[(30, 60), (90, 120)])
    held.pauses = [(10, 20), (40, 50), (55, 65), (70, 80), (130, None)]
    turns = [(10, 20), (60, 65), (70, 80), (130, 150)]
    assert list(held.turns()) == [each for on, off in turns for each in ((on, True), (off, False))]


def test_stretches_are_counted_over_changing_owners() -> None:
    found = read(hold("c1", -500, 300), hold("c2", 200, 400), hold("c3", 250))
    assert (found.total_overlap_ms, found.longest_overlap_ms) == (0.2, 0.2)
    assert figures([found], EventLog(explain=False), 0, settled=True).queues_with_overlap == 1


QUEUE_NAME = QUEUE.topic, QUEUE.broker_name, QUEUE.queue_id


def queue_line(state: OwnerState, *lengths: int, redelivered: int | None, unread_at_end: bool = False) -> QueueTimeline:
    """Total and longest gap, overlap and outage, and the longest time unread, in milliseconds."""
    intervals = (Interval(0, 9, "one", ("c1",)), Interval(9, 10, state, ()))
    values: tuple[Any, ...] = (*QUEUE_NAME, *lengths, unread_at_end, redelivered, intervals, ())
    return QueueTimeline(*values)


def test_the_figures_of_a_group_count_queues_and_add_up_or_take_the_longest() -> None:
    lines = [
        queue_line("unassigned", 50, 40, 0, 0, 0, 0, 45, redelivered=3, unread_at_end=True),
        queue_line("duplicate-owners", 0, 0, 70, 60, 0, 0, 5, redelivered=4),
        queue_line("duplicate-owners", 20, 15, 9, 9, 0, 0, 7, redelivered=0),
        queue_line("outage", 0, 0, 8, 8, 120, 100, 90, redelivered=0, unread_at_end=True),
        queue_line("one", 1, 1, 0, 0, 30, 25, 2, redelivered=0),
    ]
    log = EventLog(explain=False)
    f = figures(lines, log, 0, settled=True)
    assert (f.queues_with_gap, f.longest_gap_ms, f.total_gap_ms) == (3, 40, 71)
    assert (f.queues_with_overlap, f.longest_overlap_ms, f.total_overlap_ms) == (3, 60, 87)
    assert (f.queues_with_outage, f.longest_outage_ms, f.total_outage_ms) == (2, 100, 150)
    assert (f.queues_with_gap_at_end, f.queues_with_overlap_at_end, f.queues_with_outage_at_end) == (1, 2, 1)
    assert (f.unread_ms, f.queues_unread_at_end, f.redelivered) == (90, 2, 7)
    assert figures(lines, log, 0, settled=True, broadcasting=True).queues_with_overlap_at_end == 0
    assert figures([*lines, replace(lines[0], redelivered=None)], log, 0, settled=True).redelivered is None
    none = figures([], log, 0, settled=True)
    assert (none.longest_gap_ms, none.longest_overlap_ms, none.longest_outage_ms, none.unread_ms) == (0, 0, 0, 0)


FIGURES = GroupFigures(2500, 1000, 4000, 500, 1500, 6000, 8000, 750, 7, 4, 3, 5, 0, 0, 0, 0, 9, 20)
"""Every figure is another."""


def tried(text: str, found: GroupFigures | GroupTrials = FIGURES) -> tuple[float | None, bool | None]:
    answer = try_on_group(parse_condition(text, GROUP_FIGURES), found)
    return answer.value, answer.met


def test_every_figure_is_in_its_unit() -> None:
    shown = [value for value in FIGURES.__struct_fields__ if getattr(FIGURES, value)]
    for name in set(shown) - {"rebalances"}:
        first, *rest = name.split("_")
        for text in (name.replace("_", "-"), first + "".join(map(str.capitalize, rest))):
            assert tried(f"{text}>0") == (getattr(FIGURES, name), True)


@every_case(("text", "met"), [("convergence-ms>999999999", True), ("convergence-ms<=999999999", False), ("convergence-ms=5", False)])  # fmt: skip
def test_a_group_that_does_not_settle_takes_longer_than_anything(text: str, met: bool) -> None:
    assert tried(text, replace(FIGURES, convergence_ms=None)) == (None, met)


@every_case(("field", "names"), [
    ("queues_with_gap_at_end", ["longest-gap-ms", "total-gap-ms"]),
    ("queues_with_overlap_at_end", ["longest-overlap-ms", "total-overlap-ms"]),
    ("queues_with_outage_at_end", ["longest-outage-ms", "total-outage-ms"]),
    ("queues_unread_at_end", ["unread-ms"]),
])  # fmt: skip
def test_what_is_not_over_at_the_end_lasts_longer_than_anything(field: str, names: list[str]) -> None:
    for name in [each for each in GROUP_FIGURES.names if each.endswith("-ms") and each != "convergence-ms"]:
        assert tried(f"{name}>999999999", replace(FIGURES, **{field: 1}))[1] is (name in names)
        of_all = trials(100, 100, **{name.replace("-", "_"): (1, 2, 3), field: (0, 0, 1)})
        assert tried(f"{name}>999999999", of_all)[1] is (name in names)
    assert tried(f"{field.replace('_', '-')}=3", replace(FIGURES, **{field: 3}))[1] is True


def test_an_unknown_rate_leaves_the_condition_open() -> None:
    assert tried("redelivered>0", replace(FIGURES, redelivered=None))[1] is None
    assert tried("redelivered>0", trials())[1] is None


def test_of_trials_it_is_what_95_of_100_do_not_exceed() -> None:
    for spread, value in (("", 2000), ("[p95]", 2000), ("[p50]", 1000), ("[max]", 3000)):
        assert tried(f"total-gap-ms{spread}>0", trials(total_gap_ms=(1000, 2000, 3000))) == (value, True)


def test_quantiles_are_nearest_ranks() -> None:
    found = summarise([replace(FIGURES, taken=number) for number in range(1, 101)]).figures.taken
    assert (found.p50, found.p95, found.max, found.max_trial) == (50, 95, 100, 99)


def test_a_spread_needs_trials_and_a_name() -> None:
    with pytest.raises(UsageError, match="of many trials"):
        tried("total-gap-ms[p95]>0")
    with pytest.raises(UsageError, match="what is mean"):
        tried("total-gap-ms[mean]>0", trials(total_gap_ms=(1, 2, 3)))


@every_case(("text", "takes_ms", "value", "met"), [
    ("misassigned>0", 1, 4, True),
    ("takes-ms>100", 90, 90, False),
    ("takes-ms>100", None, None, True),
    ("longest-gap-ms>1500", 1, 2000, True),
    ("unread-ms>0", 90, 0, False),
    ("convergence-ms>0", None, None, None),
    ("longest-gap-ms[p50]>1500", 1, 1000, False),
])  # fmt: skip
def test_the_best_choice_is_judged(text: str, takes_ms: float | None, value: float | None, met: bool | None) -> None:
    best = choice(trials(100, longest_gap_ms=(1000, 2000, 3000)), takes_ms=takes_ms, best=True)
    rollout = Rollout("g", "AVG", "AVG", ("a",), (best,), (), 4, misassigned_is_minimum=True)
    found = try_on_rollout(parse_condition(text, ROLLOUT_FIGURES), rollout)
    assert (found.value, found.met) == (value, met)
