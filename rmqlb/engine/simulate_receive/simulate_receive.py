"""The report of `simulate-receive` from a route and a scenario, and the number of receives that a wait needs."""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import cache, partial
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from rmqlb.engine.arguments import check_route, require
from rmqlb.engine.conditions import Condition, FailOn, declared
from rmqlb.engine.kernel import nearest_rank
from rmqlb.engine.simulate_receive import rules
from rmqlb.engine.simulate_receive.simulation import MOST_FURTHER, NEVER, Outage, PopMessage, ReceiveSimulation
from rmqlb.errors import DataError, UsageError
from rmqlb.model import simulate_receive as result
from rmqlb.model.limits import PositiveTime, TrialNumber
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.result import INFO, Finding, TriedCondition, counted, figures_of, milliseconds, milliseconds_if_known
from rmqlb.model.route import TopicRouteData
from rmqlb.model.simulate_receive import MOST_LOOPS, MOST_RECEIVE_TRIALS, SECOND_US, ReceiveScenario
from rmqlb.model.snapshot import suggestion

_FEWEST_RARE, _MOST_RARE = 100, 1000
_RECEIVES = 100_000  # about how many receives the rare messages of a simulation take when their number is not given
Progress = Callable[[int], None]
Shape = TypeVar("Shape", bound=Struct)


def readable_queues(route: TopicRouteData) -> list[MessageQueue]:
    """The queues that a SimpleConsumer visits, in its order (raises DataError, UsageError).

    They are the readable queues of brokers with a master, broker by broker as in the route: `RouteActivity.queryRoute`
    (5.5.0) and `SubscriptionLoadBalancer`. Their permissions do not matter here, only their number.
    """
    if route.is_static:
        text = f"topic {route.topic} is a static topic: rmqlb does not simulate receives from its logical queues"
        raise UsageError(text, hint="simulate a topic that is not static", code="static-topic")
    brokers = route.brokers_by_name()
    queues: list[MessageQueue] = []
    for data in route.queue_datas:
        broker = brokers.get(data.broker_name)
        if broker is None:
            break  # so does the Proxy
        if data.readable and broker.has_master:
            queues += [MessageQueue(route.topic, data.broker_name, i) for i in range(data.read_queue_nums)]
    if not queues:
        hint = "no broker with a master has readable queues; see rmqlb show-route"
        raise DataError(f"topic {route.topic} has no queue to receive from", hint=hint, code="no-readable-queue")
    return queues


def check(route: TopicRouteData, scenario: ReceiveScenario) -> list[MessageQueue]:
    """The queues; the scenario must contradict neither itself nor the route (raises UsageError, DataError)."""
    check_route(route)
    require(scenario, ReceiveScenario, "ReceiveScenario")
    _check_priorities(scenario)
    queues = readable_queues(route)
    if scenario.client != "simple" and scenario.loops != 1:
        raise UsageError(f"{scenario.loops} loops: a {scenario.client} consumer has one receive per broker")
    if scenario.client == "pop" and scenario.fifo:
        raise UsageError("POP clients of 5.5.0 do not consume in order: they send every request without order")
    if rules.is_refused(scenario):
        text = f"await duration of {milliseconds(scenario.await_us):.15g} ms: the Proxy refuses each receive"
        why = "the shortest wait there is 5 s, and the client gives up 3 s after its await duration"
        hint = "use 5 s or more: a shorter duration does not make a SimpleConsumer receive sooner"
        raise UsageError(f"{text}, because {why} (its request timeout)", hint=hint)
    allowed = rules.SHORTEST_INVISIBLE_US <= scenario.invisible_us <= rules.LONGEST_INVISIBLE_US
    if scenario.client == "simple" and not allowed:
        invisible = f"invisible duration of {milliseconds(scenario.invisible_us):.15g} ms"
        raise UsageError(f"{invisible}: the Proxy refuses less than 10 s and more than 12 h")
    _check_rates_and_failures(route, scenario, queues)
    for consumer, times in Counter(crash.consumer for crash in scenario.crashes).items():
        if consumer > scenario.consumers:
            raise UsageError(f"consumer {consumer} dies, but there are only {scenario.consumers}")
        if times > 1:
            raise UsageError(f"consumer {consumer} dies twice")
    if scenario.rates and scenario.messages is None and scenario.duration_us is None:
        raise UsageError("neither messages nor duration_us: the simulation would not end")
    return queues


def _check_priorities(scenario: ReceiveScenario) -> None:
    knows_priorities = rules.broker_rules(scenario.broker_version).counts_down
    if scenario.priority_factor is None:
        if scenario.priority_retry_percent:
            hint = "for a PRIORITY topic, add --set priority-factor=100"
            raise UsageError("priority-retry has no effect without receives by priority", hint=hint)
    elif not knows_priorities:
        raise UsageError(f"brokers {scenario.broker_version} have no PRIORITY topics: RocketMQ 5.4.0 introduced them")
    elif scenario.fifo:
        raise UsageError("receives in order ignore priorities: priority-factor has no effect")


def _check_rates_and_failures(route: TopicRouteData, scenario: ReceiveScenario, queues: list[MessageQueue]) -> None:
    names = list(dict.fromkeys(queue.broker_name for queue in queues))
    known = {(queue.broker_name, queue.queue_id) for queue in queues}

    def require_known(broker: str, what: str, *, is_known: bool) -> None:
        if not is_known:
            hint = suggestion("brokers", broker, names)
            raise DataError(f"topic {route.topic} has no {what} to receive from", hint=hint, code="unknown-broker")

    for rate in scenario.rates:
        broker, place = rate.broker_name, f"{rate.broker_name}:{rate.queue_id}"
        if rate.per_second <= 0:
            raise UsageError(f"rate of {place} is {rate.per_second}: must be above 0")
        require_known(broker, f"queue {place}", is_known=(broker, rate.queue_id) in known)
    for failure in scenario.failures:
        broker = failure.broker_name
        require_known(broker, f"broker {broker}", is_known=broker in names)
        if failure.reaction.kind not in ("refused", "timeout"):
            raise UsageError(f"{broker}: for receives, a broker's failure is refused or timeout")
        if any(moment is not None and moment.us is None for moment in (failure.start, failure.end)):
            raise UsageError(f"{broker} fails at message numbers, but receives need times")


def simulate_receive(
    route: TopicRouteData,
    scenario: ReceiveScenario,
    *,
    trace: bool = False,
    trial: int = 0,
    progress: Progress | None = None,
) -> result.ReceiveReport:
    """Simulate how long messages wait for consumers that receive, while brokers fail and consumers die.

    Mirrors `SimpleConsumerImpl`, `PushConsumerImpl` and `DefaultMQPushConsumerImpl.popMessage` of clients 5.2.0 and
    5.5.0, and Proxy and broker of 5.5.0 at their default settings. Equal arguments give equal reports.

    Args:
        route: the topic's route while nothing fails.
        scenario: the simulated clients and load; without rates messages are rare, by default at most a thousand.
        trace: keep each message in the report.
        trial: the number of a run with the same seed and its own random parts.
        progress: called now and then with the number of messages so far.

    Raises:
        DataError: the topic has no readable queue, or is static.
        UsageError: an argument is wrong, the scenario contradicts itself or the route, or takes too long.
    """
    return _report(_run(route, scenario, trial, progress), trace=trace)


def receive_trials(
    route: TopicRouteData, scenario: ReceiveScenario, trials: int, progress: Progress | None = None
) -> result.TrialWaits:
    """Waits of many trials; the first trial is `simulate_receive`'s own (raises as `simulate_receive` does)."""
    if not 1 <= trials <= MOST_RECEIVE_TRIALS:
        raise UsageError(f"{trials} trials: expected 1 to {MOST_RECEIVE_TRIALS}")
    waits: list[list[int]] = []
    left = redelivered = 0
    for trial in range(trials):
        simulation = _run(route, scenario, trial)
        waits.append([wait for broker in simulation.brokers for wait in broker.waits])
        left += sum(broker.open for broker in simulation.brokers)
        redelivered += sum(message.deliveries > 1 for message in simulation.messages)
        if progress is not None:
            progress(trial + 1)
    times = [each for each in map(wait_times, waits) if each is not None]
    return result.TrialWaits(
        trials=trials,
        wait=wait_times([wait for own in waits for wait in own]),
        lowest_max_ms=min((each.max_ms for each in times), default=None),
        lowest_p95_ms=min((each.p95_ms for each in times), default=None),
        highest_p95_ms=max((each.p95_ms for each in times), default=None),
        left=left,
        redelivered=redelivered,
    )


def _run(
    route: TopicRouteData,
    scenario: ReceiveScenario,
    trial: int,
    progress: Progress | None = None,
    until_wait_us: int = NEVER,
) -> ReceiveSimulation:
    queues = check(route, scenario)
    require(trial, TrialNumber, "trial")
    if scenario.rare and scenario.messages is None and scenario.duration_us is None:
        # Each rare message takes two rounds of all queues.
        number = min(max(math.ceil(_RECEIVES / (2 * len(queues))), _FEWEST_RARE), _MOST_RARE)
        scenario = replace(scenario, messages=number)
    simulation = ReceiveSimulation(queues, scenario, trial)
    simulation.run(progress, until_wait_us)
    return simulation


_PERCENTS = (0, *range(5, 100, 5), 99, 100)


def wait_times(waits: Sequence[int]) -> result.WaitTimes | None:
    """The distribution of times in microseconds; None without any.

    >>> wait_times([1000, 3000, 2000])
    WaitTimes(messages=3, mean_ms=2.0, p50_ms=2, p95_ms=3, p99_ms=3, max_ms=3)
    """
    if not waits:
        return None
    ordered = sorted(waits)
    mean_ms = round(math.fsum(ordered) / len(ordered)) / 1000
    return result.WaitTimes(
        len(ordered), mean_ms, *(milliseconds(nearest_rank(ordered, each)) for each in (50, 95, 99, 100))
    )


def _report(simulation: ReceiveSimulation, *, trace: bool) -> result.ReceiveReport:
    scenario, brokers, totals = simulation.scenario, simulation.brokers, _totals(simulation)
    waits = sorted(wait for broker in brokers for wait in broker.waits)
    return result.ReceiveReport(
        topic=simulation.queues[0].topic,
        scenario=_simulated(simulation),
        wait=wait_times(waits),
        back=wait_times(simulation.back),
        quantiles=tuple(
            result.Quantile(each, milliseconds(nearest_rank(waits, each))) for each in (_PERCENTS if waits else ())
        ),
        brokers=tuple(
            _filled(
                *(result.BrokerReceives, broker),
                broker_name=broker.name,
                queues=len(broker.queues),
                share=broker.receives / totals.receives if totals.receives else None,
                messages=len(broker.waits),
                wait=wait_times(broker.waits),
            )
            for broker in brokers
        ),
        queue_waits=tuple(_queue_waits(simulation)),
        totals=totals,
        closed_forms=closed_forms([len(broker.queues) for broker in brokers], scenario),
        failures=tuple(_failure(outage, simulation) for outage in simulation.outages),
        crashes=tuple(_crashes(simulation)),
        messages=tuple(map(_traced, simulation.messages)) if trace else None,
    )


def _totals(simulation: ReceiveSimulation) -> result.ReceiveTotals:
    brokers, messages = simulation.brokers, simulation.messages
    return _filled(
        *(result.ReceiveTotals, simulation),
        messages=len(messages),
        received=sum(len(broker.waits) for broker in brokers),
        acknowledged=sum(message.done is not None for message in messages),
        left=sum(broker.open for broker in brokers),
        redelivered=sum(message.deliveries > 1 for message in messages),
        receives=sum(broker.receives for broker in brokers),
        empty_receives=sum(broker.empty for broker in brokers),
        failed_receives=sum(broker.failed for broker in brokers),
        lasted_ms=milliseconds(simulation.clock.now),
    )


def _failure(outage: Outage, simulation: ReceiveSimulation) -> result.FailureReceived:
    return _filled(
        *(result.FailureReceived, outage),
        broker_name=outage.failure.broker_name,
        kind=outage.failure.reaction.kind,
        from_ms=milliseconds(outage.begin),
        to_ms=None if outage.end == NEVER else milliseconds(outage.end),
        left=sum(message.outage is outage and message.received is None for message in simulation.messages),
    )


def _crashes(simulation: ReceiveSimulation) -> Iterator[result.CrashReceived]:
    earliest, latest = map(milliseconds, rules.again_after_us(simulation.scenario))
    for crash in simulation.scenario.crashes:
        dead = simulation.consumers[crash.consumer - 1]
        times = milliseconds(crash.at_us), dead.unacknowledged, len(dead.again), wait_times(dead.again)
        yield result.CrashReceived(crash.consumer, *times, earliest, latest)


def _traced(message: PopMessage) -> result.ReceivedMessage:
    place = {"broker_name": message.broker.name, "queue_id": message.queue}
    return _filled(result.ReceivedMessage, message, message=message.number, **place)


def _simulated(simulation: ReceiveSimulation) -> result.SimulatedReceivers:
    scenario = simulation.scenario
    rates = {broker.name: Fraction() for broker in simulation.brokers if scenario.rates}
    for rate in scenario.rates:
        rates[rate.broker_name] += rate.per_second
    return _filled(
        *(result.SimulatedReceivers, scenario),
        rules=rules.rules_followed(scenario),
        await_ms=milliseconds(rules.awaited_us(scenario)),
        invisible_ms=milliseconds(rules.invisible_us(scenario)),
        error_pause_ms=milliseconds(rules.error_pause_us(scenario)),
        rate_per_second=None if scenario.rare else float(sum(rates.values())),
        rates={name: float(rate) for name, rate in rates.items()},
    )


def _filled(shape: type[Shape], source: object, **more: Any) -> Shape:
    """A Struct of this shape with the source's attributes; its `stored_ms` is a `stored` or `stored_us` there."""

    def value(name: str) -> Any:
        time = name.removesuffix("_ms")
        if time == name:
            return getattr(source, name)
        return milliseconds_if_known(getattr(source, f"{time}_us" if hasattr(source, f"{time}_us") else time))

    return shape(**more, **{name: value(name) for name in shape.__struct_fields__ if name not in more})


def _queue_waits(simulation: ReceiveSimulation) -> Iterator[result.QueueWaits]:
    waits: dict[tuple[str, int], list[int]] = {(each.broker_name, each.queue_id): [] for each in simulation.queues}
    for message in simulation.messages:
        if message.wait is not None:
            waits[message.broker.name, message.queue].append(message.wait)
    for place, own in waits.items():
        times = wait_times(own)
        found = (0, None, None, None) if times is None else (times.messages, times.mean_ms, times.p95_ms, times.max_ms)
        yield result.QueueWaits(*place, *found)


def closed_forms(queues: Sequence[int], scenario: ReceiveScenario) -> result.ClosedForms:
    receive_us, loops = rules.longest_receive_us(scenario), scenario.loops
    if scenario.client != "simple":
        trip_ms = milliseconds(scenario.round_trip_us)
        return result.ClosedForms(milliseconds(receive_us), None, wait_ms=trip_ms, unpolled_ms=trip_ms, always_polled=1)
    return result.ClosedForms(
        receive_ms=milliseconds(receive_us),
        cycle_ms=milliseconds(-(-sum(queues) // loops) * receive_us),
        wait_ms=milliseconds(rules.rare_wait_us(queues, loops, receive_us)),
        unpolled_ms=milliseconds(rules.unpolled_us(queues, loops, receive_us, scenario.batch * scenario.consume_us)),
        always_polled=rules.longest_row(queues) + 1,
    )


def receive_findings(scenario: ReceiveScenario, read_queues: list[int]) -> Iterator[Finding]:
    await_us, simple = rules.awaited_us(scenario), scenario.client == "simple"
    if simple and await_us != scenario.await_us:
        limit = "the least" if await_us > scenario.await_us else "the most"
        text = f"the Proxy lets a receive wait {await_us // SECOND_US} s, {limit} that its settings allow"
        yield Finding("await-limited", f"await duration of {scenario.await_us / SECOND_US:g} s: {text}")
    if scenario.client == "pop" and rules.invisible_us(scenario) != scenario.invisible_us:
        text = f"POP clients use {rules.RENEWED_US // SECOND_US} s instead of a value outside 5 s to 5 minutes"
        yield Finding("invisible-limited", f"popInvisibleTime of {scenario.invisible_us / SECOND_US:g} s: {text}")
    if simple and scenario.batch * scenario.consume_us > scenario.invisible_us:
        batch, each = counted(scenario.batch, "message"), f"{scenario.consume_us / SECOND_US:g} s each"
        text = f"a full receive of {batch} at {each} takes longer than the invisible duration"
        yield Finding("longer-than-invisible", f"{text}: messages are redelivered while they are processed")
    most, last = max(read_queues), rules.RANDOM_QUEUES - 1
    if most > rules.RANDOM_QUEUES:
        begin = f"one of queues 0 to {last} and go up"
        if rules.broker_rules(scenario.broker_version).counts_down:
            begin = f"queue {most - 1} or one of queues 0 to {last - 1} and go down"
        text = f"a broker has {most} readable queues: receives begin at {begin}"
        yield Finding("queues-beyond-100", text, severity=INFO)


def ended_findings(report: result.ReceiveReport) -> Iterator[Finding]:
    if report.totals.further >= MOST_FURTHER:
        text = f"no load after {MOST_FURTHER:,} further messages, although measured messages still wait"
        yield Finding("arrivals-ended", f"{text}: the last of them wait as in an idle system")


_TIMES, _TOTALS = figures_of(result.WaitTimes), declared(result.ReceiveTotals)
_WAITS = tuple(f"wait-{name}" for name in _TIMES)
RECEIVE_FIGURES = FailOn(
    names=(*_WAITS, *(f"back-{name}" for name in _TIMES), *_TOTALS.names, "unpolled-ms", "receives-needed"),
    of_subject=(*_WAITS, "receives", "unpolled-ms"),
    shares=_TOTALS.shares,
)
"""`unpolled-ms` is the longest time in which no receive waited at a broker; `receives-needed` is of --target-wait. With
many trials, the figures of waits are those of all their messages together."""


def try_on_receive(condition: Condition, report: result.ReceiveReport) -> TriedCondition:
    name, subject, brokers = condition.name, condition.subject, report.brokers
    if subject is not None:
        brokers = tuple(broker for broker in brokers if broker.broker_name == subject)
        if not brokers:
            problem = f"--fail-on {condition.text!r}: topic {report.topic} has no broker {subject}"
            hint = suggestion("brokers", subject, [each.broker_name for each in report.brokers])
            raise DataError(problem, hint=hint, code="unknown-broker")
    if name == "unpolled-ms":
        return condition.try_on(max(broker.longest_unpolled_ms for broker in brokers))
    if name == "receives":
        return condition.try_on(sum(broker.receives for broker in brokers), report.totals.receives)
    if name in _TOTALS.names:
        return condition.judge(report.totals)
    if name == "receives-needed":
        if report.target is None:
            raise UsageError(f"--fail-on {condition.text!r}: it needs --target-wait", hint="pass --target-wait TIME")
        if report.target.receives is None:
            return condition.try_on_endless()
        return condition.try_on(report.target.receives)
    which, _, time = name.partition("-")
    if which == "back":  # messages that are never redelivered come back after no time
        return condition.try_on(getattr(report.back, _TIMES[time][0]) if report.back else 0)
    wait = brokers[0].wait if subject else report.wait if report.trials is None else report.trials.wait
    return condition.try_on(None if wait is None else getattr(wait, _TIMES[time][0]))


_TRIALS = 3
_FIRST_MESSAGES, _MOST_MESSAGES = 5_000, 20_000
"""Messages of each simulation: during the search, and for its result."""
_IN_A_ROW = 4  # numbers that must be enough, of which the answer is the first


def receives_within(
    route: TopicRouteData, scenario: ReceiveScenario, target_us: int, progress: Progress | None = None
) -> result.TargetWait:
    """The number of parallel receives that keep waits within a time (raises as `simulate_receive` does).

    A PushConsumer and a POP client have exactly one receive at each broker. The scenario's number of loops does not
    count; `progress` is called with each number tried.
    """
    counts = list(Counter(queue.broker_name for queue in check(route, scenario)).values())
    require(target_us, PositiveTime, "target_us")
    simple, receive_us = scenario.client == "simple", rules.longest_receive_us(scenario)
    rare = rules.rare_receives(counts, target_us, receive_us) if simple else 1
    target_ms = milliseconds(target_us)
    if scenario.rare and not scenario.failures and not scenario.crashes:
        longest = scenario.round_trip_us if not simple else rare and rules.rare_wait_us(counts, rare, receive_us)
        max_ms = milliseconds_if_known(longest)
        return result.TargetWait(target_ms, rare, rare, simulated=False, trials=0, max_ms=max_ms)
    longest_us = cache(partial(_longest_us, route, scenario, target_us))

    def seems_enough(loops: int) -> bool:
        if progress is not None:
            progress(loops)
        return longest_us(loops, _FIRST_MESSAGES, 1) <= target_us

    most = MOST_LOOPS if simple else 1
    found = _least(seems_enough, most)
    while found is not None:
        row = range(min(found + _IN_A_ROW - 1, most), found - 1, -1)
        too_few = next((loops for loops in row if longest_us(loops, _MOST_MESSAGES, _TRIALS) > target_us), None)
        if too_few is None:
            break
        found = too_few + 1 if too_few < most else None
    max_ms = None if found is None else milliseconds(longest_us(found, _MOST_MESSAGES, _TRIALS))
    return result.TargetWait(target_ms, found, rare, simulated=True, trials=_TRIALS, max_ms=max_ms)


def _longest_us(
    route: TopicRouteData, scenario: ReceiveScenario, target_us: int, loops: int, messages: int, trials: int
) -> int:
    """The longest wait of trials, up to the first beyond the target; NEVER if some message is not received."""
    scenario = replace(scenario, loops=loops)
    if not scenario.failures and not scenario.crashes:
        scenario = replace(scenario, messages=min(scenario.messages or messages, messages))
    longest = 0
    for trial in range(trials):
        simulation = _run(route, scenario, trial, until_wait_us=target_us)
        longest = max(longest, simulation.longest_wait)
        if longest > target_us:
            break
        if any(message.received is None for message in simulation.messages):
            return NEVER
    return longest


def _least(enough: Callable[[int], bool], most: int) -> int | None:
    below, above = 0, 1
    while not enough(above):
        if above >= most:
            return None
        below, above = above, min(2 * above, most)
    while above - below > 1:
        middle = (below + above) // 2
        below, above = (below, middle) if enough(middle) else (middle, above)
    return above
