"""The notes of a running simulation: who owned which queue from when to when, and what happened and why."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from msgspec import Struct

from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.result import milliseconds
from rmqlb.model.simulate_rebalance import Step

Break = tuple[int, int | None]  # from when to when; None while it lasts


class Hold(Struct, eq=False):
    """A queue in a consumer's table (`ProcessQueue`), until the consumer drops the queue. Times are in microseconds."""

    queue: MessageQueue
    client_id: str
    from_us: int  # negative when it was taken before the start
    persisted_before: Callable[[int], int | None]  # a time → the last time until then at which offsets were stored
    committed_before: Callable[[int], int] = lambda at_us: at_us  # time of storing → time of the last covered delivery
    reads_from_us: int | None = None
    stalled_us: int | None = None
    pauses: list[Break] = []  # its broker answered no pull
    freezes: list[Break] = []  # its owner's process was frozen
    to_us: int | None = None
    persisted: bool = False  # the offset was stored when the queue was dropped
    renewed_us: int = 0  # orderly: when the broker's lock was last renewed
    busy_until_us: int = 0  # orderly: until when the listener holds on to it once it is dropped
    locked: bool = True  # orderly: the client knows that the broker's lock is its own

    @property
    def dropped(self) -> bool:
        """Whether the consumer gave the queue up; the table may keep the queue until the listener lets go."""
        return self.to_us is not None

    @property
    def is_paused(self) -> bool:
        return bool(self.pauses) and self.pauses[-1][1] is None

    def pause(self, at_us: int) -> None:
        if not self.is_paused:
            self.pauses.append((at_us, None))

    def resume(self, at_us: int) -> None:
        self.pauses[-1] = self.pauses[-1][0], at_us

    def owned(self) -> Iterator[Break]:
        yield from _without(self.from_us, self.to_us, self.freezes)

    def turns(self) -> Iterator[tuple[int, bool]]:
        """The times at which its pauses begin (True) and end (False) while it is owned."""
        for owned, until in self.owned():
            for pause, over in self.pauses:
                end = min((at for at in (over, until) if at is not None), default=None)
                if (until is None or pause < until) and (end is None or end > owned):
                    yield max(pause, owned), True
                    if end is not None:
                        yield end, False

    def reads(self, end_us: int) -> Iterator[tuple[int, int]]:
        if self.reads_from_us is not None:
            last = min(at for at in (self.stalled_us, self.to_us, end_us) if at is not None)
            for begin, end in _without(self.reads_from_us, last, self._silences()):
                yield begin, last if end is None else end

    def read_until(self, end_us: int) -> int | None:
        return max((end for _, end in self.reads(end_us)), default=None)

    def stored_before(self, at_us: int) -> int | None:
        """The last time a timer stored the offset; not while the broker is down or the consumer is frozen."""
        tick = self.persisted_before(at_us if self.to_us is None else min(at_us, self.to_us))
        for begin, end in reversed(self._silences()):
            if tick is not None and begin < tick and (end is None or tick < end):
                tick = self.persisted_before(begin)
        return tick

    def stale_position_us(self) -> int | None:
        """The position before a freeze, if the consumer stored it: it dropped the queue before it had caught up."""
        if not self.persisted or self.to_us is None or not self.freezes:
            return None
        begin, end = self.freezes[-1]
        return begin if end is not None and self.to_us - end < end - begin else None

    def _silences(self) -> list[Break]:
        return sorted([*self.pauses, *self.freezes], key=lambda span: span[0])


def _without(begin: int, end: int | None, breaks: Iterable[Break]) -> Iterator[Break]:
    """The rest of a span of time without its breaks, which are in the order of time and may overlap."""
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
    explain: bool
    holds: list[Hold] = []  # in the order in which queues were taken
    there: dict[MessageQueue, list[tuple[int, bool]]] = {}  # times of creation (True) and removal (False)
    # times when the last process of a queue's broker went (False) and the first came back (True); without an entry it
    # served all the time
    served: dict[MessageQueue, list[tuple[int, bool]]] = {}
    steps: list[Step] = []  # empty unless `explain`
    last_change_us: int = -1  # of an owner
    rebalances: int = 0
    waiting_pulls: int = 0  # queues that were taken and not yet pulled
    resuming: set[Hold] = set()  # their brokers are back, and their next pull is due

    def take(self, hold: Hold) -> None:
        self.holds.append(hold)
        self.last_change_us = max(self.last_change_us, hold.from_us)

    def drop(self, hold: Hold, at_us: int, *, persisted: bool) -> None:
        hold.to_us = self.last_change_us = at_us
        hold.persisted = persisted and not hold.is_paused
        self.resuming.discard(hold)

    def freeze(self, holds: Iterable[Hold], at_us: int) -> None:
        for hold in holds:
            hold.freezes.append((at_us, None))
            self.last_change_us = at_us
            self.resuming.discard(hold)

    def unfreeze(self, holds: Iterable[Hold], at_us: int) -> None:
        for hold in holds:
            hold.freezes[-1] = hold.freezes[-1][0], at_us
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
        if self.explain:
            self.steps.append(Step(milliseconds(at_us), who, what, text, tuple(queues)))
