"""What real clients went through against what the simulation foretells, event by event and queue by queue.

- An event's *window* reaches from the event to the next one, or to the end. Both sides are asked the same, of the same
  thing: the intervals of each queue's owners.
- Both agree when the recorded order is one that the simulation draws often enough, no length is beyond the longest and
  the shortest simulated one, and 19 of 20 consumers' shares, or all but one, are within 90 of 100 trials: a p95 promises
  no more. `rmqlb record --against` says by the same function (`placed`) whether something was early or late.
- Some trials have requests that stall. They say what is possible on a busy machine, not what is likely.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise, product
from statistics import median
from typing import Final, NamedTuple

from rmqlb import Event, GroupScenario, Members, MessageQueue, Timers
from rmqlb.engine.kernel import nearest_rank
from rmqlb.engine.rebalance.simulate import GroupSimulation
from rmqlb.engine.record.compare import placed
from rmqlb.model.simulate_rebalance import Interval

from .recorded_groups import Intervals, Recording

TOLERANCE_US: Final = 250_000
"""How far a measured time may be beside a simulated one: for threads of several JVMs that wait for two cores."""
OFTEN: Final = 20
"""One share in so many may be beside 90 of 100 trials: a rebalance of one consumer decides all its queues at once."""
RARE: Final = 100
"""One in so many trials is often enough: about forty events are compared at a time, so rarer outcomes do come."""
SLOWER: Final = (0.5, 0.7, 1.0, 1.4, 2.0, 4.0)
"""Times the average request: a busy machine answers several times as slowly for a while, which decides races. A joiner
that locks queue after queue, for one, gets the last ones at once when another consumer gives them up meanwhile."""
STALLED: Final = (10.0, 30.0)
"""Times the average request: with these, single requests come some tens of milliseconds after those that they raced."""
FIGURES: Final = ("none_us", "several_us", "settled_us")


class Change(NamedTuple):
    """A consumer takes a queue (`+ID`) or is rid of it (`-ID`), so long after the event."""

    text: str
    after_us: int


class Window(NamedTuple):
    """What became of one queue after one event."""

    changes: tuple[Change, ...]
    none_us: int  # the longest time without an owner
    several_us: int  # the longest time with two
    owners: frozenset[str]  # all that the queue had at some time

    @property
    def settled_us(self) -> int:
        """From the event to the last change, 0 when nothing changed."""
        return self.changes[-1].after_us if self.changes else 0

    def contradicts(self, other: "Window") -> bool:
        """Other changes, or two of them clearly the other way round."""
        ours, theirs = ({change.text: change.after_us for change in each.changes} for each in (self, other))
        if sorted(change.text for change in self.changes) != sorted(change.text for change in other.changes):
            return True
        apart = ((ours[a] - ours[b], theirs[a] - theirs[b]) for a in ours for b in ours)
        return any(our * their < 0 and min(abs(our), abs(their)) > TOLERANCE_US for our, their in apart)


Windows = Mapping[MessageQueue, Window]


def windows(intervals: Intervals, events: Iterable[int], end_us: int) -> list[Windows]:
    spans = pairwise([*events, end_us])
    return [{queue: _window(each, begin, end) for queue, each in intervals.items()} for begin, end in spans]


def _window(stretches: Sequence[Interval], begin: int, end: int) -> Window:
    longest, owners, changes = {"unassigned": 0, "duplicate-owners": 0}, set[str](), list[Change]()
    for stretch in stretches:
        if stretch.from_us < end and stretch.to_us > begin:
            length = min(stretch.to_us, end) - max(stretch.from_us, begin)
            longest[stretch.state] = max(longest.get(stretch.state, 0), length)
            owners.update(stretch.owners)
    for before, after in pairwise(stretches):
        if begin <= after.from_us < end:
            gone, come = (sorted({*a.owners} - {*b.owners}) for a, b in ((before, after), (after, before)))
            texts = (*(f"-{each}" for each in gone), *(f"+{each}" for each in come))
            changes += [Change(text, after.from_us - begin) for text in texts]
    return Window(tuple(changes), longest["unassigned"], longest["duplicate-owners"], frozenset(owners))


def simulated(recording: Recording, trials: int, slower: Sequence[float] = SLOWER) -> list[list[Windows]]:
    """The same events, so many times; each trial's windows.

    A consumer that retries once a second for 45 s has a phase that hangs on each millisecond. So the trials do not all
    have the average request: they take turns with shorter and longer ones, and with the consumers' starts.
    """
    lived = recording.lived
    settings = tuple(product(slower, lived.starts_us))
    found = []
    for number, (times, start_us) in enumerate(settings):
        scenario = GroupScenario(
            events=recording.events, client_version=lived.version, orderly=lived.orderly,
            timers=Timers(start_us=start_us, connect_us=lived.connect_us), latency_us=round(lived.request_us * times),
            until_us=lived.end_us, consumer_type="lite-pull" if lived.lite_pull else "push",
        )  # fmt: skip
        simulation = GroupSimulation(lived.group, Members((), "AVG", sdk=lived.sdk), lived.routes, scenario)
        for report in map(simulation.run, range(number, trials, len(settings))):
            intervals = {each.queue: each.intervals for each in report.queues if each.queue.topic == lived.topic}
            found.append(windows(intervals, [event.at_us for event in report.events], report.end_us))
    return found


class Comparison(NamedTuple):
    event: Event
    measured: Windows
    foretold: Sequence[Windows]
    stalled: Sequence[Windows]

    @property
    def changing(self) -> list[MessageQueue]:
        trials, measured = self.foretold, self.measured
        return [queue for queue in measured if any(each[queue].changes for each in (measured, *trials))]

    def impossible(self) -> Iterator[str]:
        every = (*self.foretold, *self.stalled)
        for queue in self.changing:
            window, trials = self.measured[queue], [each[queue] for each in every]
            agreeing = _agreeing(window, trials)
            if agreeing * RARE < len(trials) and _is_rare(agreeing, trials, len(self.foretold)):
                order = " ".join(change.text for change in window.changes)
                yield f"{self._named(queue)}: {order}: {agreeing} of {len(trials)} trials agree"
            for figure in FIGURES:
                yield from self._beside(queue, figure, every, 0)

    def shares(self) -> dict[str, list[str]]:
        """The last change of queues → what is unlikely of these."""
        found: dict[str, list[str]] = {}
        for queue in self.changing:
            changes = self.measured[queue].changes
            lines = found.setdefault(changes[-1].text if changes else "", [])
            lines += [line for figure in FIGURES for line in self._beside(queue, figure, self.foretold, 5)]
        return found

    def _beside(self, queue: MessageQueue, figure: str, trials: Sequence[Windows], percent: int) -> Iterator[str]:
        """Beside the trials without so many of 100 at either end, by more than the tolerance."""
        measured = getattr(self.measured[queue], figure)
        ordered = sorted(getattr(each[queue], figure) for each in trials)
        low, high = nearest_rank(ordered, percent), nearest_rank(ordered, 100 - percent)
        if placed((measured, measured), (low, high), TOLERANCE_US) != "as-predicted":
            yield f"{self._named(queue)}: {figure} {seconds(measured)}, simulated {seconds(low)} to {seconds(high)}"

    def _named(self, queue: MessageQueue) -> str:
        return f"{self.event.kind} {self.event.subject}, {queue.broker_name}:{queue.queue_id}"


def _agreeing(window: Window, trials: Sequence[Window]) -> int:
    return sum(not window.contradicts(trial) for trial in trials)


def _is_rare(agreeing: int, trials: Sequence[Window], usual: int) -> bool:
    """Whether hardly a usual trial has so few that agree with it: after some events every order is one of many."""
    tried = trials[:usual:4]
    as_few = sum(_agreeing(trial, trials) - 1 <= agreeing for trial in tried)  # each agrees with itself
    return as_few * RARE < len(tried)


def alone(found: Windows) -> list[str]:
    """Who owned every queue at some time, sorted: a consumer of several that was told that it is the only one."""
    return sorted(frozenset.intersection(*(window.owners for window in found.values())))


def seconds(us: int) -> str:
    return f"{us / 1e6:.3f} s"


def compared(recording: Recording, trials: int) -> list[Comparison]:
    events, foretold = recording.events, simulated(recording, trials)
    stalled = simulated(recording, trials // 3, STALLED)
    measured = windows(recording.intervals, [event.at_us for event in events], recording.lived.end_us)
    of_each = zip(events, measured, zip(*foretold, strict=True), zip(*stalled, strict=True), strict=True)
    return [Comparison(*each) for each in of_each]


def disagreements(comparisons: Sequence[Comparison]) -> list[str]:
    shares = [lines for each in comparisons for lines in each.shares().values()]
    unlikely = [lines[0] for lines in shares if lines]
    impossible = [line for each in comparisons for line in each.impossible()]
    return impossible + (unlikely if len(unlikely) > max(1, len(shares) / OFTEN) else [])


def report(recording: Recording, comparisons: Sequence[Comparison]) -> str:
    lived, trials = recording.lived, len(comparisons[0].foretold)
    took = f"a request takes {lived.request_us / 1000:.1f} ms, a start {median(lived.starts_us) / 1000:.0f} ms"
    lines = [f"{lived.version} ({lived.sdk}, orderly: {lived.orderly}), {trials} trials; {took}"]
    for each in comparisons:
        figures = []
        for name in FIGURES:
            largest = (max(getattr(window, name) for window in found.values()) for found in each.foretold)
            ordered, measured = sorted(largest), max(getattr(window, name) for window in each.measured.values())
            spread = "/".join(map(seconds, (*(nearest_rank(ordered, each) for each in (50, 95)), ordered[-1])))
            figures.append(f"{name} {seconds(measured)} against {spread}")
        number = sum(bool(alone(trial)) for trial in each.foretold)
        told = f"; takes every queue: {alone(each.measured)}, in {number} of {trials} trials somebody does"
        up = told if each.event.kind == "broker-up" else ""
        queues = f"{each.event.kind} {each.event.subject}, {len(each.changing)} queues"
        lines.append(f"{queues}: {'; '.join(figures)}{up}")
    return "\n".join(lines)
