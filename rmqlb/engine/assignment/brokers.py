"""Consumers that let brokers assign queues (QUERY_ASSIGNMENT): owners in PULL mode, readers in POP mode.

A consumer requests its queues if `clientRebalance=false`, it is not orderly and does not broadcast. A random broker of
the topic answers from its own consumer list and route, so brokers that disagree give different answers. Mirrors
`QueryAssignmentProcessor` of 5.5.0.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import product
from typing import Literal

from msgspec import Struct

from rmqlb.engine.allocate import prepare
from rmqlb.engine.allocate.strategy import BROKER_STRATEGIES, Settings, Strategy
from rmqlb.engine.arguments import items, require
from rmqlb.engine.assignment.consumers import reported_strategies
from rmqlb.errors import AllocationError, UsageError
from rmqlb.model.group import RETRY_PREFIX, ConsumerGroup, is_grpc
from rmqlb.model.limits import MOST_CONSUMERS, MOST_QUEUES
from rmqlb.model.message_queue import MessageQueue, QueueName, grouped, is_blank, sort_client_ids, sort_queues
from rmqlb.model.owners import AssignmentMismatch, BrokerAssignments, PopQueue, PopTopic
from rmqlb.model.result import INFO, Finding, counted, of_all
from rmqlb.model.route import MASTER_ID, TopicRouteData
from rmqlb.model.snapshot import AssignmentAnswer, AssignmentQuestion

RequestMode = Literal["PULL", "POP"]
ANY_QUEUE = -1  # instead of a queue's number: the broker takes messages from any of its queues
DEFAULT_SHARE = -1  # `defaultPopShareQueueNum`: every consumer may read every queue
_LMQ_PREFIX = "%LMQ%"


class AskedBroker(Struct, frozen=True):
    broker_name: str
    client_ids: tuple[str, ...] | None  # a consumer per connection; None when the broker does not know the group
    # its mode for topic and group (`GET_ALL_MESSAGE_REQUEST_MODE`), otherwise its `defaultMessageRequestMode`
    mode: RequestMode = "PULL"
    # POP: the number of further consumers whose queues a consumer reads; 0 or less is all
    pop_share_queue_num: int = DEFAULT_SHARE
    balances: bool = True  # `serverLoadBalancerEnable`; otherwise each consumer gets every queue


def assign_pop(
    strategy: str, queues: Iterable[MessageQueue], client_ids: Iterable[str], share: int, *, presorted: bool = False
) -> dict[str, list[MessageQueue]]:
    """Which queues each consumer may read by POP (`QueryAssignmentProcessor.allocate4Pop` of 5.5.0).

    No consumer owns a queue: several may take messages from one. With `share` at 0 or less, or at least the number of
    the other consumers, every consumer reads every queue.

    Args:
        strategy: AVG or AVG_BY_CIRCLE, the two that brokers have.
        queues: the read queues of one topic, in any order.
        client_ids: the consumers in the broker's list, in any order; an ID of two processes appears twice.
        share: `popShareQueueNum` of topic and group: of how many further consumers a consumer reads the queues.
        presorted: use both lists in their order instead of sorting them as the broker does.

    Returns:
        Client ID → its queues, each once, in the order of the sorted IDs. Queue ID -1 is any queue of the broker.

    Raises:
        AllocationError: the broker's strategy throws; it then answers nothing, and consumers keep what they have.
        UsageError: brokers have no such strategy, or an argument is of the wrong type.

    >>> assign_pop("AVG", [MessageQueue("T", "a", i) for i in range(3)], ["x", "y", "z"], 1)["z"]
    [MessageQueue(topic='T', broker_name='a', queue_id=2), MessageQueue(topic='T', broker_name='a', queue_id=0)]
    """
    for name, value, kind in (("strategy", strategy, str), ("share", share, int), ("presorted", presorted, bool)):
        require(value, kind, name)
    if strategy not in BROKER_STRATEGIES:
        known = " and ".join(BROKER_STRATEGIES)
        raise UsageError(f"{strategy[:100]}: brokers have only {known}", hint=f"pass --strategy {BROKER_STRATEGIES[0]}")
    listed = items(queues, MessageQueue, "queues", MOST_QUEUES)
    ids = items(client_ids, str, "client_ids", MOST_CONSUMERS)
    if not presorted:
        listed, ids = sort_queues(listed), sort_client_ids(ids)
    prepared = prepare(strategy, listed, ids, Settings())
    return {client_id: list(dict.fromkeys(pop_queues(prepared, listed, ids, client_id, share))) for client_id in ids}


def pop_queues(
    strategy: Strategy, queues: Sequence[MessageQueue], client_ids: Sequence[str], client_id: str, share: int
) -> Iterator[MessageQueue]:
    """The answer of `allocate4Pop` for a consumer, with duplicates; both lists are sorted (raises AllocationError)."""
    count = len(client_ids)
    if share <= 0 or share >= count - 1:
        yield from (MessageQueue(queue.topic, queue.broker_name, ANY_QUEUE) for queue in queues)
    elif count <= len(queues):
        yield from strategy.share(client_id)
        if client_id in client_ids:
            index = client_ids.index(client_id)
            for following in range(index + 1, index + 1 + share):
                yield from strategy.share(client_ids[following % count])
    elif is_blank(client_id):
        raise AllocationError("currentCID is empty")
    elif not queues:
        raise AllocationError("mqAll is null or mqAll empty")
    elif client_id in client_ids:
        yield queues[client_ids.index(client_id) % len(queues)]


def query_assignment(
    broker: AskedBroker,
    strategy: str,
    topic: str,
    queues: Sequence[MessageQueue],
    client_ids: Iterable[str],
    *,
    broadcasting: bool = False,  # they report BROADCASTING, so a broker gives them all queues
) -> dict[str, list[MessageQueue] | None]:
    """A broker's sorted answers to consumers (`doLoadBalance`); without one (None), a consumer keeps its queues."""
    asking = list(dict.fromkeys(client_ids))
    if topic.startswith(_LMQ_PREFIX) and not broadcasting:
        queues = [MessageQueue(topic, broker.broker_name, 0)]
    ordered = sort_queues(set(queues))
    if broadcasting or not broker.balances:
        return {client_id: list(ordered) for client_id in asking}
    if broker.client_ids is None or strategy not in BROKER_STRATEGIES:
        return dict.fromkeys(asking)
    ids = sort_client_ids(broker.client_ids)
    prepared = prepare(strategy, ordered, ids, Settings())
    by_pop = broker.mode == "POP" and not topic.startswith(RETRY_PREFIX)
    answers: dict[str, list[MessageQueue] | None] = dict.fromkeys(asking)
    for client_id in asking:
        with suppress(AllocationError):
            of_pop = pop_queues(prepared, ordered, ids, client_id, broker.pop_share_queue_num)
            answers[client_id] = sort_queues(set(of_pop if by_pop else prepared.share(client_id)))
    return answers


def pop_topics(
    group: ConsumerGroup | None,
    routes: Iterable[TopicRouteData],
    client_ids: Sequence[str],
    *,
    strategy: str | None = None,  # of the consumers; None takes the one that most of them report, or AVG
    share: int | None = None,  # `popShareQueueNum`; None takes the brokers' settings
) -> tuple[PopTopic, ...]:
    """The consumers that may read each queue of each topic, by the answers of all brokers."""
    views = () if group is None else group.views or ()
    lists = sorted({view.client_ids for view in views}) or [tuple(sort_client_ids(client_ids))]
    reported = Counter(reported_strategies(group).values() if group is not None else ())
    chosen = strategy or (reported.most_common(1)[0][0] if reported else BROKER_STRATEGIES[0])
    all_ids = (*client_ids, *(group.client_ids or () if group is not None else ()))
    grpc = [client_id for client_id in dict.fromkeys(all_ids) if is_grpc(client_id)]
    known = {} if group is None else group.pop_share_queue_nums or {}
    return tuple(
        _topic(route, lists, grpc, chosen, known.get(route.topic, ()) if share is None else (share,))
        for route in routes
    )


def proxy_topics(routes: Iterable[TopicRouteData], client_ids: Sequence[str] | None) -> tuple[PopTopic, ...]:
    """Topics behind a Proxy, where every consumer may read any queue of each master; None are unknown consumers.

    Mirrors `RouteActivity.queryAssignment` (5.5.0) for PushConsumers; SimpleConsumers rotate over all queues.
    """
    ids = None if client_ids is None else tuple(sort_client_ids(set(client_ids)))
    return tuple(
        PopTopic(
            route.topic,
            strategy=None,
            pop_share_queue_nums=(),
            assumed=False,
            queues=tuple(PopQueue(q.broker_name, q.queue_id, ids) for q in sort_queues(_of_masters(route))),
            by_proxy=True,
        )
        for route in routes
    )


def _of_masters(route: TopicRouteData) -> list[MessageQueue]:
    masters = {broker.broker_name for broker in route.broker_datas if MASTER_ID in broker.broker_addrs}
    names = dict.fromkeys(queue.broker_name for queue in route.subscribe_queues())
    return [MessageQueue(route.topic, name, ANY_QUEUE) for name in names if name in masters]


def pop_findings(topics: Sequence[PopTopic], group: str | None) -> Iterator[Finding]:
    if assumed := [each.topic for each in topics if each.assumed]:
        text = f"popShareQueueNum of {', '.join(assumed)} is unknown; rmqlb assumes the default, {DEFAULT_SHARE}"
        yield Finding("assumed-pop-share", text, group, INFO)
    for strategy in sorted({each.strategy or "" for each in topics if each.queues is None}):
        text = (
            f"consumers let brokers assign queues by {strategy}, which brokers do not have: they return nothing, and "
            f"consumers keep their queues; brokers have {' and '.join(BROKER_STRATEGIES)}"
        )
        yield Finding("broker-strategy", text, group, INFO)


def _topic(
    route: TopicRouteData, lists: Sequence[tuple[str, ...]], grpc: Sequence[str], strategy: str, known: tuple[int, ...]
) -> PopTopic:
    shares = known or (DEFAULT_SHARE,)
    if strategy not in BROKER_STRATEGIES:
        return PopTopic(route.topic, strategy, shares, not known, None)
    queues = route.subscribe_queues()
    consumers: dict[MessageQueue, set[str]] = {queue: set(grpc) for queue in _of_masters(route)} if grpc else {}
    for ids, share in product(lists, shares):
        try:
            answers = assign_pop(strategy, queues, ids, share)
        except AllocationError:
            continue
        for client_id, own in answers.items():
            for queue in own if not is_grpc(client_id) else ():  # a gRPC client asks a Proxy
                consumers.setdefault(queue, set()).add(client_id)
    # Where no consumer may read single queues, one line per broker is enough.
    whole = bool(consumers) and all(queue.queue_id == ANY_QUEUE for queue in consumers)
    rows = tuple(
        PopQueue(queue.broker_name, queue.queue_id, tuple(sort_client_ids(consumers.get(queue, ()))))
        for queue in sort_queues(consumers if whole else {*queues, *consumers})
    )
    return PopTopic(route.topic, strategy, shares, not known, rows)


def assignment_questions(group: ConsumerGroup, routes: Sequence[TopicRouteData]) -> Iterator[AssignmentQuestion]:
    """A question to every broker of each topic for each consumer, if brokers assign the queues of some consumer."""
    if not any(report.client_rebalance is False for report in group.reports.values()):
        return
    strategies = reported_strategies(group)
    for route in routes:
        for broker in sorted(route.broker_datas, key=lambda broker: broker.broker_name):
            for client_id in dict.fromkeys(group.client_ids or ()) if broker.address is not None else ():
                strategy = strategies.get(client_id, BROKER_STRATEGIES[0])
                yield AssignmentQuestion(route.topic, client_id, strategy, broker.broker_name, broker.address or "")


def compare_assignments(
    group: ConsumerGroup, routes: Sequence[TopicRouteData], answers: Mapping[AssignmentQuestion, AssignmentAnswer]
) -> tuple[BrokerAssignments, ...]:
    """The answers of each broker for each topic, with those that differ from the prediction."""
    queues = {route.topic: route.subscribe_queues() for route in routes}
    found = grouped(((question.topic, question.broker_name), question) for question in answers)
    compared = []
    for (topic, broker_name), questions in sorted(found.items()):
        modes = {mode for each in questions if (mode := answers[each].mode) is not None}
        mismatches = []
        for each in questions:
            answer, predicted = answers[each].queues, _predicted(group, each, answers[each], queues[topic])
            if answer not in [None if own is None else {*own} for own in predicted]:
                mismatches.append(AssignmentMismatch(each.client_id, _listed(answer), _listed(predicted[0])))
        compared.append(BrokerAssignments(topic, broker_name, tuple(sorted(modes)), len(questions), tuple(mismatches)))
    return tuple(compared)


def assignment_findings(compared: Sequence[BrokerAssignments], questions: int) -> Iterator[Finding]:
    differ = [(each, mismatch) for each in compared for mismatch in each.mismatches]
    number = sum(each.consumers for each in compared)
    if differ:
        each, first = differ[0]
        text = (
            f"{of_all(len(differ), number, 'answer')} of brokers differ from the prediction; the first is "
            f"{each.broker_name} for {first.client_id}, topic {each.topic}: answered {_text(first.queues_answered)}, "
            f"predicted {_text(first.queues_predicted)}"
        )
        ids = dict.fromkeys(mismatch.client_id for _, mismatch in differ)
        yield Finding("assignment-mismatch", text, consumers=tuple(ids))
    if number < questions:
        text = f"assignments by brokers: {counted(questions - number, 'request')} of {questions} without an answer"
        yield Finding("assignments-not-asked", text)


def _predicted(
    group: ConsumerGroup, query: AssignmentQuestion, answer: AssignmentAnswer, queues: Sequence[MessageQueue]
) -> list[list[MessageQueue] | None]:
    """The broker's answers by each possible `popShareQueueNum`, in the reported mode."""
    listed = next((view.client_ids for view in group.views or () if view.broker_addr == query.address), None)
    mode: RequestMode = "POP" if answer.mode == "POP" else "PULL"
    shares = (group.pop_share_queue_nums or {}).get(query.topic) if mode == "POP" else None
    brokers = (AskedBroker(query.broker_name, listed, mode, share) for share in shares or (DEFAULT_SHARE,))
    answers = (query_assignment(each, query.strategy, query.topic, queues, [query.client_id]) for each in brokers)
    return [each[query.client_id] for each in answers]


def _listed(queues: Iterable[MessageQueue] | None) -> tuple[QueueName, ...] | None:
    return None if queues is None else tuple(QueueName(q.broker_name, q.queue_id) for q in sorted(queues))


def _text(queues: tuple[QueueName, ...] | None) -> str:
    named = "nothing" if queues is None else ", ".join(f"{queue.broker_name}:{queue.queue_id}" for queue in queues)
    return named or "no queue"
