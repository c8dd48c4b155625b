"""The fingerprint of what a plan or a simulation is made from, and what has changed since an earlier one.

Rule of this file: what is compared is what was used, so that it is a small snapshot of its own: each consumer reports
the strategy that it was taken to run, and no queue has a state.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from importlib import import_module

import msgspec
from msgspec.structs import replace

from rmqlb.engine.allocate.sdks import JAVA, SDKS
from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.assignment.assign import Members
from rmqlb.model.group import (
    BROADCASTING,
    CLUSTERING,
    CONSUME_PASSIVELY,
    Connection,
    ConsumerGroup,
    MemberReport,
    MemberView,
    Seen,
    States,
)
from rmqlb.model.java import sort_key
from rmqlb.model.made_from import Against, MadeFrom, UsedBroker, UsedConsumer, UsedMapping, UsedTopic
from rmqlb.model.message_queue import sort_client_ids
from rmqlb.model.route import BrokerData, QueueData, TopicQueueMappingInfo, TopicRouteData
from rmqlb.model.snapshot import ClusterSnapshot, Everything, RouteSighting
from rmqlb.model.times import utc_text

_DIGITS = 16
_NOW = Seen("now")


def made_from(
    routes: Sequence[TopicRouteData],
    *,
    group: str | None = None,
    members: Members | None = None,
    states: States | None = None,
    taken_at: datetime | None = None,
) -> MadeFrom:
    """What a result is made from; without members, as of a producer, its routes alone."""
    names = {route.topic for route in routes}
    states = {queue: state for queue, state in (states or {}).items() if queue.topic in names}
    owners = [(str(queue), state.sorted_owners) for queue, state in states.items() if state.owners is not None]
    offsets = [
        (str(queue), state.broker_offset, state.consumer_offset)
        for queue, state in states.items()
        if (state.broker_offset, state.consumer_offset) != (None, None)
    ]
    found = MadeFrom(
        fingerprint="",
        owners_fingerprint=_hash(sorted(owners)) if owners else None,
        offsets_fingerprint=_hash(sorted(offsets, key=lambda each: each[0])) if offsets else None,
        taken_at=None if taken_at is None else utc_text(taken_at),
        group=group,
        broadcasting=members is not None and members.broadcasting,
        topics=tuple(_topic(route) for route in sorted(routes, key=lambda route: sort_key(route.topic))),
        consumers=() if members is None else tuple(_consumers(members)),
    )
    consumers = [_with_sdk(each) for each in found.consumers]
    return replace(found, fingerprint=_hash((found.group, found.broadcasting, found.topics, consumers)))


def since(earlier: MadeFrom, now: MadeFrom, file: str, settings: Settings | None = None) -> Against:
    """What has changed since an earlier result was made.

    Args:
        file: that holds the earlier result.
        settings: what the consumers' strategy objects were constructed with; None is RocketMQ's defaults.
    """
    from rmqlb.engine.diff.compare import compare_snapshots

    same = earlier.fingerprint == now.fingerprint
    diff = None
    if not same:
        diff = compare_snapshots(_snapshot(earlier), _snapshot(now), Everything(system=True), settings=settings)
    return Against(
        file=file,
        taken_at=earlier.taken_at,
        fingerprint=earlier.fingerprint,
        same=same,
        same_owners=_equal(earlier.owners_fingerprint, now.owners_fingerprint),
        same_offsets=_equal(earlier.offsets_fingerprint, now.offsets_fingerprint),
        group=next(iter(diff.groups), None) if diff else None,
        topics=diff.topics if diff else (),
    )


def _equal(one: str | None, other: str | None) -> bool | None:
    return None if one is None or other is None else one == other


def _hash(value: object) -> str:
    return sha256(msgspec.json.encode(value, order="sorted"))[:_DIGITS]


def sha256(data: bytes) -> str:
    """As `hashlib` has it, which loads OpenSSL in 2 ms: from the interpreter's own module, where it has one."""
    for name in ("_sha2", "_sha256", "hashlib"):
        try:
            digest: str = import_module(name).sha256(data).hexdigest()
        except ImportError:
            continue
        return digest
    raise RuntimeError("this Python has no sha256")


def _with_sdk(consumer: UsedConsumer) -> object:
    """The consumer with its client library, unless that is Java: fingerprints of earlier results stay what they are."""
    found: dict[str, object] = msgspec.to_builtins(consumer)
    return found if consumer.sdk != JAVA.name else {key: value for key, value in found.items() if key != "sdk"}


def _topic(route: TopicRouteData) -> UsedTopic:
    ids = {name: tuple(sorted(broker.broker_addrs)) for name, broker in route.brokers_by_name().items()}
    brokers = (
        UsedBroker(
            data.broker_name, data.read_queue_nums, data.write_queue_nums, data.perm, ids.get(data.broker_name, ())
        )
        for data in sorted(route.queue_datas, key=lambda data: sort_key(data.broker_name))
    )
    mappings = (
        UsedMapping(name, info.scope, info.total_queues, info.bname, info.epoch, tuple(sorted(info.curr_id_map)))
        for name, info in sorted((route.topic_queue_mapping_by_broker or {}).items())
    )
    return UsedTopic(route.topic, tuple(brokers), route.order_topic_conf, tuple(mappings))


def _consumers(members: Members) -> Iterable[UsedConsumer]:
    processes = Counter(members.client_ids)
    for client_id in sort_client_ids(processes):
        topics = members.subscribed.get(client_id)
        strategy = BROADCASTING if members.broadcasting else members.strategy_for(client_id)
        if strategy == members.group_strategy:
            strategy = members.name
        sorted_topics = None if topics is None else tuple(sorted(topics, key=sort_key))
        yield UsedConsumer(client_id, processes[client_id], strategy, sorted_topics, members.sdk_for(client_id).name)


def _snapshot(used: MadeFrom) -> ClusterSnapshot:
    """What was used as a snapshot, which differs from another one as clusters do."""
    routes = {topic.topic: RouteSighting(_route(topic), _NOW) for topic in used.topics}
    group = _group(used)
    taken_at = None if used.taken_at is None else datetime.fromisoformat(used.taken_at)
    return ClusterSnapshot("used", "used", taken_at, routes, {} if group is None else {group.group: group})


def _route(topic: UsedTopic) -> TopicRouteData:
    return TopicRouteData(
        topic.topic,
        tuple(QueueData(b.broker_name, b.read_queue_nums, b.write_queue_nums, b.perm) for b in topic.brokers),
        tuple(
            BrokerData("", broker.broker_name, dict.fromkeys(broker.broker_ids, broker.broker_name))
            for broker in topic.brokers
        ),
        topic.order_topic_conf,
        {
            each.broker_name: TopicQueueMappingInfo(
                topic.topic, each.scope, each.total_queues, each.bname, each.epoch, {i: i for i in each.queue_ids}
            )
            for each in topic.mappings
        }
        or None,
    )


def _connection(used: UsedConsumer) -> Connection:
    sdk = SDKS.get(used.sdk, JAVA)
    return Connection(used.client_id, None, sdk.name.upper(), next(iter(sdk.reports), None))


def _group(used: MadeFrom) -> ConsumerGroup | None:
    if not used.consumers and used.group is None:
        return None
    connections = (_connection(each) for each in used.consumers for _ in range(each.processes))
    return ConsumerGroup(
        used.group or "",
        _NOW,
        consume_type=CONSUME_PASSIVELY,
        message_model=BROADCASTING if used.broadcasting else CLUSTERING,
        topics=tuple(topic.topic for topic in used.topics),
        views=(MemberView(tuple(connections), _NOW),),
        reports={
            each.client_id: MemberReport(
                each.client_id, None if each.topics is None else frozenset(each.topics), each.strategy
            )
            for each in used.consumers
        },
    )
