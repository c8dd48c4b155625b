"""The figures of a group of one size: its fullest and idle consumers, for every tried set of client IDs.

Strategies that use only a consumer's place (AVG, AVG_BY_CIRCLE, MACHINE_ROOM) need no IDs (`PlaceSizes`). Others are
tried with several sets of future IDs (`IdSizes`); under CONSISTENT_HASH no size needs a new ring (`HashSizes`). All
give figures of the first consumers minus those at the lost places, for each set of IDs (raise AllocationError).
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from itertools import chain
from math import inf
from typing import Any

from msgspec import Struct
from msgspec.structs import astuple, replace

from rmqlb.engine.allocate import names_inside, prepare
from rmqlb.engine.allocate.consistent_hash import check_ring, ring_hash
from rmqlb.engine.allocate.machines import host, room
from rmqlb.engine.allocate.rules import RULES, sdk_named
from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.backlog import Flow, Pool, backlog, gone_in
from rmqlb.engine.kernel import Draws, stream_key
from rmqlb.errors import DataError, UsageError
from rmqlb.model.message_queue import MessageQueue, sort_client_ids, sort_queues
from rmqlb.model.size_group import SizedBacklog, SizePoint, SizeQuestion, TimeLimit

_STREAM = 19
_MOST_STEPS = 20_000_000  # entries of all rings, and searches of a queue among a consumer's entries
_RING = 1 << 32
Heirs = Callable[[int, MessageQueue], Sequence[int]]


class Load(Struct, frozen=True):
    """The messages of a queue, in the time that one thread takes for them."""

    work: float  # of those that come in, in seconds per second
    lag: float  # of those that wait, in seconds
    ahead: float = inf  # of those that a consumer pulls ahead, in seconds


class Layout(Struct, frozen=True, dict=True):
    """The topics of a group with readable queues."""

    topics: tuple[tuple[MessageQueue, ...], ...]
    loads: Mapping[MessageQueue, Load]  # of each queue, in their order; empty when unknown
    question: SizeQuestion

    @cached_property
    def one_thread(self) -> float:
        """The work of a queue in an orderly group, which one thread does alone (`ProcessQueue`'s lock)."""
        works = (load.work for load in self.loads.values())
        return max(works, default=0.0) if self.question.orderly else 0.0

    def backlogs(self, loads: Sequence[Load]) -> dict[TimeLimit, list[Load]]:
        """The lag of queues in the requested cases: after the outage, and now."""
        found: dict[TimeLimit, list[Load]] = {}
        limits = self.question.limits
        if limits.outage_ms is not None:
            outage_s = limits.outage_ms / 1000
            found["catch-up"] = [replace(load, lag=load.work * outage_s) for load in loads]
        if limits.drain_in_ms is not None:
            found["drain-in"] = [*loads]
        return found

    def drain_s(self, share: Sequence[Load]) -> float:
        """The time until a consumer has no lag in its queues; inf is never."""
        lag, work = sum(load.lag for load in share), sum(load.work for load in share)
        orderly, threads = self.question.orderly, self.question.threads
        if lag == inf or (not orderly and self.question.batch == 1):
            return _or_never(gone_in(lag, work, threads))
        if orderly and len(share) <= threads:
            return max((_or_never(gone_in(load.lag, load.work, 1.0)) for load in share), default=0.0)
        flows = {MessageQueue("", "", n): self.flow(load, ("",)) for n, load in enumerate(share)}
        return _or_never(backlog(flows, {"": Pool(threads, orderly)}).group.gone_s)

    def flow(self, load: Load, owners: tuple[str, ...]) -> Flow:
        """The flow of a queue in thread time, in which a message that comes alone takes a second."""
        return Flow(load.work, 1.0, load.lag, owners, self.question.batch, load.ahead)

    def sized_backlogs(self, point: SizePoint, owners: Mapping[MessageQueue, Sequence[str]]) -> Iterator[SizedBacklog]:
        """The queue whose lag ends last at this size, and the queue that no number of consumers makes faster."""
        times: dict[TimeLimit, float | None] = {"catch-up": point.catch_up_ms, "drain-in": point.drain_ms}
        pool = Pool(self.question.threads, self.question.orderly)
        pools = {owner: pool for own in owners.values() for owner in own}
        for limit, of_queues in self.backlogs([*self.loads.values()]).items():
            loads = dict(zip(self.loads, of_queues, strict=True))
            alone = {queue: self.drain_s([load]) for queue, load in loads.items()}
            slowest = max(alone, key=lambda queue: alone[queue])
            flows = {q: self.flow(load, tuple(owners.get(q, ()))) for q, load in loads.items()}
            last = slowest if any(load.lag == inf for load in of_queues) else backlog(flows, pools).last
            alone_ms = None if alone[slowest] == inf else 1000 * alone[slowest]
            of_topic = [load.work for queue, load in loads.items() if queue.topic == slowest.topic]
            mean = sum(of_topic) / len(of_topic)
            over_mean = loads[slowest].work / mean if mean else 1.0
            yield SizedBacklog(limit, times[limit], last, alone_ms, slowest, over_mean)

    def figures(
        self,
        consumers: int,
        most: int,
        owned: int,
        idle: int,
        shares: Sequence[Sequence[Load]],
        unassigned: int = 0,
        duplicate_owners: int = 0,
    ) -> SizeFigures:
        """The figures of these shares: the queues of each consumer, at least of the busiest one."""
        imbalance = most * consumers / owned if owned else None
        if not self.loads:
            return SizeFigures(imbalance, idle, None, unassigned, duplicate_owners)
        busiest = max(sum(load.work for load in share) for share in shares)
        used = _rounded(max(busiest / self.question.threads, self.one_thread))
        slowest: dict[TimeLimit, float] = {}
        for share in shares:
            for limit, own in self.backlogs(share).items():
                slowest[limit] = max(slowest.get(limit, 0.0), _rounded(1000 * self.drain_s(own)))
        times = slowest.get("catch-up"), slowest.get("drain-in")
        return SizeFigures(imbalance, idle, used, unassigned, duplicate_owners, *times)


def _rounded(value: float) -> float:
    """Round to nine digits, because sums give 0.7999999999 for 0.8."""
    return float(f"{value:.9g}")


def _or_never(time_s: float | None) -> float:
    return inf if time_s is None else time_s


def layout_of(
    topics: Iterable[Sequence[MessageQueue]], loads: Mapping[MessageQueue, Load], question: SizeQuestion
) -> Layout:
    found = tuple(tuple(queues) for queues in topics if queues)
    return Layout(found, {queue: loads[queue] for queues in found for queue in queues} if loads else {}, question)


class SizeFigures(Struct, frozen=True):
    imbalance: float | None  # as a plan measures it; None if no queue has an owner
    idle: int
    utilisation: float | None  # of the busiest consumer; None when no work is given
    unassigned: int
    duplicate_owners: int
    catch_up_ms: float | None = None  # until the slowest consumer has no lag; inf: never; None: not asked for
    drain_ms: float | None = None

    def worse(self, other: SizeFigures) -> SizeFigures:
        pairs = zip(astuple(self), astuple(other), strict=True)
        worst: list[Any] = [None if None in pair else max(pair) for pair in pairs]
        return SizeFigures(*worst)


class PlaceSizes:
    """Sizes from the numbers of queues.

    For m queues and n consumers each place has m // n queues, and in each topic the places at the front have one more.
    So the first consumer has the most and the last one the fewest, whatever the IDs are. The loss of any k consumers
    leaves n - k places.
    """

    trials = 0  # all losses of equally many consumers are equal, and figures have one entry

    def __init__(self, layout: Layout, strategy: str, settings: Settings) -> None:
        sdk, topics = sdk_named(layout.question.sdk).sdk, layout.topics
        for queues in topics:
            prepare(strategy, queues, ["a"], settings, sdk).share("a")  # throws what clients throw
        if strategy == "MACHINE_ROOM":  # queues of other rooms have no owner
            rooms = settings.consumer_idcs or ()
            topics = tuple(tuple(queue for queue in each if room(queue.broker_name) in rooms) for each in topics)
        self._layout = layout_of(topics, layout.loads, layout.question)
        self._numbers = [len(queues) for queues in self._layout.topics]
        self._unassigned = sum(map(len, layout.topics)) - sum(self._numbers)
        self._strategy, self._settings = strategy, settings

    def figures(self, consumers: int, lost: Sequence[int] = ()) -> Sequence[SizeFigures]:
        left, loads = consumers - len(lost), self._layout.loads
        most = sum(-(-number // left) for number in self._numbers)
        idle = max(left - max(self._numbers, default=0), 0)
        topics = [[loads[queue] for queue in queues] for queues in self._layout.topics if loads]
        busiest = [load for topic in topics for load in topic[: -(-len(topic) // left)]]
        found = self._layout.figures(left, most, sum(self._numbers), idle, [busiest], self._unassigned)
        if all(len(set(topic)) < 2 for topic in topics):
            return [found]
        ids = [f"{place:05d}" for place in range(left)]
        (by_id,) = IdSizes(self._layout, self._strategy, self._settings, [ids]).figures(left)
        times = {"catch_up_ms": by_id.catch_up_ms, "drain_ms": by_id.drain_ms}
        return [replace(found, utilisation=by_id.utilisation, **times)]


class IdSizes:
    def __init__(self, layout: Layout, strategy: str, settings: Settings, id_sets: Sequence[Sequence[str]]) -> None:
        self.trials = len(id_sets)
        self._layout, self._strategy, self._settings, self._id_sets = layout, strategy, settings, id_sets
        self._sdk, self._subscribed = sdk_named(layout.question.sdk).sdk, layout.question.subscribed
        self._queues = [sort_queues(queues, self._sdk.order) for queues in layout.topics]

    def figures(self, consumers: int, lost: Sequence[int] = ()) -> Sequence[SizeFigures]:
        gone = frozenset(lost)
        sets = [tuple(each for at, each in enumerate(ids[:consumers]) if at not in gone) for ids in self._id_sets]
        found = {ids: self._figures(ids) for ids in dict.fromkeys(sets)}
        return [found[ids] for ids in sets]

    def owners(self, client_ids: Sequence[str]) -> dict[MessageQueue, list[str]]:
        ids, owners = sort_client_ids(client_ids, self._sdk.order), dict[MessageQueue, list[str]]()
        for queues in self._queues:
            allocated = prepare(self._strategy, queues, ids, self._settings, self._sdk)
            for client_id in ids:  # one without the topic never computes its share, which the others leave to it
                if queues[0].topic in self._subscribed.get(client_id, (queues[0].topic,)):
                    for queue in allocated.share(client_id):
                        owners.setdefault(queue, []).append(client_id)
        return owners

    def _figures(self, client_ids: Sequence[str]) -> SizeFigures:
        owners, shares = self.owners(client_ids), {client_id: list[Load]() for client_id in client_ids}
        numbers = Counter(chain.from_iterable(owners.values()))
        for queue, own in owners.items() if self._layout.loads else ():
            for client_id in own:
                shares[client_id].append(self._layout.loads[queue])
        duplicates, unassigned = sum(len(own) > 1 for own in owners.values()), sum(map(len, self._queues)) - len(owners)
        most, idle = max(numbers.values(), default=0), len(client_ids) - len(numbers)
        of_each = [*shares.values()]
        return self._layout.figures(len(client_ids), most, numbers.total(), idle, of_each, unassigned, duplicates)


class HashSizes:
    """Sizes under CONSISTENT_HASH, equal to those of `IdSizes`; no size and no loss needs a new ring.

    The owner of a queue is the consumer with the next entry at or after the queue's hash, so each queue has an order of
    consumers: without the nearest one, the next one is the owner.
    """

    def __init__(self, layout: Layout, heirs: Heirs, trials: int) -> None:
        self.trials, self._layout = trials, layout
        queues = [queue for topic in layout.topics for queue in topic]
        self._heirs = [[heirs(trial, queue) for queue in queues] for trial in range(trials)]
        self._loads = [*layout.loads.values()]
        self._owned: list[list[list[int]]] = [[]] * trials  # set of IDs → consumer → numbers of its queues

    def figures(self, consumers: int, lost: Sequence[int] = ()) -> Sequence[SizeFigures]:
        if len(self._owned[0]) != consumers:
            self._owned = [_owned(consumers, heirs) for heirs in self._heirs]
        gone = frozenset(lost)
        return [self._figures(consumers, trial, gone) for trial in range(self.trials)]

    def _figures(self, consumers: int, trial: int, lost: frozenset[int]) -> SizeFigures:
        owned, heirs = self._owned[trial], self._heirs[trial]
        if lost:
            owned = [[] if place in lost else queues for place, queues in enumerate(owned)]
            for queue in (queue for place in lost for queue in self._owned[trial][place]):
                heir = next(place for place in heirs[queue] if place < consumers and place not in lost)
                owned[heir] = [*owned[heir], queue]
        numbers = list(map(len, owned))
        shares = [[self._loads[queue] for queue in queues] for queues in owned] if self._loads else []
        idle = numbers.count(0) - len(lost)
        return self._layout.figures(consumers - len(lost), max(numbers), len(heirs), idle, shares)


def _owned(consumers: int, heirs: Sequence[Sequence[int]]) -> list[list[int]]:
    owned: list[list[int]] = [[] for _ in range(consumers)]
    for queue, places in enumerate(heirs):
        owned[next(place for place in places if place < consumers)].append(queue)
    return owned


AnySizes = PlaceSizes | IdSizes | HashSizes


def heirs_on_rings(id_sets: Sequence[Sequence[str]], queues: int, virtual_nodes: int, losses: int) -> Heirs:
    """For each set of IDs and each queue: the consumers by their places in the set, nearest on the ring first.

    A consumer is left out if more than `losses` nearer ones join before it. Raises UsageError where all that would take
    minutes for so many queues.
    """
    consumers = len(id_sets[0])
    check_ring(consumers, virtual_nodes)
    steps = max(consumers * virtual_nodes, consumers * queues, (losses + 1) * queues)
    if steps * len(id_sets) > _MOST_STEPS:
        sets = f"{len(id_sets)} sets of {consumers} client IDs with {virtual_nodes} entries each on the ring"
        text = f"of CONSISTENT_HASH, {queues} queues and {losses} lost consumers are too many combinations to try"
        hint = f"reduce them with --set id-sets={max(_MOST_STEPS // steps, 1)}"
        raise UsageError(f"{sets} {text}", hint=hint, code="ring-too-large")

    @cache
    def entries(trial: int) -> list[tuple[list[int], int, int]]:
        """The ring entries of each consumer: hashes, its place in reverse order of IDs, and its place in the set."""
        order = {client_id: -place for place, client_id in enumerate(sort_client_ids(id_sets[trial]))}
        rings = (sorted(ring_hash(f"{each}-{number}") for number in range(virtual_nodes)) for each in id_sets[trial])
        return [([*ring, ring[0] + _RING], order[id_sets[trial][place]], place) for place, ring in enumerate(rings)]

    @cache
    def heirs(trial: int, queue: MessageQueue) -> list[int]:
        at, found = ring_hash(str(queue)), list[int]()
        # If two entries have one hash, the entry of the later ID counts (`ConsistentHashRouter.addNode`).
        nearest = sorted((ring[bisect_left(ring, at)] - at, order, place) for ring, order, place in entries(trial))
        for _, _, place in nearest:
            if sum(other < place for other in found) <= losses:
                found.append(place)
        return found

    return heirs


def future_ids(strategy: str, settings: Settings, question: SizeQuestion, number: int) -> list[list[str]]:
    """Distinct client IDs for each trial, in the order in which consumers join (raises DataError).

    A group of n consumers has the first n IDs, so a larger group is a smaller one that has grown. IDs have the form of
    `ClientConfig.buildMQClientId` and `changeInstanceNameToPID`, `IP@PID#NANOSECONDS`. Where machines or zones decide,
    IDs are on machines of the present consumers; where CONFIG lists name consumers, these come first in random order.
    With different subscriptions the present consumers come first, in the order in which `plan-rebalance --scale-to`
    keeps them.
    """
    names = names_inside(strategy, settings)
    config = settings.config if "CONFIG" in names and isinstance(settings.config, Mapping) else {}
    machines = sorted({host(client_id) for client_id in question.present})
    placed = next((name for name in names if name in RULES and RULES[name].decides in ("machine", "name")), None)
    if placed is not None and placed != "CONFIG" and not machines:
        text = f"{placed} uses the machines of consumers; rmqlb takes those of future consumers from current ones"
        hint = "use a source that has the consumers of the group, or compare other strategies"
        raise DataError(f"{text}: no machine is known", hint=hint, code="consumers-unknown")
    first = sort_client_ids(question.present) if question.subscribed else []
    found = []
    for trial in range(question.trials):
        draws = Draws(stream_key(question.seed, trial, _STREAM))
        known = [client_id for client_id in sort_client_ids(config) if client_id not in first]
        places = future_hosts(question)[len(first) + len(known) :] if question.limits.survive_host else ()
        shuffled = [known.pop(draws.below(len(known))) for _ in range(len(known))]
        drawn = _random_ids(draws, machines if placed else (), number, places if placed else ())
        found.append([*first, *shuffled, *drawn][:number])
    return found


def future_hosts(question: SizeQuestion) -> list[str]:
    """The host of each consumer, in the order in which consumers join (raises DataError).

    The hosts of the present consumers take turns, each as often as it has consumers now. Present consumers that stay in
    every size keep their hosts.
    """
    now = [host(client_id) for client_id in sort_client_ids(question.present)]
    if not now or not all("@" in client_id for client_id in question.present):
        text = "the loss of a host: the hosts of the consumers are unknown"
        hint = "use a source that has the consumers of the group, or pass the number of lost consumers with --survive K"
        raise DataError(text, hint=hint, code="consumers-unknown")
    turns = sorted(range(len(now)), key=lambda place: (now[:place].count(now[place]), place))
    one_round = now if question.subscribed else [now[place] for place in turns]
    return [one_round[place % len(now)] for place in range(question.consumers[1])]


def _random_ids(draws: Draws, machines: Sequence[str], number: int, places: Sequence[str] = ()) -> Iterator[str]:
    for at in range(number):
        first, second, third = (draws.below(256) for _ in range(3))
        address = machines[draws.below(len(machines))] if machines else f"10.{first}.{second}.{third}"
        address = places[at] if at < len(places) else address
        yield f"{address}@{1 + draws.below(99_999)}#{draws.below(10**15)}"
