"""One consumer group, resolved once: its consumers, topics, strategy and owners. Every verb asks a `Group`.

- A fact that is not known raises a DataError. No default replaces a missing fact.
- Facts that a caller gives (`Given`) replace those of the snapshot; no prediction replaces a fact of the snapshot.
"""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from rmqlb.engine.allocate.strategy import BROKER_STRATEGIES, Settings
from rmqlb.engine.assignment import consumers
from rmqlb.engine.assignment.assign import Members, Owners, owners_at_rest, spread
from rmqlb.engine.assignment.detect import DEFAULT, Detected, detect_strategy, must_be_set
from rmqlb.errors import DataError, RmqlbError, UsageError
from rmqlb.model import group as model_group
from rmqlb.model.client_versions import SdkUse
from rmqlb.model.group import BROADCASTING, CONSUME_ACTIVELY, CONSUME_POP, RETRY_PREFIX, ConsumerGroup, States, is_grpc
from rmqlb.model.group_scenario import known_consume_from
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.owners import Basis, Spread
from rmqlb.model.result import counted
from rmqlb.model.route import TopicRouteData
from rmqlb.model.snapshot import ClusterSnapshot, suggestion

Fact = TypeVar("Fact")


def all_groups(snapshot: ClusterSnapshot) -> list[str]:
    return sorted({*snapshot.groups, *snapshot.gaps.groups})


class Given(Struct, frozen=True):
    """Facts of a group that a caller gives, and that replace those of the snapshot."""

    client_ids: tuple[str, ...] | None = None  # its consumers, duplicates kept; None takes those of the snapshot
    placeholders: bool = False  # these IDs were invented, because only a number of consumers was given
    topics: tuple[str, ...] = ()  # only these; () takes those that it subscribes to
    retry: bool = False  # its retry topic too
    strategy: str | None = None  # what every consumer runs; None takes what they report or show
    # the strategy of consumers that report none and whose owners fit none; None leaves it unknown
    assume: str | None = DEFAULT
    sdk: str | None = None  # the client library of every consumer, such as `go`; None takes what their connections say
    sdk_of: Mapping[str, str] = {}  # client ID → its own library
    by_pop: bool = False  # as if it consumed every topic by POP
    members: Members | None = None  # its consumers with their strategies; None works them out


class Ownership(Struct, frozen=True):
    owners: Owners  # queue → its owners
    # observed, predicted (by the strategy that consumers run, which agrees with every observed owner) or assumed (by
    # the default)
    basis: Basis
    unknown: int  # how many queues' owners are unknown, and not in `owners`: the prediction contradicts observed ones
    # how even the owners are; with unknown owners its counts of unassigned queues and duplicate owners are lower
    # bounds, and its idle consumers and imbalance mean nothing
    spread: Spread


class Faults(Struct, frozen=True):
    unassigned: tuple[MessageQueue, ...]  # queues without an owner
    duplicate_owners: tuple[MessageQueue, ...]  # queues with two or more owners
    basis: Basis | None  # how the owners are known; None where no owner is
    unknown: int | None = 0  # how many queues' owners are unknown; None where the number of queues is
    missing: str | None = None  # why there may be more; None where all owners are known


class Group(Struct, dict=True, eq=False):
    snapshot: ClusterSnapshot  # where it was seen
    name: str | None  # its name; None where neither the snapshot nor the caller names one
    settings: Settings = Settings()  # what its consumers' strategy objects were constructed with
    given: Given = Given()  # what the caller says of it

    # -- what the snapshot has of it

    @cached_property
    def seen(self) -> ConsumerGroup | None:
        found = self.snapshot.groups.get(self.name or "")
        return None if found is None else found.without_foreign_offsets

    @cached_property
    def group(self) -> ConsumerGroup:
        """The group as the snapshot has it, offsets of others included (raises DataError)."""
        if (found := self.snapshot.groups.get(self.name or "")) is not None:
            return found
        why = self.snapshot.gaps.groups.get(self.name or "", f"it is not in {self.snapshot.endpoint}")
        raise DataError(f"the group could not be read: {why}")

    @property
    def title(self) -> str:
        return "the group" if self.name is None else f"group {self.name}"

    @property
    def assumed(self) -> bool:
        return self.given.client_ids is not None

    @property
    def _running_group(self) -> ConsumerGroup | None:
        """The group as the snapshot has it, if its consumers are those of the snapshot."""
        return None if self.assumed else self.seen

    @property
    def broadcasting(self) -> bool:
        return self.seen is not None and self.seen.message_model == BROADCASTING

    @property
    def states(self) -> States:
        return self.seen.queues if self.seen else {}

    @property
    def consume_from(self) -> str:
        return known_consume_from(self.seen.consume_from_where if self.seen else None)

    @property
    def subscribed(self) -> dict[str, frozenset[str]]:
        reports = self.seen.reports if self.seen else {}
        return {client_id: report.topics for client_id, report in reports.items() if report.topics is not None}

    # -- who assigns its queues

    @property
    def owns_nothing(self) -> bool:
        """Whether its consumers take messages by POP or through a Proxy, so none of them owns a queue."""
        running = self._running_group
        if self.given.by_pop or self.by_proxy or running is None:
            return self.given.by_pop or self.by_proxy
        own = running.own_topics
        return running.consume_type == CONSUME_POP or (bool(own) and self.popped.issuperset(own or ()))

    @cached_property
    def asks_brokers(self) -> bool:
        """Whether some consumer lets brokers assign its queues (`clientRebalance=false`)."""
        running = self._running_group
        return running is not None and any(each.client_rebalance is False for each in running.reports.values())

    @cached_property
    def popped(self) -> frozenset[str]:
        return frozenset() if self._running_group is None else consumers.popped_topics(self._running_group)

    @cached_property
    def unsettled(self) -> frozenset[str]:
        """Topics for which no answer shows whether brokers assign the queues or consumers use POP.

        With `clientRebalance=false` the request mode of topic and group decides (`GET_ALL_MESSAGE_REQUEST_MODE`); a
        consumer that owns queues of a topic pulls them.
        """
        if self.seen is None or not self.asks_brokers or self.seen.request_modes is not None:
            return frozenset()
        pulled = {queue.topic for queue, state in self.seen.queues.items() if state.owners}
        topics = known(lambda: self.topics) or self.seen.own_topics or ()
        return frozenset(topics) - pulled - self.popped

    @property
    def unsettled_error(self) -> DataError:
        return DataError(
            f"consumers of {self.title} have clientRebalance=false, but no broker reported its request "
            "modes, so it is unknown whether brokers assign its queues or consumers use POP",
            hint="read the running cluster through its NameServers: -s rocketmq://HOST:9876",
            code="request-modes-unknown",
        )

    def must_be_assigned(self) -> None:
        if self.unsettled:
            raise self.unsettled_error

    @cached_property
    def refusals(self) -> Mapping[consumers.Reason, DataError]:
        """Why its consumers do not share its queues among themselves (raises DataError)."""
        return consumers.refusals(self.group.without_foreign_offsets)

    @property
    def apart(self) -> str | None:
        """The reason why its consumers do not share its queues; None if they may (raises DataError)."""
        return next((error.message for reason, error in self.refusals.items() if reason != "unknown"), None)

    @property
    def refusal(self) -> DataError | None:
        """Why no owners can be predicted; BROADCASTING consumers all own each queue (raises DataError)."""
        return next((error for reason, error in self.refusals.items() if reason != "broadcasting"), None)

    @property
    def shares(self) -> bool:
        return bool(self.group.client_ids) and self.group.message_model != BROADCASTING and self.refusal is None

    @property
    def hidden(self) -> bool:
        """Whether its consumers are behind a Proxy that did not report them."""
        return self._running_group is not None and "hidden" in self.refusals

    @property
    def by_proxy(self) -> bool:
        return self.hidden or (self._running_group is not None and "grpc" in self.refusals)

    def must_share(self, *, broadcasting: bool = False, pop: bool = False, hidden: bool = False) -> None:
        """Refuse a group whose consumers do not share its queues, unless a flag lets it pass (raises DataError)."""
        if self.seen is not None:
            passes = {"broadcasting": broadcasting, "pop": pop, "hidden": hidden or self.assumed, "unknown": True}
            passes["grpc"] = pop or self.assumed
            for reason, error in self.refusals.items():
                if not passes[reason]:
                    raise error
            popped = () if pop or self.assumed else self.popped_routes
            if popped and all(each.topic.startswith(RETRY_PREFIX) for each in self.pulled_routes):
                raise consumers.pop_refusal(self.seen, [route.topic for route in popped])
        if not (self.assumed or self.given.by_pop or self.broadcasting or self.by_proxy):
            self.must_be_assigned()

    # -- its consumers

    @cached_property
    def client_ids(self) -> tuple[str, ...]:
        """The consumers that take part, duplicates kept; () where none is online (raises DataError)."""
        if self.given.client_ids is not None:
            return self.given.client_ids
        if self.seen is None:
            hint = "name the consumers with --consumers ID,ID,… or @FILE, or give a number"
            raise DataError("the source does not report any consumers", hint=hint, code="consumers-unknown")
        if "unknown" in self.refusals:
            raise self.refusals["unknown"]
        return consumers.rebalanced_members(self.seen)

    @property
    def placeholders(self) -> tuple[str, ...]:
        return (self.given.client_ids or ()) if self.given.placeholders else ()

    @cached_property
    def untold(self) -> str | None:
        """The broker (or Proxy, if no consumer is visible) that did not report its consumers; None if all did."""
        if self.assumed or self.name is None:
            return None
        if self.name in self.snapshot.gaps.members:
            return self.snapshot.gaps.members[self.name]
        return None if self.group.client_ids else self.snapshot.gaps.proxies

    @property
    def listed(self) -> tuple[str, ...] | None:
        """The listed client IDs, duplicates kept; None if they, or their existence, are unknown."""
        ids = self.group.client_ids
        return None if not ids and (self.untold is not None or self.hidden) else ids

    @cached_property
    def all_client_ids(self) -> tuple[str, ...]:
        """All of its consumers, of which there is at least one (raises DataError)."""
        if self.assumed:
            return self.client_ids
        if self.untold is not None:
            raise DataError(self.untold)
        if not self.visible_ids:
            raise DataError("no consumer is visible")
        return self.visible_ids

    @cached_property
    def visible_ids(self) -> tuple[str, ...]:
        """The client IDs that some broker lists, duplicates kept (raises DataError)."""
        ids = self.group.client_ids
        if ids is None:
            raise DataError("its consumers are unknown")
        if "hidden" in self.refusals:
            raise self.refusals["hidden"]
        return ids

    @cached_property
    def sdks(self) -> consumers.GroupSdks:
        given = self.given
        return consumers.group_sdks(self._running_group, self.client_ids, given=given.sdk, given_of=given.sdk_of)

    @property
    def names_sdks(self) -> bool:
        """Whether the caller names consumers or their client libraries, so no connection shows their library."""
        return self.assumed or self.given.sdk is not None or bool(self.given.sdk_of)

    @property
    def used_sdks(self) -> tuple[SdkUse, ...]:
        return () if self.broadcasting else self.sdks.uses(self.client_ids)

    # -- its topics

    @cached_property
    def topics(self) -> tuple[str, ...]:
        """The topics in question, the retry topic only if requested (raises DataError).

        Brokers list the topics of the last heartbeat; consumers that subscribe to others report those.
        """
        if self.given.topics:
            return tuple(dict.fromkeys((*self.given.topics, *self._retry)))
        own = self.seen.own_topics if self.seen is not None else None
        if own is None:
            is_empty = self.seen is not None and self.seen.views is not None and not self.seen.client_ids
            raise DataError("no consumer is visible to report its topics" if is_empty else "its topics are unknown")
        reported = set() if self.assumed else {topic for topics in self.subscribed.values() for topic in topics}
        more = sorted(topic for topic in reported.difference(own) if not topic.startswith(RETRY_PREFIX))
        return (*own, *more, *self._retry)

    @cached_property
    def _retry(self) -> tuple[str, ...]:
        if not self.given.retry:
            return ()
        if self.name is None:
            raise UsageError("--include-retry: which group?", hint="name the group with --group", code="which-group")
        topic = model_group.retry_topic(self.name)
        reads = self.seen is None or self.seen.subscribes_to(topic)
        return (topic,) if reads and topic in self.snapshot.routes else ()

    @cached_property
    def unknown_routes(self) -> Mapping[str, DataError]:
        found = {}
        for topic in self.topics:
            sighting, reason = self.snapshot.routes.get(topic), self.snapshot.gaps.topics.get(topic)
            if sighting is None:
                more = f": {reason}" if reason else ""
                found[topic] = DataError(f"the route of topic {topic} is unknown{more}")
            elif any(other.route.subscribe_queues() != sighting.route.subscribe_queues() for other in sighting.others):
                found[topic] = DataError(f"NameServers have different routes of topic {topic}")
        return found

    @cached_property
    def known_routes(self) -> tuple[TopicRouteData, ...]:
        """The routes of those of its topics whose route is known, POP's included (raises DataError where none is)."""
        for topic in self.given.topics:
            self.snapshot.route(topic)
            if topic in self.unknown_routes:
                raise self._differs(topic)
        found = tuple(self.snapshot.routes[topic].route for topic in self.topics if topic not in self.unknown_routes)
        if not found:
            raise self._no_route()
        return found

    def _differs(self, topic: str) -> DataError:
        problem = f"NameServers have different routes of topic {topic}, so a consumer's route is unknown"
        return DataError(
            problem, hint="to predict by the route of one NameServer, name only that one with -s", code="routes-differ"
        )

    def _no_route(self) -> DataError:
        for topic in self.unknown_routes:
            if topic in self.snapshot.routes:
                return self._differs(topic)
        if self.topics:
            what = f"{self.snapshot.endpoint} has no route of a topic of {self.title}"
            hint = suggestion("topics", self.topics[0], self.snapshot.routes)
        elif self.seen is not None and self.seen.topics:
            what = f"the only known topic of {self.title} is its retry topic"
            hint = "pass --include-retry to use it, or name a topic with --topic"
        else:
            what = f"{self.title} subscribes to no topic"
            hint = "to assume that it did, name a topic with --topic"
        return DataError(what, hint=hint, group=self.name, code="topic-not-found")

    @cached_property
    def pulled_routes(self) -> tuple[TopicRouteData, ...]:
        """The known routes of topics whose queues consumers own."""
        if self.given.by_pop or self.by_proxy:
            return ()
        running = self._running_group
        by_pop = running is not None and running.consume_type == CONSUME_POP
        return tuple(route for route in self.known_routes if not by_pop and route.topic not in self.popped)

    @cached_property
    def popped_routes(self) -> tuple[TopicRouteData, ...]:
        """The known routes of topics that it consumes by POP, or through a Proxy."""
        pulled = {route.topic for route in self.pulled_routes}
        return tuple(route for route in self.known_routes if route.topic not in pulled)

    @property
    def pulled_queues(self) -> list[MessageQueue]:
        return [queue for route in self.pulled_routes for queue in route.subscribe_queues()]

    @cached_property
    def routes(self) -> tuple[TopicRouteData, ...]:
        """The routes of all topics whose queues its consumers own, each of them known (raises DataError)."""
        own = [topic for topic in self.topics if topic not in self.popped]
        for topic in own:
            if topic in self.unknown_routes:
                raise self.unknown_routes[topic]
        if not own:
            raise DataError("it subscribes to no topic")
        return tuple(self.snapshot.routes[topic].route for topic in own)

    @property
    def queues(self) -> list[MessageQueue]:
        return [queue for route in self.routes for queue in route.subscribe_queues()]

    # -- its strategy

    @cached_property
    def strategy(self) -> Detected:
        """The strategy: given, reported, fitting the observed owners, or RocketMQ's default (raises DataError)."""
        if self.broadcasting or self.by_proxy:
            return Detected(DEFAULT, "reported")
        ids = () if self.seen is None or self.seen.client_ids is None else self.seen.client_ids
        real = self._running(DEFAULT, self.client_ids if not self.assumed else ids)
        is_said = self.given.strategy is not None or (
            self.seen is not None and consumers.reported_strategies(self.seen)
        )
        found = detect_strategy(self.given.strategy, self.seen, () if is_said else self.pulled_routes, real)
        must_be_set(found.run_by_members, self.settings)
        return found

    @cached_property
    def members(self) -> Members:
        if self.given.members is not None:
            return self.given.members
        found = self.strategy
        if self.broadcasting or self.by_proxy:
            return self._running(found.strategy, self.client_ids)
        strategy = found.strategy
        if found.origin == "assumed":
            if self.given.assume is None:
                raise DataError("the strategy of its consumers is unknown (set `assume` in the rule)")
            strategy = self.given.assume
            must_be_set((strategy,), self.settings)
        self._must_be_predictable()
        members = replace(self._running(strategy, self.client_ids), strategy_of=found.strategy_of)
        self.must_be_answered(members)
        return members

    def _must_be_predictable(self) -> None:
        """Refuse a group whose consumers' shares follow from no strategy (raises DataError)."""
        if (running := self._running_group) is None:
            return
        self.must_be_assigned()
        if any(map(is_grpc, self.client_ids)):
            text = "some consumers look like gRPC clients, which do not allocate queues"
            raise DataError(text, hint="name the other consumers with --consumers ID,ID,…")
        if running.consume_type == CONSUME_ACTIVELY and self.given.assume is None:
            problem = "its consumers pull, and may not share the queues (if they do, set `assume` in the rule)"
            raise DataError(problem)

    def must_be_answered(self, members: Members) -> None:
        """Refuse consumers that ask brokers for a strategy that brokers lack (raises DataError).

        Such a broker answers nothing, and each consumer keeps its queues (`QueryAssignmentProcessor`).
        """
        strategies = {each: members.strategy_for(each) for each in members.client_ids}
        lacking = sorted({name for each, name in strategies.items() if not members.is_answered(each, name)})
        if lacking:
            text = (
                f"consumers of {self.title} let brokers assign their queues by {', '.join(lacking)}, which brokers do "
                "not have: each consumer keeps its queues"
            )
            raise DataError(text, hint=f"brokers have {' and '.join(BROKER_STRATEGIES)}", code="broker-strategy")

    @property
    def basis(self) -> Basis:
        """How predicted owners are known (raises DataError)."""
        return "assumed" if self.given.members is None and self.strategy.origin == "assumed" else "predicted"

    def under(self, strategy: str) -> Members:
        """The consumers with their client libraries, when all run this strategy (raises DataError)."""
        return self._running(strategy, self.all_client_ids)

    def under_all(self, strategy: str) -> Members:
        """The consumers that are known, when all run this strategy; other consumers may exist (raises DataError)."""
        return self._running(strategy, () if self.hidden else self.client_ids)

    def _running(self, strategy: str, client_ids: tuple[str, ...]) -> Members:
        by_broker, by_broker_of = consumers.assigned_by_broker(self._running_group, client_ids)
        return Members(
            client_ids,
            strategy,
            self.settings,
            subscribed=self.subscribed,
            broadcasting=self.broadcasting,
            sdk=self.sdks.usual,
            sdk_of=self.sdks.sdk_of,
            by_broker=by_broker,
            by_broker_of=by_broker_of,
        )

    # -- who owns its queues

    @cached_property
    def observed(self) -> Owners:
        """Observed owners of queues, only of topics that the group reads and does not consume by POP."""
        topics = known(lambda: {*self.topics})
        return {
            queue: owners
            for queue, state in self.states.items()
            if (owners := state.sorted_owners) is not None
            and not queue.topic.startswith(RETRY_PREFIX)
            and queue.topic not in self.popped
            and queue.topic not in self.unsettled
            and (topics is None or queue.topic in topics)
        }

    @cached_property
    def predicted(self) -> Owners:
        _ = self.all_client_ids  # raises where they are unknown
        return owners_at_rest(self.routes, self.members)

    @cached_property
    def ownership(self) -> Ownership:
        """The owners of its queues as observed; where none was observed, as predicted (raises DataError)."""
        if self.apart is not None and not self.broadcasting:
            raise DataError(self.apart)
        queues = self.queues
        offline = not self.untold and consumers.is_surely_offline(self.group)
        ids = () if offline else self.all_client_ids
        if not ids:
            nobody: Owners = dict.fromkeys(queues, ())
            return Ownership(nobody, "observed", 0, spread(nobody, ()))
        seen: Owners = {} if self.broadcasting else {q: self.observed[q] for q in queues if q in self.observed}
        unknown = len(queues) - len(seen)
        predicted = known(lambda: self.predicted) if seen and unknown else {}
        if seen and (predicted is None or any(predicted.get(queue) != own for queue, own in seen.items())):
            return Ownership(seen, "observed", unknown, spread(seen, ids))
        return Ownership(self.predicted, self.basis, 0, spread(self.predicted, ids, broadcasting=self.broadcasting))

    @cached_property
    def faults(self) -> Faults:
        """The queues without exactly one owner that are certain, whatever else is unknown (raises UsageError)."""
        basis: Basis | None
        unknown: int | None
        try:
            found = self.ownership
            owners, basis, unknown = found.owners, found.basis, found.unknown
            missing = f"the owners of {counted(unknown, 'queue')} are unknown" if unknown else None
        except DataError as error:
            owners, basis, missing = self.observed, "observed" if self.observed else None, error.message
            unknown = known(lambda: sum(queue not in self.observed for queue in self.queues))
        several = () if self.broadcasting else (queue for queue, own in owners.items() if len(own) > 1)
        unassigned = tuple(queue for queue, own in owners.items() if not own)
        return Faults(unassigned, tuple(several), basis, unknown, missing)

    @cached_property
    def mismatches(self) -> list[MessageQueue] | None:
        """The queues whose observed owners differ from the predicted ones; None where either is unknown."""
        predicted = known(lambda: self.predicted) if self.observed and not self.broadcasting else None
        if predicted is None:
            return None
        return [queue for queue, owners in predicted.items() if self.observed.get(queue, owners) != owners]


def known(ask: Callable[[], Fact]) -> Fact | None:
    """A fact, or None where it is unknown or RocketMQ's clients would throw."""
    try:
        return ask()
    except RmqlbError:
        return None


def resolve(
    snapshot: ClusterSnapshot, name: str | None, settings: Settings | None = None, given: Given | None = None
) -> Group:
    """The group of that name; None takes the snapshot's only group.

    Raises:
        UsageError: the snapshot has several groups, and `name` is None.
        DataError: the snapshot lacks the named group, and its consumers are not given.
    """
    given = given or Given()
    if name is None:
        name = _only_name(snapshot, given)
    elif given.client_ids is None and name not in snapshot.gaps.groups:
        snapshot.group(name)
    seen = None if name is None else snapshot.groups.get(name)
    if not given.topics and (seen is None or seen.topics is None):
        given = replace(given, topics=_only_topic(snapshot, name, given))
    return Group(snapshot, name, settings or Settings(), given)


def group_of(snapshot: ClusterSnapshot, name: str, settings: Settings | None = None) -> Group:
    """The group as it is, with the default strategy where nothing shows another."""
    return Group(snapshot, name, settings or Settings(), assumption(snapshot, name))


def assumption(snapshot: ClusterSnapshot, name: str) -> Given:
    """The default strategy for consumers that report none, unless they pull: then whether they rebalance is unknown."""
    group = snapshot.groups.get(name)
    pulls = group is not None and group.consume_type == CONSUME_ACTIVELY
    return Given(assume=None if pulls or group is None else DEFAULT)


def only_group(snapshot: ClusterSnapshot, name: str | None) -> str:
    """The name of that group, or of the only one (raises DataError, UsageError)."""
    found = name if name is not None else _only_name(snapshot, Given())
    if found is None:
        hint = "fetch-routes writes a snapshot with groups and their consumers"
        raise DataError(f"{snapshot.endpoint} has no consumer group", hint=hint, code="consumers-unknown")
    if found not in snapshot.gaps.groups:
        snapshot.group(found)
    return found


def _only_name(snapshot: ClusterSnapshot, given: Given) -> str | None:
    if len(snapshot.groups) > 1 and given.client_ids is None:
        names = ", ".join(sorted(snapshot.groups)[:8])
        raise UsageError(
            "which group?", hint=f"name the group with --group; the source has {names}", code="which-group"
        )
    return next(iter(snapshot.groups)) if len(snapshot.groups) == 1 else None


def _only_topic(snapshot: ClusterSnapshot, name: str | None, given: Given) -> tuple[str, ...]:
    """The snapshot's only topic, which a group reads whose subscription is unknown (raises DataError, UsageError)."""
    retry = {model_group.retry_topic(name)} if given.retry and name is not None else set()
    names = sorted(snapshot.routes.keys() - retry)
    if len(names) == 1 or (retry and not names):
        return tuple(names) or tuple(retry & snapshot.routes.keys())
    if names:
        listed = ", ".join(names[:8])
        raise UsageError(
            "which topic?", hint=f"name the topic with --topic; the source has {listed}", code="which-topic"
        )
    seen = None if name is None else snapshot.groups.get(name)
    if seen is not None and seen.views == ():
        raise consumers.nobody_online(name, seen, "its topics are unknown; name one with --topic")
    hint = "a plan needs the route of a topic"
    raise DataError(f"{snapshot.endpoint} has no route", hint=hint, code="topic-not-found")


def reported_by(group: Group) -> dict[str, str]:
    reported = {} if group.assumed or group.seen is None else consumers.reported_strategies(group.seen)
    return {client_id: name for client_id, name in reported.items() if client_id in group.client_ids}
