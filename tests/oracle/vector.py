"""What one line of the file holds: the question's layout, its steps, and what the client made of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

Queue = tuple[str, str, int]
# A broker and a queue id, {"error": the exception's simple name}, or None when nothing was picked.
Pick = list[Any] | dict[str, str] | None


@dataclass(frozen=True)
class Route:
    """What the route says per broker; whatever is not in ``perm`` is readable and writable."""

    READ_WRITE: ClassVar[int] = 6

    write_queues: dict[str, int]
    perm: dict[str, int]


@dataclass(frozen=True)
class Layout:
    """All that is there before the first pick."""

    latency_fault: bool
    queues: tuple[Queue, ...]
    route: Route
    index: int
    worst: int

    def document(self) -> dict[str, Any]:
        perm = {"perm": self.route.perm} if self.route.perm else {}
        return {
            "latencyFault": self.latency_fault,
            "mqs": self.queues,
            "writeQueueNums": self.route.write_queues,
            **perm,
            "index": self.index,
            "worstIndex": self.worst,
        }


@dataclass(frozen=True)
class Fault:
    """One item of the fault table."""

    latency: int
    start: int
    reachable: bool | None = None

    def document(self) -> list[Any]:
        return [self.latency, self.start] if self.reachable is None else [self.latency, self.start, self.reachable]


@dataclass(frozen=True)
class Update:
    """What is said of a broker after a pick; ``reachable`` is None where the version does not ask."""

    broker: str
    latency: int
    isolation: bool
    reachable: bool | None

    def document(self) -> dict[str, Any]:
        reachable = {} if self.reachable is None else {"reachable": self.reachable}
        return {"broker": self.broker, "latency": self.latency, "isolation": self.isolation, **reachable}


@dataclass(frozen=True)
class Step:
    """One pick, and what is said afterwards."""

    at: int
    last: str | None
    reset: int | None
    update: Update | None

    def document(self) -> dict[str, Any]:
        reset = {} if self.reset is None else {"reset": self.reset}
        update = self.update.document() if self.update else None
        return {"at": self.at, "last": self.last, **reset, "update": update}


@dataclass(frozen=True)
class Answers:
    """What the client picked, and what it was left with."""

    picks: list[Pick]
    queues: list[Queue]
    indexes: tuple[int, int]
    faults: dict[str, Fault]

    def document(self) -> dict[str, Any]:
        return {
            "expected": self.picks,
            "finalMqs": self.queues,
            "finalIndex": self.indexes[0],
            "finalWorstIndex": self.indexes[1],
            "finalFaults": {broker: fault.document() for broker, fault in sorted(self.faults.items())},
        }
