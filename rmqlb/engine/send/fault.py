"""How a Java producer picks a queue: the round robin over its list, and the brokers that latency fault isolates.

- Integers are Java's: 32 bits, wrapping. `send_which_queue` is the value stored before the next step.
- One `TopicPublishInfo` is one thread's view: the index is a ThreadLocal. Threads share the list, not the index.
- Times are integers on the caller's clock; `per_ms` is the number of its units per millisecond.
- *Available* is about time (is the isolation over?), *reachable* about the detector of 5.1.4 and newer.
"""

import random as python_random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated

from msgspec import Meta, Struct

from rmqlb.engine.arguments import items, require
from rmqlb.engine.send.java import MASK, int32, java_abs, map_order, position, remainder
from rmqlb.engine.send.profile import ClientProfile, profile_of
from rmqlb.errors import JavaArithmeticError
from rmqlb.model.limits import MOST_QUEUES, JavaInt
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.send_scenario import NEWEST


class TopicPublishInfo:
    """A producer thread's view of a topic (`impl.producer.TopicPublishInfo`); raises UsageError.

    Args:
        queues: the publish list, in order; most clients before 5.1.4 change it in place when every broker is isolated.
        send_which_queue: the round robin's index before the next pick, a 32-bit number (`ThreadLocalIndex`).
        write_queue_nums: broker name → write queues in the route; default: as in the list. Clients before 5.1.4 need
            it when every broker is isolated.
        random: gives the next `Random.nextInt(2^31 − 1)`, for clients that reset the index; default: Python's.
    """

    def __init__(
        self,
        queues: Iterable[MessageQueue],
        send_which_queue: int = 0,
        write_queue_nums: Mapping[str, int] | None = None,
        random: Callable[[], int] | None = None,
    ) -> None:
        self.queues = [] if queues == () else items(queues, MessageQueue, "queues", MOST_QUEUES)
        require(send_which_queue, int, "send_which_queue")
        require(write_queue_nums, Mapping[str, int] | None, "write_queue_nums")
        require(random, Callable[[], int] | None, "random")
        self.send_which_queue = int32(send_which_queue)
        self.write_queue_nums = (
            Counter(queue.broker_name for queue in self.queues) if write_queue_nums is None else dict(write_queue_nums)
        )
        self.random = random or (lambda: python_random.randrange(MASK))  # noqa: S311 - it imitates java.util.Random

    def next_index(self, profile: ClientProfile) -> int:
        """Advance the round robin (`ThreadLocalIndex`); −2^31 is possible in 4.8.0 to 4.9.3."""
        index = self.send_which_queue + 1 if self.send_which_queue < MASK else -0x80000000
        if profile.index_step in ("fold", "clamp"):
            # Before 4.8.0 `Math.abs` of −2^31, still negative, is set to 0; in 4.8.0 it is stored and used as it is.
            index = max(java_abs(index), 0) if profile.index_step == "clamp" else java_abs(index)
        self.send_which_queue = index
        return index & MASK if profile.index_step == "mask" else java_abs(index)

    def reset_index(self) -> None:
        """Restart at a random place (`ThreadLocalIndex.reset`, 5.1.4 and newer)."""
        start = self.random()
        require(start, int, "the random number")
        self.send_which_queue = int32(start)

    def select(self, profile: ClientProfile, last_broker_name: str | None = None) -> MessageQueue:
        """The plain pick, without latency fault (`TopicPublishInfo.selectOneMessageQueue`)."""
        found = None if last_broker_name is None else self._other_broker(profile, last_broker_name)
        return found or self.queues[position(self.next_index(profile), len(self.queues))]

    def select_where(self, profile: ClientProfile, accepts: Callable[[str], bool]) -> MessageQueue | None:
        """The next queue whose broker is accepted, or None; each try is a step (`TopicPublishInfo.select`, 5.1.4)."""
        queues = self.queues
        for _ in range(len(queues)):
            queue = queues[position(self.next_index(profile), len(queues))]
            if accepts(queue.broker_name):
                return queue
        return None

    def _other_broker(self, profile: ClientProfile, last_broker_name: str) -> MessageQueue | None:
        if profile.skip != "scan":
            return self.select_where(profile, last_broker_name.__ne__)
        queues, index = self.queues, self.next_index(profile)
        for i in range(len(queues)):
            queue = queues[position(java_abs(int32(index + i)), len(queues))]
            if queue.broker_name != last_broker_name:
                return queue
        return None


class FaultItem(Struct):
    """The state of a broker (`LatencyFaultToleranceImpl.FaultItem`)."""

    latency: int  # the last measured latency in ms
    start: int  # the time from which the broker is available
    reachable: bool  # False after a failure that the detector shall clear


class FaultStrategy:
    """`MQFaultStrategy` with its `LatencyFaultToleranceImpl`; `worst` has the index `whichItemWorst` of one thread."""

    def __init__(self, profile: ClientProfile, *, enabled: bool, per_ms: int = 1) -> None:
        self.profile, self.enabled, self.per_ms = profile, enabled, per_ms
        self.items: dict[str, FaultItem] = {}  # by broker name

    def select(
        self,
        info: TopicPublishInfo,
        worst: TopicPublishInfo,
        last_broker_name: str | None,
        now: int,
        *,
        reset_index: bool = False,
    ) -> MessageQueue:
        """Mirrors `MQFaultStrategy.selectOneMessageQueue`."""
        if not self.enabled:
            return info.select(self.profile, last_broker_name)
        if self.profile.strategy == "filter":
            return self._filter(info, last_broker_name, now, reset_index=reset_index)
        return self._scan(info, worst, last_broker_name, now)

    def update(self, broker_name: str, latency: int, now: int, *, isolation: bool, reachable: bool) -> int:
        """Record an attempt (`MQFaultStrategy.updateFaultItem`); returns when the broker is available again."""
        if not self.enabled:
            return now
        profile = self.profile
        start = now + profile.duration(latency, isolation=isolation) * self.per_ms
        item = self.items.get(broker_name)
        if item is None:
            kept = 0 if profile.only_extends and start == now else start
            self.items[broker_name] = FaultItem(latency, kept, reachable=reachable)
            return start
        item.latency, item.reachable = latency, reachable
        if not profile.only_extends or (start > now and start > item.start):
            item.start = start
        return item.start

    def is_available(self, broker_name: str, now: int) -> bool:
        """Whether no isolation holds the broker back; in 5.1.4 the broker also waits for the detector."""
        item = self.items.get(broker_name)
        if item is None:
            return True
        return now >= item.start and (item.reachable or not self.profile.available_is_reachable)

    def _filter(self, info: TopicPublishInfo, last: str | None, now: int, *, reset_index: bool) -> MessageQueue:
        profile, items = self.profile, self.items
        if reset_index and profile.resets_index:
            info.reset_index()
        return (
            info.select_where(profile, lambda name: name != last and self.is_available(name, now))
            or info.select_where(profile, lambda name: name != last and (name not in items or items[name].reachable))
            or info.select(profile)
        )

    def _scan(self, info: TopicPublishInfo, worst: TopicPublishInfo, last: str | None, now: int) -> MessageQueue:
        """Scan the list from the next index, then the better half; Java catches and logs a negative place in a list."""
        try:
            found = self._scan_list(info, last, now) or self._better_half(info, worst, now)
        except IndexError:
            found = None
        return info.select(self.profile) if found is None else found

    def _scan_list(self, info: TopicPublishInfo, last: str | None, now: int) -> MessageQueue | None:
        queues, rule = info.queues, self.profile.scan_last
        index = info.next_index(self.profile)
        for i in range(len(queues)):
            queue = queues[self._place(int32(index + i), len(queues))]
            name = queue.broker_name
            if rule == "avoid":
                if name != last and self.is_available(name, now):
                    return queue
            elif self.is_available(name, now) and (rule == "ignore" or last is None or name == last):
                return queue
        return None

    def _place(self, index: int, size: int) -> int:
        place = remainder(index, size) if self.profile.plain_remainder else position(java_abs(index), size)
        if place < 0:
            raise IndexError
        return place

    def _better_half(self, info: TopicPublishInfo, worst: TopicPublishInfo, now: int) -> MessageQueue | None:
        """A queue of the broker of `pickOneAtLeast`; before 5.1.4, except in 4.9.8, the list changes with it."""
        profile, queues, name = self.profile, info.queues, self._pick_one_at_least(worst, now)
        if name is None:
            return None
        write_queues = info.write_queue_nums.get(name, -1)
        if write_queues <= 0:
            del self.items[name]
            return None
        queue = info.select(profile)
        picked = MessageQueue(queue.topic, name, remainder(info.next_index(profile), write_queues))
        if profile.mutates:
            queues[:] = [picked if listed is queue else listed for listed in queues]
        return picked

    def _pick_one_at_least(self, worst: TopicPublishInfo, now: int) -> str | None:
        """`LatencyFaultToleranceImpl.pickOneAtLeast`; clients up to 4.9.3 break ties at random, here as newer ones."""
        ranked = sorted(
            map_order(self.items),
            key=lambda name: (now < self.items[name].start, self.items[name].latency, self.items[name].start),
        )
        if not ranked:
            return None
        half = len(ranked) // 2
        if half == 0:
            return ranked[0]
        place = remainder(worst.next_index(self.profile), half)
        if place < 0:
            raise IndexError
        return ranked[place]


class MQFaultStrategy:
    """`client.latency.MQFaultStrategy`; all methods raise UsageError for an argument of the wrong type.

    Args:
        send_latency_fault_enable: off, brokers are never isolated and updates do nothing.
        clock: gives the time in whole milliseconds.
        client_version: the version of the rules, such as "4.9.7"; default the newest known.
        which_item_worst: the index before the next pick among isolated brokers (clients before 5.1.4).

    >>> queues = [MessageQueue("T", broker, i) for broker in "ab" for i in range(2)]
    >>> info, strategy = TopicPublishInfo(queues, -1), MQFaultStrategy(True, clock=lambda: 0)
    >>> strategy.update_fault_item("a", 20, isolation=True, reachable=True)
    >>> [str(strategy.select_one_message_queue(info, None).broker_name) for _ in range(3)]
    ['b', 'b', 'b']
    """

    def __init__(
        self,
        send_latency_fault_enable: bool = False,
        clock: Callable[[], int] | None = None,
        client_version: str = NEWEST,
        which_item_worst: int = 0,
    ) -> None:
        require(send_latency_fault_enable, bool, "send_latency_fault_enable")
        require(clock, Callable[[], int] | None, "clock")
        require(client_version, str, "client_version")
        require(which_item_worst, JavaInt, "which_item_worst")
        self._rules = FaultStrategy(profile_of(client_version), enabled=send_latency_fault_enable)
        self._worst = TopicPublishInfo((), which_item_worst, {})
        self._given_clock = clock or (lambda: time.time_ns() // 1_000_000)

    def _clock(self) -> int:
        now = self._given_clock()
        require(now, int, "the clock's time")
        return now

    def select_one_message_queue(
        self, publish_info: TopicPublishInfo, last_broker_name: str | None, reset_index: bool = False
    ) -> MessageQueue:
        """Mirrors `MQFaultStrategy.selectOneMessageQueue`; `reset_index` matters from 5.1.4 on, for retries.

        Raises:
            JavaArithmeticError: the list is empty; it is a ZeroDivisionError too.
        """
        require(publish_info, TopicPublishInfo, "publish_info")
        require(last_broker_name, str | None, "last_broker_name")
        require(reset_index, bool, "reset_index")
        if not publish_info.queues:
            raise JavaArithmeticError("/ by zero")
        return self._rules.select(publish_info, self._worst, last_broker_name, self._clock(), reset_index=reset_index)

    def update_fault_item(
        self, broker_name: str, current_latency: int, isolation: bool = False, reachable: bool = True
    ) -> None:
        """Record an attempt (`MQFaultStrategy.updateFaultItem`); `current_latency` is in ms.

        `isolation` marks a failure, which counts as a very long attempt. `reachable` False hides the broker from the
        second choice until the detector finds it (5.1.4 and newer).
        """
        require(broker_name, str, "broker_name")
        require(current_latency, Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)], "current_latency")
        require(isolation, bool, "isolation")
        require(reachable, bool, "reachable")
        self._rules.update(broker_name, current_latency, self._clock(), isolation=isolation, reachable=reachable)

    def is_available(self, broker_name: str) -> bool:
        """Whether the broker is not isolated now (`LatencyFaultTolerance.isAvailable`)."""
        require(broker_name, str, "broker_name")
        return self._rules.is_available(broker_name, self._clock())
