"""What the owners of a queue leave behind: the position that is stored when another takes it, and times without reads.

Of an owner that has given the queue up nothing changes any more, so that it is summed up: after many restarts a queue
has had many owners, and each takeover would go through all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from rmqlb.engine.rebalance.event_log import Hold
from rmqlb.model.message_queue import MessageQueue


class Earlier(Struct, eq=False):
    """What all owners before a moment have left behind; asked in the order of time."""

    way_us: int  # how long a message takes to the broker
    end_us: int
    persisted: bool = False  # one of them has stored a position by the moment last asked for
    read_until: int | None = None  # when the last of them reads last; None when none ever does
    _owning: list[Hold] = []
    _begun: int | None = None
    _left: int | None = None
    _told: tuple[int, int] | None = None

    def add(self, hold: Hold, began_at: int | None) -> None:
        if began_at is not None or hold.from_us >= 0:
            self._begun = _latest(self._begun, hold.from_us if began_at is None else began_at)
        self._owning.append(hold)
        self.read_until = _latest(self.read_until, hold.read_until(self.end_us))

    def position(self, at_us: int) -> int | None:
        """The position that the broker has stored by then; None when nobody ever read the queue.

        Brokers take what they are told: a member that gives a queue up after a freeze sets it back to where it stood.
        """
        self._sum_up(at_us)
        owning = [position for hold in self._owning for position in persisted(hold, at_us, self.way_us)]
        self.persisted = self._left is not None or bool(owning)
        known = _latest(self._begun, self._left, *owning)
        if self._told is not None and (known is None or known <= self._told[0]):
            return self._told[1]
        return known

    def _sum_up(self, at_us: int) -> None:
        gone = [hold for hold in self._owning if hold.to_us is not None and hold.to_us + self.way_us <= at_us]
        if not gone:
            return
        self._owning = [hold for hold in self._owning if hold.to_us is None or hold.to_us + self.way_us > at_us]
        for hold in gone:
            self._left = _latest(self._left, *persisted(hold, at_us, self.way_us))
            stale = hold.stale_position_us()
            if stale is not None and hold.to_us:
                self._told = max((hold.to_us + self.way_us, stale), self._told or (0, 0))


def persisted(hold: Hold, at_us: int, way_us: int) -> list[int]:
    """The positions that an owner has stored by then: by its timer, and when it gave the queue up."""
    known = []
    tick = hold.stored_before(at_us)
    if tick is not None and hold.committed_before(tick) >= hold.from_us:
        known.append(hold.committed_before(tick))
    stale = hold.stale_position_us()
    if stale is not None:
        return [min(tick, stale) for tick in known]
    if hold.persisted and hold.to_us is not None and hold.to_us + way_us <= at_us:
        given_up = hold.committed_before(hold.to_us)
        known += [given_up] if given_up >= hold.from_us else []
    return known


def _latest(*moments: int | None) -> int | None:
    return max((at for at in moments if at is not None), default=None)


Span = tuple[int, int]  # from when to when, in microseconds


class QueueNotes(Struct, frozen=True, eq=False):
    """What was noted of one queue; when it was there and served is as in the `EventLog`."""

    queue: MessageQueue
    holds: Sequence[Hold]
    there: Sequence[tuple[int, bool]]
    served: Sequence[tuple[int, bool]]
    end_us: int


def waits_of(notes: QueueNotes) -> list[Span]:
    """The stretches in which no consumer reads the queue: so long a message in it waits at the most.

    It is not read when nobody owns it, before an owner's first pull, while its broker is away, when pulls are lost. A
    wait without an end lasts until the simulation ends; one that ends because the queue is removed is none.
    """
    reads = sorted(span for hold in notes.holds for span in hold.reads(notes.end_us))
    return [wait for span in _there(notes) for wait in _between(reads, span, notes.end_us)]


def own_waits(notes: QueueNotes) -> list[Span]:
    """Likewise with BROADCASTING, where each member has messages of its own to wait for."""
    waits: list[Span] = []
    for hold in notes.holds:
        until = notes.end_us if hold.to_us is None else hold.to_us
        for begin, end in _there(notes):
            span = max(begin, hold.from_us, 0), min(end, until)
            waits += _between(hold.reads(notes.end_us), span, notes.end_us)
    return waits


def _there(notes: QueueNotes) -> Iterator[Span]:
    begin: int | None = None
    for at, there in notes.there:
        if there and begin is None:
            begin = at
        elif not there and begin is not None:
            yield begin, at
            begin = None
    if begin is not None:
        yield begin, notes.end_us


def _between(reads: Iterable[Span], span: Span, end_us: int) -> Iterator[Span]:
    """What lies between reads in a span of time; behind the last one only when the span goes on to the end."""
    at, last = span
    for begin, end in reads:
        if at < begin < last:
            yield at, begin
        at = max(at, end)
    if at < last == end_us:
        yield at, last
