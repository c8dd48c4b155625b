from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter

from msgspec.structs import replace

from rmqlb.model.message_queue import QueueName, runs, span
from rmqlb.model.plan_topic import BrokerQueues, GroupEffect, PlanStep, StepCheck, StepKind, TopicChangePlan, WaitKind
from rmqlb.model.result import WARNING, counted, messages
from rmqlb.views.columns import Cell, Column, columns_from, columns_of, rows_of
from rmqlb.views.numbers import about, percent
from rmqlb.views.report import Block, Part, Report, Section, section_of

_KINDS: Mapping[StepKind, str] = {
    "add-read-queues": "add read queues",
    "hold-producers": "hold producers that send by key",
    "change-write-queues": "change write queues",
    "release-producers": "resume producers",
    "drain-queues": "drain the removed queues",
    "remove-read-queues": "remove read queues",
}
_NO_COMMAND: Mapping[StepKind, str] = {
    "hold-producers": "stop producers that send by key; others may continue",
    "release-producers": "resume producers 30 s after the NameServers show the queues: by then, all clients know them",
    "drain-queues": "wait until 30 s after the NameServers show the new write queues; by then, every producer has left",
}
_WAITS: Mapping[WaitKind, str] = {
    "readable": "every NameServer shows consumers {queues}",
    "owned": "in each group with consumers, {queues} have an observed owner",
    "drained": "no group has unread messages in {queues}",
    "writable": "every NameServer shows producers {queues}",
    "not-readable": "no NameServer shows consumers {queues}",
}
_STEP = Column("step", "number", "number")


def topic_plan_report(plan: TopicChangePlan) -> Report:
    screen = Section("steps", "steps", (), (), audience="screen", blocks=tuple(map(_block, plan.steps)))
    sections = (screen, *_tables(plan))
    if (checked := plan.checked) is not None:
        columns = columns_from("kind=wait_for holds found:prose")
        sections = (section_of("checked", f"step {checked.number}", columns, checked.conditions), *sections)
    grave = WARNING if plan.checked is not None and not plan.checked.holds else ""
    return Report("rmqlb/topic-plan", plan, tuple(_facts(plan)), sections, grave=grave, closing=tuple(_closing(plan)))


def _facts(plan: TopicChangePlan) -> Iterator[str]:
    if plan.checked is not None:
        yield _check_fact(plan.checked, len(plan.steps))
    readable = f"{plan.readable_queues_before} → {plan.readable_queues_after} readable"
    writable = f"{plan.writable_queues_before} → {plan.writable_queues_after} writable queues"
    what = f"{plan.topic}, {', '.join(plan.changes)}: {readable}, {writable}"
    following = next((step for step in plan.steps if step.number == plan.next_step), None)
    if following is None:
        yield f"{what}: all {counted(len(plan.steps), 'step')} are done"
        return
    yield f"{what}; next: step {following.number} of {len(plan.steps)}, {_KINDS[following.kind]}"
    yield from _order_facts(plan)
    if not any(step.groups for step in plan.steps):
        yield "the source has no consumer group of the topic: owners, lag and start offsets are unknown"
    took = "unknown" if plan.estimated_ms is None else f"about {about(plan.estimated_ms)}"
    yield f"estimated time: {took}"


def _check_fact(checked: StepCheck, steps: int) -> str:
    if checked.holds:
        after = f"; you can start step {checked.number + 1}" if checked.number < steps else ""
        return f"step {checked.number} is complete{after}"
    found = "; ".join(each.found for each in checked.conditions if each.holds is False)
    return f"step {checked.number} must wait: {found}"


def _order_facts(plan: TopicChangePlan) -> Iterator[str]:
    for step in plan.steps:
        if step.kind != "change-write-queues" or step.done:
            continue
        known = (each for each in step.keys if each.moved is not None)
        moved = [f"{each.sdk} {each.moved} ({percent(each.moved_share or 0)})" for each in known]
        if moved:
            yield f"keys that move to another queue: {', '.join(moved)}"
        else:
            yield f"{percent(step.uniform_share)} of evenly hashed keys move to another queue"
        unheld = step.order_broken_unheld_ms
        longest = "for an unknown time" if unheld is None else f"for up to {about(unheld)}"
        longest += _late(step)
        if plan.ordered:
            yield f"order of keys: kept while producers are held in steps 2 to 4; otherwise broken {longest}"
        else:
            yield f"order of moved keys: broken {longest} (--unordered)"


def _late(step: PlanStep) -> str:
    late, name = max(((each.out_of_order_unheld or 0, each.group) for each in step.groups), default=(0, ""))
    return f", and group {name} consumes about {messages(late)} after newer messages of their key" if late else ""


def _closing(plan: TopicChangePlan) -> Iterator[str]:
    if any(step.commands and not step.done for step in plan.steps):
        yield "rmqlb does not run the commands; updateTopic resets missing options, so each command has all of them"
        yield "to copy the commands: --section commands -o plain"
    if any(one.broker_name is not None and one.address is None for step in plan.steps for one in step.commands):
        yield "the source does not have a master address: replace ADDRESS-OF-… with that of the broker"
    if any("-n" not in one.text.split() for step in plan.steps for one in step.commands):
        yield "mqadmin takes the NameServers from NAMESRV_ADDR, or from -n"


def _block(step: PlanStep) -> Block:
    heading = f"{step.number} {_KINDS[step.kind]}"
    if step.done:
        return Block((), heading=heading, beside="done, or not needed")
    run = tuple((one.text, "") for one in step.commands) or ((_NO_COMMAND.get(step.kind, "nothing"), ""),)
    took = "unknown time" if step.estimated_ms is None else f"up to {about(step.estimated_ms)}"
    took = "at once" if step.estimated_ms == 0 else took
    waits = tuple((_WAITS[wait.kind].format(queues=_queues(wait.queues)), "") for wait in step.wait_for)
    parts = [Part("run" if step.commands else "do", run, is_command=bool(step.commands)), Part("wait for", waits)]
    effects = tuple((line, "") for line in _effects(step))
    return Block((*parts, Part("then", effects)) if effects else tuple(parts), heading=heading, beside=took)


def _queues(queues: Sequence[QueueName]) -> str:
    """Broker by broker, runs of queue numbers as one.

    >>> _queues([QueueName("a", 0), QueueName("a", 1), QueueName("b", 4)])
    'a 0-1, b 4'
    """
    if not queues:
        return "no queue"
    by_broker = groupby(queues, key=lambda queue: queue.broker_name)
    ids = ((name, runs(queue.queue_id for queue in own)) for name, own in by_broker)
    return ", ".join(f"{name} {','.join(map(span, found))}" for name, found in ids)


def _effects(step: PlanStep) -> Iterator[str]:
    if step.commands:
        yield f"{counted(step.readable_queues, 'readable queue')}, {counted(step.writable_queues, 'writable queue')}"
    for each in step.groups:
        if each.moved is None:
            if step.kind != "change-write-queues":
                yield f"group {each.group}: no consumer with a queue by strategy"
        elif each.moved or each.added or each.removed or each.unassigned:
            moves = f"{counted(each.moved, 'queue')} move{'s' * (each.moved == 1)}"
            line = f"group {each.group}: {moves}, {each.added} added, {each.removed} removed"
            line += f", {each.unassigned} unassigned" if each.unassigned else ""
            line += f", {counted(each.idle or 0, 'idle consumer')}" if each.idle else ""
            line += f", with {messages(each.lag_removed, 'unread ')} now" if each.lag_removed else ""
            if each.starts:
                line += f"; new queues start at: {', '.join(f'{one.rule} ({one.queues})' for one in each.starts)}"
            line += f", which skips {messages(each.skipped)}" if each.skipped else ""
            lost = each.first_lost or 0
            yield line + (f"; {counted(lost, 'queue')} lose messages until there is an owner" if lost else "")


def _tables(plan: TopicChangePlan) -> Iterator[Section]:

    def table(name: str, title: str, columns: Sequence[Column], of: Callable[[PlanStep], Iterable[object]]) -> Section:
        rows = tuple((step.number, *row) for step in plan.steps for row in rows_of(columns, of(step)))
        return Section(name, title, (_STEP, *columns), rows)

    of_steps = "number=step kind=what:text done:text estimatedMs=estimated:ms readableQueues=readable "
    steps = columns_from(of_steps + "writableQueues=writable", "number")
    yield section_of("steps", "steps", steps, plan.steps, audience="scripts")
    commands = columns_from("brokerName=broker text=command:prose")
    waits = columns_from("kind=wait_for queues:prose", queues=lambda wait: _queues(wait.queues))
    yield replace(table("commands", "commands to copy", commands, lambda step: step.commands), audience="scripts")
    yield replace(table("waits", "conditions to wait for", waits, lambda step: step.wait_for), audience="scripts")
    groups = columns_of(
        GroupEffect,
        "group strategy moved added removed unassigned idle imbalance skipped firstLost lagRemoved=unread,_removed "
        "outOfOrderUnheld=out_of_order",
    )
    keys = columns_from(
        "sdk=SDK key queue=from queueAfter=to",
        sdk=itemgetter(0),
        key=lambda each: each[1].key,
        queue=lambda each: _queue(each[1].queue),
        queueAfter=lambda each: _queue(each[1].queue_after),
    )
    moved = [(of.sdk, key) for step in plan.steps for of in step.keys for key in of.keys]
    brokers = columns_of(BrokerQueues, "brokerName=broker readQueueNums=readable writeQueueNums=writable perm")
    for found in (
        table("groups", "groups after each step", groups, lambda step: step.groups),
        section_of("keys", "keys that move to another queue", keys, moved),
        table("brokers", "brokers after each step", brokers, lambda step: step.brokers),
    ):
        yield replace(found, named_only=True)


def _queue(queue: QueueName | None) -> Cell:
    return None if queue is None else f"{queue.broker_name} {queue.queue_id}"
