"""Everything outside the producer: which broker fails when, what the NameServer says, when the client hears of it.

Rules of this file:
- Time is in ticks, of which the simulation says how many make a microsecond.
- A message-numbered moment comes when that message starts, before its first pick.
- Of two failures of one broker at a time, the later in the scenario counts.
- A route poll at the very moment of a change comes before it: a cluster takes its time to notice.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Literal

from msgspec.structs import replace

from rmqlb.engine.send.profile import ClientProfile
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.route import PERM_WRITE, TopicRouteData
from rmqlb.model.send_scenario import Moment, SendScenario

NEVER = 1 << 128
"""After every tick there is: rates that are odd fractions make ticks very short."""
_Action = Literal["start", "end", "drop", "poll"]
View = tuple[frozenset[str], frozenset[str]]
"""What the NameServer leaves out: brokers that are gone, brokers without write permission."""


class ClusterState:
    """The brokers, the NameServer and the client's view of the topic, at one time after another.

    Attributes:
        queues: the client's publish list; threads share it.
        seen: the client's route.
        write_queue_nums: what the client's route says, for `pickOneAtLeast`.
    """

    def __init__(
        self,
        route: TopicRouteData,
        scenario: SendScenario,
        profile: ClientProfile,
        ticks_per_us: int,
        first_poll_us: int,
    ) -> None:
        self._route = route
        self._scenario = scenario
        self._profile = profile
        self._ticks = ticks_per_us
        self._poll, self._first_poll = scenario.poll_us * ticks_per_us, first_poll_us * ticks_per_us
        self._events: list[tuple[int, int, _Action, int]] = []
        self._by_message: list[tuple[int, int, _Action]] = []
        self._polls: set[int] = set()
        failures = scenario.failures
        self._active = [False] * len(failures)
        self._dropped = [False] * len(failures)
        self._over = [False] * len(failures)
        self.began: list[int | None] = [None] * len(failures)  # per failure, when it began, or None
        self.ended: list[int | None] = [None] * len(failures)  # likewise its end
        # broker name → index of the failure that it is in; the healthy are not in it
        self.reactions: dict[str, int] = {}
        self.version = 0  # counts the client's route changes
        self.changes = 0  # counts everything that happened
        # broker name → queues that it takes messages for
        self.queue_counts = {d.broker_name: max(d.write_queue_nums, d.read_queue_nums) for d in route.queue_datas}
        # brokers that the client's route does not have any more, so that it has no address for them
        self.gone: frozenset[str] = frozenset()
        self._view: View = (frozenset(), frozenset())
        self._all_queues = self._publish(self._view)
        self.unlisted: frozenset[str] = frozenset()  # brokers of the original list that the client's list leaves out
        self.keeps_list = False  # the client never asks for the route again, and so leaves out none
        self._take(self._view)
        for index, failure in enumerate(failures):
            self._plan(failure.start, "start", index)
            if failure.end is not None:
                self._plan(failure.end, "end", index)
        self._by_message.sort()
        self.next_at = self._events[0][0] if self._events else NEVER  # when something happens by itself next
        # number of the message with which something happens next
        self.next_message = self._by_message[0][0] if self._by_message else NEVER

    def advance(self, now: int) -> None:
        while self._events and self._events[0][0] <= now:
            at, _, action, index = heappop(self._events)
            self._happen(at, action, index)
        self.next_at = self._events[0][0] if self._events else NEVER

    def message_starts(self, number: int, now: int) -> None:
        """Let everything happen that comes with that message or an earlier one."""
        while self._by_message and self._by_message[0][0] <= number:
            _, index, action = self._by_message.pop(0)
            self._happen(now, action, index)
        self.next_message = self._by_message[0][0] if self._by_message else NEVER
        self.advance(now)

    def _plan(self, moment: Moment, action: _Action, index: int) -> None:
        if moment.us is not None:
            heappush(self._events, (moment.us * self._ticks, index, action, index))
        else:
            self._by_message.append((moment.message or 1, index, action))

    def _happen(self, at: int, action: _Action, index: int) -> None:
        self.changes += 1
        if action == "poll":
            self._polls.discard(at)
            self.refresh()
            return
        failure = self._scenario.failures[index]
        if action == "start" and not self._over[index]:
            self._active[index], self.began[index] = True, at
            if failure.reaction.kind == "read-only":
                self._dropped[index] = True
            elif failure.notices_us is not None:
                heappush(self._events, (at + failure.notices_us * self._ticks, index, "drop", index))
        elif action == "drop":
            self._dropped[index] = self._active[index]
        elif action == "end":
            if self._active[index]:
                self.ended[index] = at
            self._over[index] = True
            self._active[index] = self._dropped[index] = False
        self.reactions = {
            failure.broker_name: i
            for i, failure in enumerate(self._scenario.failures)
            if self._active[i] and failure.reaction.kind != "read-only"
        }
        if self._said() != self._view:
            self._plan_poll(at)

    def _plan_poll(self, at: int) -> None:
        """The client's next poll after that time; one at the very moment comes too early."""
        poll = self._first_poll
        if at >= poll:
            poll += ((at - poll) // self._poll + 1) * self._poll
        if poll not in self._polls:
            self._polls.add(poll)
            heappush(self._events, (poll, -1, "poll", 0))

    def _said(self) -> View:
        gone: set[str] = set()
        unwritable: set[str] = set()
        for failure, dropped in zip(self._scenario.failures, self._dropped, strict=True):
            if dropped:
                (unwritable if failure.reaction.kind == "read-only" else gone).add(failure.broker_name)
        return frozenset(gone), frozenset(unwritable)

    def refresh(self) -> None:
        """The client asks the NameServer; a route without any broker is no route, and it keeps the one it has."""
        said = self._said()
        if said != self._view and any(data.broker_name not in said[0] for data in self._route.queue_datas):
            self._take(said)
            self.version += 1
            self.changes += 1

    def _take(self, view: View) -> None:
        self._view = view
        self.gone = view[0]
        self.seen = self._seen(view)
        self.queues = list(self._publish(view))
        self.write_queue_nums = self._write_queue_nums(view)
        listed = {queue.broker_name for queue in self.queues}
        if not self.keeps_list:
            self.unlisted = frozenset(queue.broker_name for queue in self._all_queues) - listed

    def _publish(self, view: View) -> list[MessageQueue]:
        exclude = self._scenario.exclude
        return [queue for queue in self._seen(view).publish_queues() if queue.broker_name not in exclude]

    def _seen(self, view: View) -> TopicRouteData:
        gone, unwritable = view
        return replace(
            self._route,
            queue_datas=tuple(
                replace(data, perm=data.perm & ~PERM_WRITE) if data.broker_name in unwritable else data
                for data in self._route.queue_datas
                if data.broker_name not in gone
            ),
            broker_datas=tuple(b for b in self._route.broker_datas if b.broker_name not in gone),
        )

    def _write_queue_nums(self, view: View) -> dict[str, int]:
        """`TopicPublishInfo.getQueueIdByBroker`: the first entry of each broker; 4.9.8 takes writable ones only."""
        numbers: dict[str, int] = {}
        for data in self._seen(view).queue_datas:
            if data.writable or not self._profile.worst_needs_write:
                numbers.setdefault(data.broker_name, data.write_queue_nums)
        return numbers
