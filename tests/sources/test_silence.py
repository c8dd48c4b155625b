from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

import pytest

from rmqlb.errors import EndpointError
from rmqlb.model.snapshot import ClusterSnapshot, Everything, Wanted, through
from rmqlb.remoting.codes import RequestCode
from rmqlb.sources.live import LiveSource
from rmqlb.sources.native.source import NameServerReads
from rmqlb.sources.native.wire import WireSettings
from rmqlb.sources.pace import Deadline, SilentServers
from tests.support import replay_dashboard
from tests.support.replay_remoting import Fault, Replay, Turn, cluster, refusal, refusing, remoting, silent, success

from . import dashboards
from .test_nameserver import NOW, body, reads

ALL = Wanted(everything=Everything(of_groups=True))
MUTE = 24
RUNNING = RequestCode.GET_CONSUMER_RUNNING_INFO
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
    assert {part.no_answer and part.reason.partition(": ")[2] for part in parts} == {"no whole answer within 0.3 s"}
    with cluster() as whole:
        expected = LiveSource(reads([whole[0].address], whole), lambda: NOW).fetch(ALL).groups
    with cluster(Replay(), Replay(broker="b1", faults={"*": silent_first})) as (good, slow):
        found = LiveSource(reads([good.address], (good, slow), timeout=0.5), lambda: NOW).fetch(ALL)
    groups, wanted = ({name: each.client_ids for name, each in of.items()} for of in (found.groups, expected))
    assert groups == wanted
    assert not [part for part in found.unread if part.kind in ("members", "offsets", "group")]


def test_silent_brokers_are_found_all_at_once() -> None:
    waiting, most, lock = [0], [0], threading.Lock()

    def counted(turn: Turn) -> None:
        with lock:
            waiting[0] += 1
            most[0] = max(most[0], waiting[0])
        turn.replay.stop.wait(0.5)
        with lock:
            waiting[0] -= 1
        turn.hang_up()

    with ExitStack() as stack:
        mute = [stack.enter_context(remoting(Replay(faults={"*": counted}))) for _ in range(MUTE)]
        table: dict[str, Any] = {
            f"b{n}": {"cluster": "c", "brokerName": f"b{n}", "brokerAddrs": {"0": each.address}}
            for n, each in enumerate(mute)
        }
        answer = success(body({"brokerAddrTable": table, "clusterAddrTable": {"c": sorted(table)}}))
        good = stack.enter_context(remoting(Replay(answers={(RequestCode.GET_BROKER_CLUSTER_INFO, ""): answer})))
        source = LiveSource(NameServerReads([good.address], WireSettings(timeout=0.4, retries=0)))
        with pytest.raises(EndpointError):
            source.fetch(ALL)
    assert most[0] >= MUTE - 1
    assert {len(each.requests) for each in mute} == {1}


def test_no_request_begins_or_lasts_beyond_the_deadline() -> None:
    with cluster(Replay(), Replay(broker="b1", faults={"*": silent})) as (good, mute):
        deadline = Deadline(0.3)
        source = LiveSource(reads([good.address], (good, mute), timeout=20, deadline=deadline), deadline=deadline)
        snapshot = source.fetch(ALL)
    reasons = {part.reason.split(": ")[-1] for part in snapshot.unread if part.no_answer}
    assert reasons & {f"{what} within the 0.3 s of the deadline" for what in ("no answer", "not asked")}
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


def fetch(brokers: Sequence[Replay]) -> ClusterSnapshot:
    source = LiveSource(reads([brokers[0].address], tuple(brokers), timeout=0.3, retries=0), clock=lambda: NOW)
    return source.fetch(Wanted(group="order-svc", evidence=True))


def asked(broker: Replay) -> int:
    return sum(r.code == RUNNING and r.ext_fields["clientId"] == ONE for r in broker.requests)


def for_one(fault: Fault) -> Fault:
    return lambda turn: fault(turn) if turn.request.ext_fields["clientId"] == ONE else turn.write(turn.frame)


def once(fault: Fault) -> Fault:
    return lambda turn: fault(turn) if asked(turn.replay) == 1 else turn.write(turn.frame)


def asked_first() -> int:
    with cluster() as brokers:
        fetch(brokers)
        return next(place for place, broker in enumerate(brokers) if asked(broker))


@pytest.mark.parametrize("fault", [silent, refusing(TIMED_OUT, "no answer in time"), once(silent)])
def test_an_answer_through_another_broker_names_the_link_unless_the_first_one_gives_one_too(fault: Fault) -> None:
    first = asked_first()
    with cluster() as brokers:
        brokers[first].faults[RUNNING] = for_one(fault)
        snapshot = fetch(brokers)
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
        snapshot = fetch(brokers)
        assert sorted(map(asked, brokers)) == [1, 1]
    assert ONE not in snapshot.group("order-svc").reports
    assert [part.no_answer for part in snapshot.unread if part.detail == ONE] == [True]
    assert not [part for part in snapshot.unread if part.kind == "link"]


def test_a_client_that_does_not_run_the_group_owns_none_of_its_queues() -> None:
    """`ClientRemotingProcessor.getConsumerRunningInfo`; brokers up to 5.5.0 list such clients."""
    reason = "The Consumer Group <order-svc> not exist in this consumer"

    def ghost(turn: Turn) -> None:
        is_one = turn.request.ext_fields["clientId"] == ONE
        turn.write(turn.frame if is_one else turn.framed(refusal(1, reason)))

    with cluster() as brokers:
        for broker in brokers:
            broker.faults[RUNNING] = ghost
        group = fetch(brokers).group("order-svc")
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
