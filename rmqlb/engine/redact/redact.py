"""A snapshot under new names.

What is neither a name nor a number is dropped, unless it is one of RocketMQ's own words: texts may say anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain

from msgspec.structs import replace

from rmqlb.engine.allocate.rules import HASHING, JAVA_CLASSES, NAMES
from rmqlb.engine.redact.renaming import Found, Renaming, rename
from rmqlb.model.group import Connection, ConsumerGroup, MemberReport, MemberView, QueueState, Seen
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.route import BrokerData, TopicQueueMappingInfo, TopicRouteData
from rmqlb.model.snapshot import ClusterSnapshot, RouteSighting, Unread

_SAME = [name for name in NAMES if name not in HASHING]
NOTE = (
    f"the names are redacted and sort as the real ones do: {', '.join(_SAME[:-1])} and {_SAME[-1]} give every queue "
    f"to the same member; {' and '.join(HASHING)} hashes names and does not"
)
_WORD = re.compile(r"[A-Z][A-Z0-9_]*")
_DIGITS = re.compile(r"[0-9]{1,14}")
_COUNT = re.compile(r"[-+0-9:]{0,24}")


def redact(snapshot: ClusterSnapshot) -> tuple[ClusterSnapshot, Renaming]:
    """The snapshot under new names, and which they are."""
    names = rename(_found(snapshot))
    routes = {names.topics[topic]: _sighting(sighting, names) for topic, sighting in snapshot.routes.items()}
    groups = {names.groups[name]: _group(group, names) for name, group in snapshot.groups.items()}
    unread = tuple(Unread("part", str(number), "redacted") for number, _ in enumerate(snapshot.unread, 1))
    redacted = replace(
        snapshot, endpoint="redacted", context=None, routes=routes, groups=groups, unread=unread, notes=(NOTE,)
    )
    return redacted, names


def _found(snapshot: ClusterSnapshot) -> Found:
    routes = [each for sighting in snapshot.routes.values() for each in (sighting, *sighting.others)]
    groups = list(snapshot.groups.values())
    brokers = [broker for sighting in routes for broker in sighting.route.broker_datas]
    views = [view for group in groups for view in group.views or ()]
    reports = [report for group in groups for report in group.reports.values()]
    connections = [connection for view in views for connection in view.connections]
    queues = [(queue, state) for group in groups for queue, state in group.queues.items()]
    infos = [info for sighting in routes for info in (sighting.route.topic_queue_mapping_by_broker or {}).values()]
    return Found(
        topics=frozenset(
            chain(
                snapshot.routes,
                *(group.topics or () for group in groups),
                *(report.topics or () for report in reports),
                *(report.pop_topics or () for report in reports),
                *(group.request_modes or () for group in groups),
                (queue.topic for queue, _ in queues),
                (info.topic for info in infos if info.topic is not None),
            )
        ),
        groups=frozenset(snapshot.groups),
        client_ids=frozenset(
            chain(
                (connection.client_id for connection in connections),
                *(state.owners or () for _, state in queues),
                *(group.reports for group in groups),
            )
        ),
        broker_names=frozenset(
            chain((queue.broker_name for queue, _ in queues), *(_broker_names(each.route) for each in routes))
        ),
        scopes=frozenset(info.scope for info in infos if info.scope is not None),
        clusters=frozenset(broker.cluster for broker in brokers),
        zones=frozenset(broker.zone_name for broker in brokers if broker.zone_name is not None),
        addresses=frozenset(
            chain(
                *(broker.broker_addrs.values() for broker in brokers),
                (connection.client_addr for connection in connections if connection.client_addr is not None),
                (view.broker_addr for view in views if view.broker_addr is not None),
                (sighting.seen.where for sighting in routes),
                (group.seen.where for group in groups),
                (view.seen.where for view in views),
            )
        ),
        strategy_classes=frozenset(
            report.strategy_class
            for report in reports
            if report.strategy_class is not None and report.strategy_class not in JAVA_CLASSES
        ),
    )


def _broker_names(route: TopicRouteData) -> Iterator[str]:
    yield from (data.broker_name for data in route.queue_datas)
    yield from (data.broker_name for data in route.broker_datas)
    yield from (part.partition(":")[0] for part in (route.order_topic_conf or "").split(";") if part)
    mapping = route.topic_queue_mapping_by_broker or {}
    yield from mapping
    yield from (info.bname for info in mapping.values() if info.bname is not None)


def _sighting(sighting: RouteSighting, names: Renaming) -> RouteSighting:
    others = tuple(_sighting(other, names) for other in sighting.others)
    return RouteSighting(_route(sighting.route, names), _seen(sighting.seen, names), others)


def _route(route: TopicRouteData, names: Renaming) -> TopicRouteData:
    mapping = route.topic_queue_mapping_by_broker
    return replace(
        route,
        topic=names.topics[route.topic],
        queue_datas=tuple(
            replace(data, broker_name=names.broker_names[data.broker_name]) for data in route.queue_datas
        ),
        broker_datas=tuple(_broker(broker, names) for broker in route.broker_datas),
        order_topic_conf=route.order_topic_conf and _order(route.order_topic_conf, names),
        topic_queue_mapping_by_broker=mapping
        and {names.broker_names[broker_name]: _info(info, names) for broker_name, info in mapping.items()},
    )


def _broker(broker: BrokerData, names: Renaming) -> BrokerData:
    return replace(
        broker,
        cluster=names.clusters.get(broker.cluster, ""),
        broker_name=names.broker_names[broker.broker_name],
        broker_addrs={number: names.addresses[address] for number, address in broker.broker_addrs.items()},
        zone_name=None if broker.zone_name is None else names.zones[broker.zone_name],
    )


def _order(conf: str, names: Renaming) -> str:
    """`broker:count;broker:count` under new names; what else stands there is as malformed afterwards."""
    return ";".join(_order_part(part, names) if part else "" for part in conf.split(";"))


def _order_part(part: str, names: Renaming) -> str:
    broker_name, colon, count = part.partition(":")
    return names.broker_names[broker_name] + colon + (count if _COUNT.fullmatch(count) else "?")


def _info(info: TopicQueueMappingInfo, names: Renaming) -> TopicQueueMappingInfo:
    return replace(
        info,
        topic=None if info.topic is None else names.topics[info.topic],
        scope=None if info.scope is None else names.scopes[info.scope],
        bname=None if info.bname is None else names.broker_names[info.bname],
    )


def _group(group: ConsumerGroup, names: Renaming) -> ConsumerGroup:
    return replace(
        group,
        group=names.groups[group.group],
        seen=_seen(group.seen, names),
        consume_type=_word(group.consume_type),
        message_model=_word(group.message_model),
        consume_from_where=_word(group.consume_from_where),
        views=None if group.views is None else tuple(_view(view, names) for view in group.views),
        topics=None if group.topics is None else tuple(names.topics[topic] for topic in group.topics),
        queues={_queue(queue, names): _state(state, names) for queue, state in group.queues.items()},
        reports={names.client_ids[client_id]: _report(report, names) for client_id, report in group.reports.items()},
        request_modes=None
        if group.request_modes is None
        else {names.topics[topic]: tuple(filter(_word, modes)) for topic, modes in group.request_modes.items()},
    )


def _view(view: MemberView, names: Renaming) -> MemberView:
    return MemberView(
        tuple(_connection(connection, names) for connection in view.connections),
        _seen(view.seen, names),
        None if view.broker_addr is None else names.addresses[view.broker_addr],
    )


def _connection(connection: Connection, names: Renaming) -> Connection:
    return Connection(
        names.client_ids[connection.client_id],
        None if connection.client_addr is None else names.addresses[connection.client_addr],
        _word(connection.language),
        _word(connection.version),
    )


def _queue(queue: MessageQueue, names: Renaming) -> MessageQueue:
    return MessageQueue(names.topics[queue.topic], names.broker_names[queue.broker_name], queue.queue_id)


def _state(state: QueueState, names: Renaming) -> QueueState:
    owners = state.owners
    return replace(state, owners=None if owners is None else frozenset(names.client_ids[owner] for owner in owners))


def _report(report: MemberReport, names: Renaming) -> MemberReport:
    topics, java_class = report.topics, report.strategy_class
    return replace(
        report,
        client_id=names.client_ids[report.client_id],
        topics=None if topics is None else frozenset(names.topics[topic] for topic in topics),
        strategy_class=None if java_class is None else names.strategy_classes.get(java_class, java_class),
        consume_timestamp=_time(report.consume_timestamp),
        pop_topics=None if report.pop_topics is None else frozenset(names.topics[topic] for topic in report.pop_topics),
    )


def _seen(seen: Seen, names: Renaming) -> Seen:
    return replace(seen, where=names.addresses[seen.where])


def _time(text: str | None) -> str | None:
    """Digits, as yyyyMMddHHmmss is; any other text is not known afterwards."""
    return text if text is not None and _DIGITS.fullmatch(text) else None


def _word(text: str | None) -> str | None:
    """One of RocketMQ's constants, which are words in capitals; any other text is not known afterwards."""
    return text if text is not None and _WORD.fullmatch(text) else None
