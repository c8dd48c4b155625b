"""The simulation of consumers that receive: from a route and a scenario to a report."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil

from msgspec.structs import replace

from rmqlb.engine.arguments import check_route, require
from rmqlb.engine.receive.report import report_of, wait_times
from rmqlb.engine.receive.routes import NEVER
from rmqlb.engine.receive.rules import LONGEST_INVISIBLE_US, SHORTEST_INVISIBLE_US, broker_rules, is_refused
from rmqlb.engine.receive.simulation import ReceiveSimulation
from rmqlb.errors import DataError, UsageError
from rmqlb.model.limits import TrialNumber
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.receive_report import ReceiveReport, TrialWaits
from rmqlb.model.receive_scenario import MOST_RECEIVE_TRIALS, ReceiveScenario
from rmqlb.model.route import TopicRouteData
from rmqlb.model.snapshot import suggestion
from rmqlb.model.times import milliseconds

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
    names = list(dict.fromkeys(queue.broker_name for queue in queues))
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
    _check_rates(route, scenario, queues, names)
    _check_failures(route, scenario, names)
    _check_crashes(scenario)
    if scenario.rates and scenario.messages is None and scenario.duration_us is None:
        raise UsageError("neither messages nor duration_us: the simulation would not end")
    return queues


def _check_rates(
    route: TopicRouteData, scenario: ReceiveScenario, queues: list[MessageQueue], names: list[str]
) -> None:
    known = {(queue.broker_name, queue.queue_id) for queue in queues}
    for rate in scenario.rates:
        if rate.per_second <= 0:
            raise UsageError(f"rate of {rate.broker_name}:{rate.queue_id} is {rate.per_second}: more than 0 is needed")
        if (rate.broker_name, rate.queue_id) not in known:
            raise _unknown(route, rate.broker_name, names, f"queue {rate.broker_name}:{rate.queue_id}")


def _check_failures(route: TopicRouteData, scenario: ReceiveScenario, names: list[str]) -> None:
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


def _check_crashes(scenario: ReceiveScenario) -> None:
    seen = set()
    for crash in scenario.crashes:
        if crash.consumer > scenario.consumers:
            raise UsageError(f"consumer {crash.consumer} dies, of {scenario.consumers}")
        if crash.consumer in seen:
            raise UsageError(f"consumer {crash.consumer} dies twice")
        seen.add(crash.consumer)


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
