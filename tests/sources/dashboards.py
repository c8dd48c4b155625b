"""A Dashboard source that does not wait, and answers for the replay server to give."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import pytest

from rmqlb.errors import EndpointError, RmqlbError
from rmqlb.model.snapshot import ClusterSnapshot, Wanted
from rmqlb.sources.dashboard import Credentials, DashboardReads, HttpSettings
from rmqlb.sources.live import LiveSource
from tests.support.replay_dashboard import Replay, envelope

NOW = datetime(2026, 11, 21, 2, 2, 7, tzinfo=UTC)
A, B = "127.0.0.1:10911", "127.0.0.1:20911"
CONNECTIONS = "/consumer/consumerConnection.query"
PROGRESS = "/consumer/queryTopicByConsumer.query"
RUNNING = "/consumer/consumerRunningInfo.query"
GROUPS = "/consumer/groupList.query"
CLUSTER = "/cluster/list.query"
ROUTE = "/topic/route.query"
TOPICS = "/topic/list.query"
SKEWED = Wanted(topics=("Skewed",))
ORDER_SVC = Wanted(group="order-svc")


def source(url: str, credentials: Credentials | None = None, **settings: Any) -> LiveSource:
    quick: dict[str, Any] = {"timeout": 5.0, "sleep": lambda _: None, "jitter": lambda: 0.0, **settings}
    reads = DashboardReads(url, HttpSettings(**quick), credentials, clock=lambda: NOW)
    return LiveSource(reads, clock=lambda: NOW)


def fetch(replay: Replay, wanted: Wanted, **settings: Any) -> ClusterSnapshot:
    return source(replay.url, **settings).fetch(wanted)


def error_of(url: str, wanted: Wanted, credentials: Credentials | None = None, **settings: Any) -> RmqlbError:
    with pytest.raises(RmqlbError) as caught:
        source(url, credentials, **settings).fetch(wanted)
    assert "\n" not in f"{caught.value.message}{caught.value.hint}"
    return caught.value


def endpoint_error(url: str, wanted: Wanted = SKEWED, credentials: Credentials | None = None, **settings: Any) -> str:
    error = error_of(url, wanted, credentials, **settings)
    assert isinstance(error, EndpointError)
    return error.message


def connections(*client_ids: str, topics: Iterable[str] = ("T",)) -> bytes:
    table: dict[str, dict[str, str]] = {topic: {} for topic in (*topics, "%RETRY%g")}
    items = [{"clientId": client_id, "clientAddr": "x:1"} for client_id in client_ids]
    kinds = {"consumeType": "CONSUME_PASSIVELY", "messageModel": "CLUSTERING"}
    return envelope({"connectionSet": items, "subscriptionTable": table, **kinds})


def running(*queues: str, **properties: str) -> bytes:
    """A consumer's own report, with the queues that it holds: `running("T a 0")`."""
    keys = ("MessageQueue [topic={}, brokerName={}, queueId={}]".format(*queue.split()) for queue in queues)
    return envelope({"properties": properties, "mqTable": {key: {"droped": False} for key in keys}})


def progress(*queues: str, owner: str | None = None) -> bytes:
    """Offsets of a group's queues: `progress("T a 0")`."""
    offsets = {"brokerOffset": 10, "consumerOffset": 7, "clientInfo": owner}
    named = (queue.split() for queue in queues)
    return envelope(
        [{"topic": t, "queueStatInfoList": [{"brokerName": b, "queueId": int(i), **offsets}]} for t, b, i in named]
    )
