"""The queue selectors of RocketMQ's client (`client.producer.selector`).

A send through a selector makes one attempt, without a retry or a fault strategy.
"""

from __future__ import annotations

from collections.abc import Sequence

from rmqlb.engine.arguments import items, require
from rmqlb.engine.send.java import JavaRandom, hash_code, hash_position
from rmqlb.engine.send.queues import queue_of_key
from rmqlb.engine.send.sdk import sdk as chosen_sdk
from rmqlb.errors import JavaArithmeticError
from rmqlb.model.limits import MOST_QUEUES
from rmqlb.model.message_queue import MessageQueue


def select_by_hash(queues: Sequence[MessageQueue], arg: object, sdk: str = "java") -> MessageQueue:
    """The queue of a key; in Java `SelectMessageQueueByHash.select`: the magnitude of the remainder of its hash code.

    Args:
        queues: the publish list of the SDK, in order.
        arg: what the application passes, see `hash_code`; of another SDK its sharding key or message group, a text.
        sdk: whose producer: `java`, `go`, `cpp`, a gRPC SDK such as `java-grpc` or `go-grpc@5.1.4`, or `proxy`, which
            is where a Proxy stores the message groups of all gRPC SDKs.

    Raises:
        UsageError: what the SDK makes of `arg` cannot be known, `queues` are no queues, or the SDK is not known.
        DataError: the list is empty; in Java a JavaArithmeticError, which is a ZeroDivisionError too.

    >>> queues = [MessageQueue("T", broker, i) for broker in ("broker-a", "broker-b") for i in range(4)]
    >>> str(select_by_hash(queues, "order-1"))
    'MessageQueue [topic=T, brokerName=broker-b, queueId=2]'
    """
    listed = items(queues, MessageQueue, "queues", MOST_QUEUES)
    if sdk != "java":
        require(sdk, str, "sdk")
        profile = chosen_sdk(sdk).profile
        require(arg, str, "arg")
        return queue_of_key(listed, str(arg), profile)
    code = hash_code(arg)
    if not listed:
        raise JavaArithmeticError("/ by zero")
    return listed[hash_position(code, len(listed))]


def select_by_random(queues: Sequence[MessageQueue], random: JavaRandom) -> MessageQueue:
    """`SelectMessageQueueByRandom.select`: its Random is made once, with the time of construction as its seed.

    Raises:
        JavaArgumentError: the list is empty; it is a ValueError too.
        UsageError: `queues` are no queues, or `random` is no JavaRandom.
    """
    listed = items(queues, MessageQueue, "queues", MOST_QUEUES)
    require(random, JavaRandom, "random")
    return listed[random.next_int(len(listed))]


def select_by_machine_room(queues: Sequence[MessageQueue], arg: object) -> None:  # noqa: ARG001 - the selector's shape
    """`SelectMessageQueueByMachineRoom.select`: always nothing, and the send fails of it (all versions examined)."""
    items(queues, MessageQueue, "queues", MOST_QUEUES)
