"""`rmqlb simulate-receive`: the route, the rates and the end of a scenario, and the simulation."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction

from msgspec.structs import replace

from rmqlb.engine.simulate_receive import simulate_receive as engine
from rmqlb.engine.simulate_receive.rules import broker_rules
from rmqlb.engine.source_findings import sighting_findings, source_findings
from rmqlb.errors import DataError, UsageError
from rmqlb.model.group import Seen
from rmqlb.model.limits import LONGEST_US
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.result import INFO, Finding, Meta, Progress, no_progress, with_meta
from rmqlb.model.route import BrokerData, QueueData, TopicRouteData
from rmqlb.model.send_scenario import Failure
from rmqlb.model.simulate_receive import (
    MOST_RECEIVED,
    PRIORITY_FACTOR,
    SECOND_US,
    QueueRate,
    ReceiveReport,
    ReceiveScenario,
)
from rmqlb.model.snapshot import ClusterSnapshot, RouteSighting, Wanted, suggestion
from rmqlb.verbs.amounts import rate
from rmqlb.verbs.parse import conditions, must_differ, named_topic, queue_number
from rmqlb.verbs.source import Reader, ask_type

_DEFAULT_MESSAGES = 1000
_ASSUMED_RATE = Fraction(10)
_AFTER_US = 300 * SECOND_US
_GIVEN = "given"
Place = tuple[str | None, int | None]
"""A queue, a broker, or all of them."""


def simulate_receive(
    source: Callable[[], Reader] | Sequence[str],
    topic: str | None,
    scenario: ReceiveScenario,
    *,
    rates: Sequence[str],
    failures: Callable[[Sequence[str], str], tuple[Failure, ...]],
    target_us: int | None,
    trials: int | None,
    trace: bool,
    fail_on: Sequence[str],
    progress: Progress = no_progress,
) -> ReceiveReport:
    """Simulate receives from a topic (raises RmqlbError).

    `source` opens the source of the route, or lists brokers as `--broker` takes them: then the topic may be None.
    `failures` reads `--fail`, from the names of the brokers and of the topic. `target_us` finds the number of
    receives that keep every wait within this time.
    """
    parsed = conditions(fail_on, engine.RECEIVE_FIGURES)
    opened: Reader | None = None
    if not callable(source):
        snapshot = _given(source, topic or _GIVEN)
    else:
        opened = source()
        snapshot = opened.fetch(Wanted((named_topic(topic),), groups=False))
    route = snapshot.route(topic or _GIVEN)
    queues = engine.readable_queues(route)
    counts = Counter(queue.broker_name for queue in queues)
    given = _rates(rates, queues, list(counts), route.topic)
    scenario = replace(scenario, failures=failures(list(counts), route.topic), rates=given)
    scenario, assumed = _lasting(scenario, queues)
    scenario, of_type = (scenario, ()) if opened is None else _with_type(scenario, route, opened)
    total = 0 if scenario.messages is None or scenario.duration_us is not None else scenario.messages
    report = engine.simulate_receive(
        route, scenario, trace=trace, progress=lambda done: progress("messages", done, max(total, done) if total else 0)
    )
    if target_us is not None:
        tried = engine.receives_within(route, scenario, target_us, lambda loops: progress(f"{loops} receives", 0, 0))
        report = replace(report, target=tried)
    if trials is not None:
        several = engine.receive_trials(route, scenario, trials, lambda done: progress("trials", done, trials))
        report = replace(report, trials=several)
    report = replace(report, conditions=tuple(engine.try_on_receive(condition, report) for condition in parsed))
    of_source = (*sighting_findings(snapshot.routes[route.topic]), *source_findings(snapshot))
    of_scenario = engine.receive_findings(scenario, list(counts.values()))
    findings = (*of_source, *of_type, *of_scenario, *assumed, *engine.ended_findings(report))
    return with_meta(report, Meta(snapshot, findings))


def _given(texts: Sequence[str], topic: str) -> ClusterSnapshot:
    brokers: list[tuple[str, int]] = []
    for text in texts:
        name, _, number = text.rpartition(":")
        if not name:
            raise UsageError(f"--broker {text}: expected NAME:QUEUES, as in broker-a:8")
        brokers.append((name, queue_number(number, f"--broker {text}")))
    must_differ(texts, [name for name, _ in brokers], "--broker")
    queue_datas = tuple(QueueData(broker, queues, queues, 6) for broker, queues in brokers)
    broker_datas = tuple(BrokerData(_GIVEN, broker, {0: broker}) for broker, _ in brokers)
    route = TopicRouteData(topic, queue_datas, broker_datas)
    return ClusterSnapshot(_GIVEN, "--broker", routes={topic: RouteSighting(route, Seen("--broker"))})


def _rates(
    texts: Sequence[str], queues: Sequence[MessageQueue], brokers: Sequence[str], topic: str
) -> tuple[QueueRate, ...]:
    """`--rate [BROKER[:QUEUE]=]R`: the most specific one counts, and is spread over the queues that have no other."""
    typed: dict[Place, Fraction] = {}
    places = []
    for text in texts:
        about, _, number = text.rpartition("=")
        places.append(_place(about, f"--rate {text}", queues, brokers, topic))
        typed[places[-1]] = rate(number, f"--rate {about}={number}" if about else "--rate")
    must_differ(texts, places, "--rate")
    chosen: dict[MessageQueue, Place] = {}
    for queue in queues:
        ways: tuple[Place, ...] = ((queue.broker_name, queue.queue_id), (queue.broker_name, None), (None, None))
        way = next((way for way in ways if way in typed), None)
        if way is not None:
            chosen[queue] = way
    sharing = Counter(chosen.values())
    rates = {queue: typed[way] / sharing[way] for queue, way in chosen.items()}
    return tuple(QueueRate(queue.broker_name, queue.queue_id, each) for queue, each in rates.items())


def _place(about: str, option: str, queues: Sequence[MessageQueue], brokers: Sequence[str], topic: str) -> Place:
    if not about or about in brokers:
        return about or None, None
    broker, _, number = about.rpartition(":")
    if broker in brokers and re.fullmatch(r"\d{1,9}", number):
        if MessageQueue(topic, broker, int(number)) in queues:
            return broker, int(number)
        raise UsageError(f"{option}: {broker} has no queue {int(number)} of topic {topic} to receive from")
    hint = suggestion("brokers", about, brokers)
    raise DataError(f"{option}: topic {topic} has no broker {about}", hint=hint, code="unknown-broker")


def _with_type(
    scenario: ReceiveScenario, route: TopicRouteData, reader: Reader
) -> tuple[ReceiveScenario, tuple[Finding, ...]]:
    """The scenario by priority if a broker reports the type PRIORITY, and what is assumed."""
    has_priorities = broker_rules(scenario.broker_version).counts_down and not scenario.fifo
    if scenario.priority_factor is not None or not has_priorities:
        return scenario, ()
    kind = ask_type(reader, route, most=1)
    if kind is None:
        text = f"message.type of topic {route.topic} is unknown, so receives ignore priorities"
        text += "; for a PRIORITY topic, add --set priority-factor=100"
    elif kind == "PRIORITY":
        scenario = replace(scenario, priority_factor=PRIORITY_FACTOR)
        text = f"topic {route.topic} has type PRIORITY, and rmqlb assumes the default priority.factor of the group, "
        text += f"{PRIORITY_FACTOR}; --set priority-factor changes it"
    else:
        return scenario, ()
    return scenario, (Finding("assumed-priority", text, severity=INFO),)


def _lasting(scenario: ReceiveScenario, queues: Sequence[MessageQueue]) -> tuple[ReceiveScenario, tuple[Finding, ...]]:
    """The scenario with a rate and an end, where something fails or there is a rate."""
    moments = [moment for failure in scenario.failures for moment in (failure.start, failure.end) if moment is not None]
    events_us = [moment.us for moment in moments if moment.us is not None]
    events_us += [crash.at_us for crash in scenario.crashes]
    if scenario.rare and not events_us:
        return scenario, ()
    findings: tuple[Finding, ...] = ()
    duration_us = scenario.duration_us
    if events_us and duration_us is None and scenario.messages is None:
        duration_us = min(max(events_us) + _AFTER_US, LONGEST_US)
    if scenario.rare:
        each = _ASSUMED_RATE / len(queues)
        scenario = replace(scenario, rates=tuple(QueueRate(q.broker_name, q.queue_id, each) for q in queues))
        lasting = "" if duration_us is None else f" for {duration_us / SECOND_US:g} s"
        text = f"without --rate, 10 messages per second arrive{lasting}; to change this, add --rate or --for"
        findings = (Finding("assumed-rate", text, severity=INFO),)
    messages = scenario.messages or (_DEFAULT_MESSAGES if duration_us is None else MOST_RECEIVED)
    return replace(scenario, duration_us=duration_us, messages=messages), findings
