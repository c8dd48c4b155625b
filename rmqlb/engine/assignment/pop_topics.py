"""Who may read what of a topic that is consumed by POP."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from rmqlb.engine.allocate.strategy import BROKER_STRATEGIES
from rmqlb.engine.assignment.by_broker import ANY_QUEUE, DEFAULT_SHARE, assign_pop
from rmqlb.engine.assignment.consumers import reported_strategies
from rmqlb.errors import AllocationError
from rmqlb.model.finding import INFO, Finding
from rmqlb.model.group import ConsumerGroup, is_grpc
from rmqlb.model.message_queue import MessageQueue, sort_client_ids, sort_queues
from rmqlb.model.owners import PopQueue, PopTopic
from rmqlb.model.route import MASTER_ID, TopicRouteData


def pop_topics(
    group: ConsumerGroup | None,
    routes: Iterable[TopicRouteData],
    client_ids: Sequence[str],
    *,
    strategy: str | None = None,
    share: int | None = None,
) -> tuple[PopTopic, ...]:
    """Who may read what, topic by topic.

    A consumer asks a broker at random, which answers by its own list of consumers: where brokers do not agree, what any
    of them answers may be read.

    Args:
        group: the group as it was seen, None where other consumers than its own are looked at.
        routes: the topics that it consumes by POP.
        client_ids: its consumers.
        strategy: the consumers' strategy; None: as most of them report, or AVG.
        share: `popShareQueueNum`; None: as brokers have it.
    """
    lists = {view.client_ids for view in group.views or ()} if group is not None else set()
    asked = sorted(lists) or [tuple(sort_client_ids(client_ids))]
    chosen = strategy or _reported(group)
    all_ids = (*client_ids, *(group.client_ids or () if group is not None else ()))
    grpc = [client_id for client_id in dict.fromkeys(all_ids) if is_grpc(client_id)]
    return tuple(_topic(route, asked, grpc, chosen, _shares(group, route.topic, share)) for route in routes)


def proxy_topics(routes: Iterable[TopicRouteData], client_ids: Sequence[str] | None) -> tuple[PopTopic, ...]:
    """Who may read what behind a Proxy: every consumer any queue of each master; None stands for unknown consumers.

    Mirrors `RouteActivity.queryAssignment` of the Proxy 5.5.0 for PushConsumers, whoever else is in the group;
    SimpleConsumers go round all queues by themselves.
    """
    ids = None if client_ids is None else tuple(sort_client_ids(set(client_ids)))
    return tuple(
        PopTopic(
            topic=route.topic,
            strategy=None,
            pop_share_queue_nums=(),
            assumed=False,
            queues=tuple(PopQueue(q.broker_name, q.queue_id, ids) for q in sort_queues(_of_masters(route))),
            by_proxy=True,
        )
        for route in routes
    )


def _of_masters(route: TopicRouteData) -> list[MessageQueue]:
    """Any queue of each broker that has a master and readable queues."""
    masters = {broker.broker_name for broker in route.broker_datas if MASTER_ID in broker.broker_addrs}
    names = dict.fromkeys(queue.broker_name for queue in route.subscribe_queues())
    return [MessageQueue(route.topic, name, ANY_QUEUE) for name in names if name in masters]


def pop_findings(topics: Iterable[PopTopic], group: str | None) -> Iterator[Finding]:
    """What is assumed, and what brokers do not answer."""
    given = list(topics)
    assumed = [each.topic for each in given if each.assumed]
    if assumed:
        names = ", ".join(assumed)
        text = f"popShareQueueNum of {names} is not known: the default of brokers, {DEFAULT_SHARE}, is assumed"
        yield Finding("assumed-pop-share", text, group, INFO)
    for strategy in sorted({each.strategy or "" for each in given if each.queues is None}):
        yield Finding(
            "broker-strategy",
            f"consumers ask brokers to assign by {strategy}, which brokers do not have: they answer nothing, and "
            f"consumers keep what they have; brokers have {' and '.join(BROKER_STRATEGIES)}",
            group,
            INFO,
        )


def _topic(
    route: TopicRouteData,
    lists: Sequence[tuple[str, ...]],
    grpc: Sequence[str],
    strategy: str,
    shares: tuple[int, ...],
) -> PopTopic:
    told = shares or (DEFAULT_SHARE,)
    if strategy not in BROKER_STRATEGIES:
        return PopTopic(route.topic, strategy, told, not shares, None)
    queues = route.subscribe_queues()
    consumers: dict[MessageQueue, set[str]] = {queue: set(grpc) for queue in _of_masters(route)} if grpc else {}
    for ids in lists:
        for share in told:
            for client_id, its in _answers(strategy, route, ids, share):
                for queue in its:
                    consumers.setdefault(queue, set()).add(client_id)
    # Where no consumer may read single queues, a line for each broker is all there is to show.
    whole = bool(consumers) and all(queue.queue_id == ANY_QUEUE for queue in consumers)
    rows = tuple(
        PopQueue(queue.broker_name, queue.queue_id, tuple(sort_client_ids(consumers.get(queue, ()))))
        for queue in sort_queues(consumers if whole else {*queues, *consumers})
    )
    return PopTopic(route.topic, strategy, told, not shares, rows)


def _answers(
    strategy: str, route: TopicRouteData, client_ids: Sequence[str], share: int
) -> Iterator[tuple[str, Iterable[MessageQueue]]]:
    """Client id → what a broker with this list answers; gRPC clients ask a Proxy instead."""
    queues = route.subscribe_queues()
    try:
        answers = assign_pop(strategy, queues, client_ids, share)
    except AllocationError:
        return
    yield from ((client_id, its) for client_id, its in answers.items() if not is_grpc(client_id))


def _shares(group: ConsumerGroup | None, topic: str, given: int | None) -> tuple[int, ...]:
    if given is not None:
        return (given,)
    return (group.pop_share_queue_nums or {}).get(topic, ()) if group is not None else ()


def _reported(group: ConsumerGroup | None) -> str:
    reported = Counter(reported_strategies(group).values()) if group is not None else Counter()
    return reported.most_common(1)[0][0] if reported else BROKER_STRATEGIES[0]
