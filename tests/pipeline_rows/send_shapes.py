"""Topics as the pipeline's tables have them, from routes that the reader can see."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rmqlb.errors import DataError
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.route import TopicQueueMappingInfo, TopicRouteData
from rmqlb.pipeline.producers.send_rows import Run, SendShape


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
    publish = tuple(Run(run["brokerName"], run["queues"]) for run in row["publish"] or ())
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
