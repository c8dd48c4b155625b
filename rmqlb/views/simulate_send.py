from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import groupby
from typing import Any

from rmqlb.model import simulate_send as model
from rmqlb.model.client_versions import ClientVersions
from rmqlb.model.message_queue import grouped
from rmqlb.model.result import ERROR, WARNING, are, counted, messages, named
from rmqlb.model.send_scenario import JAVA, Failure, Moment
from rmqlb.views.columns import Cell, Column, PaintedText, columns_from, columns_of, rows_of
from rmqlb.views.formats.palette import BAD
from rmqlb.views.numbers import about, duration, number, percent
from rmqlb.views.report import Audience, Report, Section, section_of

MOST_FAILURES = 12
_UNEVEN = 1.2
"""A queue with this many times the messages of another on its broker is uneven; turns alone differ by two."""
_STRIP = 60
_TOTALS = "messages stored not_store_ok duplicated lost retried attempts failed_attempts retries"
_TITLES = {
    "not_store_ok": "stored, not SEND_OK",
    "duplicated": "stored more than once",
    "retried": "messages with a retry",
}
_COUNTS = "picks attempts failed stored share bar=:bar@share"
_MEANING = "= stored, x some fail, X all fail, - isolated, . no attempt"
_STYLES = {"=": "green", "x": "yellow", "X": BAD, "-": "cyan"}
_NOTHING = "."
"""Not a space: tables lose spaces at the ends of a cell."""


def send_report(
    report: model.SendReport, *, clients: Sequence[tuple[ClientVersions, int]] = (), trace: bool = False
) -> Report:
    """The report of a simulation; with `trace` people see each attempt.

    `clients` has the versions of each of `report.clients`, and the ms for which a failure isolates a broker there.
    """
    facts = send_facts(report)
    if report.sdks:
        facts = (*_sdk_facts(report.sdks), f"{report.producer.sdk}: {facts[0]}", *facts[1:])
    totals = (report.totals, *(each.totals for each in report.sdks))
    grave = send_gravity(max(totals, key=lambda each: (each.lost, each.failed_attempts)))
    sections = (*_comparisons(report, clients), *_messages(report, trace=trace), *_tables(report))
    data = model.printed_part(report, model.SendResult)
    return Report("rmqlb/send", data, facts, sections, grave=grave, closing=send_settings(report))


def send_facts(report: model.SendReport) -> tuple[str, ...]:
    totals, more = report.totals, len(report.failures) - MOST_FAILURES
    longest = () if totals.longest_send_ms is None else (f"longest send {about(totals.longest_send_ms)}",)
    return (
        f"{report.topic}, {_failing(report)}: {'; '.join((*_lost(totals), *_retries(report), *longest))}",
        *(() if report.trials is None else (f"  {_over_trials(report.trials)}",)),
        *(f"  {_taken(failure, report.producer.sdk)}" for failure in report.failures[:MOST_FAILURES]),
        *((f"  and {more} failures more",) if more > 0 else ()),
    )


def send_gravity(totals: model.SendTotals) -> str:
    if totals.lost:
        return ERROR
    return WARNING if totals.failed_attempts or totals.duplicated or totals.not_store_ok else "inOrder"


def some_messages(number: int, of: int, what: str) -> str:
    return f"{number:,} of {messages(of)} {what} ({percent(number / of)})"


def last_failed_ms(report: model.SendResult | model.OtherProducer) -> float | None:
    return max((each.last_failed_ms for each in report.failures if each.last_failed_ms is not None), default=None)


def _failing(report: model.SendReport) -> str:
    excluded = report.producer.exclude
    failing = named(f"{each.broker_name} {_kind(each)} {_window(each)}" for each in report.scenario.failures)
    if not excluded:
        return failing or "no broker fails"
    return ", ".join(filter(None, (f"{named(excluded)} {are(len(excluded))} excluded", failing)))


def _kind(failure: Failure) -> str:
    reaction = failure.reaction
    return f"slow ({duration(reaction.cost_us / 1000)})" if reaction.kind == "slow" else reaction.name


def _window(failure: Failure) -> str:
    start = _moment(failure.start)
    return f"from {start} on" if failure.end is None else f"from {start} to {_moment(failure.end)}"


def _moment(moment: Moment) -> str:
    return f"message {moment.message}" if moment.message is not None else duration((moment.us or 0) / 1000)


def _lost(totals: model.SendTotals) -> Iterator[str]:
    if not totals.messages:
        yield "no message is sent"
    elif totals.lost == totals.messages:
        yield f"all {messages(totals.messages)} lost" if totals.messages > 1 else "the message is lost"
    else:
        none = f"no message of {totals.messages:,} lost"
        yield some_messages(totals.lost, totals.messages, "lost") if totals.lost else none
    if totals.duplicated:
        yield f"{totals.duplicated:,} stored more than once"
    if totals.not_store_ok:
        yield f"{totals.not_store_ok:,} stored, not SEND_OK"


def _retries(report: model.SendReport) -> Iterator[str]:
    totals, last = report.totals, last_failed_ms(report)
    until = "" if last is None else f", the last at {about(last)}"
    if totals.retried:
        yield f"{totals.retried:,} retried ({percent(totals.retried / totals.messages)}){until}"
    elif totals.failed_attempts:
        yield f"{totals.failed_attempts:,} of {totals.attempts:,} attempts fail{until}"
    elif report.failures:
        yield "no attempt fails"


def _taken(taken: model.FailureTaken, sdk: str) -> str:
    if taken.began_ms is None:
        return f"{taken.broker_name}: the simulation ends before it fails"
    text = f"{taken.broker_name}: {counted(taken.failed, 'attempt')} failed"
    if taken.isolated_by == "route":
        text += f"; not in the producer's list from {about(taken.isolated_ms or 0)} on (route poll)"
    elif taken.isolated_ms is not None:
        how = "latency fault" if sdk == JAVA else "until a heartbeat"
        text += f"; isolated from {about(taken.isolated_ms)} on ({how})"
    elif taken.failed:
        text += "; it stays in the producer's list"
    if taken.used_again_after_ms is not None:
        text += f"; used again {about(taken.used_again_after_ms)} after it is back"
    elif taken.ended_ms is not None and (taken.failed or taken.isolated_ms is not None):
        text += "; not used again by the end"
    return text


def _over_trials(trials: model.SendTrials) -> str:
    lost, longest = trials.lost_share, trials.longest_send_ms
    share = f"{percent(lost.mean)} of messages lost ({percent(lost.low)} to {percent(lost.high)})"
    sends = "" if longest is None else f"; longest send p95 {about(longest.p95_ms)}, max {about(longest.max_ms)}"
    return f"over {trials.trials} trials: {share}{sends}; this is the first of them"


def send_settings(report: model.SendReport) -> tuple[str, ...]:
    return (_producer(report), _client(report), *map(_failure, report.scenario.failures[:MOST_FAILURES]))


def _producer(report: model.SendReport) -> str:
    producer = report.producer
    brokers = counted(len({queue.broker_name for queue in report.publish_queues}), "broker")
    per_second = producer.rate_per_second
    rate = "back to back" if per_second is None else f"{number(per_second)} messages per second"
    how = producer.mode.upper() if producer.selector is None else f"selector {producer.selector}"
    once = producer.retries == 0 or producer.mode == "oneway" or producer.selector is not None
    attempts = "one attempt" if once else f"up to {1 + producer.retries} attempts"
    within = "of" if producer.sdk != JAVA and not once else "within"
    return (
        f"{counted(len(report.publish_queues), 'queue')} on {brokers}; "
        f"{how}, {counted(producer.threads, 'thread')}, {rate}; {attempts} {within} {duration(producer.timeout_ms)}; "
        f"route polls every {duration(producer.poll_ms)} from {duration(producer.first_poll_ms)} on; "
        f"seed {producer.seed}"
    )


def _client(report: model.SendReport) -> str:
    producer, scenario = report.producer, report.scenario
    if producer.sdk != JAVA:
        grpc = producer.sdk.partition("@")[0].endswith("-grpc")
        through = f", Proxy in {producer.proxy_mode} mode" if grpc else ""
        return f"SDK {producer.sdk} (rules of {producer.profile}){through}"
    client = f"client {producer.client_version} (rules of {producer.profile})"
    if producer.selector is not None:
        return f"{client}; selectors do not use latency fault"
    own = " (thresholds given)" if scenario.latency_max or scenario.not_available_duration else ""
    client += f"; latency fault {'on' if producer.latency_fault else 'off'}"
    if _is_calm(report) and not own:
        return client
    table = zip(producer.latency_max_ms, producer.not_available_duration_ms, strict=True)
    steps = ", ".join(f"{duration(latency)} → {duration(isolated)}" for latency, isolated in table if isolated)
    return f"{client}, its table{own}: {steps}, a failure → {duration(producer.failure_isolates_ms)}"


def _failure(failure: Failure) -> str:
    text = f"{failure.broker_name}: {_kind(failure)} {_window(failure)}"
    if failure.reaction.kind == "read-only":
        return f"{text}; the NameServer reports it at once"
    if failure.reaction.kind not in ("refused", "timeout"):
        return text
    if failure.notices_us is None:
        return f"{text}; the NameServer never drops it"
    when = f"after {duration(failure.notices_us / 1000)}" if failure.notices_us else "at once"
    return f"{text}; the NameServer drops it {when}"


def _messages(report: model.SendReport, *, trace: bool) -> Iterator[Section]:
    hidden = ("thread",) * (report.producer.threads == 1)
    keys = "message attempt thread atMs=at brokerName=broker queueId=queue outcome tookMs=took"
    columns = columns_of(model.Attempt, keys, hidden=hidden)
    yield section_of("attempts", "attempts", columns, report.attempts or (), heads=2, named_only=not trace)
    keys = "message thread atMs=at reason=lost_by exceptionClass=exception@exception.exception_class "
    columns = columns_of(
        model.LostMessage,
        keys + "responseCode=code brokersSent:text text",
        hidden=hidden,
        responseCode=lambda lost: lost.exception and _code(lost.exception),
        brokersSent=_brokers_sent,
        text=lambda lost: lost.exception and _first_line(lost.exception),
    )
    lost = report.lost_messages or ()
    yield section_of("lost", "lost messages", columns, lost, heads=1, named_only=not trace or not lost)


def _code(exception: model.MessageException | model.ExceptionKind) -> str | None:
    return None if exception.response_code is None else str(exception.response_code)


def _first_line(exception: model.MessageException | model.ExceptionKind) -> str | None:
    return None if exception.text is None else exception.text.partition("\n")[0]


def _brokers_sent(lost: model.LostMessage | model.ExceptionKind) -> str:
    return "(others)" if lost.brokers_sent is None else " ".join(lost.brokers_sent)


def _tables(report: model.SendReport) -> Iterator[Section]:
    stored = grouped((queue.broker_name, queue.stored) for queue in report.queues)
    uneven = any(max(each) > min(each) + 2 and max(each) > _UNEVEN * min(each) for each in stored.values())
    hidden = [] if any(queue.picks != queue.attempts for queue in report.queues) else ["picks"]
    columns = columns_of(model.QueueTally, f"brokerName=broker queueId=queue {_COUNTS}", hidden=hidden)
    yield section_of("queues", "queues", columns, report.queues, heads=2, audience="all" if uneven else "scripts")
    if (keyed := report.keys) is not None:
        keys = "key messages share:share brokerName=broker queueId=queue"
        columns = columns_of(model.HotKey, keys, share=lambda hot: hot.messages / keyed.messages)
        yield section_of("keys", f"hottest of {keyed.distinct} keys", columns, keyed.hottest, heads=1)
    hidden += [] if report.producer.latency_fault else ["isolations"]
    keys = f"brokerName=broker queues {_COUNTS} isolations isolatedMs=left_out_for?"
    columns = columns_of(model.BrokerTally, keys, hidden=hidden)
    yield section_of("brokers", "brokers", columns, report.brokers, heads=1)
    yield _timeline(report)
    columns = (
        *columns_of(model.Slice, "fromMs=from toMs=to"),
        *columns_of(model.BrokerSlice, "brokerName=broker attempts failed isolatedMs=isolated_for"),
        Column("lost in all", "lost", "number"),
    )
    slices = [(each, broker) for each in report.timeline for broker in each.brokers]
    rows = tuple((each.from_ms, each.to_ms, *rows_of(columns[2:6], [b])[0], each.lost) for each, b in slices)
    yield Section("slices", "slices of the timeline", columns, rows, heads=3, named_only=True)
    if report.failures:
        yield _failures(report)
    if report.exceptions:
        keys = "messages exceptionClass=exception responseCode=code:text cause/1 brokersSent:text/3 "
        keys += "text=text_of_the_first:prose/2"
        texts: dict[str, Any] = {"responseCode": _code, "brokersSent": _brokers_sent, "text": _first_line}
        columns = columns_of(model.ExceptionKind, keys, **texts)
        yield section_of("exceptions", "exceptions of lost messages", columns, report.exceptions, heads=1)
    if report.trials:
        yield from _trials(report.trials)
    yield _totals(report.totals)


def _failures(report: model.SendReport) -> Section:
    kinds = dict(zip(map(id, report.failures), map(_kind, report.scenario.failures), strict=True))

    def first_after(taken: model.FailureTaken) -> float | None:
        unknown = taken.first_failed_ms is None or taken.began_ms is None
        return None if unknown else (taken.first_failed_ms or 0) - (taken.began_ms or 0)

    columns = columns_of(
        model.FailureTaken,
        "brokerName=broker failure beganMs=from endedMs=to failed firstFailedAfterMs=first_after:ms "
        "lastFailedMs=last_at isolatedAfterMs=isolated_after isolatedBy=by usedAgainAfterMs=used_again_after",
        failure=lambda taken: kinds[id(taken)],
        firstFailedAfterMs=first_after,
        isolatedBy=lambda taken: taken.isolated_by or (None if taken.began_ms is None else "never"),
    )
    audience: Audience = "all" if len(report.failures) > 1 else "scripts"
    return section_of("failures", "failures", columns, report.failures, heads=2, audience=audience)


def _timeline(report: model.SendReport, length: int = _STRIP) -> Section:
    """One character per slice, or for several neighbours together; unasked only if something happens in it."""
    step = -(-len(report.timeline) // min(max(length, 1), _STRIP)) or 1
    slices = [report.timeline[place : place + step] for place in range(0, len(report.timeline), step)]
    columns = (Column("broker", "brokerName"), Column(_MEANING, "strip", "strip"))
    rows: list[tuple[str, str]] = [
        (broker.broker_name, _strip([_character(each, place) for each in slices]))
        for place, broker in enumerate(report.brokers)
    ]
    failed = [sum(broker.failed for one in each for broker in one.brokers) for each in slices]
    for what, counts in (("failed", failed), ("lost", [sum(one.lost for one in each) for each in slices])):
        if most := max(counts, default=0):
            digits = (str(-(-9 * count // most)) if count else _NOTHING for count in counts)
            rows.append((f"{what}, 9 = {most}", "".join(digits)))
    title = "timeline"
    if slices:
        begin, width = slices[0][0].from_ms, slices[0][-1].to_ms - slices[0][0].from_ms
        title += f" from {duration(begin)} to {duration(slices[-1][-1].to_ms)}, {duration(width)} per column"
    draw = partial(_timeline, report)
    return Section("timeline", title, columns, tuple(rows), draw=draw, named_only=_is_calm(report))


def _is_calm(report: model.SendReport) -> bool:
    return not (report.failures or report.totals.failed_attempts or report.totals.lost)


def _strip(characters: Sequence[str]) -> PaintedText:
    return PaintedText("".join(characters), [_STYLES.get(each, "") for each in characters])


def _character(slices: Sequence[model.Slice], place: int) -> str:
    brokers = [each.brokers[place] for each in slices]
    attempts, failed = sum(broker.attempts for broker in brokers), sum(broker.failed for broker in brokers)
    if attempts or failed:
        return "=" if not failed else "X" if failed >= attempts else "x"
    isolated = sum(broker.isolated_ms for broker in brokers)
    return "-" if isolated * 2 > slices[-1].to_ms - slices[0].from_ms else _NOTHING


def _totals(totals: model.SendTotals) -> Section:
    times = {
        "time in failed attempts": totals.failing_ms,
        "longest send": totals.longest_send_ms,
        "last message done after": totals.lasted_ms,
    }
    rows: dict[str, Cell] = {
        **{_TITLES.get(name, name.replace("_", " ")): getattr(totals, name) for name in _TOTALS.split()},
        **{f"lost: {reason}": number for reason, number in totals.lost_by.items()},
        **{title: None if ms is None else duration(ms) for title, ms in times.items()},
    }
    columns = columns_from("figure= value:number")
    return Section("totals", "totals", columns, tuple(rows.items()), heads=1, audience="scripts")


def _comparisons(report: model.SendReport, clients: Sequence[tuple[ClientVersions, int]]) -> Iterator[Section]:
    columns = _compared(report)
    if report.sdks:
        keys = columns_from("sdk=SDK profile=rules_of/3")
        yield section_of("sdks", "producers of each SDK", (*keys, *columns), report.sdks)
    if report.comparison:
        key = columns_from("latencyFault", latencyFault=lambda producer: "on" if producer.latency_fault else "off")
        yield section_of("comparison", "latency fault off and on", (*key, *columns), report.comparison)
    if clients:  # neighbouring versions with equal results are one row, whose name spans them
        rows = []
        lines = zip(clients, report.clients, rows_of(columns, report.clients), strict=True)
        for (isolates_ms, row), group in groupby(lines, key=lambda line: (line[0][1], line[2])):
            alike = list(group)
            newest, oldest = alike[0][0][0], alike[-1][0][0]
            chosen = any(producer.profile == report.profile for _, producer, _ in alike)
            rows.append((str(oldest.up_to(newest)), isolates_ms, *row, "<- this one" if chosen else ""))
        hidden = () if report.producer.latency_fault else ("failureIsolatesMs",)
        around = columns_from("client failureIsolatesMs=a_failure_isolates:ms chosen=", hidden=hidden)
        shown = (*around[:2], *columns, around[2])
        yield Section("clients", "client versions, newest first", shown, tuple(rows), heads=1)


def _compared(report: model.SendReport) -> tuple[Column, ...]:
    """The columns that compare producers; times of failures are those of the first failure."""

    def first(name: str) -> Callable[[model.OtherProducer], Any]:
        return lambda producer: getattr(producer.failures[0], name) if producer.failures else None

    def left_by(producer: model.OtherProducer) -> Cell:
        return "never" if producer.failures and _never_left(producer.failures[0]) else first("isolated_by")(producer)

    def share(broker_name: str, producer: model.OtherProducer) -> float | None:
        return next((each.share for each in producer.brokers if each.broker_name == broker_name), None)

    failing, names = bool(report.failures), [broker.broker_name for broker in report.brokers]
    hidden = () if failing else ("lastFailedMs", "isolatedAfterMs", "isolatedBy", "usedAgainAfterMs")
    return (
        *columns_of(model.SendTotals, "stored/hidden lost failedAttempts=failed retries/4", path="totals"),
        *columns_from(
            "longestSendMs=longest_send:ms/2@totals.longest_send_ms lastFailedMs=last_failed_at:ms "
            "isolatedAfterMs=leaves_after:ms isolatedBy=by usedAgainAfterMs=used_again_after:ms/1",
            hidden=hidden,
            lastFailedMs=last_failed_ms,
            isolatedAfterMs=first("isolated_after_ms"),
            isolatedBy=left_by,
            usedAgainAfterMs=first("used_again_after_ms"),
        ),
        *(
            Column(name, f"share[{name}]", "share", fold=5, shown=len(names) <= 4, of=partial(share, name))
            for name in names
        ),
    )


def _never_left(taken: model.FailureTaken) -> bool:
    return bool(taken.failed) and taken.isolated_ms is None


def _sdk_facts(sdks: Sequence[model.OtherProducer]) -> Iterator[str]:
    """For each failing broker, the SDKs that never leave it, then those that lose messages before they leave."""
    by_loss = sorted(sdks, key=lambda each: each.totals.lost)
    for place, failure in enumerate(sdks[0].failures):
        never = [each for each in by_loss if _never_left(each.failures[place])]
        late = [each for each in by_loss if each not in never and each.totals.lost and each.failures[place].failed]
        if never:
            yield f"SDKs that never leave {failure.broker_name}: {', '.join(map(_with_loss, never))}"
        if late:
            yield f"SDKs that lose messages before they leave {failure.broker_name}: {', '.join(map(_with_loss, late))}"
        if not never and any(each.failures[place].failed for each in sdks):
            yield f"producers of every SDK leave {failure.broker_name}"


def _with_loss(producer: model.OtherProducer) -> str:
    name = "java without latency fault" if producer.sdk == JAVA and not producer.latency_fault else producer.sdk
    return name + (f" ({producer.totals.lost:,} lost)" if producer.totals.lost else "")


def _trials(trials: model.SendTrials) -> Iterator[Section]:
    figures: list[tuple[str, model.Estimate | None, Callable[[float], str]]] = [
        *((f"share of {name}", share, percent) for name, share in trials.shares.items()),
        ("attempts per message", trials.attempts, number),
        ("lost messages", trials.lost_messages, number),
        ("chance that a message is lost", trials.lost_share, percent),
        ("chance that a trial loses any", trials.losing_trials, percent),
        ("retries", trials.retries, number),
        ("time in failed attempts", trials.failing_ms, duration),
        ("messages with a retry", trials.retried, number),
        *([("stored, not SEND_OK", trials.not_store_ok, number)] if trials.not_store_ok.high else ()),
        *([("stored more than once", trials.duplicated, number)] if trials.duplicated.high else ()),
        ("longest send", trials.longest_send_ms, duration),
        *((f"isolations of {name}", times, number) for name, times in trials.isolations.items() if times.high),
    ]
    rows = tuple(
        (figure, *((None,) * 3 if each is None else map(text, (each.mean, each.low, each.high))))
        for figure, each, text in figures
    )
    ended = ", stopped early" if trials.stopped_early else ""
    title = f"{trials.trials} trials of {number(trials.messages.mean)} messages{ended}, 95% intervals"
    yield Section("trials", title, columns_from("figure=:text mean low high", "number"), rows, heads=1)
    times = columns_of(model.TimeSpread, "meanMs=mean p50Ms=p50 p95Ms=p95 maxMs=max")
    spreads = [
        ("longest send", trials.trials, trials.longest_send_ms),
        *((f"{each.broker_name} isolated after", each.isolated, each.until_isolated) for each in trials.failures),
    ]
    none = (None,) * len(times)
    rows = tuple((what, count, *(rows_of(times, [each])[0] if each else none)) for what, count, each in spreads)
    columns = (*columns_from("figure= trials:number"), *times)
    yield Section("spreads", "spread over trials", columns, rows, heads=1)
