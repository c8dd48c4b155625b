import threading
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, nullcontext
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest

from rmqlb import EndpointError, TopicRouteData
from rmqlb.model.group import Seen
from rmqlb.model.snapshot import ClusterSnapshot, Everything, RouteSighting, Wanted, through
from rmqlb.remoting.codes import RequestCode
from rmqlb.sources.formats import documents as docs
from rmqlb.sources.live import LiveSource
from rmqlb.sources.native.source import NameServerReads
from rmqlb.sources.pace import Deadline, Pace, SilentServers, ask_concurrently
from rmqlb.sources.source import Access
from tests.support import replay_dashboard, replay_remoting
from tests.support.mismatches import every_case, refusal
from tests.support.replay_remoting import (
    Fault,
    Replay,
    Turn,
    cluster,
    error_answer,
    refusing,
    remoting,
    silent,
    success,
)

from . import test_dashboard as dashboards
from .test_nameserver import body, reads

RUNNING = RequestCode.GET_CONSUMER_RUNNING_INFO
LATE = "not requested within the 10 s of the deadline"
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
    assert (deadline.rest <= 0, NEVER.rest <= 0) == (left == 0, False)
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
    return LiveSource(reads([brokers[0].address], brokers, pace=pace, deadline=deadline)).fetch(wanted)


@pytest.mark.parametrize("wanted", [Wanted(several=("*-svc",), evidence=True), Wanted(several=("*-svc",), spaced=True)])
def test_a_second_passes_between_two_requests_to_a_consumer(brokers: tuple[Replay, ...], wanted: Wanted) -> None:
    time = FakeTime()
    times = asked_at(brokers, time)
    for _ in range(2):
        fetch(brokers, time.pace, wanted)
    LiveSource(reads([brokers[0].address], brokers, pace=time.pace)).ask_stacks("order-svc", list(times))
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
    with pytest.raises(EndpointError, match=r"not requested within the 0 s of the deadline$"):
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
        access=Access(pace=Pace(now=lambda: 0.0, sleep=sleep)), kind="memory", endpoint="memory", broker_reads=None, close=list, running_info=running_info,
        connections=connections, route=route, groups=lambda: ["g", "h"], brokers=lambda _: {"a": "a:1"},
        offsets=lambda *_: ({}, None),
    )  # fmt: skip
    source = LiveSource(consumers)
    source.fetch(Wanted(group="g", evidence=True))
    assert not asleep.is_set()
    snapshot = source.fetch(Wanted(several=("?",), evidence=True))
    assert four.is_set()
    found = {name: sorted(group.reports) for name, group in snapshot.groups.items()}
    assert found == {"g": ["a"], "h": ["w", "x", "y", "z"]}


ALL = Wanted(everything=Everything(of_groups=True))
MUTE = 24

ONE = "192.0.2.2@inst0"
TIMED_OUT = 207


def silent_first(turn: Turn) -> None:
    if len(turn.replay.requests) == 1:
        silent(turn)
    turn.write(turn.frame)


def test_a_silent_broker_is_asked_once_and_again_at_the_end_and_is_read_whole_if_it_answers_then() -> None:
    with cluster(Replay(), Replay(broker="b1", faults={"*": silent})) as (good, mute):
        snapshot = LiveSource(reads([good.address], (good, mute), timeout=0.3)).fetch(ALL)
    assert sorted(snapshot.groups) == ["audit-svc", "bill-svc", "order-svc"]
    assert len(mute.requests) == 2
    parts = [part for part in snapshot.unread if part.kind in ("members", "offsets")]
    assert {part.no_answer and part.reason.partition(": ")[2] for part in parts} == {"no complete answer within 0.3 s"}
    with cluster() as whole:
        expected = LiveSource(reads([whole[0].address], whole)).fetch(ALL).groups
    with cluster(Replay(), Replay(broker="b1", faults={"*": silent_first})) as (good, slow):
        found = LiveSource(reads([good.address], (good, slow), timeout=0.5)).fetch(ALL)
    groups, wanted = ({name: each.client_ids for name, each in of.items()} for of in (found.groups, expected))
    assert groups == wanted
    assert not [part for part in found.unread if part.kind in ("members", "offsets", "group")]


def test_silent_brokers_are_found_all_at_once() -> None:
    waiting = replay_remoting.AtOnce()

    def counted(turn: Turn) -> None:
        with waiting:
            turn.replay.stop.wait(0.5)
        turn.hang_up()

    with ExitStack() as stack:
        mute = [stack.enter_context(remoting(Replay(faults={"*": counted}))) for _ in range(MUTE)]
        table: dict[str, Any] = {
            f"b{n}": {"cluster": "c", "brokerName": f"b{n}", "brokerAddrs": {"0": each.address}}
            for n, each in enumerate(mute)
        }
        answer = success(body({"brokerAddrTable": table, "clusterAddrTable": {"c": sorted(table)}}))
        good = stack.enter_context(remoting(Replay(answers={(RequestCode.GET_BROKER_CLUSTER_INFO, ""): answer})))
        source = LiveSource(NameServerReads([good.address], Access(timeout=0.4, retries=0)))
        refusal(EndpointError, source.fetch, ALL)
    assert waiting.most >= MUTE - 1
    assert {len(each.requests) for each in mute} == {1}


def test_no_request_begins_or_lasts_beyond_the_deadline() -> None:
    with cluster(Replay(), Replay(broker="b1", faults={"*": silent})) as (good, mute):
        deadline = Deadline(0.3)
        source = LiveSource(reads([good.address], (good, mute), timeout=20, deadline=deadline))
        snapshot = source.fetch(ALL)
    reasons = {part.reason.split(": ")[-1] for part in snapshot.unread if part.no_answer}
    assert reasons & {f"{what} within the 0.3 s of the deadline" for what in ("no answer", "not requested")}
    assert len(mute.requests) == 1


def test_only_what_a_server_answers_by_itself_shows_its_silence() -> None:
    for code, request_code, is_silent in (
        ("no-answer", RequestCode.GET_CONSUMER_CONNECTION_LIST, True),
        ("no-answer", RequestCode.GET_CONSUMER_RUNNING_INFO, False),
        ("no-answer", RequestCode.GET_CONSUME_STATS, False),
        ("unreachable", RequestCode.GET_CONSUMER_RUNNING_INFO, True),
        ("refused", RequestCode.GET_CONSUMER_CONNECTION_LIST, False),
    ):
        servers = SilentServers()
        servers.note("a:1", request_code, EndpointError("a:1: why", code=code))
        assert ("a:1" in servers) is is_silent
        servers.forget(["a:1"])
        servers.must_answer("a:1")


def evidence_through(brokers: Sequence[Replay]) -> ClusterSnapshot:
    source = LiveSource(reads([brokers[0].address], tuple(brokers), timeout=0.3, retries=0))
    return source.fetch(Wanted(group="order-svc", evidence=True))


def asked(broker: Replay) -> int:
    return sum(r.code == RUNNING and r.ext_fields["clientId"] == ONE for r in broker.requests)


def for_one(fault: Fault) -> Fault:
    return lambda turn: fault(turn) if turn.request.ext_fields["clientId"] == ONE else turn.write(turn.frame)


def once(fault: Fault) -> Fault:
    return lambda turn: fault(turn) if asked(turn.replay) == 1 else turn.write(turn.frame)


def asked_first() -> int:
    with cluster() as brokers:
        evidence_through(brokers)
        return next(place for place, broker in enumerate(brokers) if asked(broker))


@pytest.mark.parametrize("fault", [silent, refusing(TIMED_OUT, "no answer in time"), once(silent)])
def test_an_answer_through_another_broker_names_the_link_unless_the_first_one_gives_one_too(fault: Fault) -> None:
    first = asked_first()
    with cluster() as brokers:
        brokers[first].faults[RUNNING] = for_one(fault)
        snapshot = evidence_through(brokers)
        assert (asked(brokers[first]), asked(brokers[1 - first])) == (2, 1)
    group = snapshot.group("order-svc")
    assert ONE in group.reports
    assert not [part for part in snapshot.unread if part.detail == ONE]
    links = [part for part in snapshot.unread if part.kind == "link"]
    assert len(links) <= 1
    assert bool(links) == (fault is silent or "refusing" in fault.__qualname__)
    for link in links:
        client_id, address = through(link)
        assert (link.name, link.no_answer, client_id) == ("order-svc", True, ONE)
        assert address in {view.broker_addr for view in group.views or ()}


def test_a_consumer_that_answers_through_no_broker_is_silent() -> None:
    with cluster() as brokers:
        for broker in brokers:
            broker.faults[RUNNING] = for_one(silent)
        snapshot = evidence_through(brokers)
        assert sorted(map(asked, brokers)) == [1, 1]
    assert ONE not in snapshot.group("order-svc").reports
    assert [part.no_answer for part in snapshot.unread if part.detail == ONE] == [True]
    assert not [part for part in snapshot.unread if part.kind == "link"]


def test_a_client_that_does_not_run_the_group_owns_none_of_its_queues() -> None:
    """`ClientRemotingProcessor.getConsumerRunningInfo`; brokers up to 5.5.0 list such clients."""
    reason = "The Consumer Group <order-svc> not exist in this consumer"

    def ghost(turn: Turn) -> None:
        is_one = turn.request.ext_fields["clientId"] == ONE
        turn.write(turn.frame if is_one else turn.framed(error_answer(1, reason)))

    with cluster() as brokers:
        for broker in brokers:
            broker.faults[RUNNING] = ghost
        group = evidence_through(brokers).group("order-svc")
    assert list(group.reports) == [ONE]
    assert {state.owners for state in group.queues.values()} == {frozenset({ONE}), frozenset()}


def test_a_dashboard_finds_its_way_to_a_consumer_by_itself() -> None:
    """It asks a broker of its own choice, so that a second answer says nothing of a link."""
    with replay_dashboard.dashboard(replay_dashboard.Replay()) as replay:
        replay.faults[dashboards.RUNNING] = replay_dashboard.silent
        snapshot = dashboards.fetch(replay, Wanted(group="order-svc", evidence=True), timeout=0.3, retries=0)
        asked_of = [each for each in replay.asked if dashboards.RUNNING in each]
    assert len(asked_of) == len(set(asked_of)) > 0
    assert {part.kind for part in snapshot.unread if part.kind != "stored-offsets"} == {"member"}
