"""A live group followed from look to look."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from rmqlb.cli.common.progress import Progress
from rmqlb.cli.common.reading import Reader
from rmqlb.cli.common.terminal import Terminal
from rmqlb.cli.common.watch import LEAST_S, heeding_an_end, wait_for_next
from rmqlb.cli.record.looking import Schedule, now_ms
from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.assignment.consumers import member_findings
from rmqlb.engine.group import Given, Group, gaps
from rmqlb.engine.record.follow import Follower
from rmqlb.engine.record.look import failed_look, look_of
from rmqlb.engine.source_findings import source_findings
from rmqlb.errors import DataError, EndpointError
from rmqlb.model.finding import Finding
from rmqlb.model.recording import Ended, Recording, RecordLine
from rmqlb.model.snapshot import ClusterSnapshot, Unread, Wanted
from rmqlb.model.words import counted
from rmqlb.views.report import duration

FIRST_REST_S, MOST_REST_S = 2.0, 16.0


class Watched(Struct, frozen=True):
    """A group to look at.

    Attributes:
        read: asks the source; after the first look no longer than twice the time between two looks.
        group: its name.
        topics: only these; none stands for those that it subscribes to.
        settings: what its consumers' strategies are constructed with.
    """

    read: Reader
    group: str
    topics: tuple[str, ...]
    settings: Settings


class _Rest(Struct, frozen=True):
    """Until when a consumer is not asked, by the monotonic clock, and for how long that is, in seconds."""

    until: float
    wait_s: float


class GroupRecorder:
    """One recording; what was seen of the first look raises the error that there is."""

    def __init__(self, watched: Watched, schedule: Schedule, terminal: Terminal) -> None:
        self._watched, self._schedule, self._terminal = watched, schedule, terminal
        self._follower = Follower(watched.group, round(schedule.every_s * 1000))
        self._wanted = Wanted(watched.topics or None, watched.group)
        self._read = watched.read.hurried(2 * schedule.every_s)
        self._rest: dict[str, _Rest] = {}

    def run(self, event_at_ms: int | None) -> tuple[Recording, ClusterSnapshot, tuple[Finding, ...]]:
        """Look until it is over: what was seen, the first snapshot, and what is odd about it."""
        terminal = self._terminal
        with heeding_an_end():
            began = time.monotonic()
            asked_at = now_ms()
            first = self._watched.read.fetch(self._wanted)
            answered_at = now_ms(up=True)
            first.group(self._watched.group)
            Group(first, self._watched.group, given=Given(assume=None), gaps=gaps(first)).must_share()
            odd = (*member_findings(first.group(self._watched.group)), *source_findings(first))
            watched = self._watched
            self._tell(
                self._follower.add(
                    look_of(first, watched.group, asked_at, answered_at, watched.topics, watched.settings)
                )
            )
            with terminal.progress(verb="recording", beside_rows=terminal.format == "jsonl") as progress:
                terminal.repeating = True
                ended = self._follow(began, progress)
        recording = self._follower.recording(ended, event_at_ms)
        self._tell([self._follower.ended(ended, recording.converged_by)])
        return recording, replace(first, unread=()), odd

    def _follow(self, began: float, progress: Progress) -> Ended:
        """Look again and again; why it ended."""
        follower, look_began = self._follower, began
        try:
            while True:
                if self._schedule.until_converged and follower.has_changed and follower.converged():
                    return "converged"
                left = self._schedule.left_s(began)
                wait = self._schedule.wait_s(look_began)
                if left < wait:
                    wait_for_next(max(left, 0))
                    if left >= LEAST_S:
                        self._look()
                    return "time"
                progress(f"{self._watched.group}: {self._so_far}, at most {duration(round(left) * 1000)} left", 0, 0)
                wait_for_next(wait)
                look_began = time.monotonic()
                self._look()
        except KeyboardInterrupt:
            return "interrupted"

    @property
    def _so_far(self) -> str:
        changed = self._follower.changed_queues
        what = f"{counted(changed, 'queue')} changed owners" if changed else "no change"
        return f"{counted(self._follower.looks, 'look')}, {what}"

    def _look(self) -> None:
        watched, asked_at = self._watched, now_ms()
        resting = frozenset(each for each, rest in self._rest.items() if time.monotonic() < rest.until)
        try:
            snapshot = self._read.fetch(replace(self._wanted, unasked=resting))
            self._let_rest(snapshot.unread, resting)
            answered_at = max(now_ms(up=True), asked_at)
            look = look_of(snapshot, watched.group, asked_at, answered_at, watched.topics, watched.settings)
        except (DataError, EndpointError) as error:
            look = failed_look(asked_at, max(now_ms(up=True), asked_at), error.message)
        self._tell(self._follower.add(look))

    def _let_rest(self, unread: Sequence[Unread], resting: frozenset[str]) -> None:
        """Ask who does not answer ever less often.

        What a stopped process is asked waits for it, and all of it is answered at once when it goes on, on the threads
        that its brokers need.
        """
        silent = {part.detail or "" for part in unread if part.kind == "member" and part.no_answer}
        before = self._rest
        self._rest = {each: rest for each, rest in before.items() if each in resting}
        for each in silent:
            wait_s = min(2 * before[each].wait_s, MOST_REST_S) if each in before else FIRST_REST_S
            self._rest[each] = _Rest(time.monotonic() + wait_s, wait_s)

    def _tell(self, lines: list[RecordLine]) -> None:
        if self._terminal.format == "jsonl" and lines:
            from rmqlb.views.formats.machine import as_json_lines

            self._terminal.write(as_json_lines(lines))
            sys.stdout.flush()
