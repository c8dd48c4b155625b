"""Small fleets as Arrow batches of FLEET rows, built where the reader can see them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

import pyarrow as pa
from msgspec import Struct

RUN = pa.struct([("brokerName", pa.string()), ("queues", pa.int32())])
TOPIC = pa.struct(
    [
        ("topic", pa.string()),
        ("subscribe", pa.list_(RUN)),
        ("absent", pa.list_(pa.string())),
        ("lags", pa.list_(pa.struct([("place", pa.int32()), ("lag", pa.int64())]))),
        ("owners", pa.list_(pa.struct([("place", pa.int32()), ("owners", pa.list_(pa.string()))]))),
    ]
)
FLEET_SCHEMA = pa.schema(
    [
        ("cluster", pa.string()),
        ("date", pa.date32()),
        ("snapshot", pa.string()),
        ("group", pa.string()),
        ("strategy", pa.string()),
        ("queues", pa.int64()),
        ("clientIds", pa.list_(pa.string())),
        ("sdks", pa.list_(pa.struct([("name", pa.string()), ("assumed", pa.bool_())]))),
        ("topics", pa.list_(TOPIC)),
        ("retryTopics", pa.list_(TOPIC)),
    ]
)


class Topic(Struct, frozen=True):
    """A topic of a group: `brokers` in the clients' order, with how many read queues each has."""

    topic: str
    brokers: Mapping[str, int]
    absent: Sequence[str] | None = None
    lags: Mapping[int, int] = {}
    owners: Mapping[int, Sequence[str]] = {}


class Group(Struct, frozen=True):
    """A group: its members in the clients' order; `sdks`: client id → its client library, where it is not Java's."""

    group: str
    members: Sequence[str]
    topics: Sequence[Topic]
    strategy: str | None = None
    sdks: Mapping[str, str] = {}


def fleet_rows(groups: Sequence[Group], cluster: str = "c", day: date | None = date(2026, 11, 1)) -> pa.RecordBatch:
    """The groups as one batch."""
    return pa.RecordBatch.from_pylist([_row(group, cluster, day) for group in groups], schema=FLEET_SCHEMA)


def _row(group: Group, cluster: str, day: date | None) -> dict[str, Any]:
    return {
        "cluster": cluster,
        "date": day,
        "snapshot": "s1",
        "group": group.group,
        "strategy": group.strategy,
        "queues": sum(number for topic in group.topics for number in topic.brokers.values()),
        "clientIds": list(group.members),
        "sdks": [{"name": group.sdks.get(i, "java"), "assumed": False} for i in group.members] if group.sdks else None,
        "topics": [_topic(topic) for topic in group.topics],
        "retryTopics": [],
    }


def _topic(topic: Topic) -> dict[str, Any]:
    return {
        "topic": topic.topic,
        "subscribe": [{"brokerName": name, "queues": number} for name, number in topic.brokers.items()],
        "absent": None if topic.absent is None else list(topic.absent),
        "lags": [{"place": place, "lag": lag} for place, lag in topic.lags.items()] or None,
        "owners": [{"place": place, "owners": list(owners)} for place, owners in topic.owners.items()] or None,
    }
