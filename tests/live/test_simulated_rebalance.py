"""`rmqlb record` beside a group of real clients that log each change of theirs: every change lies in its interval.

A first recording begins before a member joins and ends when the group is converged; it is compared with simulations of the
same join, by the command. A second one goes on while a member leaves in good order and a JVM is killed.
"""

import json
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from rmqlb.decoding import convert
from rmqlb.model.recording import OwnerChange, QueueRecording
from rmqlb.model.recording import Recording as Recorded
from tests.cli.run import run
from tests.support.rebalance_comparison import compared as trials_compared
from tests.support.rebalance_comparison import disagreements, report
from tests.support.recorded_groups import Line, Recording

from .living_groups import ACTS, TOPIC, WATCHED, LivingGroups, group_id

pytestmark = [pytest.mark.live, pytest.mark.slow]

JOINS = "127.0.0.1@c3"
LATE_MS = 250
"""The log looks at a member's table every 10 ms, on a machine that has other things to do."""
UNSEEN_MS = 2_500
"""A change that is undone within this time may lie between two samples."""
TRIALS = 30


def recorded(path: Path) -> Recorded:
    return convert(json.loads(path.read_text())["data"], Recorded)


class Truth(NamedTuple):
    """A change that a consumer logged: when it was at the earliest and at the latest, in the recording's time."""

    queue: tuple[str | None, str | None, int | None]
    client_id: str
    change: str
    from_ms: float
    to_ms: float

    def is_like(self, change: OwnerChange) -> bool:
        is_same = (change.client_id, change.change) == (self.client_id, self.change)
        return is_same and change.from_ms - LATE_MS <= self.to_ms and self.from_ms - LATE_MS <= change.to_ms

    def is_told(self, queue: QueueRecording, mine: list["Truth"]) -> bool:
        """It is in an interval, or undone before the next look."""
        undone = (
            other.client_id == self.client_id
            and other.change != self.change
            and abs(other.from_ms - self.from_ms) < UNSEEN_MS
            for other in mine
        )
        return any(map(self.is_like, queue.changes)) or any(undone)


def truths(log: Recording, since_us: float) -> Iterator[Truth]:
    """The changes of the topic's queues; one that leaves loses its queues somewhere between stopping and stopped."""

    def ms(line: Line) -> float:
        return (line.at_us + log.lived.began_us - since_us) / 1000

    ends: dict[str, list[float]] = {}
    for line in log.lines:
        if line.what in ("stopping", "stopped", "killed"):
            ends.setdefault(line.client_id, []).append(ms(line))
    held: dict[tuple[Any, str], bool] = {}
    for line in log.lines:
        if line.what in ("gained", "lost") and line.topic == TOPIC:
            held[line.queue, line.client_id] = line.what == "gained"
            leaving = ends.get(line.client_id)
            if line.what == "gained" or not leaving or ms(line) < min(leaving):  # or see below
                yield Truth(line.queue, line.client_id, line.what, ms(line), ms(line))
        elif line.what in ("stopping", "killed"):
            last = max(ends[line.client_id]) if line.what == "stopping" else ms(line)
            for (queue, client_id), owns in held.items():
                if client_id == line.client_id and owns:
                    yield Truth(queue, client_id, "lost", ms(line), last)


def compared(log: Recording, recording: Recorded) -> tuple[int, list[str]]:
    since_us = datetime.fromisoformat(recording.started_at).timestamp() * 1e6
    every = list(truths(log, since_us))
    ended_ms = (log.lived.began_us + log.lived.end_us - since_us) / 1000
    wrong, number = [], 0
    for queue in recording.queues:
        key = (queue.topic, queue.broker_name, queue.queue_id)
        mine = [truth for truth in every if truth.queue == key]
        for change in (each for each in queue.changes if each.to_ms <= ended_ms):  # then the JVMs end
            number += 1
            if not any(each.is_like(change) for each in mine):
                wrong.append(f"{key}: {change}: nothing of it in the log: {mine}")
        inside = (truth for truth in mine if truth.from_ms > 0 and truth.to_ms < recording.end_ms - 1000)
        told = f"is in no interval: {queue.changes}"
        wrong += [f"{key}: {truth} {told}" for truth in inside if not truth.is_told(queue, mine)]
    return number, wrong


def true_gap_ms(log: Recording, queue: QueueRecording, since_us: float, end_ms: float) -> float:
    """The longest time without owner that the log has, within the recording."""
    offset = log.lived.began_us - since_us
    gaps = [
        min((each.to_us + offset) / 1000, end_ms) - max((each.from_us + offset) / 1000, 0)
        for each in log.intervals[queue.queue]
        if each.state == "unassigned"
    ]
    return max([0.0, *gaps])


@pytest.mark.parametrize("which", ["join", "rest"])
def test_every_change_lies_in_its_interval(lived: LivingGroups, which: str, capsys: pytest.CaptureFixture[str]) -> None:
    recording = recorded(getattr(lived.watched.result(), which))
    number, wrong = compared(lived.lives[WATCHED][0].result(), recording)
    widths = sorted(change.to_ms - change.from_ms for queue in recording.queues for change in queue.changes)
    with capsys.disabled():
        sys.stdout.write(f"\n{which}: {number} changes, {len(wrong)} outside their intervals")
        sys.stdout.write(f"; intervals of {widths[0]} to {widths[-1]} ms, median {widths[len(widths) // 2]} ms\n")
    assert wrong == []
    assert number >= 8


@pytest.mark.parametrize("which", ["join", "rest"])
def test_the_bounds_contain_the_true_gap(lived: LivingGroups, which: str) -> None:
    """A member that leaves keeps its table for a moment after the brokers forget it."""
    recording = recorded(getattr(lived.watched.result(), which))
    log = lived.lives[WATCHED][0].result()
    since_us = datetime.fromisoformat(recording.started_at).timestamp() * 1e6
    ended_ms = (log.lived.began_us + log.lived.end_us - since_us) / 1000
    slack = LATE_MS + (0 if which == "join" else 3_000)
    for queue in recording.queues:
        if any(change.to_ms > ended_ms for change in queue.changes):
            continue  # the end of the JVMs is no part of the log
        gap = true_gap_ms(log, queue, since_us, min(recording.end_ms, ended_ms))
        assert queue.longest_gap_at_least_ms - slack <= gap <= queue.longest_gap_at_most_ms + slack, queue


def test_the_join_is_as_simulated(lived: LivingGroups, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert recorded(lived.watched.result().join).converged_by == "prediction"
    against: list[str] = []
    for trial in range(TRIALS):
        path = tmp_path / f"{trial}.json"
        ran = run(
            *("simulate-rebalance", "-s", str(lived.watched.result().before), "-g", group_id(WATCHED)),
            *("--event", f"join {JOINS}@30s", "--set", f"trial={trial}", "-o", "json"),
        )
        assert ran.code == 0, ran.stderr
        path.write_text(ran.stdout)
        against += ["--against", str(path)]
    ran = run(
        "record", "--replay", str(lived.watched.result().join), *against, "--fail-on", "differences>0", "-o", "json"
    )
    data = json.loads(ran.stdout)["data"]
    outcomes = [queue["outcome"] for queue in data["comparison"]["queues"]]
    with capsys.disabled():
        told = {outcome: outcomes.count(outcome) for outcome in dict.fromkeys(outcomes)}
        sys.stdout.write(f"\n{len(outcomes)} queues against {TRIALS} simulations: {told}\n")
    assert (ran.code, {*outcomes}) == (0, {"as-predicted"})


OF_EACH = 900


@pytest.mark.parametrize("name", ACTS)
def test_a_group_does_what_is_simulated(lived: LivingGroups, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What a client does once in thousands of times, such as losing an answer for 3 s, it does not do twice in a row."""
    for recording in (life.result() for life in lived.lives[name]):
        comparisons = trials_compared(recording, OF_EACH)
        found = disagreements(comparisons)
        with capsys.disabled():
            sys.stdout.write("\n".join(["", report(recording, comparisons), *found, ""]))
        assert all(each.changing for each in comparisons)
        if not found:
            break
    assert found == []
