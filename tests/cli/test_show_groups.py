from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from rmqlb.remoting.codes import RequestCode
from tests.support import replay_dashboard
from tests.support.replay_remoting import Replay, at, cluster, refusing

from .run import ROOT, Ran, run

FAULTS = str(ROOT / "examples" / "four-groups.yaml")


def groups(*args: str) -> Ran:
    return run("show-groups", *args)


def data(ran: Ran) -> Any:
    return json.loads(ran.stdout)["data"]


@pytest.fixture
def brokers() -> Iterator[tuple[Replay, ...]]:
    with cluster(Replay(broker="b0"), Replay(broker="b1")) as running:
        yield running


def native(running: tuple[Replay, ...]) -> list[str]:
    return [*at(running), "--source-retries", "0"]


def test_a_running_cluster_is_read_with_so_many_requests_and_no_more(brokers: tuple[Replay, ...]) -> None:
    ran = groups(*native(brokers), "-o", "json")
    assert ran.code == 0, ran.stderr
    found = {each["group"]: each for each in data(ran)["groups"]}
    assert set(found) == {"order-svc", "audit-svc", "bill-svc"}
    assert found["order-svc"]["consumers"] == 3
    asked = Counter(request.code for replay in brokers for request in replay.requests)
    consumers = sum(each["consumers"] or 0 for each in found.values())
    assert asked[RequestCode.GET_CONSUMER_CONNECTION_LIST] <= 2 * len(found)
    assert asked[RequestCode.GET_CONSUME_STATS] <= 2 * len(found)
    assert asked[RequestCode.GET_CONSUMER_RUNNING_INFO] <= consumers
    assert asked[RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG] == 2


def test_a_broker_that_refuses_makes_findings_and_unknown_figures(brokers: tuple[Replay, ...]) -> None:
    for replay in brokers:
        replay.faults[RequestCode.GET_CONSUMER_RUNNING_INFO] = refusing(1, "busy")
        replay.faults[RequestCode.GET_CONSUME_STATS] = refusing(1, "busy")
    ran = groups(*native(brokers), "-o", "json", "-g", "order-svc")
    (order,) = data(ran)["groups"]
    assert (ran.code, order["status"], order["lag"], order["lagAtLeast"]) == (0, "warning", None, None)
    assert {finding["code"] for finding in order["findings"]} == {"unread", "no-route", "assumed-strategy"}


def test_a_dashboard_is_read_too() -> None:
    """The recorded list of groups is older than the groups; a name in full is asked for all the same."""
    with replay_dashboard.dashboard() as server:
        listed = groups("-s", server.url, "-o", "json", "-g", "*-svc")
        named = groups("-s", server.url, "-o", "json", "-g", "order-svc")
    assert (listed.code, json.loads(listed.stderr)["error"]["code"]) == (4, "group-not-found")
    (order,) = data(named)["groups"]
    assert (order["group"], order["consumers"], order["queues"], order["unassigned"]) == ("order-svc", 3, 25, 0)


def consumers(*args: str) -> Any:
    return data(run("show-consumers", *args, "-o", "json"))


def test_consumers_of_a_running_cluster(brokers: tuple[Replay, ...]) -> None:
    rows = consumers(*native(brokers), "-g", "order-svc")["consumers"]
    assert [row["clientId"] for row in rows] == [f"192.0.2.2@inst{number}" for number in range(3)]
    assert {(row["language"], len(row["addresses"])) for row in rows} == {("JAVA", 2)}
