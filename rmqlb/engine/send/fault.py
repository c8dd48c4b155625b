"""Latency fault tolerance: which brokers a producer isolates after slow or failed attempts, and what it picks then.

Rules of this file:
- Times are integers on the caller's clock; `per_ms` says how many of its units make a millisecond.
- *Available* is about time (is the isolation over?), *reachable* about the detector; only 5.1.4 and newer know it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from msgspec import Meta, Struct

from rmqlb.engine.arguments import require
from rmqlb.engine.send.java_hash import map_order
from rmqlb.engine.send.profile import ClientProfile, profile_of
from rmqlb.engine.send.publish_info import TopicPublishInfo, int32, java_abs, position
from rmqlb.errors import JavaArithmeticError
from rmqlb.model.limits import JavaInt
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.send_scenario import NEWEST


class _CaughtError(Exception):
    """What Java catches and logs while it picks: a negative place in a list."""


class FaultItem(Struct):
    """What is remembered of a broker (`LatencyFaultToleranceImpl.FaultItem`)."""

    latency: int  # the last measured latency in ms
    start: int  # the time from which the broker is available
    reachable: bool  # False after a failure that the detector shall clear


class FaultStrategy:
    """`MQFaultStrategy` with its `LatencyFaultToleranceImpl`, on a clock that the caller hands in.

    `enabled` is `sendLatencyFaultEnable`, `per_ms` how many units of time make a millisecond. Whoever picks hands in
    its `worst`, whose index is `whichItemWorst`: one for each thread, as long as the producer lives (before 5.1.4).
    """

    def __init__(self, profile: ClientProfile, *, enabled: bool, per_ms: int = 1) -> None:
        self.profile = profile
        self.enabled = enabled
        self.per_ms = per_ms
        self.items: dict[str, FaultItem] = {}  # broker name → what is remembered of it

    def select(
        self,
        info: TopicPublishInfo,
        worst: TopicPublishInfo,
        last_broker_name: str | None,
        now: int,
        *,
        reset_index: bool = False,
    ) -> MessageQueue:
        """The queue for the next attempt (`MQFaultStrategy.selectOneMessageQueue`), as `MQFaultStrategy` below says."""
        if not self.enabled:
            return info.select(self.profile, last_broker_name)
        if self.profile.strategy == "filter":
            return self._filter(info, last_broker_name, now, reset_index=reset_index)
        return self._scan(info, worst, last_broker_name, now)

    def update(self, broker_name: str, latency: int, now: int, *, isolation: bool, reachable: bool) -> int:
        """Remember an attempt (`MQFaultStrategy.updateFaultItem`).

        Returns the time from which the broker is available; `now` or earlier when it is.
        """
        if not self.enabled:
            return now
        profile = self.profile
        start = now + profile.duration(latency, isolation=isolation) * self.per_ms
        item = self.items.get(broker_name)
        if item is None:
            kept = 0 if profile.only_extends and start == now else start
            self.items[broker_name] = FaultItem(latency, kept, reachable=reachable)
            return start
        item.latency = latency
        item.reachable = reachable
        if not profile.only_extends or (start > now and start > item.start):
            item.start = start
        return item.start

    def is_available(self, broker_name: str, now: int) -> bool:
        """No isolation holds the broker back (in 5.1.4, nor does it wait for the detector)."""
        item = self.items.get(broker_name)
        if item is None:
            return True
        return now >= item.start and (item.reachable or not self.profile.available_is_reachable)

    def is_reachable(self, broker_name: str) -> bool:
        item = self.items.get(broker_name)
        return item is None or item.reachable

    def _filter(self, info: TopicPublishInfo, last: str | None, now: int, *, reset_index: bool) -> MessageQueue:
        if reset_index and self.profile.resets_index:
            info.reset_index()

        profile = self.profile
        return (
            info.select_where(profile, lambda name: name != last and self.is_available(name, now))
            or info.select_where(profile, lambda name: name != last and self.is_reachable(name))
            or info.select(profile)
        )

    def _scan(self, info: TopicPublishInfo, worst: TopicPublishInfo, last: str | None, now: int) -> MessageQueue:
        """One step of the index, then the list from there; all isolated: a broker of the better half.

        Java does this inside a `try` whose `catch` only logs.
        """
        try:
            found = self._scan_list(info, last, now) or self._better_half(info, worst, now)
        except _CaughtError:
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
        if not self.profile.plain_remainder:
            return position(java_abs(index), size)
        place = _remainder(index, size)
        if place < 0:
            raise _CaughtError
        return place

    def _better_half(self, info: TopicPublishInfo, worst: TopicPublishInfo, now: int) -> MessageQueue | None:
        """A queue of the broker that `pickOneAtLeast` names; before 5.1.4, 4.9.8 apart, the list changes with it."""
        profile, queues = self.profile, info.queues
        name = self._pick_one_at_least(worst, now)
        if name is None:
            return None
        write_queues = info.write_queue_nums.get(name, -1)
        if write_queues <= 0:
            del self.items[name]
            return None
        queue = info.select(profile)
        picked = MessageQueue(queue.topic, name, _remainder(info.next_index(profile), write_queues))
        if profile.mutates:
            queues[:] = [picked if listed is queue else listed for listed in queues]
        return picked

    def _pick_one_at_least(self, worst: TopicPublishInfo, now: int) -> str | None:
        """`LatencyFaultToleranceImpl.pickOneAtLeast`: the better half in turn, by an index for nothing else.

        Clients up to 4.9.3 break ties at random; here they are broken as later clients do.
        """
        ranked = sorted(
            map_order(self.items),
            key=lambda name: (now < self.items[name].start, self.items[name].latency, self.items[name].start),
        )
        if not ranked:
            return None
        half = len(ranked) // 2
        if half == 0:
            return ranked[0]
        place = _remainder(worst.next_index(self.profile), half)
        if place < 0:
            raise _CaughtError
        return ranked[place]


class MQFaultStrategy:
    """The producer's pick with latency fault tolerance, as `client.latency.MQFaultStrategy` does it.

    Args:
        send_latency_fault_enable: off, brokers are never isolated and updates do nothing.
        clock: gives the time in whole milliseconds.
        client_version: whose rules, such as "4.9.7"; default the newest known.
        which_item_worst: the index before the next pick among isolated brokers (clients before 5.1.4).

    Raises:
        UsageError: an argument cannot be what it is, or there is no such client version.

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
        self._given_clock = clock or _wall_clock

    def _clock(self) -> int:
        now = self._given_clock()
        require(now, int, "the clock's time")
        return now

    def select_one_message_queue(
        self, publish_info: TopicPublishInfo, last_broker_name: str | None, reset_index: bool = False
    ) -> MessageQueue:
        """The queue for the next attempt; mirrors `MQFaultStrategy.selectOneMessageQueue`.

        Args:
            publish_info: the thread's queue list; its index moves on.
            last_broker_name: the broker of the attempt before, None on a first attempt.
            reset_index: True on retries; 5.1.4 and newer start the round robin anew then.

        Raises:
            UsageError: an argument is of the wrong type.
            JavaArithmeticError: the list is empty; it is a ZeroDivisionError too.
        """
        require(publish_info, TopicPublishInfo, "publish_info")
        require(last_broker_name, str | None, "last_broker_name")
        require(reset_index, bool, "reset_index")
        if not publish_info.queues:
            raise JavaArithmeticError("/ by zero")
        rules, now = self._rules, self._clock()
        return rules.select(publish_info, self._worst, last_broker_name, now, reset_index=reset_index)

    def update_fault_item(
        self, broker_name: str, current_latency: int, isolation: bool = False, reachable: bool = True
    ) -> None:
        """Tell how an attempt went; mirrors `MQFaultStrategy.updateFaultItem`.

        Args:
            broker_name: whose attempt it was.
            current_latency: how long it took, in ms.
            isolation: it failed: the broker is isolated as if it had taken very long.
            reachable: False hides the broker from the second choice until the detector finds it (5.1.4 and newer).

        Raises:
            UsageError: an argument is of the wrong type, or no time of a client.
        """
        require(broker_name, str, "broker_name")
        require(current_latency, Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)], "current_latency")
        require(isolation, bool, "isolation")
        require(reachable, bool, "reachable")
        self._rules.update(broker_name, current_latency, self._clock(), isolation=isolation, reachable=reachable)

    def is_available(self, broker_name: str) -> bool:
        """The broker is not isolated now (`LatencyFaultTolerance.isAvailable`).

        Raises:
            UsageError: it is no name.
        """
        require(broker_name, str, "broker_name")
        return self._rules.is_available(broker_name, self._clock())


def _remainder(value: int, divisor: int) -> int:
    """Java's `%`: the sign of the dividend."""
    return value % divisor if value >= 0 else -(-value % divisor)


def _wall_clock() -> int:
    import time

    return time.time_ns() // 1_000_000
