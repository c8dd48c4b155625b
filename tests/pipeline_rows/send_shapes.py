"""Topics as the pipeline's tables have them, from routes that the reader can see."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import msgspec

from rmqlb.errors import DataError
from rmqlb.model.group import Seen
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.route import TopicQueueMappingInfo, TopicRouteData
from rmqlb.model.snapshot import ClusterSnapshot, RouteSighting
from rmqlb.pipeline.producers.send_rows import QueueRun, SendShape
from rmqlb.sources.formats.snapshot_file import to_document
from tests.cli.run import run


def runs(queues: Sequence[MessageQueue]) -> list[dict[str, Any]]:
    """The queues in runs: each begins with queue 0."""
    found: list[dict[str, Any]] = []
    for queue in queues:
        if queue.queue_id == 0:
            found.append({"brokerName": queue.broker_name, "queues": 0})
        found[-1]["queues"] += 1
    return found


def topic_row(route: TopicRouteData) -> dict[str, Any]:
    """The topic's columns in TOPICS."""
    row: dict[str, Any] = {
        "topic": route.topic,
        "subscribe": runs(route.subscribe_queues()),
        "publish": None,
        "publishProblem": None,
        "orderTopicConf": route.order_topic_conf,
        "isStatic": route.is_static,
    }
    try:
        return {**row, "publish": runs(route.publish_queues())}
    except DataError as error:
        return {**row, "publishProblem": error.message}


def shape(route: TopicRouteData) -> SendShape:
    """The route's shape."""
    row = topic_row(route)
    publish = tuple(QueueRun(run["brokerName"], run["queues"]) for run in row["publish"] or ())
    readable = {run["brokerName"] for run in row["subscribe"]} - {run.broker_name for run in publish}
    return SendShape(
        publish,
        () if route.is_static else tuple(sorted(readable)),
        fixed=route.is_order_topic or route.is_static,
        is_static=route.is_static,
    )


def static_route(topic: str, queues: int, broker_name: str) -> TopicRouteData:
    """A static topic whose logical queues one broker bears."""
    mapping = TopicQueueMappingInfo(topic, "__global__", queues, broker_name, 1, {i: i for i in range(queues)})
    return TopicRouteData(topic, (), (), None, {broker_name: mapping})


def told_of(topic: TopicRouteData, fail: str, trials: int) -> dict[str, Any]:
    """What `simulate-send` prints as data for the load of the producers stage, with one failure."""
    snapshot = ClusterSnapshot("dump", "a test", routes={topic.topic: RouteSighting(topic, Seen("a test"))})
    typed = f"--fail {fail} --rate 10 --for 2m --trials {trials} -o json -q".split()
    text = msgspec.json.encode({"schema": "rmqlb/snapshot", "formatVersion": "1.0", "data": to_document(snapshot)})
    return json.loads(run("simulate-send", "-s", "-", "--topic", topic.topic, *typed, stdin=text).stdout)["data"]  # type: ignore[no-any-return]
