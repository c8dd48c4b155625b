"""From the options of `simulate-send` to the scenario, and from the scenario to what is shown."""

from collections.abc import Iterator, Sequence
from typing import get_args

from msgspec import Struct
from msgspec.structs import replace

from rmqlb.cli.common import producer_values as values
from rmqlb.cli.common.options import SourceOptions
from rmqlb.cli.common.reading import Reading
from rmqlb.cli.common.send_options import SendOptions
from rmqlb.cli.common.show_or_watch import judge, require_known
from rmqlb.cli.common.terminal import Terminal
from rmqlb.engine.conditions import Condition
from rmqlb.engine.send.findings import assumed_findings, try_on
from rmqlb.engine.send.producer import no_queues
from rmqlb.engine.send.profile import PROFILES, profile_of, sdk, simulated
from rmqlb.engine.send.scenarios import TEMPLATE, long_enough, new_topic_route
from rmqlb.engine.send.simulate import check, check_brokers, rules, simulate_send
from rmqlb.engine.send.trials import simulate_trials
from rmqlb.engine.source_findings import sighting_findings, source_findings
from rmqlb.errors import DataError, UsageError
from rmqlb.model.limits import MOST_SEND_TRIALS
from rmqlb.model.result import INFO, Finding, TriedCondition
from rmqlb.model.route import TopicRouteData
from rmqlb.model.send_scenario import ASSUMED_LATENCY, JAVA, NEWEST, ROUTE_POLL_US, Mode, ProxyMode, SendScenario
from rmqlb.model.simulate_send import KeySpread, OtherProducer, SendReport, SendTrials, TrialsReport, printed_part
from rmqlb.model.snapshot import ClusterSnapshot, Wanted, suggestion
from rmqlb.sources.source_text import is_live
from rmqlb.verbs import amounts
from rmqlb.verbs.amounts import given
from rmqlb.views.formats.machine import json_line
from rmqlb.views.numbers import duration, number
from rmqlb.views.simulate_send import send_report

_DEFAULT_MESSAGES = 1000
_MOST_KEPT = 2_000_000
_HIGHEST_PRIORITY = 999_999  # more than a broker's queues
_COMPARED = ("latency-fault", "clients", "sdks")


class SendQuestion(Struct, frozen=True):
    snapshot: ClusterSnapshot
    route: TopicRouteData
    scenario: SendScenario
    findings: tuple[Finding, ...]
    keys: KeySpread | None  # of the selector
    sdks: tuple[str, ...]  # the scenario is that of the first; several are compared
    trials: int | None
    precision: float | None
    options: SendOptions


def read_question(source: SourceOptions, topic: str, options: SendOptions, terminal: Terminal) -> SendQuestion:
    trials = given(amounts.count, options.trials, "--trials", MOST_SEND_TRIALS, 2)
    within = given(amounts.percentage, options.precision, "--set precision=")
    max_bytes = amounts.byte_count(source.max_size, "--max-size")
    snapshot, route, findings = _route(source, topic, terminal)
    sdks = tuple(dict.fromkeys(options.sdk or (JAVA,)))
    brokers = list(dict.fromkeys(data.broker_name for data in route.queue_datas))
    scenario = _producer(options, sdks[0], topic, brokers)
    queues = [queue for queue in route.publish_queues() if queue.broker_name not in scenario.exclude]
    selector, keys = values.selector_of(options.selector, options.keys, options.key_type, queues, max_bytes)
    messages = None if options.for_ is not None else _DEFAULT_MESSAGES if keys is None else keys.messages
    if options.messages is not None:
        messages = amounts.count(options.messages, "--messages")
    single, others = values.round_trips(options.round_trip or (), brokers, topic, max_bytes)
    scenario = replace(
        scenario,
        messages=messages,
        latencies=single,
        latency=others or ASSUMED_LATENCY,
        failures=values.failures(options.fail or (), brokers, topic, options.nameserver_notices),
        selector=selector,
    )
    unlimited = options.messages is None and options.for_ is None and keys is None
    if unlimited and scenario.failures and scenario.mode == "sync":
        scenario = long_enough(scenario)
    check(scenario)
    check_brokers(route, scenario)
    if not queues:
        raise no_queues(route)
    if options.start_at is not None:
        start = values.queue_of(options.start_at, queues, "--set start-at=")
        scenario = replace(scenario, start_at=start)
    findings += [*_assumed(scenario, sdks, options), *source_findings(snapshot)]
    return SendQuestion(snapshot, route, scenario, tuple(findings), keys, sdks, trials, within, options)


def _producer(options: SendOptions, named: str, topic: str, brokers: Sequence[str]) -> SendScenario:
    exclude = frozenset(options.exclude or ())
    for broker in exclude.difference(brokers):
        text = f"--set exclude={broker}: topic {topic} has no such broker"
        raise UsageError(text, hint=suggestion("brokers", broker, brokers))
    scenario = SendScenario(
        mode=amounts.one_of(options.mode, "--mode", get_args(Mode)),
        latency_fault=amounts.on_or_off(options.latency_fault, "--latency-fault"),
        detector=options.detector,
        threads=options.threads,
        rate=given(amounts.rate, options.rate, "--rate"),
        duration_us=given(amounts.duration_us, options.for_, "--for"),
        proxy_mode=amounts.one_of(options.proxy_mode, "--set proxy-mode=", get_args(ProxyMode)),
        timeout_ms=amounts.whole_ms(options.send_timeout, "--send-timeout"),
        timeout_per_request_ms=given(
            amounts.whole_ms, options.send_timeout_per_request, "--set send-timeout-per-request="
        ),
        retry_not_store_ok=options.retry_not_store_ok,
        exclude=exclude,
        priorities=tuple(map(_priority, options.priority or ())),
        seed=options.seed,
        poll_us=amounts.duration_us(options.route_poll, "--set route-poll="),
        latency_max=given(amounts.milliseconds, options.latency_max, "--set latency-max="),
        not_available_duration=given(
            amounts.milliseconds, options.not_available_duration, "--set not-available-duration="
        ),
    )
    return _as_sdk(scenario, named, options)


def _priority(text: str) -> int | None:
    return None if text.lower() == "none" else amounts.count(text, "--set priority=", _HIGHEST_PRIORITY, 0)


def _as_sdk(scenario: SendScenario, named: str, options: SendOptions, client: str = NEWEST) -> SendScenario:
    """The scenario with the producer of an SDK; `client` is the version of a Java client that names none."""
    name, _, version = named.partition("@")
    if name != JAVA:
        name, version = JAVA if sdk(named).profile.name == JAVA else named, client
    own, retries, poll_us = sdk(name).profile, options.send_retries, scenario.poll_us
    if retries is None or own.retries == 0:  # one SDK does not let its users set them
        retries = own.retries or 0
    first: int | None = poll_us if name == JAVA or poll_us != ROUTE_POLL_US else own.polls_after_s * 1_000_000
    if options.first_poll is not None:
        is_random = options.first_poll.lower() == "random"
        first = None if is_random else amounts.duration_us(options.first_poll, "--set first-poll=", zero=True)
    return replace(scenario, sdk=name, client_version=version or client, retries=retries, first_poll_us=first)


def _assumed(scenario: SendScenario, sdks: Sequence[str], options: SendOptions) -> Iterator[Finding]:
    """Settings that the client version does not have, and assumptions where nothing was given."""
    yield from assumed_findings([each for each in sdks if each.partition("@")[0] != JAVA])
    profile = rules(scenario)
    if scenario.timeout_per_request_ms is not None and not profile.caps_request:
        yield Finding("not-in-version", f"clients {profile.name} have no sendMsgMaxTimeoutPerRequest")
    if scenario.detector and not profile.only_extends:
        yield Finding("not-in-version", f"clients {profile.name} have no detector")
    if options.round_trip is None:
        text = "without --round-trip, rmqlb assumes that healthy brokers answer in 1ms"
        yield Finding("assumed-latency", text, severity=INFO)
    if options.rate is None and scenario.rate is not None and scenario.duration_us is not None:
        rate, lasting = f"{number(float(scenario.rate))} messages per second", duration(scenario.duration_us / 1000)
        text = f"without --rate, {rate} are sent for {lasting}; to change this, add --rate or --for"
        yield Finding("assumed-rate", text, severity=INFO)


def _route(
    source: SourceOptions, topic: str, terminal: Terminal
) -> tuple[ClusterSnapshot, TopicRouteData, list[Finding]]:
    """The topic's route; for a topic that does not exist, the route that a producer makes of TBW102's."""
    snapshot = None
    try:
        snapshot = Reading(source, terminal).fetch(Wanted((topic,), groups=False))
        return snapshot, snapshot.route(topic), list(sighting_findings(snapshot.routes[topic]))
    except DataError as missing:
        if snapshot is None and not is_live(source.source):
            raise
        try:
            snapshot = snapshot or Reading(source, terminal).fetch(Wanted((TEMPLATE,), groups=False))
            template = snapshot.route(TEMPLATE)
        except DataError:
            raise missing from None
        hint = f" ({missing.hint})" if missing.hint else ""
        text = f"topic {topic} does not exist{hint}: producers take {TEMPLATE}'s queues until a broker creates it"
        return snapshot, new_topic_route(template, topic), [Finding("new-topic", text)]


def answer(question: SendQuestion, terminal: Terminal, conditions: Sequence[Condition], *, trace: bool) -> None:
    """Simulate, and show the report; as JSON lines every attempt when it ends, with --trace every lost message too."""
    scenario, options, route = question.scenario, question.options, question.route
    streams = terminal.format == "jsonl"
    compared, left_out = _compared(question, streams=streams, trace=trace), list[Finding]()

    def write(row: Struct) -> None:
        terminal.write(json_line(row))

    with terminal.progress(verb="simulating", beside_rows=streams) as progress:
        total = _expected(scenario)
        progress("messages", 0, total)
        report = simulate_send(
            route,
            scenario,
            trace=None if streams else trace or None,
            sink=write if streams else None,
            lost_sink=write if streams and options.trace else None,
            progress=lambda sent: progress("messages", sent, max(total, sent) if total else 0),
        )

        def others(what: str) -> Iterator[OtherProducer]:
            for done, other in enumerate(compared[what]):
                progress(what, done, len(compared[what]))
                try:
                    yield simulate_send(route, other, trace=False).in_short
                except (DataError, UsageError) as unknown:
                    if other.sdk == JAVA or (isinstance(unknown, UsageError) and other.mode != "async"):
                        raise  # every SDK would fail
                    text = f"{other.sdk} is left out: {unknown.problem}"
                    left_out.append(Finding("sdk-not-simulated", text, severity=INFO))

        comparison, clients, sdks = (tuple(others(what)) for what in ("latency fault", "client versions", "SDKs"))
        report = replace(report, comparison=comparison, clients=clients, sdks=sdks)
        trials = None
        if question.trials is not None:
            most = question.trials
            trials = simulate_trials(
                route, scenario, most, precision=question.precision, progress=lambda n: progress("trials", n, most)
            )
            report = replace(report, trials=printed_part(trials, SendTrials))
    findings = (*question.findings, *left_out, *report.findings)
    if streams:
        terminal.warn(findings)
    tried = _tried(conditions, report, trials)
    if not streams:
        report = replace(report, keys=question.keys, conditions=tuple(tried))
        profiles = [(profile_of(other.client_version), rules(other)) for other in compared["client versions"]]
        stretches = [(profile.versions, own.duration(0, isolation=True)) for profile, own in profiles]
        terminal.show(send_report(report, clients=stretches, trace=trace), question.snapshot, findings)
    judge(tried, terminal)


def _compared(question: SendQuestion, *, streams: bool, trace: bool) -> dict[str, list[SendScenario]]:
    """The scenarios to compare (raises UsageError for a comparison that does not fit)."""
    options, scenario, several = question.options, question.scenario, len(question.sdks) > 1
    compared = tuple(amounts.one_of(text, "--compare", _COMPARED) for text in options.compare or ())
    if streams and (compared or several or options.trials):
        hint = "use -o json for comparisons and trials"
        raise UsageError("-o jsonl streams the attempts of one simulation", hint=hint)
    of_java = next((each for each in compared if each != "sdks"), None)
    if of_java is not None and scenario.sdk != JAVA:
        hint = "leave --sdk out, or use --compare sdks"
        raise UsageError(f"--compare {of_java} compares only Java producers", hint=hint)
    if not streams and trace and (scenario.messages or 0) * (1 + scenario.retries) > _MOST_KEPT:
        hint = "stream them with -o jsonl"
        raise UsageError(f"--trace of {scenario.messages} messages would keep millions of attempts", hint=hint)
    client = NEWEST if several else scenario.client_version
    names = question.sdks if several else simulated() if "sdks" in compared else ()
    sdks = [_as_sdk(scenario, named, options, client) for named in names]  # with its own retries and first poll
    versions = [".".join(map(str, each.since)) for each in PROFILES if "clients" in compared]
    return {
        "latency fault": [replace(scenario, latency_fault=on) for on in (False, True) if "latency-fault" in compared],
        "client versions": [replace(scenario, client_version=version) for version in versions],
        "SDKs": [each if each.sdk == JAVA else replace(each, latency_fault=False, detector=False) for each in sdks],
    }


def _tried(
    conditions: Sequence[Condition], report: SendReport, trials: TrialsReport | None = None
) -> list[TriedCondition]:
    """The conditions, judged; refuses an unknown figure, with a hint on what to ask instead of the first of them."""
    tried = [try_on(condition, report, trials) for condition in conditions]
    unknown = next((condition for condition, found in zip(conditions, tried, strict=True) if found.met is None), None)
    hint = "trials do not count it: ask for it without --trials"
    if unknown is None or unknown.percent or unknown.name == "share":
        hint = "no message is stored or none is sent, so that nothing is a share of them: ask for lost"
    require_known(tried, hint)
    return tried


def _expected(scenario: SendScenario) -> int:
    ends = [] if scenario.messages is None else [scenario.messages]
    if scenario.rate is not None and scenario.duration_us is not None:
        ends.append(int(scenario.rate * scenario.duration_us / 1_000_000))
    return min(ends, default=0)
