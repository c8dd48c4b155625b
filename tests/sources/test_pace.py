from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import nullcontext
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest

from rmqlb.errors import EndpointError
from rmqlb.model.group import Seen
from rmqlb.model.route import TopicRouteData
from rmqlb.model.snapshot import ClusterSnapshot, RouteSighting, Wanted
from rmqlb.remoting.codes import RequestCode
from rmqlb.sources.formats import documents as docs
from rmqlb.sources.live import LiveSource
from rmqlb.sources.pace import Deadline, Pace, ask_concurrently
from tests.support.mismatches import every_case
from tests.support.replay_remoting import Replay, Turn, cluster

from .test_nameserver import NOW, reads

RUNNING = RequestCode.GET_CONSUMER_RUNNING_INFO
LATE = "not asked within the 10 s of the deadline"
NEVER = Deadline(None)


class FakeTime:
    def __init__(self) -> None:
        self.at = 100.0
        self.slept: list[float] = []
        self.lock = threading.Lock()
        self.pace = Pace(lambda: self.at, self.sleep)

    def sleep(self, seconds: float) -> None:
        with self.lock:
            self.slept.append(seconds)
            self.at += seconds


@pytest.fixture
def brokers() -> Iterator[tuple[Replay, ...]]:
    with cluster() as running:
        yield running


def test_a_second_after_its_answer_a_consumer_may_be_asked_again() -> None:
    time = FakeTime()
    with time.pace.turn("a", NEVER, spaced=True):
        time.at += 5
    assert time.slept == []
    time.at += 0.25
    with time.pace.turn("b", NEVER, spaced=True), time.pace.turn("a", NEVER, spaced=True):
        assert time.slept == [0.75]
    time.at += 1
    with pytest.raises(ZeroDivisionError), time.pace.turn("a", NEVER, spaced=False):
        raise ZeroDivisionError
    with time.pace.turn("a", NEVER, spaced=True):
        assert time.slept == [0.75, 1], "the pause counts from requests that failed too"


def test_a_consumer_is_asked_by_one_request_at_a_time() -> None:
    """To answer it asks brokers for offsets, on as many threads as it has processors, which their answers need too."""
    both, pace, alone = threading.Barrier(2), Pace(), list[bool]()

    def ask(_: object) -> None:
        with pace.turn("a", NEVER, spaced=False):
            try:
                both.wait(0.1)
            except threading.BrokenBarrierError:
                alone.append(True)

    with ask_concurrently(ask, "xy", 2) as futures:
        assert [future.result() for future in futures] == [None, None]
    assert alone == [True, True]


@every_case(("left", "is_in_time"), [(10.0, True), (0.6, True), (0.5, False), (0.1, False), (0.0, False)])
def test_a_turn_that_would_come_after_the_deadline_is_refused_at_once(left: float, is_in_time: bool) -> None:
    time, asked = FakeTime(), list[str]()
    deadline = Deadline(10, time.pace.now)
    time.at += 10 - left - 0.5
    with time.pace.turn("a", deadline, spaced=True):
        pass
    time.at += 0.5
    assert (deadline.has_passed, NEVER.has_passed) == (left == 0, False)
    refused = nullcontext() if is_in_time else pytest.raises(EndpointError, match=f"^{LATE}$")
    with refused, time.pace.turn("a", deadline, spaced=True):
        asked.append("a")
    assert (asked, time.slept) == ((["a"], [0.5]) if is_in_time else ([], []))


def asked_at(brokers: tuple[Replay, ...], time: FakeTime) -> dict[str, list[float]]:
    times: dict[str, list[float]] = defaultdict(list)

    def noted(turn: Turn) -> None:
        times[turn.request.ext_fields["clientId"]].append(time.at)
        turn.write(turn.frame)

    for broker in brokers:
        broker.faults[RUNNING] = noted
    return times


def fetch(brokers: tuple[Replay, ...], pace: Pace, wanted: Wanted, deadline_s: float | None = None) -> ClusterSnapshot:
    deadline = Deadline(deadline_s, pace.now)
    return LiveSource(reads([brokers[0].address], brokers), lambda: NOW, pace, deadline=deadline).fetch(wanted)


@pytest.mark.parametrize("wanted", [Wanted(several=("*-svc",), evidence=True), Wanted(several=("*-svc",), spaced=True)])
def test_over_all_groups_and_readings_a_second_passes_between_two_requests_to_a_consumer(
    brokers: tuple[Replay, ...], wanted: Wanted
) -> None:
    time = FakeTime()
    times = asked_at(brokers, time)
    for _ in range(2):
        fetch(brokers, time.pace, wanted)
    LiveSource(reads([brokers[0].address], brokers), lambda: NOW, time.pace).ask_stacks("order-svc", list(times))
    assert max(map(len, times.values())) == 5
    for moments in times.values():
        assert all(later - earlier >= 1 for earlier, later in pairwise(moments))


def test_what_is_not_asked_before_the_deadline_is_unread(brokers: tuple[Replay, ...]) -> None:
    time = FakeTime()
    times = asked_at(brokers, time)

    def then_it_is_late(turn: Turn) -> None:
        time.at += 60
        turn.write(turn.frame)

    for broker in brokers:
        broker.faults[RequestCode.GET_CONSUME_STATS] = then_it_is_late
    snapshot = fetch(brokers, time.pace, Wanted(group="order-svc"), 10)
    late = {part.detail for part in snapshot.unread if part.kind == "member" and part.reason == LATE}
    assert (late, times) == ({f"192.0.2.2@inst{i}" for i in range(3)}, {})
    assert not any(part.no_answer for part in snapshot.unread if part.kind == "member")
    assert snapshot.group("order-svc").request_modes is None
    with pytest.raises(EndpointError, match=r"not asked within the 0 s of the deadline$"):
        fetch(brokers, time.pace, Wanted(group="order-svc"), 0)


def test_who_waits_for_a_consumer_takes_no_place_of_the_four_requests() -> None:
    """Two groups on one broker in memory: g with the consumer a, h with four others, of which all four are asked."""
    asleep, four = threading.Event(), threading.Event()
    under_way = threading.Barrier(4, four.set)

    def sleep(_: float) -> None:
        asleep.set()
        four.wait(20)

    def running_info(group: str, client_id: str, *_: object, **__: object) -> docs.RunningInfoDocument:
        if group == "h":
            under_way.wait(20)
        return docs.RunningInfoDocument({"clientId": client_id}, mq_table={})

    def connections(group: str, _: str) -> docs.ConnectionsDocument:
        ids = ["a"] if group == "g" or not asleep.wait(20) else ["w", "x", "y", "z"]
        return docs.ConnectionsDocument([docs.ConnectionItem(i) for i in ids], message_model="CLUSTERING")

    def route(topic: str) -> RouteSighting:
        return RouteSighting(TopicRouteData(topic, (), ()), Seen("memory"))

    consumers: Any = SimpleNamespace(
        kind="memory",
        endpoint="memory",
        broker_reads=None,
        unread=list,
        close=list,
        running_info=running_info,
        connections=connections,
        route=route,
        groups=lambda: ["g", "h"],
        brokers=lambda _: {"a": "a:1"},
        offsets=lambda *_: ({}, None),
        silent_brokers_answer=lambda: False,
    )
    source = LiveSource(consumers, lambda: NOW, Pace(now=lambda: 0.0, sleep=sleep))
    source.fetch(Wanted(group="g", evidence=True))
    assert not asleep.is_set()
    snapshot = source.fetch(Wanted(several=("?",), evidence=True))
    assert four.is_set()
    found = {name: sorted(group.reports) for name, group in snapshot.groups.items()}
    assert found == {"g": ["a"], "h": ["w", "x", "y", "z"]}
