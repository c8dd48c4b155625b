"""From a finished run to its report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec.structs import replace

from rmqlb.engine.send.counters import ATTEMPTS, FAILED, PICKS, STORED, Total
from rmqlb.engine.send.findings import send_findings
from rmqlb.engine.send.simulation import Run
from rmqlb.model.java import sort_key
from rmqlb.model.message_queue import MessageQueue, queue_order
from rmqlb.model.route import TopicRouteData
from rmqlb.model.send_report import (
    Attempt,
    BrokerTally,
    ExceptionTally,
    FailureReport,
    LostMessage,
    QueueTally,
    SendReport,
    SendTotals,
)


def report_of(
    route: TopicRouteData,
    run: Run,
    attempts: Sequence[Attempt] | None,
    lost_messages: Sequence[LostMessage] | None,
) -> SendReport:
    """The report of a run that has come to its end."""
    queues = _queues(run)
    report = SendReport(
        topic=route.topic,
        scenario=run.scenario,
        profile=run.profile.name,
        latency_max=run.profile.latency_max,
        not_available_duration=run.profile.not_available_duration,
        failure_isolates_ms=run.profile.duration(0, isolation=True),
        first_poll_ms=run.first_poll_us / 1000,
        publish_queues=run.publish_queues,
        queues=queues,
        brokers=_brokers(run, queues),
        totals=_totals(run),
        failures=_failures(run),
        slices=run.timeline.slices(run.ended, run.per_ms),
        exceptions=_exceptions(run),
        attempts=None if attempts is None else tuple(sorted(attempts, key=lambda a: (a.message, a.attempt))),
        lost_messages=None if lost_messages is None else tuple(sorted(lost_messages, key=lambda lost: lost.message)),
    )
    return replace(report, findings=tuple(send_findings(report, route, run.selector_threw)))


def _queues(run: Run) -> tuple[QueueTally, ...]:
    tally = run.tally
    listed = dict.fromkeys(run.publish_queues)
    others = sorted((queue for queue in tally.row_of if queue not in listed), key=queue_order)
    return tuple(_tally(run, queue) for queue in (*listed, *others))


def _tally(run: Run, queue: MessageQueue) -> QueueTally:
    row, rows = run.tally.row_of[queue], run.tally.rows
    return QueueTally(queue, rows[row + PICKS], rows[row + ATTEMPTS], rows[row + FAILED], rows[row + STORED])


def _brokers(run: Run, queues: tuple[QueueTally, ...]) -> tuple[BrokerTally, ...]:
    by_broker: dict[str, list[QueueTally]] = {name: [] for name in run.tally.avoided}
    for tally in queues:
        by_broker.setdefault(tally.queue.broker_name, []).append(tally)
    listed = Counter(queue.broker_name for queue in run.publish_queues)
    return tuple(
        BrokerTally(
            broker_name=name,
            queues=listed[name],
            picks=sum(tally.picks for tally in its_queues),
            attempts=sum(tally.attempts for tally in its_queues),
            failed=sum(tally.failed for tally in its_queues),
            stored=sum(tally.stored for tally in its_queues),
            avoided_ms=run.tally.avoided.get(name, 0) / run.per_ms,
            isolations=run.tally.isolations.get(name, 0),
        )
        for name, its_queues in sorted(by_broker.items(), key=lambda item: sort_key(item[0]))
    )


def _totals(run: Run) -> SendTotals:
    totals = run.tally.totals
    return SendTotals(
        messages=totals[Total.MESSAGES],
        stored=totals[Total.STORED],
        not_store_ok=totals[Total.NOT_STORE_OK],
        duplicated=totals[Total.DUPLICATED],
        lost=totals[Total.LOST],
        lost_by=dict(sorted(run.tally.lost_by.items())),
        attempts=totals[Total.ATTEMPTS],
        failed_attempts=totals[Total.FAILED],
        extra_attempts=totals[Total.EXTRA],
        retried=totals[Total.RETRIED],
        failing_ms=totals[Total.FAILING] / run.per_ms,
        longest_send_ms=run.tally.longest / run.per_ms if totals[Total.ATTEMPTS] else None,
        lasted_ms=run.last_done / run.per_ms,
    )


def _exceptions(run: Run) -> tuple[ExceptionTally, ...]:
    tallies: list[ExceptionTally] = []
    for kind, messages in run.tally.exceptions.items():
        first = run.tally.first_lost[kind]
        if first.exception is not None:
            tallies.append(ExceptionTally(messages, kind[3], first, first.exception))
    return tuple(sorted(tallies, key=lambda tally: (-tally.messages, tally.first.message)))


def _failures(run: Run) -> tuple[FailureReport, ...]:
    def ms(ticks: int | None) -> float | None:
        return None if ticks is None else ticks / run.per_ms

    return tuple(
        FailureReport(
            failure,
            began_ms=ms(run.cluster.began[i]),
            ended_ms=ms(run.cluster.ended[i]),
            failed=run.tally.by_failure[i],
            first_failed_ms=ms(run.marks.first_failed[i]),
            avoided_ms=ms(run.marks.avoided_at[i]),
            avoided_by=run.marks.avoided_by[i],
            used_again_ms=ms(run.marks.used_again[i]),
        )
        for i, failure in enumerate(run.scenario.failures)
    )
