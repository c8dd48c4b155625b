"""A consumer group over time: every member runs its own loop on its own clock, and the events happen in between."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from msgspec.structs import replace

from rmqlb.engine.allocate import check_settings
from rmqlb.engine.allocate.strategy import with_function
from rmqlb.engine.arguments import check_routes, require
from rmqlb.engine.assignment.assign import Members
from rmqlb.engine.rebalance.client import Client
from rmqlb.engine.rebalance.events import in_order
from rmqlb.engine.rebalance.group_environment import GroupEnvironment
from rmqlb.engine.rebalance.profile import consumer_profile_of
from rmqlb.engine.rebalance.shares import Shares
from rmqlb.engine.rebalance.timelines import figures, timelines
from rmqlb.errors import UsageError
from rmqlb.model.group import QueueState, States
from rmqlb.model.group_report import GroupReport
from rmqlb.model.group_scenario import CONSUME_FROM, SECOND_US, TIMER_NAMES, Event, EventKind, GroupScenario
from rmqlb.model.java import sort_key
from rmqlb.model.limits import SHORTEST_US, TrialNumber
from rmqlb.model.message_queue import MessageQueue, sort_client_ids
from rmqlb.model.route import TopicRouteData

_ROUNDS_US = 3600 * SECOND_US
"""After an hour all default timers are in the same phase again, so an age drawn from it makes every phase as likely."""


class Population:
    """Every member that ever was, in the order in which they came."""

    def __init__(self, env: GroupEnvironment, members: Members, topics: Sequence[str]) -> None:
        self._env = env
        self._members = members
        self._topics = tuple(topics)
        self.clients: list[Client] = []

    def begin(self, *, all_new: bool) -> None:
        """Let the members of the beginning be there: for a while already, or started now."""
        for client_id in sort_client_ids(self._members.client_ids):
            age = 0 if all_new else _ROUNDS_US + self._env.draws(len(self.clients)).below(_ROUNDS_US)
            client = self._add(client_id, None, -age)
            if all_new:
                client.start()
            else:
                client.have_run()
        if not all_new:
            self._settle()

    def expect(self, events: Sequence[Event]) -> None:
        self._env.events_left = len(events)
        for event in events:
            self._env.clock.call(event.at_us, self._happen, event)

    def _add(self, client_id: str, strategy: str | None, created_us: int) -> Client:
        members, topics = self._members, self._topics
        subscribed = members.subscribed.get(client_id)
        client = Client(
            client_id,
            number=len(self.clients),
            strategy=strategy or members.strategy_for(client_id),
            topics=topics if subscribed is None else tuple(topic for topic in topics if topic in subscribed),
            env=self._env,
            created_us=created_us,
        )
        self.clients.append(client)
        self._env.clients.append(client)
        return client

    def _settle(self) -> None:
        env = self._env
        members = env.shares.members(tuple(sort_client_ids(client.client_id for client in self.clients)))
        for client in self.clients:
            for topic in client.allocates:
                view = env.name_server.views.get(topic)
                if view is None:
                    continue
                share = env.shares.share(view, client.strategy, members, client.client_id)
                client.queues.has_had(view.queues if env.broadcasting else share or (), client.created_us)
            env.check(client)

    def _happen(self, event: Event) -> None:
        env = self._env
        env.events_left -= 1
        env.say(event.subject, "event", event.text)
        if event.kind == "broker-up":
            env.bring_up(event)
        elif event.kind in ("broker-down", "broker-loss"):
            env.take_down(event)
        elif event.kind == "route-change":
            env.change_route(event)
        else:
            self._apply(event)
            env.truth_changed()

    def _apply(self, event: Event) -> None:
        if event.kind == "join":
            self._add(event.subject, event.strategy_name, self._env.clock.now).start()
            return
        frozen = event.kind == "unfreeze"
        named = [each for each in self.clients if each.alive and each.client_id == event.subject]
        client = next((each for each in named if each.frozen is frozen), named[0])
        _HAPPENS[event.kind](client)


_HAPPENS: Mapping[EventKind, Callable[[Client], None]] = {
    "leave": Client.leave,
    "crash": Client.crash,
    "host-loss": Client.lose_host,
    "freeze": Client.freeze,
    "unfreeze": Client.unfreeze,
    "pull-stall": lambda client: client.queues.stall(),
}


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
        checked: bool = False,
    ) -> None:
        """Check the scenario (raises UsageError), unless all of it is of rmqlb's own making."""
        if not checked:
            _check(scenario)
            require(members, Members, "Members")
            check_settings(members.settings)
            check_routes(routes)
            require(group, str | None, "group")
            require(states, Mapping[MessageQueue, QueueState] | None, "states")
        members, scenario = _named(group, members, scenario)
        self._group = group
        self._members = members
        self._routes = _by_name(routes)
        self._scenario = scenario
        self._states = states or {}
        self._events = in_order(scenario.events, members.client_ids, self._routes)
        self._profile = consumer_profile_of(scenario.client_version)
        self._shares = Shares(members.settings, members.sdk_for, members.is_answered)
        self._lagging = frozenset(queue for queue, state in self._states.items() if (state.lag or 0) > 0)

    def run(self, trial: int = 0, *, explain: bool = False, gaps_only: bool = False) -> GroupReport:
        require(trial, TrialNumber, "trial")
        scenario = self._scenario
        env = GroupEnvironment(
            self._routes, scenario, shares=self._shares, lagging=self._lagging, trial=trial, explain=explain
        )
        population = Population(env, self._members, [route.topic for route in self._routes])
        population.begin(all_new=scenario.all_new)
        population.expect(self._events)
        end = _run(env, scenario, self._events)
        lines = timelines(env.log, scenario, self._states, end, self._routes, gaps_only=gaps_only)
        settled = env.has_settled()
        return GroupReport(
            group=self._group,
            strategy=self._members.name,
            profile=", ".join(dict.fromkeys(client.profile.name for client in population.clients))
            or self._profile.name,
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


def _by_name(routes: Sequence[TopicRouteData]) -> tuple[TopicRouteData, ...]:
    """The routes by topic, their brokers by name, so that equal clusters give equal simulations.

    A NameServer's answer lists brokers, and a client's `ConcurrentHashMap` its topics, in an order that means nothing.
    """
    return tuple(
        replace(
            route,
            queue_datas=tuple(sorted(route.queue_datas, key=lambda data: sort_key(data.broker_name))),
            broker_datas=tuple(sorted(route.broker_datas, key=lambda data: sort_key(data.broker_name))),
        )
        for route in sorted(routes, key=lambda route: sort_key(route.topic))
    )


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
            raise UsageError(f"{rate} messages per second into {queue} make no sense")


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


def _run(env: GroupEnvironment, scenario: GroupScenario, events: Sequence[Event]) -> int:
    """Until the group has settled, or the time is over; where the time axis ends."""
    clock = env.clock
    if scenario.until_us is not None:
        while clock.do_next(scenario.until_us):
            pass
        return scenario.until_us
    last = events[-1].at_us if events else 0
    longest = last + scenario.patience_us
    while not env.has_settled():
        if not clock.do_next(longest):
            return longest
    return clock.now + max(_TAIL_US, (clock.now - (events[0].at_us if events else 0)) // 20)
