"""A `SendReport` as a report."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter

from rmqlb.model.client_versions import ClientVersions
from rmqlb.model.condition import TriedCondition
from rmqlb.model.send_report import ExceptionKind, FailureTaken, KeySpread, LostMessage, MessageException, SendReport
from rmqlb.model.send_scenario import Failure, Moment
from rmqlb.model.send_trials import TrialsReport
from rmqlb.model.words import counted
from rmqlb.views.report import Cell, Column, Report, Section, duration, rows_of
from rmqlb.views.send.result import send_result
from rmqlb.views.send.timeline import slices_section, timeline_section
from rmqlb.views.send.trials import trials_sections

_COUNTS = (
    Column("picks", "picks", "number"),
    Column("attempts", "attempts", "number"),
    Column("failed", "failed", "number"),
    Column("stored", "stored", "number"),
    Column("share", "share", "share"),
    Column("", "bar", "bar", of=attrgetter("share")),
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

    `others` are the same with latency fault the other way round, `clients` under each stretch of client versions, the
    newest first; with `trace` people see each attempt.
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
    return Report("rmqlb/send", data, facts, tuple(sections))


def _facts(report: SendReport) -> tuple[str, ...]:
    totals, scenario = report.totals, report.scenario
    lost = f"{totals.lost} lost" if totals.lost else "none lost"
    twice = f"; {totals.duplicated} stored more than once" if totals.duplicated else ""
    failed = f"; {totals.failed_attempts} of {totals.attempts} attempts failed" if totals.failed_attempts else ""
    names = len({queue.broker_name for queue in report.publish_queues})
    threads = counted(scenario.threads, "thread")
    rate = "back to back" if scenario.rate is None else f"{float(scenario.rate):g} per second"
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
        Column("cause", "cause"),
        Column("brokers sent", "brokersSent", of=_brokers_sent),
        Column("text of the first", "text", of=_first_line),
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
    columns = (Column("broker", "brokerName"), Column("queue", "queueId", "number"), *_COUNTS)
    return Section("queues", "queues", columns, rows_of(columns, report.queues), heads=2)


def _brokers(report: SendReport) -> Section:
    columns = (
        Column("broker", "brokerName"),
        Column("queues", "queues", "number"),
        *_COUNTS,
        Column("isolations", "isolations", "number", shown=report.scenario.latency_fault),
        Column("isolated for", "isolatedMs", "ms", shown=any(b.isolated_ms for b in report.brokers)),
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
        Column("failure", "failure", of=lambda taken: _kind(taken.failure)),
        Column("from", "beganMs", "ms"),
        Column("to", "endedMs", "ms"),
        Column("failed", "failed", "number"),
        Column("first after", "firstFailedAfterMs", "ms", of=_first_failed_after),
        Column("isolated after", "isolatedAfterMs", "ms"),
        Column("by", "isolatedBy", of=lambda taken: taken.isolated_by or (None if taken.began_ms is None else "never")),
        Column("used again after", "usedAgainAfterMs", "ms"),
    )
    return Section("failures", "failures", columns, rows_of(columns, report.failures), heads=2)


def _first_failed_after(taken: FailureTaken) -> float | None:
    if taken.first_failed_ms is None or taken.began_ms is None:
        return None
    return taken.first_failed_ms - taken.began_ms


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
