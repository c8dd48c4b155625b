"""Topics that are consumed by POP in a plan: who may read what before and after."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from rmqlb.model.finding import WARNING
from rmqlb.model.plan import PopChange, RebalancePlan
from rmqlb.model.words import counted, named, of_all
from rmqlb.views.report import BETWEEN, NOT_THERE, QUEUE_COLUMNS, Cell, Column, Report, Rows, Section, labels


def pop_plan_report(plan: RebalancePlan, *, changed_only: bool = False) -> Report:
    """The plan of a group that consumes all topics by POP."""
    section = pop_section(plan, changed_only=changed_only)
    return Report(
        schema="rmqlb/plan",
        data=plan,
        facts=(_headline(plan), *pop_facts(plan)),
        sections=(section,) if section.rows else (),
        labels=labels(consumer.client_id for consumer in plan.consumers),
        rows=Rows(("topic", "brokerName", "queueId"), list(pop_rows(plan, changed_only=changed_only))),
        tables=(section,),
        grave=pop_grave(plan),
        more="-o json has everything",
    )


def with_pop(shown: Report, plan: RebalancePlan, *, changed_only: bool) -> Report:
    """The plan of what a group pulls, with what it consumes by POP."""
    section, rows = pop_section(plan, changed_only=changed_only), pop_rows(plan, changed_only=changed_only)
    return shown.with_part(section, pop_facts(plan), rows)


def pop_facts(plan: RebalancePlan) -> Iterator[str]:
    """What becomes of the topics, and what brokers assign by; a line for all topics that are alike."""
    alike: dict[tuple[str | None, str | None, tuple[int, ...]], list[str]] = {}
    for topic in plan.pop_topics:
        key = topic.strategy, topic.strategy_after, topic.pop_share_queue_nums
        alike.setdefault(key, []).append(topic.topic)
    for (before, after, shares), topics in alike.items():
        strategy = before if before == after else f"{before} → {after}"
        how = "through a Proxy" if before is None else "by POP"
        number = " or ".join(map(str, shares))
        parts = (
            f"{counted(len(topics), 'topic')} {how} {named(topics)}",
            *(() if before is None else (f"popShareQueueNum {number}", f"strategy {strategy}")),
            *((f"change: {', '.join(plan.changes)}",) if plan.changes and not plan.topics else ()),
        )
        yield f"  {BETWEEN.join(parts)}"


def pop_section(plan: RebalancePlan, *, changed_only: bool = False) -> Section:
    """A line for each queue, or for each broker of which any queue may be read."""
    columns = (
        *QUEUE_COLUMNS,
        Column("may read it before", "consumersBefore", "clients"),
        Column("afterwards", "consumersAfter", "clients"),
    )
    rows: list[tuple[Cell, ...]] = [
        (names["topic"], each.broker_name, each.queue_id, _cell(each.consumers_before), _cell(each.consumers_after))
        for names, each in pop_rows(plan, changed_only=changed_only)
    ]
    how = "through a Proxy" if _by_proxy(plan) else "by POP"
    return Section("pop", f"{how} (queue -1 is any queue of the broker)", columns, tuple(rows), heads=3)


def _by_proxy(plan: RebalancePlan) -> bool:
    return any(topic.by_proxy for topic in plan.pop_topics)


def _cell(consumers: tuple[str, ...] | None) -> Cell:
    return NOT_THERE if consumers is None else consumers


def pop_rows(plan: RebalancePlan, *, changed_only: bool = False) -> Iterator[tuple[Mapping[str, str], PopChange]]:
    """Each line as a record of its own."""
    for topic in plan.pop_topics:
        for each in topic.queues:
            if not changed_only or each.consumers_before != each.consumers_after:
                yield {"topic": topic.topic}, each


def pop_grave(plan: RebalancePlan) -> str:
    """Yellow where no consumer may read a queue afterwards."""
    return WARNING if any(each.consumers_after == () for topic in plan.pop_topics for each in topic.queues) else ""


def _headline(plan: RebalancePlan) -> str:
    before, after = (len(set(ids)) for ids in (plan.sorted_consumers_before, plan.sorted_consumers_after))
    consumers = counted(after, "consumer") if before == after else f"{before} → {counted(after, 'consumer')}"
    how = "behind a Proxy" if _by_proxy(plan) else "consumes by POP"
    verdict = "; ".join((f"{how}, no consumer owns a queue and none moves", *_verdict(plan)))
    return f"{plan.group or 'a group'}, {consumers}: {verdict}"


def _verdict(plan: RebalancePlan) -> Iterator[str]:
    """Of brokers, where nowhere a consumer may read single queues, otherwise of queues."""
    lines = list(pop_rows(plan))
    silent = [topic.topic for topic in plan.pop_topics if not topic.queues]
    if silent:
        yield f"brokers assign nothing of {named(silent)}"
    if not lines:
        return
    by_broker = all(each.queue_id < 0 for _, each in lines)
    noun = "broker" if by_broker else "queue"

    def number(which: Callable[[PopChange], bool]) -> int:
        found = [(names["topic"], each) for names, each in lines if which(each)]
        return len({each.broker_name for _, each in found}) if by_broker else len(found)

    whole = number(lambda _: True)
    if nobody := number(lambda each: each.consumers_after == ()):
        yield f"no consumer may read {of_all(nobody, whole, noun)}"
    if removed := number(lambda each: each.consumers_after is None):
        yield f"{counted(removed, noun)} {'is' if removed == 1 else 'are'} removed"
    if added := number(lambda each: each.consumers_before is None):
        yield f"{counted(added, noun)} {'is' if added == 1 else 'are'} added"
    yield f"{of_all(number(_has_others), whole, noun)} may be read by other consumers than before"


def _has_others(each: PopChange) -> bool:
    before, after = each.consumers_before, each.consumers_after
    return before is not None and after is not None and before != after
