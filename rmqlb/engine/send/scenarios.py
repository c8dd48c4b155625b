"""Parts of send scenarios: latencies, the route of a new topic, failures as events say, and how long to simulate."""

import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

from msgspec import Struct
from msgspec.structs import replace

from rmqlb.engine.send.cluster import poll_after
from rmqlb.engine.send.profile import ClientProfile
from rmqlb.engine.send.simulate import rules, simulate_send
from rmqlb.errors import DataError, UsageError
from rmqlb.model.group_scenario import Event
from rmqlb.model.limits import LONGEST_US
from rmqlb.model.result import Finding
from rmqlb.model.route import TopicRouteData
from rmqlb.model.send_scenario import HOST_LOSS_US, REFUSED_US, Failure, Latency, Moment, Reaction, SendScenario
from rmqlb.model.simulate_send import SendReport

TEMPLATE = "TBW102"
ASSUMED_RATE = Fraction(10)
"""Messages per second while something fails, if no rate is given: each queue is tried more than once before a poll."""
_MOST_MESSAGES = 1_000_000
"""`long_enough` sends no more; a finding reports when that ends before a route poll."""
_CELLS = 1 << 16
_LONGEST_LATENCY_US = 24 * 3600 * 1_000_000
_REFUSED, _SILENT = Reaction("refused", "refused", 0, REFUSED_US), Reaction("timeout", "timeout")


def lognormal(median_us: float, sigma: float, text: str) -> Latency:
    """A lognormal distribution by its median and the deviation of its natural logarithm.

    The table holds 65,536 quantiles, the last of which is refined by as many again: the rarest value has a chance of
    about one in nine thousand million.
    """
    if not 0 <= sigma <= 10:
        raise UsageError(f"latency {text}: sigma is not between 0 and 10")
    if sigma == 0:
        return Latency(text, (round(median_us),))
    from statistics import NormalDist

    quantile = NormalDist().inv_cdf

    def value(probability: float) -> int:
        return min(round(median_us * math.exp(sigma * quantile(probability))), _LONGEST_LATENCY_US)

    table = tuple(value((cell + 0.5) / _CELLS) for cell in range(_CELLS))
    tail = tuple(value(1 - (_CELLS - cell - 0.5) / _CELLS**2) for cell in range(_CELLS))
    return Latency(text, table, tail)


def new_topic_route(template: TopicRouteData, topic: str) -> TopicRouteData:
    """The route that a producer makes of the template's (`TBW102`) for a topic without one.

    Each broker gets as many queues as the template has read queues, at most four (`defaultTopicQueueNums`). Mirrors
    `MQClientInstance.updateTopicRouteInfoFromNameServer` with `isDefault` (4.9.8 and 5.5.0).
    """
    counted = ((data, min(4, data.read_queue_nums)) for data in template.queue_datas)
    datas = tuple(replace(data, read_queue_nums=count, write_queue_nums=count) for data, count in counted)
    return replace(template, topic=topic, queue_datas=datas)


class Producers(Struct, frozen=True):
    reports: tuple[SendReport, ...]  # one for each topic with queues on a failing broker
    findings: tuple[Finding, ...]


def failures_of(events: Iterable[Event]) -> tuple[Failure, ...]:
    """The failures that `broker-down` and `broker-loss` events cause, each until the next `broker-up` of its broker.

    A process that ends refuses connections, and the NameServers drop it at once, whether it unregisters or its
    connection closes; a machine that is lost stays silent until its last registration is too old.
    """
    brokers = [event for event in events if event.kind in ("broker-down", "broker-loss", "broker-up")]
    open_: dict[str, Failure] = {}
    found: list[Failure] = []
    for event in sorted(brokers, key=lambda event: event.at_us):
        name, at = event.subject, Moment(event.at_us)
        if event.kind == "broker-up":
            if name in open_:
                found.append(replace(open_.pop(name), end=at))
        elif name not in open_:
            reaction, notices_us = (_REFUSED, 0) if event.kind == "broker-down" else (_SILENT, HOST_LOSS_US)
            open_[name] = Failure(name, reaction, at, notices_us=notices_us)
    return (*found, *open_.values())


def producers_of(
    routes: Sequence[TopicRouteData], failures: Sequence[Failure], scenario: SendScenario, rates: Mapping[str, float]
) -> Producers:
    """Simulate a producer of each topic with queues on a failing broker; `rates` has messages per second by topic."""
    reports, findings = list[SendReport](), list[Finding]()
    for route in routes:
        brokers = {queue.broker_name for queue in route.publish_queues()}
        own = tuple(failure for failure in failures if failure.broker_name in brokers)
        if not own:
            continue
        rate = rates.get(route.topic)
        own_scenario = replace(scenario, failures=own, rate=Fraction(rate).limit_denominator(10**6) if rate else None)
        try:
            reports.append(simulate_send(route, long_enough(own_scenario), trace=False))
        except (DataError, UsageError) as error:
            findings.append(Finding("producers-left-out", f"producers of topic {route.topic}: {error.message}"))
    return Producers(tuple(reports), tuple(findings))


def long_enough(scenario: SendScenario) -> SendScenario:
    """The scenario until a poll interval after the producer knows each failure and its end (raises UsageError)."""
    scenario = replace(scenario, rate=scenario.rate or ASSUMED_RATE)
    profile = rules(scenario)
    known_us = max(_known_us(failure, scenario, profile) for failure in scenario.failures)
    duration_us = min(known_us + scenario.poll_us, LONGEST_US)
    messages = min(math.ceil(Fraction(duration_us, 1_000_000) * (scenario.rate or 1)), _MOST_MESSAGES)
    return replace(scenario, duration_us=duration_us, messages=messages)


def _known_us(failure: Failure, scenario: SendScenario, profile: ClientProfile) -> int:
    start, end = _us(failure.start, scenario), None if failure.end is None else _us(failure.end, scenario)
    notices_us, times = 0 if failure.reaction.kind == "read-only" else failure.notices_us, [start]
    if notices_us is not None and (end is None or start + notices_us < end):
        every, first = scenario.poll_us, scenario.first_poll_us
        seen = [at for at in (start + notices_us, end) if at is not None]
        # The latest possible poll if the first one is at a random time.
        times += [at + every if first is None else poll_after(at, first, every) for at in seen]
    if end is not None:
        times.append(end + (1000 * profile.duration(0, isolation=True) if scenario.latency_fault else 0))
    return max(times)


def _us(moment: Moment, scenario: SendScenario) -> int:
    if moment.us is not None or scenario.rate is None:
        return moment.us or 0
    return int(((moment.message or 1) - 1) * 1_000_000 / scenario.rate)
