"""A `SendReport` as a report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import groupby

from rmqlb.model.client_versions import ClientVersions
from rmqlb.model.plan import TriedCondition
from rmqlb.model.send_report import (
    BrokerTally,
    FailureTaken,
    KeySpread,
    MessageException,
    QueueTally,
    SendReport,
    TrialsReport,
)
from rmqlb.model.send_scenario import Failure, Moment
from rmqlb.model.words import counted
from rmqlb.views.report import Cell, Column, Report, Section, duration
from rmqlb.views.send.result import send_result
from rmqlb.views.send.timeline import slices_section, timeline_section
from rmqlb.views.send.trials import trials_sections

_COUNTS = (
    Column("picks", "picks", "number"),
    Column("attempts", "attempts", "number"),
    Column("failed", "failed", "number"),
    Column("stored", "stored", "number"),
    Column("share", "share", "share"),
    Column("", "bar", "bar"),
)
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
_MOST_FAILURES = 12
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
    trials: TrialsReport | None = None,
    conditions: Sequence[TriedCondition] = (),
    trace: bool = False,
    keys: KeySpread | None = None,
) -> Report:
    """The simulation for people and machines.

    Args:
        others: the same with latency fault the other way round.
        clients: the same under each stretch of client versions, the newest first.
        trace: people see each attempt.
        keys: what the selector was given.
    """
    compared = sorted((report, *others), key=lambda each: each.scenario.latency_fault)
    sections = [
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
    ]
    data = send_result(report, compared, [each for _, each in clients], trials, conditions, keys)
    facts = _facts(report)
    if trials is not None:
        facts += (f"this is the first of {trials.trials} trials; the intervals are over all of them",)
    return Report("rmqlb/send", data, facts, tuple(sections), {})


def _facts(report: SendReport) -> tuple[str, ...]:
    totals, scenario = report.totals, report.scenario
    lost = f"{totals.lost} lost" if totals.lost else "none lost"
    twice = f"; {totals.duplicated} stored more than once" if totals.duplicated else ""
    failed = f"; {totals.failed_attempts} of {totals.attempts} attempts failed" if totals.failed_attempts else ""
    names = len({queue.broker_name for queue in report.publish_queues})
    threads = counted(scenario.threads, "thread")
    rate = "back to back" if scenario.rate is None else f"{_rate(scenario.rate)} a second"
    how = scenario.mode.upper() if scenario.chosen_by is None else f"selector {scenario.chosen_by.name}"
    once = scenario.retries == 0 or scenario.mode == "oneway" or scenario.chosen_by is not None
    attempts = "one attempt" if once else f"up to {1 + scenario.retries} attempts"
    queues = f"{counted(len(report.publish_queues), 'queue')} on {counted(names, 'broker')}"
    facts = [
        f"topic {report.topic}: {totals.stored} of {totals.messages} messages stored, {lost}{twice}{failed}",
        (
            f"{queues}; {how}, {threads}, {rate}; "
            f"{attempts} within {scenario.timeout_ms}ms; route polls every {duration(scenario.poll_us / 1000)} "
            f"from {duration(report.first_poll_ms)} on; seed {scenario.seed}"
        ),
        _client_fact(report),
        *(_failure_fact(failure) for failure in report.scenario.failures[:_MOST_FAILURES]),
    ]
    if len(report.failures) > _MOST_FAILURES:
        facts.append(f"and {len(report.failures) - _MOST_FAILURES} failures more")
    return tuple(facts)


def _client_fact(report: SendReport) -> str:
    scenario = report.scenario
    steps = [
        f"{latency}ms→{duration(isolated)}"
        for latency, isolated in zip(report.latency_max, report.not_available_duration, strict=True)
        if isolated
    ]
    own = " (thresholds given)" if scenario.latency_max or scenario.not_available_duration else ""
    on = "on" if scenario.latency_fault else "off"
    if scenario.chosen_by is not None:
        return f"client {scenario.client_version} (rules of {report.profile}); selectors know no latency fault"
    return (
        f"client {scenario.client_version} (rules of {report.profile}); latency fault {on}, its table{own}: "
        f"{' '.join(steps)}, a failure→{duration(report.failure_isolates_ms)}"
    )


def _failure_fact(failure: Failure) -> str:
    until = "" if failure.end is None else f" until {_moment(failure.end)}"
    text = f"{failure.broker_name}: {_kind(failure)} from {_moment(failure.start)}{until}"
    if failure.reaction.kind == "read-only":
        return f"{text}; the NameServer says so at once"
    if failure.reaction.kind not in ("refused", "timeout"):
        return text
    if failure.notices_us is None:
        return f"{text}; the NameServer never drops it"
    when = f"after {duration(failure.notices_us / 1000)}" if failure.notices_us else "at once"
    return f"{text}; the NameServer drops it {when}"


def _kind(failure: Failure) -> str:
    reaction = failure.reaction
    return f"slow ({duration(reaction.cost_us / 1000)})" if reaction.kind == "slow" else reaction.name


def _moment(moment: Moment) -> str:
    return f"message {moment.message}" if moment.message is not None else duration((moment.us or 0) / 1000)


def _rate(rate: Fraction) -> str:
    return f"{float(rate):g}"


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
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (a.message, a.attempt, a.thread, a.at_ms, a.broker_name, a.queue_id, a.outcome, a.took_ms)
        for a in report.attempts or ()
    )
    return Section("attempts", "attempts", columns, rows, heads=2, named_only=named_only)


def _lost_messages(report: SendReport, *, named_only: bool) -> Section:
    columns = (
        Column("message", "message", "number"),
        Column("thread", "thread", "number", shown=report.scenario.threads > 1),
        Column("at", "atMs", "ms"),
        Column("lost by", "reason"),
        Column("exception", "exceptionClass"),
        Column("code", "responseCode"),
        Column("brokers sent", "brokersSent"),
        Column("text", "text"),
    )
    rows: list[tuple[Cell, ...]] = []
    for lost in report.lost_messages or ():
        told = lost.exception
        rows.append(
            (
                *(lost.message, lost.thread, lost.at_ms, lost.reason),
                *(("none", None) if told is None else (told.exception_class, _code(told))),
                " ".join(lost.brokers_sent),
                None if told is None else _first_line(told.text),
            )
        )
    return Section("lost", "lost messages", columns, tuple(rows), heads=1, named_only=named_only)


def _exceptions(report: SendReport) -> Section:
    columns = (
        Column("messages", "messages", "number"),
        Column("exception", "exceptionClass"),
        Column("code", "responseCode"),
        Column("cause", "cause"),
        Column("brokers sent", "brokersSent"),
        Column("text of the first", "text"),
    )
    rows = tuple(
        (
            tally.messages,
            tally.exception.exception_class,
            _code(tally.exception),
            tally.exception.cause,
            "(others)" if tally.brokers_sent is None else " ".join(tally.brokers_sent),
            _first_line(tally.exception.text),
        )
        for tally in report.exceptions
    )
    return Section("exceptions", "exceptions of lost messages", columns, rows, heads=1)


def _code(exception: MessageException) -> str:
    """Exceptions of the transport have none."""
    return "" if exception.response_code is None else str(exception.response_code)


def _first_line(text: str | None) -> str | None:
    """The second one is where to read on."""
    return None if text is None else text.partition("\n")[0]


def _queues(report: SendReport) -> Section:
    columns = (Column("broker", "brokerName"), Column("queue", "queueId", "number"), *_COUNTS)
    rows = tuple((tally.broker_name, tally.queue_id, *_counts(tally)) for tally in report.queues)
    return Section("queues", "queues", columns, rows, heads=2)


def _brokers(report: SendReport) -> Section:
    columns = (
        Column("broker", "brokerName"),
        Column("queues", "queues", "number"),
        *_COUNTS,
        Column("isolations", "isolations", "number", shown=report.scenario.latency_fault),
        Column("isolated for", "isolatedMs", "ms", shown=any(b.isolated_ms for b in report.brokers)),
    )
    rows = tuple(
        (tally.broker_name, tally.queues, *_counts(tally), tally.isolations, tally.isolated_ms)
        for tally in report.brokers
    )
    return Section("brokers", "brokers", columns, rows, heads=1)


def _counts(tally: QueueTally | BrokerTally) -> tuple[Cell, ...]:
    return tally.picks, tally.attempts, tally.failed, tally.stored, tally.share, tally.share


def _keys(keys: KeySpread) -> Section:
    columns = (
        Column("key", "key"),
        Column("messages", "messages", "number"),
        Column("share", "share", "share"),
        Column("broker", "brokerName"),
        Column("queue", "queueId", "number"),
    )
    rows = tuple(
        (hot.key, hot.messages, hot.messages / keys.messages, hot.broker_name, hot.queue_id) for hot in keys.hottest
    )
    return Section("keys", f"hottest of {keys.distinct} keys", columns, rows, heads=1)


def _failures(report: SendReport) -> Section:
    columns = (
        Column("broker", "brokerName"),
        Column("failure", "failure"),
        Column("from", "beganMs", "ms"),
        Column("to", "endedMs", "ms"),
        Column("failed", "failed", "number"),
        Column("first after", "firstFailedAfterMs", "ms"),
        Column("isolated after", "isolatedAfterMs", "ms"),
        Column("by", "isolatedBy"),
        Column("used again after", "usedAgainAfterMs", "ms"),
    )
    rows = tuple(
        (
            f.broker_name,
            _kind(f.failure),
            f.began_ms,
            f.ended_ms,
            f.failed,
            None if f.first_failed_ms is None or f.began_ms is None else f.first_failed_ms - f.began_ms,
            f.isolated_after_ms,
            f.isolated_by or ("never" if f.began_ms is not None else None),
            f.used_again_after_ms,
        )
        for f in report.failures
    )
    return Section("failures", "failures", columns, rows, heads=2)


def _totals(compared: Sequence[SendReport]) -> Section:
    columns = [Column("", "figure"), Column("in all", "value", "number")]
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
    for i, failure in enumerate(compared[0].failures[:_MOST_FAILURES]):
        name = failure.broker_name
        rows.append((f"{name} isolated after", *(_isolated(each.failures[i]) for each in compared)))
        if any(each.failures[i].ended_ms is not None for each in compared):
            rows.append((f"{name} used again after", *(_used_again(each.failures[i]) for each in compared)))
    rows += [(title, *(_time(getattr(each.totals, field)) for each in compared)) for title, field in _TIMES]
    return Section("totals", "totals", tuple(columns), tuple(rows), heads=1)


def _time(ms: float | None) -> str | None:
    return None if ms is None else duration(ms)


def _share_of(report: SendReport, broker_name: str) -> float | None:
    return next((broker.share for broker in report.brokers if broker.broker_name == broker_name), None)


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
        Column("client", "client"),
        Column("a failure isolates", "failureIsolatesMs", "ms", shown=chosen.scenario.latency_fault),
        Column("stored", "stored", "number"),
        Column("lost", "lost", "number"),
        Column("failed", "failedAttempts", "number"),
        Column("retries", "retries", "number"),
        Column("longest send", "longestSendMs", "ms"),
        Column("isolated after", "isolatedAfterMs", "ms", shown=bool(chosen.failures)),
        *(Column(name, f"share[{name}]", "share", shown=len(names) <= 4) for name in names),
        Column("", "chosen"),
    )
    rows = [
        (
            each.failure_isolates_ms,
            each.totals.stored,
            each.totals.lost,
            each.totals.failed_attempts,
            each.totals.retries,
            each.totals.longest_send_ms,
            each.failures[0].isolated_after_ms if each.failures else None,
            *(_share_of(each, name) for name in names),
            "<- this one" if each.profile == chosen.profile else "",
        )
        for _, each in clients
    ]
    alike = tuple(_alike_together(clients, rows))
    return Section("clients", "client versions, the newest first", columns, alike, heads=1)


def _alike_together(
    clients: Sequence[tuple[ClientVersions, SendReport]], rows: Sequence[tuple[Cell, ...]]
) -> Iterator[tuple[Cell, ...]]:
    """Neighbouring client versions that end alike as one row, whose name spans them."""
    for _, alike in groupby(zip(clients, rows, strict=True), key=lambda each: each[1][:-1]):
        group = list(alike)
        (newest, _), (oldest, _) = group[0][0], group[-1][0]
        chosen = next((row[-1] for _, row in group if row[-1]), "")
        yield str(oldest.up_to(newest)), *group[0][1][:-1], chosen
