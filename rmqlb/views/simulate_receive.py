from collections.abc import Iterator

from msgspec.structs import replace

from rmqlb.model import simulate_receive as model
from rmqlb.model.result import ERROR, WARNING, counted, messages
from rmqlb.model.simulate_receive import ReceiveReport
from rmqlb.views.columns import Cell, Column, columns_of, rows_of
from rmqlb.views.numbers import about, duration, number
from rmqlb.views.report import Report, Section, section_of

_MOST = 12
_CLIENTS = {"simple": "SimpleConsumer", "push": "PushConsumer", "pop": "POP client"}
_TOTALS = (
    "messages further received acknowledged redelivered dead_lettered left not_stored receives empty_receives "
    "failed_receives"
)
_TITLES = {"further": "further arrivals", "dead_lettered": "dead letters", "left": "left at the end"}
_BROKERS = "brokerName=broker queues receives share empty failed messages longestUnpolledMs=longest_without_a_receive"
_FAILURES = columns_of(
    model.FailureReceived,
    "brokerName=broker kind:text fromMs=from toMs=to failed=failed_receives lastFailedMs=the_last "
    "receivedAgainMs=received_from_again longestWaitMs=longest_wait_on_it left",
)
_CRASHES = columns_of(
    model.CrashReceived,
    "consumer atMs=dies_at unacknowledged=not_acknowledged again=received_again p50Ms=p50_after:ms@after.p50_ms "
    "maxMs=max_after:ms@after.max_ms againEarliestMs=ready_at_the_earliest againLatestMs=at_the_latest",
)
_QUEUES = "brokerName=broker queueId=queue messages meanMs=mean p95Ms=p95 maxMs=max"
_MESSAGES = (
    "message brokerName=broker queueId=queue storedMs=stored receivedMs=received waitMs=wait consumer deliveries"
)


def receive_report(report: ReceiveReport) -> Report:
    facts, sections = _facts(report), tuple(_sections(report))
    return Report("rmqlb/receive", report, facts, sections, grave=_gravity(report), closing=_settings(report))


def _sections(report: ReceiveReport) -> Iterator[Section]:
    yield _waits(report)
    columns = columns_of(model.BrokerReceives, _BROKERS, hidden=() if report.failures else ("failed",))
    yield section_of("brokers", "brokers", columns, report.brokers, heads=1)
    if report.failures:
        yield section_of("failures", "failing brokers", _FAILURES, report.failures, heads=1)
    if report.crashes:
        yield section_of("crashes", "crashed consumers", _CRASHES, report.crashes, heads=1)
    columns, title = columns_of(model.Quantile, "percent=messages,_% waitMs=wait_up_to"), "distribution of waits"
    yield section_of("quantiles", title, columns, report.quantiles, named_only=True)
    columns, title = columns_of(model.QueueWaits, _QUEUES), "message waits in each queue"
    yield section_of("queues", title, columns, report.queue_waits, heads=2, named_only=True)
    forms, totals = report.closed_forms, report.totals
    times: tuple[tuple[Cell, ...], ...] = (
        ("an empty receive", forms.receive_ms),
        ("all queues once", forms.cycle_ms),
        ("longest wait of rare messages", forms.wait_ms),
        ("longest without a receive, any rates", forms.unpolled_ms),
    )
    columns = (Column("closed form", "name"), Column("value", "value", "ms"))
    yield Section("closed-forms", "without simulation", columns, times, named_only=True)
    counts = tuple((_TITLES.get(name, name.replace("_", " ")), getattr(totals, name)) for name in _TOTALS.split())
    columns = (Column("count", "name"), Column("number", "value", "number"))
    yield Section("totals", "totals", columns, counts, named_only=True)
    if report.messages is not None:
        shown = {"consumer": report.scenario.consumers > 1, "deliveries": bool(totals.redelivered)}
        hidden = [key for key, is_shown in shown.items() if not is_shown]
        columns = columns_of(model.ReceivedMessage, _MESSAGES, hidden=hidden)
        yield section_of("messages", "messages", columns, report.messages, heads=1)


def _waits(report: ReceiveReport) -> Section:
    columns = tuple(
        replace(column, fold=int(column.title in ("p99", "mean")))
        for column in columns_of(model.WaitTimes, "messages p50Ms=p50 p95Ms=p95 p99Ms=p99 maxMs=max meanMs=mean")
    )
    times = {
        "until received": report.wait,
        "until redelivered": report.back,
        **{f"at {broker.broker_name}": broker.wait for broker in report.brokers},
        "over all trials": None if report.trials is None else report.trials.wait,
    }
    rows = tuple((what, *rows_of(columns, [each])[0]) for what, each in times.items() if each is not None)
    return Section("waits", "message waits", (Column("wait", "wait"), *columns), rows, heads=1)


def _facts(report: ReceiveReport) -> tuple[str, ...]:
    parts = [_wait(report.wait), *_left(report)]
    if report.target is not None:
        parts.append(_target(report.target))
    elif report.scenario.rate_per_second is None and report.closed_forms.wait_ms > report.scenario.round_trip_ms:
        # Without simulations, a number is certain only for rare messages.
        parts.append(f"{report.closed_forms.always_polled} receives at once keep every broker polled")
    return (
        f"{report.topic}, {_who(report)}: {'; '.join(parts)}",
        *(f"  {line}" for line in _more(report)),
        *(f"  {_failure(failure)}" for failure in report.failures[:_MOST]),
        *(f"  {_crash(crash)}" for crash in report.crashes[:_MOST]),
    )


def _gravity(report: ReceiveReport) -> str:
    totals, target = report.totals, report.target
    if totals.left or totals.dead_lettered:
        return ERROR
    missed = target is not None and (target.receives is None or target.receives > report.scenario.loops)
    return WARNING if missed or totals.failed_receives or totals.redelivered else "inOrder"


def _settings(report: ReceiveReport) -> tuple[str, ...]:
    s = report.scenario
    order = ", in order" if s.fifo else ""
    if s.priority_factor is not None:
        order = f", {s.priority_factor}% of receives by priority"
    consume = f", {duration(s.consume_ms)} per message" if s.consume_ms else ""
    if s.rate_per_second is None:
        rate = "messages so rare that each finds all receives waiting"
    else:
        rate = f"{number(s.rate_per_second)} messages per second"
    lasting = "" if s.duration_ms is None else f" for {duration(s.duration_ms)}"
    queues = counted(sum(broker.queues for broker in report.brokers), "queue")
    how = (
        f"await {duration(s.await_ms)}, invisible {duration(s.invisible_ms)}, up to {counted(s.batch, 'message')} "
        f"per receive, round trip {duration(s.round_trip_ms)}; {s.rules}"
    )
    return (
        f"{queues} on {counted(len(report.brokers), 'broker')}; {rate}{lasting}; seed {s.seed}",
        f"{counted(s.consumers, _CLIENTS[s.client])}{order}{consume}: {how}",
    )


def _who(report: ReceiveReport) -> str:
    s, brokers = report.scenario, counted(len(report.brokers), "broker")
    several = f"{s.consumers} × " if s.consumers > 1 else ""
    if s.client == "simple":
        return f"{several}{counted(s.loops, 'loop')} over {brokers}"
    return f"{counted(s.consumers, _CLIENTS[s.client])} at {brokers}"


def _wait(wait: model.WaitTimes | None) -> str:
    if wait is None:
        return "no message is received"
    return f"a message waits up to {about(wait.max_ms)} (p50 {about(wait.p50_ms)}, p95 {about(wait.p95_ms)})"


def _left(report: ReceiveReport) -> Iterator[str]:
    totals = report.totals
    if totals.left:
        yield f"{messages(totals.left)} of {totals.messages:,} left at the end"
    if totals.dead_lettered:
        yield f"{messages(totals.dead_lettered)} to the dead-letter queue"


def _target(target: model.TargetWait) -> str:
    within = duration(target.wait_ms)
    if target.receives is None:
        return f"no number of receives up to 1000 keeps every wait within {within}"
    plural = "receive at once keeps" if target.receives == 1 else "receives at once keep"
    return f"{target.receives} {plural} it within {within}"


def _more(report: ReceiveReport) -> Iterator[str]:
    target, trials, forms = report.target, report.trials, report.closed_forms
    if target is not None and target.simulated and target.rare is not None and target.rare != target.receives:
        yield (
            f"at these rates, by {target.trials} simulations per number; if messages are rare, {target.rare} are needed"
        )
    healthy = not report.failures and not report.crashes
    if healthy and report.scenario.client == "simple" and report.scenario.rate_per_second and forms.unpolled_ms:
        yield f"at any rate, the longest time without a receive at a broker is {about(forms.unpolled_ms)}"
    if trials is not None and trials.wait is not None:
        wait = trials.wait
        spread = f"{about(trials.lowest_p95_ms or 0)} to {about(trials.highest_p95_ms or 0)}"
        yield (
            f"over {trials.trials} trials: a message waits up to {about(wait.max_ms)} (p50 {about(wait.p50_ms)}, "
            f"p95 {about(wait.p95_ms)}, of single trials {spread})"
        )
    if report.totals.not_stored:
        yield f"{messages(report.totals.not_stored)} not stored while their broker fails: producers send them elsewhere"


def _failure(failure: model.FailureReceived) -> str:
    until = "on" if failure.to_ms is None else f"to {duration(failure.to_ms)}"
    text = f"{failure.broker_name} {failure.kind} from {duration(failure.from_ms)} {until}: "
    text += f"{counted(failure.failed, 'receive')} failed"
    if failure.last_failed_ms is not None:
        text += f", the last at {duration(round(failure.last_failed_ms))}"
    if failure.longest_wait_ms is not None:
        text += f"; messages on it wait up to {about(failure.longest_wait_ms)}"
    if failure.left:
        text += f"; {messages(failure.left)} on it left"
    if failure.to_ms is not None:
        again = failure.received_again_ms
        after = "not by the end" if again is None else f"{about(again - failure.to_ms)} after it is back"
        text += f"; received from again {after}"
    return text


def _crash(crash: model.CrashReceived) -> str:
    text = f"consumer {crash.consumer} dies at {duration(crash.at_ms)}: "
    if not crash.unacknowledged:
        return text + "it has acknowledged every message"
    text += f"{messages(crash.unacknowledged)} not acknowledged"
    if crash.after is None:
        return f"{text}; none received again by the end"
    after = f"up to {about(crash.after.max_ms)} after (p50 {about(crash.after.p50_ms)})"
    return f"{text}; {crash.again} received again {after}"
