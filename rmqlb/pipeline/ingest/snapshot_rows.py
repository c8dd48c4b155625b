"""A snapshot's rows in the tables that ingest writes. No Spark here.

A row is a tuple in the order of the table's columns without cluster, date and snapshot. The model and the engine decide
the clients' queue lists and who takes part in a rebalance. Rows come one by one: a large snapshot is in memory once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rmqlb.engine.assignment.brokers import pop_topics, proxy_topics
from rmqlb.engine.assignment.consumers import (
    behind_proxy,
    must_be_listed,
    only_grpc,
    pop_refusal,
    popped_topics,
    rebalanced_members,
    reported_strategies,
)
from rmqlb.errors import DataError
from rmqlb.model.group import BROADCASTING, CONSUME_POP, Connection, ConsumerGroup, retry_topic
from rmqlb.model.java import sort_key
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.route import BrokerData, TopicRouteData
from rmqlb.model.snapshot import ClusterSnapshot
from rmqlb.pipeline.ingest.fleet_rows import fleet_row
from rmqlb.pipeline.schemas import (
    BROKERS,
    FLEET,
    GROUPS,
    OFFSETS,
    OWNERS,
    POP_QUEUES,
    PROCESSES,
    QUEUES,
    SUBSCRIPTIONS,
    TOPICS,
    Table,
)

Row = tuple[Any, ...]
Runs = list[dict[str, Any]]
_Places = Mapping[str, tuple[int, int]]
"""Broker name → the place of its first queue among the subscribe queues, and how many it has there."""


def rows_of(snapshot: ClusterSnapshot) -> Iterator[tuple[Table, Iterator[Row]]]:
    """Each table with its rows of a snapshot, topics and groups by name.

    Raises:
        DataError: the subscribe queues of a route do not stand in runs; raised before the first row.
    """
    routes = [sighting.route for _, sighting in sorted(snapshot.routes.items())]
    groups = [group for _, group in sorted(snapshot.groups.items())]
    subscribe = {route.topic: _subscribe_runs(route) for route in routes}
    places = {topic: _places(found) for topic, found in subscribe.items()}
    yield TOPICS, (_topic_row(route, subscribe[route.topic]) for route in routes)
    yield QUEUES, (row for route in routes for row in _queue_rows(route))
    yield BROKERS, iter(_broker_rows(snapshot))
    yield GROUPS, (_group_row(group) for group in groups)
    yield PROCESSES, (row for group in groups for row in _process_rows(group))
    yield SUBSCRIPTIONS, (row for group in groups for row in _subscription_rows(group, snapshot))
    yield OWNERS, (row for group in groups for row in _owner_rows(group, places))
    yield OFFSETS, (row for group in groups for row in _offset_rows(group, places))
    yield POP_QUEUES, (row for group in groups for row in _pop_rows(group, snapshot))
    whole = (_fleet_row(group, snapshot, subscribe, places) for group in groups)
    yield FLEET, (row for row in whole if row is not None)


def runs(queues: Iterable[MessageQueue]) -> Runs | None:
    """Queues in runs of one broker's 0, 1, …; None when they do not stand in such runs.

    >>> runs([MessageQueue("T", "a", 0), MessageQueue("T", "a", 1), MessageQueue("T", "b", 0)])
    [{'brokerName': 'a', 'queues': 2}, {'brokerName': 'b', 'queues': 1}]
    >>> runs([MessageQueue("T", "a", 1)]) is None
    True
    """
    found: Runs = []
    broker_name, after = None, 0
    for queue in queues:
        if queue.broker_name == broker_name and queue.queue_id == after:
            found[-1]["queues"] += 1
        elif queue.queue_id == 0:
            found.append({"brokerName": queue.broker_name, "queues": 1})
        else:
            return None
        broker_name, after = queue.broker_name, queue.queue_id + 1
    return found


def _subscribe_runs(route: TopicRouteData) -> Runs:
    found = runs(route.subscribe_queues())
    if found is None:
        raise DataError(
            f"topic {route.topic}: two scopes of a static topic make one name, so its queues are not distinct"
        )
    return found


def _places(subscribe: Runs) -> _Places:
    places: dict[str, tuple[int, int]] = {}
    start = 0
    for run in subscribe:
        places[run["brokerName"]] = (start, run["queues"])
        start += run["queues"]
    return places


def _place(queue: MessageQueue, places: Mapping[str, _Places]) -> int | None:
    """The queue's index among its topic's subscribe queues; None when the route does not have it, or is not there."""
    start, count = places.get(queue.topic, {}).get(queue.broker_name, (0, 0))
    return start + queue.queue_id if 0 <= queue.queue_id < count else None


def _publish_queues(route: TopicRouteData) -> tuple[list[MessageQueue], str | None]:
    """The producers' queues; none, and why, when a client cannot make them of the route."""
    try:
        return route.publish_queues(), None
    except DataError as error:
        return [], error.message


def _topic_row(route: TopicRouteData, subscribe: Runs) -> Row:
    queues, problem = _publish_queues(route)
    publish = None if problem else runs(queues)
    if publish is None and problem is None:
        problem = f"the queues of topic {route.topic} alternate between the scopes of a static topic"
    return route.topic, subscribe, publish, problem, route.order_topic_conf, route.is_static


def _queue_rows(route: TopicRouteData) -> Iterator[Row]:
    """The queues that consumers see, in their order, then those that only producers see, in theirs."""
    publish: dict[tuple[str, int], int] = {}
    for index, queue in enumerate(_publish_queues(route)[0]):
        publish.setdefault((queue.broker_name, queue.queue_id), index)
    for index, queue in enumerate(route.subscribe_queues()):
        place = publish.pop((queue.broker_name, queue.queue_id), None)
        yield route.topic, queue.broker_name, queue.queue_id, index, place
    for (broker_name, queue_id), place in publish.items():
        yield route.topic, broker_name, queue_id, None, place


def _broker_rows(snapshot: ClusterSnapshot) -> list[Row]:
    """Each broker once, as the route tells it that was seen last; of routes seen at one time, the last by topic."""
    sightings = sorted(
        snapshot.routes.items(), key=lambda item: (item[1].seen.at is not None, str(item[1].seen.at), item[0])
    )
    brokers: dict[tuple[str, str], BrokerData] = {}
    for _, sighting in sightings:
        for broker in sighting.route.broker_datas:
            brokers[broker.broker_name, broker.cluster] = broker
    return [
        (name, cluster or None, sorted(broker.broker_addrs.items()), broker.has_master)
        for (name, cluster), broker in sorted(brokers.items())
    ]


def _group_row(group: ConsumerGroup) -> Row:
    ids = group.client_ids
    return (
        group.group,
        group.consume_type,
        group.message_model,
        group.consume_from_where,
        None if ids is None else len(ids),
        group.has_split_view,
        _strategy(group),
        len(set(reported_strategies(group).values())) > 1,
        *_problem(group),
    )


def _problem(group: ConsumerGroup) -> tuple[str | None, str | None]:
    """Why its queues are not its clients' to allocate, and the code of that."""
    try:
        rebalanced_members(group)
        must_be_listed(group)
    except DataError as error:
        return error.message, error.code
    popped = popped_topics(group)
    if not popped:
        return None, None
    refusal = pop_refusal(group, popped)
    return refusal.message, refusal.code


def _fleet_row(
    group: ConsumerGroup, snapshot: ClusterSnapshot, subscribe: Mapping[str, Runs], places: Mapping[str, _Places]
) -> Row | None:
    """None for a group whose queues are not its clients' to allocate, or of which no topic has a route."""
    if _problem(group) != (None, None):
        return None
    counted = set(rebalanced_members(group))
    absent = {topic: ids for _, topic, _, ids in _subscription_rows(group, snapshot)}
    processes = [
        (client_id, connection.language, connection.version)
        for client_id, connection in _processes(group)
        if client_id in counted
    ]
    return fleet_row(group, _strategy(group), processes, absent, subscribe, places)


def _strategy(group: ConsumerGroup) -> str | None:
    """What most of its consumers report, the first by client id of equals."""
    strategies = Counter(reported_strategies(group).values())
    return strategies.most_common(1)[0][0] if strategies else None


def _processes(group: ConsumerGroup) -> Iterator[tuple[str, Connection]]:
    """Each process: its client id and its connection, in the clients' order."""
    connections = _connections(group)
    nth: dict[str, int] = {}
    for client_id in group.client_ids or ():
        index = nth[client_id] = nth.get(client_id, -1) + 1
        connection = connections[client_id][index]
        yield client_id, group.connection_of[client_id] if connection.language is None else connection


def _process_rows(group: ConsumerGroup) -> Iterator[Row]:
    strategies = reported_strategies(group)
    for place, (client_id, connection) in enumerate(_processes(group)):
        report = group.reports.get(client_id)
        yield (
            group.group,
            place,
            client_id,
            connection.language,
            connection.version,
            strategies.get(client_id),
            None if report is None else report.strategy_class,
        )


def _connections(group: ConsumerGroup) -> dict[str, list[Connection]]:
    """Client id → its channels at a broker or Proxy that lists as many as `client_ids` counts."""
    most: dict[str, list[Connection]] = {}
    processes = Counter(group.client_ids or ())
    for view in group.lists:
        here: dict[str, list[Connection]] = {}
        for connection in view.connections:
            here.setdefault(connection.client_id, []).append(connection)
        for client_id, found in here.items():
            if len(most.get(client_id, ())) < len(found) <= processes[client_id]:
                most[client_id] = found
    return most


def _subscription_rows(group: ConsumerGroup, snapshot: ClusterSnapshot) -> Iterator[Row]:
    members = group.reports.keys() if group.client_ids is None else set(group.client_ids)
    reported = {
        client_id: report.topics
        for client_id, report in group.reports.items()
        if report.topics is not None and client_id in members
    }
    ids = sorted(reported, key=sort_key)
    own = retry_topic(group.group)
    retry = (own,) if group.topics is not None and own in snapshot.routes and group.subscribes_to(own) else ()
    for topic in dict.fromkeys((*(group.topics or ()), *retry)):
        absent = [client_id for client_id in ids if topic not in reported[client_id]]
        yield group.group, topic, topic in snapshot.routes, absent


def _owner_rows(group: ConsumerGroup, places: Mapping[str, _Places]) -> Iterator[Row]:
    for queue, state in group.queues.items():
        if state.owners is not None:
            owners = sorted(state.owners, key=sort_key)
            yield group.group, queue.topic, queue.broker_name, queue.queue_id, _place(queue, places), owners


def _offset_rows(group: ConsumerGroup, places: Mapping[str, _Places]) -> Iterator[Row]:
    for queue, state in group.queues.items():
        known = (state.broker_offset, state.consumer_offset, state.lag, state.last_timestamp)
        if known != (None, None, None, None):
            yield group.group, queue.topic, queue.broker_name, queue.queue_id, _place(queue, places), *known


def _pop_rows(group: ConsumerGroup, snapshot: ClusterSnapshot) -> Iterator[Row]:
    if group.message_model == BROADCASTING:
        return
    own = [topic for topic in group.own_topics or () if topic in snapshot.routes]
    if only_grpc(group) or behind_proxy(group) is not None:
        topics = proxy_topics([snapshot.routes[topic].route for topic in own], group.client_ids or None)
    else:
        popped = own if group.consume_type == CONSUME_POP else [topic for topic in own if topic in popped_topics(group)]
        topics = pop_topics(group, [snapshot.routes[topic].route for topic in popped], group.client_ids or ())
    for its in topics:
        of_topic = group.group, its.topic, its.strategy, list(its.pop_share_queue_nums), its.assumed
        if its.queues is None:
            yield *of_topic, None, None, None
        for queue in its.queues or ():
            is_known = queue.consumers is not None and group.client_ids is not None
            yield *of_topic, queue.broker_name, queue.queue_id, list(queue.consumers or ()) if is_known else None
