"""The arguments of `simulate-rebalance` and `plan-rollout`, made into what the engine simulates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from rmqlb.engine.allocate.conformance import custom_findings, pin_findings
from rmqlb.engine.assignment.assign import Members, owners_at_rest
from rmqlb.engine.assignment.consumers import broadcasting_finding, mixed_finding, nobody_online
from rmqlb.engine.group import Group
from rmqlb.engine.group_findings import planning_findings
from rmqlb.engine.rebalance.profile import consumer_profile_of
from rmqlb.engine.rebalance.rates import spread_evenly
from rmqlb.engine.rebalance.reported_clients import client_version, consumer_types, orderly_findings
from rmqlb.errors import UsageError
from rmqlb.model.finding import Finding
from rmqlb.model.group_scenario import (
    CONSUME_FROM_FIRST_OFFSET,
    CONSUME_FROM_LAST_OFFSET,
    CONSUME_FROM_TIMESTAMP,
    Event,
    GroupScenario,
)
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.route import TopicRouteData
from rmqlb.model.sdk_use import SdkUse
from rmqlb.model.snapshot import ClusterSnapshot, Wanted
from rmqlb.verbs.amounts import duration_us, one_of
from rmqlb.verbs.group_simulation import parse as values
from rmqlb.verbs.group_simulation.expand_events import events as read_events
from rmqlb.verbs.parse import require_members
from rmqlb.verbs.parse import sdks as named_sdks
from rmqlb.verbs.rates_since import rates_since
from rmqlb.verbs.selection import Selection
from rmqlb.verbs.source import Earlier, Reader
from rmqlb.verbs.strategies import Strategies

_CONSUME_FROM = {
    "last": CONSUME_FROM_LAST_OFFSET,
    "first": CONSUME_FROM_FIRST_OFFSET,
    "timestamp": CONSUME_FROM_TIMESTAMP,
}


class SimulationArguments(Struct, frozen=True):
    """What a caller says of the simulated groups, as `rmqlb.simulate_rebalance` documents it.

    Attributes:
        strategies: the strategies that are named, with their settings.
        earlier: the snapshot of `rates_since`.
        may_join: consumers may join; not so where the verb makes its own events.
    """

    strategies: Strategies
    strategy: str | None
    client: str | None
    orderly: bool
    consumer_types: tuple[str, ...]
    consume_from: str | None
    timers: tuple[str, ...]
    latency: str
    consume_time: str
    rates: tuple[str, ...]
    earlier: Earlier | None
    seed: int
    events: tuple[str, ...] = ()
    duration: str | None = None
    all_new: bool = False
    broadcasting: bool = False
    may_join: bool = True

    def __post_init__(self) -> None:
        """Refuse what cannot be meant, before anything is read (raises UsageError)."""
        self.scenario()

    def scenario(self) -> GroupScenario:
        """The scenario as far as the arguments alone decide it (raises UsageError)."""
        if self.client is not None:
            consumer_profile_of(self.client)
        return GroupScenario(
            orderly=self.orderly,
            timers=values.timers(self.timers),
            latency_us=duration_us(self.latency, "--latency", zero=True),
            consume_us=duration_us(self.consume_time, "--consume-time", zero=True),
            consume_from=_consume_from(self.consume_from, CONSUME_FROM_LAST_OFFSET),
            until_us=None if self.duration is None else duration_us(self.duration, "--for"),
            all_new=self.all_new,
            seed=self.seed,
        )


class Gathered(Struct, frozen=True):
    """Everything a simulation of a group needs."""

    on_topics: Group
    members: Members
    scenario: GroupScenario
    findings: tuple[Finding, ...]
    sdks: tuple[SdkUse, ...]  # of all consumers that take part at any time


def gather(
    asked: SimulationArguments,
    chosen: Selection,
    name: str | None,
    snapshot: ClusterSnapshot,
    source: Reader,
    *,
    broadcasting_too: bool = True,
    elsewhere: Sequence[TopicRouteData] = (),
) -> Gathered:
    """The group and what is simulated (raises DataError, UsageError).

    Args:
        asked: what the caller says of it.
        chosen: what is asked for, and `name`, which of its groups this is.
        snapshot: where the group was seen.
        source: where the snapshot comes from.
        broadcasting_too: a BROADCASTING group is allowed.
        elsewhere: routes of other topics that events and rates may be about: they do not happen to this group.
    """
    scenario, strategies = asked.scenario(), asked.strategies
    found = chosen.resolve(snapshot, name, lambda *_: strategies.settings, strategy=asked.strategy)
    found.must_share(broadcasting=broadcasting_too)
    broadcasting = asked.broadcasting or found.broadcasting
    others = {broker.broker_name for route in elsewhere for broker in route.broker_datas}
    events, of_events = read_events(asked.events, found.client_ids, found.pulled_routes, strategies, others)
    strategies.must_apply(reported=asked.strategy is None)
    found = found.with_settings(strategies.settings_for([route.topic for route in found.known_routes], found.name))
    joining = [event.subject for event in events if event.kind == "join"]
    chosen.require_named({*found.client_ids, *joining})
    _require_somebody(found, events, may_join=asked.may_join)
    members, of_members = _members(found, broadcasting=broadcasting)
    own = found.settings
    _within(events, scenario.until_us, asked.duration)
    scenario, of_clients = _with_clients(scenario, asked, found, joining)
    rates = _rates(asked, chosen.wanted(source), found, snapshot, events, elsewhere)
    scenario = replace(scenario, events=events, broadcasting=broadcasting, rates=rates)
    findings = [*planning_findings(found, pop=False), *of_members, *of_clients, *of_events]
    if not broadcasting:
        its = found.pulled_queues, found.client_ids, own
        findings += [*custom_findings(own.custom, *its), *pin_findings(strategies.named, *its)]
    return Gathered(found, members, scenario, tuple(findings), _sdks(found, chosen, joining))


def _sdks(found: Group, chosen: Selection, joining: Sequence[str]) -> tuple[SdkUse, ...]:
    """The client libraries; of one that joins it is assumed to be the usual one, unless it is named."""
    usual, by_id = named_sdks(chosen.sdk)
    unknown = set(joining).difference(by_id, found.client_ids) if usual is None else ()
    return replace(found.sdks, assumed=found.sdks.assumed.union(unknown)).uses((*found.client_ids, *joining))


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
    scenario: GroupScenario, asked: SimulationArguments, found: Group, joining: Sequence[str]
) -> tuple[GroupScenario, list[Finding]]:
    seen = None if found.assumed else found.seen
    version, of_version = client_version(seen, asked.client)
    said, said_of = values.consumer_types(asked.consumer_types)
    usual, types, of_types = consumer_types(seen, said, said_of)
    require_members(said_of, {*found.client_ids, *joining}, "--consumer-type")
    scenario = replace(
        scenario,
        client_version=version,
        consume_from=_consume_from(asked.consume_from, found.consume_from),
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
    asked: SimulationArguments,
    wanted: Wanted,
    found: Group,
    snapshot: ClusterSnapshot,
    events: Sequence[Event],
    elsewhere: Sequence[TopicRouteData],
) -> Mapping[MessageQueue, float]:
    topics = dict.fromkeys(route.topic for route in (*found.pulled_routes, *elsewhere))
    rates = spread_evenly(values.rates(asked.rates, list(topics)), found.pulled_routes, events)
    return rates if asked.earlier is None else rates_since(asked.earlier, wanted, found, snapshot) | rates
