"""The output of show-owners: the verdict on each queue's owners, then tables for screens and for scripts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from rmqlb.model.finding import ERROR, INFO, WARNING, Severity
from rmqlb.model.message_queue import MessageQueue, queue_ranges
from rmqlb.model.owners import OwnersOfGroups, OwnersReport, PopTopic, QueueOwners, StrategyOwners
from rmqlb.model.sdk_use import sdks_text
from rmqlb.model.unknown import sum_if_known
from rmqlb.model.words import all_or_some, are, at_least, counted, have, named, of_all
from rmqlb.views.of_groups import of_groups
from rmqlb.views.queue_lists import fitting, lag_column, place_of, pop_facts, pop_title, severity_of
from rmqlb.views.report import (
    BETWEEN,
    QUEUE_COLUMNS,
    Cell,
    Column,
    Kind,
    Report,
    Rows,
    Section,
    labels,
    numbers,
    rows_of,
)

_ROOM = 24
_ROOM_OF_MISMATCHES = 8
_UNKNOWN = ("(not observed)",)
_KEYS = ("topic", "brokerName", "queueId")


def owners_report(report: OwnersReport, *, explained: bool = False) -> Report:
    """The report of one group: a line per consumer, or per strategy where several are compared and none is observed."""
    if report.pop_topics and not report.strategies:
        return _pop_report(report)
    shown = _owned_report(report, explained=explained)
    return (
        shown.with_part(_pop_section(report), pop_facts(report.pop_topics), _pop_rows(report))
        if report.pop_topics
        else shown
    )


def groups_report(result: OwnersOfGroups, *, explained: bool = False) -> Report:
    """The report of several groups."""
    reports = result.groups
    owning = [report for report in reports if report.strategies]
    by_pop = sum(bool(report.pop_topics) for report in reports)
    bad = [report.bad_owners for report in reports]
    queues = sum(len(report.queues) for report in reports)
    texts = [*_bad(sum(one for one, _ in bad), sum(two for _, two in bad), queues), *_compared(reports)]
    texts += [_mismatches_of(owning)] if owning else []
    texts += [f"{of_all(by_pop, len(reports), 'group')} consume{'s' * (by_pop == 1)} by POP"] if by_pop else []
    parts = [(each.group or "", owners_report(each, explained=explained)) for each in reports]
    return of_groups(parts, [f"{counted(len(reports), 'group')}: {'; '.join(texts)}"], result, _groups(reports))


def _owned_report(report: OwnersReport, *, explained: bool) -> Report:
    observed = bool(report.observed_queues)
    compared = not observed and len(report.strategies) > 1
    mismatches = [_mismatches(report)] if basis(report).mismatches and report.mixed_mismatches is None else []
    tables = (_queues(report), *([_reasons(report)] if explained else []), _consumers(report), _summary(report))
    on_screen = ("summary", "reasons") if compared else ("reasons",)
    scripts = [each if each.name in on_screen else replace(each, audience="scripts") for each in tables]
    bad = report.group is not None and observed and grave(report) in (ERROR, WARNING)
    why = f"rmqlb diagnose -g {report.group} says why; " if bad else ""
    return Report(
        schema="rmqlb/owners",
        data=report,
        facts=facts(report),
        sections=(*([] if compared else [_owned_section(report), *mismatches]), *scripts),
        labels=labels(dict.fromkeys(report.sorted_consumers)),
        rows=Rows(_KEYS, [({}, queue) for queue in report.queues]),
        tables=tables,
        grave=grave(report),
        more=f"{why}--all lists every queue under each strategy, --explain how a strategy decides, "
        "-o json has everything",
    )


# -- sentences


def basis(report: OwnersReport) -> StrategyOwners:
    """The strategy to compare with: the only one that consumers report, or the one with the fewest mismatches."""
    reported = [each for each in report.strategies if each.strategy in report.strategies_reported]
    if len(reported) == 1 == len(report.strategies_reported):
        return reported[0]
    return min(report.strategies, key=lambda each: each.mismatches or 0)


def _prediction(report: OwnersReport) -> tuple[str, int | None]:
    """The prediction to compare the observed owners with, and the number of mismatches."""
    if report.mixed_mismatches is not None:
        return f"{' and '.join(report.strategies_reported)} together", report.mixed_mismatches
    compared = basis(report)
    return compared.strategy, compared.mismatches


def grave(report: OwnersReport) -> str:
    """Red where a queue does not have exactly one owner, yellow where owners differ from the prediction."""
    if not report.strategies:
        topics = report.pop_topics
        return WARNING if any(t.queues is None or any(q.consumers == () for q in t.queues) for t in topics) else ""
    if any(report.bad_owners) or basis(report).queues_of_duplicate_client_ids:
        return ERROR
    if not report.observed_queues:
        return ERROR if any(s.unassigned or s.duplicate_owners for s in report.strategies) else ""
    return WARNING if _prediction(report)[1] else "inOrder"


def facts(report: OwnersReport) -> tuple[str, ...]:
    """The verdict, then the topics, the strategies and the answers of brokers."""
    strategies = [*_strategies(report), *filter(None, [sdks_text(report.sdks)])]
    lines = [list(_topics(report)), strategies, list(_answers(report))]
    return (_headline(report, _verdict(report)), *(f"  {BETWEEN.join(parts)}" for parts in lines if parts))


def _headline(report: OwnersReport, texts: Iterator[str] | list[str]) -> str:
    processes, consumers = len(report.sorted_consumers), len(set(report.sorted_consumers))
    shared = f" ({processes} processes)" if processes > consumers else ""
    return f"{report.group or 'a group'}, {counted(consumers, 'consumer')}{shared}: {'; '.join(texts)}"


def _verdict(report: OwnersReport) -> Iterator[str]:
    observed, queues = len(report.observed_queues), len(report.queues)
    if not observed:
        yield from _predicted(report)
        return
    bad, compared = report.bad_owners, basis(report)
    if report.broadcasting:
        yield f"BROADCASTING, each consumer reads every queue{'' if compared.mismatches else ', as observed'}"
    yield from _bad(*bad, queues, at_least(observed < queues))
    if number := compared.queues_of_duplicate_client_ids:
        yield f"{of_all(number, queues)} {are(number)} read by several processes of one client ID"
    one = f"each of {counted(queues, 'queue')} has one observed owner" if not report.broadcasting else ""
    if observed < queues:
        one = f"owners of {of_all(observed, queues)} are observed, each has one"
    name, mismatches = _prediction(report)
    if mismatches:
        text = f"observed owners of {of_all(mismatches, queues)} differ from the prediction of {name}"
        yield from ([text] if any(bad) or not one else [one, text])
    elif one:
        predict = "predicts" if report.mixed_mismatches is None else "predict"
        yield f"{'all observed owners' if any(bad) else f'{one},'} as {name} {predict}"


def _bad(unassigned: int, several: int, queues: int, least: str = "") -> Iterator[str]:
    if unassigned:
        yield f"{least}{of_all(unassigned, queues)} {are(unassigned)} unassigned"
    if several:
        yield f"{least}{of_all(several, queues)} {have(several)} duplicate owners"


def _predicted(report: OwnersReport) -> Iterator[str]:
    """The verdict where no owner is observed: the strategies that leave a queue without one owner, otherwise all."""
    bad, queues = False, len(report.queues)
    for what, field in (
        ("unassigned", "unassigned"),
        ("with duplicate owners", "duplicate_owners"),
        ("read by several processes of one client ID", "queues_of_duplicate_client_ids"),
    ):
        under = [f"{of_all(n, queues)} under {s.strategy}" for s in report.strategies if (n := getattr(s, field))]
        if under:
            bad = True
            yield f"predicted {what}: {', '.join(under)}"
    if not bad:
        names = ", ".join(s.strategy for s in report.strategies)
        yield f"each of {counted(queues, 'queue')} gets one owner under {names} (no owner is observed)"


def _topics(report: OwnersReport) -> Iterator[str]:
    yield f"{counted(len(report.topics), 'topic')} {named(report.topics)}"
    known = [queue.lag for queue in report.queues if queue.lag is not None]
    if known:
        yield f"lag {sum(known):,}{'' if len(known) == len(report.queues) else ' or more'}"
    compared = basis(report)
    if len(report.strategies) == 1 or report.observed_queues:
        if compared.idle:
            yield f"{counted(compared.idle, 'idle consumer')} under {compared.strategy}"
        if compared.imbalance is not None:
            yield f"imbalance {compared.imbalance:.2f}"


def _strategies(report: OwnersReport) -> Iterator[str]:
    reported = report.strategies_reported
    by = all_or_some(sum(reported.values()), len(set(report.sorted_consumers)), "consumer")
    if len(reported) == 1:
        yield f"strategy {next(iter(reported))}, reported by {by}"
    elif reported:
        yield f"strategies {', '.join(f'{name} ({n})' for name, n in reported.items())}, reported by {by}"
    mixed, compared = report.mixed_mismatches is not None, basis(report)
    others = [s for s in report.strategies if s.mismatches is not None and (mixed or s is not compared)]
    fitting_ = [s.strategy for s in others if not s.mismatches]
    if fitting_:
        yield f"{', '.join(fitting_)} predict{'s' * (len(fitting_) == 1)} the same owners"
    yield from (f"{s.strategy} differs in {counted(s.mismatches, 'queue')}" for s in others if s.mismatches)


def _answers(report: OwnersReport) -> Iterator[str]:
    asked = report.broker_assignments
    if asked:
        number, differ = sum(each.consumers for each in asked), sum(len(each.mismatches) for each in asked)
        names = named(dict.fromkeys(each.broker_name for each in asked))
        as_predicted = f"{counted(number, 'answer')} as predicted"
        text = f"{of_all(differ, number, 'answer')} differ from the prediction" if differ else as_predicted
        yield f"asked what {names} assign{'s' * (len(asked) == 1)}: {text}"


def _mismatches_of(reports: Sequence[OwnersReport]) -> str:
    queues = sum(len(report.queues) for report in reports)
    observed = [report for report in reports if report.observed_queues]
    mismatches = sum(_prediction(report)[1] or 0 for report in observed)
    if mismatches:
        return f"observed owners of {of_all(mismatches, queues)} differ from the prediction"
    if not observed:
        return f"{counted(queues, 'queue')}, no owner is observed"
    number = sum(len(report.observed_queues) for report in observed)
    return f"observed owners of {f'all {queues}' if number == queues else f'{number} of {queues}'} queues as predicted"


def _compared(reports: Sequence[OwnersReport]) -> Iterator[str]:
    imbalance: dict[str, float] = {}
    idle: Counter[str] = Counter()
    for each in (each for report in reports for each in report.strategies):
        imbalance[each.strategy] = max(imbalance.get(each.strategy, 0), each.imbalance or 0)
        idle[each.strategy] += each.idle
    if len(imbalance) > 1:
        yield "largest imbalance " + ", ".join(f"{value:.2f} under {name}" for name, value in imbalance.items())
        yield from (f"{counted(number, 'idle consumer')} under {name}" for name, number in idle.items() if number)


# -- tables for screens


class _Owned(Struct, frozen=True):
    """Queues with the same owners."""

    owners: tuple[str, ...]
    queues: tuple[QueueOwners, ...]
    severity: Severity | None

    @property
    def number(self) -> int:
        return len(self.queues)

    @property
    def lag(self) -> int | None:
        return sum_if_known(queue.lag for queue in self.queues)

    @property
    def which(self) -> str:
        return _listed(self.queues) if self.queues else "idle"

    @property
    def badness(self) -> float:
        return 1e18 if self.severity == ERROR else (self.lag or 0) + self.number / 1e6


def _owned_section(report: OwnersReport) -> Section:
    """The queues of each consumer: as observed, or where nothing is, as the first strategy predicts."""
    observed = bool(report.observed_queues)
    rows = list(_owned(report, observed=observed))
    columns = (
        Column("", "severity", "sign", shown=any(each.severity for each in rows)),
        Column("observed owner" if observed else "predicted owner", "owners", _kind(report)),
        Column("queues", "number", "number", fold=1),
        lag_column("lag", "lag", rows, fold=2),
        Column("which", "which", "prose"),
    )
    title = "observed owners" if observed else f"owners that {basis(report).strategy} predicts"
    owners = [each.owners for each in rows]
    brief = fitting([each.which for each in rows], [each.badness for each in rows], _ROOM, beside=[owners])
    return Section("owners", title, columns, rows_of(columns, rows), heads=2, audience="screen", brief=brief)


def _owned(report: OwnersReport, *, observed: bool) -> Iterator[_Owned]:
    """Unassigned queues and those with duplicate owners first, then consumer by consumer, idle ones last."""
    strategy = basis(report).strategy
    owned: dict[tuple[str, ...], list[QueueOwners]] = {}
    for queue in report.queues:
        owners = queue.owners_observed if observed else queue.owners[strategy]
        owned.setdefault(_UNKNOWN if owners is None else owners, []).append(queue)
    places = {client_id: at for at, client_id in enumerate(dict.fromkeys(report.sorted_consumers))}
    found = [
        _Owned(owners, tuple(queues), severity_of(owners, broadcasting=report.broadcasting))
        for owners, queues in owned.items()
    ]
    yield from sorted(found, key=lambda each: (each.severity != ERROR, place_of(each.owners, places)))
    if _UNKNOWN not in owned:
        owning = {owner for owners in owned for owner in owners}
        yield from (_Owned((client_id,), (), INFO) for client_id in places if client_id not in owning)


def _listed(queues: Sequence[QueueOwners]) -> str:
    return queue_ranges((MessageQueue(q.topic, q.broker_name, q.queue_id) for q in queues), len(queues))


def _mismatches(report: OwnersReport) -> Section:
    strategy = basis(report).strategy
    ways: dict[tuple[tuple[str, ...], tuple[str, ...]], list[QueueOwners]] = {}
    for queue in report.observed_queues:
        if queue.owners[strategy] != queue.owners_observed:
            ways.setdefault((queue.owners[strategy], queue.owners_observed or ()), []).append(queue)
    columns = (
        Column("", "severity", "sign"),
        Column("predicted owner", "predicted", "clients"),
        Column("observed owner", "observed", "owners"),
        Column("queues", "number", "number", fold=1),
        Column("which", "which", "prose"),
    )
    rows = tuple((WARNING, *way, len(queues), _listed(queues)) for way, queues in ways.items())
    numbers = [len(queues) for queues in ways.values()]
    ids = [predicted for predicted, _ in ways], [observed for _, observed in ways]
    brief = fitting([_listed(queues) for queues in ways.values()], numbers, _ROOM_OF_MISMATCHES, beside=ids)
    title = f"{counted(sum(numbers), 'queue')} whose observed owner {strategy} does not predict"
    return Section("mismatches", title, columns, rows, heads=3, audience="screen", brief=brief)


# -- tables for scripts


def _kind(report: OwnersReport) -> Kind:
    return "clients" if report.broadcasting else "owners"


def _queues(report: OwnersReport) -> Section:
    kind = _kind(report)
    columns = (
        *QUEUE_COLUMNS,
        Column("observed owner", "ownersObserved", kind, shown=bool(report.observed_queues)),
        Column("lag", "lag", "number", shown=any(queue.lag for queue in report.queues)),
        *(Column(s.strategy, s.strategy, kind) for s in report.strategies),
    )
    rows: list[tuple[Cell, ...]] = [
        (*_name(queue), queue.owners_observed, queue.lag, *queue.owners.values()) for queue in report.queues
    ]
    return Section("queues", "owners", columns, tuple(rows), heads=3)


def _name(queue: QueueOwners) -> tuple[Cell, ...]:
    return (queue.topic, queue.broker_name, queue.queue_id)


def _reasons(report: OwnersReport) -> Section:
    columns = (*QUEUE_COLUMNS, Column("strategy", "strategy", quiet=True), Column("why", "reason"))
    rows = tuple(
        (*_name(queue), s.strategy, why)
        for s in report.strategies
        for queue in report.queues
        if (why := queue.reasons[s.strategy]) is not None
    )
    return Section("reasons", "why", columns, rows, heads=4)


def _consumers(report: OwnersReport) -> Section:
    columns = (
        Column("#", "index", "label"),
        Column("consumer", "clientId"),
        *(Column(s.strategy, s.strategy, "number") for s in report.strategies),
        Column("idle because", "idleReason", shown=any(s.idle for s in report.strategies)),
    )
    each = zip(*(s.consumers for s in report.strategies), strict=True)
    rows: list[tuple[Cell, ...]] = []
    for index, (client_id, under) in enumerate(zip(dict.fromkeys(report.sorted_consumers), each, strict=True)):
        shares = zip(report.strategies, under, strict=True)
        idle = [f"{s.strategy}: {one.idle_reason}" for s, one in shares if one.idle_reason is not None]
        rows.append((index, client_id, *(one.queues for one in under), "; ".join(idle)))
    return Section("consumers", "queues per consumer", columns, tuple(rows), heads=2)


def _summary(report: OwnersReport) -> Section:
    strategies = report.strategies

    def figure(title: str, key: str) -> Column:
        return _seen(Column(title, key, "number"), strategies)

    columns = (
        Column("strategy", "strategy"),
        Column("min", "minQueuesPerConsumer", "number", of=lambda s: s.fewest),
        Column("max", "maxQueuesPerConsumer", "number", of=lambda s: s.most),
        Column("mean", "meanQueuesPerConsumer", "number", of=lambda s: s.mean),
        Column("imbalance", "imbalance", "number"),
        figure("idle", "idle"),
        figure("unassigned", "unassigned"),
        figure("duplicate owners", "duplicateOwners"),
        Column("mismatches", "mismatches", "number", shown=bool(report.observed_queues)),
    )
    return Section("summary", "summary", columns, rows_of(columns, strategies), heads=1)


def _seen(column: Column, items: Sequence[object]) -> Column:
    """The column, which people see where some cell of it is known and not 0."""
    return replace(column, shown=any(cell for (cell,) in rows_of((column,), items)))


def _groups(reports: Sequence[OwnersReport]) -> Section:
    def under(report: OwnersReport) -> StrategyOwners | None:
        return basis(report) if report.strategies else None

    columns = (
        Column("", "severity", "sign", of=lambda report: grave(report) or None),
        Column("group", "group"),
        Column("consumers", "consumers", "number", of=lambda r: None if r.hidden else len(set(r.sorted_consumers))),
        Column("queues", "queues", "number", of=lambda report: len(report.queues) or len(report.offsets)),
        Column("observed", "queuesObserved", "number", fold=4, of=lambda report: len(report.observed_queues)),
        Column("unassigned", "unassigned", "number", of=lambda report: report.bad_owners[0]),
        Column("duplicate owners", "duplicateOwners", "number", of=lambda report: report.bad_owners[1]),
        Column("mismatches", "mismatches", "number", fold=1, of=lambda r: _prediction(r)[1] if r.strategies else None),
        Column("idle", "idle", "number", fold=3, of=lambda r: getattr(under(r), "idle", None)),
        Column("imbalance", "imbalance", "number", fold=2, of=lambda r: getattr(under(r), "imbalance", None)),
        Column("strategy", "strategy", fold=5, of=_strategy),
    )
    figures = ("queuesObserved", "unassigned", "duplicateOwners", "mismatches", "idle")
    shown = tuple(_seen(each, reports) if each.key in figures else each for each in columns)
    return Section("groups", "groups", shown, rows_of(shown, reports))


def _strategy(report: OwnersReport) -> str:
    if not report.strategies:
        names = dict.fromkeys(topic.strategy for topic in report.pop_topics)
        return ", ".join("behind a Proxy" if name is None else f"{name} by POP" for name in names)
    reported = report.strategies_reported
    return ", ".join(reported) if len(reported) > 1 else basis(report).strategy


# -- topics without owners: POP, and consumers behind a Proxy


def _pop_report(report: OwnersReport) -> Report:
    section = _pop_section(report)
    columns = (*QUEUE_COLUMNS, *numbers("brokerOffset consumerOffset lag"))
    offsets = Section("offsets", "offsets", columns, rows_of(columns, report.offsets), heads=3)
    shown = (offsets,) if report.hidden else (section, offsets)
    tables = (offsets, section) if report.hidden else (section, *((offsets,) if report.offsets else ()))
    return Report(
        schema="rmqlb/owners",
        data=report,
        facts=(_pop_headline(report), *pop_facts(report.pop_topics), *(f"  {text}" for text in _answers(report))),
        sections=tuple(each for each in shown if each.rows),
        labels=labels(dict.fromkeys(report.sorted_consumers)),
        rows=Rows(_KEYS, [*_pop_rows(report), *(({}, queue) for queue in report.offsets)]),
        tables=tables,
        grave=grave(report),
        more="-o json has everything",
    )


def _pop_headline(report: OwnersReport) -> str:
    if report.hidden:
        likely = "probably " if report.hidden == "likely" else ""
        text = f"its consumers are {likely}behind a Proxy, not visible here; {_lag(report)}"
        return f"{report.group or 'a group'}: {text}"
    how = "behind a Proxy" if report.by_proxy else "consumes by POP"
    lag = [_lag(report)] if report.by_proxy else []
    return _headline(report, [f"{how}, no consumer owns a queue", *_pop_verdict(report.pop_topics), *lag])


def _lag(report: OwnersReport) -> str:
    lags = [queue.lag for queue in report.offsets if queue.lag is not None]
    known = "unknown" if not lags else f"{sum(lags):,}" + ("" if len(lags) == len(report.offsets) else "+")
    return f"{counted(len(report.offsets), 'queue')}, lag {known}"


def _pop_verdict(topics: tuple[PopTopic, ...]) -> Iterator[str]:
    queues = [queue for topic in topics for queue in topic.queues or ()]
    if silent := [topic.topic for topic in topics if topic.queues is None]:
        yield f"brokers assign nothing of {named(silent)}"
    if not queues:
        yield from () if silent else ("no topic has a readable queue",)
        return
    nobody = sum(queue.consumers == () for queue in queues)
    if nobody:
        yield f"no consumer may read {nobody} of {counted(len(queues), 'queue')}"
    if all(queue.queue_id < 0 for queue in queues):
        yield "every consumer may read every queue"
    elif nobody < len(queues):
        numbers = [len(queue.consumers) for queue in queues if queue.consumers and queue.queue_id >= 0]
        few, many = min(numbers, default=0), max(numbers, default=0)
        yield f"a queue may be read by {'' if few == many else f'{few} to '}{counted(many, 'consumer')}"


def _pop_rows(report: OwnersReport) -> Iterator[tuple[Mapping[str, str], Struct]]:
    yield from (({"topic": topic.topic}, queue) for topic in report.pop_topics for queue in topic.queues or ())


def _pop_section(report: OwnersReport) -> Section:
    columns = (*QUEUE_COLUMNS, Column("consumers that may read it", "consumers", "clients"))
    rows = tuple(
        (topic.topic, queue.broker_name, queue.queue_id, queue.consumers)
        for topic in report.pop_topics
        for queue in topic.queues or ()
    )
    return Section("pop", pop_title(report.pop_topics), columns, rows, heads=3)
