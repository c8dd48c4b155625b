"""Findings about simulated sends and about the SDKs that send, and the conditions of `--fail-on`."""

from collections.abc import Iterator, Sequence
from math import fsum

from msgspec.structs import replace

from rmqlb.engine.conditions import Condition, FailOn, declared
from rmqlb.engine.send.cluster import poll_after
from rmqlb.engine.send.java_producer import CALL_TIMEOUT, THREW
from rmqlb.engine.send.profile import profile_of, sdk
from rmqlb.errors import DataError
from rmqlb.model.result import INFO, Finding, TriedCondition, counted, times
from rmqlb.model.route import TopicRouteData
from rmqlb.model.send_scenario import Failure
from rmqlb.model.simulate_send import BrokerTally, KeyedSdk, SendReport, SendTotals, TrialsReport
from rmqlb.model.snapshot import suggestion


def send_findings(report: SendReport, route: TopicRouteData, selector_threw: str = "") -> Iterator[Finding]:
    totals, scenario = report.totals, report.scenario
    if totals.lost == totals.messages and totals.messages:
        yield Finding("all-lost", f"all {totals.messages} messages are lost")
    if selector_threw and scenario.chosen_by is not None:
        throws = f"throws for {totals.lost_by[THREW]} of {totals.messages} messages, which are lost without a retry"
        yield Finding("selector-throws", f"selector {scenario.chosen_by.name} {throws}; the first: {selector_threw}")
    for taken in report.failures:
        if taken.began_ms is None:
            why = f"the last message is done after {totals.lasted_ms / 1000:g} s"
            yield Finding("failure-not-reached", f"the failure of {taken.broker_name} never begins: {why}")
    if scenario.latency_fault and scenario.chosen_by is None:
        yield from _skew(report)
    yield from _too_short(report)
    yield from _healthy_isolated(report)
    if late := totals.lost_by.get(CALL_TIMEOUT):
        used = f"{counted(late, 'message')} used up {'its' if late == 1 else 'their'} {scenario.timeout_ms} ms"
        text = f"{used} in one attempt: a timeout leaves no time for a retry"
        yield Finding("timeouts-not-retried", text)
    hashed = scenario.chosen_by is not None and scenario.chosen_by.kind == "hash"
    if hashed and not route.is_order_topic and any(map(_leaves_the_route, scenario.failures)):
        yield Finding("hash-remaps", "when the queue list changes, the hash sends almost every key to another queue")
    if any(priority is not None for priority in scenario.priorities):
        text = "brokers 5.4.0 and newer store a message in queue min(priority, write queues - 1)"
        chosen = "the producer's pick" if scenario.chosen_by is None else f"selector {scenario.chosen_by.name}"
        yield Finding("stored-by-priority", f"{text}; {chosen} decides only the broker", severity=INFO)
    if route.is_order_topic:
        text = f"topic {route.topic} has an order config: its queues stay in the producer's list even if brokers fail"
        yield Finding("order-topic", text)


def _leaves_the_route(failure: Failure) -> bool:
    """Whether the NameServer drops the broker, or its write permission, before the failure is over."""
    if failure.reaction.kind == "read-only":
        return True
    if failure.notices_us is None:
        return False
    start, end = failure.start.us, None if failure.end is None else failure.end.us
    return start is None or end is None or end > start + failure.notices_us


def _too_short(report: SendReport) -> Iterator[Finding]:
    """Report a broker that stays in the list only because the simulation ends before the route poll."""
    first_ms, poll_ms = report.producer.first_poll_ms, report.producer.poll_ms
    for taken in report.failures:
        dropped_ms = 0 if taken.kind == "read-only" else taken.nameserver_notices_ms
        if taken.began_ms is None or taken.ended_ms is not None or dropped_ms is None or taken.isolated_by == "route":
            continue
        poll = poll_after(taken.began_ms + dropped_ms, first_ms, poll_ms)
        if report.totals.lasted_ms < poll:
            done = f"the last message is done after {report.totals.lasted_ms / 1000:g} s"
            text = f"before the route poll at {poll / 1000:g} s at which the producer drops {taken.broker_name}"
            yield Finding("before-route-poll", f"{done}, {text}: to simulate longer, pass --rate and --for")
            return


def _healthy_isolated(report: SendReport) -> Iterator[Finding]:
    """Report healthy brokers isolated by an attempt that began so close to the deadline that no time was left."""
    failing = {failure.broker_name for failure in report.failures}
    blamed = [broker for broker in report.brokers if broker.isolations and broker.broker_name not in failing]
    timeouts = any(failure.kind in ("timeout", "slow") for failure in report.failures)
    if blamed and timeouts:
        names = ", ".join(f"{broker.broker_name} {times(broker.isolations)}" for broker in blamed)
        text = f"timeouts isolate brokers that never failed: {names}"
        yield Finding("healthy-isolated", f"{text} (retries close to the deadline have no time left)")


def _skew(report: SendReport) -> Iterator[Finding]:
    """Report skew: clients before 5.1.4 continue from the isolated broker's place, so its neighbour gets its share."""
    if profile_of(report.scenario.client_version).strategy == "filter":
        return
    healthy = {tally.broker_name for tally in report.queues} - {failure.broker_name for failure in report.failures}
    stored = {b.broker_name: b.stored / b.queues for b in report.brokers if b.queues and b.broker_name in healthy}
    if len(stored) > 1 and min(stored.values()) and max(stored.values()) > 1.2 * min(stored.values()):
        most, ratio = max(stored, key=lambda name: stored[name]), max(stored.values()) / min(stored.values())
        text = f"{most} takes {ratio:.2f} times as much per queue as the least used healthy broker"
        why = f"clients {report.profile} pass an isolated broker's turns to the queues after it"
        yield Finding("skewed", f"{text}: {why}")


def assumed_findings(names: Sequence[str]) -> Iterator[Finding]:
    for chosen in map(sdk, names):
        if chosen.assumed:
            yield _assumed(chosen.text, chosen.mirrors)


def keyed_findings(sdks: Sequence[KeyedSdk]) -> Iterator[Finding]:
    for each in sdks:
        if each.assumed:
            yield _assumed(each.sdk, each.mirrors)
        if each.unknown is not None:
            text = f"the queues of keys of {each.sdk} are unknown: {each.unknown}"
            yield Finding("unpredictable-sdk", text, severity=INFO)


def _assumed(name: str, mirrors: str) -> Finding:
    return Finding("assumed-sdk", f"the rules of {name} are unknown: rmqlb uses those of {mirrors}", severity=INFO)


_TOTALS = declared(SendTotals)
SEND_FIGURES = FailOn(
    names=_TOTALS.names, of_subject=declared(BrokerTally).names, shares=(*_TOTALS.shares, "share", "picks", "failed")
)
"""`share[BROKER]` is a percentage of the messages that were stored, with or without the sign; that of `picks[BROKER]`
is one of all picks, which are more than the requests where some come after a send's deadline."""

_MEANS = ("not_store_ok", "duplicated", "retried", "retries", "failing_ms")


def try_on(condition: Condition, report: SendReport, trials: TrialsReport | None = None) -> TriedCondition:
    if condition.subject is None:
        return condition.judge(report.totals if trials is None else _mean_totals(report.totals, trials))
    brokers = {each.broker_name: each if trials is None else _mean_tally(each, trials) for each in report.brokers}
    if condition.subject not in brokers:
        problem = f"--fail-on {condition.text!r}: topic {report.topic} has no broker {condition.subject}"
        raise DataError(problem, hint=suggestion("brokers", condition.subject, brokers), code="unknown-broker")
    value: float | None = getattr(brokers[condition.subject], condition.name.replace("-", "_"))
    if condition.name == "share":
        return condition.try_on(value if condition.percent or value is None else 100 * value, 1)
    whole = "picks" if condition.name == "picks" else "attempts"
    return condition.try_on(value, fsum(getattr(each, whole) or 0 for each in brokers.values()))


def _mean_totals(totals: SendTotals, trials: TrialsReport) -> SendTotals:
    longest, messages, lost = trials.longest_send_ms, trials.messages.mean, trials.lost_messages.mean
    return replace(
        totals,
        **{name: getattr(trials, name).mean for name in _MEANS},
        messages=messages,
        lost=lost,
        stored=messages - lost,
        attempts=fsum(each.mean for each in trials.attempts_at.values()),
        failed_attempts=fsum(each.mean for each in trials.failed_at.values()),
        longest_send_ms=None if longest is None else longest.max_ms,
    )


def _mean_tally(tally: BrokerTally, trials: TrialsReport) -> BrokerTally:
    """The means at a broker; None for figures that trials do not count."""
    figures = {
        "share": trials.shares,
        "picks": trials.picks,
        "attempts": trials.attempts_at,
        "failed": trials.failed_at,
        "isolations": trials.isolations,
    }
    means = {figure: estimates.get(tally.broker_name) for figure, estimates in figures.items()}
    known = {figure: None if each is None else each.mean for figure, each in means.items()}
    return replace(tally, isolated_ms=None, **known)
