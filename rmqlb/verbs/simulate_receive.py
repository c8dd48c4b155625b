"""`rmqlb simulate-receive`: the route and the scenario from its options, and the simulation."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import get_args

from msgspec import Struct
from msgspec.structs import replace

from rmqlb.engine.route_findings import sighting_findings
from rmqlb.engine.simulate_receive.simulate_receive import (
    RECEIVE_FIGURES,
    check,
    ended_findings,
    readable_queues,
    receive_findings,
    receive_trials,
    receives_within,
    try_on_receive,
)
from rmqlb.engine.simulate_receive.simulate_receive import simulate_receive as simulate
from rmqlb.engine.source_findings import source_findings
from rmqlb.errors import UsageError
from rmqlb.model.finding import INFO, Finding
from rmqlb.model.group import Seen
from rmqlb.model.limits import LONGEST_US
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.progress import Progress, no_progress
from rmqlb.model.result import Meta, with_meta
from rmqlb.model.route import BrokerData, QueueData, TopicRouteData
from rmqlb.model.send_scenario import NEWEST, Failure
from rmqlb.model.simulate_receive import (
    MOST_BATCH,
    MOST_LOOPS,
    MOST_RECEIVE_TRIALS,
    MOST_RECEIVED,
    MOST_RECEIVERS,
    SECOND_US,
    Crash,
    QueueRate,
    ReceiveClient,
    ReceiveReport,
    ReceiveScenario,
)
from rmqlb.model.snapshot import ClusterSnapshot, RouteSighting, Wanted, suggestion
from rmqlb.verbs import amounts
from rmqlb.verbs.parse import conditions, must_differ, queue_number
from rmqlb.verbs.source import Reader

_DEFAULT_MESSAGES = 1000
_ASSUMED_RATE = Fraction(10)
_AFTER_US = 300 * SECOND_US
_TYPES: tuple[ReceiveClient, ...] = get_args(ReceiveClient)
_GIVEN = "given"


class ReceiveOptions(Struct, frozen=True, kw_only=True):
    """The command's options, as typed."""

    topic: str | None = None
    broker: Sequence[str] | None = None
    broker_version: str = NEWEST
    type: str = "simple"
    processes: str = "1"
    loops: str | None = None
    await_: str | None = None
    invisible: str | None = None
    batch: str = "32"
    fifo: bool = False
    consume_time: str = "0s"
    error_pause: str | None = None
    round_trip: str = "1ms"
    rate: Sequence[str] | None = None
    messages: str | None = None
    for_: str | None = None
    seed: int = 1
    fail: Sequence[str] | None = None
    nameserver_notices: str | None = None
    crash: Sequence[str] | None = None
    target_wait: str | None = None
    trials: str | None = None
    trace: bool = False
    fail_on: Sequence[str] | None = None


FailuresOf = Callable[[Sequence[str], Sequence[str], str, str | None], tuple[Failure, ...]]
"""What reads `--fail`, given the brokers, the topic and `--nameserver-notices`."""


def simulate_receive(
    open_source: Callable[[], Reader] | None,
    options: ReceiveOptions,
    failures_of: FailuresOf,
    progress: Progress = no_progress,
) -> ReceiveReport:
    """Simulate receives from a topic of a source, or of `--broker` without one (raises RmqlbError)."""
    asked = conditions(options.fail_on or (), RECEIVE_FIGURES)
    target, trials = options.target_wait, options.trials
    target_us = None if target is None else amounts.duration_us(target, "--target-wait")
    number = None if trials is None else amounts.count(trials, "--trials", most=MOST_RECEIVE_TRIALS, least=2)
    scenario = _receivers(options)
    crashes = tuple(_crash(text) for text in options.crash or ())
    must_differ(options.crash or (), [crash.consumer for crash in crashes], "--crash")
    if open_source is None:
        snapshot = _given(options.broker or (), options.topic or _GIVEN)
    elif options.topic is None:
        raise UsageError("which topic?", hint="name the one that is received from with --topic", code="which-topic")
    else:
        snapshot = open_source().fetch(Wanted((options.topic,), groups=False))
    route = snapshot.route(options.topic or _GIVEN)
    queues = readable_queues(route)
    brokers = list(dict.fromkeys(queue.broker_name for queue in queues))
    notices = options.nameserver_notices
    if notices is not None and notices.lower() != "never":
        amounts.duration_us(notices, "--nameserver-notices", zero=True)  # wrong without a failure too
    scenario = replace(
        scenario,
        failures=failures_of(options.fail or (), brokers, route.topic, notices),
        crashes=crashes,
        rates=_rates(options.rate or (), queues, brokers, route.topic),
        broker_version=options.broker_version,
    )
    scenario, assumed = _lasting(scenario, queues, has_rate=bool(options.rate))
    check(route, scenario)
    total = 0 if scenario.messages is None or scenario.duration_us is not None else scenario.messages
    report = simulate(
        route,
        scenario,
        trace=options.trace,
        progress=lambda done: progress("messages", done, max(total, done) if total else 0),
    )
    if target_us is not None:
        tried = receives_within(route, scenario, target_us, lambda loops: progress(f"{loops} receives", 0, 0))
        report = replace(report, target=tried)
    if number is not None:
        several = receive_trials(route, scenario, number, lambda done: progress("trials", done, number))
        report = replace(report, trials=several)
    report = replace(report, conditions=tuple(try_on_receive(condition, report) for condition in asked))
    findings = [
        *sighting_findings(snapshot.routes[route.topic]),
        *source_findings(snapshot),
        *receive_findings(scenario, [sum(queue.broker_name == name for queue in queues) for name in brokers]),
        *assumed,
        *ended_findings(report),
    ]
    return with_meta(report, Meta(snapshot, tuple(findings)))


def _receivers(options: ReceiveOptions) -> ReceiveScenario:
    kind = amounts.one_of(options.type, "--type", _TYPES)
    given = ("--loops", options.loops), ("--await", options.await_), ("--error-pause", options.error_pause)
    for option, text in given:
        if kind != "simple" and text is not None:
            raise UsageError(f"{option} {text}: only a SimpleConsumer has it", hint="leave it out, or --type simple")
    if kind == "push" and options.invisible is not None:
        raise UsageError(
            f"--invisible {options.invisible}: the Proxy decides it for a PushConsumer, and renews it",
            hint="leave it out, or --type simple",
        )
    usual = ReceiveScenario()
    loops, await_, pause = options.loops, options.await_, options.error_pause
    messages, lasting, invisible = options.messages, options.for_, options.invisible
    return ReceiveScenario(
        client=kind,
        consumers=amounts.count(options.processes, "--processes", most=MOST_RECEIVERS),
        loops=1 if loops is None else amounts.count(loops, "--loops", most=MOST_LOOPS),
        await_us=usual.await_us if await_ is None else amounts.duration_us(await_, "--await"),
        invisible_us=usual.invisible_us if invisible is None else amounts.duration_us(invisible, "--invisible"),
        batch=amounts.count(options.batch, "--batch", most=MOST_BATCH),
        fifo=options.fifo,
        consume_us=amounts.duration_us(options.consume_time, "--consume-time", zero=True),
        error_pause_us=0 if pause is None else amounts.duration_us(pause, "--error-pause", zero=True),
        round_trip_us=amounts.duration_us(options.round_trip, "--round-trip", zero=True),
        messages=None if messages is None else amounts.count(messages, "--messages", most=MOST_RECEIVED),
        duration_us=None if lasting is None else amounts.duration_us(lasting, "--for"),
        seed=options.seed,
    )


def _given(texts: Sequence[str], topic: str) -> ClusterSnapshot:
    """The topic on the brokers of `--broker`."""
    brokers = [_broker(text) for text in texts]
    must_differ(texts, [name for name, _ in brokers], "--broker")
    route = TopicRouteData(
        topic,
        tuple(QueueData(broker, queues, queues, 6) for broker, queues in brokers),
        tuple(BrokerData(_GIVEN, broker, {0: broker}) for broker, _ in brokers),
    )
    return ClusterSnapshot(_GIVEN, "--broker", routes={topic: RouteSighting(route, Seen("--broker"))})


def _broker(text: str) -> tuple[str, int]:
    name, colon, number = text.rpartition(":")
    if not colon or not name:
        raise UsageError(f"--broker {text}: expected NAME:QUEUES, as in broker-a:8")
    return name, queue_number(number, f"--broker {text}")


def _crash(text: str) -> Crash:
    number, at, time = text.partition("@")
    if not at:
        raise UsageError(f"--crash {text}: expected N@TIME, as in 1@30s")
    consumer = amounts.count(number, f"--crash {text}: consumer", most=MOST_RECEIVERS)
    return Crash(consumer, amounts.duration_us(time, f"--crash {text}:", zero=True))


def _rates(
    texts: Sequence[str], queues: Sequence[MessageQueue], brokers: Sequence[str], topic: str
) -> tuple[QueueRate, ...]:
    """`--rate [BROKER[:QUEUE]=]R`: what is said of less counts for it, and the rest is for the others."""
    said: dict[tuple[str | None, int | None], Fraction] = {}
    abouts = []
    for text in texts:
        about, _, number = text.rpartition("=")
        place = _place(about, f"--rate {text}", queues, brokers, topic)
        abouts.append(place)
        said[place] = amounts.rate(number, f"--rate {about}={number}" if about else "--rate")
    must_differ(texts, abouts, "--rate")
    own = {queue: (queue.broker_name, queue.queue_id) for queue in queues}

    def level(queue: MessageQueue) -> tuple[str | None, int | None] | None:
        ways = (own[queue], (queue.broker_name, None), (None, None))
        return next((way for way in ways if way in said), None)

    levels = {queue: level(queue) for queue in queues}
    sharing = {way: sum(each == way for each in levels.values()) for way in said}
    return tuple(
        QueueRate(queue.broker_name, queue.queue_id, said[way] / sharing[way])
        for queue, way in levels.items()
        if way is not None
    )


def _place(
    about: str, option: str, queues: Sequence[MessageQueue], brokers: Sequence[str], topic: str
) -> tuple[str | None, int | None]:
    if not about:
        return None, None
    if about in brokers:
        return about, None
    broker, colon, number = about.rpartition(":")
    if colon and broker in brokers and re.fullmatch(r"\d{1,9}", number):
        if any(queue.broker_name == broker and queue.queue_id == int(number) for queue in queues):
            return broker, int(number)
        raise UsageError(f"{option}: {broker} has no queue {int(number)} of topic {topic} to receive from")
    hint = suggestion("brokers", about, brokers)
    raise UsageError(f"{option}: topic {topic} has no broker {about}", hint=hint, code="unknown-broker")


def _lasting(
    scenario: ReceiveScenario, queues: Sequence[MessageQueue], *, has_rate: bool
) -> tuple[ReceiveScenario, tuple[Finding, ...]]:
    """The scenario with a rate and an end, where something fails or there is a rate."""
    findings = []
    news = list(_news(scenario))
    if scenario.rare and not news:
        return scenario, ()
    if scenario.rare:
        each = _ASSUMED_RATE / len(queues)
        rates = tuple(QueueRate(queue.broker_name, queue.queue_id, each) for queue in queues)
        scenario = replace(scenario, rates=rates)
    if news and scenario.duration_us is None and scenario.messages is None:
        scenario = replace(scenario, duration_us=min(max(news) + _AFTER_US, LONGEST_US))
    if not has_rate:
        lasting = "" if scenario.duration_us is None else f" for {scenario.duration_us / SECOND_US:g} s"
        text = f"no --rate is given: 10 messages per second arrive{lasting}; --rate and --for say otherwise"
        findings.append(Finding("assumed-rate", text, severity=INFO))
    if scenario.messages is None and scenario.duration_us is None:
        scenario = replace(scenario, messages=_DEFAULT_MESSAGES)
    elif scenario.messages is None:
        scenario = replace(scenario, messages=MOST_RECEIVED)
    return scenario, tuple(findings)


def _news(scenario: ReceiveScenario) -> Iterator[int]:
    for failure in scenario.failures:
        for moment in (failure.start, failure.end):
            if moment is not None and moment.us is not None:
                yield moment.us
    yield from (crash.at_us for crash in scenario.crashes)
