"""What `simulate-rebalance` and `plan-rollout` do between their arguments and the engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

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


class ConsumerTexts(Struct, frozen=True):
    """How the consumers are configured, as users write it; None and () are what the source says, or the client's own.

    Attributes:
        client: version of the client library.
        orderly: a MessageListenerOrderly: queues are locked.
        consumer_type: `push`, `pull`, `lite-pull` or `assign` for all, or `ID=TYPE` for one.
        consume_from: `last`, `first` or `timestamp`.
        timer: clocks that differ from their defaults, as `rebalance-wait=10s`.
        latency: a request's way to a broker and back.
        consume_time: how long the listener takes for a message.
        rate: messages per second of each topic, or of one as `TOPIC=R`.
    """

    client: str | None = None
    orderly: bool = False
    consumer_type: Sequence[str] = ()
    consume_from: str | None = None
    timer: Sequence[str] = ()
    latency: str = "1ms"
    consume_time: str = "0s"
    rate: Sequence[str] = ()


class Happenings(Struct, frozen=True):
    """What the group goes through, as users write it.

    Attributes:
        event: what happens when, as `leave ID@30s`.
        for_: how long is simulated; None is until the group has converged.
        all_new: all consumers start with the simulation.
        broadcasting: the group is BROADCASTING, whatever the source says.
    """

    event: Sequence[str] = ()
    for_: str | None = None
    all_new: bool = False
    broadcasting: bool = False


class SimulationQuestion(Struct, frozen=True):
    """What is asked about each group.

    Attributes:
        scenario: what the arguments alone say.
        configured: how the consumers are configured.
        happens: what they go through; None of a verb that makes its own events.
        strategy: what every consumer runs; None is what they report or show.
        strategies: the strategies that are named, with their settings.
        earlier: an earlier snapshot, for each queue's rate.
    """

    scenario: GroupScenario
    configured: ConsumerTexts
    happens: Happenings | None
    strategy: str | None
    strategies: Strategies
    earlier: Earlier | None = None


class Gathered(Struct, frozen=True):
    """Everything a simulation of a group needs."""

    on_topics: Group
    members: Members
    scenario: GroupScenario
    findings: tuple[Finding, ...]
    sdks: tuple[SdkUse, ...]  # of all consumers that take part at any time


def simulation_question(
    configured: ConsumerTexts,
    happens: Happenings | None,
    strategy: str | None,
    strategies: Strategies,
    *,
    seed: int,
    earlier: Earlier | None = None,
) -> SimulationQuestion:
    """The question that options or arguments ask, so that a mistake in them needs no source (raises UsageError)."""
    if configured.client is not None:
        consumer_profile_of(configured.client)
    over = happens or Happenings()
    scenario = GroupScenario(
        orderly=configured.orderly,
        timers=values.timers(configured.timer),
        latency_us=duration_us(configured.latency, "--latency", zero=True),
        consume_us=duration_us(configured.consume_time, "--consume-time", zero=True),
        consume_from=_consume_from(configured.consume_from, CONSUME_FROM_LAST_OFFSET),
        until_us=None if over.for_ is None else duration_us(over.for_, "--for"),
        all_new=over.all_new,
        seed=seed,
    )
    return SimulationQuestion(scenario, configured, happens, strategies.optional(strategy), strategies, earlier)


def gather(
    question: SimulationQuestion,
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
        question: what is asked about it.
        chosen: what is asked for, and `name`, which of its groups this is.
        snapshot: where the group was seen.
        source: where the snapshot comes from.
        broadcasting_too: a BROADCASTING group is allowed.
        elsewhere: routes of other topics that events and rates may be about: they do not happen to this group.
    """
    happens, strategies = question.happens or Happenings(), question.strategies
    found = chosen.resolve(snapshot, name, lambda *_: strategies.settings, strategy=question.strategy)
    found.must_share(broadcasting=broadcasting_too)
    broadcasting = happens.broadcasting or found.broadcasting
    others = {broker.broker_name for route in elsewhere for broker in route.broker_datas}
    events, of_events = read_events(happens.event, found.client_ids, found.pulled_routes, strategies, others)
    strategies.must_apply(reported=question.strategy is None)
    found = found.with_settings(strategies.settings_for([route.topic for route in found.known_routes], found.name))
    joining = [event.subject for event in events if event.kind == "join"]
    chosen.require_named({*found.client_ids, *joining})
    _require_somebody(found, events, may_join=question.happens is not None)
    members, of_members = _members(found, broadcasting=broadcasting)
    own = found.settings
    _within(events, question.scenario.until_us, happens.for_)
    scenario, of_clients = _with_clients(question.scenario, question.configured, found, joining)
    rates = _rates(question, chosen.wanted(source), found, snapshot, events, elsewhere)
    scenario = replace(scenario, events=events, broadcasting=broadcasting, rates=rates)
    findings = [*planning_findings(found, pop=False), *of_members, *of_clients, *of_events]
    if not broadcasting:
        asked = found.pulled_queues, found.client_ids, own
        findings += [*custom_findings(own.custom, *asked), *pin_findings(strategies.named, *asked)]
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
    scenario: GroupScenario, configured: ConsumerTexts, found: Group, joining: Sequence[str]
) -> tuple[GroupScenario, list[Finding]]:
    seen = None if found.assumed else found.seen
    version, of_version = client_version(seen, configured.client)
    said, said_of = values.consumer_types(configured.consumer_type)
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
    question: SimulationQuestion,
    wanted: Wanted,
    found: Group,
    snapshot: ClusterSnapshot,
    events: Sequence[Event],
    elsewhere: Sequence[TopicRouteData],
) -> Mapping[MessageQueue, float]:
    topics = dict.fromkeys(route.topic for route in (*found.pulled_routes, *elsewhere))
    rates = spread_evenly(values.rates(question.configured.rate, list(topics)), found.pulled_routes, events)
    return rates if question.earlier is None else rates_since(question.earlier, wanted, found, snapshot) | rates
