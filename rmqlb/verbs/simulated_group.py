"""The arguments of `simulate-rebalance` and `plan-rollout`, made into what the engine simulates."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import get_args

from msgspec import Struct
from msgspec.structs import replace

from rmqlb.engine.allocate.conformance import custom_findings, pin_findings
from rmqlb.engine.assignment.assign import Members, owners_at_rest
from rmqlb.engine.assignment.consumers import broadcasting_finding, mixed_finding, nobody_online
from rmqlb.engine.group import Group
from rmqlb.engine.group_findings import planning_findings
from rmqlb.engine.rebalance.profile import consumer_profile_of
from rmqlb.engine.rebalance.rates import observed_rates, spread_evenly
from rmqlb.engine.rebalance.reported_clients import client_version, consumer_types, orderly_findings
from rmqlb.errors import DataError, UsageError
from rmqlb.model.finding import Finding
from rmqlb.model.group import RETRY_PREFIX, ConsumerType
from rmqlb.model.group_scenario import (
    CONSUME_FROM_FIRST_OFFSET,
    CONSUME_FROM_LAST_OFFSET,
    CONSUME_FROM_TIMESTAMP,
    TIMER_NAMES,
    Event,
    GroupScenario,
    Timers,
)
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.route import TopicRouteData
from rmqlb.model.sdk_use import SdkUse
from rmqlb.model.snapshot import ClusterSnapshot, Wanted, suggestion
from rmqlb.verbs.amounts import duration_us, one_of, rate
from rmqlb.verbs.parse import require_members
from rmqlb.verbs.parse import sdks as named_sdks
from rmqlb.verbs.rebalance_events import events as expanded
from rmqlb.verbs.selection import Selection
from rmqlb.verbs.source import Earlier, Reader
from rmqlb.verbs.strategies import Strategies

_CONSUME_FROM = {
    "last": CONSUME_FROM_LAST_OFFSET,
    "first": CONSUME_FROM_FIRST_OFFSET,
    "timestamp": CONSUME_FROM_TIMESTAMP,
}
_MAY_BE_ZERO = ("pull-delay", "release-wait", "notify-batch", "unlock-delay")


class SimulationArguments(Struct, frozen=True):
    """The arguments of `rmqlb.simulate_rebalance` about the group and what happens to it."""

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
    earlier: Earlier | None  # the snapshot of `rates_since`
    seed: int
    events: tuple[str, ...] = ()
    duration: str | None = None
    all_new: bool = False
    broadcasting: bool = False
    may_join: bool = True  # False where the verb makes its own events

    def __post_init__(self) -> None:
        """Reject invalid values before anything is read (raises UsageError)."""
        self.scenario()

    def scenario(self) -> GroupScenario:
        """The scenario as far as the arguments alone decide it (raises UsageError)."""
        if self.client is not None:
            consumer_profile_of(self.client)
        return GroupScenario(
            orderly=self.orderly,
            timers=timers(self.timers),
            latency_us=duration_us(self.latency, "--latency", zero=True),
            consume_us=duration_us(self.consume_time, "--consume-time", zero=True),
            consume_from=_consume_from(self.consume_from, CONSUME_FROM_LAST_OFFSET),
            until_us=None if self.duration is None else duration_us(self.duration, "--for"),
            all_new=self.all_new,
            seed=self.seed,
        )


class SimulatedGroup(Struct, frozen=True):
    """A group and the scenario that it goes through."""

    group: Group
    members: Members
    scenario: GroupScenario
    findings: tuple[Finding, ...]
    sdks: tuple[SdkUse, ...]  # of all consumers that take part at any time


def simulated_group(
    arguments: SimulationArguments,
    chosen: Selection,
    name: str | None,
    snapshot: ClusterSnapshot,
    source: Reader,
    *,
    broadcasting_too: bool = True,
    elsewhere: Sequence[TopicRouteData] = (),
) -> SimulatedGroup:
    """Resolve one of the chosen groups, and its scenario (raises DataError, UsageError).

    Args:
        name: which of them.
        broadcasting_too: a BROADCASTING group is allowed.
        elsewhere: routes of other topics, which events and rates may name without meaning this group.
    """
    scenario, strategies = arguments.scenario(), arguments.strategies
    group = chosen.resolve(snapshot, name, lambda *_: strategies.settings, strategy=arguments.strategy)
    group.must_share(broadcasting=broadcasting_too)
    broadcasting = arguments.broadcasting or group.broadcasting
    brokers = {broker.broker_name for route in elsewhere for broker in route.broker_datas}
    events, of_events = expanded(arguments.events, group.client_ids, group.pulled_routes, strategies, brokers)
    strategies.must_apply(reported=arguments.strategy is None)
    group = group.with_settings(strategies.settings_for([route.topic for route in group.known_routes], group.name))
    joining = [event.subject for event in events if event.kind == "join"]
    chosen.require_named({*group.client_ids, *joining})
    _require_somebody(group, joining, may_join=arguments.may_join)
    members, findings = _members(group, broadcasting=broadcasting)
    _require_within(events, scenario.until_us, arguments.duration)
    scenario, of_clients = _with_clients(scenario, arguments, group, joining)
    topics = dict.fromkeys(route.topic for route in (*group.pulled_routes, *elsewhere))
    inflow = spread_evenly(rates(arguments.rates, list(topics)), group.pulled_routes, events)
    if arguments.earlier is not None:
        inflow = rates_since(arguments.earlier, chosen.wanted(source), group, snapshot) | inflow
    scenario = replace(scenario, events=events, broadcasting=broadcasting, rates=inflow)
    findings = [*planning_findings(group, pop=False), *findings, *of_clients, *of_events]
    if not broadcasting:
        seen = group.pulled_queues, group.client_ids, group.settings
        findings += [*custom_findings(group.settings.custom, *seen), *pin_findings(strategies.named, *seen)]
    return SimulatedGroup(group, members, scenario, tuple(findings), _sdks(group, chosen, joining))


def _sdks(group: Group, chosen: Selection, joining: Sequence[str]) -> tuple[SdkUse, ...]:
    """The client libraries; one that joins is assumed to run the usual one, unless its library is named."""
    usual, by_id = named_sdks(chosen.sdk)
    unknown = set(joining).difference(by_id, group.client_ids) if usual is None else ()
    return replace(group.sdks, assumed=group.sdks.assumed.union(unknown)).uses((*group.client_ids, *joining))


def _members(group: Group, *, broadcasting: bool) -> tuple[Members, list[Finding]]:
    """The consumers with their strategies, and the findings about these."""
    if broadcasting and not group.broadcasting:
        return replace(group.under_all("AVG"), broadcasting=False), [broadcasting_finding(group.title, group.name)]
    if broadcasting:
        return replace(group.members, broadcasting=False), []
    if not group.names_sdks:
        return group.members, []
    owners = owners_at_rest(group.pulled_routes, group.members).values()
    unassigned, several = sum(not each for each in owners), sum(len(each) > 1 for each in owners)
    return group.members, list(mixed_finding(group.sdks, group.client_ids, unassigned=unassigned, several=several))


def _require_somebody(group: Group, joining: Sequence[str], *, may_join: bool) -> None:
    if not group.client_ids and not joining:
        hint = "let one join with --event 'join 1@0s', or " if may_join else ""
        none_joins = ", and none joins" if may_join else ""
        raise nobody_online(group.name, group.seen, f"{hint}name the consumers with --consumers", none_joins)


def _require_within(events: Sequence[Event], until_us: int | None, typed: str | None) -> None:
    for event in events:
        if until_us is not None and event.at_us >= until_us:
            raise UsageError(
                f"--event {event.text!r}: not within --for {typed}", hint="leave --for out, or make it longer"
            )


def _with_clients(
    scenario: GroupScenario, arguments: SimulationArguments, group: Group, joining: Sequence[str]
) -> tuple[GroupScenario, list[Finding]]:
    seen = None if group.assumed else group.seen
    version, of_version = client_version(seen, arguments.client)
    given, given_types = given_consumer_types(arguments.consumer_types)
    usual, types, of_types = consumer_types(seen, given, given_types)
    require_members(given_types, {*group.client_ids, *joining}, "--consumer-type")
    scenario = replace(
        scenario,
        client_version=version,
        consume_from=_consume_from(arguments.consume_from, group.consume_from),
        consumer_type=usual,
        consumer_types=types,
    )
    sdks = {group.sdks.usual, *group.sdks.sdk_of.values()} if scenario.orderly else ()
    return scenario, [*of_version, *of_types, *orderly_findings(sdks)]


def _consume_from(typed: str | None, observed: str) -> str:
    return observed if typed is None else _CONSUME_FROM[one_of(typed, "--consume-from", tuple(_CONSUME_FROM))]


def timers(texts: Sequence[str]) -> Timers:
    """`--timer NAME=TIME`: the clocks that differ from the defaults."""
    given: dict[str, int] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        name = name.strip().lower().replace("_", "-")
        if name not in TIMER_NAMES:
            raise UsageError(f"--timer {text}: there is no timer {name}", hint=suggestion("timers", name, TIMER_NAMES))
        if not equals:
            raise UsageError(f"--timer {text}: how long?", hint=f"write {name}=5s")
        if TIMER_NAMES[name] in given:
            raise UsageError(f"--timer {text}: {name} is given twice", code="given-twice")
        time_us = duration_us(value, f"--timer {name}:", zero=name in _MAY_BE_ZERO)
        if time_us % 1000:
            raise UsageError(f"--timer {text}: clients and brokers count whole milliseconds")
        given[TIMER_NAMES[name]] = time_us
    return Timers(**given)


def given_consumer_types(texts: Sequence[str]) -> tuple[ConsumerType | None, dict[str, ConsumerType]]:
    """`--consumer-type [ID=]TYPE`: the type of all consumers, or None, and client ID → its own."""
    types = get_args(ConsumerType)
    usual: ConsumerType | None = None
    given: dict[str, ConsumerType] = {}
    for text in texts:
        client_id, equals, name = text.rpartition("=")
        if name.lower() not in types:
            raise UsageError(f"--consumer-type {text}: there is no type {name}", hint=f"write {', '.join(types)}")
        if client_id in given or (not equals and usual is not None):
            raise UsageError(f"--consumer-type {text}: it is given twice", code="given-twice")
        kind: ConsumerType = name.lower()  # type: ignore[assignment]
        if equals:
            given[client_id] = kind
        else:
            usual = kind
    return usual, given


def rates(texts: Sequence[str], topics: Sequence[str]) -> Mapping[str, float]:
    """`--rate [TOPIC=]R`: topic → messages per second; R alone is for each other topic, retry topics left out."""
    given: dict[str, float] = {}
    for text in texts:
        topic, _, value = text.rpartition("=")
        if topic and topic not in topics:
            raise UsageError(f"--rate {text}: topic {topic} is not simulated", hint=suggestion("topics", topic, topics))
        if topic in given:
            raise UsageError(f"--rate {text}: {topic or 'the rate of each topic'} is given twice", code="given-twice")
        is_none = re.fullmatch(r"0(?:\.0+)?(?:/[smh])?", value.strip())
        given[topic] = 0.0 if is_none else float(rate(value, f"--rate {text}:" if topic else "--rate"))
    others = {topic: given[""] for topic in topics if "" in given and not topic.startswith(RETRY_PREFIX)}
    return others | {topic: each for topic, each in given.items() if topic}


def rates_since(earlier: Earlier, wanted: Wanted, group: Group, snapshot: ClusterSnapshot) -> dict[MessageQueue, float]:
    """Queue → messages per second, of those that both snapshots have (raises DataError, UsageError)."""
    now = group.seen
    if now is None:
        raise DataError(f"{earlier.option}: the source does not report the group, so that no rate follows")
    then = earlier.source.fetch(replace(wanted, group=now.group))
    before = then.group(now.group)
    times = now.seen.at or snapshot.taken_at, before.seen.at or then.taken_at
    return observed_rates(now, before, times, group.pulled_queues, earlier.option)
