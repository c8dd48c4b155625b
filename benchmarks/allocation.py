"""Whole groups, beside RocketMQ's own classes: `python -m benchmarks.allocation`.

Both sides answer the same question: what does every member of the group get? RocketMQ's classes are asked once a
member, as its clients do. They get sorted lists and finished strategy objects; rmqlb's time includes sorting both lists
and making its object.
"""

from __future__ import annotations

import argparse
import sys
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from time import perf_counter
from typing import Any

from benchmarks.measuring import Spread, machine, markdown, ratio
from benchmarks.rocketmq import VERSION, GroupAllocations, java_if_here
from rmqlb import MessageQueue, allocate
from rmqlb.model.message_queue import sort_client_ids, sort_queues

SIZES = ((16, 4), (64, 16), (256, 64), (1024, 256))
STRATEGIES = (
    "AVG",
    "AVG_BY_CIRCLE",
    "CONSISTENT_HASH",
    "MACHINE_ROOM",
    "MACHINE_ROOM_NEARBY-AVG",
    "MACHINE_ROOM_NEARBY-CONSISTENT_HASH",
    "CONFIG",
    "PIN-AVG",
)
OURS_ALONE = ("PIN-AVG",)
"""RocketMQ has no such class: users write it."""

HELD = ("CONSISTENT_HASH", (1024, 256))
HOLD = 100
"""RocketMQ's time for the held case is at least so many times rmqlb's."""

ROOMS = ("r0", "r1", "r2", "r3")
LISTED = ROOMS[:3]
"""The rooms that MACHINE_ROOM takes and that members run in; r3 has queues and no member."""

WARM_UP = 1.5
ONE_TURN = 0.2


@dataclass(frozen=True)
class Group:
    """The queues of one topic and a group's members, in clients' order."""

    queues: tuple[MessageQueue, ...]
    client_ids: tuple[str, ...]

    @classmethod
    def of(cls, queues: int, members: int) -> Group:
        """So many queues on brokers `ROOM@NAME` of up to 32 each, and so many members `ROOM.HOST@PID`."""
        brokers = max(len(ROOMS), queues // 32)
        return cls(
            tuple(
                sort_queues(
                    MessageQueue("OrderEvents", f"{ROOMS[i % len(ROOMS)]}@broker-{i:02}", queue_id)
                    for i in range(brokers)
                    for queue_id in range(queues // brokers)
                )
            ),
            tuple(sort_client_ids(f"{LISTED[i % len(LISTED)]}.host-{i}@{4000 + 7 * i}" for i in range(members))),
        )

    def settings(self) -> Mapping[str, Any]:
        """What `rmqlb.allocate` is told besides; `Allocations.java` tells RocketMQ's classes the same."""
        count = len(self.client_ids)
        return {
            "consumer_idcs": LISTED,
            "config": {client_id: self.queues[i::count] for i, client_id in enumerate(self.client_ids)},
            "broker_zones": lambda name: name.partition("@")[0],
            "client_zones": lambda client_id: client_id.partition(".")[0],
            "hosts": {client_id.partition("@")[0] for client_id in self.client_ids[::2]},
        }

    def shuffled(self) -> tuple[list[MessageQueue], list[str]]:
        """Both lists in no order, the same on each call."""
        rng = Random(1)  # noqa: S311 - no secret
        return rng.sample(self.queues, len(self.queues)), rng.sample(self.client_ids, len(self.client_ids))


@dataclass(frozen=True)
class Row:
    """One strategy at one size: seconds for the whole group, a value a turn."""

    strategy: str
    size: tuple[int, int]
    ours: tuple[float, ...]
    theirs: tuple[float, ...]

    @property
    def advantage(self) -> Spread | None:
        """RocketMQ's time in units of ours; None where it was not measured."""
        return ratio(self.theirs, self.ours) if self.theirs else None


def checksum(shares: Mapping[str, Sequence[MessageQueue]]) -> int:
    """Over what everybody got, as `Allocations.java` computes it."""
    lines: list[str] = []
    for client_id, queues in shares.items():
        lines.append(client_id)
        lines += (f"{queue.broker_name} {queue.queue_id}" for queue in queues)
    return zlib.crc32("".join(f"{line}\n" for line in lines).encode())


def seconds_a_call(call: Callable[[], object], at_least: float) -> float:
    """The mean over so many calls as fill this many seconds."""
    calls, start = 0, perf_counter()
    while True:
        call()
        calls += 1
        elapsed = perf_counter() - start
        if elapsed >= at_least:
            return elapsed / calls


def measured(group: Group, strategy: str, turns: int, java: GroupAllocations | None) -> Row:
    """Both sides in turns, warmed up.

    Raises:
        RuntimeError: the two sides give the members different queues.
    """
    queues, client_ids = group.shuffled()
    settings = group.settings()

    def ours() -> dict[str, list[MessageQueue]]:
        return allocate(strategy, queues, client_ids, **settings)

    asked = java if strategy not in OURS_ALONE else None
    if asked is not None and asked.time(strategy, WARM_UP)[1] != checksum(ours()):
        raise RuntimeError(f"{strategy}, {len(queues)}×{len(client_ids)}: the answers differ from RocketMQ's")
    seconds_a_call(ours, ONE_TURN)
    mine: list[float] = []
    theirs: list[float] = []
    for _ in range(turns):
        if asked is not None:
            theirs.append(asked.time(strategy, ONE_TURN)[0])
        mine.append(seconds_a_call(ours, ONE_TURN))
    return Row(strategy, (len(queues), len(client_ids)), tuple(mine), tuple(theirs))


def table(rows: Sequence[Row]) -> str:
    """A row a strategy and size; `grows` is the time in units of the size before, a quarter of both lists."""
    cells: list[Sequence[object]] = []
    before: dict[str, float] = {}
    for row in rows:
        ours = Spread.of(row.ours).median
        grows = f"{ours / before[row.strategy]:.1f}" if row.strategy in before else ""
        before[row.strategy] = ours
        theirs = _micros(Spread.of(row.theirs).median) if row.theirs else "–"
        size = "×".join(map(str, row.size))
        cells.append((row.strategy, size, _micros(ours), grows, theirs, row.advantage or "–"))
    headers = ("strategy", "queues × consumers", "rmqlb, µs", "grows", "RocketMQ, µs", "RocketMQ / rmqlb")
    return markdown(headers, cells)


def _micros(seconds: float) -> str:
    micros = seconds * 1e6
    return f"{micros:,.0f}" if micros >= 10 else f"{micros:.2g}"


def complaint(rows: Sequence[Row]) -> str | None:
    """Why the hold is not shown to stand, or None."""
    held = next((row.advantage for row in rows if (row.strategy, row.size) == HELD), None)
    case = f"{HELD[0]} {HELD[1][0]}×{HELD[1][1]}"
    if held is None:
        return f"hold not measured: {case}"
    return f"hold broken: {case} {held.median:.0f}, and at least {HOLD} is asked" if held.median < HOLD else None


def main() -> None:
    """Measure, print the table, and with `--check` end with 1 when the hold is broken or was not measured."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.allocation", description=__doc__)
    parser.add_argument("--turns", type=int, default=7, metavar="N", help="turns a case (default: %(default)s)")
    parser.add_argument("--strategy", action="append", choices=STRATEGIES, help="repeatable; default: all")
    parser.add_argument("--check", action="store_true", help="exit code 1 when the hold is broken or not measured")
    options = parser.parse_args()
    sys.stdout.write(f"{machine()}, {options.turns} turns, RocketMQ {VERSION}\n\n")
    rows: list[Row] = []
    with java_if_here() as java:
        for strategy in options.strategy or STRATEGIES:
            for size in SIZES:
                group = Group.of(*size)
                if java is not None:
                    java.load(group.queues, group.client_ids)
                rows.append(measured(group, strategy, options.turns, java))
    sys.stdout.write(table(rows) + "\n")
    problem = complaint(rows)
    if problem:
        sys.stdout.write(f"\n{problem}\n")
    sys.exit(1 if options.check and problem else 0)


if __name__ == "__main__":
    main()
