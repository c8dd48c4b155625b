"""For how long nobody reads a queue: so long a message in it waits at the most.

A queue is not read when nobody owns it, before an owner's first pull, while its broker is away, when pulls are lost.
A wait that has no end yet lasts until the end of the simulation; one that ends because the queue is removed is none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from rmqlb.engine.consume.event_log import Hold
from rmqlb.model.message_queue import MessageQueue

Span = tuple[int, int]
"""From when to when, in microseconds."""


class QueueNotes(Struct, frozen=True, eq=False):
    """What was noted of one queue; when it was there and served is as in the `EventLog`."""

    queue: MessageQueue
    holds: Sequence[Hold]
    there: Sequence[tuple[int, bool]]
    served: Sequence[tuple[int, bool]]
    end_us: int


def waits_of(notes: QueueNotes) -> list[Span]:
    """The stretches in which nobody reads the queue."""
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
