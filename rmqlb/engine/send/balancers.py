"""The queue rotation of producers, SDK by SDK; a counter is their memory from message to message."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Annotated

from msgspec import Meta

from rmqlb.engine.arguments import items, require
from rmqlb.engine.send.queues import keyed_queues
from rmqlb.engine.send.sdk import SDKS, SdkProfile, sdk
from rmqlb.errors import DataError, UsageError
from rmqlb.model.limits import MOST_QUEUES
from rmqlb.model.message_queue import MessageQueue

_Start = Annotated[int, Meta(ge=-(2**31), le=2**64 - 1)]
_Count = Annotated[int, Meta(ge=1, le=10**6)]
GRPC = tuple(dict.fromkeys(profile.name for profile in SDKS if profile.grpc and profile.rotation))


class GoRoundRobin:
    """`roundRobinQueueSelector` of client-go 2.1.2 for one topic; `start` is the counter before the first message.

    Raises:
        DataError: there is no queue.
        UsageError: `queues` are no queues, or `start` does not fit 32 bits.
    """

    __slots__ = ("_queues", "counter")

    def __init__(self, queues: Sequence[MessageQueue], start: int = 0) -> None:
        self._queues = items(queues, MessageQueue, "queues", MOST_QUEUES)
        require(start, Annotated[int, Meta(ge=0, le=2**32 - 1)], "start")
        if not self._queues:
            raise DataError("a producer of go has no queue to pick from")
        self.counter = start

    def select(self, last_broker_name: str | None = None) -> MessageQueue:
        """The next queue, on another broker than the last if possible; the SYNC loop never names the last broker."""
        require(last_broker_name, str | None, "last_broker_name")
        for _ in self._queues if last_broker_name else ():
            queue = self._next()
            if queue.broker_name != last_broker_name:
                return queue
        return self._next()

    def _next(self) -> MessageQueue:
        self.counter = (self.counter + 1) & 0xFFFFFFFF
        return self._queues[self.counter % len(self._queues)]


def go_round_robin(queues: Sequence[MessageQueue], start: int = 0) -> GoRoundRobin:
    """The default selector of a Go producer (client-go 2.1.2); see `GoRoundRobin`."""
    return GoRoundRobin(queues, start)


class CppRoundRobin:
    """`TopicPublishInfo.selectOneMessageQueue` of rocketmq-client-cpp 2.2.0; its active list is left out."""

    __slots__ = ("_queues", "counter")

    def __init__(self, queues: Sequence[MessageQueue], start: int = 0) -> None:
        self._queues, self.counter = list(queues), start

    def select(self, place: int, last_broker_name: str | None) -> tuple[MessageQueue | None, int]:
        """The first queue from a place on that is on another broker than the last, and its place; otherwise None."""
        at = place % len(self._queues)
        for _ in self._queues:
            self.counter = (0 if self.counter == 2**31 - 1 else self.counter) + 1
            if self._queues[at].broker_name != last_broker_name:
                return self._queues[at], at
            at = (at + 1) % len(self._queues)
        return None, place


def cpp_attempts(newest: Callable[[], CppRoundRobin], rounds: int) -> Iterator[MessageQueue]:
    """The queues of one message's attempts: `DefaultMQProducerImpl.sendDefaultImpl` (rocketmq-client-cpp 2.2.0).

    A round that finds no queue of another broker is lost, and the next round takes any. `rounds` is retryTimes, which
    counts the first attempt too; `newest` gives the round robin of the newest route.
    """
    place, last = -1, None
    for _ in range(rounds):
        robin = newest()
        queue, place = robin.select(robin.counter if place < 0 else place + 1, last)
        last = None if queue is None else queue.broker_name
        if queue is not None:
            yield queue


class PublishingLoadBalancer:
    """A gRPC producer's rotation through a topic's queues.

    It predicts the queue that the SDK sends to. The Proxy decides in which queue of the broker a message is stored, and
    in cluster mode also on which broker (`select_by_hash(…, sdk="proxy")` for message groups).

    Args:
        queues: those that the SDK goes round, in the order of the route.
        sdk: `java-grpc`, `go-grpc`, `go-grpc@5.1.4` …
        start: the counter before the first message; most SDKs start at random.

    Raises:
        DataError: there is no queue.
        UsageError: `queues` are no queues, the SDK is unknown, or is no gRPC SDK.

    >>> queues = [MessageQueue("T", broker, i) for broker in "ab" for i in range(2)]
    >>> for name in ("java-grpc", "go-grpc@5.1.4"):
    ...     taken = PublishingLoadBalancer(queues, sdk=name).take_message_queues({"a"}, 3)
    ...     print(name, [f"{queue.broker_name}{queue.queue_id}" for queue in taken])
    java-grpc ['b0']
    go-grpc@5.1.4 ['b0']
    """

    __slots__ = ("_profile", "_queues", "counter")

    def __init__(self, queues: Sequence[MessageQueue], sdk: str = "java-grpc", start: int = 0) -> None:
        listed = items(queues, MessageQueue, "queues", MOST_QUEUES)
        require(start, _Start, "start")
        self._profile = _grpc(sdk)
        self._queues = keyed_queues(listed, self._profile)
        self.counter = _wrapped(start, self._profile)

    def take_message_queues(self, isolated: Collection[str], count: int) -> list[MessageQueue]:
        """The candidates of the next message for `count` attempts, if possible on brokers that are not isolated."""
        names = frozenset(items(isolated, str, "isolated", MOST_QUEUES))
        require(count, _Count, "count")
        queues = self._queues
        match self._profile.rotation:
            case "one-queue":
                return [queues[self._step() % len(queues)]]
            case "one-queue-ahead":
                # Both of its loops look at the same place in every round.
                return [queues[_wrapped(self._step() + 1, self._profile) % len(queues)]]
            case "first-queues" if self.counter >= len(queues):
                self.counter = 0
        places = self._places(self._step())
        candidates = _by_broker(places, queues, names, count)
        if not candidates and self._profile.rotation != "no-fallback":  # all are isolated: then as if none were
            return _by_broker(places, queues, frozenset(), count)
        return candidates

    def _step(self) -> int:
        before = self.counter
        self.counter = _wrapped(before + 1, self._profile)
        return self.counter if self._profile.counts_first else before

    def _places(self, first: int) -> Iterator[int]:
        while True:
            yield first % len(self._queues)
            first = _wrapped(first + 1, self._profile)


def _by_broker(
    places: Iterator[int], queues: Sequence[MessageQueue], isolated: frozenset[str], count: int
) -> list[MessageQueue]:
    found: dict[str, MessageQueue] = {}
    for _ in queues:
        queue = queues[next(places)]
        if queue.broker_name not in isolated:
            found.setdefault(queue.broker_name, queue)
        if len(found) == count:
            break
    return list(found.values())


def _wrapped(number: int, profile: SdkProfile) -> int:
    match profile.counter:
        case "int32":
            return (number + 2**31) % 2**32 - 2**31
        case "uint32":
            return number % 2**32
        case "uint64":
            return number % 2**64
        case "unbounded":
            return number


def _grpc(text: str) -> SdkProfile:
    require(text, str, "sdk")
    profile = sdk(text).profile
    if not profile.grpc or profile.rotation is None:
        raise UsageError(f"{text[:40]}: not a gRPC SDK", hint=f"one of {', '.join(GRPC)}")
    return profile
