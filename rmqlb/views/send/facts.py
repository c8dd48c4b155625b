"""The lines above and below the tables of simulated sends: the verdict first, what was configured last."""

from __future__ import annotations

from collections.abc import Iterator

from rmqlb.model.finding import ERROR, WARNING
from rmqlb.model.send_report import FailureReport, SendReport, SendTotals
from rmqlb.model.send_scenario import JAVA, Failure, Moment
from rmqlb.model.send_trials import TrialsReport
from rmqlb.model.words import counted, messages
from rmqlb.views.report import about, duration, percent

MOST_FAILURES = 12
_MOST_NAMED = 2


def send_facts(report: SendReport, trials: TrialsReport | None = None) -> tuple[str, ...]:
    """What is lost, how long retries go on, how long a send takes; then how each failure is taken."""
    totals, several = report.totals, len(report.failures) > MOST_FAILURES
    longest = () if totals.longest_send_ms is None else (f"longest send {about(totals.longest_send_ms)}",)
    return (
        f"{report.topic}, {_failing(report)}: {'; '.join((*_lost(totals), *_retries(report), *longest))}",
        *(() if trials is None else (f"  {line}" for line in _over_trials(trials))),
        *(f"  {_taken(failure, report.scenario.sdk)}" for failure in report.failures[:MOST_FAILURES]),
        *((f"  and {len(report.failures) - MOST_FAILURES} failures more",) if several else ()),
    )


def send_gravity(totals: SendTotals) -> str:
    """How grave it is: error of lost messages, warning of failed attempts and of what is stored twice."""
    if totals.lost:
        return ERROR
    return WARNING if totals.failed_attempts or totals.duplicated or totals.not_store_ok else "inOrder"


def send_settings(report: SendReport) -> tuple[str, ...]:
    """How the producer was configured, and when brokers fail."""
    failures = report.scenario.failures[:MOST_FAILURES]
    return (_producer(report), _client(report), *map(_failure, failures))


def failure_kind(failure: Failure) -> str:
    """What a broker does meanwhile."""
    reaction = failure.reaction
    return f"slow ({duration(reaction.cost_us / 1000)})" if reaction.kind == "slow" else reaction.name


def some_messages(number: int, of: int, what: str) -> str:
    """How many messages of how many, as a share too."""
    return f"{number:,} of {messages(of)} {what} ({percent(number / of)})"


def last_failed_ms(report: SendReport) -> float | None:
    """When the last attempt began that failed because of a failing broker; None when none did."""
    return max((each.last_failed_ms for each in report.failures if each.last_failed_ms is not None), default=None)


def _failing(report: SendReport) -> str:
    failures, excluded = report.scenario.failures, sorted(report.scenario.exclude)
    more = f", and {len(failures) - _MOST_NAMED} more" if len(failures) > _MOST_NAMED else ""
    failing = ", ".join(f"{each.broker_name} {failure_kind(each)} {_window(each)}" for each in failures[:2]) + more
    left_out = ", ".join(excluded[:_MOST_NAMED])
    if len(excluded) > _MOST_NAMED:
        left_out += f", and {len(excluded) - _MOST_NAMED} more"
    if not excluded:
        return failing or "no broker fails"
    verb = "is" if len(excluded) == 1 else "are"
    return ", ".join(filter(None, (f"{left_out} {verb} excluded", failing)))


def _window(failure: Failure) -> str:
    start = _moment(failure.start)
    return f"from {start} on" if failure.end is None else f"from {start} to {_moment(failure.end)}"


def _lost(totals: SendTotals) -> Iterator[str]:
    if not totals.messages:
        yield "no message is sent"
    elif totals.lost == totals.messages:
        yield f"all {messages(totals.messages)} lost" if totals.messages > 1 else "the message is lost"
    elif totals.lost:
        yield some_messages(totals.lost, totals.messages, "lost")
    else:
        yield f"no message of {totals.messages:,} lost"
    if totals.duplicated:
        yield f"{totals.duplicated:,} stored more than once"
    if totals.not_store_ok:
        yield f"{totals.not_store_ok:,} stored, not SEND_OK"


def _retries(report: SendReport) -> Iterator[str]:
    totals, last = report.totals, last_failed_ms(report)
    until = "" if last is None else f", the last at {about(last)}"
    if totals.retried:
        yield f"{totals.retried:,} retried ({percent(totals.retried / totals.messages)}){until}"
    elif totals.failed_attempts:
        yield f"{totals.failed_attempts:,} of {totals.attempts:,} attempts fail{until}"
    elif report.failures:
        yield "no attempt fails"


def _taken(taken: FailureReport, sdk: str) -> str:
    """How the producer took a failure."""
    text = f"{taken.broker_name}: {counted(taken.failed, 'attempt')} failed"
    if taken.began_ms is None:
        return f"{taken.broker_name}: the simulation ends before it fails"
    if taken.isolated_ms is not None:
        own = "latency fault" if sdk == JAVA else "until a heartbeat"
        how = "route poll" if taken.isolated_by == "route" else own
        what = "not in the producer's list" if taken.isolated_by == "route" else "isolated"
        text += f"; {what} from {about(taken.isolated_ms)} on ({how})"
    elif taken.failed:
        text += "; it stays in the producer's list"
    if taken.used_again_after_ms is not None:
        text += f"; used again {about(taken.used_again_after_ms)} after it is back"
    elif taken.ended_ms is not None and (taken.failed or taken.isolated_ms is not None):
        text += "; not used again by the end"
    return text


def _over_trials(trials: TrialsReport) -> Iterator[str]:
    lost, longest = trials.lost_share, trials.longest_send_ms
    share = f"{percent(lost.mean)} of messages lost ({percent(lost.low)} to {percent(lost.high)})"
    sends = "" if longest is None else f"; longest send p95 {about(longest.p95_ms)}, max {about(longest.max_ms)}"
    yield f"over {trials.trials} trials: {share}{sends}; this is the first of them"


def _producer(report: SendReport) -> str:
    scenario = report.scenario
    names = len({queue.broker_name for queue in report.publish_queues})
    threads = counted(scenario.threads, "thread")
    rate = "back to back" if scenario.rate is None else f"{float(scenario.rate):g} messages per second"
    how = scenario.mode.upper() if scenario.chosen_by is None else f"selector {scenario.chosen_by.name}"
    once = scenario.retries == 0 or scenario.mode == "oneway" or scenario.chosen_by is not None
    attempts = "one attempt" if once else f"up to {1 + scenario.retries} attempts"
    within = "of" if scenario.sdk != JAVA and not once else "within"
    queues = f"{counted(len(report.publish_queues), 'queue')} on {counted(names, 'broker')}"
    return (
        f"{queues}; {how}, {threads}, {rate}; "
        f"{attempts} {within} {scenario.timeout_ms}ms; route polls every {duration(scenario.poll_us / 1000)} "
        f"from {duration(report.first_poll_ms)} on; seed {scenario.seed}"
    )


def _client(report: SendReport) -> str:
    scenario = report.scenario
    steps = [
        f"{latency}ms→{duration(isolated)}"
        for latency, isolated in zip(report.latency_max, report.not_available_duration, strict=True)
        if isolated
    ]
    own = " (thresholds given)" if scenario.latency_max or scenario.not_available_duration else ""
    on = "on" if scenario.latency_fault else "off"
    if scenario.sdk != JAVA:
        grpc = scenario.sdk.partition("@")[0].endswith("-grpc")
        through = f", Proxy in {scenario.proxy_mode} mode" if grpc else ""
        return f"SDK {scenario.sdk} (rules of {report.profile}){through}"
    if scenario.chosen_by is not None:
        return f"client {scenario.client_version} (rules of {report.profile}); selectors know no latency fault"
    return (
        f"client {scenario.client_version} (rules of {report.profile}); latency fault {on}, its table{own}: "
        f"{' '.join(steps)}, a failure→{duration(report.failure_isolates_ms)}"
    )


def _failure(failure: Failure) -> str:
    text = f"{failure.broker_name}: {failure_kind(failure)} {_window(failure)}"
    if failure.reaction.kind == "read-only":
        return f"{text}; the NameServer says so at once"
    if failure.reaction.kind not in ("refused", "timeout"):
        return text
    if failure.notices_us is None:
        return f"{text}; the NameServer never drops it"
    when = f"after {duration(failure.notices_us / 1000)}" if failure.notices_us else "at once"
    return f"{text}; the NameServer drops it {when}"


def _moment(moment: Moment) -> str:
    return f"message {moment.message}" if moment.message is not None else duration((moment.us or 0) / 1000)
