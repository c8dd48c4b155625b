"""The limits of topics, each measured by a function of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rmqlb.engine.check.measured import Measured, named
from rmqlb.model.route import QueueData, TopicRouteData
from rmqlb.model.snapshot import RouteSighting


def _min_brokers(route: TopicRouteData) -> Measured:
    """Brokers with a queue that somebody may write to or read from."""
    names = sorted({data.broker_name for data in route.queue_datas if _is_used(data)})
    return Measured(len(names), why=named(names))


def _missing_masters(route: TopicRouteData) -> Measured:
    """Brokers that hold queues and have no master, by address or at all: producers skip them."""
    names, brokers = [], route.brokers_by_name()
    for name in sorted({data.broker_name for data in route.queue_datas}):
        broker = brokers.get(name)
        if broker is None or not broker.has_master:
            names.append(name)
    return Measured(len(names), why=named(names))


def measure_topic(limit: str, sighting: RouteSighting) -> Measured:
    """The measure of a topic, where NameServers that know other routes do not say something else."""
    measured = TOPIC_MEASURES[limit](sighting.route)
    if any(TOPIC_MEASURES[limit](other.route).value != measured.value for other in sighting.others):
        return Measured(missing="NameServers give different routes of it")
    return measured


def _is_used(data: QueueData) -> bool:
    return (data.readable and data.read_queue_nums > 0) or (data.writable and data.write_queue_nums > 0)


TOPIC_MEASURES: Mapping[str, Callable[[TopicRouteData], Measured]] = {
    "minBrokers": _min_brokers,
    "missingMasters": _missing_masters,
}
