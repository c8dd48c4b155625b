"""What a RocketMQ cluster's clients will do with their queues, known before it happens.

The names below are the public Python API; importing `rmqlb` itself loads none of them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rmqlb.version import __version__

if TYPE_CHECKING:
    from rmqlb.engine.allocate import allocate, allocate_for
    from rmqlb.errors import AllocationError, DataError, EndpointError, RmqlbError, UsageError
    from rmqlb.model.message_queue import MessageQueue
    from rmqlb.model.route import BrokerData, QueueData, TopicRouteData
    from rmqlb.sources.documents import parse_route

_HOMES = {
    "AllocationError": "rmqlb.errors",
    "BrokerData": "rmqlb.model.route",
    "DataError": "rmqlb.errors",
    "EndpointError": "rmqlb.errors",
    "MessageQueue": "rmqlb.model.message_queue",
    "QueueData": "rmqlb.model.route",
    "RmqlbError": "rmqlb.errors",
    "TopicRouteData": "rmqlb.model.route",
    "UsageError": "rmqlb.errors",
    "allocate": "rmqlb.engine.allocate",
    "allocate_for": "rmqlb.engine.allocate",
    "parse_route": "rmqlb.sources.documents",
}

__all__ = [
    "AllocationError",
    "BrokerData",
    "DataError",
    "EndpointError",
    "MessageQueue",
    "QueueData",
    "RmqlbError",
    "TopicRouteData",
    "UsageError",
    "__version__",
    "allocate",
    "allocate_for",
    "parse_route",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'rmqlb' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
