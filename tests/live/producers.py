"""A real producer, and each attempt it makes to send a message, recorded by its own SendMessageHook.

Rules of this file:
- Times are the producer's, in whole milliseconds of its clock; durations are differences of these.
- What is recorded are the client's own words: names of exceptions and statuses, texts up to their first line end.
- The hook does not see the retries of an async message: `attempts` holds its first attempt only.
"""

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from typing import Any, Final

from msgspec import Struct, convert
from msgspec.structs import replace

from rmqlb.model.route import TopicRouteData
from rmqlb.model.snapshot import Wanted
from rmqlb.sources.opening import open_source
from rmqlb.sources.source import Access

from .cluster import RocketMQCluster, TopicOnBroker
from .jvm import START_DEADLINE, Java, wait_until
from .members import Program

HANDED_OVER = "HANDED_OVER"
"""The outcome of what is over, for the client, once the request is written: one-way messages, async first attempts."""
Queue = tuple[str, int]


class RecordedFault(Struct, frozen=True, rename="camel"):
    """The fault item of one broker in the client's fault strategy.

    Attributes:
        start_timestamp: until when the broker is isolated; an old one, or 0, if it is not.
        reachable: None in version 4, which has no such flag.
    """

    broker_name: str
    current_latency: int
    start_timestamp: int
    reachable: bool | None = None


class RecordedAttempt(Struct, frozen=True, rename="camel", kw_only=True):
    """One attempt to send a message.

    Attributes:
        number: 1 for the message's first attempt.
        thread: name of the thread that picked the queue.
        index: that thread's round robin counter just after the pick; None when the route was new to the thread.
        outcome: status of the answer, simple name of the exception's class, or `HANDED_OVER`.
        response_code: of an MQBrokerException or MQClientException; `text` is its first line.
        faults: the content of the fault strategy when the queue had been picked.
    """

    message: int = 0
    number: int = 0
    thread: str
    index: int | None = None
    began_ms: int
    took_ms: int
    broker_name: str
    queue_id: int
    outcome: str
    response_code: int | None = None
    text: str | None = None
    faults: tuple[RecordedFault, ...]

    @property
    def queue(self) -> Queue:
        return self.broker_name, self.queue_id

    @property
    def ended_ms(self) -> int:
        return self.began_ms + self.took_ms


class RecordedMessage(Struct, frozen=True, rename="camel", kw_only=True):
    """One message, from the call of `send` to its end.

    Attributes:
        thread: name of the thread that was told of the end.
        took_ms: until `send` returned or threw, or until the callback.
        cause: simple name of the class of the exception's cause.
        index: the sending thread's counter after the message; None of an async message.
    """

    number: int
    thread: str
    index: int | None = None
    began_ms: int
    took_ms: int
    outcome: str
    response_code: int | None = None
    text: str | None = None
    cause: str | None = None
    attempts: tuple[RecordedAttempt, ...]
    faults: tuple[RecordedFault, ...]

    @property
    def ended_ms(self) -> int:
        return self.began_ms + self.took_ms

    def fault(self, broker_name: str) -> RecordedFault | None:
        return next((fault for fault in self.faults if fault.broker_name == broker_name), None)

    def isolated_ms(self, broker_name: str) -> int:
        """For how long the broker was isolated by the message's last attempt at it, 0 if it was not.

        To the second, as all durations that the client knows: it takes its time a moment before or after ours.
        """
        fault = self.fault(broker_name)
        ends = [attempt.ended_ms for attempt in self.attempts if attempt.broker_name == broker_name]
        if fault is None or not fault.start_timestamp:
            return 0
        return max(0, round((fault.start_timestamp - (ends or [self.ended_ms])[-1]) / 1000) * 1000)


@dataclass
class Producer(Program):
    # Much shorter than what is measured, so that hundreds of small exchanges stay short as well.
    poll = 0.002
    _messages: list[RecordedMessage] = field(default_factory=list)

    def set(self, **properties: object) -> None:
        for name, value in properties.items():
            self.ask(f"set {name} {_text(value)}")

    def preset_index(self, index: int) -> None:
        """Make the next pick of each sending thread the one after this index."""
        self.ask(f"index {index}")

    def forget_faults(self) -> None:
        self.ask("forget")

    def queues(self) -> list[Queue]:
        """The publish list as the client holds it now, in its order."""
        return [(queue["brokerName"], queue["queueId"]) for queue in self.ask("queues")["queues"]]

    def start_sending(self, count: int, pause_ms: int = 0) -> int:
        """Let each sending thread send so many messages; comes back at once with their number."""
        return int(self.ask(f"send {count} {pause_ms}")["sending"])

    def stop_sending(self) -> int:
        """Send no more; the number of messages sent so far, by all calls."""
        return int(self.ask("stop")["stopped"])

    def send(self, count: int = 1, pause_ms: int = 0, deadline: float = START_DEADLINE) -> list[RecordedMessage]:
        return self.await_messages(self.start_sending(count, pause_ms), deadline)

    def await_messages(self, count: int, deadline: float = START_DEADLINE) -> list[RecordedMessage]:
        self._await(lambda: len(self._messages) >= count, f"{count} messages", deadline)
        ended, self._messages = self._messages, []
        return sorted(ended, key=lambda message: message.number)

    def _take(self, said: dict[str, Any]) -> None:
        if "message" in said:
            self._messages.append(_message(said["message"]))
        else:
            super()._take(said)


def running_producer(
    java: Java, name_server: str, topic: str, **properties: object
) -> AbstractContextManager[Producer]:
    """A producer, which knows the topic's route before its first message.

    `properties` are those of `DefaultMQProducer` or its `ClientConfig`, and `mode` and `threads`.
    """
    name = f"producer-{topic}-{time.monotonic_ns()}"
    command = java.command("Producer", name_server, topic, *(f"{key}={_text(of)}" for key, of in properties.items()))
    return Producer.start(name, command, java.home / f"{name}.log")


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _message(row: Mapping[str, Any]) -> RecordedMessage:
    message = convert(row, RecordedMessage)
    attempts = enumerate(message.attempts, 1)
    numbered = tuple(replace(made, message=message.number, number=number) for number, made in attempts)
    return replace(message, attempts=numbered)


BROKERS: Final = ("broker-a", "broker-b", "broker-c")
KILLED: Final = "broker-b"
STEADY: Final = "Steady"
WRITE_QUEUES: Final = 4
"""The number of the topic's write queues on each broker."""
VERSIONS: Final = ("5.5.0", "4.9.7")
EVERY: Final = tuple((version, latency_fault) for version in VERSIONS for latency_fault in (False, True))
PAUSE_MS: Final = 100
POLL_ROUTE_MS: Final = 18_000
"""Between two looks of a client at its routes (RocketMQ's default is 30 s): after the failure enough is left of it for
version 5 to isolate the broker, to try it once more and to isolate it again."""
# Messages before the failure, each producer's; and once it has learned of it, so many seconds of further ones.
_WELL: Final = 20
_ENDLESS: Final = 1_000_000
_AFTERWARDS: Final = 1.5
_DEADLINE: Final = 30.0


@dataclass(frozen=True)
class Recording:
    """All messages of one producer, in the order of their numbers.

    Attributes:
        killed_ms: just before the broker was killed, on the clock of the attempts.
        queues_before, queues_after: the publish list, before the failure and once the client had seen a new route.
    """

    version: str
    latency_fault: bool
    killed_ms: int
    queues_before: tuple[Queue, ...]
    queues_after: tuple[Queue, ...]
    messages: tuple[RecordedMessage, ...]

    @property
    def to_the_dead(self) -> list[RecordedAttempt]:
        """The attempts that failed because the broker is dead; the first may have been under way when it died."""
        attempts = (attempt for message in self.messages for attempt in message.attempts)
        dead = (each for each in attempts if each.broker_name == KILLED and each.ended_ms >= self.killed_ms)
        return [each for each in dead if each.outcome != "SEND_OK"]


@dataclass(frozen=True)
class Kill:
    """The death of one of three brokers: the topic's routes before and after, recordings by version and latency fault."""

    route: TopicRouteData
    route_after: TopicRouteData
    recordings: Mapping[tuple[str, bool], Recording]


def recorded_kill(javas: Mapping[str, Java]) -> Kill:
    """Producers send to a RocketMQ 5.5.0, at which those of version 4 are guests, while one of its brokers is killed.

    They go on till all have a route without the broker.
    """
    with ExitStack() as running:
        cluster = running.enter_context(RocketMQCluster("5.5.0", brokers=BROKERS))
        cluster.create_topics([TopicOnBroker(STEADY, name, WRITE_QUEUES, WRITE_QUEUES) for name in BROKERS])
        route = _route(cluster)

        def start(setup: tuple[str, bool]) -> Producer:
            version, latency_fault = setup
            settings = {"sendLatencyFaultEnable": latency_fault, "pollNameServerInterval": POLL_ROUTE_MS}
            return running.enter_context(running_producer(javas[version], cluster.name_server, STEADY, **settings))

        with ThreadPoolExecutor() as pool:
            producers = list(pool.map(start, EVERY))
        before = [tuple(producer.queues()) for producer in producers]
        for producer in producers:
            producer.start_sending(_ENDLESS, PAUSE_MS)
        well = [producer.await_messages(_WELL) for producer in producers]
        killed_ms = time.time_ns() // 1_000_000
        cluster.kill_broker(KILLED)
        _await_notice(producers)
        time.sleep(_AFTERWARDS)
        counts = [producer.stop_sending() for producer in producers]
        recordings = {}
        for each, producer, queues, first, count in zip(EVERY, producers, before, well, counts, strict=True):
            after, messages = tuple(producer.queues()), (*first, *producer.await_messages(count - len(first)))
            recordings[each] = Recording(*each, killed_ms, queues_before=queues, queues_after=after, messages=messages)
        return Kill(route, _route(cluster), recordings)


def _route(cluster: RocketMQCluster) -> TopicRouteData:
    wanted = Wanted((STEADY,), owners=False, groups=False)
    return open_source(f"rocketmq://{cluster.name_server}", Access()).fetch(wanted).route(STEADY)


def _await_notice(producers: Sequence[Producer]) -> None:
    def all_did() -> bool:
        return all(KILLED not in {name for name, _ in producer.queues()} for producer in producers)

    wait_until(all_did, _DEADLINE, lambda: f"not all of {len(producers)} producers have a new route")
