"""What is certain and what is possible of one queue's owners over time, and what follows for its gaps and overlaps.

Rule of this file: for each consumer there are stretches in which it owns the queue for certain, wider ones in which it
may, and stretches in which it said nothing, so that it may own any queue. The truth lies between the certain and the
possible, so its longest gap is at least as long as the longest stretch without a possible owner, and at most as long as
the longest without a certain one; overlaps likewise.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby, pairwise

from msgspec import Struct

from rmqlb.model.message_queue import sort_client_ids
from rmqlb.model.recording import Between, KnownState, RecordedInterval

SINCE_EVER, FOR_EVER = -(1 << 62), 1 << 62


class Span(Struct, frozen=True):
    """A consumer owns a queue, from a gain that was seen or from the first look on, to a loss or to the last look."""

    gain: Between | None = None
    loss: Between | None = None

    @property
    def certain(self) -> tuple[int, int]:
        return (
            SINCE_EVER if self.gain is None else self.gain.to_ms,
            FOR_EVER if self.loss is None else self.loss.from_ms,
        )

    @property
    def possible(self) -> tuple[int, int]:
        return (
            SINCE_EVER if self.gain is None else self.gain.from_ms,
            FOR_EVER if self.loss is None else self.loss.to_ms,
        )


class Stretch(Struct, frozen=True):
    """A stretch in which what is known does not change.

    Attributes:
        certain: consumers that own the queue.
        possible: consumers that own it or may, as far as they were seen to own it at some time next to it.
        silent: further consumers that did not say whether they do.
        exists: whether there is such a queue; None where it comes or goes.
    """

    from_ms: int
    to_ms: int
    certain: frozenset[str]
    possible: frozenset[str]
    silent: frozenset[str]
    exists: bool | None

    @property
    def state(self) -> KnownState:
        """A silent consumer that did not own the queue when it last answered counts where no other one owns it."""
        if self.exists is False:
            return "gone"
        if len(self.certain) > 1:
            return "duplicate-owners"
        if self.possible != self.certain or (not self.certain and self.silent) or self.exists is None:
            return "unknown"
        return "one" if self.certain else "unassigned"


def stretches(
    spans: Mapping[str, Sequence[Span]],
    silences: Mapping[str, Sequence[Between]],
    end_ms: int,
    *,
    came: Between | None = None,  # the queue was not there from the first look on
    went: Between | None = None,  # the queue is no longer there in the last look
) -> list[Stretch]:
    """The time from 0 to the end, cut wherever anything about the queue changes."""
    mute = {client_id: [(each.from_ms, each.to_ms) for each in its] for client_id, its in silences.items()}
    certain = {client_id: [each.certain for each in its] for client_id, its in spans.items()}
    possible = {client_id: [each.possible for each in its] for client_id, its in spans.items()}
    life = [edge for each in (came, went) if each is not None for edge in (each.from_ms, each.to_ms)]
    edges = [edge for each in (mute, certain, possible) for its in each.values() for pair in its for edge in pair]
    cuts = sorted({0, end_ms, *(edge for edge in (*edges, *life) if 0 < edge < end_ms)})

    found = []
    for begin, end in pairwise(cuts):
        speechless = _covering(mute, begin, end)
        owning, maybe = _covering(certain, begin, end) - speechless, _covering(possible, begin, end)
        there = _exists(came, went, begin, end)
        found.append(Stretch(begin, end, owning, maybe, speechless - maybe, there))
    return found


def _covering(of: Mapping[str, list[tuple[int, int]]], begin: int, end: int) -> frozenset[str]:
    """Who has a stretch that covers this one; each one's are in order, and overlap at most with the next."""
    found = set()
    for client_id, its in of.items():
        last = bisect_right(its, begin, key=lambda pair: pair[0])
        if any(end <= high for _, high in its[max(last - 2, 0) : last]):
            found.add(client_id)
    return frozenset(found)


def _exists(came: Between | None, went: Between | None, begin: int, end: int) -> bool | None:
    if (came is not None and end <= came.from_ms) or (went is not None and begin >= went.to_ms):
        return False
    sure = (came is None or begin >= came.to_ms) and (went is None or end <= went.from_ms)
    return True if sure else None


def intervals(found: Sequence[Stretch]) -> Iterator[RecordedInterval]:
    """The stretches as a picture has them, neighbours that show the same joined."""
    for (state, owners), alike in groupby(found, key=lambda each: (each.state, each.certain)):
        several = list(alike)
        yield RecordedInterval(several[0].from_ms, several[-1].to_ms, state, tuple(sort_client_ids(owners)))


class Bounds(Struct, frozen=True):
    """A length of time, in milliseconds: the truth is between the two."""

    at_least_ms: int
    at_most_ms: int


def longest_gap(found: Sequence[Stretch]) -> Bounds:
    """The longest time without owner."""
    return Bounds(
        _longest(found, lambda each: each.exists is True and not each.possible and not each.silent),
        _longest(found, lambda each: each.exists is not False and not each.certain),
    )


def longest_overlap(found: Sequence[Stretch]) -> Bounds:
    """The longest time with several owners."""
    return Bounds(
        _longest(found, lambda each: len(each.certain) > 1),
        _longest(found, lambda each: len(each.possible | each.silent) > 1),
    )


def _longest(found: Sequence[Stretch], has: Callable[[Stretch], bool]) -> int:
    lengths = [0]
    for is_so, alike in groupby(found, key=has):
        if is_so:
            several = list(alike)
            lengths.append(several[-1].to_ms - several[0].from_ms)
    return max(lengths)
