"""What a simulation of sends needs, from the options of `simulate-send`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import get_args

from msgspec import Struct
from msgspec.structs import replace

from rmqlb.cli.common import producer_values as values
from rmqlb.cli.common.options import SourceOptions
from rmqlb.cli.common.reading import fetch
from rmqlb.cli.common.terminal import Terminal
from rmqlb.cli.simulate_send.options import FailureOptions, LoadOptions, ProducerOptions
from rmqlb.cli.simulate_send.selector import selector_of
from rmqlb.engine.route_findings import sighting_findings
from rmqlb.engine.send.horizon import long_enough
from rmqlb.engine.send.new_topic import TEMPLATE, new_topic_route
from rmqlb.engine.send.simulate import check, check_brokers, no_queues, rules
from rmqlb.engine.source_findings import source_findings
from rmqlb.errors import DataError, UsageError
from rmqlb.model.finding import INFO, Finding
from rmqlb.model.route import TopicRouteData
from rmqlb.model.send_report import KeySpread
from rmqlb.model.send_scenario import ASSUMED_LATENCY, JAVA, NEWEST, ROUTE_POLL_US, Mode, ProxyMode, SendScenario
from rmqlb.model.snapshot import ClusterSnapshot, Wanted, suggestion
from rmqlb.sources.source_text import is_live
from rmqlb.verbs import amounts
from rmqlb.verbs.amounts import byte_count
from rmqlb.views.report import duration

_DEFAULT_MESSAGES = 1000
_MODES: tuple[Mode, ...] = get_args(Mode)
_PROXY_MODES: tuple[ProxyMode, ...] = get_args(ProxyMode)


class Gathered(Struct, frozen=True):
    """Everything a simulation needs."""

    snapshot: ClusterSnapshot
    route: TopicRouteData
    scenario: SendScenario
    findings: tuple[Finding, ...]
    keys: KeySpread | None = None  # those that a selector is given, or None
    retries: int | None = None  # that were given; otherwise they are those of the SDK
    first_poll_given: bool = False  # likewise
    sdks: tuple[str, ...] = (JAVA,)  # the first one's producer is the scenario's; several are compared


def gather(
    source: SourceOptions,
    topic: str,
    failing: FailureOptions,
    load: LoadOptions,
    producer: ProducerOptions,
    terminal: Terminal,
) -> Gathered:
    """The route and the scenario from the options; raises UsageError, DataError, EndpointError."""
    max_bytes = byte_count(source.max_size, "--max-size")
    if source.source == "-" and load.keys == "-":
        raise UsageError("-s - and --keys - both read stdin")
    snapshot, route, findings = _route(source, topic, terminal)
    brokers = list(dict.fromkeys(data.broker_name for data in route.queue_datas))
    exclude = _excluded(producer, topic, brokers)
    queues = [queue for queue in route.publish_queues() if queue.broker_name not in exclude]
    single, others = values.latency_options(failing.latency or (), brokers, topic, max_bytes)
    selector, keys = selector_of(producer.selector, load, queues, max_bytes)
    poll = amounts.duration_us(failing.route_poll, "--route-poll")
    named = tuple(dict.fromkeys(producer.sdk or (JAVA,)))
    sdk, version = of_sdk(named[0], producer.client)
    capped, limits, last = producer.send_timeout_per_request, producer.latency_max, producer.not_available_duration
    scenario = SendScenario(
        client_version=version,
        mode=amounts.one_of(producer.mode, "--mode", _MODES),
        latency_fault=amounts.on_or_off(producer.latency_fault, "--latency-fault"),
        detector=amounts.on_or_off(producer.detector, "--detector"),
        threads=load.threads,
        messages=_messages(load, keys),
        rate=None if load.rate is None else amounts.rate(load.rate, "--rate"),
        duration_us=None if load.for_ is None else amounts.duration_us(load.for_, "--for"),
        retries=own_retries(sdk, producer.send_retries),
        sdk=sdk,
        proxy_mode=amounts.one_of(producer.proxy_mode, "--proxy-mode", _PROXY_MODES),
        timeout_ms=amounts.whole_ms(producer.send_timeout, "--send-timeout"),
        timeout_per_request_ms=None if capped is None else amounts.whole_ms(capped, "--send-timeout-per-request"),
        retry_not_store_ok=producer.retry_not_store_ok,
        failures=values.failures(failing.fail or (), brokers, topic, failing.nameserver_notices),
        latencies=single,
        latency=others or ASSUMED_LATENCY,
        exclude=exclude,
        seed=load.seed,
        first_poll_us=own_first_poll(sdk, poll) if failing.first_poll is None else _first_poll(failing.first_poll),
        poll_us=poll,
        latency_max=None if limits is None else amounts.milliseconds(limits, "--latency-max"),
        not_available_duration=None if last is None else amounts.milliseconds(last, "--not-available-duration"),
        selector=selector,
    )
    if load.messages is None and load.for_ is None and keys is None and scenario.failures and scenario.mode == "sync":
        scenario = long_enough(scenario)
    check(scenario)
    check_brokers(route, scenario)
    if not queues:
        raise no_queues(route)
    if load.start_at is not None:
        scenario = replace(scenario, start_at=values.queue_of(load.start_at, queues, "--start-at"))
    findings += [*_assumed(scenario, named, failing, load), *source_findings(snapshot)]
    given = failing.first_poll is not None
    return Gathered(snapshot, route, scenario, tuple(findings), keys, producer.send_retries, given, named)


def of_sdk(named: str, client: str) -> tuple[str, str]:
    """The SDK, and the version of the client where that is Java's (raises UsageError)."""
    from rmqlb.engine.send.sdks.profile import sdk

    name, at, version = named.partition("@")
    if name == JAVA:
        if at and client not in (NEWEST, version):
            raise UsageError(f"--sdk {named} and --client {client}", hint="leave one of them out")
        return JAVA, version if at else client
    return (JAVA if sdk(named).profile.name == JAVA else named), client


def own_retries(name: str, given: int | None) -> int:
    """The retries of an SDK's producer, which in one of them cannot be set."""
    if name == JAVA:
        return 2 if given is None else given
    from rmqlb.engine.send.sdks.profile import sdk

    own = sdk(name).profile.retries
    return (own or 0) if given is None or own == 0 else given


def own_first_poll(name: str, poll_us: int) -> int:
    """When an SDK's producer asks for the route again, which it does as often as is said, unless that is usual."""
    if name == JAVA or poll_us != ROUTE_POLL_US:
        return poll_us
    from rmqlb.engine.send.sdks.profile import sdk

    return sdk(name).profile.polls_after_s * 1_000_000


def _excluded(producer: ProducerOptions, topic: str, brokers: Sequence[str]) -> frozenset[str]:
    exclude = frozenset(producer.exclude or ())
    for name in exclude.difference(brokers):
        text = f"--exclude {name}: topic {topic} has no such broker"
        raise UsageError(text, hint=suggestion("brokers", name, brokers))
    return exclude


def _assumed(
    scenario: SendScenario, sdks: Sequence[str], failing: FailureOptions, load: LoadOptions
) -> Iterator[Finding]:
    """What clients of that version do not have, and what was not given."""
    others = [asked for asked in sdks if asked.partition("@")[0] != JAVA]
    if others:
        from rmqlb.engine.send.sdks.findings import assumed_findings

        yield from assumed_findings(others)
    profile = rules(scenario)
    if scenario.timeout_per_request_ms is not None and not profile.caps_request:
        yield Finding("not-in-version", f"clients {profile.name} have no sendMsgMaxTimeoutPerRequest")
    if scenario.detector and not profile.only_extends:
        yield Finding("not-in-version", f"clients {profile.name} have no detector")
    if failing.latency is None:
        text = "no --latency is given: healthy brokers are taken to answer in 1ms"
        yield Finding("assumed-latency", text, severity=INFO)
    if load.rate is None and scenario.rate is not None and scenario.duration_us is not None:
        rate, lasting = f"{float(scenario.rate):g} messages per second", duration(scenario.duration_us / 1000)
        text = f"no --rate is given: {rate} are sent, for {lasting}; --rate and --for say otherwise"
        yield Finding("assumed-rate", text, severity=INFO)


def _route(
    source: SourceOptions, topic: str, terminal: Terminal
) -> tuple[ClusterSnapshot, TopicRouteData, list[Finding]]:
    """The topic's route; of one that does not exist, what a producer makes of TBW102's; raises DataError."""
    snapshot = None
    try:
        snapshot = fetch(source, Wanted((topic,), groups=False), terminal)
        route = snapshot.route(topic)
    except DataError as missing:
        template = _template(source, snapshot, terminal)
        if template is None:
            raise
        snapshot, route = template
        hint = f" ({missing.hint})" if missing.hint else ""
        text = f"topic {topic} does not exist{hint}: producers take {TEMPLATE}'s queues until a broker creates it"
        return snapshot, new_topic_route(route, topic), [Finding("new-topic", text)]
    return snapshot, route, list(sighting_findings(snapshot.routes[topic]))


def _template(
    source: SourceOptions, snapshot: ClusterSnapshot | None, terminal: Terminal
) -> tuple[ClusterSnapshot, TopicRouteData] | None:
    try:
        if snapshot is None:
            if not is_live(source.source):
                return None
            snapshot = fetch(source, Wanted((TEMPLATE,), groups=False), terminal)
        return snapshot, snapshot.route(TEMPLATE)
    except DataError:
        return None


def _messages(load: LoadOptions, keys: KeySpread | None) -> int | None:
    if load.messages is not None:
        return amounts.count(load.messages, "--messages")
    if load.for_ is not None:
        return None
    return _DEFAULT_MESSAGES if keys is None else keys.messages


def _first_poll(text: str) -> int | None:
    return None if text.lower() == "random" else amounts.duration_us(text, "--first-poll", zero=True)
