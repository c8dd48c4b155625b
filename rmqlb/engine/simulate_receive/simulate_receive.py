"""The answer of `simulate-receive`: from a route and a scenario to a report, and how many receives a wait needs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import cache
from math import ceil, fsum

from msgspec.structs import replace

from rmqlb.engine.arguments import check_route, require
from rmqlb.engine.simulate_receive.closed_forms import closed_forms, rare_receives, rare_wait_us
from rmqlb.engine.simulate_receive.rules import (
    LONGEST_INVISIBLE_US,
    RANDOM_QUEUES,
    RENEWED_US,
    SHORTEST_INVISIBLE_US,
    again_after_us,
    awaited_us,
    broker_rules,
    invisible_us,
    is_refused,
    longest_receive_us,
    rules_followed,
)
from rmqlb.engine.simulate_receive.simulation import MOST_FURTHER, ReceiveSimulation
from rmqlb.engine.simulate_receive.world import NEVER, UNKNOWN, Message
from rmqlb.errors import DataError, UsageError
from rmqlb.model.finding import INFO, Finding
from rmqlb.model.limits import PositiveTime, TrialNumber
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.route import TopicRouteData
from rmqlb.model.simulate_receive import (
    MOST_LOOPS,
    MOST_RECEIVE_TRIALS,
    BrokerReceives,
    CrashReceived,
    FailureReceived,
    Quantile,
    QueueWaits,
    ReceivedMessage,
    ReceiveReport,
    ReceiveScenario,
    ReceiveTotals,
    SimulatedReceivers,
    TargetWait,
    TrialWaits,
    WaitTimes,
)
from rmqlb.model.snapshot import suggestion
from rmqlb.model.times import milliseconds, milliseconds_if_known
from rmqlb.model.words import counted

RARE_MESSAGES = 1000
_FEWEST_MESSAGES = 100
_RECEIVES = 100_000
"""About how many receives the rare messages of a simulation take when their number is not given."""
Progress = Callable[[int], None]


def readable_queues(route: TopicRouteData) -> list[MessageQueue]:
    """The queues that a SimpleConsumer goes round, in its order (raises DataError, UsageError).

    Readable queues of brokers that have a master, broker by broker as the route has them: `RouteActivity.queryRoute`
    (5.5.0) and `SubscriptionLoadBalancer`. Which permission each queue is given does not matter here, only how many.
    """
    if route.is_static:
        raise UsageError(
            f"topic {route.topic} is static: its queues are logical ones, from which receives are not simulated",
            hint="simulate a topic whose queues are on brokers",
            code="static-topic",
        )
    brokers = route.brokers_by_name()
    queues: list[MessageQueue] = []
    for data in route.queue_datas:
        broker = brokers.get(data.broker_name)
        if broker is None:
            break  # so does the Proxy
        if data.readable and broker.has_master:
            queues += [MessageQueue(route.topic, data.broker_name, i) for i in range(data.read_queue_nums)]
    if not queues:
        raise DataError(
            f"topic {route.topic} has no queue to receive from",
            hint="no broker with a master has readable queues; see rmqlb show-route",
            code="no-readable-queue",
        )
    return queues


def check(route: TopicRouteData, scenario: ReceiveScenario) -> list[MessageQueue]:
    """The queues, of a scenario that contradicts neither itself nor the route (raises UsageError, DataError)."""
    check_route(route)
    require(scenario, ReceiveScenario, "ReceiveScenario")
    broker_rules(scenario.broker_version)
    queues = readable_queues(route)
    if scenario.client != "simple" and scenario.loops != 1:
        raise UsageError(f"{scenario.loops} loops: a {scenario.client} consumer has one receive per broker")
    if scenario.client == "pop" and scenario.fifo:
        raise UsageError("POP clients of 5.5.0 do not consume in order: they send every request without order")
    if is_refused(scenario):
        raise UsageError(
            f"await duration of {milliseconds(scenario.await_us):g} ms: the Proxy refuses each receive, since it lets "
            "one wait 5 s at least and the client gives up after the await duration and its request timeout, 3 s",
            hint="take 5 s or more: a shorter one does not make a SimpleConsumer come round sooner",
        )
    if scenario.client == "simple" and not SHORTEST_INVISIBLE_US <= scenario.invisible_us <= LONGEST_INVISIBLE_US:
        raise UsageError(
            f"invisible duration of {milliseconds(scenario.invisible_us):g} ms: the Proxy refuses less than 10 s and "
            "more than 12 h"
        )
    _check_rates_and_failures(route, scenario, queues)
    dying = [crash.consumer for crash in scenario.crashes]
    for consumer in dying:
        if consumer > scenario.consumers:
            raise UsageError(f"consumer {consumer} dies, of {scenario.consumers}")
        if dying.count(consumer) > 1:
            raise UsageError(f"consumer {consumer} dies twice")
    if scenario.rates and scenario.messages is None and scenario.duration_us is None:
        raise UsageError("neither messages nor duration_us: the simulation would not end")
    return queues


def _check_rates_and_failures(route: TopicRouteData, scenario: ReceiveScenario, queues: list[MessageQueue]) -> None:
    names = list(dict.fromkeys(queue.broker_name for queue in queues))
    known = {(queue.broker_name, queue.queue_id) for queue in queues}
    for rate in scenario.rates:
        if rate.per_second <= 0:
            raise UsageError(f"rate of {rate.broker_name}:{rate.queue_id} is {rate.per_second}: more than 0 is needed")
        if (rate.broker_name, rate.queue_id) not in known:
            raise _unknown(route, rate.broker_name, names, f"queue {rate.broker_name}:{rate.queue_id}")
    for failure in scenario.failures:
        if failure.broker_name not in names:
            raise _unknown(route, failure.broker_name, names, f"broker {failure.broker_name}")
        if failure.reaction.kind not in ("refused", "timeout"):
            raise UsageError(f"{failure.broker_name}: receives are simulated with brokers that are refused or timeout")
        if failure.start.us is None or (failure.end is not None and failure.end.us is None):
            raise UsageError(f"{failure.broker_name} fails by message numbers: receives count by times")


def _unknown(route: TopicRouteData, broker: str, names: list[str], what: str) -> UsageError:
    hint = suggestion("brokers", broker, names)
    return UsageError(f"topic {route.topic} has no {what} to receive from", hint=hint, code="unknown-broker")


def simulate_receive(
    route: TopicRouteData,
    scenario: ReceiveScenario,
    *,
    trace: bool = False,
    trial: int = 0,
    progress: Progress | None = None,
) -> ReceiveReport:
    """How long messages wait for consumers that receive, while brokers fail and consumers die.

    Mirrors `SimpleConsumerImpl`, `PushConsumerImpl` and `DefaultMQPushConsumerImpl.popMessage` of clients 5.2.0 and
    5.5.0, and Proxy and broker of 5.5.0 at their default settings. Equal arguments give equal reports.

    Args:
        route: the topic's route while nothing fails.
        scenario: what is simulated; without rates messages are rare, a thousand at the most unless it says how many.
        trace: keep each message in the report.
        trial: which of many runs with the same seed; each has random parts of its own.
        progress: is called now and then with the number of messages so far.

    Raises:
        DataError: the topic has no readable queue, or is static.
        UsageError: an argument cannot be what it is, the scenario contradicts itself or the route, or takes too long.
    """
    return report_of(_run(route, scenario, trial, progress), trace=trace)


def receive_trials(
    route: TopicRouteData, scenario: ReceiveScenario, trials: int, progress: Progress | None = None
) -> TrialWaits:
    """Waits of many trials, of which the first is `simulate_receive`'s own; `progress` counts trials.

    Raises as `simulate_receive` does.
    """
    if not 1 <= trials <= MOST_RECEIVE_TRIALS:
        raise UsageError(f"{trials} trials: 1 to {MOST_RECEIVE_TRIALS} are simulated")
    waits: list[int] = []
    p95: list[float] = []
    longest: list[float] = []
    left = redelivered = 0
    for trial in range(trials):
        simulation = _run(route, scenario, trial, None)
        own = [wait for counts in simulation.recorder.brokers for wait in counts.waits]
        spread = wait_times(own)
        if spread is not None:
            p95.append(spread.p95_ms)
            longest.append(spread.max_ms)
        waits += own
        left += sum(counts.open for counts in simulation.recorder.brokers)
        redelivered += sum(message.deliveries > 1 for message in simulation.recorder.messages)
        if progress is not None:
            progress(trial + 1)
    return TrialWaits(
        trials=trials,
        wait=wait_times(waits),
        lowest_max_ms=min(longest, default=None),
        lowest_p95_ms=min(p95, default=None),
        highest_p95_ms=max(p95, default=None),
        left=left,
        redelivered=redelivered,
    )


def longest_wait_us(route: TopicRouteData, scenario: ReceiveScenario, trial: int, until_us: int) -> int | None:
    """The longest wait of one trial, or the first beyond a limit; None when some message is not received."""
    recorder = _run(route, scenario, trial, None, until_us).recorder
    if recorder.longest_wait <= until_us and any(message.received < 0 for message in recorder.messages):
        return None
    return recorder.longest_wait


def _run(
    route: TopicRouteData,
    scenario: ReceiveScenario,
    trial: int,
    progress: Progress | None,
    until_wait_us: int = NEVER,
) -> ReceiveSimulation:
    queues = check(route, scenario)
    require(trial, TrialNumber, "trial")
    if scenario.rare and scenario.messages is None and scenario.duration_us is None:
        scenario = replace(scenario, messages=_rare_messages(len(queues)))
    simulation = ReceiveSimulation(queues, scenario, trial)
    simulation.run(progress, until_wait_us)
    return simulation


def _rare_messages(queues: int) -> int:
    """How many rare messages are simulated: each takes two rounds of all queues."""
    return min(max(ceil(_RECEIVES / (2 * queues)), _FEWEST_MESSAGES), RARE_MESSAGES)


_PERCENTS = (0, *range(5, 100, 5), 99, 100)


def wait_times(waits: Sequence[int]) -> WaitTimes | None:
    """How waits in microseconds are spread; None when there are none.

    >>> wait_times([1000, 3000, 2000])
    WaitTimes(messages=3, mean_ms=2.0, p50_ms=2, p95_ms=3, p99_ms=3, max_ms=3)
    """
    if not waits:
        return None
    ordered = sorted(waits)
    return WaitTimes(
        messages=len(ordered),
        mean_ms=round(fsum(ordered) / len(ordered)) / 1000,
        p50_ms=_ms_of(ordered, 50),
        p95_ms=_ms_of(ordered, 95),
        p99_ms=_ms_of(ordered, 99),
        max_ms=milliseconds(ordered[-1]),
    )


def report_of(simulation: ReceiveSimulation, *, trace: bool) -> ReceiveReport:
    """The report of a simulation that is over."""
    recorder, scenario, brokers = simulation.recorder, simulation.scenario, simulation.brokers
    waits = sorted(wait for counts in recorder.brokers for wait in counts.waits)
    requests = sum(counts.receives for counts in recorder.brokers)
    received = [message for message in recorder.messages if message.received != UNKNOWN]
    by_queue: dict[tuple[int, int], list[int]] = {}
    for message in received:
        by_queue.setdefault((message.place, message.queue), []).append(message.received - message.stored)
    places = {broker.name: broker.place for broker in brokers}
    return ReceiveReport(
        topic=simulation.queues[0].topic,
        scenario=_simulated(simulation),
        wait=wait_times(waits),
        back=wait_times(recorder.back),
        quantiles=tuple(Quantile(percent, _ms_of(waits, percent)) for percent in _PERCENTS) if waits else (),
        brokers=tuple(
            BrokerReceives(
                broker_name=broker.name,
                queues=len(broker.queues),
                receives=counts.receives,
                share=counts.receives / requests if requests else None,
                empty=counts.empty,
                failed=counts.failed,
                messages=len(counts.waits),
                longest_unpolled_ms=milliseconds(counts.unpolled_us),
                wait=wait_times(counts.waits),
            )
            for broker, counts in zip(brokers, recorder.brokers, strict=True)
        ),
        queue_waits=tuple(
            _queue_waits(queue, by_queue.get((places[queue.broker_name], queue.queue_id), []))
            for queue in simulation.queues
        ),
        totals=ReceiveTotals(
            messages=len(recorder.messages),
            further=recorder.further,
            received=len(waits),
            acknowledged=sum(message.done != UNKNOWN for message in recorder.messages),
            dead_lettered=recorder.dead_lettered,
            left=sum(counts.open for counts in recorder.brokers),
            not_stored=recorder.not_stored,
            redelivered=sum(message.deliveries > 1 for message in recorder.messages),
            receives=requests,
            empty_receives=sum(counts.empty for counts in recorder.brokers),
            failed_receives=sum(counts.failed for counts in recorder.brokers),
            lasted_ms=milliseconds(simulation.clock.now),
        ),
        closed_forms=closed_forms([len(broker.queues) for broker in brokers], scenario),
        failures=_failures(simulation),
        crashes=_crashes(simulation),
        messages=tuple(_message(message, simulation) for message in recorder.messages) if trace else None,
    )


def _simulated(simulation: ReceiveSimulation) -> SimulatedReceivers:
    scenario = simulation.scenario
    rates = {} if scenario.rare else {broker.name: Fraction() for broker in simulation.brokers}
    for rate in scenario.rates:
        rates[rate.broker_name] += rate.per_second
    return SimulatedReceivers(
        client=scenario.client,
        broker_version=scenario.broker_version,
        rules=rules_followed(scenario),
        consumers=scenario.consumers,
        loops=scenario.loops if scenario.client == "simple" else 1,
        await_ms=milliseconds(simulation.environment.awaited_us),
        invisible_ms=milliseconds(invisible_us(scenario)),
        batch=scenario.batch,
        fifo=scenario.fifo,
        consume_ms=milliseconds(scenario.consume_us),
        error_pause_ms=milliseconds(simulation.consumers[0].pause_us),
        round_trip_ms=milliseconds(scenario.round_trip_us),
        rate_per_second=None if scenario.rare else float(sum(rates.values())),
        rates={name: float(rate) for name, rate in rates.items()},
        messages=scenario.messages,
        duration_ms=milliseconds_if_known(scenario.duration_us),
        seed=scenario.seed,
    )


def _ms_of(ordered: Sequence[int], percent: int) -> float:
    """The shortest time that this percentage of waits does not exceed."""
    return milliseconds(ordered[max(ceil(len(ordered) * percent / 100) - 1, 0)])


def _queue_waits(queue: MessageQueue, waits: list[int]) -> QueueWaits:
    times = wait_times(waits)
    if times is None:
        return QueueWaits(queue.broker_name, queue.queue_id, 0, None, None, None)
    return QueueWaits(queue.broker_name, queue.queue_id, times.messages, times.mean_ms, times.p95_ms, times.max_ms)


def _failures(simulation: ReceiveSimulation) -> tuple[FailureReceived, ...]:
    recorder = simulation.recorder
    left: dict[int, int] = {}
    for message in recorder.messages:
        if message.outage != UNKNOWN and message.received == UNKNOWN:
            left[message.outage] = left.get(message.outage, 0) + 1
    outages = sorted((each for own in simulation.routes.outages.values() for each in own), key=lambda one: one.place)
    return tuple(
        FailureReceived(
            broker_name=outage.failure.broker_name,
            kind=outage.failure.reaction.kind,
            from_ms=milliseconds(outage.begin),
            to_ms=None if outage.end >= NEVER else milliseconds(outage.end),
            failed=counts.failed,
            last_failed_ms=_known_ms(counts.last_failed),
            received_again_ms=_known_ms(counts.received_again),
            longest_wait_ms=_known_ms(counts.longest_wait),
            left=left.get(outage.place, 0),
        )
        for outage, counts in zip(outages, recorder.outages, strict=True)
    )


def _crashes(simulation: ReceiveSimulation) -> tuple[CrashReceived, ...]:
    scenario: ReceiveScenario = simulation.scenario
    earliest, latest = again_after_us(scenario)
    return tuple(
        CrashReceived(
            consumer=crash.consumer,
            at_ms=milliseconds(crash.at_us),
            unacknowledged=counts.unacknowledged,
            again=len(counts.again),
            after=wait_times(counts.again),
            again_earliest_ms=milliseconds(earliest),
            again_latest_ms=milliseconds(latest),
        )
        for crash, counts in zip(scenario.crashes, simulation.recorder.crashes, strict=True)
    )


def _message(message: Message, simulation: ReceiveSimulation) -> ReceivedMessage:
    known = message.received != UNKNOWN
    return ReceivedMessage(
        message=message.number,
        broker_name=simulation.brokers[message.place].name,
        queue_id=message.queue,
        stored_ms=milliseconds(message.stored),
        received_ms=_known_ms(message.received),
        wait_ms=milliseconds(message.received - message.stored) if known else None,
        consumer=message.consumer if known else None,
        deliveries=message.deliveries,
        done_ms=_known_ms(message.done),
    )


def _known_ms(us: int) -> float | None:
    return None if us == UNKNOWN else milliseconds(us)


def receive_findings(scenario: ReceiveScenario, read_queues: list[int]) -> Iterator[Finding]:
    """The findings on a scenario; `read_queues` has the readable queues of each broker."""
    taken_us = awaited_us(scenario)
    if scenario.client == "simple" and taken_us != scenario.await_us:
        limit = "the least" if taken_us > scenario.await_us else "the most"
        text = f"the Proxy lets a receive wait {taken_us // 1_000_000} s, {limit} that its settings allow"
        yield Finding("await-limited", f"await duration of {scenario.await_us / 1_000_000:g} s: {text}")
    if scenario.client == "pop" and invisible_us(scenario) != scenario.invisible_us:
        text = f"POP clients take {RENEWED_US // 1_000_000} s for what is not between 5 s and 5 minutes"
        yield Finding("invisible-limited", f"popInvisibleTime of {scenario.invisible_us / 1_000_000:g} s: {text}")
    lasting_us = scenario.batch * scenario.consume_us
    if scenario.client == "simple" and lasting_us > scenario.invisible_us:
        batch, each = counted(scenario.batch, "message"), f"{scenario.consume_us / 1_000_000:g} s each"
        text = f"a full receive of {batch} at {each} takes longer than the invisible duration"
        yield Finding("longer-than-invisible", f"{text}: messages are redelivered while they are consumed")
    most = max(read_queues)
    if most > RANDOM_QUEUES:
        begin = f"one of queues 0 to {RANDOM_QUEUES - 1} and go up"
        if broker_rules(scenario.broker_version).counts_down:
            begin = f"queue {most - 1} or one of queues 0 to {RANDOM_QUEUES - 2} and go down"
        text = f"a broker has {most} readable queues: receives begin at {begin}"
        yield Finding("queues-beyond-100", text, severity=INFO)


def ended_findings(report: ReceiveReport) -> Iterator[Finding]:
    """The findings on how a simulation ended."""
    if report.totals.further >= MOST_FURTHER:
        text = f"arrivals end {MOST_FURTHER:,} messages after the measured ones, before all of these are received"
        yield Finding("arrivals-ended", f"{text}: the last of them wait as in an idle system")


TRIALS = 3
FIRST_MESSAGES = 5_000
MOST_MESSAGES = 20_000
"""Of each simulation: while a number is looked for, and of the number."""
IN_A_ROW = 4
"""Numbers that must be enough, of which the answer is the first."""


def receives_within(
    route: TopicRouteData, scenario: ReceiveScenario, target_us: int, progress: Callable[[int], None] | None = None
) -> TargetWait:
    """The number for a time; `progress` is told each number tried (raises as `simulate_receive` does).

    A PushConsumer and a POP client wait at every broker with one receive each, and cannot have more.
    """
    queues = check(route, scenario)
    require(target_us, PositiveTime, "target_us")
    counts = list(Counter(queue.broker_name for queue in queues).values())
    receive_us = longest_receive_us(scenario)
    simple = scenario.client == "simple"
    rare = rare_receives(counts, target_us, receive_us) if simple else 1
    if scenario.rare and not scenario.failures and not scenario.crashes:
        longest = None if rare is None else rare_wait_us(counts, rare, receive_us) if simple else scenario.round_trip_us
        return TargetWait(
            wait_ms=milliseconds(target_us),
            receives=rare,
            rare=rare,
            simulated=False,
            trials=0,
            max_ms=milliseconds_if_known(longest),
        )
    first, whole = _with_at_most(scenario, FIRST_MESSAGES), _with_at_most(scenario, MOST_MESSAGES)

    def seems_enough(loops: int) -> bool:
        if progress is not None:
            progress(loops)
        longest = longest_wait_us(route, replace(first, loops=loops), 0, target_us)
        return longest is not None and longest <= target_us

    @cache
    def longest_of(loops: int) -> int | None:
        return _longest(route, replace(whole, loops=loops), target_us)

    def is_too_few(loops: int) -> bool:
        longest = longest_of(loops)
        return longest is None or longest > target_us

    most = MOST_LOOPS if simple else 1
    found = _least(seems_enough, most)
    while found is not None:
        row = range(min(found + IN_A_ROW - 1, most), found - 1, -1)
        too_few = next((loops for loops in row if is_too_few(loops)), None)
        if too_few is None:
            break
        found = too_few + 1 if too_few < most else None
    return TargetWait(
        wait_ms=milliseconds(target_us),
        receives=found,
        rare=rare,
        simulated=True,
        trials=TRIALS,
        max_ms=None if found is None else milliseconds_if_known(longest_of(found)),
    )


def _with_at_most(scenario: ReceiveScenario, messages: int) -> ReceiveScenario:
    """The scenario with its first messages only; whole when something happens to brokers or consumers in it."""
    if scenario.failures or scenario.crashes:
        return scenario
    return replace(scenario, messages=min(scenario.messages or messages, messages))


def _longest(route: TopicRouteData, scenario: ReceiveScenario, target_us: int) -> int | None:
    """The longest wait of several trials, up to the first that exceeds the target; None when one has no end."""
    longest = 0
    for trial in range(TRIALS):
        found = longest_wait_us(route, scenario, trial, target_us)
        if found is None:
            return None
        longest = max(longest, found)
        if longest > target_us:
            break
    return longest


def _least(enough: Callable[[int], bool], most: int) -> int | None:
    """The least number that is enough, found by doubling and halving; None when `most` is not.

    >>> _least(lambda number: number >= 9, 100), _least(lambda number: False, 100)
    (9, None)
    """
    below, above = 0, 1
    while not enough(above):
        if above >= most:
            return None
        below, above = above, min(2 * above, most)
    while above - below > 1:
        middle = (below + above) // 2
        if enough(middle):
            above = middle
        else:
            below = middle
    return above
