"""A consumer group over time: every member runs its own loop on its own clock, and the events happen in between."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from msgspec.structs import replace

from rmqlb.engine.allocate import check_settings
from rmqlb.engine.allocate.custom import with_function
from rmqlb.engine.arguments import check_routes, require
from rmqlb.engine.assignment.assign import Members
from rmqlb.engine.consume.events import in_order
from rmqlb.engine.consume.group_environment import GroupEnvironment
from rmqlb.engine.consume.population import Population
from rmqlb.engine.consume.profile import consumer_profile_of
from rmqlb.engine.consume.quiet import QuietTime
from rmqlb.engine.consume.shares import Shares
from rmqlb.engine.consume.timelines import figures, timelines
from rmqlb.errors import UsageError
from rmqlb.model.group import QueueState, States
from rmqlb.model.group_report import GroupReport
from rmqlb.model.group_scenario import CONSUME_FROM, SECOND_US, TIMER_NAMES, Event, GroupScenario
from rmqlb.model.limits import SHORTEST_US, TrialNumber
from rmqlb.model.message_queue import MessageQueue, sort_client_ids
from rmqlb.model.route import TopicRouteData

_TAIL_US = SECOND_US


class GroupSimulation:
    """A scenario made ready once, to be run with as many trials as wanted."""

    def __init__(
        self,
        group: str | None,
        members: Members,
        routes: Sequence[TopicRouteData],
        scenario: GroupScenario,
        *,
        states: States | None = None,
    ) -> None:
        """Check the scenario (raises UsageError)."""
        _check(scenario)
        require(members, Members, "Members")
        check_settings(members.settings)
        check_routes(routes)
        require(group, str | None, "group")
        require(states, Mapping[MessageQueue, QueueState] | None, "states")
        members, scenario = _named(group, members, scenario)
        self._group = group
        self._members = members
        self._routes = tuple(routes)
        self._scenario = scenario
        self._states = states or {}
        self._events = in_order(scenario.events, members.client_ids, routes)
        self._profile = consumer_profile_of(scenario.client_version)
        self._shares = Shares(members.settings)
        self._lagging = frozenset(queue for queue, state in self._states.items() if (state.lag or 0) > 0)

    def run(self, trial: int = 0, *, explain: bool = False) -> GroupReport:
        require(trial, TrialNumber, "trial")
        scenario = self._scenario
        env = GroupEnvironment(
            self._routes,
            scenario,
            shares=self._shares,
            lagging=self._lagging,
            trial=trial,
            explain=explain,
        )
        population = Population(env, self._members, [route.topic for route in self._routes])
        population.begin(all_new=scenario.all_new)
        population.expect(self._events)
        end = _run(env, QuietTime(env, population.clients), scenario, self._events)
        lines = timelines(env.log, scenario, self._states, end, self._routes)
        settled = env.has_settled()
        return GroupReport(
            group=self._group,
            strategy=self._members.name,
            profile=self._profile.name,
            scenario=scenario,
            events=self._events,
            trial=trial,
            members=tuple(sort_client_ids(dict.fromkeys(client.client_id for client in env.clients))),
            end_us=end,
            timelines=lines,
            steps=tuple(env.log.steps),
            figures=figures(
                lines,
                env.log,
                self._events[0].at_us if self._events else 0,
                settled=settled,
                broadcasting=scenario.broadcasting,
            ),
        )


def simulate_group(
    group: str | None,
    members: Members,
    routes: Sequence[TopicRouteData],
    scenario: GroupScenario,
    *,
    states: States | None = None,
    trial: int = 0,
    explain: bool = False,
) -> GroupReport:
    """What a group goes through.

    The members of the beginning have run for a while and own what their strategies give them; every clock of theirs is
    at a random place. With `all_new` they start at time 0.

    Args:
        group: its name, or None.
        members: the group at the beginning.
        routes: the topics.
        scenario: what happens, and how clients and servers are configured.
        states: what was observed of each queue: offsets for where a new owner starts, lag.
        trial: which of the seed's trials.
        explain: note every step.

    Raises:
        UsageError: the events contradict each other or the group, a timer or a rate makes no sense, or a version is
            unknown.
    """
    return GroupSimulation(group, members, routes, scenario, states=states).run(trial, explain=explain)


def _named(group: str | None, members: Members, scenario: GroupScenario) -> tuple[Members, GroupScenario]:
    """Both with functions in the settings and names in their place, and with the group that functions are given."""
    settings = replace(members.settings, group=members.settings.group or group or "")
    events = []
    for event in scenario.events:
        if event.strategy is not None:
            name, settings = with_function(event.strategy, settings)
            event = replace(event, strategy=name)  # noqa: PLW2901 - the same event
        events.append(event)
    return replace(members, settings=settings), replace(scenario, events=tuple(events))


def _check(scenario: GroupScenario) -> None:
    require(scenario, GroupScenario, "GroupScenario")
    require(scenario.consume_from, Literal[CONSUME_FROM], "GroupScenario.consume_from")
    if scenario.orderly and {scenario.consumer_type, *scenario.consumer_types.values()} != {"push"}:
        raise UsageError("only push consumers have a listener that is orderly", hint="leave --orderly out")
    _check_pauses(scenario)
    for queue, rate in scenario.rates.items():
        if rate < 0:
            raise UsageError(f"{rate} messages a second into {queue} make no sense")


def _check_pauses(scenario: GroupScenario) -> None:
    """Refuse what would happen again and again without time going by, or a thousand times in each millisecond."""
    timers, profile = scenario.timers, consumer_profile_of(scenario.client_version)
    names = ["route-poll", "heartbeat", "lock-renewal", "broker-scan"]
    names += ["rebalance-min" if profile.min_interval else "rebalance-wait"]
    names += ["notify-batch"] if timers.notify_batch_us else []
    for name in names:
        length_us = getattr(timers, TIMER_NAMES[name])
        if length_us < SHORTEST_US:
            raise UsageError(
                f"timer {name} is {length_us} us: what happens again and again is 1 ms apart at the least",
                hint="between two rebalances clients before 5.2.0 wait for rebalance-wait, newer ones rebalance-min",
                code="too-many-steps",
            )


def _run(env: GroupEnvironment, quiet: QuietTime, scenario: GroupScenario, events: Sequence[Event]) -> int:
    """Until the group has settled, or the time is over; where the time axis ends."""
    clock = env.clock
    if scenario.until_us is not None:
        while clock.do_next(scenario.until_us):
            quiet.skip(scenario.until_us)
        return scenario.until_us
    last = events[-1].at_us if events else 0
    longest = last + scenario.patience_us
    while not env.has_settled():
        quiet.skip(longest)
        if not clock.do_next(longest):
            return longest
    return clock.now + max(_TAIL_US, (clock.now - (events[0].at_us if events else 0)) // 20)
