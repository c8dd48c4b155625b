"""What a broker answers a consumer that asks for its queues (QUERY_ASSIGNMENT): in PULL mode owners, by POP readers.

A consumer asks when it does not rebalance by itself (`clientRebalance=false`), is not orderly and does not broadcast.
It asks a broker of the topic at random, which answers by its own list of the group's consumers and its own route;
brokers that do not agree give different answers. Mirrors `QueryAssignmentProcessor` of 5.5.0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from msgspec import Struct

from rmqlb.engine.allocate import prepare
from rmqlb.engine.allocate.strategy import BROKER_STRATEGIES, Settings, Strategy
from rmqlb.engine.arguments import items, require
from rmqlb.errors import AllocationError, UsageError
from rmqlb.model.group import RETRY_PREFIX
from rmqlb.model.java import is_blank
from rmqlb.model.limits import MOST_CONSUMERS, MOST_QUEUES
from rmqlb.model.message_queue import MessageQueue, sort_client_ids, sort_queues

RequestMode = Literal["PULL", "POP"]
ANY_QUEUE = -1
"""In the place of a queue's number: the broker takes messages from any of its queues."""
DEFAULT_SHARE = -1
"""`defaultPopShareQueueNum`: every consumer may read every queue."""
_LMQ_PREFIX = "%LMQ%"


class AskedBroker(Struct, frozen=True):
    """What a broker answers from.

    Attributes:
        broker_name: its name.
        client_ids: the group's consumers that are connected to it, in any order, one entry per connection; None when it
            does not know the group.
        mode: the mode that it has for topic and group (`GET_ALL_MESSAGE_REQUEST_MODE`), or its
            `defaultMessageRequestMode` where it has none.
        pop_share_queue_num: POP, of how many further consumers a consumer reads the queues; 0 or less: of all. Brokers
            have -1 where nothing is set for topic and group (`defaultPopShareQueueNum`).
        balances: `serverLoadBalancerEnable`; a broker that does not balance gives each consumer every queue.
    """

    broker_name: str
    client_ids: tuple[str, ...] | None
    mode: RequestMode = "PULL"
    pop_share_queue_num: int = DEFAULT_SHARE
    balances: bool = True


def assign_pop(
    strategy: str, queues: Iterable[MessageQueue], client_ids: Iterable[str], share: int, *, presorted: bool = False
) -> dict[str, list[MessageQueue]]:
    """Which queues each consumer may read by POP (`QueryAssignmentProcessor.allocate4Pop` of 5.5.0).

    No consumer owns a queue: several may take messages from one. With `share` at 0 or less, or at least the number of
    the other consumers, every consumer reads every queue.

    Args:
        strategy: AVG or AVG_BY_CIRCLE, the two that brokers have.
        queues: the read queues of one topic, in any order.
        client_ids: the group's consumers as the asked broker lists them, in any order; an id that two processes share
            stands twice.
        share: `popShareQueueNum` of topic and group: of how many further consumers a consumer reads the queues.
        presorted: take both lists as they stand instead of sorting them as the broker does.

    Returns:
        Client id → its queues, each once, for each distinct id, in the order of the sorted ids. The queue id -1 is any
        queue of the broker.

    Raises:
        AllocationError: the broker's strategy throws; it then answers nothing, and consumers keep what they have.
        UsageError: brokers have no such strategy, or an argument is of the wrong type.

    >>> assign_pop("AVG", [MessageQueue("T", "a", i) for i in range(3)], ["x", "y", "z"], 1)["z"]
    [MessageQueue(topic='T', broker_name='a', queue_id=2), MessageQueue(topic='T', broker_name='a', queue_id=0)]
    """
    require(strategy, str, "strategy")
    require(share, int, "share")
    require(presorted, bool, "presorted")
    if strategy not in BROKER_STRATEGIES:
        known = " and ".join(BROKER_STRATEGIES)
        raise UsageError(f"{strategy[:100]}: brokers have {known} only", hint=f"--strategy {BROKER_STRATEGIES[0]}")
    given_queues = items(queues, MessageQueue, "queues", MOST_QUEUES)
    given_ids = items(client_ids, str, "client_ids", MOST_CONSUMERS)
    ordered = given_queues if presorted else sort_queues(given_queues)
    ids = given_ids if presorted else sort_client_ids(given_ids)
    prepared = prepare(strategy, ordered, ids, Settings())
    return {client_id: _each_once(pop_queues(prepared, ordered, ids, client_id, share)) for client_id in ids}


def pop_queues(
    strategy: Strategy, queues: Sequence[MessageQueue], client_ids: Sequence[str], client_id: str, share: int
) -> Iterator[MessageQueue]:
    """What `allocate4Pop` returns for one consumer, with its duplicates, of sorted lists (raises AllocationError)."""
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
    broadcasting: bool = False,
) -> dict[str, list[MessageQueue] | None]:
    """A broker's answers to consumers that ask it for their queues of a topic (`doLoadBalance`).

    Args:
        broker: the broker that is asked.
        strategy: name of the consumers' strategy.
        topic: the topic.
        queues: its read queues, in any order.
        client_ids: who asks.
        broadcasting: they say that they broadcast, for which a broker gives them all queues.

    Returns:
        Client id → its queues, sorted, each once; None where the broker answers nothing, so that the consumer keeps
        what it has.
    """
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
    mode = "PULL" if topic.startswith(RETRY_PREFIX) else broker.mode
    return {client_id: _answer(prepared, ordered, ids, client_id, broker, mode) for client_id in asking}


def _answer(
    strategy: Strategy,
    queues: Sequence[MessageQueue],
    client_ids: Sequence[str],
    client_id: str,
    broker: AskedBroker,
    mode: RequestMode,
) -> list[MessageQueue] | None:
    try:
        if mode == "POP":
            found = list(pop_queues(strategy, queues, client_ids, client_id, broker.pop_share_queue_num))
        else:
            found = list(strategy.share(client_id))
    except AllocationError:
        return None
    return sort_queues(set(found))


def _each_once(queues: Iterable[MessageQueue]) -> list[MessageQueue]:
    return list(dict.fromkeys(queues))
