"""From the options of `simulate-send` to the scenario, and from the scenario to what is shown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import get_args

from msgspec import Struct
from msgspec.structs import replace

from rmqlb.cli.common import producer_values as values
from rmqlb.cli.common.fail_on import judge, require_known
from rmqlb.cli.common.options import SourceOptions
from rmqlb.cli.common.progress import Progress
from rmqlb.cli.common.reading import fetch
from rmqlb.cli.common.send_options import FailureOptions, LoadOptions, ProducerOptions, WhatOptions
from rmqlb.cli.common.terminal import Terminal
from rmqlb.engine.conditions import Condition
from rmqlb.engine.fail_on_figures.of_sends import try_on_send, try_on_trials
from rmqlb.engine.route_findings import sighting_findings
from rmqlb.engine.send.findings import assumed_findings
from rmqlb.engine.send.profile import PROFILES
from rmqlb.engine.send.scenarios import TEMPLATE, long_enough, new_topic_route
from rmqlb.engine.send.sdks.profile import sdk, simulated
from rmqlb.engine.send.simulate import check, check_brokers, rules, simulate_send
from rmqlb.engine.send.simulation import no_queues
from rmqlb.engine.send.trials import simulate_trials
from rmqlb.engine.source_findings import source_findings
from rmqlb.errors import DataError, UsageError
from rmqlb.model.client_versions import ClientVersions
from rmqlb.model.condition import TriedCondition
from rmqlb.model.finding import INFO, Finding
from rmqlb.model.limits import MOST_SEND_TRIALS
from rmqlb.model.route import TopicRouteData
from rmqlb.model.send_scenario import ASSUMED_LATENCY, JAVA, NEWEST, ROUTE_POLL_US, Mode, ProxyMode, SendScenario
from rmqlb.model.simulate_send import KeySpread, OtherProducer, SendTrials, printed_part
from rmqlb.model.snapshot import ClusterSnapshot, Wanted, suggestion
from rmqlb.sources.source_text import is_live
from rmqlb.verbs import amounts
from rmqlb.views.report import duration
from rmqlb.views.simulate_send import send_report

_DEFAULT_MESSAGES = 1000
_MOST_KEPT = 2_000_000


class Question(Struct, frozen=True):
    """What is simulated, and what it is compared with."""

    snapshot: ClusterSnapshot
    route: TopicRouteData
    scenario: SendScenario
    findings: tuple[Finding, ...]
    keys: KeySpread | None  # of the selector
    retries: int | None  # if given; otherwise each SDK has its own
    first_poll_given: bool
    sdks: tuple[str, ...]  # the scenario is that of the first; several are compared
    trials: int | None
    precision: float | None
    what: WhatOptions


def read_question(
    source: SourceOptions,
    topic: str,
    failing: FailureOptions,
    load: LoadOptions,
    producer: ProducerOptions,
    what: WhatOptions,
    terminal: Terminal,
) -> Question:
    """The route and the scenario; raises UsageError, DataError, EndpointError."""
    trials = None if what.trials is None else amounts.count(what.trials, "--trials", most=MOST_SEND_TRIALS, least=2)
    precision = None if what.precision is None else amounts.percentage(what.precision, "--precision")
    max_bytes = amounts.byte_count(source.max_size, "--max-size")
    if source.source == "-" and load.keys == "-":
        raise UsageError("-s - and --keys - both read stdin")
    snapshot, route, findings = _route(source, topic, terminal)
    sdks = tuple(dict.fromkeys(producer.sdk or (JAVA,)))
    exclude = frozenset(producer.exclude or ())
    queues = [queue for queue in route.publish_queues() if queue.broker_name not in exclude]
    scenario = _producer(producer, sdks[0], failing, load, route)
    selector, keys = values.selector_of(producer.selector, load.keys, load.key_type, queues, max_bytes)
    brokers = _brokers(route)
    single, others = values.latency_options(failing.latency or (), brokers, topic, max_bytes)
    scenario = replace(
        scenario,
        messages=_messages(load, keys),
        latencies=single,
        latency=others or ASSUMED_LATENCY,
        failures=values.failures(failing.fail or (), brokers, topic, failing.nameserver_notices),
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
    findings += [*_assumed(scenario, sdks, failing, load), *source_findings(snapshot)]
    return Question(
        snapshot=snapshot,
        route=route,
        scenario=scenario,
        findings=tuple(findings),
        keys=keys,
        retries=producer.send_retries,
        first_poll_given=failing.first_poll is not None,
        sdks=sdks,
        trials=trials,
        precision=precision,
        what=what,
    )


def _brokers(route: TopicRouteData) -> list[str]:
    return list(dict.fromkeys(data.broker_name for data in route.queue_datas))


def _producer(
    producer: ProducerOptions, named: str, failing: FailureOptions, load: LoadOptions, route: TopicRouteData
) -> SendScenario:
    """The producer's settings and its rate, without failures and latencies."""
    exclude, brokers = frozenset(producer.exclude or ()), _brokers(route)
    for broker in exclude.difference(brokers):
        text = f"--exclude {broker}: topic {route.topic} has no such broker"
        raise UsageError(text, hint=suggestion("brokers", broker, brokers))
    poll = amounts.duration_us(failing.route_poll, "--route-poll")
    name, version = _sdk_and_version(named, producer.client)
    capped, limits, last = producer.send_timeout_per_request, producer.latency_max, producer.not_available_duration
    return SendScenario(
        client_version=version,
        mode=amounts.one_of(producer.mode, "--mode", get_args(Mode)),
        latency_fault=amounts.on_or_off(producer.latency_fault, "--latency-fault"),
        detector=amounts.on_or_off(producer.detector, "--detector"),
        threads=load.threads,
        rate=None if load.rate is None else amounts.rate(load.rate, "--rate"),
        duration_us=None if load.for_ is None else amounts.duration_us(load.for_, "--for"),
        retries=_own_retries(name, producer.send_retries),
        sdk=name,
        proxy_mode=amounts.one_of(producer.proxy_mode, "--proxy-mode", get_args(ProxyMode)),
        timeout_ms=amounts.whole_ms(producer.send_timeout, "--send-timeout"),
        timeout_per_request_ms=None if capped is None else amounts.whole_ms(capped, "--send-timeout-per-request"),
        retry_not_store_ok=producer.retry_not_store_ok,
        exclude=exclude,
        seed=load.seed,
        first_poll_us=_first_poll(failing.first_poll, name, poll),
        poll_us=poll,
        latency_max=None if limits is None else amounts.milliseconds(limits, "--latency-max"),
        not_available_duration=None if last is None else amounts.milliseconds(last, "--not-available-duration"),
    )


def _sdk_and_version(named: str, client: str) -> tuple[str, str]:
    """The SDK, and the version of the client where that is Java's (raises UsageError)."""
    name, at, version = named.partition("@")
    if name != JAVA:
        return (JAVA if sdk(named).profile.name == JAVA else named), client
    if at and client not in (NEWEST, version):
        raise UsageError(f"--sdk {named} and --client {client}", hint="leave one of them out")
    return JAVA, version if at else client


def _own_retries(name: str, given: int | None) -> int:
    """The retries of an SDK's producer, which one SDK does not let its users set."""
    own = sdk(name).profile.retries
    return (own or 0) if given is None or own == 0 else given


def _first_poll(given: str | None, name: str, poll_us: int) -> int | None:
    if given is None:
        return _own_first_poll(name, poll_us)
    return None if given.lower() == "random" else amounts.duration_us(given, "--first-poll", zero=True)


def _own_first_poll(name: str, poll_us: int) -> int:
    """When an SDK's producer first requests the route again; with an interval of the user's, after that interval."""
    if name == JAVA or poll_us != ROUTE_POLL_US:
        return poll_us
    return sdk(name).profile.polls_after_s * 1_000_000


def _messages(load: LoadOptions, keys: KeySpread | None) -> int | None:
    if load.messages is not None:
        return amounts.count(load.messages, "--messages")
    if load.for_ is not None:
        return None
    return _DEFAULT_MESSAGES if keys is None else keys.messages


def _assumed(
    scenario: SendScenario, sdks: Sequence[str], failing: FailureOptions, load: LoadOptions
) -> Iterator[Finding]:
    """Settings that the client version does not have, and assumptions where nothing was given."""
    yield from assumed_findings([each for each in sdks if each.partition("@")[0] != JAVA])
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
    """The topic's route; for a topic that does not exist, the route that a producer makes of TBW102's."""
    snapshot = None
    try:
        snapshot = fetch(source, Wanted((topic,), groups=False), terminal)
        return snapshot, snapshot.route(topic), list(sighting_findings(snapshot.routes[topic]))
    except DataError as missing:
        try:
            if snapshot is None:
                if not is_live(source.source):
                    raise
                snapshot = fetch(source, Wanted((TEMPLATE,), groups=False), terminal)
            template = snapshot.route(TEMPLATE)
        except DataError:
            raise missing from None
        hint = f" ({missing.hint})" if missing.hint else ""
        text = f"topic {topic} does not exist{hint}: producers take {TEMPLATE}'s queues until a broker creates it"
        return snapshot, new_topic_route(template, topic), [Finding("new-topic", text)]


# -- the answer --------------------------------------------------------------------------------------------------------


def stream(question: Question, terminal: Terminal, asked: Sequence[Condition]) -> None:
    """Print every attempt as a JSON line when it ends; with --trace every lost message too, after its last attempt."""
    from rmqlb.views.formats.machine import JsonLines

    what = question.what
    if what.compare or what.compare_clients or what.compare_sdks or len(question.sdks) > 1 or what.trials:
        raise UsageError(
            "-o jsonl streams the attempts of one simulation", hint="use -o json for comparisons and trials"
        )
    lines = JsonLines(terminal.write)
    total = _expected(question.scenario)
    with terminal.progress(verb="simulating", beside_rows=True) as progress:
        progress("messages", 0, total)
        report = simulate_send(
            question.route,
            question.scenario,
            sink=lines.add,
            lost_sink=lines.add if what.trace else None,
            progress=lambda sent: progress("messages", sent, total),
        )
    lines.flush()
    tried = [try_on_send(condition, report) for condition in asked]
    terminal.warn((*question.findings, *report.findings))
    require_known(tried, _hint(asked, tried))
    judge(tried, terminal)


def show(question: Question, terminal: Terminal, asked: Sequence[Condition], *, trace: bool) -> None:
    """Simulate, and show the result."""
    scenario, what, route = question.scenario, question.what, question.route
    if (what.compare or what.compare_clients) and scenario.sdk != JAVA:
        option = "--compare" if what.compare else "--compare-clients"
        raise UsageError(f"{option} compares what Java's producers do", hint="leave --sdk out, or use --compare-sdks")
    if trace and scenario.messages is not None and scenario.messages * (1 + scenario.retries) > _MOST_KEPT:
        raise UsageError(
            f"--trace of {scenario.messages} messages would keep millions of attempts", hint="stream them with -o jsonl"
        )
    with terminal.progress(verb="simulating") as progress:
        total = _expected(scenario)
        progress("messages", 0, total)

        def sent(messages: int) -> None:
            progress("messages", messages, max(total, messages) if total else 0)

        report = simulate_send(route, scenario, trace=trace or None, progress=sent)
        both = [report.in_short] if what.compare else []
        if what.compare:
            other = replace(scenario, latency_fault=not scenario.latency_fault)
            both.append(simulate_send(route, other, trace=False, progress=sent).in_short)
        versions = list(_versions(scenario)) if what.compare_clients else []
        clients = []
        for done, (_, other) in enumerate(versions):
            progress("client versions", done, len(versions))
            clients.append(simulate_send(route, other, trace=False).in_short)
        several = what.compare_sdks or len(question.sdks) > 1
        sdks, left_out = _sdks(question, progress) if several else ([], [])
        trials = None
        if question.trials is not None:
            most = question.trials
            trials = simulate_trials(
                route, scenario, most, precision=question.precision, progress=lambda n: progress("trials", n, most)
            )
    tried = [
        try_on_send(condition, report) if trials is None else try_on_trials(condition, trials, report)
        for condition in asked
    ]
    require_known(tried, _hint(asked, tried))
    report = replace(
        report,
        keys=question.keys,
        comparison=tuple(sorted(both, key=lambda each: each.latency_fault)),
        clients=tuple(clients),
        sdks=tuple(sdks),
        trials=None if trials is None else printed_part(trials, SendTrials),
        conditions=tuple(tried),
    )
    isolates = [(stretch, rules(other).duration(0, isolation=True)) for stretch, other in versions]
    shown = send_report(report, clients=isolates, trace=trace)
    terminal.show(shown, question.snapshot, (*question.findings, *left_out, *report.findings))
    judge(tried, terminal)


def _hint(asked: Sequence[Condition], tried: Sequence[TriedCondition]) -> str:
    """What to ask instead of the first condition whose figure is unknown."""
    unknown = next((condition for condition, found in zip(asked, tried, strict=True) if found.met is None), None)
    if unknown is None or unknown.percent or unknown.name == "share":
        return "no message is stored or none is sent, so that nothing is a share of them: ask for lost"
    return "trials do not count it: ask for it without --trials"


def _expected(scenario: SendScenario) -> int:
    """About how many messages there will be; 0 when that is unknown."""
    ends = [] if scenario.messages is None else [scenario.messages]
    if scenario.rate is not None and scenario.duration_us is not None:
        ends.append(int(scenario.rate * scenario.duration_us / 1_000_000))
    return min(ends, default=0)


def _versions(scenario: SendScenario) -> Iterator[tuple[ClientVersions, SendScenario]]:
    for profile in PROFILES:
        yield profile.versions, replace(scenario, client_version=".".join(map(str, profile.since)))


def _sdks(question: Question, progress: Progress) -> tuple[list[OtherProducer], list[Finding]]:
    """Producers of each SDK with its own retries and first poll, and why some are left out."""
    chosen = list(question.sdks) if len(question.sdks) > 1 else simulated()
    producers, left_out = list[OtherProducer](), list[Finding]()
    for done, named in enumerate(chosen):
        progress("SDKs", done, len(chosen))
        name, version = _sdk_and_version(named, question.scenario.client_version)
        scenario = replace(question.scenario, sdk=name, client_version=version)
        if name != JAVA:  # the others have neither
            scenario = replace(scenario, latency_fault=False, detector=False)
        if not question.first_poll_given:
            scenario = replace(scenario, first_poll_us=_own_first_poll(name, scenario.poll_us))
        scenario = replace(scenario, retries=_own_retries(name, question.retries))
        try:
            producers.append(simulate_send(question.route, scenario, trace=False).in_short)
        except (DataError, UsageError) as unknown:
            if isinstance(unknown, UsageError) and scenario.mode != "async":
                raise  # every SDK would fail
            left_out.append(Finding("sdk-not-simulated", f"{name} is left out: {unknown.problem}", severity=INFO))
    return producers, left_out
