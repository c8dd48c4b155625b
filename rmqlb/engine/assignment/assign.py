"""The owners of a topic once every consumer of a group has run its strategy, and measures of any assignment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Annotated, Any

from msgspec import Meta, Struct, field
from msgspec.structs import force_setattr, replace

from rmqlb.engine.allocate import PreparedStrategies, custom_inside, full_name, given_sdks, must_have, unset_options
from rmqlb.engine.allocate.rules import JAVA, Sdk, sdk_named
from rmqlb.engine.allocate.strategy import BROKER_STRATEGIES, Settings, StrategyFunction, with_function
from rmqlb.engine.arguments import require
from rmqlb.errors import AllocationError
from rmqlb.model.group import BROADCASTING
from rmqlb.model.limits import MOST_CONSUMERS
from rmqlb.model.message_queue import MessageQueue, grouped, sort_client_ids, sort_queues
from rmqlb.model.owners import Assignment, QueuesPerConsumer, Spread
from rmqlb.model.route import TopicRouteData

Owners = Mapping[MessageQueue, tuple[str, ...]]


def counts(owners: Owners, client_ids: Iterable[str]) -> dict[str, int]:
    """Client ID → number of its queues, 0 included."""
    owned = Counter(client_id for own in owners.values() for client_id in own)
    return {client_id: owned[client_id] for client_id in client_ids}


def spread(owners: Owners, client_ids: Sequence[str], *, broadcasting: bool = False) -> Spread:
    """How evenly consumers own the queues; in BROADCASTING, duplicate owners are correct and not counted."""
    processes, of_each = Counter(client_ids), owners.values()
    numbers = list(counts(owners, processes).values())
    assigned = sum(numbers)
    shared = sum(any(processes[client_id] > 1 for client_id in own) for own in of_each)
    return Spread(
        queues=len(owners),
        idle=numbers.count(0),
        unassigned=sum(not own for own in of_each),
        duplicate_owners=0 if broadcasting else sum(len(own) > 1 for own in of_each),
        queues_of_duplicate_client_ids=0 if broadcasting else shared,
        queues_per_consumer=QueuesPerConsumer(min(numbers), assigned / len(numbers), max(numbers)) if numbers else None,
        # One division, so that 3 over 15/7 is exactly the 1.4 that a user writes as a limit.
        imbalance=max(numbers) * len(numbers) / assigned if assigned else None,
        consumers=len(processes),
    )


def minimum_moves(before: Owners, after_queues: Iterable[MessageQueue], client_ids: Iterable[str]) -> int | None:
    """The fewest moves after which consumers own a topic's queues evenly; None without a consumer.

    Even means that every queue has one owner and no consumer has two queues more than another: with q queues and c
    consumers, q % c consumers may keep q // c + 1 of theirs, the others q // c. A move is from one owner to another.
    """
    members, queues = set(client_ids), list(after_queues)
    if not members:
        return None
    owned = [before[queue] for queue in queues if before.get(queue)]
    kept = Counter(owners[0] for owners in owned if len(owners) == 1 and owners[0] in members)
    size, extra = divmod(len(queues), len(members))
    keep = sum(min(number, size) for number in kept.values())
    keep += min(extra, sum(number > size for number in kept.values()))
    return len(owned) - keep


_NO_QUEUE = "the topic has no readable queue"
_EVERYBODY = "BROADCASTING: every consumer reads every queue"
_DOES_NOT_READ = "this consumer does not subscribe to the topic"
_NOT_AT_BROKERS = "brokers assign its queues, but do not have this strategy and return nothing"
_NOT_SUBSCRIBED = "this consumer does not subscribe to the topic, so its share stays unassigned"


class Members(Struct, frozen=True):
    """A group's consumers and how they allocate."""

    client_ids: Annotated[tuple[str, ...], Meta(max_length=MOST_CONSUMERS)]  # in any order; duplicate IDs are kept
    # name, or a function (group, client ID, queues, client IDs) → queues, which goes into the settings under its name
    strategy: str | StrategyFunction
    settings: Settings = Settings()  # constructor arguments of the strategy
    strategy_of: Mapping[str, str | StrategyFunction] = field(default_factory=dict)  # client ID → its own
    subscribed: Mapping[str, Set[str]] = field(default_factory=dict)  # client ID → its topics, where they are known
    broadcasting: bool = False  # each consumer reads every queue, whatever the strategy
    sdk: str = JAVA.name  # client library: `java`, `go` or `cpp`
    sdk_of: Mapping[str, str] = field(default_factory=dict)  # client ID → its own library
    by_broker: bool = False  # brokers assign their queues (`clientRebalance=false`), by two strategies only
    by_broker_of: Mapping[str, bool] = field(default_factory=dict)  # client ID → the same, where it differs

    def __post_init__(self) -> None:
        require(self.settings, Settings, "Members.settings")
        given_sdks(self.sdk, self.sdk_of)
        require(self.strategy_of, Mapping[str, str | StrategyFunction], "Members.strategy_of")
        if isinstance(self.strategy, str) and all(isinstance(each, str) for each in self.strategy_of.values()):
            return
        strategy, settings = with_function(self.strategy, self.settings)
        strategy_of = {}
        for client_id, each in self.strategy_of.items():
            strategy_of[client_id], settings = with_function(each, settings)
        for field_, value in (("strategy", strategy), ("settings", settings), ("strategy_of", strategy_of)):
            force_setattr(self, field_, value)

    @property
    def name(self) -> str:
        """RocketMQ's name of the strategy, with the inner one's; BROADCASTING where no strategy decides."""
        return BROADCASTING if self.broadcasting else full_name(self.group_strategy, self.settings)

    @property
    def group_strategy(self) -> str:
        """The usual strategy as the caller names it; a wrapper may lack its inner strategy."""
        return str(self.strategy)

    def strategy_for(self, client_id: str) -> str:
        return str(self.strategy_of.get(client_id, self.strategy))

    def sdk_for(self, client_id: str) -> Sdk:
        return sdk_named(self.sdk_of.get(client_id, self.sdk)).sdk

    def is_answered(self, client_id: str, strategy: str) -> bool:
        """Whether the consumer computes its share itself, or its brokers have the strategy."""
        return strategy in BROKER_STRATEGIES or not self.by_broker_of.get(client_id, self.by_broker)

    def runs(self, client_id: str) -> tuple[str, Sdk]:
        sdk = self.sdk_for(client_id)
        return sdk.strategy(self.strategy_for(client_id)), sdk

    def known_as(self, former: Mapping[str, str]) -> Members:
        """Give new client IDs the own settings of former ones (new ID → former ID)."""
        of_each: dict[str, Any] = {}
        for name in ("strategy_of", "subscribed", "sdk_of", "by_broker_of"):
            own = getattr(self, name)
            of_each[name] = {**own, **{new: own[old] for new, old in former.items() if old in own}}
        return replace(self, **of_each)

    @property
    def sdks(self) -> tuple[Sdk, ...]:
        """The libraries of the consumers; without consumers the usual one."""
        usual = sdk_named(self.sdk).sdk
        if not self.sdk_of or not self.client_ids:
            return (usual,)
        return tuple(dict.fromkeys(map(self.sdk_for, self.client_ids)))


def runnable(strategies: Iterable[str], members: Members) -> list[str]:
    """The strategies that some consumer can run; C++ consumers run AVG only."""
    return [name for name in strategies if any(sdk.strategy(name) == name for sdk in members.sdks)]


def under(members: Members, strategy: str) -> Members:
    return replace(members, strategy=strategy, strategy_of={})


def owners_at_rest(routes: Iterable[TopicRouteData], members: Members) -> Owners:
    return merged(assign(route, members) for route in routes)


def merged(assignments: Iterable[Assignment]) -> Owners:
    return {queue: owners for assignment in assignments for queue, owners in assignment.owners.items()}


def why_idle(client_id: str, assignments: Iterable[Assignment]) -> str:
    """The reason why a consumer gets no queue, or each reason with its topics."""
    topics = grouped((one.failures.get(client_id) or one.idle.get(client_id, ""), one.topic) for one in assignments)
    if len(topics) == 1:
        return next(iter(topics))
    return "; ".join(f"{', '.join(names)}: {reason}" for reason, names in topics.items())


def assign(route: TopicRouteData, members: Members, *, explain: bool = False) -> Assignment:
    """The owners of a topic's queues once all consumers have rebalanced with the same view (raises AllocationError).

    The consumers are the group's, not the topic's: one that does not subscribe to the topic keeps its place, and nobody
    reads its share. Mirrors `RebalanceImpl.rebalanceByTopic` in CLUSTERING mode.
    """
    if members.broadcasting:
        return _broadcast(route, members, explain=explain)
    must_have(members.group_strategy, () if members.strategy_of else members.sdks)
    queues, ids = route.subscribe_queues(), sort_client_ids(members.client_ids)
    strategies = _strategies(queues, ids, members)
    owners: dict[MessageQueue, list[str]] = {queue: [] for queue in queues}
    idle: dict[str, str] = {}
    failures: dict[str, AllocationError] = {}
    for client_id in dict.fromkeys(ids) if queues else ():
        if not members.is_answered(client_id, members.strategy_for(client_id)):
            idle[client_id] = _NOT_AT_BROKERS
            continue
        strategy = strategies.strategy(members.strategy_for(client_id), members.sdk_for(client_id))
        try:
            share = [queue for queue in strategy.share(client_id) if queue.topic == route.topic]
        except AllocationError as error:
            failures[client_id] = error
            continue
        if not share:
            idle[client_id] = strategy.why_idle(client_id)
        elif route.topic not in members.subscribed.get(client_id, {route.topic}):
            idle[client_id] = _NOT_SUBSCRIBED
        else:
            for queue in share:
                owners.setdefault(queue, []).append(client_id)
    if failures and len(failures) == len(set(ids)):
        first = next(iter(failures.values()))
        raise type(first)(str(first), prefix=f"topic {route.topic}: ", hint=_hint(members)) from first.__cause__
    if not ids or not queues:
        idle = dict.fromkeys(ids, _NO_QUEUE)
    sorted_owners = {q: tuple(own if len(own) < 2 else sort_client_ids(set(own))) for q, own in owners.items()}
    return Assignment(
        topic=route.topic,
        strategy=members.name,
        queues=(*queues, *sort_queues(owners.keys() - set(queues))),
        client_ids=tuple(ids),
        owners=sorted_owners,
        reasons=_reasons(queues, sorted_owners, members, strategies, set(ids) - failures.keys()) if explain else {},
        idle=idle,
        failures={client_id: str(error) for client_id, error in failures.items()},
    )


def _broadcast(route: TopicRouteData, members: Members, *, explain: bool) -> Assignment:
    """Every queue belongs to each consumer of the topic (`rebalanceByTopic` in BROADCASTING mode)."""
    queues, ids = route.subscribe_queues(), sort_client_ids(members.client_ids)
    reads = {each: route.topic in members.subscribed.get(each, {route.topic}) for each in ids}
    owners = dict.fromkeys(queues, tuple(each for each in reads if reads[each]))
    idle = {each: _DOES_NOT_READ if queues else _NO_QUEUE for each in ids if not (queues and reads[each])}
    reasons = dict.fromkeys(queues, _EVERYBODY) if explain else {}
    return Assignment(route.topic, members.name, tuple(queues), tuple(ids), owners, reasons, idle)


def _strategies(queues: list[MessageQueue], ids: list[str], members: Members) -> PreparedStrategies:
    found = PreparedStrategies(queues, ids, members.settings, order=JAVA.order)
    run = {(members.group_strategy, sdk) for sdk in members.sdks}
    if members.strategy_of:
        run |= {(members.strategy_for(client_id), members.sdk_for(client_id)) for client_id in ids}
    try:
        for name, sdk in run if queues else ():
            found.strategy(name, sdk)
    except AllocationError as error:
        raise type(error)(str(error), hint=_hint(members)) from None
    return found


def _hint(members: Members) -> str:
    missing = unset_options(members.group_strategy, members.settings)
    if missing is not None:
        return f"pass the settings of {missing[0]} in your application with {missing[1]}"
    if custom_inside(members.group_strategy, members.settings) is not None:
        return "real clients would log this and keep their queues; --debug shows the full trace"
    return f"{members.name} cannot run with these settings; real clients would log this and keep their queues"


def _reasons(
    queues: Sequence[MessageQueue], owners: Owners, members: Members, strategies: PreparedStrategies, takers: Set[str]
) -> dict[MessageQueue, str]:
    """The reason of each queue by its owners' strategies, or by all strategies in use where no consumer owns it."""
    run = {i: members.runs(i) for i in takers if members.is_answered(i, members.strategy_for(i))}
    if takers and not run:
        return dict.fromkeys(queues, _NOT_AT_BROKERS)
    several = len({sdk.name for _, sdk in run.values()}) > 1
    reasons = {}
    for queue in queues if run else ():
        runners = {run[client_id] for client_id in owners[queue]} or set(run.values())
        whys = {
            f"{name} of {sdk.name}" if several else name: strategies.strategy(name, sdk).why(queue)
            for name, sdk in runners
        }
        is_one = len(whys) == 1 or (several and len(set(whys.values())) == 1)
        texts = [f"{runner}: {whys[runner]}" for runner in sorted(whys)]
        reasons[queue] = next(iter(whys.values())) if is_one else "; ".join(texts)
    return reasons
