"""A member's timers while nothing happens: each does the same again and again, and draws as many random numbers for it.

What a timer does each time is a row of waits, for messages that are under way. Where no other timer of the member is
due meanwhile, it is done in one step; otherwise they go through their waits together, and draw in the order of time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from heapq import heapify, heapreplace
from itertools import count

from msgspec import Struct

_AT_ONCE = 1 << 16  # random numbers made at once
_LONGEST_US = 60_000_000


class Ways:
    """How long a member's next messages would take, by the place of the random number."""

    def __init__(self, ahead: Callable[[int, int], Sequence[int]]) -> None:
        """With what tells so many ways from a place on: `(place, count)`."""
        self.ahead = ahead
        self._begin = 0
        self._ways: Sequence[int] = ()

    def from_place(self, place: int, number: int) -> tuple[Sequence[int], int]:
        """Ways, and the index from which on so many are those of this place and the next ones."""
        index = place - self._begin
        if index + number > len(self._ways):
            self._begin, index = place, 0
            self._ways = self.ahead(place, max(_AT_ONCE, number))
        return self._ways, index


class IdleTimer(Struct, eq=False):
    """One timer."""

    due_us: int
    waits: int  # how many waits it has each time
    after: Callable[[int, int], int]  # when it is due again, of when it is through and when it was due
    every_us: int = 1  # that is no less than so long after
    length: int = 1  # how many ways each wait takes
    picks: bool = False  # before every other wait it draws a broker
    done: int = 0  # how often it was due
    over_us: int = 0  # when it was through the last time
    _began: tuple[int, int] = (0, 0)
    _waited: list[int] = []

    @property
    def draws(self) -> int:
        return self.waits + self.waits // 2 if self.picks else self.waits

    def most_times(self, until_us: int) -> int:
        return max(-(-(until_us - self.due_us) // max(self.every_us, 1)), 0)

    def do(self, over_us: int, place: int, waited: list[int]) -> None:
        """It is through once more: by the place of its first random number, or by the ends of its waits."""
        self._began, self._waited = (self.due_us, place), waited
        self.due_us, self.over_us = self.after(over_us, self.due_us), over_us
        self.done += 1

    def ends(self, ways: Ways) -> list[int]:
        if not self._waited:
            now, place = self._began
            drawn = ways.ahead(place, self.draws)
            for way in (drawn[at] for at in range(self.draws) if not self.picks or at % 3):
                now += self.length * way
                self._waited.append(now)
        return self._waited


def go_on(timers: Sequence[IdleTimer], ways: Ways, until_us: int) -> tuple[Sequence[IdleTimer], int]:
    """Let timers of one member do what is due before a time, and count the random numbers that they draw.

    Those due at the same time stand in the order in which they began to wait. What was begun before the time is over at
    most a minute later; they stop earlier where something takes longer.
    """
    place, orders = 0, count(len(timers))
    heap = [(timer.due_us, order, timer) for order, timer in enumerate(timers)]
    heapify(heap)
    draws = {timer: timer.draws for timer in timers}
    while heap[0][0] < until_us:
        due, _, timer = heap[0]
        number = draws[timer]
        some, begin = ways.from_place(place, number)
        over = sum(some[begin : begin + number])
        if timer.picks:  # of three numbers the first picks a broker, and is no way: the others go there and back
            over -= sum(some[begin : begin + number : 3])
        over = due + timer.length * over
        if over - due > _LONGEST_US:
            break
        # Another timer is due before this one is through: they draw in turn, as their messages arrive. That may not end
        # within the time that callers leave; then it is as if they had not begun.
        if over >= min((entry[0] for entry in heap[1:]), default=over + 1):
            before = [copy(timer) for timer in timers], place
            drawn = _together(heap, orders, ways, place)
            if drawn is None:
                return before
            place = drawn
            continue
        timer.do(over, place, [])
        place += number
        heapreplace(heap, (timer.due_us, next(orders), timer))
    return timers, place


def _together(heap: list[tuple[int, int, IdleTimer]], orders: count[int], ways: Ways, place: int) -> int | None:
    """Wait by wait, until all timers wait for their next times; the place then, or None when that takes too long."""
    under_way: dict[IdleTimer, list[int]] = {}
    longest = heap[0][0] + _LONGEST_US
    while heap[0][0] < longest:
        now, _, timer = heap[0]
        ends = under_way.setdefault(timer, [])
        if len(ends) < timer.waits:
            place += timer.picks and len(ends) % 2 == 0
            some, index = ways.from_place(place, 1)
            place += 1
            ends.append(now + timer.length * some[index])
            heapreplace(heap, (ends[-1], next(orders), timer))
            continue
        timer.do(now, place, under_way.pop(timer))
        heapreplace(heap, (timer.due_us, next(orders), timer))
        if not under_way:
            return place
    return None
