"""The verb `simulate_rebalance`, and what `plan_rollout` shares: arguments, made into what the engine simulates."""

from collections.abc import Iterable, Sequence
from typing import Any, Unpack, get_args

from msgspec import Struct
from msgspec.structs import replace

from rmqlb.engine.allocate.conformance import own_findings
from rmqlb.engine.assignment.assign import Members, owners_at_rest
from rmqlb.engine.assignment.consumers import broadcasting_finding, mixed_finding, nobody_online
from rmqlb.engine.group import Group
from rmqlb.engine.group_findings import planning_findings
from rmqlb.engine.plan.changes import Edits
from rmqlb.engine.rebalance.profile import client_version, consumer_profile_of, consumer_types, orderly_findings
from rmqlb.engine.rebalance.simulate import GROUP_FIGURES, simulate_group, simulate_group_trials, try_on_group
from rmqlb.engine.send.scenarios import ASSUMED_RATE, Producers, failures_of, producers_of
from rmqlb.errors import UsageError
from rmqlb.model import group_scenario as model
from rmqlb.model.client_versions import SdkUse
from rmqlb.model.group import ConsumerType, is_system_topic
from rmqlb.model.group_scenario import TIMER_NAMES, Event, GroupScenario, Timers
from rmqlb.model.limits import MOST_GROUP_TRIALS
from rmqlb.model.process_queue import threads_of
from rmqlb.model.result import INFO, Finding, Meta, Progress, RateSource, no_progress, sum_if_known, with_meta
from rmqlb.model.route import TopicRouteData
from rmqlb.model.send_scenario import NEWEST, Latency, SendScenario
from rmqlb.model.simulate_rebalance import RebalanceResult, RebalanceResults, SimulationsSummary
from rmqlb.model.simulate_send import SendReport, SendResult, printed_part
from rmqlb.model.snapshot import ClusterSnapshot, Everything, suggestion
from rmqlb.verbs.amounts import count, duration_us, one_of
from rmqlb.verbs.changes import ChangeOptions, changes_of, events_of, has_placeholders, split_changes
from rmqlb.verbs.parse import by_consumer, conditions, require_members, texts_of
from rmqlb.verbs.rates import RateOptions, asked_rates, evidence_of, typed_rates
from rmqlb.verbs.rebalance_events import events as expanded
from rmqlb.verbs.rebalance_events import events_of_brokers, placeholder_findings
from rmqlb.verbs.selection import GroupOptions, select
from rmqlb.verbs.source import AnySource, Reader, reader
from rmqlb.verbs.strategies import Strategies

_SUMMED = ("queues_with_gap", "queues_with_overlap", "queues_with_outage", "queues_unread_at_end")
_LONGEST = ("longest_gap_ms", "longest_overlap_ms", "longest_outage_ms", "unread_ms")
_SENT = ("messages", "lost", "retried")
_CONSUME_FROM = {
    "last": model.CONSUME_FROM_LAST_OFFSET,
    "first": model.CONSUME_FROM_FIRST_OFFSET,
    "timestamp": model.CONSUME_FROM_TIMESTAMP,
}
_TYPE = "--set consumer-type="
_MAY_BE_ZERO = ("pull-delay", "release-wait", "notify-batch", "unlock-delay")


class SimulationOptions(GroupOptions, RateOptions, total=False):
    """The keyword arguments that `rmqlb.simulate_rebalance` and `rmqlb.plan_rollout` share."""

    strategy: str | None  # what consumers run; None takes what they report or show, otherwise AVG
    client_version: str | None  # version of the client library; None is what consumers report, or the newest
    orderly: bool  # a MessageListenerOrderly: queues are locked
    consumer_types: str | Sequence[str]  # `push`, `pull`, `lite-pull` or `assign` for all, or `ID=TYPE`
    consume_from: str | None  # `last`, `first` or `timestamp`; None is what the source says
    timers: str | Sequence[str]  # clocks that differ from their defaults, as `rebalance-wait=10s`
    round_trip: str  # a request's way to a broker and back; 1ms by default
    consume_time: str  # how long the listener takes for a message; 0s by default
    consume_threads: int | None  # consume threads of each consumer; None is what they report, or 20
    seed: int  # the random seed; 1 by default


class GroupToSimulate(Struct, frozen=True):
    group: Group
    members: Members
    scenario: GroupScenario
    findings: tuple[Finding, ...]
    sdks: tuple[SdkUse, ...]  # of all consumers that take part at any time
    rate_source: RateSource | None


class Simulation:
    """A simulation as its arguments describe it, before a source is read."""

    def __init__(
        self,
        group: str | Sequence[str] | None,
        options: SimulationOptions,
        *,
        events: str | Sequence[str] = (),
        duration: str | None = None,
        all_new: bool = False,
        broadcasting: bool = False,
        changes: ChangeOptions | None = None,
        change_at: str = "30s",
        may_join: bool = True,
    ) -> None:
        """Reject invalid arguments before anything is read (raises TypeError, UsageError).

        `may_join` is False where the verb makes its own events.
        """
        if unknown := options.keys() - SimulationOptions.__annotations__.keys():
            raise TypeError(f"unexpected keyword argument {min(unknown)!r}")
        of_groups: Any = {name: value for name, value in options.items() if name in GroupOptions.__annotations__}
        self.strategies = Strategies(options.get("strategy_options", ()))
        if (version := options.get("client_version")) is not None:
            try:
                consumer_profile_of(version)
            except UsageError as error:
                raise UsageError(error.problem, prefix="--set client-version: ", hint=error.hint) from None
        self.options, self.may_join, self.duration, self.change_at = options, may_join, duration, change_at
        self.chosen = select(group, **of_groups)
        self.strategy = self.strategies.optional(options.get("strategy"))
        self.rates = asked_rates(options, "--set earlier=")
        self.scenario = GroupScenario(
            orderly=options.get("orderly", False),
            broadcasting=broadcasting,
            timers=timers(texts_of(options.get("timers"))),
            latency_us=duration_us(options.get("round_trip", "1ms"), "--set round-trip=", zero=True),
            consume_us=duration_us(options.get("consume_time", "0s"), "--set consume-time=", zero=True),
            consume_from=_consume_from(options.get("consume_from"), model.CONSUME_FROM_LAST_OFFSET),
            until_us=None if duration is None else duration_us(duration, "--set for="),
            all_new=all_new,
            seed=options.get("seed", 1),
        )
        self.events = texts_of(events)
        self.changes = changes_of(changes or {}, self.strategies)  # besides the events

    @property
    def change_us(self) -> int:
        return duration_us(self.change_at, "--set change-at=", zero=True)

    def of(
        self, name: str | None, snapshot: ClusterSnapshot, source: Reader, elsewhere: Sequence[TopicRouteData] = ()
    ) -> GroupToSimulate:
        """Resolve one of the chosen groups, and its scenario (raises DataError, UsageError).

        `elsewhere` has the routes of other topics, which events and rates may name without meaning this group.
        """
        options, scenario, strategies, chosen = self.options, self.scenario, self.strategies, self.chosen
        group = chosen.resolve(snapshot, name, lambda *_: strategies.settings, strategy=self.strategy)
        group.must_share(broadcasting=self.may_join)
        broadcasting = scenario.broadcasting or group.broadcasting
        brokers = {broker.broker_name for route in elsewhere for broker in route.broker_datas}
        events, of_events = expanded(self.events, group.client_ids, group.pulled_routes, strategies, brokers)
        if self.changes != Edits():
            events += events_of(self.changes, group, self.change_us, self.change_at)
            of_events += placeholder_findings(is_used=has_placeholders(self.changes, group))
        strategies.must_apply(reported=self.strategy is None)
        group = replace(
            group, settings=strategies.settings_for([route.topic for route in group.known_routes], group.name)
        )
        joining = [event.subject for event in events if event.kind == "join"]
        everybody = (*group.client_ids, *joining)
        chosen.require_named(set(everybody))
        if not everybody:
            hint = "let one join with --event 'join 1@0s', or " if self.may_join else ""
            none_joins = ", and none joins" if self.may_join else ""
            raise nobody_online(group.name, group.seen, f"{hint}name the consumers with --consumers", none_joins)
        members, of_members = _members(group, broadcasting=broadcasting)
        for event in events:
            if scenario.until_us is not None and event.at_us >= scenario.until_us:
                hint = "leave out the setting, or make it longer"
                raise UsageError(f"{event.text!r}: not within --set for={self.duration}", hint=hint)
        seen = None if group.assumed else group.seen
        version, of_version = client_version(seen, options.get("client_version"))
        given, given_types = by_consumer(texts_of(options.get("consumer_types")), _TYPE, consumer_type)
        usual_type, types, of_types = consumer_types(seen, given, given_types)
        require_members(given_types, everybody, _TYPE)
        of_sdks = orderly_findings({group.sdks.usual, *group.sdks.sdk_of.values()} if scenario.orderly else ())
        inflow = self.rates.of(group, chosen.wanted(source), snapshot, events)
        scenario = replace(
            scenario,
            events=events,
            broadcasting=broadcasting,
            consume_threads=options.get("consume_threads") or threads_of(*evidence_of(group)),
            rates=inflow.of_queues,
            client_version=version,
            consume_from=_consume_from(options.get("consume_from"), group.consume_from),
            consumer_type=usual_type,
            consumer_types=types,
        )
        findings = [*planning_findings(group, pop=False), *of_members, *of_version, *of_types, *of_sdks, *of_events]
        if not broadcasting:
            share = group.pulled_queues, group.client_ids, group.settings
            findings += own_findings((*group.settings.custom, *strategies.named), *share)
        # a consumer that joins is assumed to run the usual library, unless its own is named
        unknown = set(joining).difference(chosen.given.sdk_of, group.client_ids) if chosen.given.sdk is None else ()
        sdks = replace(group.sdks, assumed=group.sdks.assumed.union(unknown)).uses(everybody)
        return GroupToSimulate(group, members, scenario, tuple(findings), sdks, inflow.source)


def _members(group: Group, *, broadcasting: bool) -> tuple[Members, list[Finding]]:
    if broadcasting and not group.broadcasting:
        return replace(group.under_all("AVG"), broadcasting=False), [broadcasting_finding(group.title, group.name)]
    if broadcasting:
        return replace(group.members, broadcasting=False), []
    if not group.names_sdks:
        return group.members, []
    owners = owners_at_rest(group.pulled_routes, group.members).values()
    unassigned, several = sum(not each for each in owners), sum(len(each) > 1 for each in owners)
    return group.members, list(mixed_finding(group.sdks, group.client_ids, unassigned=unassigned, several=several))


def _consume_from(typed: str | None, observed: str) -> str:
    if typed is None:
        return observed
    return _CONSUME_FROM[one_of(typed, "--set consume-from=", tuple(_CONSUME_FROM))]


def timers(texts: Sequence[str]) -> Timers:
    """`--set TIMER=TIME`: the clocks that differ from the defaults."""
    given: dict[str, int] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        name = name.strip().lower().replace("_", "-")
        if name not in TIMER_NAMES:
            raise UsageError(f"--set {text}: there is no timer {name}", hint=suggestion("timers", name, TIMER_NAMES))
        if not equals:
            raise UsageError(f"--set {text}: how long?", hint=f"write {name}=5s")
        if TIMER_NAMES[name] in given:
            raise UsageError(f"--set {text}: {name} is given twice", code="given-twice")
        time_us = duration_us(value, f"--set {name}=", zero=name in _MAY_BE_ZERO)
        if time_us % 1000:
            raise UsageError(f"--set {text}: clients and brokers use whole milliseconds")
        given[TIMER_NAMES[name]] = time_us
    return Timers(**given)


def consumer_type(name: str) -> ConsumerType:
    if name not in get_args(ConsumerType):
        raise UsageError(f"there is no type {name}", hint=f"write {', '.join(get_args(ConsumerType))}")
    return name  # type: ignore[return-value]


class RebalanceOptions(SimulationOptions, ChangeOptions, total=False):
    """The keyword arguments of `simulate_rebalance` that other verbs share."""


def simulate_rebalance(
    source: AnySource,
    group: str | Sequence[str] | None = None,
    events: str | Sequence[str] = (),
    *,
    duration: str | None = None,
    all_new: bool = False,
    broadcasting: bool = False,
    trials: int | str | None = None,
    trial: int | str = 0,
    change_at: str = "30s",
    explain: bool = False,
    fail_on: str | Sequence[str] = (),
    progress: Progress = no_progress,
    **options: Unpack[RebalanceOptions],
) -> RebalanceResult | RebalanceResults:
    """Simulate groups while consumers and brokers come and go: gaps, overlaps and outages of their queues.

    `events` are those of `--event`, `duration` is `--set for`, and `change_at` is when the changes
    happen. Several groups, or a pattern, give a RebalanceResults.
    """
    number = None if trials is None else count(str(trials), "--trials", most=MOST_GROUP_TRIALS, least=2)
    shown = count(str(trial), "--set trial=", most=MOST_GROUP_TRIALS, least=0)
    if number is not None and shown >= number:
        raise UsageError(f"--set trial={trial}: the trials are numbered 0 to {number - 1}")
    wanted_conditions = conditions(fail_on, GROUP_FIGURES)
    changes, own = split_changes(options)
    parsed = Simulation(
        group,
        own,  # type: ignore[arg-type]
        events=events,
        duration=duration,
        all_new=all_new,
        broadcasting=broadcasting,
        changes=changes,
        change_at=change_at,
    )
    chosen, opened = parsed.chosen, reader(source)
    if not parsed.events and parsed.changes == Edits() and not all_new and duration is None:
        hint = "name a change: --scale-to 5, --event 'join 1@30s', or --set all-new for its start"
        raise UsageError("what changes?", hint=hint, code="nothing-changes")
    whole = "*" in chosen.names and not chosen.given.topics
    wanted = chosen.wanted(opened)
    wanted = replace(wanted, several=(), everything=Everything()) if whole else wanted
    parsed.rates, snapshot = parsed.rates.read(opened, wanted, progress)
    routes = [sighting.route for sighting in snapshot.routes.values()]
    used: dict[str, TopicRouteData] = _users(routes if whole else ())

    def simulated(name: str | None) -> tuple[RebalanceResult, tuple[Finding, ...]]:
        found = parsed.of(name, snapshot, opened, routes if chosen.several else ())
        resolved = found.group
        progress(resolved.title, 0, 0)
        used.update(_users(resolved.pulled_routes))
        setting, states = (resolved.name, found.members, resolved.pulled_routes, found.scenario), resolved.states
        result = simulate_group(*setting, states=states, trial=shown, explain=explain)
        spreads = None
        if number is not None:
            spreads = simulate_group_trials(
                *setting, number, states=states, progress=lambda done: progress("trials", done, number)
            )
        tried = tuple(try_on_group(each, spreads or result.figures) for each in wanted_conditions)
        result = replace(result, trials=spreads, conditions=tried, sdks=found.sdks, rates=found.rate_source)
        return result, found.findings

    groups, findings = chosen.ask(snapshot, simulated)
    if not chosen.several:
        return with_meta(groups[0], Meta(snapshot, findings))
    progress("producers", 0, 0)
    producers = _producers(parsed, list(used.values()), routes)
    sent = tuple(printed_part(each, SendResult) for each in producers.reports)
    results = RebalanceResults(tuple(groups), sent, summary_of(groups, producers.reports))
    return with_meta(results, Meta(snapshot, (*findings, *producers.findings)))


def summary_of(groups: Sequence[RebalanceResult], producers: Sequence[SendReport]) -> SimulationsSummary:
    figures = [each.figures for each in groups]
    converged = [each.convergence_ms for each in figures]
    sends = [report.totals for report in producers]
    return SimulationsSummary(
        groups=len(groups),
        groups_affected=sum(each.gravity != "inOrder" for each in groups),
        queues=sum(len(each.queues) for each in groups),
        queues_misassigned_throughout=sum(each.misassigned_throughout for each in groups),
        redelivered=sum_if_known(each.redelivered for each in figures),
        convergence_ms=None if None in converged else max(each or 0 for each in converged),
        topics=len(sends),
        longest_send_ms=max((each.longest_send_ms or 0 for each in sends), default=None),
        **{name: sum(getattr(each, name) for each in figures) for name in _SUMMED},
        **{name: max(getattr(each, name) for each in figures) for name in _LONGEST},
        **{name: sum(getattr(each, name) for each in sends) for name in _SENT},
    )


def _users(routes: Iterable[TopicRouteData]) -> dict[str, TopicRouteData]:
    return {route.topic: route for route in routes if not is_system_topic(route.topic)}


def _producers(parsed: Simulation, routes: Sequence[TopicRouteData], elsewhere: Sequence[TopicRouteData]) -> Producers:
    lost = (*parsed.changes.remove_brokers, *parsed.changes.remove_masters)
    changed = tuple(Event("broker-down", parsed.change_us, name) for name in lost)
    failures = failures_of((*events_of_brokers(parsed.events, routes, elsewhere), *changed))
    version, scenario = parsed.options.get("client_version") or NEWEST, parsed.scenario
    latency = Latency(parsed.options.get("round_trip", "1ms"), (scenario.latency_us,))
    sends = SendScenario(client_version=version, latency=latency, seed=scenario.seed)
    inflow = typed_rates(parsed.rates.texts, [route.topic for route in elsewhere])
    found = producers_of(routes, failures, sends, inflow)
    if not found.reports:
        return found
    is_assumed = any(report.topic not in inflow for report in found.reports)
    rate = f", and send {ASSUMED_RATE} messages per second without --rate" if is_assumed else ""
    text = f"producers are SYNC with the defaults of client {sends.client_version}{rate}"
    text += "; for other producers, use simulate-send"
    return Producers(found.reports, (*found.findings, Finding("assumed-producers", text, severity=INFO)))
