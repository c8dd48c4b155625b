"""Which queues of an orderly group no broker locks, so that no consumer may consume them."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from rmqlb.model.group import ConsumerGroup
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.route import TopicRouteData


def is_orderly(group: ConsumerGroup) -> bool | None:
    """Its consumers consume in order, as one of them reports; None when not all of them report it."""
    known = [None if report.evidence is None else report.evidence.orderly for report in group.reports.values()]
    if any(known):
        return True
    return None if None in known or set(group.client_ids or ()) - group.reports.keys() else False


def unlocked_queues(routes: Iterable[TopicRouteData], lost_masters: Collection[str] = ()) -> list[MessageQueue]:
    """The queues on brokers without a master, which alone is asked for locks (`RebalanceImpl.lock`, `lockAll`)."""
    found: list[MessageQueue] = []
    for route in routes:
        brokers = route.brokers_by_name()
        has = {name: broker.has_master and name not in lost_masters for name, broker in brokers.items()}
        if lost_masters or not all(has.values()) or len(has) < len(route.queue_datas):
            found += [queue for queue in route.subscribe_queues() if not has.get(queue.broker_name)]
    return found


def without_lock(
    routes: Iterable[TopicRouteData], lost_masters: Collection[str] = (), *, orderly: bool | None
) -> int | None:
    """How many queues of the group no broker locks.

    None where that depends on what is not known: whether the group is orderly, or whether a slave acts as the master
    (5.x: a broker with enableActingMaster, where the NameServers have supportActingMaster).

    Args:
        lost_masters: brokers that lose their master, besides those that have none.
        orderly: its consumers consume in order; None is unknown.
    """
    if orderly is False:
        return 0
    routes = tuple(routes)
    queues = unlocked_queues(routes, lost_masters)
    names = {queue.broker_name for queue in queues}
    brokers = [broker for route in routes for broker in route.broker_datas if broker.broker_name in names]
    if queues and (orderly is None or any(broker.enable_acting_master for broker in brokers)):
        return None
    return len(queues)
