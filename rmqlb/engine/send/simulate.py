"""The simulation of a producer: from a route and a scenario to a report."""

from collections.abc import Callable
from fractions import Fraction

from msgspec.structs import replace

from rmqlb.engine.arguments import SELECTOR, as_function, check_route, require, shown
from rmqlb.engine.send.findings import send_findings
from rmqlb.engine.send.java_producer import AsyncProducer, OnewayProducer, SelectorProducer, SyncProducer
from rmqlb.engine.send.producer import Producer
from rmqlb.engine.send.profile import ClientProfile, profile_of, sdk
from rmqlb.engine.send.sdk_producer import CppProducer, GoProducer, GrpcProducer, check_sdk
from rmqlb.errors import DataError, UsageError
from rmqlb.model.limits import MOST_RATE, TrialNumber
from rmqlb.model.route import TopicRouteData
from rmqlb.model.send_scenario import JAVA, STATUSES, Failure, ProducerSettings, SendScenario
from rmqlb.model.simulate_send import Attempt, LostMessage, SendReport, SimulatedProducer
from rmqlb.model.snapshot import suggestion

_FINEST = 10**24
KEPT = 1000
"""A report keeps each attempt of up to this many messages by default."""


def simulate_send(
    route: TopicRouteData,
    scenario: SendScenario,
    *,
    trace: bool | None = None,
    sink: Callable[[Attempt], None] | None = None,
    lost_sink: Callable[[LostMessage], None] | None = None,
    trial: int = 0,
    progress: Callable[[int], None] | None = None,
) -> SendReport:
    """Simulate a RocketMQ producer while brokers fail.

    Mirrors `DefaultMQProducerImpl.sendDefaultImpl`, `sendSelectImpl` and `MQClientAPIImpl.sendMessageAsync` with
    `MQFaultStrategy`, for the scenario's client version. Equal arguments give equal reports.

    Args:
        route: the topic's route while nothing fails.
        scenario: the producer, its load, and the failures.
        trace: keep each attempt in the report; default: up to 1,000 messages.
        sink: gets each attempt as it ends; the report then keeps none unless `trace` is True.
        lost_sink: gets each lost message after its last attempt.
        trial: the number of a run with the same seed and its own random parts.
        progress: called now and then with the number of messages sent so far.

    Raises:
        DataError: the producer's queue list is empty, or the route's order config is malformed.
        UsageError: the scenario contradicts itself, or names unknown brokers or the brokers of a static topic.
    """
    check(scenario)
    check_brokers(route, scenario)
    require(trial, TrialNumber, "trial")
    streams = sink is not None or lost_sink is not None
    keeps = trace or (trace is None and not streams and scenario.messages is not None and scenario.messages <= KEPT)
    attempts, lost = list[Attempt](), list[LostMessage]()
    producer = producer_of(route, scenario, trial)
    recorder = producer.recorder
    recorder.sinks = [each for each in (attempts.append if keeps else None, sink) if each is not None]
    recorder.lost_sinks = [each for each in (lost.append if keeps else None, lost_sink) if each is not None]
    producer.run(progress)
    return _report(producer, attempts if keeps else None, lost if keeps else None)


def producer_of(route: TopicRouteData, scenario: SendScenario, trial: int = 0) -> Producer:
    modes: dict[str, type[Producer]] = {"sync": SyncProducer, "async": AsyncProducer, "oneway": OnewayProducer}
    kind = modes[scenario.mode] if scenario.chosen_by is None else SelectorProducer
    if scenario.sdk != JAVA:
        rotations: dict[str | None, type[Producer]] = {"go": GoProducer, "cpp": CppProducer}
        kind = rotations.get(sdk(scenario.sdk).profile.rotation, GrpcProducer)
    return kind(route, scenario, rules(scenario), trial)


def _report(producer: Producer, attempts: list[Attempt] | None, lost: list[LostMessage] | None) -> SendReport:
    scenario, recorder = producer.scenario, producer.recorder
    failures = recorder.failures()
    report = SendReport(
        topic=producer.route.topic,
        producer=_settings(producer),
        attempts=None if attempts is None else tuple(sorted(attempts, key=lambda a: (a.message, a.attempt))),
        lost_messages=None if lost is None else tuple(sorted(lost, key=lambda each: each.message)),
        exceptions=recorder.exceptions(),
        queues=recorder.queue_tallies(producer.publish_queues),
        brokers=recorder.broker_tallies(producer.publish_queues),
        totals=recorder.totals(failures),
        failures=failures,
        timeline=recorder.slices(producer.ended),
        scenario=scenario,
        publish_queues=producer.publish_queues,
    )
    return replace(report, findings=tuple(send_findings(report, producer.route, recorder.selector_threw)))


def _settings(producer: Producer) -> SimulatedProducer:
    scenario, profile = producer.scenario, producer.profile
    return SimulatedProducer(
        **{name: getattr(scenario, name) for name in ProducerSettings.__struct_fields__},
        profile=profile_name(scenario, profile),
        latency_max_ms=profile.latency_max,
        not_available_duration_ms=profile.not_available_duration,
        failure_isolates_ms=profile.duration(0, isolation=True),
        rate_per_second=None if scenario.rate is None else float(scenario.rate),
        duration_ms=None if scenario.duration_us is None else scenario.duration_us / 1000,
        latency={"default": scenario.latency.text, **{name: each.text for name, each in scenario.latencies.items()}},
        exclude=tuple(sorted(scenario.exclude)),
        selector=None if scenario.chosen_by is None else scenario.chosen_by.name,
        first_poll_ms=producer.first_poll_us / 1000,
        poll_ms=scenario.poll_us / 1000,
    )


def profile_name(scenario: SendScenario, profile: ClientProfile) -> str:
    if scenario.sdk == JAVA:
        return profile.name
    own = sdk(scenario.sdk).profile
    return f"{own.name} {own.mirrors}"


def rules(scenario: SendScenario) -> ClientProfile:
    profile = profile_of(scenario.client_version)
    latency_max = scenario.latency_max or profile.latency_max
    durations = scenario.not_available_duration or profile.not_available_duration
    if len(latency_max) != len(durations):
        numbers = f"{len(latency_max)} latency thresholds and {len(durations)} isolation times"
        raise UsageError(f"{numbers}: both counts must be equal")
    for values in (latency_max, durations):
        if list(values) != sorted(values):
            raise UsageError(f"{', '.join(map(str, values))}: latency thresholds and isolation times must increase")
    return replace(profile, latency_max=tuple(latency_max), not_available_duration=tuple(durations))


def check(scenario: SendScenario) -> None:
    require(scenario, SendScenario, "SendScenario")
    if scenario.messages is None and scenario.duration_us is None:
        raise UsageError("how many messages?", hint="pass a number of messages or a duration")
    if scenario.rate is not None and not 0 < scenario.rate <= MOST_RATE:
        rate = f"a rate of {shown(scenario.rate)} messages per second"
        raise UsageError(f"{rate}: must be above 0 and at most {MOST_RATE}")
    if scenario.rate is not None and max(Fraction(scenario.rate).as_integer_ratio()) > _FINEST:
        raise UsageError("the rate is finer than any clock", hint="use fewer digits")
    for place, failure in enumerate(scenario.failures):
        _check_failure(failure, f"SendScenario.failures[{place}]")
    _check_times(scenario)
    selector = scenario.chosen_by
    if scenario.mode != "sync" and scenario.rate is None:
        hint = "pass --rate, such as --rate 100"
        raise UsageError(f"mode {scenario.mode} needs a rate, because its threads do not wait for answers", hint=hint)
    if selector is not None and scenario.mode != "sync":
        raise UsageError(f"selectors are simulated only for SYNC sends, not for {scenario.mode.upper()}")
    if selector is not None and selector.kind == "function":
        as_function(selector.function, SELECTOR)
    if selector is not None and (selector.kind == "queue") != (selector.queue is not None):
        raise UsageError("only a selector of kind queue takes a queue, and it needs one")
    profile_of(scenario.client_version)
    if scenario.sdk != JAVA:
        check_sdk(scenario)


def check_brokers(route: TopicRouteData, scenario: SendScenario) -> None:
    """Reject unknown brokers, and failures of single brokers of a static topic, whose queues are logical."""
    check_route(route)
    logical = route.is_static and route.order_topic_conf is None
    if logical and (scenario.failures or scenario.latencies or scenario.exclude):
        text = "its queues are logical ones, and sends to the brokers behind them are not simulated"
        hint = "simulate it without failures, latencies and exclusions of single brokers"
        raise UsageError(f"topic {route.topic} is a static topic: {text}", hint=hint, code="static-topic")
    if route.is_static and scenario.priorities:
        text = f"topic {route.topic} is a static topic: rmqlb does not simulate where its brokers store priorities"
        raise UsageError(text, code="static-topic")
    queues = route.publish_queues()
    known = {data.broker_name for data in route.queue_datas} | {queue.broker_name for queue in queues}
    named = {failure.broker_name: "fails" for failure in scenario.failures}
    named |= dict.fromkeys(scenario.latencies, "has a latency") | dict.fromkeys(scenario.exclude, "is excluded")
    for name, what in named.items():
        if name not in known:
            problem = f"{shown(name)} {what}: topic {route.topic} has no such broker"
            raise DataError(problem, hint=suggestion("brokers", name, known), code="unknown-broker")
    listed = sum(queue.broker_name not in scenario.exclude for queue in queues)
    if scenario.start_at is not None and listed and scenario.start_at >= listed:
        start = f"SendScenario.start_at is {shown(scenario.start_at)}"
        raise UsageError(f"{start}: the producer's list has {listed} queues, 0 to {listed - 1}")


def _check_failure(failure: Failure, name: str) -> None:
    reaction, start, end = failure.reaction, failure.start, failure.end
    for moment, which in ((start, "start"), (end, "end")):
        if moment is not None and (moment.us is None) == (moment.message is None):
            raise UsageError(f"{name}.{which} is either a time or a message number")
    for first, last in () if end is None else ((start.us, end.us), (start.message, end.message)):
        if first is not None and last is not None and last <= first:
            raise UsageError(f"{name} ends before it starts")
    if reaction.kind == "code" and reaction.code < 1:
        raise UsageError(f"{name}.reaction.code is {reaction.code}: expected the number of a response code")
    if reaction.kind == "status" and reaction.name not in STATUSES:
        problem = f"{name}.reaction.name is {shown(reaction.name)}: expected one of {', '.join(STATUSES)}"
        raise UsageError(problem, hint=suggestion("statuses", reaction.name, STATUSES))


def _check_times(scenario: SendScenario) -> None:
    latencies = (scenario.latency, *scenario.latencies.values())
    costs = [failure.reaction.cost_us for failure in scenario.failures if failure.reaction.kind in ("refused", "slow")]
    takes_no_time = 0 in costs or not all(max(latency.table) for latency in latencies)
    if takes_no_time and scenario.messages is None and scenario.rate is None:
        hint = "pass a number of messages or a rate"
        raise UsageError("if attempts take no time, a duration never ends", hint=hint)
