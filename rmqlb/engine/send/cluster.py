"""Everything outside the producer: failing brokers, the NameServer's route, and the client's view of it.

A message on its way has the thread that sends it, its latest attempt, and how an attempt ends.

- Times are ticks; the simulation defines how many make a microsecond.
- A moment given by message number comes when that message starts, before its first pick.
- If two failures of one broker overlap, the later in the scenario counts.
- A route poll at the very moment of a change comes before the change.
"""

from heapq import heappop, heappush
from typing import Literal, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from rmqlb.engine.kernel import Draws
from rmqlb.engine.send.fault import TopicPublishInfo
from rmqlb.engine.send.profile import ClientProfile
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.route import PERM_WRITE, TopicRouteData
from rmqlb.model.send_scenario import Failure, Moment, SendScenario

NEVER = 1 << 128
"""After every tick; rates that are odd fractions make ticks very short."""
_Action = Literal["start", "end", "drop", "poll"]
_POLL = -1
Time = TypeVar("Time", int, float)


class FailureCourse(Struct):
    """One failure: its state now, and when something first happened; None until it does."""

    failure: Failure
    dropped: bool = False  # by the NameServer
    began: int | None = None
    ended: int | None = None
    over: bool = False  # its end came, even if it never began
    failed: int = 0  # attempts
    first_failed: int | None = None  # begin of the first failed attempt
    last_failed: int | None = None
    isolated: int | None = None
    isolated_by: Literal["isolation", "route"] | None = None
    used_again: int | None = None  # begin of the first attempt after the end that succeeds

    @property
    def lasts(self) -> bool:
        return self.began is not None and self.ended is None


class Cluster:
    def __init__(
        self, route: TopicRouteData, scenario: SendScenario, profile: ClientProfile, per_us: int, first_poll_us: int
    ) -> None:
        self._route, self._scenario, self._profile, self._per_us = route, scenario, profile, per_us
        self._poll, self._first_poll = scenario.poll_us * per_us, first_poll_us * per_us
        self._events: list[tuple[int, int, _Action]] = []  # a heap of (tick, failure's index or _POLL, action)
        self._by_message: list[tuple[int, int, _Action]] = []  # (message number, failure's index, action)
        self._polls: set[int] = set()
        self.courses = [FailureCourse(failure) for failure in scenario.failures]
        self.failing: dict[str, FailureCourse] = {}  # by broker name, without those that are read-only
        self.version = 0  # counts the client's route changes
        self.queue_counts = {d.broker_name: max(d.write_queue_nums, d.read_queue_nums) for d in route.queue_datas}
        self.keeps_list = False  # the client never requests the route again
        self.unlisted: frozenset[str] = frozenset()  # brokers that the client's list lost
        self._all_queues = self._published(route)
        self._take((frozenset(), frozenset()))
        for index, failure in enumerate(scenario.failures):
            self._plan(failure.start, index, "start")
            self._plan(failure.end, index, "end")
        self._by_message.sort()
        self._set_next()

    def _set_next(self) -> None:
        self.next_at = self._events[0][0] if self._events else NEVER
        self.next_message = self._by_message[0][0] if self._by_message else NEVER

    def advance(self, now: int) -> None:
        while self._events and self._events[0][0] <= now:
            self._happen(*heappop(self._events))
        self._set_next()

    def message_starts(self, number: int, now: int) -> None:
        while self._by_message and self._by_message[0][0] <= number:
            _, index, action = self._by_message.pop(0)
            self._happen(now, index, action)
        self.advance(now)

    def _plan(self, moment: Moment | None, index: int, action: _Action) -> None:
        if moment is not None and moment.us is not None:
            heappush(self._events, (moment.us * self._per_us, index, action))
        elif moment is not None:
            self._by_message.append((moment.message or 1, index, action))

    def _happen(self, at: int, index: int, action: _Action) -> None:
        if action == "poll":
            self._polls.discard(at)
            self.refresh()
            return
        course = self.courses[index]
        notices_us = course.failure.notices_us
        if action == "start" and not course.over:
            course.began, course.dropped = at, course.failure.reaction.kind == "read-only"
            if notices_us is not None and not course.dropped:
                heappush(self._events, (at + notices_us * self._per_us, index, "drop"))
        elif action == "drop":
            course.dropped = course.lasts
        elif action == "end":
            course.ended = at if course.lasts else None
            course.over, course.dropped = True, False
        failing = (each for each in self.courses if each.lasts and each.failure.reaction.kind != "read-only")
        self.failing = {each.failure.broker_name: each for each in failing}
        if self._left_out() != (self.gone, self._unwritable):
            poll = poll_after(at, self._first_poll, self._poll)
            if poll not in self._polls:
                self._polls.add(poll)
                heappush(self._events, (poll, _POLL, "poll"))

    def _left_out(self) -> tuple[frozenset[str], frozenset[str]]:
        """The brokers that the NameServer dropped, and those that it lists as read-only."""
        dropped = [course.failure for course in self.courses if course.dropped]
        unwritable = frozenset(each.broker_name for each in dropped if each.reaction.kind == "read-only")
        return frozenset(each.broker_name for each in dropped if each.reaction.kind != "read-only"), unwritable

    def refresh(self) -> None:
        """Request the route; if the route has no broker, the client keeps its old one."""
        left_out = self._left_out()
        has_broker = any(data.broker_name not in left_out[0] for data in self._route.queue_datas)
        if left_out != (self.gone, self._unwritable) and has_broker:
            self._take(left_out)
            self.version += 1

    def _take(self, left_out: tuple[frozenset[str], frozenset[str]]) -> None:
        gone, unwritable = self.gone, self._unwritable = left_out
        self.seen = replace(  # the client's route
            self._route,
            queue_datas=tuple(
                replace(data, perm=data.perm & ~PERM_WRITE) if data.broker_name in unwritable else data
                for data in self._route.queue_datas
                if data.broker_name not in gone
            ),
            broker_datas=tuple(data for data in self._route.broker_datas if data.broker_name not in gone),
        )
        self.queues = self._published(self.seen)  # the client's list, which all threads share
        # `TopicPublishInfo.getQueueIdByBroker`: the first entry of each broker; 4.9.8 takes writable ones only.
        self.write_queue_nums: dict[str, int] = {}
        for data in self.seen.queue_datas:
            if data.writable or not self._profile.worst_needs_write:
                self.write_queue_nums.setdefault(data.broker_name, data.write_queue_nums)
        if not self.keeps_list:
            listed = {queue.broker_name for queue in self.queues}
            self.unlisted = frozenset(queue.broker_name for queue in self._all_queues) - listed

    def _published(self, route: TopicRouteData) -> list[MessageQueue]:
        return [queue for queue in route.publish_queues() if queue.broker_name not in self._scenario.exclude]


def poll_after(at: Time, first: Time, every: Time) -> Time:
    """The client's next route poll after a time; a poll at exactly that time does not count."""
    return first if at < first else first + ((at - first) // every + 1) * every


NO_ROUTE = "no route"


class Outcome(Struct, frozen=True):
    name: str  # SEND_OK, a status, an error code's name, or the exception's class
    # stored; stored with a lesser status; a RemotingException; an MQBrokerException
    fate: Literal["ok", "status", "remoting", "code"]
    retry: bool = False  # another broker is tried
    isolation: bool = False  # the fault strategy learns that the attempt failed
    reachable: bool = True  # for the fault strategy
    code: int | None = None  # the broker's response code, of an MQBrokerException

    @property
    def failed(self) -> bool:
        return self.fate in ("remoting", "code")

    @property
    def lost_by(self) -> str | None:
        return self.name if self.failed else None


SEND_OK = Outcome("SEND_OK", "ok")


def broken(name: str, *, reachable: bool = True) -> Outcome:
    return Outcome(name, "remoting", retry=True, isolation=True, reachable=reachable)


def _no_queues_yet() -> TopicPublishInfo:
    return TopicPublishInfo((), 0, {})


class Thread(Struct, eq=False):
    number: int  # from 1
    draws: Draws  # its random numbers
    arrival: int = 0  # number of its next message by arrival, from 0; its own messages are every K-th
    free: int = 0  # the tick from which it may begin its next message
    info: TopicPublishInfo = field(default_factory=_no_queues_yet)  # its view of the queue list
    version: int = -1  # of the route of `info`
    # its index among isolated brokers, which a new route does not reset
    worst: TopicPublishInfo = field(default_factory=_no_queues_yet)


class Message(Struct, eq=False):
    number: int
    thread: Thread
    began: int
    info: TopicPublishInfo  # the thread's when the message began
    version: int  # of the route of `info`
    attempt: int = 0  # number of the attempt, from 1
    queue: MessageQueue = MessageQueue("", "", -1)
    outcome: Outcome = SEND_OK  # in which the attempt ends
    started: int = 0  # tick of the attempt's begin
    failing: FailureCourse | None = None  # the failure that the attempt meets
    budget: int = 0  # ms that an ASYNC attempt has
    phase: int = 0  # ticks from a full millisecond to the message's begin, drawn after a time-out
    sent: list[str] = []  # brokers of the attempts
