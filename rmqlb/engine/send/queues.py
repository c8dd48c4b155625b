"""The queues that a producer picks from, SDK by SDK: the lists, the place of a key, and the ways round a list.

A route comes in as a NameServer answers it, in its order. A gRPC SDK gets what a Proxy makes of that
(`RouteActivity.queryRoute`, 5.5.0). A counter is what a producer remembers from message to message.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import lru_cache
from hashlib import sha256
from typing import Annotated

from msgspec import Meta

from rmqlb.engine.arguments import items, require
from rmqlb.engine.send.java import JavaRandom, hash_code
from rmqlb.engine.send.profile import SDKS, Hash, SdkProfile
from rmqlb.engine.send.profile import sdk as chosen_sdk
from rmqlb.errors import DataError, JavaArithmeticError, UsageError
from rmqlb.model.limits import MOST_QUEUES
from rmqlb.model.message_queue import MessageQueue, sort_queues
from rmqlb.model.route import MASTER_ID, QueueData, TopicRouteData

_MOST_GO_BROKERS = 12
"""client-go sorts queue data by a comparison that contradicts itself. Up to this number of brokers it reverses them,
twice before the first message, so that they keep the route's order. With more, the order depends on the Go version."""
_64 = 0xFFFFFFFFFFFFFFFF
_MURMUR, _MURMUR_SEED = 0xC6A4A7935BD1E995, 0xC70F6907
_SIP_STATE = (0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573)
_GUAVA_KEY = bytes(range(16))
"""The key of Guava's `Hashing.sipHash24()`."""


def publish_queues(route: TopicRouteData, sdk: str = "java") -> list[MessageQueue]:
    """The queues that a producer of an SDK picks from, in its order: the list for hash selectors and round robin.

    Args:
        route: the route of the topic.
        sdk: `java`, `go`, `java-grpc`, `go-grpc@5.1.4` …; `proxy` is the list in which a Proxy stores message groups.

    Raises:
        UsageError: the SDK is unknown, or `route` is no route.
        DataError: the list cannot be known, or the route contradicts itself.
    """
    require(route, TopicRouteData, "route")
    require(sdk, str, "sdk")
    return publish_list(route, chosen_sdk(sdk).profile)


def publish_list(route: TopicRouteData, profile: SdkProfile) -> list[MessageQueue]:
    if profile.name == "java":
        return route.publish_queues()
    _reject_static_topic(route, profile)
    if profile.name in ("go", "cpp"):
        return _by_broker_data(route, profile)
    return stored_list(route) if profile.name == "proxy" else [queue for queue, _ in broker_list(route, profile)]


def broker_list(route: TopicRouteData, profile: SdkProfile) -> list[tuple[MessageQueue, bool]]:
    """The list of a gRPC SDK, and whether each queue is on a master: some SDKs keep slaves (raises DataError)."""
    _reject_static_topic(route, profile)
    return [
        (queue, broker_id == MASTER_ID)
        for queue, broker_id, writable in _of_proxy(route)
        if profile.name in ("go-grpc", "rust-grpc")
        or (writable and (queue.queue_id if profile.name == "nodejs-grpc" else broker_id) == MASTER_ID)
    ]


def stored_list(route: TopicRouteData, broker_name: str | None = None) -> list[MessageQueue]:
    """The queues that a Proxy stores in; with a broker's name, those of the Proxy in that broker (local mode).

    Mirrors `MessageQueueSelector.buildWrite` and `LocalTopicRouteService` (5.5.0).
    """
    if broker_name is not None:
        of_broker = (data for data in route.queue_datas if data.broker_name == broker_name and data.writable)
        return _queues(route, next(of_broker, QueueData(broker_name)))
    return sort_queues(set(route.publish_queues()))


def _reject_static_topic(route: TopicRouteData, profile: SdkProfile) -> None:
    if route.is_static:
        text = f"topic {route.topic} is a static topic: rmqlb does not know its queues for producers of {profile.name}"
        raise DataError(text, hint="its logical queues are known only for Java producers")


def _by_broker_data(route: TopicRouteData, profile: SdkProfile) -> list[MessageQueue]:
    """`routeData2PublishInfo` (client-go 2.1.2) and `topicRouteData2TopicPublishInfo` (rocketmq-client-cpp 2.2.0).

    client-go reads neither order configs nor static topics; C++ sorts brokers by the bytes of their names.
    """
    datas: Sequence[QueueData] = route.queue_datas
    if profile.name == "cpp" and route.order_topic_conf:
        return route.publish_queues()
    if profile.name == "cpp":
        datas = sorted(datas, key=lambda data: data.broker_name.encode(errors="surrogatepass"))
    elif len(datas) > _MOST_GO_BROKERS:
        text = f"rmqlb does not know the order of a Go producer's queues beyond {_MOST_GO_BROKERS} brokers"
        hint = "it depends on the Go version that the producer was built with"
        raise DataError(f"topic {route.topic}: {text}", hint=hint)
    addresses = {name: broker.broker_addrs.get(MASTER_ID) for name, broker in route.brokers_by_name().items()}
    writable = [data for data in datas if data.writable and addresses.get(data.broker_name)]
    return [queue for data in writable for queue in _queues(route, data)]


def _queues(route: TopicRouteData, data: QueueData) -> list[MessageQueue]:
    return [MessageQueue(route.topic, data.broker_name, number) for number in range(data.write_queue_nums)]


def _of_proxy(route: TopicRouteData) -> Iterator[tuple[MessageQueue, int, bool]]:
    """Queue, broker ID and whether it is writable, as a Proxy lists them.

    For each broker address in turn: queues for reading only, then those for writing only, then the others, all
    numbered through, whatever their numbers on the broker are.
    """
    brokers = route.brokers_by_name()
    for data in route.queue_datas:
        broker = brokers.get(data.broker_name)
        if broker is None:
            return
        for broker_id in sorted(broker.broker_addrs):
            for number, writable in enumerate(_blocks(data)):
                yield MessageQueue(route.topic, data.broker_name, number), broker_id, writable


def _blocks(data: QueueData) -> list[bool]:
    read, write = max(data.read_queue_nums, 0), max(data.write_queue_nums, 0)
    if data.readable and data.writable:
        return [False] * (read - min(read, write)) + [True] * write
    if data.writable:
        return [True] * write
    return [False] * (read if data.readable else max(1, read, write))


def picker(queues: Sequence[MessageQueue], profile: SdkProfile) -> Callable[[str], MessageQueue]:
    """Find the queue that an SDK picks for a key (raises UsageError if the SDK picks at random or refuses the key)."""
    listed = keyed_queues(queues, profile)
    return lambda key: listed[place_of_key(len(listed), key, profile)]


def keyed_queues(queues: Sequence[MessageQueue], profile: SdkProfile) -> list[MessageQueue]:
    """The queues that the SDK sends keys to, in its order (raises DataError when there are none)."""
    listed = list(queues)
    if profile.rotation == "first-queues":
        # Node compares the queue's number with the number of a master broker (`PublishingLoadBalancer`).
        listed = [queue for queue in listed if queue.queue_id == 0]
    elif profile.hash == "proxy":
        listed = sort_queues(set(listed))
    if not listed:
        raise DataError(f"a producer of {profile.name} has no queue to pick from")
    return listed


def place_of_key(size: int, key: str, profile: SdkProfile) -> int:
    kind = profile.hash
    if kind == "random":
        prefix = f"{profile.name} cannot be predicted: "
        hint = "each process sends a message group to a different queue"
        raise UsageError("string.GetHashCode differs from process to process", prefix=prefix, hint=hint)
    if kind == "java":
        return abs(hash_code(key)) % size
    if kind in ("proxy", "fnv-1a") and not (key.strip() if kind == "proxy" else key):
        raise UsageError(f"{profile.name}: a message without a key goes to any queue")
    if kind == "proxy":
        return consistent_bucket(hash_code(key), size)
    return _HASHES[kind](_bytes(key, profile)) % size


def _bytes(key: str, profile: SdkProfile) -> bytes:
    """The key in UTF-8; each language encodes half of a surrogate pair in another way."""
    if key.isascii() or not any("\ud800" <= character <= "\udfff" for character in key):
        return key.encode()
    if profile.name == "java-grpc":
        return key.encode(errors="replace")
    if profile.name == "nodejs-grpc":
        return "".join("\ufffd" if "\ud800" <= character <= "\udfff" else character for character in key).encode()
    raise UsageError(f"{key!a}: half of a surrogate pair, which {profile.name} cannot send")


def select_by_hash(queues: Sequence[MessageQueue], arg: object, sdk: str = "java") -> MessageQueue:
    """The queue of a key; in Java `SelectMessageQueueByHash.select`: the magnitude of the remainder of its hash code.

    Args:
        queues: the publish list of the SDK, in order.
        arg: the application's argument (`hash_code`); for other SDKs a sharding key or message group, a text.
        sdk: `java`, `go`, `cpp`, a gRPC SDK such as `java-grpc` or `go-grpc@5.1.4`, or `proxy`, which stores the
            message groups of all gRPC SDKs.

    Raises:
        UsageError: the SDK's result for `arg` cannot be known, `queues` are no queues, or the SDK is unknown.
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
        return picker(listed, profile)(str(arg))
    code = hash_code(arg)
    if not listed:
        raise JavaArithmeticError("/ by zero")
    return listed[abs(code) % len(listed)]


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
    """`SelectMessageQueueByMachineRoom.select`: always nothing, so the send fails (all versions examined)."""
    items(queues, MessageQueue, "queues", MOST_QUEUES)


def fnv1a_32(data: bytes) -> int:
    """FNV-1a with 32 bits, as Go's `hash/fnv`."""
    state = 0x811C9DC5
    for byte in data:
        state = (state ^ byte) * 0x01000193 & 0xFFFFFFFF
    return state


# Several SDKs hash the same keys, before and after a change.
@lru_cache(maxsize=1 << 17)
def sip_hash_24(data: bytes, key: bytes = _GUAVA_KEY) -> int:
    """SipHash-2-4, 64 bits without a sign; the key has 16 bytes."""
    first, second = int.from_bytes(key[:8], "little"), int.from_bytes(key[8:], "little")
    a, b, c, d = (constant ^ part for constant, part in zip(_SIP_STATE, (first, second) * 2, strict=True))
    whole = len(data) & ~7
    words = [int.from_bytes(data[at : at + 8], "little") for at in range(0, whole, 8)]
    # The last word has the remainder, and the length in its highest byte.
    words.append(int.from_bytes(data[whole:], "little") | (len(data) & 0xFF) << 56)
    for word in words:
        a, b, c, d = _sip_round(*_sip_round(a, b, c, d ^ word))
        a ^= word
    c ^= 0xFF
    for _ in range(4):
        a, b, c, d = _sip_round(a, b, c, d)
    return a ^ b ^ c ^ d


def _sip_round(a: int, b: int, c: int, d: int) -> tuple[int, int, int, int]:
    a = a + b & _64
    b = _rotated(b, 13) ^ a
    a = _rotated(a, 32)
    c = c + d & _64
    d = _rotated(d, 16) ^ c
    a = a + d & _64
    d = _rotated(d, 21) ^ a
    c = c + b & _64
    b = _rotated(b, 17) ^ c
    return a, b, _rotated(c, 32), d


def _rotated(word: int, bits: int) -> int:
    return (word << bits | word >> 64 - bits) & _64


def libstdcxx_hash(data: bytes) -> int:
    """`std::hash<std::string>` of 64-bit libstdc++, unaligned Murmur of 64 bits; other libraries differ."""
    state = _MURMUR_SEED ^ len(data) * _MURMUR & _64
    whole = len(data) & ~7
    for at in range(0, whole, 8):
        word = int.from_bytes(data[at : at + 8], "little") * _MURMUR & _64
        state = (state ^ (word ^ word >> 47) * _MURMUR & _64) * _MURMUR & _64
    if data[whole:]:
        state = (state ^ int.from_bytes(data[whole:], "little")) * _MURMUR & _64
    state = (state ^ state >> 47) * _MURMUR & _64
    return state ^ state >> 47


def consistent_bucket(code: int, buckets: int) -> int:
    """Guava's `Hashing.consistentHash` of a Java int in a number of buckets (at least 1): jump consistent hash.

    When a bucket is added at the end, a key stays in its bucket or goes to the new one.
    """
    state, candidate = code & _64, 0
    while True:
        state = state * 2862933555777941757 + 1 & _64
        after = int((candidate + 1) / (((state >> 33) + 1) / 2147483648.0))
        if not 0 <= after < buckets:
            return candidate
        candidate = after


_HASHES: dict[Hash, Callable[[bytes], int]] = {
    "fnv-1a": fnv1a_32,
    "siphash": lambda data: (sip_hash_24(data) + 2**63) % 2**64 - 2**63,  # signed
    "siphash-zero": lambda data: sip_hash_24(data, bytes(16)),
    "siphash-reversed": lambda data: int.from_bytes(sip_hash_24(data).to_bytes(8, "little"), "big"),
    "sha-256": lambda data: int.from_bytes(sha256(data).digest(), "big"),
    "libstdc++": libstdcxx_hash,
}


_Start = Annotated[int, Meta(ge=-(2**31), le=2**64 - 1)]
_Count = Annotated[int, Meta(ge=1, le=10**6)]
GRPC = tuple(dict.fromkeys(profile.name for profile in SDKS if profile.grpc and profile.rotation))


class GoRoundRobin:
    """`roundRobinQueueSelector` of client-go 2.1.2 for one topic; `start` is the counter before the first message.

    Raises:
        DataError: there is no queue.
        UsageError: `queues` are no queues, or `start` does not fit 32 bits.
    """

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
    profile = chosen_sdk(text).profile
    if not profile.grpc or profile.rotation is None:
        raise UsageError(f"{text[:40]}: not a gRPC SDK", hint=f"one of {', '.join(GRPC)}")
    return profile
