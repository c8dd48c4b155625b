"""What `simulate-rebalance` and `plan-rollout` do between their options and the engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from rmqlb.cli.common.amounts import count, duration_us, one_of
from rmqlb.cli.common.group_simulation import parse as values
from rmqlb.cli.common.group_simulation.expand_events import events as read_events
from rmqlb.cli.common.group_simulation.options import (
    EventOptions,
    GroupSimulationOptions,
    MemberOptions,
    TrialOptions,
)
from rmqlb.cli.common.inputs import group_of, require_named
from rmqlb.cli.common.options import GroupOptions
from rmqlb.cli.common.reading import check_rates_since
from rmqlb.cli.common.terminal import Terminal
from rmqlb.engine.allocate.conformance import custom_findings, pin_findings
from rmqlb.engine.assignment.assign import Members, owners_at_rest
from rmqlb.engine.assignment.consumers import broadcasting_finding
from rmqlb.engine.assignment.group_sdks import mixed_finding
from rmqlb.engine.assignment.pop_and_proxy import nobody_online
from rmqlb.engine.consume.profile import consumer_profile_of
from rmqlb.engine.consume.rates import spread_evenly
from rmqlb.engine.consume.reported_clients import client_version, consumer_types, orderly_findings
from rmqlb.engine.group import Group
from rmqlb.engine.group_findings import planning_findings
from rmqlb.errors import UsageError
from rmqlb.model.finding import Finding
from rmqlb.model.group_scenario import (
    CONSUME_FROM_FIRST_OFFSET,
    CONSUME_FROM_LAST_OFFSET,
    CONSUME_FROM_TIMESTAMP,
    Event,
    GroupScenario,
)
from rmqlb.model.limits import MOST_GROUP_TRIALS
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.route import TopicRouteData
from rmqlb.model.sdk_use import SdkUse
from rmqlb.model.snapshot import ClusterSnapshot
from rmqlb.verbs.parse import require_members
from rmqlb.verbs.parse import sdks as named_sdks
from rmqlb.verbs.strategies import Strategies

_CONSUME_FROM = {
    "last": CONSUME_FROM_LAST_OFFSET,
    "first": CONSUME_FROM_FIRST_OFFSET,
    "timestamp": CONSUME_FROM_TIMESTAMP,
}
RATE_HINT = "say how many messages come: --rate R or --rates-since FILE"


class Gathered(Struct, frozen=True):
    """Everything a simulation of a group needs."""

    snapshot: ClusterSnapshot
    on_topics: Group
    members: Members
    scenario: GroupScenario
    findings: tuple[Finding, ...]
    sdks: tuple[SdkUse, ...]  # of all consumers that take part at any time


def scenario_of(options: GroupSimulationOptions) -> GroupScenario:
    """What the options alone tell, so that a mistake in them needs no source."""
    configured, happens = options.configured, options.happens or EventOptions()
    if configured.client is not None:
        consumer_profile_of(configured.client)
    check_rates_since(options.source, configured.rates_since)
    return GroupScenario(
        orderly=configured.orderly,
        timers=values.timers(configured.timer or ()),
        latency_us=duration_us(configured.latency, "--latency", zero=True),
        consume_us=duration_us(configured.consume_time, "--consume-time", zero=True),
        consume_from=_consume_from(configured.consume_from, CONSUME_FROM_LAST_OFFSET),
        until_us=None if happens.for_ is None else duration_us(happens.for_, "--for"),
        all_new=happens.all_new,
        seed=options.seed,
    )


def gather(
    options: GroupSimulationOptions,
    which: GroupOptions,
    snapshot: ClusterSnapshot,
    strategy: str | None,
    strategies: Strategies,
    terminal: Terminal,
    *,
    broadcasting_too: bool = True,
    elsewhere: Sequence[TopicRouteData] = (),
) -> Gathered:
    """The group and the scenario from the options.

    Args:
        elsewhere: routes of other topics that events and rates may be about: they do not happen to this group.
    """
    configured, happens = options.configured, options.happens or EventOptions()
    scenario = scenario_of(options)
    with terminal.progress(verb="looking at") as progress:
        progress(which.group or "the group", 0, 0)
        found = group_of(
            snapshot, which, lambda *_: strategies.settings, strategy=strategy, broadcasting=broadcasting_too
        )
    broadcasting = happens.broadcasting or found.broadcasting
    others = {broker.broker_name for route in elsewhere for broker in route.broker_datas}
    events, of_events = read_events(happens.event or (), found.client_ids, found.pulled_routes, strategies, others)
    strategies.must_apply(reported=strategy is None)
    found = found.with_settings(strategies.settings_for([route.topic for route in found.known_routes], found.name))
    joining = [event.subject for event in events if event.kind == "join"]
    require_named(which, {*found.client_ids, *joining})
    _require_somebody(found, events, may_join=options.happens is not None)
    members, of_members = _members(found, broadcasting=broadcasting)
    own = found.settings
    _within(events, scenario.until_us, happens.for_)
    scenario, of_clients = _with_clients(scenario, configured, found, joining)
    scenario = replace(
        scenario,
        events=events,
        broadcasting=broadcasting,
        rates=_rates(options, which, found, snapshot, events, elsewhere, terminal),
    )
    findings = [*planning_findings(found, pop=False), *of_members, *of_clients, *of_events]
    if not broadcasting:
        asked = found.pulled_queues, found.client_ids, own
        findings += [*custom_findings(own.custom, *asked), *pin_findings(strategies.named, *asked)]
    return Gathered(snapshot, found, members, scenario, tuple(findings), _sdks(found, which, joining))


def _sdks(found: Group, which: GroupOptions, joining: Sequence[str]) -> tuple[SdkUse, ...]:
    """The client libraries; of one that joins it is assumed to be the usual one, unless it is named."""
    usual, by_id = named_sdks(which.sdk or ())
    unknown = set(joining).difference(by_id, found.client_ids) if usual is None else ()
    return replace(found.sdks, assumed=found.sdks.assumed.union(unknown)).uses((*found.client_ids, *joining))


def trials_of(options: TrialOptions) -> tuple[int | None, int]:
    """How many trials, and which of them to look at."""
    trials = None if options.trials is None else count(options.trials, "--trials", most=MOST_GROUP_TRIALS, least=2)
    trial = count(options.trial, "--trial", most=MOST_GROUP_TRIALS, least=0)
    if trials is not None and trial >= trials:
        raise UsageError(f"--trial {options.trial}: there are the trials 0 to {trials - 1}")
    return trials, trial


def _members(found: Group, *, broadcasting: bool) -> tuple[Members, list[Finding]]:
    """The consumers with their strategies, and what is odd about these."""
    if broadcasting and not found.broadcasting:
        return replace(found.under_all("AVG"), broadcasting=False), [broadcasting_finding(found.title, found.name)]
    if broadcasting:
        return replace(found.members, broadcasting=False), []
    members = found.members
    if not found.names_sdks:
        return members, []
    owners = owners_at_rest(found.pulled_routes, members).values()
    unassigned, several = sum(not its for its in owners), sum(len(its) > 1 for its in owners)
    return members, list(mixed_finding(found.sdks, found.client_ids, unassigned=unassigned, several=several))


def _require_somebody(found: Group, events: Sequence[Event], *, may_join: bool) -> None:
    if not found.client_ids and not any(event.kind == "join" for event in events):
        hint = "let one join with --event 'join 1@0s', or " if may_join else ""
        raise nobody_online(
            found.name,
            found.seen,
            f"{hint}name the consumers with --consumers",
            ", and none joins" if may_join else "",
        )


def _with_clients(
    scenario: GroupScenario, configured: MemberOptions, found: Group, joining: Sequence[str]
) -> tuple[GroupScenario, list[Finding]]:
    seen = None if found.assumed else found.seen
    version, of_version = client_version(seen, configured.client)
    said, said_of = values.consumer_types(configured.consumer_type or ())
    usual, types, of_types = consumer_types(seen, said, said_of)
    require_members(said_of, {*found.client_ids, *joining}, "--consumer-type")
    scenario = replace(
        scenario,
        client_version=version,
        consume_from=_consume_from(configured.consume_from, found.consume_from),
        consumer_type=usual,
        consumer_types=types,
    )
    sdks = {found.sdks.usual, *found.sdks.sdk_of.values()} if scenario.orderly else ()
    return scenario, [*of_version, *of_types, *orderly_findings(sdks)]


def _within(events: Sequence[Event], until_us: int | None, typed: str | None) -> None:
    for event in events:
        if until_us is not None and event.at_us >= until_us:
            raise UsageError(
                f"--event {event.text!r}: not within --for {typed}", hint="leave --for out, or make it longer"
            )


def _consume_from(typed: str | None, observed: str) -> str:
    return observed if typed is None else _CONSUME_FROM[one_of(typed, "--consume-from", tuple(_CONSUME_FROM))]


def _rates(
    options: GroupSimulationOptions,
    which: GroupOptions,
    found: Group,
    snapshot: ClusterSnapshot,
    events: Sequence[Event],
    elsewhere: Sequence[TopicRouteData],
    terminal: Terminal,
) -> Mapping[MessageQueue, float]:
    configured = options.configured
    topics = dict.fromkeys(route.topic for route in (*found.pulled_routes, *elsewhere))
    rates = spread_evenly(values.rates(configured.rate or (), list(topics)), found.pulled_routes, events)
    if configured.rates_since is None:
        return rates
    from rmqlb.cli.common.rates_since import rates_since

    return rates_since(configured.rates_since, options.source, which, found, snapshot, terminal) | rates
