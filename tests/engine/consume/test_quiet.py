"""Quiet time that is skipped leaves everything as going through it step by step does."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any

from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.assignment.assign import Members
from rmqlb.engine.consume.clock import Clock, until_next_tick
from rmqlb.engine.consume.group_environment import GroupEnvironment
from rmqlb.engine.consume.idle import IdleTimer, Ways, go_on
from rmqlb.engine.consume.quiet import QuietTime
from rmqlb.engine.consume.shares import Shares
from rmqlb.engine.consume.simulate import Population
from rmqlb.engine.consume.timelines import timelines
from rmqlb.engine.consume.vectorized import WaysAhead
from rmqlb.engine.randomness import Draws
from rmqlb.model.group_report import QueueTimeline
from rmqlb.model.group_scenario import SECOND_US, Event, GroupScenario, Timers
from rmqlb.model.route import TopicRouteData
from tests.engine.consume.groups import at, simulate
from tests.support.builders import route
from tests.support.mismatches import every_case

HOUR_US = 3600 * SECOND_US
TWO_TOPICS = (route("T", a=4, b=4), route("U", b=3))


class Ran:
    """A scenario gone through, with or without skipping quiet time, and what is left of it."""

    def __init__(
        self, members: Members, routes: Sequence[TopicRouteData], scenario: GroupScenario, *, skip: bool, explain: bool
    ) -> None:
        self.env = GroupEnvironment(
            routes,
            scenario,
            shares=Shares(members.settings, members.sdk_for),
            lagging=frozenset(),
            trial=0,
            explain=explain,
        )
        self._population = Population(self.env, members, [each.topic for each in routes])
        self._population.begin(all_new=scenario.all_new)
        self._population.expect(scenario.events)
        self._scenario = scenario
        self._end_us = max(event.at_us for event in scenario.events) + 150 * SECOND_US
        quiet = QuietTime(self.env, self._population.clients)
        self.steps = 0
        while self.env.clock.do_next(self._end_us):
            self.steps += 1
            if skip:
                quiet.skip(self._end_us)

    def all_of_it(self) -> tuple[object, ...]:
        """Owners, times, rebalances, what brokers heard when, and every member's next random number."""
        log = self.env.log
        drawn = [client.draws.below(1 << 40) for client in self._population.clients]
        heard = [
            (broker.name, [(channel.client_id, broker.last_beat_us(channel)) for channel in broker.channels])
            for broker in self.env.brokers()
        ]
        lines: tuple[QueueTimeline, ...] = timelines(log, self._scenario, {}, self._end_us)
        return lines, log.rebalances, log.steps, heard, drawn


def both(
    client_ids: str,
    *events: Event,
    routes: Sequence[TopicRouteData] = TWO_TOPICS,
    strategy: str = "AVG",
    explain: bool = False,
    sdk: str = "java",
    **more: Any,
) -> tuple[Ran, Ran]:
    """The scenario skipped and step by step; x runs Java, the others `sdk`."""
    settings = Settings(consumer_idcs=frozenset({"x"}))
    members = Members(tuple(client_ids.split()), strategy, settings, sdk=sdk, sdk_of={"x": "java"})
    scenario = GroupScenario(events, **more)
    return (
        Ran(members, routes, scenario, skip=True, explain=explain),
        Ran(members, routes, scenario, skip=False, explain=explain),
    )


LATE = at("join", "n", 6_000)
RARE_RENEWALS = Timers(lock_renewal_us=200 * SECOND_US, lock_life_us=250 * SECOND_US)
"""The last renewal before an event is in the quiet time."""


FROZEN = (at("freeze", "y"), at("unfreeze", "y", 4_000), at("freeze", "x", 5_000), LATE)


@every_case(
    ("client_ids", "events", "more"),
    [
        ("x y z", (LATE,), {}),
        ("x y z", (LATE,), {"orderly": True}),
        ("x y z", (LATE,), {"orderly": True, "client_version": "4.9.7"}),
        ("x y z", (LATE,), {"client_version": "5.1.0", "timers": Timers(rebalance_wait_us=500_000)}),
        ("x y z", (LATE,), {"broadcasting": True}),
        ("x y z", (LATE,), {"all_new": True}),
        ("x y z", (LATE,), {"latency_us": 0, "all_new": True}),
        ("x y z", (LATE,), {"latency_us": 2_000_000}),
        ("x y z", (LATE,), {"latency_us": 12_000_000}),
        ("x y z", (LATE,), {"latency_us": 30_000_000, "orderly": True}),
        ("x y z", (LATE,), {"latency_us": 30_000_000, "timers": Timers(channel_expiry_us=9_000 * SECOND_US)}),
        ("x x y", (LATE,), {"orderly": True}),
        ("x y z", (LATE,), {"sdk": "go"}),
        ("x y z", (LATE, at("leave", "y", 8_000)), {"sdk": "go", "orderly": True}),
        ("x y z", (LATE, at("leave", "y", 8_000)), {"sdk": "cpp", "latency_us": 2_000_000}),
        ("y z", (LATE,), {"sdk": "cpp", "all_new": True, "latency_us": 0}),
        ("x", (LATE,), {"strategy": "MACHINE_ROOM"}),
        ("x y", (at("crash", "x"), LATE, at("leave", "y", 8_000)), {"orderly": True}),
        ("x y", (at("host-loss", "x"), LATE, at("pull-stall", "n", 9_000)), {}),
        ("x y z", (at("broker-loss", "b"), at("broker-up", "b", 3_000), LATE), {"orderly": True}),
        ("x y", (at("route-change", "T", read_queues=0), LATE), {"client_version": "5.3.1"}),
        ("x y", (LATE,), {"timers": Timers(notify_batch_us=15 * SECOND_US, heartbeat_us=70 * SECOND_US)}),
        ("x y", (LATE,), {"timers": Timers(lock_renewal_us=30 * SECOND_US), "orderly": True, "explain": True}),
        ("x y", (at("route-change", "T", read_queues=0), LATE), {}),
        ("x y", (LATE,), {"routes": (*TWO_TOPICS, TopicRouteData("V", (), ()))}),
        ("x y", (at("crash", "x", 6_000),), {"timers": RARE_RENEWALS, "orderly": True}),
        ("x y", (LATE,), {"strategy": "CONFIG", "explain": True}),
        (
            "x y",
            (at("route-change", "T", read_queues=0), LATE),
            {"client_version": "5.3.1", "explain": True, "routes": (route("T", a=4),)},
        ),
        ("x y z", FROZEN, {}),
        ("x y z", FROZEN, {"orderly": True}),
        ("x y z", FROZEN, {"orderly": True, "client_version": "4.9.7"}),
        ("x y z", FROZEN, {"broadcasting": True}),
        ("x x y z", FROZEN, {"explain": True}),
        ("x y z", (at("freeze", "y"), at("crash", "y", 3_000), LATE), {}),
        ("x y z", (at("freeze", "y"), at("broker-down", "b", 2_000), at("broker-up", "b", 4_000), LATE), {}),
    ],
)
def test_all_is_as_after_every_step(client_ids: str, events: tuple[Event, ...], more: dict[str, Any]) -> None:
    skipped, stepped = both(client_ids, *events, **more)
    assert skipped.all_of_it() == stepped.all_of_it()


@every_case("down", range(10, 30, 2))
def test_locks_that_a_broker_has_lost_are_waited_for(down: float) -> None:
    """It is back after half a second and knows the members at once, but their locks by the next renewal only."""
    events = at("broker-down", "b", down), at("broker-up", "b", down + 0.5)
    skipped, stepped = both("x y", *events, at("crash", "y", 1_000), routes=[route(a=2, b=2)], orderly=True)
    assert skipped.all_of_it() == stepped.all_of_it()
    assert skipped.steps < stepped.steps


@every_case("more", [{}, {"orderly": True}, {"broadcasting": True}, {"latency_us": 300_000}])
def test_quiet_time_takes_few_steps(more: dict[str, Any]) -> None:
    skipped, stepped = both("x y z", LATE, **more)
    assert skipped.steps * 10 < stepped.steps


@every_case("more", [{}, {"orderly": True}, {"broadcasting": True}])
def test_it_does_so_beside_a_frozen_member(more: dict[str, Any]) -> None:
    skipped, stepped = both("x y z", at("freeze", "y"), LATE, **more)
    assert skipped.steps * 5 < stepped.steps


@every_case(
    ("events", "more"),
    [
        ((at("broker-loss", "b"), LATE), {"routes": (route("T", a=4), route("U", b=3))}),
        ((LATE,), {"timers": Timers(heartbeat_us=150 * SECOND_US)}),
        ((LATE,), {"latency_us": 12_000_000}),
    ],
)
def test_what_does_not_repeat_itself_is_gone_through_step_by_step(
    events: tuple[Event, ...], more: dict[str, Any]
) -> None:
    """A broker that nobody reaches, heartbeats that come or arrive too late: each rebalance may be another one."""
    skipped, stepped = both("x y z", *events, **more)
    assert skipped.all_of_it() == stepped.all_of_it()
    assert skipped.steps == stepped.steps


def test_a_week_before_the_event_is_settled_as_soon_as_an_hour() -> None:
    for hours in (1, 168):
        report = simulate("x y z", at("join", "n", hours * 3600))
        assert report.figures.settled_us is not None
        assert report.figures.settled_us < 5 * SECOND_US
        assert report.end_us >= hours * HOUR_US
        assert report.figures.rebalances >= 3 * hours * 179


class Busy:
    """Three timers of one member, with waits as long as the times between them, so that they often wait together."""

    def __init__(self, seed: int) -> None:
        draws = Draws(seed)
        self.waits = [draws.below(4) for _ in range(3)]
        self.periods = [7 + draws.below(20) for _ in range(3)]
        self._longest = 1 + draws.below(9)
        self._key = 99 + seed

    def begun(self, until: int) -> list[list[int]]:
        """When each timer was due, as processes on a clock do it."""
        clock, stream, begun = Clock(), Draws(self._key), [list[int](), list[int](), list[int]()]

        def steps(number: int, picks: bool) -> Generator[int, None, None]:
            begin = clock.now
            while True:
                begun[number].append(clock.now)
                for _ in range(self.waits[number]):
                    if picks:
                        stream.below(1)
                        yield stream.below(self._longest)
                    yield stream.below(self._longest)
                yield self.periods[2] if picks else until_next_tick(begin, self.periods[number], clock.now)

        for number in range(3):
            clock.start(steps(number, number == 2), number)
        while clock.do_next(until):
            pass
        return begun

    def ahead(self, place: int, count: int) -> Sequence[int]:
        """The ways to come."""
        stream = Draws(self._key)
        stream.skip(place)
        return [stream.below(self._longest) for _ in range(count)]

    def timers(self) -> list[IdleTimer]:
        """The same timers."""

        def every(period: int) -> Callable[[int, int], int]:
            return lambda over, due: over + until_next_tick(due, period, over)

        fixed = [IdleTimer(number, self.waits[number], every(self.periods[number])) for number in range(2)]
        return [*fixed, IdleTimer(2, 2 * self.waits[2], lambda over, _: over + self.periods[2], picks=True)]


@every_case("seed", range(12))
def test_timers_of_one_member_draw_in_the_order_of_time(seed: int) -> None:
    busy = Busy(seed)
    timers, _ = go_on(busy.timers(), Ways(busy.ahead), 2000)
    for timer, begun in zip(timers, busy.begun(3000), strict=True):
        assert timer.due_us == begun[timer.done] >= 2000 > begun[30]
        ends = timer.ends(Ways(busy.ahead))
        assert len(ends) == timer.waits
        assert not ends or ends[-1] == timer.over_us


def test_ways_ahead_are_those_that_are_drawn() -> None:
    lengths = [place * place for place in range(1 << 6)]
    draws = Draws(2**64 - 5)
    ahead = WaysAhead(lengths)
    state = draws.state
    drawn = [lengths[draws.below(len(lengths))] for _ in range(40)]
    assert ahead.ways(state, 0, 40) == drawn
    assert ahead.ways(state, 7, 3) == drawn[7:10]
    skipped = Draws(2**64 - 5)
    skipped.skip(40)
    assert skipped.below(1000) == draws.below(1000)
