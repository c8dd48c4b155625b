"""A consumer group of Java clients, as recorded: when each of them took a queue, first pulled it, and dropped it.

Rules of this file:
- Times are whole microseconds since the first member's start, of the one clock of the machine that ran them all.
- A queue belongs to a member from when it is in the member's process-queue table until it is dropped there. A killed
  member loses its queues when it is killed or has stopped, and owns nothing while it is frozen.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Final

import msgspec

from rmqlb import BrokerData, MessageQueue, QueueData, TopicRouteData
from rmqlb.model.group_scenario import Event, EventKind
from rmqlb.model.simulate_rebalance import Interval, OwnerState
from tests.support.group_builders import interval

DATA: Final = Path(__file__).parent.parent / "data" / "rebalance"
Intervals = Mapping[MessageQueue, tuple[Interval, ...]]
"""Of each queue, who owned it when, from 0 to the end."""
_KINDS: Final[Mapping[str, EventKind]] = {
    "starting": "join", "stopping": "leave", "killed": "crash", "frozen": "freeze", "unfrozen": "unfreeze",
    "up": "broker-up",
}  # fmt: skip

_UNSEEN_US: Final = 50_000


class Line(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    at_us: int
    client_id: str  # empty when it was done to a broker
    # starting, started, stopping, stopped, killed, frozen, unfrozen; gained, pulled (for the first time), lost (a queue);
    # request, answer, notice (the broker's, of changed consumers); up (a broker gets the topic)
    what: str
    topic: str | None = None  # of the queue that it is about
    broker_name: str | None = None  # of the queue; or who was asked, or answered, or gave notice, or came up
    queue_id: int | None = None
    address: str | None = None  # the broker's, where the name is not yet known
    code: int | None = None  # of the request

    @property
    def queue(self) -> tuple[str | None, str | None, int | None]:
        return self.topic, self.broker_name, self.queue_id


class Lived(msgspec.Struct, frozen=True, rename="camel"):
    version: str  # of the clients
    group: str
    orderly: bool  # the listener is a MessageListenerOrderly
    topic: str  # the one that the group subscribes to; consumers run the strategy AVG
    brokers: dict[str, int]  # broker name → its number of queues
    end_us: int  # when it was over
    request_us: int  # how long a request for a list of consumers or a lock took, on average
    connect_us: int  # how much longer a consumer's first request to a broker took; the median
    starts_us: tuple[int, ...]  # of each consumer, from its start until it turned to the first broker; sorted
    new_brokers: tuple[str, ...] = ()  # those of `brokers` that came up with the topic later
    lite_pull: bool = False  # the consumers are DefaultLitePullConsumer, which subscribe to no retry topic
    began_us: int = 0  # when the first consumer started, since 1970; 0 in older recordings
    sdk: str = "java"

    @property
    def route(self) -> TopicRouteData:
        return _route(self.topic, self._first_brokers)

    @property
    def queues(self) -> list[MessageQueue]:
        """The topic's, those that came later included."""
        return _route(self.topic, self.brokers).subscribe_queues()

    @property
    def routes(self) -> list[TopicRouteData]:
        """Of all topics that the members allocate; only those that push add the retry topic."""
        return [self.route] if self.lite_pull else [self.route, self.retry_route]

    @property
    def retry_route(self) -> TopicRouteData:
        """The retry topic's, which every member allocates as well: one queue a broker."""
        return _route(f"%RETRY%{self.group}", dict.fromkeys(self._first_brokers, 1))

    @property
    def _first_brokers(self) -> dict[str, int]:
        return {name: number for name, number in self.brokers.items() if name not in self.new_brokers}


class Recording(msgspec.Struct, frozen=True):
    """What the group went through; the lines are in the order of time."""

    lived: Lived
    lines: tuple[Line, ...]

    @property
    def events(self) -> tuple[Event, ...]:
        return tuple(
            Event(_KINDS[line.what], line.at_us, line.client_id or line.broker_name or "")
            for line in self.lines
            if line.what in _KINDS
        )

    @property
    def intervals(self) -> Intervals:
        return {queue: tuple(self._intervals(queue)) for queue in self.lived.queues}

    @property
    def first_pulls_us(self) -> list[int]:
        """Each time that a member took a queue and came to pull it, how long after it did.

        The table is looked at once a millisecond, so that a pull at once may be seen before the queue is.
        """
        took: list[int] = []
        pulled = [line for line in self.lines if line.what == "pulled"]
        for line in self.lines:
            if line.what == "gained" and line.topic == self.lived.topic:
                key = line.client_id, line.queue
                after = (each.at_us - line.at_us for each in pulled if (each.client_id, each.queue) == key)
                took += [max(us, 0) for us in after if us > -_UNSEEN_US][:1]
        return took

    def _intervals(self, queue: MessageQueue) -> Iterator[Interval]:
        owners: frozenset[str] = frozenset()
        held: frozenset[str] = frozenset()
        frozen: frozenset[str] = frozenset()
        ups = (line.at_us for line in self.lines if line.what == "up" and line.broker_name == queue.broker_name)
        since = next(ups, 0)
        if since:
            yield interval(0, since, "gone", ())
        for at_us, lines in groupby(self._changes(queue), key=lambda line: line.at_us):
            before = owners
            for line in lines:
                who = {line.client_id}
                if line.what in ("frozen", "unfrozen"):
                    frozen = frozen | who if line.what == "frozen" else frozen - who
                else:
                    held = held | who if line.what == "gained" else held - who
            owners = held - frozen
            if owners != before and at_us > since:
                yield _interval(since, at_us, before)
                since = at_us
        yield _interval(since, self.lived.end_us, owners)

    def _changes(self, queue: MessageQueue) -> Iterable[Line]:
        key = (queue.topic, queue.broker_name, queue.queue_id)
        return (
            line
            for line in self.lines
            if line.what in ("killed", "stopped", "frozen", "unfrozen")
            or (line.what in ("gained", "lost") and line.queue == key)
        )


def _route(topic: str, brokers: Mapping[str, int]) -> TopicRouteData:
    return TopicRouteData(
        topic,
        tuple(QueueData(name, number, number, 6) for name, number in brokers.items()),
        tuple(BrokerData("c", name, {0: f"{name}:10911"}) for name in brokers),
    )


def _interval(from_us: int, to_us: int, owners: Iterable[str]) -> Interval:
    ids = tuple(sorted(owners))
    state: OwnerState = "unassigned" if not ids else "one" if len(ids) == 1 else "duplicate-owners"
    return interval(from_us, to_us, state, ids)


def saved(name: str) -> Recording:
    head, *rows = (DATA / f"{name}.jsonl").read_bytes().splitlines()
    lines = tuple(msgspec.json.decode(row, type=Line) for row in rows)
    return Recording(msgspec.json.decode(head, type=Lived), lines)
