"""`rmqlb.simulate_rebalance`: consumer groups over time, and producers while brokers fail."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from rmqlb.engine.consume.simulate import simulate_group
from rmqlb.engine.fail_on_figures.conditions import Condition, parse_condition
from rmqlb.engine.fail_on_figures.of_simulation import GROUP_FIGURES, try_on_group, try_on_group_trials
from rmqlb.engine.send.horizon import ASSUMED_RATE
from rmqlb.engine.send.latency import constant
from rmqlb.engine.send.producers import Producers, failures_of, producers_of
from rmqlb.errors import UsageError
from rmqlb.model.condition import TriedCondition
from rmqlb.model.finding import INFO, Finding
from rmqlb.model.group_report import GroupReport, GroupTrials
from rmqlb.model.group_result import GroupResult, SimulationOfGroups, group_result, simulation_of_groups
from rmqlb.model.limits import MOST_GROUP_TRIALS
from rmqlb.model.progress import Progress, no_progress
from rmqlb.model.result import Meta, with_meta
from rmqlb.model.route import TopicRouteData
from rmqlb.model.send_report import SendReport
from rmqlb.model.send_scenario import NEWEST, SendScenario
from rmqlb.model.snapshot import Everything
from rmqlb.model.system_names import is_system_topic
from rmqlb.verbs.amounts import count
from rmqlb.verbs.group_simulation import parse
from rmqlb.verbs.group_simulation.expand_events import events_of_brokers
from rmqlb.verbs.group_simulation.inputs import (
    ConsumerTexts,
    Gathered,
    Happenings,
    SimulationQuestion,
    gather,
    simulation_question,
)
from rmqlb.verbs.parse import names_of
from rmqlb.verbs.selection import Selection, select
from rmqlb.verbs.source import AnySource, Reader, earlier, reader
from rmqlb.verbs.strategies import Strategies


class Runs(Struct, frozen=True):
    """How each group is simulated.

    Attributes:
        trials: how often with other phases of the clocks too; None is not at all.
        trial: which of these trials the result shows.
        explain: with what each consumer does when, and why.
        conditions: what `--fail-on` asks for.
    """

    trials: int | None = None
    trial: int = 0
    explain: bool = False
    conditions: Sequence[Condition] = ()


class SimulatedGroup(Struct, frozen=True):
    """The simulation of one group."""

    report: GroupReport
    trials: GroupTrials | None
    conditions: tuple[TriedCondition, ...]

    @property
    def name(self) -> str:
        return self.report.group or ""

    def result(self, *, explain: bool) -> GroupResult:
        return group_result(self.report, self.trials, self.conditions, explain=explain)


class Simulated(Struct, frozen=True):
    """The simulations of all groups that were asked for, and of producers of their topics."""

    groups: tuple[SimulatedGroup, ...]
    producers: tuple[SendReport, ...]
    meta: Meta
    several: bool
    explain: bool

    @property
    def result(self) -> GroupResult | SimulationOfGroups:
        results = [each.result(explain=self.explain) for each in self.groups]
        if not self.several:
            return with_meta(results[0], self.meta)
        reports = [each.report for each in self.groups]
        return with_meta(simulation_of_groups(results, reports, self.producers), self.meta)


def simulate_rebalance(
    source: AnySource,
    group: str | Sequence[str] | None = None,
    events: str | Sequence[str] = (),
    *,
    topics: Sequence[str] = (),
    consumers: Sequence[str] | int | None = None,
    include_retry: bool = False,
    sdk: str | Mapping[str, str] | None = None,
    strategy: str | None = None,
    strategy_options: Sequence[str] = (),
    duration: str | None = None,
    all_new: bool = False,
    broadcasting: bool = False,
    client: str | None = None,
    orderly: bool = False,
    consumer_types: str | Sequence[str] = (),
    consume_from: str | None = None,
    timers: str | Sequence[str] = (),
    latency: str = "1ms",
    consume_time: str = "0s",
    rates: str | Sequence[str] = (),
    rates_since: AnySource | None = None,
    trials: int | None = None,
    trial: int = 0,
    seed: int = 1,
    explain: bool = False,
    fail_on: Sequence[str] = (),
) -> GroupResult | SimulationOfGroups:
    """Simulate groups while consumers and brokers come and go: gaps, overlaps and outages of their queues.

    Args:
        source: a URL, a file, a snapshot, a parsed document or a reader.
        group: a group, a pattern, or several; None takes the only one.
        events: what happens when, as `crash ID@30s`; the help of `rmqlb simulate-rebalance` lists all kinds.
        topics: only these; () takes those that the group subscribes to.
        consumers: client IDs, or a number of invented ones, in the place of those of the source.
        include_retry: the group's retry topic too.
        sdk: the client library of all consumers, or client ID → library.
        strategy: what consumers run; None takes what they report or show, otherwise AVG.
        strategy_options: settings of strategies, as `virtual-nodes=20`.
        duration: simulate for that time, as `10m`; None is until the group has converged.
        all_new: all consumers start with the simulation; otherwise they have run for a while.
        broadcasting: the group is BROADCASTING, whatever the source says.
        client: version of the client library; None is what consumers report, or the newest.
        orderly: a MessageListenerOrderly: queues are locked.
        consumer_types: `push`, `pull`, `lite-pull` or `assign` for all, or `ID=TYPE`; () is what the source says.
        consume_from: `last`, `first` or `timestamp`; None is what the source says.
        timers: clocks that differ from their defaults, as `rebalance-wait=10s`.
        latency: a request's way to a broker and back.
        consume_time: how long the listener takes for a message.
        rates: messages per second of each topic, as `500`, or of one, as `TOPIC=500`.
        rates_since: an earlier snapshot: each queue's rate is what came since.
        trials: also simulate that often with other phases of the clocks, from 2 on.
        trial: which of these trials to look at, from 0.
        seed: of everything random.
        explain: list what each consumer does when, and why.
        fail_on: conditions such as `longest-gap-ms>5000`, which the result's `conditions` answer.

    Returns:
        The group over time; of several groups, or a pattern, a SimulationOfGroups.

    Raises:
        UsageError: an argument cannot be meant.
        DataError: the group, its topics or consumers are not there or unknown.
        EndpointError: the source cannot be read.
    """
    configured = ConsumerTexts(
        client,
        orderly,
        names_of(consumer_types),
        consume_from,
        names_of(timers),
        latency,
        consume_time,
        names_of(rates),
    )
    happens = Happenings(names_of(events), duration, all_new, broadcasting)
    chosen = select(group, topics, consumers, sdk, include_retry=include_retry)
    named = Strategies(strategy_options)
    question = simulation_question(configured, happens, strategy, named, seed=seed, earlier=earlier(rates_since))
    runs = runs_of(trials, trial, fail_on, explain=explain)
    return simulate_groups(reader(source), chosen, question, runs).result


def runs_of(trials: str | int | None, trial: str | int, fail_on: Sequence[str], *, explain: bool) -> Runs:
    """How each group is simulated (raises UsageError)."""
    number = None if trials is None else count(str(trials), "--trials", most=MOST_GROUP_TRIALS, least=2)
    shown = count(str(trial), "--trial", most=MOST_GROUP_TRIALS, least=0)
    if number is not None and shown >= number:
        raise UsageError(f"--trial {trial}: there are the trials 0 to {number - 1}")
    return Runs(number, shown, explain, [parse_condition(text, GROUP_FIGURES) for text in fail_on])


def simulate_groups(
    source: Reader, chosen: Selection, question: SimulationQuestion, runs: Runs, progress: Progress = no_progress
) -> Simulated:
    """The chosen groups over time, from one reading (raises RmqlbError)."""
    happens = question.happens
    if happens is not None and not happens.event and not happens.all_new and happens.for_ is None:
        hint = "say what does: --event 'join 1@30s', or --all-new for its start"
        raise UsageError("nothing happens to the group", hint=hint)
    whole = "*" in chosen.names and not chosen.topics
    wanted = chosen.wanted(source)
    snapshot = source.fetch(replace(wanted, several=(), everything=Everything()) if whole else wanted)
    routes = [sighting.route for sighting in snapshot.routes.values()]
    found: dict[str, TopicRouteData] = _users(routes if whole else ())

    def one(name: str | None) -> tuple[SimulatedGroup, tuple[Finding, ...]]:
        elsewhere = routes if chosen.several else ()
        gathered = gather(question, chosen, name, snapshot, source, elsewhere=elsewhere)
        simulated = _simulated(gathered, runs, progress)
        found.update(_users(gathered.on_topics.pulled_routes))
        return simulated, (*gathered.findings, *simulated.report.findings)

    groups, findings = chosen.ask(snapshot, one)
    producers = Producers((), ())
    if chosen.several:
        progress("producers", 0, 0)
        producers = _producers(question, list(found.values()), routes)
    meta = Meta(snapshot, (*findings, *producers.findings))
    return Simulated(tuple(groups), producers.reports, meta, chosen.several, runs.explain)


def _users(routes: Iterable[TopicRouteData]) -> dict[str, TopicRouteData]:
    """Topic → its route, of those that are not RocketMQ's own."""
    return {route.topic: route for route in routes if not is_system_topic(route.topic)}


def _simulated(found: Gathered, runs: Runs, progress: Progress) -> SimulatedGroup:
    group = found.on_topics
    asked, states = (group.name, found.members, group.pulled_routes, found.scenario), group.states
    progress(group.title, 0, 0)
    report = simulate_group(*asked, states=states, trial=runs.trial, explain=runs.explain)
    report = replace(report, sdks=found.sdks)
    if runs.trials is None:
        return SimulatedGroup(report, None, tuple(try_on_group(each, report) for each in runs.conditions))
    from rmqlb.engine.consume.trials import simulate_group_trials

    number = runs.trials
    spread = simulate_group_trials(
        *asked, number, states=states, progress=lambda done: progress("trials", done, number)
    )
    return SimulatedGroup(report, spread, tuple(try_on_group_trials(each, spread) for each in runs.conditions))


def _producers(
    question: SimulationQuestion, routes: Sequence[TopicRouteData], elsewhere: Sequence[TopicRouteData]
) -> Producers:
    """Producers of these topics, while brokers fail as the events say."""
    configured, happens = question.configured, question.happens or Happenings()
    failures = failures_of(events_of_brokers(happens.event, routes, elsewhere))
    scenario = SendScenario(
        client_version=configured.client or NEWEST,
        latency=constant(question.scenario.latency_us, configured.latency),
        seed=question.scenario.seed,
    )
    rates = parse.rates(configured.rate, [route.topic for route in elsewhere])
    found = producers_of(routes, failures, scenario, rates)
    if not found.reports:
        return found
    is_assumed = any(report.topic not in rates for report in found.reports)
    rate = f", at {ASSUMED_RATE} messages per second where no --rate is given" if is_assumed else ""
    text = f"producers are SYNC with the defaults of client {scenario.client_version}{rate}; simulate-send has others"
    return Producers(found.reports, (*found.findings, Finding("assumed-producers", text, severity=INFO)))
