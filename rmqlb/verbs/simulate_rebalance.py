from collections.abc import Iterable, Sequence
from typing import Unpack

from msgspec.structs import replace

from rmqlb.engine.plan.changes import Changes
from rmqlb.engine.rebalance.simulate import GROUP_FIGURES, simulate_group, simulate_group_trials, try_on_group
from rmqlb.engine.send.scenarios import ASSUMED_RATE, Producers, failures_of, producers_of
from rmqlb.errors import UsageError
from rmqlb.model.group import is_system_topic
from rmqlb.model.group_scenario import Event
from rmqlb.model.limits import MOST_GROUP_TRIALS
from rmqlb.model.result import INFO, Finding, Meta, Progress, no_progress, sum_if_known, with_meta
from rmqlb.model.route import TopicRouteData
from rmqlb.model.send_scenario import NEWEST, Latency, SendScenario
from rmqlb.model.simulate_rebalance import RebalanceResult
from rmqlb.model.simulate_rebalance_of_groups import RebalanceResults, SimulationsSummary
from rmqlb.model.simulate_send import SendReport, SendResult, printed_part
from rmqlb.model.snapshot import Everything
from rmqlb.verbs.amounts import count
from rmqlb.verbs.changes import ChangeOptions, split_changes
from rmqlb.verbs.parse import conditions
from rmqlb.verbs.rates import typed_rates
from rmqlb.verbs.rebalance_events import events_of_brokers
from rmqlb.verbs.simulated_group import Simulation, SimulationOptions
from rmqlb.verbs.source import AnySource, reader

_SUMMED = ("queues_with_gap", "queues_with_overlap", "queues_with_outage", "queues_unread_at_end")
_LONGEST = ("longest_gap_ms", "longest_overlap_ms", "longest_outage_ms", "unread_ms")
_SENT = ("messages", "lost", "retried")


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
    if not parsed.events and parsed.changes == Changes() and not all_new and duration is None:
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
