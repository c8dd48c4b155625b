"""Which position of a queue the broker has stored when an owner takes it: by those who owned it before.

Of an owner that has given the queue up nothing changes any more, so that it is summed up: after many restarts a queue
has had many owners, and each takeover would go through all of them.
"""

from __future__ import annotations

from msgspec import Struct

from rmqlb.engine.consume.event_log import Hold


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
