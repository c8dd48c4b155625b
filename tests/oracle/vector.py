"""One line of the file: the question's layout, its steps, and the client's answers. Struct names are its keys."""

from __future__ import annotations

from typing import Any

from msgspec import Struct, field

Queue = tuple[str, str, int]
# A broker and a queue id, {"error": the exception's simple name}, or None when nothing was picked.
Pick = list[Any] | dict[str, str] | None
READ_WRITE = 6


class Layout(Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    """All that is there before the first pick; a broker that is not in `perm` is readable and writable."""

    latency_fault: bool
    queues: tuple[Queue, ...] = field(name="mqs")
    write_queue_nums: dict[str, int]
    perm: dict[str, int] = {}
    index: int
    worst: int = field(name="worstIndex")


class Fault(Struct, frozen=True):
    """One item of the fault table; `reachable` is None in versions without such a flag."""

    latency: int
    start: int
    reachable: bool | None = None

    def document(self) -> list[Any]:
        return [self.latency, self.start] if self.reachable is None else [self.latency, self.start, self.reachable]


class Update(Struct, frozen=True, omit_defaults=True):
    """The report on a broker after a pick; `reachable` is None where the version does not ask."""

    broker: str
    latency: int
    isolation: bool
    reachable: bool | None = None


class Step(Struct, frozen=True, omit_defaults=True, kw_only=True):
    at: int
    last: str | None
    reset: int | None = None
    update: Update | None


class Answers(Struct, frozen=True, rename="camel"):
    expected: list[Pick]
    final_mqs: list[Queue]
    final_index: int
    final_worst_index: int
    final_faults: dict[str, list[Any]]
