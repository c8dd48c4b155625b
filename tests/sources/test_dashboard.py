"""A whole cluster read through the replayed answers of a real Dashboard."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

import pytest
from msgspec.structs import replace

from rmqlb.errors import DataError, EndpointError
from rmqlb.model.group import QueueState, Seen
from rmqlb.model.process_queue import ConsumerEvidence, ProcessQueue
from rmqlb.model.route import BrokerData, QueueData
from rmqlb.model.snapshot import Wanted
from rmqlb.sources.dashboard import READ_PATHS, DashboardReads, HttpSettings
from tests.support.mismatches import every_case
from tests.support.replay_dashboard import Handler, Replay, dashboard, envelope, failure

from .captures import queue
from .dashboards import (
    CLUSTER,
    CONFIG,
    CONNECTIONS,
    GROUPS,
    NOW,
    PROGRESS,
    ROUTE,
    RUNNING,
    A,
    B,
    connections,
    error_of,
    fetch,
    progress,
    running,
    source,
)

ORDER_SVC = Wanted(group="order-svc")
G = Wanted(topics=(), group="g")
IDS = tuple(f"192.0.2.2@inst{i}" for i in range(3))


def replay_of(**answers: bytes) -> Replay:
    """The captured Dashboard with a group `g`: what brokers A and B and its members say."""
    replay = Replay()
    paths = {
        "a": (CONNECTIONS, f"consumerGroup=g&address={A}"),
        "b": (CONNECTIONS, f"consumerGroup=g&address={B}"),
        "progress": (PROGRESS, "consumerGroup=g"),
        "config": (CONFIG, "consumerGroup=g"),
        "groups": (GROUPS, ""),
        **{f"of_{client_id}": (RUNNING, f"consumerGroup=g&clientId={client_id}") for client_id in "xyz"},
    }
    replay.answers |= {paths[name]: body for name, body in answers.items()}
    return replay


def test_a_wanted_topics_route_is_read() -> None:
    with dashboard() as replay:
        snapshot = fetch(replay, Wanted(topics=("Skewed",)))
    sighting = snapshot.routes["Skewed"]
    assert sighting.route.queue_datas == (QueueData("broker-b", 3, 3, 6), QueueData("broker-a", 6, 4, 6))
    assert sighting.route.broker("broker-a") == BrokerData("DefaultCluster", "broker-a", {0: A})
    assert sighting.seen == Seen(f"{replay.url}{ROUTE}", NOW)
    assert (snapshot.kind, snapshot.endpoint, snapshot.taken_at) == ("dashboard", replay.url, NOW)
    assert replay.asked == ["GET /topic/route.query?topic=Skewed"]


def test_an_unknown_topic_gets_a_did_you_mean() -> None:
    with dashboard() as replay:
        error = error_of(replay.url, Wanted(topics=("OrderEvent",)))
    assert isinstance(error, DataError)
    assert error.message == f"topic OrderEvent has no route at {replay.url}"
    assert error.hint is not None
    assert error.hint.startswith("did you mean OrderEvents")


def test_names_are_quoted_on_their_way() -> None:
    topic = "a&b=c%41/../#é"
    replay = Replay()
    replay.answers[ROUTE, f"topic={topic}"] = replay.answers[ROUTE, "topic=Skewed"]
    with dashboard(replay):
        assert list(fetch(replay, Wanted(topics=(topic,))).routes) == [topic]


def test_a_path_before_the_dashboard_and_a_slash_behind_it_are_kept_apart() -> None:
    replay = Replay()
    replay.answers["/console" + ROUTE, "topic=Skewed"] = replay.answers[ROUTE, "topic=Skewed"]
    with dashboard(replay):
        assert source(f"{replay.url}/console/").fetch(Wanted(topics=("Skewed",))).routes
    assert replay.asked == ["GET /console/topic/route.query?topic=Skewed"]


def test_a_whole_group_is_read() -> None:
    with dashboard() as replay:
        snapshot = fetch(replay, ORDER_SVC)
    group = snapshot.group("order-svc")
    assert sorted(snapshot.routes) == ["OrderEvents", "Skewed"]
    assert group.client_ids == IDS
    assert group.topics == ("%RETRY%order-svc", "OrderEvents", "Skewed")
    assert (group.consume_type, group.message_model) == ("CONSUME_PASSIVELY", "CLUSTERING")
    assert group.consume_from_where == "CONSUME_FROM_FIRST_OFFSET"
    assert group.seen == Seen(replay.url, NOW)
    assert len(group.queues) == 2 + 16 + 9
    assert group.queues[queue("OrderEvents broker-b 3")] == QueueState(frozenset({IDS[2]}), 32, 32, 1795226477721)
    assert {state.lag for state in group.queues.values()} == {0}


def test_what_members_report_goes_before_what_the_dashboard_says() -> None:
    replay = replay_of(
        a=connections("x", "y"),
        b=connections("x", "y"),
        progress=progress("T a 0", "T a 1", "T a 2", owner="x"),
        of_x=running("T a 0", "T a 1", allocateMessageQueueStrategy="o.AllocateMessageQueueAveragely@1"),
        of_y=running("T a 1"),
    )
    with dashboard(replay):
        group = fetch(replay, G).group("g")
    assert {q.queue_id: state.owners for q, state in group.queues.items()} == {0: {"x"}, 1: {"x", "y"}, 2: set()}
    assert {state.lag for state in group.queues.values()} == {3}
    assert group.reports["x"].strategy_class == "AllocateMessageQueueAveragely"
    assert sorted(group.reports) == ["x", "y"]


def test_evidence_is_read_where_it_is_wanted() -> None:
    with dashboard(
        replay_of(a=connections("x"), b=connections("x"), of_x=running("T a 0", PROP_CONSUMEORDERLY="true"))
    ) as replay:
        found = fetch(replay, replace(G, evidence=True)).group("g").reports["x"].evidence
    assert found == ConsumerEvidence(
        read_at=int(NOW.timestamp() * 1000), queues=(ProcessQueue(queue("T a 0"), dropped=False),), orderly=True
    )


@every_case(
    ("text", "is_silence"),
    [
        ("CODE: 207  DESC: consumer <g> <x> Timeout: RemotingTimeoutException", True),
        (
            "org.apache.rocketmq.remoting.exception.RemotingTimeoutException: wait response on the channel <b:1> timeout",
            True,
        ),
        ("CODE: 1  DESC: invoke consumer <g> <x> Exception: RemotingTimeoutException", False),
        ("CODE: 206  DESC: not online", False),
        ("the consumer timed out", False),
    ],
)
def test_a_consumer_that_does_not_answer_the_dashboard_in_time_is_told_from_one_that_is_refused(
    text: str, is_silence: bool
) -> None:
    with dashboard(replay_of(a=connections("x"), b=connections("x"), of_x=failure(text))) as replay:
        unread = fetch(replay, G).unread
    assert [(part.detail, part.no_answer) for part in unread if part.kind == "member"] == [("x", is_silence)]


def test_stack_traces_are_asked_for_by_name() -> None:
    stack = "ConsumeMessageThread_1                  TID: 5 STATE: RUNNABLE\nConsumeMessageThread_1                  a.B.c(B.java:1)\n\n"
    answer = envelope({"properties": {}, "mqTable": {}, "jstack": stack})
    replay = replay_of(a=connections("x", "y"), b=connections("x"), of_x=answer)
    with dashboard(replay):
        assert source(replay.url).ask_stacks("g", ["x"]) == {"x": ("ConsumeMessageThread_1 RUNNABLE\na.B.c(B.java:1)",)}
    assert [asked for asked in replay.asked if RUNNING in asked] == [
        f"GET {RUNNING}?consumerGroup=g&clientId=x&jstack=true"
    ]


def test_no_broker_that_answers_is_an_error() -> None:
    replay = replay_of(a=failure("connect to A failed"), b=failure("connect to B failed"))
    with dashboard(replay):
        error = error_of(replay.url, G)
    assert isinstance(error, EndpointError)
    assert error.message == f"{replay.url}: no broker reports the consumers of group g: connect to B failed"


def test_who_owns_what_is_only_asked_when_it_is_wanted() -> None:
    with dashboard() as replay:
        group = fetch(replay, Wanted(group="order-svc", owners=False)).group("order-svc")
    assert group.client_ids == IDS
    assert (group.queues, group.reports) == ({}, {})
    assert not any(PROGRESS in asked or RUNNING in asked for asked in replay.asked)


@every_case(("group", "members"), [("audit-svc", 5), ("bill-svc", 4), ("order-svc", 3)])
def test_every_captured_group_can_be_read(group: str, members: int) -> None:
    with dashboard() as replay:
        assert len(fetch(replay, Wanted(group=group)).group(group).client_ids or ()) == members


def test_the_master_of_each_broker_is_asked_else_its_first_slave() -> None:
    replay = replay_of()
    replay.answers[CLUSTER, ""] = envelope(
        {
            "clusterInfo": {
                "brokerAddrTable": {
                    "a": {"brokerName": "a", "brokerAddrs": {"1": "slave:1", "0": "master:1"}},
                    "b": {"brokerName": "b", "brokerAddrs": {"2": "slave:3", "1": "slave:2"}},
                    "c": {"brokerName": "c", "brokerAddrs": {}},
                }
            }
        }
    )
    replay.answers[CONNECTIONS, "consumerGroup=g"] = connections("x")
    with dashboard(replay):
        group = fetch(replay, Wanted(topics=(), group="g", owners=False)).group("g")
    assert [view.broker_addr for view in group.views or ()] == ["master:1", "slave:2"]


def test_only_reads_are_asked_for_and_all_by_get() -> None:
    with dashboard() as replay:
        source(replay.url).fetch(ORDER_SVC)
        source(replay.url).fetch(Wanted())
        error_of(replay.url, Wanted(group="nope"))
        error_of(replay.url, Wanted(topics=("nope",)))
    methods, targets = zip(*(asked.split(" ", 1) for asked in replay.asked), strict=True)
    assert set(methods) == {"GET"}
    assert {urlsplit(target).path for target in targets} == READ_PATHS
    assert all(path.endswith(".query") for path in READ_PATHS)


def test_a_path_that_is_no_read_cannot_be_asked_for() -> None:
    with dashboard() as replay, pytest.raises(AssertionError):
        DashboardReads(replay.url, HttpSettings())._data("/consumer/deleteSubGroup.do", {})
    assert replay.asked == []


def test_a_proxy_in_the_environment_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    with dashboard() as replay:
        assert fetch(replay, Wanted(topics=("Skewed",))).routes


def test_a_netrc_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login admin password hunter2\n")
    (tmp_path / ".netrc").chmod(0o600)
    monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))
    monkeypatch.setenv("HOME", str(tmp_path))
    shown: list[str | None] = []

    def refuse(handler: Handler) -> None:
        shown.append(handler.headers.get("Authorization"))
        handler.give(b"", 403)

    with dashboard(Replay(faults={"*": refuse})) as replay:
        error_of(replay.url, Wanted(topics=("Skewed",)))
    assert shown == [None]


def test_progress_is_told_as_answers_come() -> None:
    told: list[tuple[str, int, int]] = []
    with dashboard() as replay:
        source(replay.url).fetch(Wanted(), lambda what, done, total: told.append((what, done, total)))
    assert told == [(replay.url, 0, 0), ("routes", 0, 2), ("routes", 1, 2)]
