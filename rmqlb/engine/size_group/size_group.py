"""The fewest consumers that keep a group within limits, by trying every size."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial, reduce
from itertools import chain, combinations
from math import ceil, comb, inf
from typing import Any, get_args

from msgspec import Struct
from msgspec.structs import replace

from rmqlb.engine.allocate import check_settings, full_name, must_have, names_inside, unset_options
from rmqlb.engine.allocate.rules import BY_PLACE, JAVA, sdk_named
from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.arguments import require
from rmqlb.engine.conditions import Condition, FailOn
from rmqlb.engine.kernel import Draws, stream_key
from rmqlb.engine.plan.changes import Edits, QueueCount, change_routes
from rmqlb.engine.size_group.sizes import (
    AnySizes,
    HashSizes,
    IdSizes,
    Layout,
    Load,
    PlaceSizes,
    SizeFigures,
    future_hosts,
    future_ids,
    heirs_on_rings,
    layout_of,
)
from rmqlb.errors import DataError, UsageError
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.result import TriedCondition
from rmqlb.model.route import TopicRouteData
from rmqlb.model.size_group import (
    MOST_SIZES,
    AfterLoss,
    GroupSize,
    Limit,
    ReplicaCounts,
    SizeCandidate,
    SizedTopic,
    SizeLimits,
    SizePoint,
    SizeQuestion,
)

MOST_LOSSES = 200  # losses of one number of consumers tried in one size; beyond that some are drawn
_STREAM = 20
_SMALL = 1e-9  # 0.07 * 100 is more than 7 in binary
_ORDER: tuple[Limit, ...] = get_args(Limit)

Loads = Mapping[MessageQueue, Load]
Progress = Callable[[int, int], None]


class _Queues(Struct, frozen=True):
    queues_per_broker: int | None
    layout: Layout
    without_broker: Mapping[str, Layout]  # broker → the queues left after its loss


class _Candidate(Struct, frozen=True):
    strategy: str
    queues: _Queues
    sizes: AnySizes
    without_broker: Mapping[str, AnySizes | None]  # None where no queue is left
    hosts: Sequence[str]  # of each consumer, when the loss of a host is tried
    client_ids: Sequence[str]  # a set of IDs, in the order in which consumers join


def size_group(
    group: str | None,
    routes: Sequence[TopicRouteData],
    question: SizeQuestion,
    settings: Settings = Settings(),  # noqa: B008 (it is frozen)
    *,
    progress: Progress | None = None,
) -> GroupSize:
    """Find how many consumers a group should have, and why each size does or does not keep the limits.

    Every size is tried under each strategy with each number of queues. Figures of strategies that use only a consumer's
    place hold for every order of client IDs; other strategies are tried with several sets of IDs.

    Args:
        group: its name.
        routes: its topics; every consumer subscribes to all of them, unless the question says otherwise.
        question: limits and sizes.
        settings: constructor arguments of the strategy.
        progress: called with the number of sizes done, and of all sizes.

    Raises:
        AllocationError: the clients' strategy throws; the text is RocketMQ's.
        DataError: no readable queue, or unknown machines that the strategy needs.
        UsageError: the question contradicts itself, the strategy is unknown, or the search is too large.
    """
    _check(question, settings)
    queues = [_queues(routes, question, number) for number in _numbers(question)]
    if not any(each.layout.topics for each in queues):
        raise DataError("no readable queue in the topics of the group", code="topic-not-found")
    candidates = list(_candidates(queues, question, settings))
    least, most = question.consumers
    curves: list[list[SizePoint]] = [[] for _ in candidates]
    for consumers in range(least, most + 1):
        if progress is not None:
            progress(consumers - least, most + 1 - least)
        for candidate, curve in zip(candidates, curves, strict=True):
            curve.append(_point(candidate, consumers, question.limits, question.seed))
    return _answer(group, routes, question, settings, candidates, curves)


def _check(question: SizeQuestion, settings: Settings) -> None:
    require(question, SizeQuestion, "SizeQuestion")
    check_settings(settings)
    least, most = question.consumers
    for what, span in (("consumers", question.consumers), ("queues per broker", question.queues_per_broker)):
        if span is not None and span[0] > span[1]:
            raise UsageError(f"{what} from {span[0]} to {span[1]}: the range is empty")
    if question.limits.survive >= most:
        raise UsageError(f"survive {question.limits.survive} of at most {most} consumers: no consumer would be left")
    _check_work(question)
    number = (most + 1 - least) * len(_numbers(question)) * len(question.strategies)
    if number > MOST_SIZES:
        hint = "try fewer consumer counts, queue counts or strategies"
        raise UsageError(f"{number} sizes to try, but the limit is {MOST_SIZES}", hint=hint, code="too-many-sizes")
    if not question.strategies:
        raise UsageError("no strategy is named")
    for strategy in question.strategies:
        full_name(strategy, settings)
        must_have(strategy, (sdk_named(question.sdk).sdk,))
        missing = unset_options(strategy, settings)
        if missing is not None:
            raise UsageError(f"{missing[0]} needs {missing[1]}")


def _check_work(question: SizeQuestion) -> None:
    limits, has_work = question.limits, bool(question.work or question.work_of_topics)
    if limits.max_utilisation is not None and not has_work:
        raise UsageError("max_utilisation needs work: the time that listeners need for the inflow of each queue")
    if (limits.outage_ms is None) != (limits.catch_up_ms is None):
        raise UsageError("outage_ms and catch_up_ms need each other")
    if (limits.outage_ms is not None or limits.drain_in_ms is not None) and not has_work:
        raise UsageError("a catch-up time needs work: the time that listeners need for the inflow of each queue")
    if limits.drain_in_ms is not None and question.work.keys() - question.lag.keys():
        raise UsageError("drain_in_ms needs the current lag of each queue")


def _numbers(question: SizeQuestion) -> Sequence[int | None]:
    if question.queues_per_broker is None:
        return (None,)
    least, most = question.queues_per_broker
    return range(least, most + 1)


def _queues(routes: Sequence[TopicRouteData], question: SizeQuestion, number: int | None) -> _Queues:
    changed = tuple(routes)
    loads = {
        queue: Load(work, question.lag.get(queue, 0.0), question.ahead.get(queue.topic, inf))
        for queue, work in question.work.items()
    }
    if number is not None:
        changed, loads = _with_queues(routes, loads, number, question)
    brokers = dict.fromkeys(queue.broker_name for route in changed for queue in route.subscribe_queues())
    lost = {name: _without_broker(changed, loads, name) for name in brokers if question.limits.survive_broker}
    queues_of = partial(map, TopicRouteData.subscribe_queues)
    left = {name: layout_of(queues_of(routes), own, question) for name, (routes, own) in lost.items()}
    return _Queues(number, layout_of(queues_of(changed), loads, question), left)


def _with_queues(
    routes: Sequence[TopicRouteData], loads: Loads, number: int, question: SizeQuestion
) -> tuple[tuple[TopicRouteData, ...], dict[MessageQueue, Load]]:
    """Set the number of read queues on each broker; a changed topic's work is spread evenly.

    Lag stays in its queue. If that is read no more, the lag is never gone, which another queue of the topic shows.
    `work_of_topics` is the work of topics without queues before.
    """
    changed = change_routes(routes, Edits(read_queues=(QueueCount(number),)))
    found: dict[MessageQueue, Load] = {}
    for before, after in zip(routes, changed, strict=True):
        queues, were = after.subscribe_queues(), before.subscribe_queues()
        if loads and queues == were:
            found |= {queue: loads[queue] for queue in queues}
        elif loads or question.work_of_topics:
            total = sum(loads[queue].work for queue in were) if were else question.work_of_topics.get(before.topic, 0.0)
            lag = {queue: loads[queue].lag for queue in were}
            ahead = question.ahead.get(before.topic, inf)
            found |= {queue: Load(total / len(queues), lag.get(queue, 0.0), ahead) for queue in queues}
            if queues and any(lag[queue] for queue in lag.keys() - found.keys()):
                found[queues[0]] = replace(found[queues[0]], lag=inf)
    return changed, found


def _without_broker(
    routes: Sequence[TopicRouteData], loads: Loads, broker_name: str
) -> tuple[tuple[TopicRouteData, ...], dict[MessageQueue, Load]]:
    """The topics after the loss of a broker, whose messages go evenly to a topic's other queues.

    Lag on the broker waits for the broker's return, and does not count.
    """
    changed = change_routes(routes, Edits(remove_brokers=(broker_name,)))
    found: dict[MessageQueue, Load] = {}
    for before, after in zip(routes, changed, strict=True):
        left = after.subscribe_queues()
        if loads and left:
            lost = sum(loads[q].work for q in before.subscribe_queues()) - sum(loads[q].work for q in left)
            found |= {q: replace(loads[q], work=loads[q].work + lost / len(left)) for q in left}
    return changed, found


def _candidates(queues: Sequence[_Queues], question: SizeQuestion, settings: Settings) -> Iterator[_Candidate]:
    for strategy in dict.fromkeys(question.strategies):
        sizes, ids = _sizes_of(strategy, queues, question, settings)
        hosts = future_hosts(question) if question.limits.survive_host else ()
        for each in queues:
            without = {name: sizes(left) if left.topics else None for name, left in each.without_broker.items()}
            yield _Candidate(full_name(strategy, settings), each, sizes(each.layout), without, hosts, ids)


def _sizes_of(
    strategy: str, queues: Sequence[_Queues], question: SizeQuestion, settings: Settings
) -> tuple[Callable[[Layout], AnySizes], Sequence[str]]:
    """The quickest exact method for sizes under the strategy, and a set of client IDs."""
    most, sdk = question.consumers[1], sdk_named(question.sdk).sdk
    as_java = sdk is JAVA or strategy in ("AVG", "AVG_BY_CIRCLE")  # Go cuts the blocks of MACHINE_ROOM from all queues
    if not question.subscribed and strategy in BY_PLACE and strategy not in settings.custom and as_java:
        return lambda layout: PlaceSizes(layout, strategy, settings), [f"{place:05d}" for place in range(most)]
    id_sets = future_ids(strategy, settings, question, most)
    by_hash = names_inside(strategy, settings) == ["CONSISTENT_HASH"] and settings.virtual_nodes > 0 and sdk is JAVA
    if by_hash and not question.subscribed:
        every = {queue for each in queues for queue in chain(*each.layout.topics)}
        of_host = Counter(future_hosts(question)).values() if question.limits.survive_host else ()
        losses = max([question.limits.survive, *of_host])
        heirs = heirs_on_rings(id_sets, len(every), settings.virtual_nodes, losses)
        return lambda layout: HashSizes(layout, heirs, len(id_sets)), id_sets[0]
    return lambda layout: IdSizes(layout, strategy, settings, id_sets), id_sets[0]


def _point(candidate: _Candidate, consumers: int, limits: SizeLimits, seed: int) -> SizePoint:
    """Judge one size; losses are tried unless every set of IDs already fails without a loss."""
    figures = candidate.sizes.figures(consumers)
    trials, enough = len(figures), limits.share
    fails = _broken(figures, limits)
    worst: dict[Limit, tuple[tuple[int, float], AfterLoss]] = {}
    if not candidate.sizes.trials or len(set().union(*fails.values())) < trials:
        for limit, loss, left in _losses(candidate, consumers, limits, seed):
            broken = _broken(left, limits)
            failing = set().union(*broken.values()) if left else set(range(trials))
            if failing:
                fails.setdefault(limit, set()).update(failing)
            badness = len(failing), max((each.imbalance or 0.0 for each in left), default=inf)
            if limit not in worst or badness > worst[limit][0]:
                of_limits = _failing(broken, trials, enough) if left else (limit,)
                lost: dict[str, Any] = {"lost_consumers": 0, "lost_broker": None} | loss
                worst[limit] = badness, AfterLoss(**lost, fails=of_limits, **_at_share(left, enough))
    share = (trials - len(set().union(*fails.values()))) / trials
    after = {limit: found for limit, (_, found) in worst.items()}
    return SizePoint(
        consumers=consumers,
        satisfied=share >= enough,
        fails=() if share >= enough else _failing(fails, trials, enough),
        share=share,
        after_loss=after.get("survive"),
        after_broker_loss=after.get("survive-broker"),
        after_host_loss=after.get("survive-host"),
        **_at_share(figures, enough),
    )


def _broken(figures: Sequence[SizeFigures], limits: SizeLimits) -> dict[Limit, set[int]]:
    """Limit → the numbers of the ID sets that break it."""
    most, used = limits.max_imbalance, limits.max_utilisation
    found: dict[Limit, set[int]] = {}
    for at, each in enumerate(figures):
        breaks: dict[Limit, bool] = {
            "unassigned": each.unassigned > 0,
            "duplicate-owners": each.duplicate_owners > 0,
            "max-imbalance": most is not None and (each.imbalance is None or each.imbalance > most),
            "no-idle": limits.no_idle and each.idle > 0,
            "max-utilisation": used is not None and each.utilisation is not None and each.utilisation > used,
            "catch-up": limits.catch_up_ms is not None and (each.catch_up_ms or 0.0) > limits.catch_up_ms,
            "drain-in": limits.drain_in_ms is not None and (each.drain_ms or 0.0) > limits.drain_in_ms,
        }
        for limit in (limit for limit, broken in breaks.items() if broken):
            found.setdefault(limit, set()).add(at)
    return found


_Lost = tuple[Limit, dict[str, Any], Sequence[SizeFigures]]
"""Limit, what is lost (fields of AfterLoss), and the figures after the loss; none where nothing is left."""


def _losses(candidate: _Candidate, consumers: int, limits: SizeLimits, seed: int) -> Iterator[_Lost]:
    sizes, numbers = candidate.sizes, range(1, min(limits.survive, consumers - 1) + 1)
    exact = not sizes.trials or all(comb(consumers, number) <= MOST_LOSSES for number in numbers)
    for number in numbers:
        choices = lost_consumers(consumers, number, seed) if sizes.trials else [tuple(range(number))]
        left = zip(*(sizes.figures(consumers, at) for at in choices), strict=True)
        loss = {"lost_consumers": number, "exact": exact}
        yield "survive", loss, [reduce(SizeFigures.worse, each) for each in left]
    if limits.survive >= consumers:
        yield "survive", {"lost_consumers": consumers, "exact": exact}, ()
    hosts = candidate.hosts[:consumers]
    for name in dict.fromkeys(hosts):
        lost = [place for place, each in enumerate(hosts) if each == name]
        left_over = sizes.figures(consumers, lost) if len(lost) < consumers else ()
        yield "survive-host", {"lost_consumers": len(lost), "lost_host": name}, left_over
    for broker, others in candidate.without_broker.items():
        yield "survive-broker", {"lost_broker": broker}, () if others is None else others.figures(consumers)


def lost_consumers(consumers: int, number: int, seed: int) -> Iterator[tuple[int, ...]]:
    """The places of consumers that are lost together: every choice, or a random sample of too many."""
    if comb(consumers, number) <= MOST_LOSSES:
        yield from combinations(range(consumers), number)
        return
    draws = Draws(stream_key(seed, consumers, _STREAM))
    for _ in range(MOST_LOSSES):
        lost: set[int] = set()
        while len(lost) < number:
            lost.add(draws.below(consumers))
        yield tuple(sorted(lost))


def _failing(fails: Mapping[Limit, set[int]], trials: int, enough: float) -> tuple[Limit, ...]:
    """Limits that too few sets of IDs keep; without any, all broken limits."""
    alone = tuple(limit for limit in _ORDER if (trials - len(fails.get(limit, ()))) / trials < enough)
    return alone or tuple(limit for limit in _ORDER if fails.get(limit))


def _at_share(figures: Sequence[SizeFigures], share: float) -> dict[str, Any]:
    """The smallest value of each figure that this share of the sets of IDs does not exceed."""
    found: dict[str, Any] = {}
    for name in SizeFigures.__struct_fields__:
        values = sorted(value for each in figures if (value := getattr(each, name)) is not None)
        if not values:
            found[name] = 0 if name in ("idle", "unassigned", "duplicate_owners") else None
            continue
        value = values[max(ceil(share * len(values) - _SMALL), 1) - 1]
        found[name] = None if value == inf else value
    return found


def _answer(
    group: str | None,
    routes: Sequence[TopicRouteData],
    question: SizeQuestion,
    settings: Settings,
    candidates: Sequence[_Candidate],
    curves: Sequence[Sequence[SizePoint]],
) -> GroupSize:
    limits = question.limits
    best = [min(curve, key=lambda point: _rank(point, limits)) for curve in curves]
    order = range(len(candidates))
    chosen = min(order, key=lambda at: (*_rank(best[at], limits), candidates[at].queues.queues_per_broker or 0, at))
    curve, candidate = curves[chosen], candidates[chosen]
    allowed = tuple(point.consumers for point in curve if point.satisfied)
    trials, layout = candidate.sizes.trials, candidate.queues.layout
    ids, numbers = candidate.client_ids[: best[chosen].consumers], {each[0].topic: len(each) for each in layout.topics}
    owners = IdSizes(layout, candidate.strategy, settings, [ids]).owners(ids)
    return GroupSize(
        group=group,
        consumers=min(allowed, default=None),
        strategy=candidate.strategy,
        queues_per_broker=candidate.queues.queues_per_broker,
        curve=tuple(curve),
        replica_counts=ReplicaCounts(min(allowed, default=None), max(allowed, default=None), allowed),
        best=best[chosen],
        limits=limits,
        topics=tuple(SizedTopic(now.topic, numbers.get(now.topic, 0), len(now.subscribe_queues())) for now in routes),
        consumers_now=len(question.present) or None,
        candidates=tuple(map(_result_of, candidates, curves, best)),
        every_order=not trials,
        trials=trials,
        threads=question.threads if question.work else None,
        orderly=question.orderly,
        sdk=question.sdk,
        mixed_subscriptions=bool(question.subscribed),
        backlogs=tuple(layout.sized_backlogs(best[chosen], owners)),
        losses="counted" if all(p.after_loss is None or p.after_loss.exact for p in curve) else "drawn",
    )


def _result_of(tried: _Candidate, points: Sequence[SizePoint], best: SizePoint) -> SizeCandidate:
    consumers, number = best.consumers if best.satisfied else None, sum(point.satisfied for point in points)
    return SizeCandidate(tried.strategy, tried.queues.queues_per_broker, consumers, number, best)


def _rank(one: SizePoint, limits: SizeLimits) -> tuple[int, int, float, float, float, float, int]:
    """Sort key, best first: all limits kept, failures only after a loss, without a loss, no queue left after a loss."""
    if one.satisfied:
        return 0, 0, 0.0, 0.0, 0.0, 0.0, one.consumers
    imbalance = inf if one.imbalance is None else one.imbalance
    times = (limits.outage_ms, one.catch_up_ms), (limits.drain_in_ms, one.drain_ms)
    slowest = max((inf if ms is None else ms for wanted, ms in times if wanted is not None), default=0.0)
    used = 0.0 if one.utilisation is None or "max-utilisation" not in one.fails else one.utilisation
    losses = (
        (limits.survive, one.after_loss),
        (limits.survive_host, one.after_host_loss),
        (limits.survive_broker, one.after_broker_loss),
    )
    left = [2 if loss is None else 3 if loss.imbalance is None else 1 for wanted, loss in losses if wanted]
    return max(left, default=1), len(one.fails), -one.share, slowest, used, imbalance, one.consumers


_FIGURES = ("unsatisfied", "consumers", "queues-per-broker", "imbalance", "idle", "catch-up-ms", "drain-ms")
SIZE_FIGURES = FailOn(_FIGURES, flags=("unsatisfied",))


def try_on_size(condition: Condition, size: GroupSize) -> TriedCondition:
    """Whether the condition is met; most figures are those of the nearest size if none keeps the limits."""
    values: dict[str, float | None] = {
        "unsatisfied": int(size.consumers is None),
        "consumers": size.consumers,
        "queues-per-broker": None if size.consumers is None else size.queues_per_broker,
        "imbalance": size.best.imbalance,
        "idle": size.best.idle,
        **{f"{each.limit.removesuffix('-in')}-ms": inf if each.ms is None else each.ms for each in size.backlogs},
    }
    return condition.try_on(values.get(condition.name))
