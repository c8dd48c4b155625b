"""Topics that are consumed by POP: who may read what, where no consumer owns a queue."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct

from rmqlb.model.finding import WARNING
from rmqlb.model.owners import OwnersReport, PopTopic
from rmqlb.model.words import counted, named
from rmqlb.views.owners.headline import asked_text
from rmqlb.views.report import BETWEEN, QUEUE_COLUMNS, Cell, Column, Report, Rows, Section, labels, rows_of


def pop_report(report: OwnersReport) -> Report:
    """The report of a group that consumes all topics by POP."""
    section, offsets = pop_section(report), offsets_section(report)
    shown = (offsets,) if report.hidden else (section, offsets)
    tables = (offsets, section) if report.hidden else (section, *((offsets,) if report.offsets else ()))
    rows = [*pop_rows(report), *(({}, queue) for queue in report.offsets)]
    return Report(
        schema="rmqlb/owners",
        data=report,
        facts=(_headline(report), *pop_facts(report), *(f"  {text}" for text in asked_text(report))),
        sections=tuple(each for each in shown if each.rows),
        labels=labels(dict.fromkeys(report.sorted_consumers)),
        rows=Rows(("topic", "brokerName", "queueId"), rows),
        tables=tables,
        grave=pop_grave(report),
        more="-o json has everything",
    )


def _headline(report: OwnersReport) -> str:
    group = report.group or "a group"
    if report.hidden:
        likely = "probably " if report.hidden == "likely" else ""
        return f"{group}: its consumers are {likely}behind a Proxy, not visible here; {_lag(report)}"
    processes, consumers = len(report.sorted_consumers), len(set(report.sorted_consumers))
    shared = f" ({processes} processes)" if processes > consumers else ""
    how = "behind a Proxy" if report.by_proxy else "consumes by POP"
    verdict = [f"{how}, no consumer owns a queue", *_verdict(report.pop_topics)]
    lag = [_lag(report)] if report.by_proxy else []
    return f"{group}, {counted(consumers, 'consumer')}{shared}: {'; '.join([*verdict, *lag])}"


def _lag(report: OwnersReport) -> str:
    """Messages not yet read, as far as they are known."""
    lags = [queue.lag for queue in report.offsets if queue.lag is not None]
    known = "unknown" if not lags else f"{sum(lags):,}" + ("" if len(lags) == len(report.offsets) else "+")
    return f"{counted(len(report.offsets), 'queue')}, lag {known}"


def with_pop(shown: Report, report: OwnersReport) -> Report:
    """The report of what a group pulls, with what it consumes by POP."""
    return shown.with_part(pop_section(report), pop_facts(report), pop_rows(report))


def pop_facts(report: OwnersReport) -> Iterator[str]:
    """What brokers assign by; a line for all topics that are alike."""
    alike: dict[tuple[str | None, tuple[int, ...]], list[str]] = {}
    for topic in report.pop_topics:
        alike.setdefault((topic.strategy, topic.pop_share_queue_nums), []).append(topic.topic)
    for (strategy, shares), topics in alike.items():
        number = " or ".join(map(str, shares))
        how = "through a Proxy" if strategy is None else "by POP"
        parts = [f"{counted(len(topics), 'topic')} {how} {named(topics)}"]
        if strategy is not None:
            parts += [f"popShareQueueNum {number}", f"strategy {strategy}"]
        yield f"  {BETWEEN.join(parts)}"


def pop_section(report: OwnersReport) -> Section:
    """A line for each queue, or for each broker of which any queue may be read."""
    columns = (*QUEUE_COLUMNS, Column("consumers that may read it", "consumers", "clients"))
    rows: list[tuple[Cell, ...]] = [
        (topic.topic, queue.broker_name, queue.queue_id, queue.consumers)
        for topic in report.pop_topics
        for queue in topic.queues or ()
    ]
    how = "through a Proxy" if report.by_proxy else "by POP"
    return Section("pop", f"{how} (queue -1 is any queue of the broker)", columns, tuple(rows), heads=3)


def offsets_section(report: OwnersReport) -> Section:
    """How far a group behind a Proxy has read each queue."""
    columns = (
        *QUEUE_COLUMNS,
        Column("broker offset", "brokerOffset", "number"),
        Column("consumer offset", "consumerOffset", "number"),
        Column("lag", "lag", "number"),
    )
    return Section("offsets", "offsets", columns, rows_of(columns, report.offsets), heads=3)


def pop_rows(report: OwnersReport) -> Iterator[tuple[Mapping[str, str], Struct]]:
    """Each line as a record of its own."""
    yield from (({"topic": topic.topic}, queue) for topic in report.pop_topics for queue in topic.queues or ())


def pop_grave(report: OwnersReport) -> str:
    """Yellow where brokers answer nothing, or no consumer may read a queue."""
    topics = report.pop_topics
    return WARNING if any(t.queues is None or any(q.consumers == () for q in t.queues) for t in topics) else ""


def _verdict(topics: tuple[PopTopic, ...]) -> Iterator[str]:
    queues = [queue for topic in topics for queue in topic.queues or ()]
    silent = [topic.topic for topic in topics if topic.queues is None]
    if silent:
        yield f"brokers assign nothing of {named(silent)}"
    if not queues:
        yield from () if silent else ("no topic has a readable queue",)
        return
    nobody = sum(queue.consumers == () for queue in queues)
    if nobody:
        yield f"no consumer may read {nobody} of {counted(len(queues), 'queue')}"
    if all(queue.queue_id < 0 for queue in queues):
        yield "every consumer may read every queue"
    elif nobody < len(queues):
        numbers = [len(queue.consumers) for queue in queues if queue.consumers and queue.queue_id >= 0]
        few, many = min(numbers, default=0), max(numbers, default=0)
        range_ = counted(few, "consumer") if few == many else f"{few} to {counted(many, 'consumer')}"
        yield f"a queue may be read by {range_}"
