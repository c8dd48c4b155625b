"""What commands on a group have in common before they call the engine: the group, its topics and members."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from rmqlb.cli.common import parse as values
from rmqlb.cli.common.options import GroupOptions
from rmqlb.engine.assignment.consumers import (
    assigned_by_broker,
    member_findings,
    must_rebalance,
    rebalanced_members,
    shared_id_findings,
)
from rmqlb.engine.assignment.group_sdks import GroupSdks, group_sdks, mixed_finding
from rmqlb.engine.assignment.pop_and_proxy import (
    behind_proxy,
    must_be_listed,
    nobody_online,
    only_grpc,
    popped_topics,
    proxy_findings,
    pulled_routes,
)
from rmqlb.engine.route_findings import sighting_findings, unreadable_findings
from rmqlb.engine.source_findings import no_route_findings, source_findings
from rmqlb.errors import DataError, UsageError
from rmqlb.model.finding import INFO, Finding
from rmqlb.model.group import BROADCASTING, CONSUME_POP, RETRY_PREFIX, ConsumerGroup, States, retry_topic
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.route import TopicRouteData
from rmqlb.model.snapshot import ClusterSnapshot, suggestion
from rmqlb.model.words import counted

if TYPE_CHECKING:
    from rmqlb.engine.allocate.strategy import Settings
    from rmqlb.engine.assignment.assign import Members
    from rmqlb.model.plan import MovedRange
    from rmqlb.model.sdk_use import SdkUse


class GroupOnTopics(Struct, frozen=True):
    """A group with its topics and members, ready to be planned."""

    name: str | None  # the group's name, or None when the source names none
    group: ConsumerGroup | None
    routes: tuple[TopicRouteData, ...]  # the topics to plan, in the order asked for, else by name
    client_ids: tuple[str, ...]  # its members, duplicates kept
    placeholders: tuple[str, ...]
    assumed: bool
    findings: tuple[Finding, ...]
    sdks: GroupSdks = GroupSdks()  # the client libraries of its members
    popped: tuple[TopicRouteData, ...] = ()  # the topics that it consumes by POP, where a command looks at those too
    by_proxy: bool = False  # its consumers are behind a Proxy, where a command looks at those too
    hidden: bool = False  # and no Proxy that knows them was asked

    @property
    def broadcasting(self) -> bool:
        return self.group is not None and self.group.message_model == BROADCASTING

    @property
    def queues(self) -> list[MessageQueue]:
        """Those that its consumers share out, topic by topic."""
        return [queue for route in self.routes for queue in route.subscribe_queues()]

    @property
    def states(self) -> States:
        return self.group.queues if self.group else {}

    @property
    def consume_from(self) -> str:
        from rmqlb.model.group_scenario import known_consume_from

        return known_consume_from(self.group.consume_from_where if self.group else None)

    @property
    def title(self) -> str:
        return "the group" if self.name is None else f"group {self.name}"

    @property
    def subscribed(self) -> dict[str, frozenset[str]]:
        """Client id → the topics it subscribes to, of the members that say so."""
        reports = self.group.reports if self.group else {}
        return {client_id: report.topics for client_id, report in reports.items() if report.topics is not None}

    @property
    def used_sdks(self) -> tuple[SdkUse, ...]:
        """The client libraries by whose rules its members share queues; in BROADCASTING none decides."""
        return () if self.broadcasting else self.sdks.uses(self.client_ids)

    def mixed_sdks(self, unassigned: int, duplicate_owners: int) -> Iterator[Finding]:
        """That its members run several client libraries, and how many queues have no or two owners, as predicted."""
        if self.routes and not self.broadcasting:
            yield from mixed_finding(self.sdks, self.client_ids, unassigned=unassigned, several=duplicate_owners)

    def members(self, settings: Settings) -> Members:
        """Its members under RocketMQ's default strategy."""
        from rmqlb.engine.assignment.assign import Members

        by_broker, by_broker_of = assigned_by_broker(self.group, self.client_ids)
        return Members(
            self.client_ids,
            "AVG",
            settings,
            subscribed=self.subscribed,
            broadcasting=self.broadcasting,
            sdk=self.sdks.usual,
            sdk_of=self.sdks.sdk_of,
            by_broker=by_broker,
            by_broker_of=by_broker_of,
        )


def group_on_topics(
    snapshot: ClusterSnapshot,
    which: GroupOptions,
    *,
    broadcasting_too: bool = False,
    pop_too: bool = False,
    hidden_too: bool = False,
    all_by_pop: bool = False,
) -> GroupOnTopics:
    """The group to plan, its topics and members; with `all_by_pop` as if it consumed all of them by POP.

    With `hidden_too` a group is no mistake whose consumers are behind a Proxy that was not asked.
    """
    consumers = which.consumers
    seen = _group(snapshot, which.group, consumers)
    if seen is not None:
        must_rebalance(seen, broadcasting_too=broadcasting_too, pop_too=pop_too)
        must_be_listed(seen, assumed=hidden_too or consumers is not None)
        seen = seen.without_foreign_offsets
    hidden = seen is not None and consumers is None and behind_proxy(seen) is not None
    by_proxy = hidden or (pop_too and seen is not None and consumers is None and only_grpc(seen))
    routes, popped, findings = _topics(snapshot, seen, which, pop_too=pop_too, all_by_pop=all_by_pop or by_proxy)
    if consumers is not None:
        client_ids, invented = values.members(consumers)
        findings += list(shared_id_findings(client_ids))
        placeholders = client_ids if invented else ()
    elif seen is None:
        hint = "name them with --consumers ID,ID,… or @FILE, or a number"
        raise DataError("the source holds no group's consumers", hint=hint, code="consumers-unknown")
    else:
        client_ids, placeholders = rebalanced_members(seen, broadcasting_too=broadcasting_too, pop_too=pop_too), ()
        findings += list(member_findings(seen))
    if placeholders:
        text = "the consumers are placeholders: real ones have other IDs, and sort by them"
        findings.append(Finding("placeholder-ids", text, severity=INFO))
    findings += _of_routes(snapshot, (*routes, *popped))
    usual, by_id = values.sdks(which.sdk or ())
    libraries = group_sdks(None if consumers is not None else seen, client_ids, given=usual, given_of=by_id)
    findings += libraries.findings
    return GroupOnTopics(
        name=seen.group if seen else which.group,
        group=seen,
        routes=routes,
        client_ids=client_ids,
        placeholders=placeholders,
        assumed=consumers is not None,
        findings=tuple(findings),
        sdks=libraries,
        popped=popped,
        by_proxy=by_proxy,
        hidden=hidden,
    )


def _topics(
    snapshot: ClusterSnapshot, group: ConsumerGroup | None, which: GroupOptions, *, pop_too: bool, all_by_pop: bool
) -> tuple[tuple[TopicRouteData, ...], tuple[TopicRouteData, ...], list[Finding]]:
    """The routes of topics that the group pulls, of those that it consumes by POP, and what is odd about the group."""
    routes, findings = _routes(snapshot, group, which)
    if group is None and which.group is not None and snapshot.groups:
        close = suggestion("groups", which.group, snapshot.groups)
        text = f"group {which.group} is not in {snapshot.endpoint}; {close}"
        findings.append(Finding("group-not-seen", text, which.group))
    popped: tuple[TopicRouteData, ...] = ()
    if all_by_pop:
        routes, popped = (), routes
    elif group is not None:
        routes, popped, left_out = _by_pop(group, routes, pop_too=pop_too)
        findings += left_out
    if group is not None:
        findings += [*proxy_findings(group), *_subscription(group, (*routes, *popped))]
    return routes, popped, findings


def _by_pop(
    group: ConsumerGroup, routes: tuple[TopicRouteData, ...], *, pop_too: bool
) -> tuple[tuple[TopicRouteData, ...], tuple[TopicRouteData, ...], list[Finding]]:
    """The routes of topics that the group pulls, and of those that it consumes by POP, or that these are left out."""
    if not pop_too:
        pulled, left_out = pulled_routes(group, routes)
        return pulled, (), left_out
    names = {route.topic for route in routes} if group.consume_type == CONSUME_POP else popped_topics(group)
    pulled = tuple(route for route in routes if route.topic not in names)
    return pulled, tuple(route for route in routes if route.topic in names), []


def _of_routes(snapshot: ClusterSnapshot, routes: Sequence[TopicRouteData]) -> Iterator[Finding]:
    """What is odd about the routes, and about their source."""
    for route in routes:
        yield from sighting_findings(snapshot.routes[route.topic])
    yield from source_findings(snapshot)
    for route in routes:
        yield from unreadable_findings(route)


def require_named(which: GroupOptions, client_ids: Collection[str]) -> None:
    """Refuse the client library of a consumer that never is in the group (raises UsageError)."""
    _, by_id = values.sdks(which.sdk or ())
    values.require_members(by_id, client_ids, "--sdk")


def placeholder_finding(moved: tuple[int, MovedRange | None] | None = None) -> Finding:
    """The finding of invented ids; `moved` of a plan: how many queues move with those shown, and with any."""
    text = "placeholder client IDs sort last, behind IP addresses"
    if moved is None:
        text += "; a real process has another ID, and other queues may move"
    else:
        shown, over_places = moved
        if over_places is not None and over_places.fewest == over_places.most and over_places.complete:
            text += f"; wherever the real ones sort, {counted(shown, 'queue')} move{'s' * (shown == 1)}"
        else:
            if over_places is None:
                text = "the text of client IDs decides, not their order"
            text += f": the tables show {counted(shown, 'move')} with placeholders; name the real ones with --add ID"
    return Finding("placeholder-ids", text, severity=INFO)


def no_strategy(option: str, found: GroupOnTopics) -> UsageError:
    """The error for a strategy where none is asked."""
    if found.by_proxy:
        return UsageError(
            f"{option}: the consumers of {found.title} are behind a Proxy, where no strategy decides who reads a queue",
            hint=f"leave {option} out, or name other consumers with --consumers ID,ID,…",
            group=found.name,
        )
    return UsageError(
        f"{option}: {found.title} is BROADCASTING, and no strategy decides who reads a queue",
        hint=f"leave {option} out, or look at CLUSTERING: --group OTHER-NAME --topic T --consumers ID,ID,…",
        group=found.name,
    )


def only_group(snapshot: ClusterSnapshot, name: str | None) -> ConsumerGroup:
    """The group of that name, or the only one (raises DataError, UsageError)."""
    found = _group(snapshot, name, None)
    if found is None:
        raise DataError(
            f"no consumer group is in {snapshot.endpoint}",
            hint="fetch-routes writes a snapshot with groups and their consumers",
            code="consumers-unknown",
        )
    return found


def _group(snapshot: ClusterSnapshot, name: str | None, consumers: str | None) -> ConsumerGroup | None:
    if name is not None:
        return snapshot.groups.get(name) if consumers is not None else snapshot.group(name)
    if len(snapshot.groups) > 1 and consumers is None:
        names = ", ".join(sorted(snapshot.groups)[:8])
        raise UsageError("which group?", hint=f"name it with --group; the source holds {names}", code="which-group")
    return next(iter(snapshot.groups.values())) if len(snapshot.groups) == 1 else None


def _routes(
    snapshot: ClusterSnapshot, group: ConsumerGroup | None, which: GroupOptions
) -> tuple[tuple[TopicRouteData, ...], list[Finding]]:
    retry, untaken = _retry(snapshot, group, which)
    if which.topic:
        return _distinct((*(snapshot.route(topic) for topic in which.topic), *retry)), untaken
    if group is None or group.topics is None:
        return _distinct((*_only_route(snapshot, group, retry), *retry)), untaken
    own = retry_topic(group.group)
    names = [topic for topic in group.topics if which.include_retry or not topic.startswith(RETRY_PREFIX)]
    findings = untaken + no_route_findings(group.group, [topic for topic in names if topic != own], snapshot)
    routes = _distinct((*(snapshot.routes[topic].route for topic in names if topic in snapshot.routes), *retry))
    if not routes:
        raise _no_route(snapshot, group, names)
    return routes, findings


def _distinct(routes: Iterable[TopicRouteData]) -> tuple[TopicRouteData, ...]:
    return tuple({route.topic: route for route in routes}.values())


def _retry(
    snapshot: ClusterSnapshot, group: ConsumerGroup | None, which: GroupOptions
) -> tuple[list[TopicRouteData], list[Finding]]:
    """The route of the group's retry topic where it is asked for, or why it is not taken."""
    name = group.group if group is not None else which.group
    if not which.include_retry:
        return [], []
    if name is None:
        raise UsageError("--include-retry: of which group?", hint="name it with --group", code="which-group")
    topic = retry_topic(name)
    if group is not None and not group.subscribes_to(topic):
        why = "it is BROADCASTING" if group.message_model == BROADCASTING else "it pulls"
        text = f"--include-retry: group {name} does not subscribe to {topic}: {why}"
        return [], [Finding("not-subscribed", text, name)]
    if topic not in snapshot.routes:
        return [], [Finding("no-route", f"--include-retry: the route of {topic} is not in {snapshot.endpoint}", name)]
    return [snapshot.routes[topic].route], []


def _no_route(snapshot: ClusterSnapshot, group: ConsumerGroup, names: Sequence[str]) -> DataError:
    if names:
        what = f"no route of a topic of group {group.group} is in {snapshot.endpoint}"
        hint = suggestion("topics", names[0], snapshot.routes)
        return DataError(what, hint=hint, group=group.group, code="topic-not-found")
    if group.topics:
        what, hint = (
            f"only its retry topic is known of group {group.group}",
            "--include-retry takes it; or name a topic",
        )
    else:
        what, hint = f"group {group.group} subscribes to no topic", "to see what would be if it did, name a topic"
    return DataError(what, hint=f"{hint} with --topic", group=group.group, code="topic-not-found")


def _only_route(
    snapshot: ClusterSnapshot, group: ConsumerGroup | None, but: Sequence[TopicRouteData]
) -> tuple[TopicRouteData, ...]:
    names = sorted(snapshot.routes.keys() - {route.topic for route in but})
    if not names and group is not None and group.views == ():
        raise nobody_online(group.group, group, "its topics are not known; name one with --topic")
    if not names:
        raise DataError(
            f"no route is in {snapshot.endpoint}", hint="a plan needs the route of a topic", code="topic-not-found"
        )
    if len(names) > 1:
        listed = ", ".join(names[:8])
        raise UsageError("which topic?", hint=f"name it with --topic; the source holds {listed}", code="which-topic")
    return (snapshot.routes[names[0]].route,)


def _subscription(group: ConsumerGroup, routes: Sequence[TopicRouteData]) -> list[Finding]:
    """Brokers keep the last heartbeat's topics; of members whose subscriptions differ, others may have more."""
    return [
        Finding("not-subscribed", f"group {group.group} does not subscribe to topic {route.topic}", group.group)
        for route in routes
        if (group.views != () or group.client_ids) and not group.subscribes_to(route.topic)
    ]
