import sys
import time
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from rmqlb.cli.common.reading import Reader
from rmqlb.cli.common.terminal import Progress, Terminal
from rmqlb.cli.common.watch import LEAST_S, heeding_an_end, wait_for_next
from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.group import Given, Group
from rmqlb.engine.group_findings import planning_findings
from rmqlb.engine.record.follow import Follower, sample_of
from rmqlb.errors import DataError, EndpointError
from rmqlb.model.recording import Ended, GroupSample, Recording, RecordLine
from rmqlb.model.result import Finding, counted
from rmqlb.model.snapshot import ClusterSnapshot, Unread, Wanted
from rmqlb.views.numbers import duration

FIRST_REST_S, MOST_REST_S = 2.0, 16.0


class Schedule(Struct, frozen=True):
    every_s: float  # seconds from the begin of a sample to that of the next one; at least one from its end
    until_converged: bool  # a group that has changed and is converged ends the recording
    for_s: float  # the most seconds
    at_ms: int | None  # the moment at which it ends, in milliseconds since 1970; None is none

    def left_s(self, began: float) -> float:
        left = began + self.for_s - time.monotonic()
        return left if self.at_ms is None else min(left, (self.at_ms - time.time() * 1000) / 1000)


class GroupRecorder:
    """One recording of a group, of all its topics or these; an error of the first sample is raised."""

    def __init__(
        self,
        reader: Reader,
        group: str,
        topics: tuple[str, ...],
        settings: Settings,
        schedule: Schedule,
        terminal: Terminal,
    ) -> None:
        self._reader, self.group, self._topics, self._settings = reader, group, topics, settings
        self._schedule, self._terminal = schedule, terminal
        self._follower = Follower(group, round(schedule.every_s * 1000))
        self._wanted = Wanted(topics or None, group)
        # consumer → until when, by the monotonic clock, it gets no request, and the length of that rest in seconds
        self._rest: dict[str, tuple[float, float]] = {}

    def run(self, event_at_ms: int | None) -> tuple[Recording, ClusterSnapshot, tuple[Finding, ...]]:
        """Take samples until the recording ends: the recording, the first snapshot, and the findings on it."""
        terminal = self._terminal
        with heeding_an_end():
            began, asked_at = time.monotonic(), _now_ms()
            first = self._reader.fetch(self._wanted)
            answered_at = _now_ms(up=True)
            group = Group(first, self.group, given=Given(assume=None))
            group.must_share()
            findings = planning_findings(group)
            sample = sample_of(first, self.group, asked_at, answered_at, self._topics, self._settings)
            self._write(self._follower.add(sample))
            self._reader = self._reader.hurried(2 * self._schedule.every_s)
            with terminal.progress(verb="recording", beside_rows=terminal.format == "jsonl") as progress:
                terminal.repeating = True
                ended = self._follow(began, progress)
        recording = self._follower.recording(ended, event_at_ms)
        self._write([self._follower.ended(ended, recording.converged_by)])
        return recording, replace(first, unread=()), findings

    def _follow(self, began: float, progress: Progress) -> Ended:
        follower, schedule, look_began = self._follower, self._schedule, began
        try:
            while True:
                if schedule.until_converged and follower.has_changed and follower.converged():
                    return "converged"
                left = schedule.left_s(began)
                wait = max(look_began + schedule.every_s - time.monotonic(), LEAST_S)
                if left < wait:
                    wait_for_next(max(left, 0))
                    if left >= LEAST_S:
                        self._look()
                    return "time"
                changed = follower.changed_queues
                news = f"{counted(changed, 'queue')} changed owners" if changed else "no change"
                so_far = f"{self.group}: {counted(follower.samples, 'sample')}, {news}"
                progress(f"{so_far}, at most {duration(round(left) * 1000)} left", 0, 0)
                wait_for_next(wait)
                look_began = time.monotonic()
                self._look()
        except KeyboardInterrupt:
            return "interrupted"

    def _look(self) -> None:
        asked_at = _now_ms()
        resting = frozenset(each for each, (until, _) in self._rest.items() if time.monotonic() < until)
        try:
            snapshot = self._reader.fetch(replace(self._wanted, unasked=resting))
            self._let_rest(snapshot.unread, resting)
            answered_at = max(_now_ms(up=True), asked_at)
            sample = sample_of(snapshot, self.group, asked_at, answered_at, self._topics, self._settings)
        except (DataError, EndpointError) as error:
            sample = GroupSample(asked_at, max(_now_ms(up=True), asked_at), failed=error.message)
        self._write(self._follower.add(sample))

    def _let_rest(self, unread: Sequence[Unread], resting: frozenset[str]) -> None:
        """Send ever fewer requests to a consumer that does not answer.

        Requests to a stopped process queue up, and it answers all of them at once when it goes on, on the threads that
        its brokers need.
        """
        silent = {part.detail or "" for part in unread if part.kind == "member" and part.no_answer}
        before = self._rest
        self._rest = {each: rest for each, rest in before.items() if each in resting}
        for each in silent:
            wait_s = min(2 * before[each][1], MOST_REST_S) if each in before else FIRST_REST_S
            self._rest[each] = time.monotonic() + wait_s, wait_s

    def _write(self, lines: list[RecordLine]) -> None:
        if self._terminal.format == "jsonl" and lines:
            from rmqlb.views.formats.machine import as_json_lines

            self._terminal.write(as_json_lines(lines))
            sys.stdout.flush()


def _now_ms(*, up: bool = False) -> int:
    """Milliseconds since 1970, rounded down, or up."""
    ns = time.time_ns()
    return -(-ns // 1_000_000) if up else ns // 1_000_000
