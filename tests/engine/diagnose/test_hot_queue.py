"""A queue that gets most of a topic's messages is named with its shares; more consumers are no remedy."""

from __future__ import annotations

import pytest

from rmqlb.model.diagnosis import Diagnosis
from rmqlb.model.group import CONSUME_POP
from tests.engine.diagnose.consuming import Doing, Reporting, earlier, owned, watched
from tests.engine.diagnose.running import Process, diagnosed, grave, running
from tests.engine.diagnose.test_state import changed
from tests.engine.diagnose.watched_faults import HOT, LIMITED, PAIR, SLOW, Looks, of
from tests.support.builders import route

FOUR = running(Process("x"), Process("y"), routes=(route(a=4),))


def of_looks(looks: Looks) -> Diagnosis:
    return diagnosed(looks[-1], earlier=earlier(looks))


def arriving(per_s: float, consumed: float, since: float = -400) -> Doing:
    """So many messages per second, and so many consumed per second since then."""

    def end(t: float) -> float:
        return 100_000 + per_s * (t + 1000)

    return Doing(end=end, done=lambda t: min(end(since) + consumed * (t - since), end(t)), pulled=end)


def test_the_shares_of_a_hot_queue_are_its_evidence_and_keys_its_remedy() -> None:
    """70 % of the inflow and 66 % of the lag in one of four queues, whose consumer is late in its other queue too."""
    hot, also = owned(FOUR, "x")
    rest = {("y", queue): arriving(20, 20) for queue in owned(FOUR, "y")}
    looks = watched(FOUR, {("x", hot): arriving(140, 48), ("x", also): arriving(20, 3), **rest}, looks=(-40, -20, 0))
    found = of_looks(looks)
    assert grave(found) == ["hot-queue"]
    (its,) = found.findings
    assert (its.severity, its.topic, its.queues, its.consumers) == ("warning", "T", (hot, also), ("x",))
    shares = {each.fact: (each.value, each.threshold) for each in its.evidence}
    assert shares["percent of the messages of T that arrive in T a:0"] == (70, 50)
    unread, least = shares["percent of the unread messages of T in T a:0"]
    assert (int(unread) > 80, least) == (True, 50)
    assert "spread the keys" in its.remedy
    assert "more consumers do not help" in its.remedy
    assert {each.code for each in found.consequences} == {"lag-growing", "flow-control"}


@pytest.mark.parametrize(
    ("share", "named"),
    [(60, "hot-queue"), (40, "flow-control")],  # the others get the rest of 100 messages per second; 50 % is hot
)
def test_from_which_share_on_a_queue_is_hot(share: int, named: str) -> None:
    hot, *others = [(i, queue) for i in "xy" for queue in owned(FOUR, i)]
    doing = {key: arriving((100 - share) / 3, (100 - share) / 3) for key in others} | {hot: arriving(share, 20)}
    assert grave(of_looks(watched(FOUR, doing))) == [named]


def test_even_queues_of_slow_consumers_and_a_hot_queue_that_is_read_are_not_hot() -> None:
    assert grave(of_looks(watched(PAIR, {**of("x", SLOW), **of("y", SLOW)}))) == ["lag-growing"]
    assert grave(of_looks(watched(PAIR, {**of("x", LIMITED), **of("y", LIMITED)}))) == ["flow-control"]
    assert grave(of_looks(watched(PAIR, of("x", arriving(200, 200), 1)))) == []
    alone = running(Process("x"), routes=(route(a=1),))
    assert grave(of_looks(watched(alone, {("x", owned(alone, "x")[0]): HOT}))) == ["flow-control"]


def test_a_queue_that_any_consumer_reads_is_not_hot() -> None:
    looks = watched(PAIR, of("x", HOT, 1), {i: Reporting() for i in "xy"})
    found = of_looks(tuple(changed(look, consume_type=CONSUME_POP) for look in looks))
    assert {each.code: each.reason for each in found.not_applicable}["hot-queue"] == (
        "any of its consumers may read any queue"
    )
    assert grave(found) == ["lag-growing"]
