"""A snapshot under new names.

What is neither a name nor a number is dropped, unless it is one of RocketMQ's own words: texts may say anything.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import get_args

from msgspec.structs import replace

from rmqlb.engine.allocate.rules import HASHING, JAVA_CLASSES, NAMES
from rmqlb.engine.redact.renaming import Kind, Renaming, rename
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


Name = Callable[[Kind, str], str]
"""What stands for a name of a kind."""


def redact(snapshot: ClusterSnapshot) -> tuple[ClusterSnapshot, Renaming]:
    """The snapshot under new names, and which they are.

    It is gone through twice in the same way, so that no name is renamed that was not found: the first time every name
    stands for itself and is only noted.
    """
    found: dict[Kind, set[str]] = {kind: set() for kind in get_args(Kind)}

    def noted(kind: Kind, name: str) -> str:
        found[kind].add(name)
        return name

    _renamed(snapshot, noted)
    names = rename(found)
    return _renamed(snapshot, lambda kind, name: names.of(kind)[name]), names


def _renamed(snapshot: ClusterSnapshot, name: Name) -> ClusterSnapshot:
    return replace(
        snapshot,
        endpoint="redacted",
        context=None,
        routes={name("topics", topic): _sighting(each, name) for topic, each in snapshot.routes.items()},
        groups={name("groups", group): _group(each, name) for group, each in snapshot.groups.items()},
        unread=tuple(Unread("part", str(number), "redacted") for number, _ in enumerate(snapshot.unread, 1)),
        notes=(NOTE,),
    )


def _sighting(sighting: RouteSighting, name: Name) -> RouteSighting:
    others = tuple(_sighting(other, name) for other in sighting.others)
    return RouteSighting(_route(sighting.route, name), _seen(sighting.seen, name), others)


def _route(route: TopicRouteData, name: Name) -> TopicRouteData:
    mapping = route.topic_queue_mapping_by_broker
    return replace(
        route,
        topic=name("topics", route.topic),
        queue_datas=tuple(
            replace(data, broker_name=name("broker_names", data.broker_name)) for data in route.queue_datas
        ),
        broker_datas=tuple(_broker(broker, name) for broker in route.broker_datas),
        order_topic_conf=route.order_topic_conf and _order(route.order_topic_conf, name),
        topic_queue_mapping_by_broker=mapping
        and {name("broker_names", broker_name): _info(info, name) for broker_name, info in mapping.items()},
    )


def _broker(broker: BrokerData, name: Name) -> BrokerData:
    return replace(
        broker,
        cluster=broker.cluster and name("clusters", broker.cluster),
        broker_name=name("broker_names", broker.broker_name),
        broker_addrs={number: name("addresses", address) for number, address in broker.broker_addrs.items()},
        zone_name=_known(name, "zones", broker.zone_name),
    )


def _order(conf: str, name: Name) -> str:
    """`broker:count;broker:count` under new names; what else stands there is as malformed afterwards."""
    return ";".join(_order_part(part, name) if part else "" for part in conf.split(";"))


def _order_part(part: str, name: Name) -> str:
    broker_name, colon, count = part.partition(":")
    return name("broker_names", broker_name) + colon + (count if _COUNT.fullmatch(count) else "?")


def _info(info: TopicQueueMappingInfo, name: Name) -> TopicQueueMappingInfo:
    return replace(
        info,
        topic=_known(name, "topics", info.topic),
        scope=_known(name, "scopes", info.scope),
        bname=_known(name, "broker_names", info.bname),
    )


def _group(group: ConsumerGroup, name: Name) -> ConsumerGroup:
    return replace(
        group,
        group=name("groups", group.group),
        seen=_seen(group.seen, name),
        consume_type=_word(group.consume_type),
        message_model=_word(group.message_model),
        consume_from_where=_word(group.consume_from_where),
        views=None if group.views is None else tuple(_view(view, name) for view in group.views),
        topics=None if group.topics is None else tuple(name("topics", topic) for topic in group.topics),
        queues={_queue(queue, name): _state(state, name) for queue, state in group.queues.items()},
        reports={name("client_ids", client_id): _report(report, name) for client_id, report in group.reports.items()},
        request_modes=None
        if group.request_modes is None
        else {name("topics", topic): tuple(filter(_word, modes)) for topic, modes in group.request_modes.items()},
    )


def _view(view: MemberView, name: Name) -> MemberView:
    return MemberView(
        tuple(_connection(connection, name) for connection in view.connections),
        _seen(view.seen, name),
        _known(name, "addresses", view.broker_addr),
    )


def _connection(connection: Connection, name: Name) -> Connection:
    return Connection(
        name("client_ids", connection.client_id),
        _known(name, "addresses", connection.client_addr),
        _word(connection.language),
        _word(connection.version),
    )


def _queue(queue: MessageQueue, name: Name) -> MessageQueue:
    return MessageQueue(name("topics", queue.topic), name("broker_names", queue.broker_name), queue.queue_id)


def _state(state: QueueState, name: Name) -> QueueState:
    owners = state.owners
    return replace(state, owners=None if owners is None else frozenset(name("client_ids", owner) for owner in owners))


def _report(report: MemberReport, name: Name) -> MemberReport:
    topics, popped, java_class = report.topics, report.pop_topics, report.strategy_class
    return replace(
        report,
        client_id=name("client_ids", report.client_id),
        topics=None if topics is None else frozenset(name("topics", topic) for topic in topics),
        strategy_class=java_class if java_class in JAVA_CLASSES else _known(name, "strategy_classes", java_class),
        consume_timestamp=_time(report.consume_timestamp),
        pop_topics=None if popped is None else frozenset(name("topics", topic) for topic in popped),
    )


def _seen(seen: Seen, name: Name) -> Seen:
    return replace(seen, where=name("addresses", seen.where))


def _known(name: Name, kind: Kind, text: str | None) -> str | None:
    return None if text is None else name(kind, text)


def _time(text: str | None) -> str | None:
    """Digits, as yyyyMMddHHmmss is; any other text is not known afterwards."""
    return text if text is not None and _DIGITS.fullmatch(text) else None


def _word(text: str | None) -> str | None:
    """One of RocketMQ's constants, which are words in capitals; any other text is not known afterwards."""
    return text if text is not None and _WORD.fullmatch(text) else None
