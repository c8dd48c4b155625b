"""A broker's view of a group: its list of consumers, its locks, and its notices.

Mirrors `ConsumerManager`, `DefaultConsumerIdsChangeListener`, `ClientHousekeepingService` and `RebalanceLockManager`.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable
from typing import Protocol

from msgspec import Struct

from rmqlb.engine.kernel import Clock, Draws, Process, Steps
from rmqlb.engine.rebalance.shares import MemberList
from rmqlb.model.group_scenario import Timers
from rmqlb.model.java import sort_key
from rmqlb.model.message_queue import MessageQueue

_EARLY_CLOSE = 3
"""One in this many closes is noticed before the client is forgotten: 3 of 8 in recordings on a busy machine."""


class Channel(Protocol):
    @property
    def client_id(self) -> str: ...  # the id in its heartbeats
    def notice(self, broker: Broker) -> None: ...  # it is told that the group's members have changed (request code 40)
    # the broker has closed the connection; whether the other end is there to hear it
    def closed(self, broker: Broker, /) -> bool: ...


class Broker(Struct, eq=False):
    name: str
    broker_id: int  # 0 is the master
    clock: Clock
    draws: Draws
    timers: Timers
    tells: bool  # it notifies consumers of changes
    one_way: Callable[[Draws], int]
    list_of: Callable[[tuple[str, ...]], MemberList]  # equal lists of ids as one object
    changed: Callable[[], None]  # called when its list of consumers changes
    say: Callable[[Broker, str, str], None] | None  # notes what it does
    up: bool = True  # its process runs
    silent: bool = False  # its machine is lost: requests end in a timeout
    _ids: list[tuple[bytes, str]] = []
    _members: MemberList | None = None
    _beats: dict[Channel, int] = {}
    _locks: dict[MessageQueue, tuple[str, int]] = {}
    _unsent: bool = False
    _processes: list[Process] = []

    def __str__(self) -> str:
        name = self.name if self.broker_id == 0 else f"{self.name}:{self.broker_id}"
        return name if name.lower().startswith("broker") else f"broker {name}"

    def run(self) -> None:
        scan, batch = self.timers.broker_scan_us, self.timers.notify_batch_us
        self._processes = [self.clock.start(self._scan(), self.draws.below(scan))]
        if batch:
            self._processes.append(self.clock.start(self._batches(), self.draws.below(batch)))

    def stop(self, *, silent: bool = False) -> None:
        self.up, self.silent = False, silent
        for process in self._processes:
            process.end()
        self._beats.clear()
        self._locks.clear()
        self._ids.clear()
        self._news_of_ids()

    def back(self) -> None:
        self.up, self.silent = True, False
        self.run()

    def beat(self, channel: Channel, *, at_us: int | None = None) -> None:
        new = channel not in self._beats  # `ConsumerManager.registerConsumer`: a new channel is news for the group
        self._beats[channel] = self.clock.now if at_us is None else at_us
        if new:
            insort(self._ids, _key(channel))
            self._news_of_ids()
            if at_us is None:
                self._news(f"hears {channel.client_id} for the first time")

    def forget(self, channel: Channel, why: str) -> None:
        if channel in self._beats:
            self._drop(channel)
            self._news(why)

    @property
    def members(self) -> MemberList | None:
        """The listed IDs, sorted, duplicates kept; None while the broker knows no consumer of the group."""
        if self._members is None and self._ids:
            self._members = self.list_of(tuple([client_id for _, client_id in self._ids]))
        return self._members

    def last_beat_us(self, channel: Channel) -> int | None:
        return self._beats.get(channel)

    def try_lock(self, queue: MessageQueue, client_id: str, *, at_us: int | None = None) -> bool:
        """`RebalanceLockManager.tryLockBatch` for one queue: taken, renewed, or taken over when it has expired."""
        now = self.clock.now if at_us is None else at_us
        holder, renewed = self._locks.get(queue, (client_id, now))
        if holder != client_id and now - renewed <= self.timers.lock_life_us:
            return False
        self._locks[queue] = client_id, now
        return True

    def unlock(self, queue: MessageQueue, client_id: str) -> None:
        """`RebalanceLockManager.unlockBatch`: only the holder's own lock."""
        if self._locks.get(queue, ("", 0))[0] == client_id:
            del self._locks[queue]

    def lock_of(self, queue: MessageQueue) -> str | None:
        return self._locks.get(queue, (None, 0))[0]

    def _drop(self, channel: Channel) -> None:
        del self._beats[channel]
        del self._ids[bisect_left(self._ids, _key(channel))]
        self._news_of_ids()

    def _news_of_ids(self) -> None:
        self._members = None
        self.changed()

    def _news(self, what: str) -> None:
        """Notify the consumers of a change, except in a BROADCASTING group (brokers from 5.3.1 on)."""
        if self.tells and not self.timers.notify_batch_us:
            self._tell(f"{what}: ")
            return
        self._unsent = self.tells
        if self.say:
            batch, nobody = "will tell the group with the next batch", "tells no consumer of a BROADCASTING group"
            self.say(self, "notice", f"{what}: {batch if self.tells else nobody}")

    def _tell(self, why: str = "") -> None:
        """`Broker2Client.notifyConsumerIdsChanged` to every channel of the group, one way."""
        if self.say:
            names = ", ".join(client_id for _, client_id in self._ids)
            self.say(self, "notice", f"{why}tells {names or 'no consumer'}")
        for channel in self._beats:
            self.clock.call(self.one_way(self.draws), channel.notice, self)

    def _scan(self) -> Steps:
        """`ConsumerManager.scanNotActiveChannel`: close the connection, then forget the client, and notify nobody.

        If another thread notices the close before the client is forgotten, that thread notifies the others.
        """
        expiry, every = self.timers.channel_expiry_us, self.timers.broker_scan_us
        while True:
            for channel in [channel for channel, beat in self._beats.items() if self.clock.now - beat > expiry]:
                self._drop(channel)
                if channel.closed(self) and not self.draws.below(_EARLY_CLOSE):
                    self._news(f"has not heard {channel.client_id} for too long, and finds its connection closed")
                elif self.say:
                    self.say(self, "expire", f"has not heard {channel.client_id} for too long, and tells no consumer")
            yield every

    def _batches(self) -> Steps:
        while True:
            if self._unsent:
                self._unsent = False
                self._tell()
            yield self.timers.notify_batch_us


def _key(channel: Channel) -> tuple[bytes, str]:
    return sort_key(channel.client_id), channel.client_id
