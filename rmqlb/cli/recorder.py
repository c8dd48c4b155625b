import sys
import time
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from rmqlb.cli.common.declare import Text, Texts
from rmqlb.cli.common.options import SourceOptions
from rmqlb.cli.common.reading import Reading
from rmqlb.cli.common.terminal import Progress, Terminal
from rmqlb.cli.common.watch import LEAST_S, heeding_an_end, wait_for_next
from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.group import Given, Group
from rmqlb.engine.group_findings import planning_findings
from rmqlb.engine.record.follow import Follower, sample_of
from rmqlb.errors import DataError, EndpointError, UsageError
from rmqlb.model.recording import Ended, GroupSample, Recording, RecordLine
from rmqlb.model.result import Finding, counted
from rmqlb.model.snapshot import ClusterSnapshot, Unread, Wanted
from rmqlb.sources.source_text import is_live
from rmqlb.verbs.amounts import duration_us, moment_ms
from rmqlb.verbs.selection import select
from rmqlb.verbs.strategies import reported_strategies
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


class GroupRecorder(Struct):
    """One recording of a group, of all its topics or these; an error of the first sample is raised."""

    reader: Reading
    group: str
    topics: tuple[str, ...]
    settings: Settings
    schedule: Schedule
    terminal: Terminal
    # consumer → until when, by the monotonic clock, it gets no request, and the length of that rest in seconds
    rest: dict[str, tuple[float, float]] = {}

    def run(self, event_at_ms: int | None) -> tuple[Recording, ClusterSnapshot, tuple[Finding, ...]]:
        """Take samples until the recording ends: the recording, the first snapshot, and the findings on it."""
        terminal, follower = self.terminal, Follower(self.group, round(self.schedule.every_s * 1000))
        with heeding_an_end():
            began, asked_at = time.monotonic(), _now_ms()
            first = self.reader.fetch(Wanted(self.topics or None, self.group))
            answered_at = _now_ms(up=True)
            group = Group(first, self.group, given=Given(assume=None))
            group.must_share()
            findings = planning_findings(group)
            sample = sample_of(first, self.group, asked_at, answered_at, self.topics, self.settings)
            self._write(follower.add(sample))
            self.reader = self.reader.hurried(2 * self.schedule.every_s)
            with terminal.progress(verb="recording", beside_rows=terminal.format == "jsonl") as progress:
                terminal.repeating = True
                ended = self._follow(follower, began, progress)
        recording = follower.recording(ended, event_at_ms)
        self._write([follower.ended(ended, recording.converged_by)])
        return recording, replace(first, unread=()), findings

    def _follow(self, follower: Follower, began: float, progress: Progress) -> Ended:
        schedule, look_began = self.schedule, began
        try:
            while True:
                if schedule.until_converged and follower.has_changed and follower.converged():
                    return "converged"
                left = schedule.left_s(began)
                wait = max(look_began + schedule.every_s - time.monotonic(), LEAST_S)
                if left < wait:
                    wait_for_next(max(left, 0))
                    if left >= LEAST_S:
                        self._write(follower.add(self._look()))
                    return "time"
                changed = follower.changed_queues
                news = f"{counted(changed, 'queue')} changed owners" if changed else "no change"
                so_far = f"{self.group}: {counted(follower.samples, 'sample')}, {news}"
                progress(f"{so_far}, at most {duration(round(left) * 1000)} left", 0, 0)
                wait_for_next(wait)
                look_began = time.monotonic()
                self._write(follower.add(self._look()))
        except KeyboardInterrupt:
            return "interrupted"

    def _look(self) -> GroupSample:
        asked_at = _now_ms()
        resting = frozenset(each for each, (until, _) in self.rest.items() if time.monotonic() < until)
        try:
            snapshot = self.reader.fetch(Wanted(self.topics or None, self.group, unasked=resting))
            self._let_rest(snapshot.unread, resting)
            answered_at = max(_now_ms(up=True), asked_at)
            return sample_of(snapshot, self.group, asked_at, answered_at, self.topics, self.settings)
        except (DataError, EndpointError) as error:
            return GroupSample(asked_at, max(_now_ms(up=True), asked_at), failed=error.message)

    def _let_rest(self, unread: Sequence[Unread], resting: frozenset[str]) -> None:
        """Send ever fewer requests to a consumer that does not answer.

        Requests to a stopped process queue up, and it answers all of them at once when it goes on, on the threads that
        its brokers need.
        """
        silent = {part.detail or "" for part in unread if part.kind == "member" and part.no_answer}
        before = self.rest
        self.rest = {each: rest for each, rest in before.items() if each in resting}
        for each in silent:
            wait_s = min(2 * before[each][1], MOST_REST_S) if each in before else FIRST_REST_S
            self.rest[each] = time.monotonic() + wait_s, wait_s

    def _write(self, lines: list[RecordLine]) -> None:
        if self.terminal.format == "jsonl" and lines:
            from rmqlb.views.formats.machine import as_json_lines

            self.terminal.write(as_json_lines(lines))
            sys.stdout.flush()


def _now_ms(*, up: bool = False) -> int:
    """Milliseconds since 1970, rounded down, or up."""
    ns = time.time_ns()
    return -(-ns // 1_000_000) if up else ns // 1_000_000


def recorder_of(
    source: SourceOptions,
    terminal: Terminal,
    strategy_options: Texts,
    *,
    group: Text,
    topic: Texts,
    every: Text,
    until: Text,
    for_: Text,
) -> GroupRecorder:
    if source.source is not None and not is_live(source.source):
        hint = "name NameServers or a Dashboard with -s; --replay FILE shows a recording again"
        raise UsageError(f"{source.source} is not a running cluster: nothing changes there", hint=hint)
    reader, name = Reading(source, terminal), group
    if not name:
        raise UsageError("which group?", hint="name a group with --group", code="which-group")
    named, topics = select(name), tuple(dict.fromkeys(topic or ()))
    if named.several:
        name = named.only(reader.fetch(Wanted(several=named.names, owners=False))) or name
    settings = reported_strategies(strategy_options or ()).settings_for(topics, name)
    return GroupRecorder(reader, name, topics, settings, _schedule(every or "1s", until, for_), terminal)


def _schedule(every: str, until: Text, for_: Text) -> Schedule:
    every_s, for_s = duration_us(every, "--every") / 1e6, duration_us(for_ or "10m", "--for") / 1e6
    if every_s < LEAST_S:
        hint = "pass 1s or more: consumers answer on the threads that also serve brokers"
        raise UsageError(f"--every {every}: shorter than 1s", hint=hint)
    if until is not None and "T" in until:
        return Schedule(every_s, until_converged=False, for_s=for_s, at_ms=moment_ms(until, "--until"))
    if until is not None and until != "converged":
        try:
            until_s = duration_us(until, "--until") / 1e6
        except UsageError as error:
            error.hint = "write converged, a duration such as 90s, or a point in time such as 2026-11-22T16:00:00Z"
            raise
        for_s = min(until_s, for_s) if for_ else until_s
    return Schedule(every_s, until == "converged", for_s, at_ms=None)
