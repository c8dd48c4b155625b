"""What is written down while a simulation runs: who held which queue from when to when, and what happened why."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from rmqlb.model.group_report import Step
from rmqlb.model.message_queue import MessageQueue


class Hold:
    """A queue in a member's process-queue table, from taking it to dropping it.

    Attributes:
        queue: which.
        client_id: who.
        from_us: when it was taken; negative when that was before the start.
        reads_from_us: its first pull, or None.
        stalled_us: since when its pulls are lost, or None.
        to_us: when it was dropped, or None.
        persisted: the offset was stored when it was dropped.
        persisted_before: a time → when the member's timer last stored its offsets at or before it; None before the
            first time.
    """

    __slots__ = (
        "client_id",
        "from_us",
        "persisted",
        "persisted_before",
        "queue",
        "reads_from_us",
        "stalled_us",
        "to_us",
    )

    def __init__(
        self, queue: MessageQueue, client_id: str, from_us: int, persisted_before: Callable[[int], int | None]
    ) -> None:
        self.queue = queue
        self.client_id = client_id
        self.from_us = from_us
        self.reads_from_us: int | None = None
        self.stalled_us: int | None = None
        self.to_us: int | None = None
        self.persisted = False
        self.persisted_before = persisted_before


class Record:
    """The notes of one simulation.

    Attributes:
        holds: in the order in which queues were taken.
        there: queue → the times at which it became reachable (True) or was lost (False).
        steps: what happened; only kept when asked for.
        last_change_us: when a queue was last taken or dropped; −1 before the first time.
        rebalances: how often members went through their queues.
        waiting_pulls: queues taken whose first pull is still to come.
    """

    __slots__ = ("explain", "holds", "last_change_us", "rebalances", "steps", "there", "waiting_pulls")

    def __init__(self, *, explain: bool) -> None:
        self.explain = explain
        self.holds: list[Hold] = []
        self.there: dict[MessageQueue, list[tuple[int, bool]]] = {}
        self.steps: list[Step] = []
        self.last_change_us = -1
        self.rebalances = 0
        self.waiting_pulls = 0

    def take(self, hold: Hold) -> None:
        """A queue is taken; from 0 on that is a change."""
        self.holds.append(hold)
        self.last_change_us = max(self.last_change_us, hold.from_us) if hold.from_us >= 0 else self.last_change_us

    def drop(self, hold: Hold, at_us: int, *, persisted: bool) -> None:
        """It is dropped, or its owner ends."""
        hold.to_us = at_us
        hold.persisted = persisted
        self.last_change_us = at_us

    def reach(self, queues: Iterable[MessageQueue], at_us: int, *, there: bool) -> None:
        """Queues can be read from now on, or no longer."""
        for queue in queues:
            self.there.setdefault(queue, []).append((at_us, there))

    def say(self, at_us: int, who: str, what: str, text: str, queues: Iterable[MessageQueue] = ()) -> None:
        """Write a step down; callers ask `explain` first where the text costs time."""
        if self.explain:
            self.steps.append(Step(at_us, who, what, text, tuple(queues)))
