"""Routes that callers of the Python API hand in."""

from __future__ import annotations

from collections.abc import Sequence

from rmqlb.engine.given import require
from rmqlb.errors import DataError
from rmqlb.model.limits import MOST_QUEUES
from rmqlb.model.route import TopicRouteData


def check_route(route: TopicRouteData) -> None:
    """Refuse a route whose fields hold what they cannot, or more queues than any topic has.

    Raises:
        UsageError: a field cannot be what it is.
        DataError: there are too many queues.
    """
    require(route, TopicRouteData, "TopicRouteData")
    queues = sum(max(data.read_queue_nums, data.write_queue_nums, 0) for data in route.queue_datas)
    if queues > MOST_QUEUES:
        raise DataError(f"topic {route.topic}: {queues} queues, more than {MOST_QUEUES}")


def check_routes(routes: Sequence[TopicRouteData]) -> None:
    """`check_route` for each of several.

    Raises:
        UsageError: they are no list of routes, or a field cannot be what it is.
        DataError: one has too many queues.
    """
    require(routes, list[TopicRouteData], "routes")
    for route in routes:
        check_route(route)
