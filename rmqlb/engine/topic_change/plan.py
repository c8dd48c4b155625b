"""The steps of a change, always the same ones: run again on the way, the plan shows which of them are done."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from msgspec.structs import replace

from rmqlb.engine.rebalance.profile import Clocks
from rmqlb.engine.topic_change.commands import commands_between
from rmqlb.engine.topic_change.effects import (
    Keys,
    PlannedGroup,
    drain_ms,
    group_effect,
    moved_keys,
    out_of_order,
    uniform_share,
)
from rmqlb.engine.topic_change.target import Routes, TopicRequest, describe
from rmqlb.model.message_queue import MessageQueue, QueueName, sort_queues
from rmqlb.model.route import TopicRouteData
from rmqlb.model.topic_change import AdminCommand, BrokerQueues, Step, StepKind, TopicChangePlan, WaitFor, WaitKind

_POLL_MS = Clocks().route_poll_us / 1000
_NOTICED_MS = _POLL_MS + Clocks().rebalance_wait_us / 1000
"""Until consumers own what is new: the longest wait for a route poll, and then for a rebalance."""


def plan_topic(
    routes: Routes,
    request: TopicRequest,
    groups: Sequence[PlannedGroup] | None,
    keys: Keys | None = None,
    *,
    name_servers: str | None = None,
    message_type: str | None = None,
) -> TopicChangePlan:
    """The steps and what each of them does (raises DataError, AllocationError).

    Args:
        routes: the topic's route now and after each change.
        request: what is asked for.
        groups: the groups that read the topic; None when they are not known.
        keys: of the producers; None when they are not known.
        name_servers: for the commands' `-n`; None leaves it out.
        message_type: the topic's, for brokers that have not got it; None leaves it out.
    """

    def commands(before: TopicRouteData, after: TopicRouteData) -> tuple[AdminCommand, ...]:
        return tuple(commands_between(before, after, name_servers, message_type))

    steps = _numbered(_steps(routes, groups, keys or Keys(), commands, request.ordered))
    times = [step.estimated_ms for step in steps]
    return TopicChangePlan(
        topic=routes.now.topic,
        changes=describe(request),
        ordered=request.ordered,
        readable_queues_before=len(routes.now.subscribe_queues()),
        readable_queues_after=len(routes.target.subscribe_queues()),
        writable_queues_before=len(routes.now.publish_queues()),
        writable_queues_after=len(routes.target.publish_queues()),
        next_step=next((step.number for step in steps if not step.done), None),
        estimated_ms=None if None in times else sum(time for time in times if time is not None),
        steps=steps,
    )


def _numbered(steps: Iterator[Step]) -> tuple[Step, ...]:
    return tuple(replace(step, number=number) for number, step in enumerate(steps, start=1))


def _steps(
    routes: Routes,
    groups: Sequence[PlannedGroup] | None,
    keys: Keys,
    commands: Callable[[TopicRouteData, TopicRouteData], tuple[AdminCommand, ...]],
    ordered: bool,
) -> Iterator[Step]:
    now, opened, switched, target = routes.now, routes.opened, routes.switched, routes.target
    readable, writable = opened.subscribe_queues(), target.publish_queues()
    final = target.subscribe_queues()
    leaving = _without(switched.subscribe_queues(), final)
    wait_readable = _wait("readable", final)
    wait_writable = WaitFor("writable", _names(writable))
    opens = not set(final) <= set(now.subscribe_queues())
    switches = now.publish_queues() != writable
    held_ms = drain_ms(groups, now.subscribe_queues()) if switches else 0.0
    broken_ms = _broken_ms(routes, groups) if switches else 0.0

    def step(
        kind: StepKind, before: TopicRouteData, after: TopicRouteData, todo: bool, ms: float | None, *waits: WaitFor
    ) -> Step:
        return Step(
            number=0,
            kind=kind,
            done=not todo,
            commands=commands(before, after) if todo else (),
            wait_for=waits,
            estimated_ms=ms if todo else 0.0,
            brokers=_brokers(after),
            readable_queues=len(after.subscribe_queues()),
            writable_queues=len(after.publish_queues()),
            groups=tuple(group_effect(group, before, after) for group in groups or ()) if before is not after else (),
        )

    yield step("add-read-queues", now, opened, opens, _NOTICED_MS, wait_readable, _wait("owned", final))
    if ordered:
        yield step("hold-producers", opened, opened, switches, held_ms, _wait("drained", readable))
    change = step("change-write-queues", opened, switched, switches, _POLL_MS, wait_writable)
    moved = moved_keys(now, target, keys)
    yield replace(
        change,
        groups=tuple(
            replace(effect, out_of_order_unheld=out_of_order(group, moved.leaving))
            for group, effect in zip(groups or (), change.groups, strict=False)
        ),
        keys=moved.sdks,
        uniform_share=uniform_share(now.publish_queues(), writable),
        order_broken_ms=0.0 if ordered else broken_ms,
        order_broken_unheld_ms=broken_ms,
    )
    if ordered:
        yield step("release-producers", switched, switched, switches, 0.0, wait_writable)
    drained_ms = 0.0 if ordered and switches else drain_ms(groups, leaving)
    yield step("drain-queues", switched, switched, bool(leaving), drained_ms, wait_writable, _wait("drained", leaving))
    closing = _wait("not-readable", leaving), _wait("owned", final)
    yield step("remove-read-queues", switched, target, bool(leaving), _NOTICED_MS, *closing)


def _broken_ms(routes: Routes, groups: Sequence[PlannedGroup] | None) -> float | None:
    """How long a moved key's older messages can be read after newer ones, if producers go on; at most.

    Producers poll the route at different moments; then the old queues have to be read to their ends.
    """
    losing = [queue for queue in routes.now.publish_queues() if _loses(routes, queue)]
    drained = drain_ms(groups, losing)
    return None if drained is None else _POLL_MS + drained


def _loses(routes: Routes, queue: MessageQueue) -> bool:
    """Whether keys leave the queue: it is not at the same places of a list of the same length."""
    before, after = routes.now.publish_queues(), routes.target.publish_queues()
    return len(before) != len(after) or after[before.index(queue)] != queue


def _without(queues: Sequence[MessageQueue], others: Sequence[MessageQueue]) -> list[MessageQueue]:
    left = set(others)
    return [queue for queue in queues if queue not in left]


def _wait(kind: WaitKind, queues: Sequence[MessageQueue]) -> WaitFor:
    return WaitFor(kind, _names(sort_queues(queues)))


def _names(queues: Sequence[MessageQueue]) -> tuple[QueueName, ...]:
    return tuple(QueueName(queue.broker_name, queue.queue_id) for queue in queues)


def _brokers(route: TopicRouteData) -> tuple[BrokerQueues, ...]:
    return tuple(
        BrokerQueues(data.broker_name, data.read_queue_nums, data.write_queue_nums, data.perm)
        for data in sorted(route.queue_datas, key=lambda data: data.broker_name)
    )
