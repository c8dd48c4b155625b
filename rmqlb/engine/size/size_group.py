"""The fewest consumers that satisfy what is asked for: every size that may be, not a search that could miss one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Literal

from msgspec import Struct

from rmqlb.engine.allocate import check_settings, full_name, must_have, names_inside, unset_options
from rmqlb.engine.allocate.rules import BY_PLACE
from rmqlb.engine.allocate.sdks import JAVA, sdk_named
from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.arguments import require
from rmqlb.engine.size.by_hash import HashSizes, growing_rings
from rmqlb.engine.size.by_ids import IdSizes
from rmqlb.engine.size.by_place import PlaceSizes
from rmqlb.engine.size.figures import Sizes
from rmqlb.engine.size.future_ids import future_ids
from rmqlb.engine.size.layouts import Layout, brokers_of, layout, with_queues, without_broker
from rmqlb.engine.size.points import Tried, point
from rmqlb.errors import DataError, UsageError
from rmqlb.model.group_size import (
    MOST_SIZES,
    GroupSize,
    ReplicaCounts,
    SizeCandidate,
    SizedTopic,
    SizeLimits,
    SizePoint,
    SizeQuestion,
)
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.route import TopicRouteData

Progress = Callable[[int, int], None]


class _Queues(Struct, frozen=True):
    """The group's topics with a number of queues, and what the loss of each broker would leave."""

    queues_per_broker: int | None
    routes: tuple[TopicRouteData, ...]
    layout: Layout
    of_brokers: tuple[tuple[str, Layout], ...]


class _Candidate(Struct, frozen=True):
    strategy: str
    queues: _Queues
    tried: Tried


def size_group(
    group: str | None,
    routes: Sequence[TopicRouteData],
    question: SizeQuestion,
    settings: Settings = Settings(),  # noqa: B008 (it is frozen)
    *,
    progress: Progress | None = None,
) -> GroupSize:
    """How many consumers a group should have, and for each size that was looked at why or why not.

    Every size from the fewest to the most is looked at, under each strategy with each number of queues. Of strategies
    for which only a consumer's place counts the figures hold for every order of client IDs; the others are tried with
    several sets of IDs.

    Args:
        group: its name.
        routes: its topics; every consumer subscribes to each of them, unless the question says otherwise.
        question: what is asked.
        settings: what the strategy objects are constructed with.
        progress: called with how many sizes are done, and how many there are.

    Raises:
        AllocationError: the clients' strategy throws; the text is RocketMQ's.
        DataError: there is no readable queue, or machines are not known that the strategy looks at.
        UsageError: the question contradicts itself, or there is no such strategy.
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
            curve.append(point(candidate.tried, consumers, question.limits, question.seed))
    return _answer(group, routes, question, candidates, curves)


def _check(question: SizeQuestion, settings: Settings) -> None:
    require(question, SizeQuestion, "SizeQuestion")
    check_settings(settings)
    least, most = question.consumers
    if least > most:
        raise UsageError(f"consumers from {least} to {most}: there are none between")
    if question.limits.survive >= most:
        raise UsageError(f"survive {question.limits.survive} of at most {most} consumers: no consumer would be left")
    queues = question.queues_per_broker
    if queues is not None and queues[0] > queues[1]:
        raise UsageError(f"queues per broker from {queues[0]} to {queues[1]}: there are none between")
    if question.limits.max_utilisation is not None and not (question.work or question.work_of_topics):
        raise UsageError("max_utilisation needs work: how long listeners consume what comes into each queue")
    number = (most + 1 - least) * len(_numbers(question)) * len(question.strategies)
    if number > MOST_SIZES:
        raise UsageError(
            f"{number} sizes to look at, and at most {MOST_SIZES} are",
            hint="ask for fewer consumers, fewer numbers of queues, or fewer strategies",
            code="too-many-sizes",
        )
    if not question.strategies:
        raise UsageError("no strategy is named")
    for strategy in question.strategies:
        full_name(strategy, settings)
        must_have(strategy, (sdk_named(question.sdk).sdk,))
        missing = unset_options(strategy, settings)
        if missing is not None:
            raise UsageError(f"{missing[0]} cannot go without {missing[1]}")


def _numbers(question: SizeQuestion) -> Sequence[int | None]:
    if question.queues_per_broker is None:
        return (None,)
    least, most = question.queues_per_broker
    return range(least, most + 1)


def _queues(routes: Sequence[TopicRouteData], question: SizeQuestion, number: int | None) -> _Queues:
    work = question.work
    changed = tuple(routes)
    if number is not None:
        changed, work = with_queues(routes, work, number, question.work_of_topics)
    lost = brokers_of(changed) if question.limits.survive_broker else ()
    orderly = question.orderly
    left = tuple((broker, layout(*without_broker(changed, work, broker), orderly=orderly)) for broker in lost)
    return _Queues(number, changed, layout(changed, work, orderly=orderly), left)


def _candidates(queues: Sequence[_Queues], question: SizeQuestion, settings: Settings) -> Iterator[_Candidate]:
    for strategy in dict.fromkeys(question.strategies):
        sizes = _sizes_of(strategy, queues, question, settings)
        for each in queues:
            of_brokers = {name: sizes(left) if left.topics else None for name, left in each.of_brokers}
            yield _Candidate(full_name(strategy, settings), each, Tried(sizes(each.layout), of_brokers))


def _sizes_of(
    strategy: str, queues: Sequence[_Queues], question: SizeQuestion, settings: Settings
) -> Callable[[Layout], Sizes]:
    """What gives the sizes of a layout under the strategy, the quickest way that is exact."""
    threads, most, sdk = question.threads, question.consumers[1], sdk_named(question.sdk).sdk
    as_java = sdk is JAVA or strategy in (
        "AVG",
        "AVG_BY_CIRCLE",
    )  # Go cuts the blocks of MACHINE_ROOM out of all queues
    if not question.subscribed and strategy in BY_PLACE and strategy not in settings.custom and as_java:
        return lambda each: PlaceSizes(each, strategy, settings, threads, sdk)
    id_sets = future_ids(strategy, settings, question, most)
    by_hash = names_inside(strategy, settings) == ["CONSISTENT_HASH"] and settings.virtual_nodes > 0 and sdk is JAVA
    if by_hash and not question.subscribed:
        every: dict[MessageQueue, int] = {}
        for layouts in queues:
            for queue in layouts.layout.queues:
                every.setdefault(queue, len(every))
        rings = growing_rings(id_sets, list(every), settings.virtual_nodes, question.limits.survive)
        return lambda each: HashSizes(each, rings, every, threads)
    return lambda each: IdSizes(each, strategy, settings, threads, id_sets, sdk, question.subscribed)


def _answer(
    group: str | None,
    routes: Sequence[TopicRouteData],
    question: SizeQuestion,
    candidates: Sequence[_Candidate],
    curves: Sequence[Sequence[SizePoint]],
) -> GroupSize:
    limits = question.limits
    best = [_best(curve, limits) for curve in curves]
    order = range(len(candidates))
    chosen = min(order, key=lambda at: (*_rank(best[at], limits), candidates[at].queues.queues_per_broker or 0, at))
    curve, candidate = curves[chosen], candidates[chosen]
    allowed = tuple(each.consumers for each in curve if each.satisfied)
    trials = candidate.tried.sizes.trials
    return GroupSize(
        group=group,
        consumers=min(allowed, default=None),
        strategy=candidate.strategy,
        queues_per_broker=candidate.queues.queues_per_broker,
        curve=tuple(curve),
        replica_counts=ReplicaCounts(min(allowed, default=None), max(allowed, default=None), allowed),
        best=best[chosen],
        limits=limits,
        topics=tuple(
            SizedTopic(now.topic, len(then.subscribe_queues()), len(now.subscribe_queues()))
            for now, then in zip(routes, candidate.queues.routes, strict=True)
        ),
        consumers_now=len(question.present) or None,
        candidates=tuple(
            SizeCandidate(
                each.strategy,
                each.queues.queues_per_broker,
                found.consumers if found.satisfied else None,
                sum(one.satisfied for one in its),
                found,
            )
            for each, its, found in zip(candidates, curves, best, strict=True)
        ),
        every_order=not trials,
        trials=trials,
        threads=question.threads if question.work else None,
        orderly=question.orderly,
        sdk=question.sdk,
        mixed_subscriptions=bool(question.subscribed),
        losses=_how_losses_are_known(candidate.tried.sizes, curve),
    )


def _how_losses_are_known(sizes: Sizes, curve: Sequence[SizePoint]) -> Literal["counted", "bounded", "drawn"]:
    if all(point.after_loss is None or point.after_loss.exact for point in curve):
        return "counted"
    return "drawn" if sizes.bound(curve[-1].consumers, 1) is None else "bounded"


def _best(curve: Sequence[SizePoint], limits: SizeLimits) -> SizePoint:
    """The fewest consumers that satisfy all, otherwise the size that comes nearest."""
    return min(curve, key=lambda point: _rank(point, limits))


def _rank(one: SizePoint, limits: SizeLimits) -> tuple[int, int, float, float, int]:
    """First what satisfies all; last what leaves nothing after a loss, and before it what needs no loss to fail."""
    if one.satisfied:
        return 0, 0, 0.0, 0.0, one.consumers
    imbalance = float("inf") if one.imbalance is None else one.imbalance
    asked = ((limits.survive, one.after_loss), (limits.survive_broker, one.after_broker_loss))
    left = [2 if loss is None else 3 if loss.imbalance is None else 1 for number, loss in asked if number]
    return max(left, default=1), len(one.fails), -one.share, imbalance, one.consumers
