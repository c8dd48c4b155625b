"""What is written down while a simulation runs: who held which queue from when to when, and what happened why."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from msgspec import Struct

from rmqlb.model.group_report import Step
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.times import milliseconds


class Hold(Struct, eq=False):
    """A queue in a member's process-queue table, from taking it to dropping it."""

    queue: MessageQueue
    client_id: str
    from_us: int  # when it was taken; negative when that was before the start
    # a time → when the member's timer last stored its offsets at or before it; None before the first time
    persisted_before: Callable[[int], int | None]
    # a time at which an offset is stored → up to when that covers what was delivered
    committed_before: Callable[[int], int] = lambda at_us: at_us
    reads_from_us: int | None = None
    stalled_us: int | None = None
    # the stretches of time in which its broker answered no pull; the last may be without an end
    pauses: list[tuple[int, int | None]] = []
    freezes: list[tuple[int, int | None]] = []  # likewise those in which its owner's process was frozen
    to_us: int | None = None
    persisted: bool = False  # the offset was stored when it was dropped

    @property
    def is_paused(self) -> bool:
        return bool(self.pauses) and self.pauses[-1][1] is None

    def owned(self) -> Iterator[tuple[int, int | None]]:
        """From when to when it is held by a process that runs; a frozen one has it in its table, and does nothing."""
        yield from _without(self.from_us, self.to_us, self.freezes)

    def turns(self) -> Iterator[tuple[int, bool]]:
        """When its pauses begin (True) and end (False) while it is owned."""
        for owned, until in self.owned():
            for pause, over in self.pauses:
                end = min((at for at in (over, until) if at is not None), default=None)
                if (until is None or pause < until) and (end is None or end > owned):
                    yield max(pause, owned), True
                    if end is not None:
                        yield end, False

    def reads(self, end_us: int) -> Iterator[tuple[int, int]]:
        """From when to when it is read, none of them empty."""
        if self.reads_from_us is not None:
            last = min(at for at in (self.stalled_us, self.to_us, end_us) if at is not None)
            for begin, end in _without(self.reads_from_us, last, self._silences()):
                yield begin, last if end is None else end

    def _silences(self) -> list[tuple[int, int | None]]:
        """Pauses and freezes by their beginning; two may begin at once, and one of them go on."""
        return sorted([*self.pauses, *self.freezes], key=lambda span: span[0])

    def read_until(self, end_us: int) -> int | None:
        """When it is last read; None when it never is."""
        return max((end for _, end in self.reads(end_us)), default=None)

    def stored_before(self, at_us: int) -> int | None:
        """When the member's timer last stored its offset at or before a time.

        A broker that is away stores none, and neither does a member that is frozen.
        """
        tick = self.persisted_before(at_us if self.to_us is None else min(at_us, self.to_us))
        for begin, end in reversed(self._silences()):
            if tick is not None and begin < tick and (end is None or tick < end):
                tick = self.persisted_before(begin)
        return tick

    def stale_position_us(self) -> int | None:
        """What it stored when it was given up right after a freeze: where it stood before.

        None when it was not, or when it had been read again for so long that it had caught up.
        """
        if not self.persisted or self.to_us is None or not self.freezes:
            return None
        begin, end = self.freezes[-1]
        return begin if end is not None and self.to_us - end < end - begin else None

    def pause(self, at_us: int) -> None:
        """Its broker answers no pull from now on; nothing when that is so already."""
        if not self.is_paused:
            self.pauses.append((at_us, None))

    def freeze(self, at_us: int) -> None:
        self.freezes.append((at_us, None))

    def unfreeze(self, at_us: int) -> None:
        begin, _ = self.freezes.pop()
        self.freezes.append((begin, at_us))

    def resume(self, at_us: int) -> None:
        begin, _ = self.pauses.pop()
        self.pauses.append((begin, at_us))


def _without(begin: int, end: int | None, breaks: Iterable[tuple[int, int | None]]) -> Iterator[tuple[int, int | None]]:
    """What is left of a stretch of time, none of it empty; the breaks are in the order of time and may overlap."""
    for away, back in breaks:
        if end is not None and away >= end:
            break
        if begin < away:
            yield begin, away
        if back is None:
            return
        begin = max(begin, back)
    if end is None or begin < end:
        yield begin, end


class EventLog(Struct, eq=False):
    """The notes of one simulation."""

    explain: bool
    holds: list[Hold] = []  # in the order in which queues were taken
    # queue → the times at which it came to be (True) or was removed (False)
    there: dict[MessageQueue, list[tuple[int, bool]]] = {}
    # queue → the times at which the last process of its broker went (False) and the first came back (True); a queue
    # without an entry was served all the time
    served: dict[MessageQueue, list[tuple[int, bool]]] = {}
    steps: list[Step] = []  # what happened; only kept when asked for
    last_change_us: int = -1  # when a queue was last taken or dropped; −1 before the first time
    rebalances: int = 0
    waiting_pulls: int = 0  # queues taken whose first pull is still to come
    resuming: set[Hold] = set()  # holds whose broker answers again, and whose next pull is still to come

    def take(self, hold: Hold) -> None:
        self.holds.append(hold)
        self.last_change_us = max(self.last_change_us, hold.from_us)

    def drop(self, hold: Hold, at_us: int, *, persisted: bool) -> None:
        hold.to_us = at_us
        hold.persisted = persisted and not hold.is_paused
        self.last_change_us = at_us
        self.resuming.discard(hold)

    def freeze(self, holds: Iterable[Hold], at_us: int) -> None:
        for hold in holds:
            hold.freeze(at_us)
            self.last_change_us = at_us
            self.resuming.discard(hold)

    def unfreeze(self, holds: Iterable[Hold], at_us: int) -> None:
        for hold in holds:
            hold.unfreeze(at_us)
            self.last_change_us = at_us

    def is_there(self, queue: MessageQueue) -> bool:
        return queue in self.there and self.there[queue][-1][1]

    def is_served(self, queue: MessageQueue) -> bool:
        return queue not in self.served or self.served[queue][-1][1]

    def exist(self, queues: Iterable[MessageQueue], at_us: int, *, there: bool) -> None:
        for queue in queues:
            self.there.setdefault(queue, []).append((at_us, there))

    def serve(self, queues: Iterable[MessageQueue], at_us: int, *, served: bool) -> None:
        for queue in queues:
            self.served.setdefault(queue, []).append((at_us, served))

    def say(self, at_us: int, who: str, what: str, text: str, queues: Iterable[MessageQueue] = ()) -> None:
        """Write a step down; callers ask `explain` first where the text costs time."""
        if self.explain:
            self.steps.append(Step(milliseconds(at_us), who, what, text, tuple(queues)))
