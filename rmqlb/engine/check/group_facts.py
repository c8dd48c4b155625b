"""What a snapshot tells of one group, each fact found out when a limit first asks for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property

from msgspec import Struct
from msgspec.structs import replace

from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.assignment.assign import Members, owners_at_rest
from rmqlb.engine.assignment.balance import Owners, spread
from rmqlb.engine.assignment.consumers import must_rebalance
from rmqlb.engine.assignment.detect import Detected, detect_strategy, must_be_set
from rmqlb.engine.assignment.group_sdks import GroupSdks, group_sdks
from rmqlb.engine.assignment.pop_and_proxy import behind_proxy, must_be_listed, popped_topics
from rmqlb.errors import DataError
from rmqlb.model.checking import Basis
from rmqlb.model.evenness import Spread
from rmqlb.model.group import CONSUME_ACTIVELY, RETRY_PREFIX, ConsumerGroup, is_grpc
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.policy import GROUP, Rule
from rmqlb.model.route import TopicRouteData
from rmqlb.model.snapshot import ClusterSnapshot
from rmqlb.model.system_names import is_system_group, is_system_topic


class Gaps(Struct, frozen=True):
    """What of a snapshot could not be read, by name."""

    topics: Mapping[str, str]  # topic → why its route was not read
    groups: Mapping[str, str]  # group → why it was not read
    members: Mapping[str, str]  # group → which broker did not report its consumers, and why
    unlisted: str | None = None  # why there may be groups that nobody named; None when there are none
    proxies: str | None = None  # which Proxy did not tell its consumers, and why; None when all did


def gaps(snapshot: ClusterSnapshot) -> Gaps:
    """The gaps; what else could not be read leaves values unknown, and whoever needs those says so."""
    topics: dict[str, str] = {}
    groups: dict[str, str] = {}
    members: dict[str, str] = {}
    unlisted = proxies = None
    for part in snapshot.unread:
        if part.kind == "route":
            topics[part.name] = part.reason
        elif part.kind == "group":
            groups[part.name] = part.reason
        elif part.kind == "members":
            members[part.name] = f"broker {part.detail} did not report its consumers: {part.reason}"
        elif part.kind == "groups":
            unlisted = f"broker {part.name} did not list its groups: {part.reason}"
        elif part.kind == "proxy":
            proxies = f"Proxy {part.name} did not report its consumers: {part.reason}"
    return Gaps(topics, groups, members, unlisted, proxies)


def subjects(rule: Rule, snapshot: ClusterSnapshot, missing: Gaps) -> list[str]:
    """The names that the rule takes, sorted; RocketMQ's own topics and groups have no limits."""
    if rule.about == GROUP:
        skipped = _offline(snapshot, missing) if rule.skip_offline else ()
        names = {*snapshot.groups, *missing.groups}.difference(skipped)
        return sorted(name for name in names if _takes(rule, name, is_system_group(name)))
    own = own_topics(snapshot)
    names = {*snapshot.routes, *missing.topics}
    return sorted(name for name in names if _takes(rule, name, name in own or is_system_topic(name)))


def _takes(rule: Rule, name: str, is_system: bool) -> bool:
    return not is_system and rule.takes(name)


def _offline(snapshot: ClusterSnapshot, missing: Gaps) -> Iterator[str]:
    """The groups without a visible consumer, where all brokers and Proxies reported and nothing shows consumption."""
    return (
        name
        for name, group in snapshot.groups.items()
        if group.client_ids == () and name not in missing.members and missing.proxies is None
        if behind_proxy(group) is None
    )


def own_topics(snapshot: ClusterSnapshot) -> set[str]:
    """The topic of its own name that each broker and each cluster has (`TopicConfigManager`)."""
    brokers = [broker for sighting in snapshot.routes.values() for broker in sighting.route.broker_datas]
    return {name for broker in brokers for name in (broker.broker_name, broker.cluster)}


_SAME_AT_BROKERS = ("AVG", "AVG_BY_CIRCLE")


class Ownership(Struct, frozen=True):
    """Who owns the queues, how that is known, and how even it is."""

    owners: Owners
    basis: Basis
    spread: Spread


class GroupFacts(Struct, dict=True, eq=False):
    """One group of a snapshot; `assume` is the strategy of consumers that do not report theirs."""

    snapshot: ClusterSnapshot
    gaps: Gaps
    name: str
    settings: Settings
    assume: str | None

    @cached_property
    def group(self) -> ConsumerGroup:
        if self.name in self.snapshot.groups:
            return self.snapshot.groups[self.name]
        raise DataError(f"the group could not be read: {self.gaps.groups[self.name]}")

    @cached_property
    def apart(self) -> str | None:
        """Why the group's clients do not share its queues among themselves, or None when they do."""
        try:
            must_rebalance(self.group)
        except DataError as error:
            return error.message
        ids = self.group.client_ids
        if ids and all(map(is_grpc, ids)):
            return "its consumers look like gRPC clients: the Proxy gives them messages, no client owns a queue"
        try:
            must_be_listed(self.group)
        except DataError as error:
            return error.message
        return None

    @cached_property
    def seen_ids(self) -> tuple[str, ...]:
        """The client IDs that some broker lists, duplicates kept (raises DataError)."""
        ids = self.group.client_ids
        if ids is None:
            raise DataError("its consumers are unknown")
        must_be_listed(self.group)
        return ids

    @cached_property
    def untold(self) -> str | None:
        """A broker that did not report its consumers, or a Proxy where none is visible; None when all of them did."""
        if self.name in self.gaps.members:
            return self.gaps.members[self.name]
        return None if self.group.client_ids else self.gaps.proxies

    @property
    def listed(self) -> tuple[str, ...] | None:
        """The client IDs that are listed, duplicates kept; None where they, or whether there are any, are unknown."""
        if not self.group.client_ids and (self.untold is not None or behind_proxy(self.group) is not None):
            return None
        return self.group.client_ids

    @cached_property
    def client_ids(self) -> tuple[str, ...]:
        """All of the group's consumers, of which there is at least one (raises DataError)."""
        if self.untold is not None:
            raise DataError(self.untold)
        if not self.seen_ids:
            raise DataError("no consumer is visible")
        return self.seen_ids

    @cached_property
    def routes(self) -> tuple[TopicRouteData, ...]:
        """The routes of all topics that it pulls, but the one for retries (raises DataError)."""
        own_topics = self.group.own_topics
        if own_topics is None:
            is_empty = self.group.views is not None and not self.group.client_ids
            raise DataError("no consumer is visible to report its topics" if is_empty else "its topics are unknown")
        popped = popped_topics(self.group)
        topics = [topic for topic in own_topics if topic not in popped]
        for topic in topics:
            if topic not in self.snapshot.routes:
                reason = self.gaps.topics.get(topic)
                raise DataError(f"the route of topic {topic} is not known" + (f": {reason}" if reason else ""))
            if self.snapshot.routes[topic].others:
                raise DataError(f"NameServers give different routes of topic {topic}")
        if not topics:
            raise DataError("it subscribes to no topic")
        return tuple(self.snapshot.routes[topic].route for topic in topics)

    @cached_property
    def seen_owners(self) -> Owners:
        """The owners of the queues that were looked at; a topic that is consumed by POP has none to look for."""
        popped = popped_topics(self.group)
        return {
            queue: owners
            for queue, state in self.group.queues.items()
            if (owners := state.sorted_owners) is not None
            and not queue.topic.startswith(RETRY_PREFIX)
            and queue.topic not in popped
        }

    @property
    def subscribed(self) -> dict[str, frozenset[str]]:
        """Client ID → the topics it subscribes to, of the consumers that report them."""
        return {i: report.topics for i, report in self.group.reports.items() if report.topics is not None}

    @cached_property
    def detected(self) -> Detected:
        """The strategy that is reported, fits the observed owners, or is RocketMQ's default (raises DataError)."""
        return detect_strategy(None, self.group, self.routes, self.under("AVG"))

    @cached_property
    def predicted(self) -> tuple[Owners, Basis]:
        """The owners by the members' strategies, and how those are known (raises DataError)."""
        members, basis = self.members
        return owners_at_rest(self.routes, members), basis

    @cached_property
    def members(self) -> tuple[Members, Basis]:
        """The consumers with their strategies, and how those are known (raises DataError)."""
        group, ids = self.group, self.client_ids
        if any(map(is_grpc, ids)):
            raise DataError("some consumers look like gRPC clients, which take no part in the others' allocation")
        found = self.detected
        if found.origin == "assumed":
            if self.assume is None:
                raise DataError("the strategy of its consumers is not known (`assume` in the rule names one)")
            must_be_set((self.assume,), self.settings)
            return self.under(self.assume), "assumed"
        if group.consume_type == CONSUME_ACTIVELY and self.assume is None:
            raise DataError(
                "its consumers pull: whether they share the queues is not known (`assume` in the rule says so)"
            )
        by_broker = any(report.client_rebalance is False for report in group.reports.values())
        if by_broker and found.strategy not in _SAME_AT_BROKERS:
            raise DataError("its consumers let the broker assign their queues")
        must_be_set(found.run_by_members, self.settings)
        return replace(self.under(found.strategy), strategy_of=found.strategy_of), "predicted"

    @cached_property
    def sdks(self) -> GroupSdks:
        """The client libraries of its consumers (raises DataError)."""
        return group_sdks(self.group, self.group.client_ids or ())

    def under(self, strategy: str) -> Members:
        """The consumers with their client libraries, when all run this strategy (raises DataError)."""
        return Members(
            self.client_ids,
            strategy,
            self.settings,
            subscribed=self.subscribed,
            sdk=self.sdks.usual,
            sdk_of=self.sdks.sdk_of,
        )

    @cached_property
    def ownership(self) -> Ownership:
        """The owners of all queues as observed, otherwise as their strategy predicts (raises DataError)."""
        queues: list[MessageQueue] = [queue for route in self.routes for queue in route.subscribe_queues()]
        ids = self.client_ids
        if all(queue in self.seen_owners for queue in queues):
            owners: Owners = {queue: self.seen_owners[queue] for queue in queues}
            return Ownership(owners, "observed", spread(owners, ids))
        owners, basis = self.predicted
        return Ownership(owners, basis, spread(owners, ids))
