"""A `SendReport` as a report."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter

from rmqlb.model.client_versions import ClientVersions
from rmqlb.model.condition import TriedCondition
from rmqlb.model.send_report import (
    BrokerTally,
    ExceptionKind,
    FailureTaken,
    KeySpread,
    LostMessage,
    MessageException,
    QueueTally,
    SendReport,
)
from rmqlb.model.send_result import send_result
from rmqlb.model.send_trials import TrialsReport
from rmqlb.views.report import Audience, Cell, Column, Report, Section, duration, rows_of
from rmqlb.views.send.facts import MOST_FAILURES, failure_kind, send_facts, send_gravity, send_settings
from rmqlb.views.send.sdks import sdk_facts, sdks_section
from rmqlb.views.send.timeline import slices_section, timeline_section
from rmqlb.views.send.trials import trials_sections

_UNEVEN = 1.2
"""So many times as much as another queue of its broker stores one that is worth a look; turns alone differ by two."""
_TOTALS: tuple[tuple[str, str], ...] = (
    ("messages", "messages"),
    ("stored", "stored"),
    ("stored, not SEND_OK", "not_store_ok"),
    ("stored more than once", "duplicated"),
    ("lost", "lost"),
    ("messages with a retry", "retried"),
    ("attempts", "attempts"),
    ("failed attempts", "failed_attempts"),
    ("retries", "retries"),
)
_TIMES = (
    ("time in failed attempts", "failing_ms"),
    ("longest send", "longest_send_ms"),
    ("last message done after", "lasted_ms"),
)


def send_report(
    report: SendReport,
    *,
    others: Sequence[SendReport] = (),
    clients: Sequence[tuple[ClientVersions, SendReport]] = (),
    sdks: Sequence[SendReport] = (),
    trials: TrialsReport | None = None,
    conditions: Sequence[TriedCondition] = (),
    trace: bool = False,
    keys: KeySpread | None = None,
) -> Report:
    """The simulation for people and machines.

    `others` are the same with latency fault the other way round, `clients` under each stretch of client versions, the
    newest first, `sdks` by producers of each SDK; with `trace` people see each attempt.
    """
    facts = send_facts(report, trials)
    if sdks:
        facts = (*sdk_facts(sdks), f"{report.scenario.sdk}: {facts[0]}", *facts[1:])
    compared = sorted((report, *others), key=lambda each: each.scenario.latency_fault)
    sections = [
        *([sdks_section(sdks, report)] if sdks else []),
        _attempts(report, named_only=not trace),
        _lost_messages(report, named_only=not trace or not report.lost_messages),
        _queues(report),
        *([_keys(keys)] if keys else []),
        _brokers(report),
        timeline_section(report),
        slices_section(report),
        *([_failures(report)] if report.failures else []),
        *([_exceptions(report)] if report.exceptions else []),
        *([_clients(clients, report)] if clients else []),
        *(trials_sections(trials) if trials else ()),
        _totals(compared),
        *([_totals(compared, screen=True)] if others else []),
    ]
    return Report(
        "rmqlb/send",
        send_result(report, compared, [each for _, each in clients], trials, conditions, keys, sdks),
        facts,
        tuple(sections),
        grave=send_gravity(
            max((report, *sdks), key=lambda each: (each.totals.lost, each.totals.failed_attempts)).totals
        ),
        closing=send_settings(report),
    )


def _attempts(report: SendReport, *, named_only: bool) -> Section:
    columns = (
        Column("message", "message", "number"),
        Column("attempt", "attempt", "number"),
        Column("thread", "thread", "number", shown=report.scenario.threads > 1),
        Column("at", "atMs", "ms"),
        Column("broker", "brokerName"),
        Column("queue", "queueId", "number"),
        Column("outcome", "outcome"),
        Column("took", "tookMs", "ms"),
    )
    return Section(
        "attempts", "attempts", columns, rows_of(columns, report.attempts or ()), heads=2, named_only=named_only
    )


def _lost_messages(report: SendReport, *, named_only: bool) -> Section:
    columns = (
        Column("message", "message", "number"),
        Column("thread", "thread", "number", shown=report.scenario.threads > 1),
        Column("at", "atMs", "ms"),
        Column("lost by", "reason"),
        Column(
            "exception", "exceptionClass", of=lambda lost: lost.exception.exception_class if lost.exception else "none"
        ),
        Column("code", "responseCode", of=lambda lost: lost.exception and _code(lost.exception)),
        Column("brokers sent", "brokersSent", of=_brokers_sent),
        Column("text", "text", of=lambda lost: lost.exception and _first_line(lost.exception)),
    )
    rows = rows_of(columns, report.lost_messages or ())
    return Section("lost", "lost messages", columns, rows, heads=1, named_only=named_only)


def _exceptions(report: SendReport) -> Section:
    columns = (
        Column("messages", "messages", "number"),
        Column("exception", "exceptionClass"),
        Column("code", "responseCode", of=_code),
        Column("cause", "cause", fold=1),
        Column("brokers sent", "brokersSent", fold=3, of=_brokers_sent),
        Column("text of the first", "text", "prose", fold=2, of=_first_line),
    )
    return Section("exceptions", "exceptions of lost messages", columns, rows_of(columns, report.exceptions), heads=1)


def _code(exception: MessageException | ExceptionKind) -> str:
    """Exceptions of the transport have none."""
    return "" if exception.response_code is None else str(exception.response_code)


def _first_line(exception: MessageException | ExceptionKind) -> str | None:
    """The second one is where to read on."""
    return None if exception.text is None else exception.text.partition("\n")[0]


def _brokers_sent(lost: LostMessage | ExceptionKind) -> str:
    return "(others)" if lost.brokers_sent is None else " ".join(lost.brokers_sent)


def _queues(report: SendReport) -> Section:
    columns = (Column("broker", "brokerName"), Column("queue", "queueId", "number"), *_counts(report.queues))
    audience: Audience = "all" if _uneven(report) else "scripts"
    return Section("queues", "queues", columns, rows_of(columns, report.queues), heads=2, audience=audience)


def _uneven(report: SendReport) -> bool:
    """Whether queues of one broker get unlike shares."""
    stored: dict[str, list[int]] = {}
    for queue in report.queues:
        stored.setdefault(queue.broker_name, []).append(queue.stored)
    return any(max(each) > min(each) + 2 and max(each) > _UNEVEN * min(each) for each in stored.values())


def _counts(parts: Sequence[QueueTally] | Sequence[BrokerTally]) -> tuple[Column, ...]:
    return (
        Column("picks", "picks", "number", shown=any(part.picks != part.attempts for part in parts)),
        Column("attempts", "attempts", "number"),
        Column("failed", "failed", "number"),
        Column("stored", "stored", "number"),
        Column("share", "share", "share"),
        Column("", "bar", "bar", of=attrgetter("share")),
    )


def _brokers(report: SendReport) -> Section:
    columns = (
        Column("broker", "brokerName"),
        Column("queues", "queues", "number"),
        *_counts(report.brokers),
        Column("isolations", "isolations", "number", shown=report.scenario.latency_fault),
        Column("left out for", "isolatedMs", "ms", shown=any(b.isolated_ms for b in report.brokers)),
    )
    return Section("brokers", "brokers", columns, rows_of(columns, report.brokers), heads=1)


def _keys(keys: KeySpread) -> Section:
    columns = (
        Column("key", "key"),
        Column("messages", "messages", "number"),
        Column("share", "share", "share", of=lambda hot: hot.messages / keys.messages),
        Column("broker", "brokerName"),
        Column("queue", "queueId", "number"),
    )
    return Section("keys", f"hottest of {keys.distinct} keys", columns, rows_of(columns, keys.hottest), heads=1)


def _failures(report: SendReport) -> Section:
    columns = (
        Column("broker", "brokerName"),
        Column("failure", "failure", of=lambda taken: failure_kind(taken.failure)),
        Column("from", "beganMs", "ms"),
        Column("to", "endedMs", "ms"),
        Column("failed", "failed", "number"),
        Column("first after", "firstFailedAfterMs", "ms", of=_first_failed_after),
        Column("last at", "lastFailedMs", "ms"),
        Column("isolated after", "isolatedAfterMs", "ms"),
        Column("by", "isolatedBy", of=lambda taken: taken.isolated_by or (None if taken.began_ms is None else "never")),
        Column("used again after", "usedAgainAfterMs", "ms"),
    )
    audience: Audience = "all" if len(report.failures) > 1 else "scripts"
    return Section("failures", "failures", columns, rows_of(columns, report.failures), heads=2, audience=audience)


def _first_failed_after(taken: FailureTaken) -> float | None:
    if taken.first_failed_ms is None or taken.began_ms is None:
        return None
    return taken.first_failed_ms - taken.began_ms


def _totals(compared: Sequence[SendReport], *, screen: bool = False) -> Section:
    """All figures; a screen that compares has those that are not 0 on both sides."""
    columns = [Column("", "figure"), Column("value", "value", "number")]
    if len(compared) > 1:
        states = ["on" if each.scenario.latency_fault else "off" for each in compared]
        columns[1:] = [Column(f"latency fault {s}", f"latencyFault{s.title()}", "number") for s in states]
    rows: list[tuple[Cell, ...]] = [
        (title, *(getattr(each.totals, field) for each in compared)) for title, field in _TOTALS
    ]
    reasons = dict.fromkeys(reason for each in compared for reason in each.totals.lost_by)
    rows += [(f"lost: {reason}", *(each.totals.lost_by.get(reason, 0) for each in compared)) for reason in reasons]
    if len(compared) > 1:
        names = dict.fromkeys(b.broker_name for each in compared for b in each.brokers)
        rows += [(f"stored at {name}", *(_stored_at(each, name) for each in compared)) for name in names]
    for i, failure in enumerate(compared[0].failures[:MOST_FAILURES]):
        name = failure.broker_name
        rows.append((f"{name} isolated after", *(_isolated(each.failures[i]) for each in compared)))
        if any(each.failures[i].ended_ms is not None for each in compared):
            rows.append((f"{name} used again after", *(_used_again(each.failures[i]) for each in compared)))
    rows += [(title, *(_time(getattr(each.totals, field)) for each in compared)) for title, field in _TIMES]
    if screen:
        rows = [row for row in rows if any(row[1:])]
    return Section("totals", "totals", tuple(columns), tuple(rows), heads=1, audience="screen" if screen else "scripts")


def _time(ms: float | None) -> str | None:
    return None if ms is None else duration(ms)


def _stored_at(report: SendReport, broker_name: str) -> int:
    return sum(broker.stored for broker in report.brokers if broker.broker_name == broker_name)


def _used_again(failure: FailureTaken) -> str:
    waited = failure.used_again_after_ms
    return "never" if waited is None else duration(waited)


def _isolated(failure: FailureTaken) -> str:
    waited = failure.isolated_after_ms
    return "never" if waited is None else f"{duration(waited)} ({failure.isolated_by})"


def _clients(clients: Sequence[tuple[ClientVersions, SendReport]], chosen: SendReport) -> Section:
    names = [broker.broker_name for broker in chosen.brokers]
    columns = (
        Column("a failure isolates", "failureIsolatesMs", "ms", shown=chosen.scenario.latency_fault),
        Column("stored", "stored", "number", of=attrgetter("totals.stored")),
        Column("lost", "lost", "number", of=attrgetter("totals.lost")),
        Column("failed", "failedAttempts", "number", of=attrgetter("totals.failed_attempts")),
        Column("retries", "retries", "number", of=attrgetter("totals.retries")),
        Column("longest send", "longestSendMs", "ms", of=attrgetter("totals.longest_send_ms")),
        Column("isolated after", "isolatedAfterMs", "ms", shown=bool(chosen.failures), of=_first_isolated_after),
        *(Column(name, f"share[{name}]", "share", shown=len(names) <= 4, of=_share_at(name)) for name in names),
    )
    rows = rows_of(columns, [report for _, report in clients])
    all_columns = (Column("client", "client"), *columns, Column("", "chosen"))
    alike = tuple(_alike_together(clients, rows, chosen.profile))
    return Section("clients", "client versions, the newest first", all_columns, alike, heads=1)


def _first_isolated_after(report: SendReport) -> float | None:
    return report.failures[0].isolated_after_ms if report.failures else None


def _share_at(broker_name: str) -> Callable[[SendReport], float | None]:
    return lambda report: next((each.share for each in report.brokers if each.broker_name == broker_name), None)


def _alike_together(
    clients: Sequence[tuple[ClientVersions, SendReport]], rows: Sequence[tuple[Cell, ...]], chosen: str
) -> Iterator[tuple[Cell, ...]]:
    """Neighbouring client versions that end alike as one row, whose name spans them."""
    for row, group in groupby(zip(clients, rows, strict=True), key=lambda each: each[1]):
        alike = [client for client, _ in group]
        (newest, _), (oldest, _) = alike[0], alike[-1]
        is_chosen = any(report.profile == chosen for _, report in alike)
        yield str(oldest.up_to(newest)), *row, "<- this one" if is_chosen else ""
