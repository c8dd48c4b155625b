"""The queue selectors of RocketMQ's client (`client.producer.selector`): one attempt, no retry, no fault strategy."""

from __future__ import annotations

from collections.abc import Sequence

from rmqlb.engine.arguments import items, require
from rmqlb.engine.send.java_hash import hash_code
from rmqlb.errors import JavaArgumentError, JavaArithmeticError
from rmqlb.model.limits import MOST_QUEUES, JavaInt
from rmqlb.model.message_queue import MessageQueue

_MULTIPLIER, _INCREMENT, _BITS = 0x5DEECE66D, 0xB, (1 << 48) - 1


class JavaRandom:
    """`java.util.Random`.

    Args:
        seed: any whole number, of which 48 bits count.

    >>> random = JavaRandom(42)
    >>> random.next_int(), [random.next_int(8) for _ in range(2)]
    (-1170105035, [0, 5])
    """

    __slots__ = ("_state",)

    def __init__(self, seed: int) -> None:
        require(seed, int, "seed")
        self._state = (seed ^ _MULTIPLIER) & _BITS

    def next_int(self, bound: int | None = None) -> int:
        """Any int, or with a bound one of 0 … bound − 1.

        Raises:
            JavaArgumentError: the bound is not positive, as in Java; it is a ValueError too.
            UsageError: it is no Java int.
        """
        if bound is None:
            return self._next(32)
        require(bound, JavaInt, "bound")
        if bound <= 0:
            raise JavaArgumentError("bound must be positive")
        if bound & (bound - 1) == 0:  # a power of two takes the upper bits, which are the more random ones
            return (bound * self._next(31)) >> 31
        while True:
            bits = self._next(31)
            value = bits % bound
            # The last multiples of the bound do not all fit below 2^31: Java sees its int overflow, and draws again.
            if bits - value + (bound - 1) < 2**31:
                return value

    def _next(self, bits: int) -> int:
        self._state = (self._state * _MULTIPLIER + _INCREMENT) & _BITS
        value = self._state >> (48 - bits)
        # Java's cast to int makes the highest of 32 bits the sign.
        return value - (1 << bits) if bits == 32 and value >= 1 << 31 else value


def hash_position(code: int, size: int) -> int:
    """Where in a list of that size a hash points: Java's remainder without its sign."""
    return abs(code) % size


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
        return _of_sdk(listed, arg, sdk)
    code = hash_code(arg)
    if not listed:
        raise JavaArithmeticError("/ by zero")
    return listed[hash_position(code, len(listed))]


def _of_sdk(queues: list[MessageQueue], key: object, name: str) -> MessageQueue:
    from rmqlb.engine.send.sdks.keys import queue_of_key
    from rmqlb.engine.send.sdks.profile import sdk

    require(name, str, "sdk")
    profile = sdk(name).profile
    require(key, str, "arg")
    return queue_of_key(queues, str(key), profile)


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
