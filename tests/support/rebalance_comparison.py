"""What real clients went through against what the simulation foretells, event by event and queue by queue.

Rules of this file:
- An event's *window* reaches from the event to the next one, or to the end. What is asked of both sides is the same,
  and asked of the same thing: the intervals of each queue's owners.
- Both agree when the recorded order is one that the simulation draws often enough, no length is beyond the longest and
  the shortest simulated one, and 19 of 20 queues are within 90 of 100 trials: a p95 promises no more. `rmqlb record
  --against` says by the same function (`placed`) whether something was earlier or later than predicted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from statistics import median
from typing import Final

from rmqlb.engine.assignment.assign import Members
from rmqlb.engine.rebalance.simulate import GroupSimulation
from rmqlb.engine.record.compare import placed
from rmqlb.model.group_scenario import Event, GroupScenario, Timers
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.simulate_rebalance import Interval, RebalanceResult

from .recorded_groups import Intervals, Recording

TOLERANCE_US: Final = 250_000
"""How far a measured time may be beside a simulated one: for threads of several JVMs that wait for two cores."""
OFTEN: Final = 20
"""One in so many trials is often enough."""
SLOWER: Final = (0.5, 0.7, 1.0, 1.4, 2.0, 4.0)
"""Times the average request: a busy machine answers several times as slowly for a while, which decides races. A joiner
that locks queue after queue, for one, gets the last ones at once when another member gives them up meanwhile."""
FIGURES: Final = ("none_us", "several_us", "settled_us")


@dataclass(frozen=True, slots=True)
class Change:
    """A member takes a queue (`+ID`) or is rid of it (`-ID`), so long after the event."""

    text: str
    after_us: int


@dataclass(frozen=True, slots=True)
class Window:
    """What became of one queue after one event: the changes of its owners, and the longest times without one and with two.

    `owners` are all that it had at some time; `settled_us` is from the event to the last change, 0 when nothing changed.
    """

    changes: tuple[Change, ...]
    none_us: int
    several_us: int
    owners: frozenset[str]

    @property
    def settled_us(self) -> int:
        return self.changes[-1].after_us if self.changes else 0

    def figure(self, name: str) -> int:
        """One of `FIGURES`."""
        return int(getattr(self, name))

    def contradicts(self, other: Window) -> bool:
        """Other changes, or two of them clearly the other way round."""
        ours, theirs = ({change.text: change.after_us for change in each.changes} for each in (self, other))
        if sorted(change.text for change in self.changes) != sorted(change.text for change in other.changes):
            return True
        return any(
            (ours[a] - ours[b]) * (theirs[a] - theirs[b]) < 0
            and min(abs(ours[a] - ours[b]), abs(theirs[a] - theirs[b])) > TOLERANCE_US
            for a in ours
            for b in ours
        )


Windows = Mapping[MessageQueue, Window]


def windows(intervals: Intervals, events: Iterable[int], end_us: int) -> list[Windows]:
    """After each event (times in microseconds), of each queue."""
    times = [*events, end_us]
    return [
        {queue: _window(stretches, begin, end) for queue, stretches in intervals.items()}
        for begin, end in pairwise(times)
    ]


def _window(stretches: Sequence[Interval], begin: int, end: int) -> Window:
    inside = [stretch for stretch in stretches if stretch.from_us < end and stretch.to_us > begin]
    longest = {"unassigned": 0, "duplicate-owners": 0}
    for stretch in inside:
        length = min(stretch.to_us, end) - max(stretch.from_us, begin)
        longest[stretch.state] = max(longest.get(stretch.state, 0), length)
    owners = frozenset(client_id for stretch in inside for client_id in stretch.owners)
    return Window(tuple(_changes(stretches, begin, end)), longest["unassigned"], longest["duplicate-owners"], owners)


def _changes(stretches: Sequence[Interval], begin: int, end: int) -> Iterator[Change]:
    for before, after in pairwise(stretches):
        if begin <= after.from_us < end:
            for client_id in sorted(set(before.owners) - set(after.owners)):
                yield Change(f"-{client_id}", after.from_us - begin)
            for client_id in sorted(set(after.owners) - set(before.owners)):
                yield Change(f"+{client_id}", after.from_us - begin)


def simulated(recording: Recording, trials: int) -> list[list[Windows]]:
    """The same events, so many times; each trial's windows.

    A member that retries once a second for 45 s has a phase that hangs on each millisecond. So the trials do not all
    have the average request: they take turns with shorter and longer ones, and with the members' starts.
    """
    lived = recording.lived
    settings = tuple(product(SLOWER, lived.starts_us))
    found = []
    for number, (slower, start_us) in enumerate(settings):
        scenario = GroupScenario(
            events=recording.events,
            client_version=lived.version,
            orderly=lived.orderly,
            timers=Timers(start_us=start_us, connect_us=lived.connect_us),
            latency_us=round(lived.request_us * slower),
            until_us=lived.end_us,
            consumer_type="lite-pull" if lived.lite_pull else "push",
        )
        simulation = GroupSimulation(lived.group, Members((), "AVG", sdk=lived.sdk), lived.routes, scenario)
        found += [_foretold(simulation.run(trial), lived.topic) for trial in range(number, trials, len(settings))]
    return found


def _foretold(report: RebalanceResult, topic: str) -> list[Windows]:
    intervals = {each.queue: each.intervals for each in report.queues if each.queue.topic == topic}
    return windows(intervals, [event.at_us for event in report.events], report.end_us)


@dataclass(frozen=True)
class Comparison:
    """One event, measured of each queue, and foretold of each trial and queue."""

    event: Event
    measured: Windows
    foretold: Sequence[Windows]

    @property
    def changing(self) -> list[MessageQueue]:
        """Queues whose owners changed, here or there."""
        return [
            queue
            for queue, window in self.measured.items()
            if window.changes or any(each[queue].changes for each in self.foretold)
        ]

    def impossible(self) -> Iterator[str]:
        """What the simulation never does, in words."""
        for queue in self.changing:
            window, trials = self.measured[queue], [each[queue] for each in self.foretold]
            agreeing = _agreeing(window, trials)
            if agreeing * OFTEN < len(trials) and _is_rare(agreeing, trials):
                order = " ".join(change.text for change in window.changes)
                yield f"{self._named(queue)}: {order}: {agreeing} of {len(trials)} trials agree"
            for figure in FIGURES:
                yield from self._beside(queue, figure, 0)

    def unlikely(self) -> Iterator[str]:
        """Queues beside what 90 of 100 trials do, in words: one line each."""
        for queue in self.changing:
            yield from [line for figure in FIGURES for line in self._beside(queue, figure, 5)][:1]

    def _beside(self, queue: MessageQueue, figure: str, percent: int) -> Iterator[str]:
        """Beside the trials without so many of 100 at either end, by more than the tolerance."""
        measured = self.measured[queue].figure(figure)
        ordered = sorted(each[queue].figure(figure) for each in self.foretold)
        low, high = quantile(ordered, percent), quantile(ordered, 100 - percent)
        if placed((measured, measured), (low, high), TOLERANCE_US) != "as-predicted":
            yield f"{self._named(queue)}: {figure} {seconds(measured)}, simulated {seconds(low)} to {seconds(high)}"

    def _named(self, queue: MessageQueue) -> str:
        return f"{self.event.kind} {self.event.subject}, {queue.broker_name}:{queue.queue_id}"

    def figure(self, name: str) -> tuple[int, list[int]]:
        """The largest of all queues: measured, and in each trial."""
        return _largest(self.measured, name), [_largest(each, name) for each in self.foretold]


def _agreeing(window: Window, trials: Sequence[Window]) -> int:
    return sum(not window.contradicts(trial) for trial in trials)


def _is_rare(agreeing: int, trials: Sequence[Window]) -> bool:
    """Whether hardly a trial has so few that agree with it: after some events every order is one of many."""
    tried = trials[::4]
    as_few = sum(_agreeing(trial, trials) - 1 <= agreeing for trial in tried)  # each agrees with itself
    return not agreeing or as_few * OFTEN < len(tried)


def alone(found: Windows) -> list[str]:
    """Who owned every queue at some time, sorted: a member of several that was told that it is the only one."""
    return sorted(frozenset.intersection(*(window.owners for window in found.values())))


def _largest(found: Windows, figure: str) -> int:
    return max(window.figure(figure) for window in found.values())


def quantile(ordered: Sequence[int], percent: int) -> int:
    """The smallest value that so many of 100 do not exceed."""
    return ordered[max(-(-len(ordered) * percent // 100), 1) - 1]


def seconds(us: int) -> str:
    return f"{us / 1e6:.3f} s"


def compared(recording: Recording, trials: int) -> list[Comparison]:
    """Each event of a recording."""
    measured = windows(recording.intervals, [event.at_us for event in recording.events], recording.lived.end_us)
    foretold = simulated(recording, trials)
    return [
        Comparison(event, measured[number], [trial[number] for trial in foretold])
        for number, event in enumerate(recording.events)
    ]


def disagreements(comparisons: Sequence[Comparison]) -> list[str]:
    """What keeps the recording and the simulation from agreeing, in words."""
    windows_ = sum(len(each.changing) for each in comparisons)
    unlikely = [line for each in comparisons for line in each.unlikely()]
    return [line for each in comparisons for line in each.impossible()] + (
        unlikely if len(unlikely) * OFTEN > windows_ else []
    )


def report(recording: Recording, comparisons: Sequence[Comparison]) -> str:
    """A table of the comparison: seconds, of all queues the largest; simulated: median, p95, worst."""
    lived = recording.lived
    listener = "orderly" if lived.orderly else "concurrent"
    trials = len(comparisons[0].foretold)
    took = f"a request takes {lived.request_us / 1000:.1f} ms, a start {median(lived.starts_us) / 1000:.0f} ms"
    heads = [f"{name:>9} {'median':>7} {'p95':>7} {'worst':>7}" for name in ("gap", "overlap", "converged")]
    lines = [
        f"{lived.version if lived.sdk == 'java' else lived.sdk}, {listener}, {trials} trials; {took}",
        f"{'event':<20} {'queues':>6}  " + "  ".join(heads),
    ]
    for each in comparisons:
        cells = []
        for name in FIGURES:
            measured, foretold = each.figure(name)
            ordered = sorted(foretold)
            simulated = (quantile(ordered, 50), quantile(ordered, 95), ordered[-1])
            cells.append(" ".join([f"{measured / 1e6:9.3f}", *(f"{value / 1e6:7.3f}" for value in simulated)]))
        who = f"{each.event.kind} {each.event.subject.rpartition('@')[2]}"
        lines.append(f"{who:<20} {len(each.changing):>6}  " + "  ".join(cells))
        if each.event.kind == "broker-up":
            told = ", ".join(alone(each.measured)) or "nobody"
            number = sum(bool(alone(trial)) for trial in each.foretold)
            lines.append(f"  takes every queue: {told}; simulated: a consumer does in {number} of {trials} trials")
    return "\n".join(lines)
