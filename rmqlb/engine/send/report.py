"""From a finished run to its report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from rmqlb.engine.send.counters import ATTEMPTS, FAILED, PICKS, STORED, Total
from rmqlb.engine.send.findings import send_findings
from rmqlb.engine.send.simulation import SendSimulation
from rmqlb.model.java import sort_key
from rmqlb.model.message_queue import MessageQueue, queue_order
from rmqlb.model.send_report import (
    Attempt,
    BrokerTally,
    ExceptionTally,
    FailureReport,
    LostMessage,
    MessageException,
    QueueTally,
    SendReport,
    SendTotals,
)
from rmqlb.model.send_scenario import Failure


def report_of(
    simulation: SendSimulation,
    attempts: Sequence[Attempt] | None,
    lost_messages: Sequence[LostMessage] | None,
) -> SendReport:
    """The report of a run that has come to its end."""
    queues, failures = _queues(simulation), _failures(simulation)
    report = SendReport(
        topic=simulation.route.topic,
        scenario=simulation.scenario,
        profile=simulation.profile.name,
        latency_max=simulation.profile.latency_max,
        not_available_duration=simulation.profile.not_available_duration,
        failure_isolates_ms=simulation.profile.duration(0, isolation=True),
        first_poll_ms=simulation.first_poll_us / 1000,
        publish_queues=simulation.publish_queues,
        queues=queues,
        brokers=_brokers(simulation, queues),
        totals=_totals(simulation, failures),
        failures=failures,
        slices=simulation.recorder.timeline.slices(simulation.ended, simulation.per_ms),
        exceptions=_exceptions(simulation),
        attempts=None if attempts is None else tuple(sorted(attempts, key=lambda a: (a.message, a.attempt))),
        lost_messages=None if lost_messages is None else tuple(sorted(lost_messages, key=lambda lost: lost.message)),
    )
    return replace(report, findings=tuple(send_findings(report, simulation.route, simulation.recorder.selector_threw)))


def _queues(simulation: SendSimulation) -> tuple[QueueTally, ...]:
    counters, rows = simulation.recorder.counters, simulation.recorder.counts.rows
    listed = dict.fromkeys(simulation.publish_queues)
    others = sorted((queue for queue in counters.row_of if queue not in listed), key=queue_order)
    queues = (*listed, *others)
    stored = sum(rows[counters.row_of[queue] + STORED] for queue in queues)
    return tuple(_tally(simulation, queue, stored) for queue in queues)


def _tally(simulation: SendSimulation, queue: MessageQueue, stored: int) -> QueueTally:
    row, rows = simulation.recorder.counters.row_of[queue], simulation.recorder.counts.rows
    return QueueTally(
        broker_name=queue.broker_name,
        queue_id=queue.queue_id,
        picks=rows[row + PICKS],
        attempts=rows[row + ATTEMPTS],
        failed=rows[row + FAILED],
        stored=rows[row + STORED],
        share=rows[row + STORED] / stored if stored else None,
        queue=queue,
    )


def _brokers(simulation: SendSimulation, queues: tuple[QueueTally, ...]) -> tuple[BrokerTally, ...]:
    by_broker: dict[str, list[QueueTally]] = {name: [] for name in simulation.recorder.counts.isolated_ticks}
    for tally in queues:
        by_broker.setdefault(tally.broker_name, []).append(tally)
    listed = Counter(queue.broker_name for queue in simulation.publish_queues)
    whole = sum(tally.stored for tally in queues)
    brokers = []
    for name, its_queues in sorted(by_broker.items(), key=lambda item: sort_key(item[0])):
        stored = sum(tally.stored for tally in its_queues)
        brokers.append(
            BrokerTally(
                broker_name=name,
                queues=listed[name],
                picks=sum(tally.picks for tally in its_queues),
                attempts=sum(tally.attempts for tally in its_queues),
                failed=sum(tally.failed for tally in its_queues),
                stored=stored,
                share=stored / whole if whole else None,
                isolations=simulation.recorder.counts.isolations.get(name, 0),
                isolated_ms=simulation.recorder.counts.isolated_ticks.get(name, 0) / simulation.per_ms,
            )
        )
    return tuple(brokers)


def _totals(simulation: SendSimulation, failures: Sequence[FailureReport]) -> SendTotals:
    totals = simulation.recorder.counts.totals
    return SendTotals(
        messages=totals[Total.MESSAGES],
        stored=totals[Total.STORED],
        not_store_ok=totals[Total.NOT_STORE_OK],
        duplicated=totals[Total.DUPLICATED],
        lost=totals[Total.LOST],
        lost_by=dict(sorted(simulation.recorder.counts.lost_by.items())),
        retried=totals[Total.RETRIED],
        attempts=totals[Total.ATTEMPTS],
        failed_attempts=totals[Total.FAILED],
        retries=totals[Total.RETRIES],
        failing_ms=totals[Total.FAILING] / simulation.per_ms,
        longest_send_ms=simulation.recorder.counters.longest / simulation.per_ms if totals[Total.ATTEMPTS] else None,
        lasted_ms=simulation.recorder.last_done / simulation.per_ms,
        until_isolated_ms=_longest(failure.isolated_after_ms for failure in failures),
        until_used_again_ms=_longest(failure.used_again_after_ms for failure in failures),
    )


def _longest(times: Iterable[float | None]) -> float | None:
    return max((time for time in times if time is not None), default=None)


def _exceptions(simulation: SendSimulation) -> tuple[ExceptionTally, ...]:
    tallies: list[ExceptionTally] = []
    for kind, messages in simulation.recorder.counts.exceptions.items():
        first = simulation.recorder.counters.first_lost[kind]
        if first.exception is not None:
            tallies.append(_exception(messages, kind[3], first, first.exception))
    return tuple(sorted(tallies, key=lambda tally: (-tally.messages, tally.first.message)))


def _exception(
    messages: int, brokers_sent: tuple[str, ...] | None, first: LostMessage, exception: MessageException
) -> ExceptionTally:
    return ExceptionTally(
        messages=messages,
        exception_class=exception.exception_class,
        response_code=exception.response_code,
        cause=exception.cause,
        brokers_sent=brokers_sent,
        first_message=first.message,
        text=exception.text,
        first=first,
        exception=exception,
    )


def _failures(simulation: SendSimulation) -> tuple[FailureReport, ...]:
    return tuple(_failure(simulation, place, failure) for place, failure in enumerate(simulation.scenario.failures))


def _failure(simulation: SendSimulation, place: int, failure: Failure) -> FailureReport:
    def ms(ticks: int | None) -> float | None:
        return None if ticks is None else ticks / simulation.per_ms

    cluster, times = simulation.cluster, simulation.recorder.failures
    began, ended = ms(cluster.began[place]), ms(cluster.ended[place])
    isolated, used_again = ms(times.isolated_at[place]), ms(times.used_again[place])
    return FailureReport(
        broker_name=failure.broker_name,
        kind=failure.reaction.kind,
        name=failure.reaction.name,
        code=failure.reaction.code or None,
        nameserver_notices_ms=None if failure.notices_us is None else failure.notices_us / 1000,
        began_ms=began,
        ended_ms=ended,
        failed=simulation.recorder.counts.by_failure[place],
        first_failed_ms=ms(times.first_failed[place]),
        isolated_ms=isolated,
        isolated_after_ms=_after(isolated, began),
        isolated_by=times.isolated_by[place],
        used_again_ms=used_again,
        used_again_after_ms=_after(used_again, ended),
        failure=failure,
    )


def _after(then: float | None, since: float | None) -> float | None:
    return None if then is None or since is None else then - since
