"""A consumer group over time: every consumer runs its own loop on its own clock, and the events happen in between.

The figures of one simulation, their spread over many trials, and the conditions of `--fail-on` are here too.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import Annotated, Any, Literal

from msgspec import Meta
from msgspec.structs import replace

from rmqlb.engine.allocate import check_settings
from rmqlb.engine.allocate.strategy import with_function
from rmqlb.engine.arguments import check_routes, require
from rmqlb.engine.assignment.assign import Members
from rmqlb.engine.conditions import Condition, FailOn
from rmqlb.engine.kernel import in_processes, nearest_rank
from rmqlb.engine.plan.changes import Edits
from rmqlb.engine.plan.rebalance import Side
from rmqlb.engine.rebalance.consumer import Client
from rmqlb.engine.rebalance.environment import GroupEnvironment, Shares
from rmqlb.engine.rebalance.profile import consumer_profile_of
from rmqlb.engine.rebalance.timelines import EventLog, lag_over_time, timelines
from rmqlb.errors import DataError, RmqlbError, UsageError
from rmqlb.model import simulate_rebalance as result
from rmqlb.model.group import QueueState, States
from rmqlb.model.group_scenario import CONSUME_FROM, SECOND_US, TIMER_NAMES, Event, EventKind, GroupScenario
from rmqlb.model.limits import MOST_GROUP_TRIALS, SHORTEST_US, TrialNumber
from rmqlb.model.message_queue import MessageQueue, sort_client_ids, sort_key
from rmqlb.model.plan import Convergence, RebalancePlan, Rollout
from rmqlb.model.result import TriedCondition, milliseconds, milliseconds_if_known, sum_if_known
from rmqlb.model.route import TopicRouteData
from rmqlb.model.simulate_rebalance import BAD_STATES, FigureSpread, GroupFigures, GroupTrials, QueueTimeline
from rmqlb.model.snapshot import suggestion

ENDS: tuple[EventKind, ...] = ("leave", "crash", "host-loss")
_OF_CONSUMERS = (*ENDS, "join", "pull-stall", "freeze", "unfreeze")
_OF_FROZEN = ("crash", "host-loss", "unfreeze")  # the events that a frozen process can have
_PROCESS_AND_TIME = r"(?P<host>.*@\d+#)(?P<nanos>\d{1,18})"


def restarts(
    client_ids: Sequence[str],  # in the order in which they go down
    at_us: int,
    *,
    every_us: int,  # from one going down to the next
    down_us: int,
    at_once: int = 1,  # consumers that go down together
    becomes: Mapping[str, str] = {},  # client id → the id afterwards, of those whose id changes
    strategy: str | None = None,  # the strategy afterwards; None leaves it as it is
    end: Literal["leave", "crash"] = "leave",
    text: str = "",  # the event as the user wrote it
) -> tuple[Event, ...]:
    events: list[Event] = []
    for index, client_id in enumerate(client_ids):
        goes = at_us + index // at_once * every_us
        events.append(Event(end, goes, client_id, text))
        events.append(Event("join", goes + down_us, becomes.get(client_id, client_id), text, strategy=strategy))
    return tuple(events)


def renamed_apart(client_ids: Iterable[str], taken: Iterable[str]) -> dict[str, str]:
    """Client ID → its new ID after a restart, if it changes; no two processes get the same ID.

    `host@pid#time` gets a later time (`ClientConfig.changeInstanceNameToPID`).

    >>> renamed_apart(["h@1#7", "h@worker-3"], ["h@1#7", "h@1#8"])
    {'h@1#7': 'h@1#9'}
    """
    used, changed = set(taken), dict[str, str]()
    for client_id in client_ids:
        if (match := re.fullmatch(_PROCESS_AND_TIME, client_id)) is not None:
            times = count(int(match["nanos"]) + 1)
            later = (f"{match['host']}{nanos:0{len(match['nanos'])}d}" for nanos in times)
            changed[client_id] = next(new for new in later if new not in used)
            used.add(changed[client_id])
    return changed


def in_order(events: Iterable[Event], client_ids: Iterable[str], routes: Sequence[TopicRouteData]) -> tuple[Event, ...]:
    """The events in the order of time (raises UsageError if they contradict each other or the group)."""
    ordered = sorted(events, key=lambda event: event.at_us)
    cluster = _Cluster(client_ids, routes)
    for event in ordered:
        for error in cluster.contradictions(event):
            name = f"--event {event.text!r}" if event.text else f"{event.kind} {event.subject}"
            raise type(error)(error.message, prefix=f"{name}: ", hint=error.hint, code=error.code)
        cluster.happen(event)
    return tuple(replace(event, text=event.text or f"{event.kind} {event.subject}") for event in ordered)


class _Cluster:
    def __init__(self, client_ids: Iterable[str], routes: Sequence[TopicRouteData]) -> None:
        self._present = Counter(client_ids)
        self._frozen: Counter[str] = Counter()
        self._up = {broker.broker_name: True for route in routes for broker in route.broker_datas}
        self._routes = {route.topic: route for route in routes}

    def happen(self, event: Event) -> None:
        name = event.subject
        if event.kind in _OF_CONSUMERS:
            self._present[name] += (event.kind == "join") - (event.kind in ENDS)
            self._frozen[name] += (event.kind == "freeze") - (event.kind == "unfreeze")
            self._frozen[name] = min(self._frozen[name], self._present[name])
        elif event.kind != "route-change":
            self._up[name] = event.kind == "broker-up"

    def contradictions(self, event: Event) -> Iterator[RmqlbError]:
        if event.at_us < 0:
            yield UsageError("the time is before the start", hint="times count from the start (0s)")
        if event.kind == "join":
            if not event.subject:
                yield UsageError("a client ID cannot be empty")
            if self._present[event.subject]:
                hint = "let it leave or crash before, or give the new process another ID"
                yield UsageError("it is already in the group at that time", hint=hint, code="already-in-group")
        elif event.kind in _OF_CONSUMERS:
            yield from self._of_consumer(event.kind, event.subject)
        elif event.kind == "route-change":
            yield from self._of_route(event)
        else:
            yield from self._of_broker(event)

    def _of_consumer(self, kind: EventKind, client_id: str) -> Iterator[RmqlbError]:
        present, frozen = self._present, self._frozen[client_id]
        if not present[client_id]:
            was = "no longer" if client_id in present else "not"
            hint = suggestion("consumers", client_id, sorted(+present))
            yield DataError(f"it is {was} in the group at that time", hint=hint, code="not-in-group")
        if kind == "unfreeze" and not frozen:
            yield UsageError("it is not frozen at that time", hint="a freeze ends when the process ends")
        if frozen == present[client_id] and kind not in _OF_FROZEN:
            yield UsageError(
                "it is frozen at that time, so it does nothing", hint="end the freeze earlier, or use crash"
            )

    def _of_broker(self, event: Event) -> Iterator[RmqlbError]:
        name, up = event.subject, self._up.get(event.subject)
        if event.kind != "broker-up":
            if up is None:
                hint = suggestion("brokers", name, self._up)
                yield DataError("there is no such broker", hint=hint, code="unknown-broker")
            if not up:
                yield UsageError("it is already down")
        elif up:
            yield UsageError("it is already up")
        elif up is not None and (event.read_queues, event.write_queues) != (None, None):
            yield UsageError("a broker of the route returns with its former queues")

    def _of_route(self, event: Event) -> Iterator[RmqlbError]:
        topic, broker = event.subject, event.broker_name
        if topic not in self._routes:
            hint = suggestion("topics", topic, self._routes)
            yield DataError(f"topic {topic} is not simulated", hint=hint, code="topic-not-found")
            return
        if self._routes[topic].is_static:
            yield UsageError(f"{topic} is a static topic: its queues do not follow brokers", code="static-topic")
        brokers = [data.broker_name for data in self._routes[topic].queue_datas]
        if broker is not None and broker not in brokers:
            hint = suggestion("brokers", broker, brokers)
            yield DataError(f"topic {topic} has no broker {broker}", hint=hint, code="unknown-broker")


_FIELDS = {name.replace("_", "-"): name for name in GroupFigures.__struct_fields__ if name != "rebalances"}
GROUP_FIGURES = FailOn(names=tuple(_FIELDS), of_subject=tuple(_FIELDS))
ROLLOUT_FIGURES = FailOn(names=(*_FIELDS, "takes-ms", "misassigned"), of_subject=tuple(_FIELDS))
_SPREADS = ("p95", "p50", "max")
_STILL_OPEN = {
    **{f"{which}_{kind}_ms": f"queues_with_{kind}_at_end" for kind in BAD_STATES for which in ("longest", "total")},
    "unread_ms": "queues_unread_at_end",
    **dict.fromkeys(("peak_lag", "lag_gone_ms"), "queues_never_drained"),
}
"""A figure, and the count of queues that may make the figure infinite: for them it is not over at the end."""


def figures(
    queues: Sequence[QueueTimeline], log: EventLog, first_us: int, *, settled: bool, broadcasting: bool = False
) -> GroupFigures:
    at_end = Counter(line.intervals[-1].state for line in queues if line.intervals)
    kinds: dict[str, float] = {}
    for kind, state in BAD_STATES.items():
        totals = [getattr(line, f"total_{kind}_ms") for line in queues]
        kinds[f"longest_{kind}_ms"] = max((getattr(line, f"longest_{kind}_ms") for line in queues), default=0)
        kinds[f"total_{kind}_ms"] = milliseconds(sum(round(total * 1000) for total in totals))
        kinds[f"queues_with_{kind}"] = sum(total > 0 for total in totals)
        kinds[f"queues_with_{kind}_at_end"] = 0 if broadcasting and kind == "overlap" else at_end[state]
    return GroupFigures(
        convergence_ms=milliseconds(max(log.last_change_us - first_us, 0)) if settled else None,
        unread_ms=max((line.unread_ms for line in queues), default=0),
        redelivered=sum_if_known(line.redelivered for line in queues),
        queues_unread_at_end=sum(line.unread_at_end for line in queues),
        taken=sum(len(line.takeovers) for line in queues),
        rebalances=log.rebalances,
        **kinds,  # type: ignore[arg-type]
    )


def summarise(found: Sequence[GroupFigures]) -> GroupTrials:
    """The spread of each figure over trials; one unknown value makes a figure unknown, except convergence."""
    spreads: dict[str, Any] = {}
    for name in GroupFigures.__struct_fields__:
        values = [(getattr(each, name), trial) for trial, each in enumerate(found)]
        known = [(value, trial) for value, trial in values if value is not None]
        is_known = len(known) == len(values) or name == "convergence_ms"
        spreads[name] = _spread(known) if known and is_known else None
    converged = sum(1 for each in found if each.convergence_ms is not None)
    return GroupTrials(len(found), converged, result.FigureSpreads(**spreads))


def _spread(values: Sequence[tuple[float, int]]) -> FigureSpread:
    ordered = sorted(value for value, _ in values)
    trial = next(trial for value, trial in values if value == ordered[-1])
    return FigureSpread(nearest_rank(ordered, 50), nearest_rank(ordered, 95), ordered[-1], trial)


def try_on_group(condition: Condition, found: GroupFigures | GroupTrials) -> TriedCondition:
    """Try a condition on one simulation, or on the p95 or the named spread of many trials (raises UsageError).

    A convergence time is infinite if one trial does not converge, other times if they are not over at the end.
    """
    name, spread, error = _FIELDS[condition.name], condition.subject or "p95", f"--fail-on {condition.text!r}"
    if isinstance(found, GroupFigures):
        if condition.subject is not None:
            raise UsageError(f"{error}: [{spread}] needs many trials", hint="pass --trials N")
        found = summarise([found])
    if spread not in _SPREADS:
        raise UsageError(f"{error}: unknown spread {spread}", hint=suggestion("spreads", spread, _SPREADS))
    figure, open_at_end = (getattr(found.figures, each, None) for each in (name, _STILL_OPEN.get(name, "")))
    number = None if figure is None else getattr(figure, spread)
    endless = open_at_end is not None and open_at_end.max > 0
    if name == "convergence_ms":
        endless = found.converged < found.trials
    elif name == "peak_lag":
        endless &= number is None  # a lag that stays has a peak
    return condition.try_on_endless() if endless else condition.try_on(number)


def try_on_rollout(condition: Condition, rollout: Rollout) -> TriedCondition:
    if condition.name == "misassigned":
        return condition.try_on(rollout.misassigned)
    best = next(choice for choice in rollout.choices if choice.best)
    if condition.name == "takes-ms":
        return condition.try_on_endless() if best.takes_ms is None else condition.try_on(best.takes_ms)
    return try_on_group(condition, best)


TrialCount = Annotated[int, Meta(ge=1, le=MOST_GROUP_TRIALS)]
_TAIL_US = SECOND_US
_ROUNDS_US = 3600 * SECOND_US
"""After an hour all default timers are in the same phase again, so every phase is equally likely at a random age."""


def simulate_group(
    group: str | None,
    members: Members,
    routes: Sequence[TopicRouteData],
    scenario: GroupScenario,
    *,
    states: States | None = None,
    trial: int = 0,
    explain: bool = False,
) -> result.RebalanceResult:
    """Simulate a group over time.

    The consumers of the beginning have run for a while and own what their strategies give them; each of their clocks is
    in a random phase. With `all_new` they start at time 0.

    Args:
        group: its name, or None.
        members: the group at the beginning.
        routes: the topics.
        scenario: the events, and the settings of clients and servers.
        states: the observed offsets and lag of each queue.
        trial: the number of a run with the same seed.
        explain: note every step.

    Raises:
        UsageError: the events contradict each other or the group, or a timer, a rate or a version is wrong.
    """
    return GroupSimulation(group, members, routes, scenario, states=states).run(trial, explain=explain)


def simulate_group_trials(
    group: str | None,
    members: Members,
    routes: Sequence[TopicRouteData],
    scenario: GroupScenario,
    trials: int,
    *,
    states: States | None = None,
    progress: Callable[[int], None] | None = None,
) -> GroupTrials:
    """Simulate a group `trials` times; trial 0 is what `simulate_group` returns.

    Raises:
        UsageError: as in `simulate_group`, or `trials` is not positive.
    """
    require(trials, TrialCount, "trials")
    simulation = GroupSimulation(group, members, routes, scenario, states=states)
    found: list[GroupFigures] = []
    for each in in_processes(simulation.figures, range(trials)):
        found.append(each)
        if progress is not None:
            progress(len(found))
    return summarise(found)


class GroupSimulation:
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
        """Check the scenario (raises UsageError), unless rmqlb itself made the whole scenario."""
        if not checked:
            _check(scenario)
            require(members, Members, "Members")
            check_settings(members.settings)
            check_routes(routes)
            require(group, str | None, "group")
            require(states, Mapping[MessageQueue, QueueState] | None, "states")
        self._group = group
        self._members, self._scenario = _with_names(group, members, scenario)
        self._routes, self._states = _by_name(routes), states or {}
        self._events = in_order(self._scenario.events, members.client_ids, self._routes)
        self._first_us, self._last_us = (self._events[at].at_us if self._events else 0 for at in (0, -1))
        self._shares = Shares(self._members)
        self._lagging = frozenset(queue for queue, state in self._states.items() if (state.lag or 0) > 0)

    def run(self, trial: int = 0, *, explain: bool = False) -> result.RebalanceResult:
        env, clients, end_us = self._simulated(trial, explain=explain)
        queues = timelines(env.log, self._scenario, self._states, end_us, self._routes)
        lag = lag_over_time(env.log, queues, self._scenario, self._states, end_us)
        profiles = ", ".join(dict.fromkeys(client.profile.name for client in clients))
        scenario, first_us = self._scenario, self._first_us
        found = figures(queues, env.log, first_us, settled=env.has_settled(), broadcasting=scenario.broadcasting)
        return result.RebalanceResult(
            group=self._group,
            strategy=self._members.name,
            scenario=echo(scenario, profiles or consumer_profile_of(scenario.client_version).name),
            events=tuple(map(event_echo, self._events)),
            trial=trial,
            end_ms=milliseconds(end_us),
            figures=found if lag is None else replace(found, **lag.figures(milliseconds(first_us))),
            queues=queues,
            consumers=consumer_parts(queues, [client.client_id for client in clients]),
            steps=tuple(env.log.steps) if explain else None,
            lag=lag,
        )

    def figures(self, trial: int) -> GroupFigures:
        return self.run(trial).figures

    def _simulated(self, trial: int, *, explain: bool) -> tuple[GroupEnvironment, Sequence[Client], int]:
        require(trial, TrialNumber, "trial")
        scenario, setting = self._scenario, (self._routes, self._members, self._scenario)
        env = GroupEnvironment(*setting, shares=self._shares, lagging=self._lagging, trial=trial, explain=explain)
        clients = _Population(env, self._members, [route.topic for route in self._routes], self._events).clients
        longest = self._last_us + scenario.patience_us if scenario.until_us is None else scenario.until_us
        while scenario.until_us is not None or not env.has_settled():
            if not env.clock.do_next(longest):
                return env, clients, longest
        return env, clients, env.clock.now + max(_TAIL_US, (env.clock.now - self._first_us) // 20)


class _Population:
    def __init__(self, env: GroupEnvironment, members: Members, topics: Sequence[str], events: Sequence[Event]) -> None:
        self._env, self._members, self._topics = env, members, topics
        env.clients = self.clients = list[Client]()
        all_new = env.scenario.all_new
        for client_id in sort_client_ids(members.client_ids):
            age = 0 if all_new else _ROUNDS_US + env.draws(len(self.clients)).below(_ROUNDS_US)
            client = self._add(client_id, None, -age)
            if all_new:
                client.start()
            else:
                client.have_run()
        for client in () if all_new else self.clients:
            client.own_shares()
            client.check()
        env.events_left = len(events)
        for event in events:
            env.clock.call(event.at_us, self._happen, event)

    def _add(self, client_id: str, strategy: str | None, created_us: int) -> Client:
        subscribed = self._members.subscribed.get(client_id)
        client = Client(
            client_id,
            number=len(self.clients),
            strategy=strategy or self._members.strategy_for(client_id),
            topics=tuple(topic for topic in self._topics if subscribed is None or topic in subscribed),
            env=self._env,
            created_us=created_us,
        )
        self.clients.append(client)
        return client

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
        elif event.kind == "join":
            self._add(event.subject, event.strategy_name, env.clock.now).start()
        else:
            named = [each for each in self.clients if each.alive and each.client_id == event.subject]
            fitting = (each for each in named if each.frozen is (event.kind == "unfreeze"))
            _HAPPENS[event.kind](next(fitting, named[0]))
        env.truth_changed()


_HAPPENS: Mapping[EventKind, Callable[[Client], None]] = {
    "leave": Client.leave,
    "crash": Client.crash,
    "host-loss": Client.lose_host,
    "freeze": Client.freeze,
    "unfreeze": Client.unfreeze,
    "pull-stall": lambda client: client.queues.stall(),
}


def _by_name(routes: Sequence[TopicRouteData]) -> tuple[TopicRouteData, ...]:
    """Sort topics and brokers: their order in NameServers' answers and in clients' maps has no meaning."""

    def by_name(data: Any) -> bytes:
        return sort_key(data.broker_name)

    ordered = sorted(routes, key=lambda route: sort_key(route.topic))
    parts = ((each, sorted(each.queue_datas, key=by_name), sorted(each.broker_datas, key=by_name)) for each in ordered)
    return tuple(replace(route, queue_datas=tuple(of), broker_datas=tuple(brokers)) for route, of, brokers in parts)


def _with_names(group: str | None, members: Members, scenario: GroupScenario) -> tuple[Members, GroupScenario]:
    settings = replace(members.settings, group=members.settings.group or group or "")
    events = []
    for event in scenario.events:
        if event.strategy is not None:
            name, settings = with_function(event.strategy, settings)
            event = replace(event, strategy=name)  # noqa: PLW2901 - the same event
        events.append(event)
    return replace(members, settings=settings), replace(scenario, events=tuple(events))


def echo(s: GroupScenario, profile: str) -> result.SimulatedGroup:
    same = ("client_version", "orderly", "broadcasting", "consumer_type", "consumer_types", "all_new", "seed")
    return result.SimulatedGroup(
        profile=profile,
        consume_from_where=s.consume_from,
        timers=result.timers_in_ms(s.timers),
        latency_ms=milliseconds(s.latency_us),
        consume_ms=milliseconds(s.consume_us),
        rates=tuple(result.QueueFlow(q.topic, q.broker_name, q.queue_id, rate) for q, rate in sorted(s.rates.items())),
        until_ms=milliseconds_if_known(s.until_us),
        patience_ms=milliseconds(s.patience_us),
        **{name: getattr(s, name) for name in same},
    )


def event_echo(event: Event) -> result.SimulatedEvent:
    same = ("kind", "subject", "broker_name", "read_queues", "write_queues", "with_slaves", "text")
    more: dict[str, Any] = {name: getattr(event, name) for name in same}
    return result.SimulatedEvent(at_ms=milliseconds(event.at_us), strategy=event.strategy_name, **more)


def consumer_parts(queues: Sequence[QueueTimeline], client_ids: Sequence[str]) -> tuple[result.ConsumerPart, ...]:
    owned = [(one.intervals[0].owners, one.intervals[-1].owners) for one in queues if one.intervals]
    at_start = Counter(owner for owners, _ in owned for owner in set(owners))
    at_end = Counter(owner for _, owners in owned for owner in set(owners))
    taken = Counter(takeover.client_id for one in queues for takeover in one.takeovers)
    ids = sort_client_ids(dict.fromkeys(client_ids))
    return tuple(result.ConsumerPart(each, at_start[each], at_end[each], taken[each]) for each in ids)


def _check(scenario: GroupScenario) -> None:
    require(scenario, GroupScenario, "GroupScenario")
    require(scenario.consume_from, Literal[CONSUME_FROM], "GroupScenario.consume_from")
    if scenario.orderly and {scenario.consumer_type, *scenario.consumer_types.values()} != {"push"}:
        raise UsageError("only push consumers have an orderly listener", hint="leave out --orderly")
    for queue, rate in scenario.rates.items():
        if rate < 0:
            raise UsageError(f"{rate} messages per second is not a possible rate of {queue}")
    # Timers that would repeat without any time between, or a thousand times in each millisecond.
    timers, profile = scenario.timers, consumer_profile_of(scenario.client_version)
    names = ["route-poll", "heartbeat", "lock-renewal", "broker-scan"]
    names += ["rebalance-min" if profile.min_interval else "rebalance-wait"]
    names += ["notify-batch"] if timers.notify_batch_us else []
    for name in names:
        if (length_us := getattr(timers, TIMER_NAMES[name])) < SHORTEST_US:
            text = f"timer {name} is {length_us} us: the smallest interval is 1 ms"
            hint = "clients before 5.2.0 use rebalance-wait between two rebalances, newer clients rebalance-min"
            raise UsageError(text, hint=hint, code="too-many-steps")


_PLAN_TRIALS = 5
_PLAN_PATIENCE_US = 180 * SECOND_US
_LARGEST = 1000  # consumers × queues up to which the simulations for a plan take some 30 ms


def convergence(
    plan: RebalancePlan, before: Side, after: Side, changes: Edits, scenario: GroupScenario, states: States
) -> Convergence | None:
    """The effect on consumers if a plan's change happens at one moment, over a few trials of a scenario.

    None if no event happens, no consumer is left, the strategy changes (which needs restarts one by one), or the group
    is large. The scenario has the consumers' settings, and no events.
    """
    events = tuple(change_events(before, after, changes))
    ends = (plan.summary.before, plan.summary.after)
    size = max(end.consumers for end in ends) * max(end.queues for end in ends)
    if not events or not after.members.client_ids or changes.to_strategy is not None or size > _LARGEST:
        return None
    broadcasting = before.members.broadcasting
    scenario = replace(scenario, events=events, broadcasting=broadcasting, patience_us=_PLAN_PATIENCE_US)
    try:
        simulation = GroupSimulation(None, before.members, before.routes, scenario, states=states, checked=True)
        runs = [simulation.run(trial) for trial in range(_PLAN_TRIALS)]
        trials = summarise([run.figures for run in runs])
    except RmqlbError:
        return None  # a plan can be possible where a simulation is not, for example with a broker without an address
    found, all_converged = trials.figures, trials.converged == trials.trials
    unassigned = any(end.unassigned for end in ends)
    lags = (run.lag.group for run in runs if run.lag is not None)
    doubly = any(end.duplicate_owners or end.queues_of_duplicate_client_ids for end in ends)
    return Convergence(
        trials=trials.trials,
        converged=trials.converged,
        convergence_ms=None if found.convergence_ms is None else found.convergence_ms.p50,
        max_convergence_ms=found.convergence_ms.max if found.convergence_ms and all_converged else None,
        longest_gap_ms=None if unassigned else found.longest_gap_ms.max,
        longest_overlap_ms=None if doubly else found.longest_overlap_ms.max,
        unread_ms=found.unread_ms.max,
        lag=max(lags, key=lambda lag: (lag.lasts_ms, lag.growth_per_second), default=None),
    )


def change_events(before: Side, after: Side, changes: Edits) -> Iterator[Event]:
    """A plan's change as events, all at the start; consumers leave before others join."""
    ids, ids_after = Counter(before.members.client_ids), Counter(after.members.client_ids)
    yield from (Event("leave", 0, client_id) for client_id in sort_client_ids((ids - ids_after).elements()))
    yield from (Event("join", 0, client_id) for client_id in sort_client_ids((ids_after - ids).elements()))
    yield from (Event("broker-down", 0, name, for_good=True) for name in changes.remove_brokers)
    left = {data.broker_name for route in after.routes for data in route.queue_datas}
    yield from (Event("broker-down", 0, name, for_good=name not in left) for name in changes.remove_masters)
    for broker in changes.add_brokers:
        reads = broker.read_queue_nums
        writes = reads if broker.write_queue_nums is None else broker.write_queue_nums
        yield Event("broker-up", 0, broker.name, read_queues=reads, write_queues=writes)
    for route in before.routes:
        for change in changes.read_queues:
            yield Event("route-change", 0, route.topic, broker_name=change.broker_name, read_queues=change.number)
