"""What a simulation of receives needs, from the options of `simulate-receive`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import get_args

from msgspec import Struct
from msgspec.structs import replace

from rmqlb.cli.common import producer_values as values
from rmqlb.cli.common.options import SourceOptions
from rmqlb.cli.common.reading import fetch
from rmqlb.cli.common.terminal import Terminal
from rmqlb.cli.simulate_receive.options import ArrivalOptions, ReceiveFailureOptions, ReceiverOptions, WhereOptions
from rmqlb.engine.receive.findings import receive_findings
from rmqlb.engine.receive.simulate import check, readable_queues
from rmqlb.engine.route_findings import sighting_findings
from rmqlb.engine.source_findings import source_findings
from rmqlb.errors import UsageError
from rmqlb.model.finding import INFO, Finding
from rmqlb.model.group import Seen
from rmqlb.model.limits import LONGEST_US
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.receive_scenario import (
    MOST_BATCH,
    MOST_LOOPS,
    MOST_RECEIVED,
    MOST_RECEIVERS,
    SECOND_US,
    Crash,
    QueueRate,
    ReceiveClient,
    ReceiveScenario,
)
from rmqlb.model.route import BrokerData, QueueData, TopicRouteData
from rmqlb.model.snapshot import ClusterSnapshot, RouteSighting, Wanted, suggestion
from rmqlb.verbs import amounts
from rmqlb.verbs.parse import must_differ, queue_number
from rmqlb.views.report import duration

_DEFAULT_MESSAGES = 1000
_ASSUMED_RATE = Fraction(10)
_AFTER_US = 300 * SECOND_US
_TYPES: tuple[ReceiveClient, ...] = get_args(ReceiveClient)
_GIVEN = "given"


class Gathered(Struct, frozen=True):
    """Everything a simulation needs."""

    snapshot: ClusterSnapshot
    route: TopicRouteData
    scenario: ReceiveScenario
    findings: tuple[Finding, ...]


def gather(
    source: SourceOptions,
    topic: str | None,
    where: WhereOptions,
    receiver: ReceiverOptions,
    arriving: ArrivalOptions,
    failing: ReceiveFailureOptions,
    terminal: Terminal,
) -> Gathered:
    """The route and the scenario from the options; raises UsageError, DataError, EndpointError."""
    scenario = _receivers(receiver, arriving)
    crashes = tuple(_crash(text) for text in failing.crash or ())
    must_differ(failing.crash or (), [crash.consumer for crash in crashes], "--crash")
    snapshot = _given(where.broker, topic, source) if where.broker else None
    if snapshot is None:
        if topic is None:
            raise UsageError("which topic?", hint="name the one that is received from with --topic", code="which-topic")
        snapshot = fetch(source, Wanted((topic,), groups=False), terminal)
    route = snapshot.route(topic or _GIVEN)
    queues = readable_queues(route)
    brokers = list(dict.fromkeys(queue.broker_name for queue in queues))
    _check_notices(failing.nameserver_notices)
    failures = values.failures(failing.fail or (), brokers, route.topic, failing.nameserver_notices)
    scenario = replace(
        scenario,
        failures=failures,
        crashes=crashes,
        rates=_rates(arriving.rate or (), queues, brokers, route.topic),
        broker_version=where.broker_version,
    )
    findings = [*sighting_findings(snapshot.routes[route.topic]), *source_findings(snapshot)]
    scenario, assumed = _lasting(scenario, queues, arriving)
    check(route, scenario)
    counts = [sum(queue.broker_name == name for queue in queues) for name in brokers]
    return Gathered(snapshot, route, scenario, (*findings, *receive_findings(scenario, counts), *assumed))


def _receivers(receiver: ReceiverOptions, arriving: ArrivalOptions) -> ReceiveScenario:
    kind = amounts.one_of(receiver.type, "--type", _TYPES)
    given = ("--loops", receiver.loops), ("--await", receiver.await_), ("--error-pause", receiver.error_pause)
    for option, text in given:
        if kind != "simple" and text is not None:
            raise UsageError(f"{option} {text}: only a SimpleConsumer has it", hint="leave it out, or --type simple")
    if kind == "push" and receiver.invisible is not None:
        raise UsageError(
            f"--invisible {receiver.invisible}: the Proxy decides it for a PushConsumer, and renews it",
            hint="leave it out, or --type simple",
        )
    usual = ReceiveScenario()
    loops, await_, pause = receiver.loops, receiver.await_, receiver.error_pause
    messages, lasting, invisible = arriving.messages, arriving.for_, receiver.invisible
    return ReceiveScenario(
        client=kind,
        consumers=amounts.count(receiver.processes, "--processes", most=MOST_RECEIVERS),
        loops=1 if loops is None else amounts.count(loops, "--loops", most=MOST_LOOPS),
        await_us=usual.await_us if await_ is None else amounts.duration_us(await_, "--await"),
        invisible_us=usual.invisible_us if invisible is None else amounts.duration_us(invisible, "--invisible"),
        batch=amounts.count(receiver.batch, "--batch", most=MOST_BATCH),
        fifo=receiver.fifo,
        consume_us=amounts.duration_us(receiver.consume_time, "--consume-time", zero=True),
        error_pause_us=0 if pause is None else amounts.duration_us(pause, "--error-pause", zero=True),
        round_trip_us=amounts.duration_us(receiver.round_trip, "--round-trip", zero=True),
        messages=None if messages is None else amounts.count(messages, "--messages", most=MOST_RECEIVED),
        duration_us=None if lasting is None else amounts.duration_us(lasting, "--for"),
        seed=arriving.seed,
    )


def _given(texts: Sequence[str], topic: str | None, source: SourceOptions) -> ClusterSnapshot:
    """A topic on the brokers of `--broker`."""
    if source.source is not None and source.active_context is None:
        raise UsageError("-s and --broker both say which brokers there are", hint="leave one of them out")
    brokers = [_broker(text) for text in texts]
    must_differ(texts, [name for name, _ in brokers], "--broker")
    name = topic or _GIVEN
    route = TopicRouteData(
        name,
        tuple(QueueData(broker, queues, queues, 6) for broker, queues in brokers),
        tuple(BrokerData(_GIVEN, broker, {0: broker}) for broker, _ in brokers),
    )
    return ClusterSnapshot(_GIVEN, "--broker", routes={name: RouteSighting(route, Seen("--broker"))})


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


def _check_notices(text: str | None) -> None:
    """A wrong time is an error without a failure too."""
    if text is not None and text.lower() != "never":
        amounts.duration_us(text, "--nameserver-notices", zero=True)


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
    scenario: ReceiveScenario, queues: Sequence[MessageQueue], arriving: ArrivalOptions
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
    if not arriving.rate:
        lasting = "" if scenario.duration_us is None else f", for {duration(scenario.duration_us / 1000)}"
        text = f"no --rate is given: 10 messages per second arrive{lasting}; --rate and --for say otherwise"
        findings.append(Finding("assumed-rate", text, severity=INFO))
    if scenario.messages is None and scenario.duration_us is None:
        scenario = replace(scenario, messages=_DEFAULT_MESSAGES)
    elif scenario.messages is None:
        scenario = replace(scenario, messages=MOST_RECEIVED)
    return scenario, tuple(findings)


def _news(scenario: ReceiveScenario) -> Iterator[int]:
    """When something fails, or works again."""
    for failure in scenario.failures:
        for moment in (failure.start, failure.end):
            if moment is not None and moment.us is not None:
                yield moment.us
    yield from (crash.at_us for crash in scenario.crashes)
