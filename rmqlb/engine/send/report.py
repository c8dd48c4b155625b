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
    QueueTally,
    SendReport,
    SendTotals,
)
from rmqlb.model.send_scenario import JAVA, Failure


def report_of(
    simulation: SendSimulation, attempts: Sequence[Attempt] | None, lost_messages: Sequence[LostMessage] | None
) -> SendReport:
    """The report of a run that has come to its end."""
    failures = tuple(_failure(simulation, place, each) for place, each in enumerate(simulation.scenario.failures))
    queues, recorder, profile = _queues(simulation), simulation.recorder, simulation.profile
    report = SendReport(
        topic=simulation.route.topic,
        scenario=simulation.scenario,
        profile=_rules(simulation),
        latency_max=profile.latency_max,
        not_available_duration=profile.not_available_duration,
        failure_isolates_ms=profile.duration(0, isolation=True),
        first_poll_ms=simulation.first_poll_us / 1000,
        publish_queues=simulation.publish_queues,
        queues=queues,
        brokers=_brokers(simulation, queues),
        totals=_totals(simulation, failures),
        failures=failures,
        slices=recorder.timeline.slices(simulation.ended, simulation.per_ms),
        exceptions=_exceptions(simulation),
        attempts=None if attempts is None else tuple(sorted(attempts, key=lambda a: (a.message, a.attempt))),
        lost_messages=None if lost_messages is None else tuple(sorted(lost_messages, key=lambda lost: lost.message)),
    )
    return replace(report, findings=tuple(send_findings(report, simulation.route, recorder.selector_threw)))


def _rules(simulation: SendSimulation) -> str:
    if simulation.scenario.sdk == JAVA:
        return simulation.profile.name
    from rmqlb.engine.send.sdks.profile import sdk

    profile = sdk(simulation.scenario.sdk).profile
    return f"{profile.name} {profile.mirrors}"


def _queues(simulation: SendSimulation) -> tuple[QueueTally, ...]:
    row_of, rows = simulation.recorder.counters.row_of, simulation.recorder.counts.rows
    listed = dict.fromkeys(simulation.publish_queues)
    queues = (*listed, *sorted((queue for queue in row_of if queue not in listed), key=queue_order))
    whole = sum(rows[row_of[queue] + STORED] for queue in queues)

    def tally(queue: MessageQueue) -> QueueTally:
        row = row_of[queue]
        stored = rows[row + STORED]
        return QueueTally(
            broker_name=queue.broker_name,
            queue_id=queue.queue_id,
            picks=rows[row + PICKS],
            attempts=rows[row + ATTEMPTS],
            failed=rows[row + FAILED],
            stored=stored,
            share=stored / whole if whole else None,
            queue=queue,
        )

    return tuple(tally(queue) for queue in queues)


def _brokers(simulation: SendSimulation, queues: tuple[QueueTally, ...]) -> tuple[BrokerTally, ...]:
    counts, whole = simulation.recorder.counts, sum(tally.stored for tally in queues)
    listed = Counter(queue.broker_name for queue in simulation.publish_queues)
    by_broker: dict[str, list[QueueTally]] = {name: [] for name in counts.isolated_ticks}
    for tally in queues:
        by_broker.setdefault(tally.broker_name, []).append(tally)
    return tuple(
        BrokerTally(
            broker_name=name,
            queues=listed[name],
            picks=sum(tally.picks for tally in own),
            attempts=sum(tally.attempts for tally in own),
            failed=sum(tally.failed for tally in own),
            stored=(stored := sum(tally.stored for tally in own)),
            share=stored / whole if whole else None,
            isolations=counts.isolations.get(name, 0),
            isolated_ms=counts.isolated_ticks.get(name, 0) / simulation.per_ms,
        )
        for name, own in sorted(by_broker.items(), key=lambda item: sort_key(item[0]))
    )


def _totals(simulation: SendSimulation, failures: Sequence[FailureReport]) -> SendTotals:
    recorder, per_ms = simulation.recorder, simulation.per_ms
    totals = recorder.counts.totals
    return SendTotals(
        messages=totals[Total.MESSAGES],
        stored=totals[Total.STORED],
        not_store_ok=totals[Total.NOT_STORE_OK],
        duplicated=totals[Total.DUPLICATED],
        lost=totals[Total.LOST],
        lost_by=dict(sorted(recorder.counts.lost_by.items())),
        retried=totals[Total.RETRIED],
        attempts=totals[Total.ATTEMPTS],
        failed_attempts=totals[Total.FAILED],
        retries=totals[Total.RETRIES],
        failing_ms=totals[Total.FAILING] / per_ms,
        longest_send_ms=recorder.counters.longest / per_ms if totals[Total.ATTEMPTS] else None,
        lasted_ms=recorder.last_done / per_ms,
        until_isolated_ms=_longest(failure.isolated_after_ms for failure in failures),
        until_used_again_ms=_longest(failure.used_again_after_ms for failure in failures),
    )


def _longest(times: Iterable[float | None]) -> float | None:
    return max((time for time in times if time is not None), default=None)


def _exceptions(simulation: SendSimulation) -> tuple[ExceptionTally, ...]:
    recorder = simulation.recorder
    tallies = [
        ExceptionTally(
            messages=messages,
            exception_class=exception.exception_class,
            response_code=exception.response_code,
            cause=exception.cause,
            brokers_sent=kind[3],
            first_message=first.message,
            text=exception.text,
            first=first,
            exception=exception,
        )
        for kind, messages in recorder.counts.exceptions.items()
        if (exception := (first := recorder.counters.first_lost[kind]).exception) is not None
    ]
    return tuple(sorted(tallies, key=lambda tally: (-tally.messages, tally.first_message)))


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
        last_failed_ms=None if times.first_failed[place] is None else ms(times.last_failed[place]),
        isolated_ms=isolated,
        isolated_after_ms=_after(isolated, began),
        isolated_by=times.isolated_by[place],
        used_again_ms=used_again,
        used_again_after_ms=_after(used_again, ended),
        failure=failure,
    )


def _after(then: float | None, since: float | None) -> float | None:
    return None if then is None or since is None else then - since
