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
        near = (other for other in mine if abs(other.from_ms - self.from_ms) < UNSEEN_MS)
        undone = (other.client_id == self.client_id and other.change != self.change for other in near)
        return any(map(self.is_like, queue.changes)) or any(undone)


def offset_ms(log: Recording, recording: Recorded) -> float:
    """How much later the group's life began than its recording."""
    return log.lived.began_us / 1000 - datetime.fromisoformat(recording.started_at).timestamp() * 1000


def truths(log: Recording, offset: float) -> Iterator[Truth]:
    """The changes of the topic's queues; one that leaves loses its queues somewhere between stopping and stopped."""

    def ms(line: Line) -> float:
        return line.at_us / 1000 + offset

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
    offset = offset_ms(log, recording)
    every = list(truths(log, offset))
    ended_ms = log.lived.end_us / 1000 + offset
    wrong, number = [], 0
    for queue in recording.queues:
        key = (queue.topic, queue.broker_name, queue.queue_id)
        mine = [truth for truth in every if truth.queue == key]
        for change in (each for each in queue.changes if each.to_ms <= ended_ms):  # then the JVMs end
            number += 1
            if not any(each.is_like(change) for each in mine):
                wrong.append(f"{key}: {change}: nothing of it in the log: {mine}")
        inside = (truth for truth in mine if truth.from_ms > 0 and truth.to_ms < recording.end_ms - 1000)
        wrong += [f"{key}: {each} is in none of {queue.changes}" for each in inside if not each.is_told(queue, mine)]
    return number, wrong


@pytest.mark.parametrize("which", ["join", "rest"])
def test_every_change_lies_in_its_interval(lived: LivingGroups, which: str) -> None:
    number, wrong = compared(lived.lives[WATCHED].result(), recorded(getattr(lived.watched.result(), which)))
    assert wrong == []
    assert number >= 8


@pytest.mark.parametrize("which", ["join", "rest"])
def test_the_bounds_contain_the_true_gap(lived: LivingGroups, which: str) -> None:
    """A member that leaves keeps its table for a moment after the brokers forget it."""
    recording, log = recorded(getattr(lived.watched.result(), which)), lived.lives[WATCHED].result()
    offset = offset_ms(log, recording)
    ended_ms = log.lived.end_us / 1000 + offset
    slack = LATE_MS + (0 if which == "join" else 3_000)
    for queue in recording.queues:
        if any(change.to_ms > ended_ms for change in queue.changes):
            continue  # the end of the JVMs is no part of the log
        unassigned = (each for each in log.intervals[queue.queue] if each.state == "unassigned")
        within = [(max(each.from_us / 1000 + offset, 0), each.to_us / 1000 + offset) for each in unassigned]
        gap = max([0.0, *(min(to, recording.end_ms, ended_ms) - since for since, to in within)])
        assert queue.longest_gap_at_least_ms - slack <= gap <= queue.longest_gap_at_most_ms + slack, queue


def test_the_join_is_as_simulated(lived: LivingGroups, tmp_path: Path) -> None:
    watched = lived.watched.result()
    assert recorded(watched.join).converged_by == "prediction"
    against: list[str] = []
    for trial in range(TRIALS):
        path = tmp_path / f"{trial}.json"
        ran = run(
            *("simulate-rebalance", "-s", str(watched.before), "-g", group_id(WATCHED)),
            *("--event", f"join {JOINS}@30s", "--set", f"trial={trial}", "-o", "json"),
        )
        assert ran.code == 0, ran.stderr
        path.write_text(ran.stdout)
        against += ["--against", str(path)]
    ran = run("record", "--replay", str(watched.join), *against, "--fail-on", "differences>0", "-o", "json")
    outcomes = {queue["outcome"] for queue in json.loads(ran.stdout)["data"]["comparison"]["queues"]}
    assert (ran.code, outcomes) == (0, {"as-predicted"})


@pytest.mark.parametrize("name", ACTS)
def test_a_group_does_what_is_simulated(lived: LivingGroups, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    for beside in lived.compared[name].result():
        with capsys.disabled():
            sys.stdout.write("\n".join(["", beside.report, *beside.disagreements, ""]))
    assert beside.disagreements == []
