"""`rmqlb.simulate_rebalance`: consumer groups over time, and producers while brokers fail."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from rmqlb.engine.fail_on_figures.of_simulation import GROUP_FIGURES, try_on_group, try_on_group_trials
from rmqlb.engine.rebalance.simulate import simulate_group
from rmqlb.engine.send.latency import constant
from rmqlb.engine.send.producers import Producers, failures_of, producers_of
from rmqlb.engine.send.simulate import ASSUMED_RATE
from rmqlb.errors import UsageError
from rmqlb.model.condition import TriedCondition
from rmqlb.model.finding import INFO, Finding
from rmqlb.model.group_report import GroupReport, GroupTrials
from rmqlb.model.group_result import GroupResult, SimulationOfGroups, group_result, simulation_of_groups
from rmqlb.model.limits import MOST_GROUP_TRIALS
from rmqlb.model.progress import Progress, no_progress
from rmqlb.model.result import Meta, with_meta
from rmqlb.model.route import TopicRouteData
from rmqlb.model.send_scenario import NEWEST, SendScenario
from rmqlb.model.simulate_send import SendReport
from rmqlb.model.snapshot import Everything
from rmqlb.model.system_names import is_system_topic
from rmqlb.verbs.amounts import count
from rmqlb.verbs.group_simulation import parse
from rmqlb.verbs.group_simulation.expand_events import events_of_brokers
from rmqlb.verbs.group_simulation.inputs import SimulationArguments, gather
from rmqlb.verbs.parse import conditions, texts_of
from rmqlb.verbs.selection import select
from rmqlb.verbs.source import AnySource, Earlier, earlier, reader
from rmqlb.verbs.strategies import Strategies


class SimulatedGroup(Struct, frozen=True):
    """The simulation of one group."""

    report: GroupReport
    trials: GroupTrials | None
    conditions: tuple[TriedCondition, ...]


class Simulated(Struct, frozen=True):
    """What a result is made from: the simulations of its groups, and of producers of their topics."""

    groups: tuple[SimulatedGroup, ...]
    producers: tuple[SendReport, ...]


def simulate_rebalance(
    source: AnySource,
    group: str | Sequence[str] | None = None,
    events: str | Sequence[str] = (),
    *,
    topics: str | Sequence[str] = (),
    consumers: str | Sequence[str] | int | None = None,
    include_retry: bool = False,
    sdk: str | Sequence[str] | Mapping[str, str] | None = None,
    strategy: str | None = None,
    strategy_options: str | Sequence[str] = (),
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
    rates_since: AnySource | Earlier | None = None,
    trials: int | str | None = None,
    trial: int | str = 0,
    seed: int = 1,
    explain: bool = False,
    fail_on: str | Sequence[str] = (),
    progress: Progress = no_progress,
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
        progress: told what is being done.

    Returns:
        The group over time; of several groups, or a pattern, a SimulationOfGroups.

    Raises:
        UsageError: an argument cannot be meant.
        DataError: the group, its topics or consumers are not there or unknown.
        EndpointError: the source cannot be read.
    """
    number = None if trials is None else count(str(trials), "--trials", most=MOST_GROUP_TRIALS, least=2)
    shown = count(str(trial), "--trial", most=MOST_GROUP_TRIALS, least=0)
    if number is not None and shown >= number:
        raise UsageError(f"--trial {trial}: there are the trials 0 to {number - 1}")
    conditions_asked = conditions(fail_on, GROUP_FIGURES)
    chosen, strategies = (
        select(group, topics, consumers, sdk, include_retry=include_retry),
        Strategies(strategy_options),
    )
    asked = SimulationArguments(
        strategies=strategies,
        strategy=strategies.optional(strategy),
        client=client,
        orderly=orderly,
        consumer_types=texts_of(consumer_types),
        consume_from=consume_from,
        timers=texts_of(timers),
        latency=latency,
        consume_time=consume_time,
        rates=texts_of(rates),
        earlier=earlier(rates_since),
        seed=seed,
        events=texts_of(events),
        duration=duration,
        all_new=all_new,
        broadcasting=broadcasting,
    )
    opened = reader(source)
    if not asked.events and not all_new and duration is None:
        hint = "say what does: --event 'join 1@30s', or --all-new for its start"
        raise UsageError("nothing happens to the group", hint=hint)
    whole = "*" in chosen.names and not chosen.topics
    wanted = chosen.wanted(opened)
    snapshot = opened.fetch(replace(wanted, several=(), everything=Everything()) if whole else wanted)
    routes = [sighting.route for sighting in snapshot.routes.values()]
    used: dict[str, TopicRouteData] = _users(routes if whole else ())

    def simulated(name: str | None) -> tuple[SimulatedGroup, tuple[Finding, ...]]:
        found = gather(asked, chosen, name, snapshot, opened, elsewhere=routes if chosen.several else ())
        on_topics = found.on_topics
        progress(on_topics.title, 0, 0)
        its, states = (on_topics.name, found.members, on_topics.pulled_routes, found.scenario), on_topics.states
        report = replace(simulate_group(*its, states=states, trial=shown, explain=explain), sdks=found.sdks)
        used.update(_users(on_topics.pulled_routes))
        findings = (*found.findings, *report.findings)
        if number is None:
            tried = tuple(try_on_group(each, report) for each in conditions_asked)
            return SimulatedGroup(report, None, tried), findings
        from rmqlb.engine.rebalance.trials import simulate_group_trials

        spread = simulate_group_trials(
            *its, number, states=states, progress=lambda done: progress("trials", done, number)
        )
        tried = tuple(try_on_group_trials(each, spread) for each in conditions_asked)
        return SimulatedGroup(report, spread, tried), findings

    groups, findings = chosen.ask(snapshot, simulated)
    results = [group_result(each.report, each.trials, each.conditions, explain=explain) for each in groups]
    if not chosen.several:
        return with_meta(results[0], Meta(snapshot, findings, Simulated(tuple(groups), ())))
    progress("producers", 0, 0)
    producers = _producers(asked, list(used.values()), routes)
    whole_result = simulation_of_groups(results, [each.report for each in groups], producers.reports)
    made_from = Simulated(tuple(groups), producers.reports)
    return with_meta(whole_result, Meta(snapshot, (*findings, *producers.findings), made_from))


def _users(routes: Iterable[TopicRouteData]) -> dict[str, TopicRouteData]:
    """Topic → its route, of those that are not RocketMQ's own."""
    return {route.topic: route for route in routes if not is_system_topic(route.topic)}


def _producers(
    asked: SimulationArguments,
    routes: Sequence[TopicRouteData],
    elsewhere: Sequence[TopicRouteData],
) -> Producers:
    """Producers of these topics, while brokers fail as the events say."""
    failures = failures_of(events_of_brokers(asked.events, routes, elsewhere))
    sends = SendScenario(
        client_version=asked.client or NEWEST,
        latency=constant(asked.scenario().latency_us, asked.latency),
        seed=asked.seed,
    )
    rates = parse.rates(asked.rates, [route.topic for route in elsewhere])
    found = producers_of(routes, failures, sends, rates)
    if not found.reports:
        return found
    is_assumed = any(report.topic not in rates for report in found.reports)
    rate = f", at {ASSUMED_RATE} messages per second where no --rate is given" if is_assumed else ""
    text = f"producers are SYNC with the defaults of client {sends.client_version}{rate}; simulate-send has others"
    return Producers(found.reports, (*found.findings, Finding("assumed-producers", text, severity=INFO)))
