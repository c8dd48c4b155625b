from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from rmqlb.model.client_versions import sdks_text
from rmqlb.model.owners import OwnersOfGroups, OwnersReport, OwnersSummary, QueueOwners, StrategyOwners
from rmqlb.model.result import ERROR, INFO, WARNING, all_or_some, are, at_least, counted, have, named, of_all
from rmqlb.views import queue_lists
from rmqlb.views.columns import QUEUE_COLUMNS, Cell, Column, Kind, columns_from
from rmqlb.views.of_groups import of_groups
from rmqlb.views.report import BETWEEN, Report, Rows, Section, labels, section_of

_ROOM = 24
_ROOM_OF_MISMATCHES = 8
_BAD = {
    "unassigned": "unassigned",
    "duplicate_owners": "with duplicate owners",
    "queues_of_duplicate_client_ids": "read by several processes of one client ID",
}
_UNKNOWN = ("(not observed)",)


def owners_report(result: OwnersReport | OwnersOfGroups) -> Report:
    if isinstance(result, OwnersReport):
        return _report(result)
    reports, s = result.groups, result.summary
    by_pop = sum(bool(report.pop_topics) for report in reports)
    texts = [*_bad(s.observed_unassigned, s.observed_duplicate_owners, s.queues), *_compared(reports)]
    if any(report.strategies for report in reports):
        texts.append(_mismatches_of(reports, s))
    if by_pop:
        texts.append(f"{of_all(by_pop, len(reports), 'group')} consume{'s' * (by_pop == 1)} by POP")
    parts = [(each.group or "", _report(each)) for each in reports]
    return of_groups(parts, [f"{counted(len(reports), 'group')}: {'; '.join(texts)}"], result, _groups(reports))


def _report(report: OwnersReport) -> Report:
    """A line per consumer, or per strategy if several are compared and no owner is observed."""
    rows: list[tuple[Mapping[str, str], Struct]] = [({}, queue) for queue in report.queues if report.strategies]
    sections: list[Section] = []
    tables: list[Section] = []
    columns: tuple[Column, ...]
    more = "-o json has everything"
    if report.strategies:
        compared = not report.observed_queues and len(report.strategies) > 1
        reasons = _reasons(report)
        tables += [_queues(report), *([reasons] if reasons.rows else []), _consumers(report), _summary(report)]
        on_screen = ("summary", "reasons") if compared else ("reasons",)
        sections += [] if compared else [_owners(report), *_mismatches(report)]
        sections += [each if each.name in on_screen else replace(each, audience="scripts") for each in tables]
        bad = report.group is not None and report.observed_queues and grave(report) in (ERROR, WARNING)
        why = f"rmqlb diagnose -g {report.group} shows why; " if bad else ""
        more = f"{why}--all lists every queue under each strategy, --explain shows how a strategy decides, {more}"
    if report.pop_topics:
        popped = [(topic.topic, queue) for topic in report.pop_topics for queue in topic.queues or ()]
        columns = (*QUEUE_COLUMNS, Column("consumers that may read it", "consumers", "clients"))
        cells = tuple((topic, queue.broker_name, queue.queue_id, queue.consumers) for topic, queue in popped)
        section = Section("pop", queue_lists.pop_title(report.pop_topics), columns, cells, heads=3)
        rows += [({"topic": topic}, queue) for topic, queue in popped]
        if not report.hidden and (sections or cells):
            sections.insert(1, section)
        tables.append(section)
    if not report.strategies and (report.offsets or report.hidden):
        columns = (*QUEUE_COLUMNS, *columns_from("brokerOffset consumerOffset lag", "number"))
        offsets = section_of("offsets", "offsets", columns, report.offsets, heads=3)
        sections += [offsets] if report.offsets else []
        tables.insert(0 if report.hidden else len(tables), offsets)
        rows += [({}, queue) for queue in report.offsets]
    shown, names = facts(report), labels(dict.fromkeys(report.sorted_consumers))
    keyed = Rows(("topic", "brokerName", "queueId"), rows)
    return Report("rmqlb/owners", report, shown, tuple(sections), names, keyed, tuple(tables), grave(report), more=more)


def basis(report: OwnersReport) -> StrategyOwners:
    """The strategy to compare with: the only reported one, or the one with the fewest mismatches."""
    reported = [each for each in report.strategies if each.strategy in report.strategies_reported]
    if len(reported) == 1 == len(report.strategies_reported):
        return reported[0]
    return min(report.strategies, key=lambda each: each.mismatches or 0)


def _prediction(report: OwnersReport) -> tuple[str, int | None]:
    if report.mixed_mismatches is not None:
        return f"{' and '.join(report.strategies_reported)} together", report.mixed_mismatches
    compared = basis(report)
    return compared.strategy, compared.mismatches


def grave(report: OwnersReport) -> str:
    if not report.strategies:
        topics = report.pop_topics
        return WARNING if any(t.queues is None or any(q.consumers == () for q in t.queues) for t in topics) else ""
    if any(report.bad_owners) or basis(report).queues_of_duplicate_client_ids:
        return ERROR
    if not report.observed_queues:
        return ERROR if any(s.unassigned or s.duplicate_owners for s in report.strategies) else ""
    return WARNING if _prediction(report)[1] else "inOrder"


def facts(report: OwnersReport) -> tuple[str, ...]:
    verdict = _verdict(report) if report.strategies else _pop_verdict(report)
    processes, consumers = len(report.sorted_consumers), len(set(report.sorted_consumers))
    shared = f" ({processes} processes)" if processes > consumers else ""
    who = "" if report.hidden else f", {counted(consumers, 'consumer')}{shared}"
    lines: list[tuple[str, ...]] = [(*_answers(report),)]
    if report.strategies:
        lines[:0] = [(*_topics(report),), (*_strategies(report), *filter(None, [sdks_text(report.sdks)]))]
    headline = f"{report.group or 'a group'}{who}: {'; '.join(verdict)}"
    return (
        headline,
        *(f"  {BETWEEN.join(parts)}" for parts in lines if parts),
        *queue_lists.pop_facts(report.pop_topics),
    )


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
        yield f"{of_all(number, queues)} {are(number)} {_BAD['queues_of_duplicate_client_ids']}"
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
    """The verdict without observed owners: the strategies that leave a queue without one owner, otherwise all."""
    queues = len(report.queues)
    bad = [
        f"predicted {what}: {', '.join(under)}"
        for field, what in _BAD.items()
        if (under := [f"{of_all(n, queues)} under {s.strategy}" for s in report.strategies if (n := getattr(s, field))])
    ]
    yield from bad
    if not queues:
        yield "its topics have no readable queue"
    elif not bad:
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
    same = [s.strategy for s in others if not s.mismatches]
    if same:
        yield f"{', '.join(same)} predict{'s' * (len(same) == 1)} the same owners"
    yield from (f"{s.strategy} differs in {counted(s.mismatches, 'queue')}" for s in others if s.mismatches)


def _answers(report: OwnersReport) -> Iterator[str]:
    if answers := report.broker_assignments:
        number, differ = sum(each.consumers for each in answers), sum(len(each.mismatches) for each in answers)
        names = named(dict.fromkeys(each.broker_name for each in answers))
        as_predicted = f"{counted(number, 'answer')} as predicted"
        text = f"{of_all(differ, number, 'answer')} differ from the prediction" if differ else as_predicted
        yield f"assignments by {names}: {text}"


def _mismatches_of(reports: Sequence[OwnersReport], s: OwnersSummary) -> str:
    mismatches = sum(_prediction(report)[1] or 0 for report in reports if report.observed_queues)
    if mismatches:
        return f"observed owners of {of_all(mismatches, s.queues)} differ from the prediction"
    if not s.queues_observed:
        return f"{counted(s.queues, 'queue')}, no owner is observed"
    return f"observed owners of {all_or_some(s.queues_observed, s.queues)} as predicted"


def _compared(reports: Sequence[OwnersReport]) -> Iterator[str]:
    imbalance: dict[str, float] = {}
    idle: Counter[str] = Counter()
    for each in (each for report in reports for each in report.strategies):
        imbalance[each.strategy] = max(imbalance.get(each.strategy, 0), each.imbalance or 0)
        idle[each.strategy] += each.idle
    if len(imbalance) > 1:
        yield "largest imbalance " + ", ".join(f"{value:.2f} under {name}" for name, value in imbalance.items())
        yield from (f"{counted(number, 'idle consumer')} under {name}" for name, number in idle.items() if number)


def _pop_verdict(report: OwnersReport) -> Iterator[str]:
    lags = [queue.lag for queue in report.offsets if queue.lag is not None]
    known = "unknown" if not lags else f"{sum(lags):,}" + ("" if len(lags) == len(report.offsets) else "+")
    lag = f"{counted(len(report.offsets), 'queue')}, lag {known}"
    if report.hidden:
        likely = "probably " if report.hidden == "likely" else ""
        yield f"its consumers are {likely}behind a Proxy, not visible here; {lag}"
        return
    yield f"{'behind a Proxy' if report.by_proxy else 'consumes by POP'}, so no consumer owns a queue"
    topics = report.pop_topics
    queues = [queue for topic in topics for queue in topic.queues or ()]
    silent = [topic.topic for topic in topics if topic.queues is None]
    if silent:
        yield f"brokers assign no queue of {named(silent)}"
    elif not queues:
        yield "no topic has a readable queue"
    nobody = sum(queue.consumers == () for queue in queues)
    if nobody:
        yield f"no consumer may read {nobody} of {counted(len(queues), 'queue')}"
    if queues and all(queue.queue_id < 0 for queue in queues):
        yield "every consumer may read every queue"
    elif nobody < len(queues):
        consumers = [len(queue.consumers) for queue in queues if queue.consumers and queue.queue_id >= 0]
        few, many = min(consumers, default=0), max(consumers, default=0)
        yield f"a queue may be read by {'' if few == many else f'{few} to '}{counted(many, 'consumer')}"
    if report.by_proxy:
        yield lag


def _owners(report: OwnersReport) -> Section:
    """The queues of each consumer, observed or, without observed owners, predicted by the first strategy; idle last."""
    observed, strategy = bool(report.observed_queues), basis(report).strategy
    places = {client_id: at for at, client_id in enumerate(dict.fromkeys(report.sorted_consumers))}

    def owners(queue: QueueOwners) -> tuple[str, ...]:
        found = queue.owners_observed if observed else queue.owners[strategy]
        return _UNKNOWN if found is None else found

    queues = (((owners(queue),), queue, queue.lag) for queue in report.queues)
    lines = queue_lists.owner_lines(queues, places, broadcasting=report.broadcasting)
    owning = {owner for line in lines for owner in line.owners[0]}
    if _UNKNOWN[0] not in owning:
        idle = (client_id for client_id in places if client_id not in owning)
        lines += [queue_lists.OwnerLine(((client_id,),), (), None, INFO) for client_id in idle]
    title = "observed owners" if observed else f"owners that {strategy} predicts"
    column = Column("observed owner" if observed else "predicted owner", "owners", _kind(report))
    return queue_lists.owner_section("owners", title, [column], lines, _ROOM)


def _mismatches(report: OwnersReport) -> Iterator[Section]:
    strategy = basis(report).strategy
    differ = [queue for queue in report.observed_queues if queue.owners[strategy] != queue.owners_observed]
    if differ and report.mixed_mismatches is None:
        queues = (((queue.owners[strategy], queue.owners_observed or ()), queue, queue.lag) for queue in differ)
        lines = queue_lists.owner_lines(queues, {}, severity=WARNING)
        title = f"{counted(len(differ), 'queue')} whose observed owner {strategy} does not predict"
        columns = columns_from("predicted=predicted_owner:clients observed=observed_owner:owners")
        yield queue_lists.owner_section("mismatches", title, columns, lines, _ROOM_OF_MISMATCHES)


def _kind(report: OwnersReport) -> Kind:
    return "clients" if report.broadcasting else "owners"


def _queues(report: OwnersReport) -> Section:
    kind, names = _kind(report), [each.strategy for each in report.strategies]
    columns = (
        *QUEUE_COLUMNS,
        Column("observed owner", "ownersObserved", kind, shown=bool(report.observed_queues)),
        Column("lag", "lag", "number", spare=True),
        *(Column(name, name, kind, of=partial(lambda name, queue: queue.owners[name], name)) for name in names),
    )
    return section_of("queues", "owners", columns, report.queues, heads=3)


def _reasons(report: OwnersReport) -> Section:
    columns = (*QUEUE_COLUMNS, Column("strategy", "strategy", quiet=True), Column("why", "reason"))
    rows = tuple(
        (queue.topic, queue.broker_name, queue.queue_id, s.strategy, why)
        for s in report.strategies
        for queue in report.queues
        if (why := queue.reasons[s.strategy]) is not None
    )
    return Section("reasons", "why", columns, rows, heads=4)


def _consumers(report: OwnersReport) -> Section:
    strategies = report.strategies
    columns = (
        *columns_from("index=#:label clientId=consumer"),
        *(Column(s.strategy, s.strategy, "number") for s in strategies),
        Column("idle because", "idleReason", spare=True),
    )
    rows: list[tuple[Cell, ...]] = []
    for index, client_id in enumerate(dict.fromkeys(report.sorted_consumers)):
        under = [s.consumers[index] for s in strategies]
        idle = [f"{s.strategy}: {s.consumers[index].idle_reason}" for s in strategies if s.consumers[index].idle_reason]
        rows.append((index, client_id, *(one.queues for one in under), "; ".join(idle)))
    return Section("consumers", "queues per consumer", columns, tuple(rows), heads=2)


def _summary(report: OwnersReport) -> Section:
    columns = columns_from(
        "strategy:text minQueuesPerConsumer=min@fewest maxQueuesPerConsumer=max@most meanQueuesPerConsumer=mean@mean "
        "imbalance idle? unassigned? duplicateOwners? mismatches",
        "number",
        hidden=() if report.observed_queues else ("mismatches",),
    )
    return section_of("summary", "summary", columns, report.strategies, heads=1)


def _groups(reports: Sequence[OwnersReport]) -> Section:
    def own(name: str) -> Callable[[OwnersReport], Cell]:
        return lambda report: getattr(basis(report), name) if report.strategies else None

    columns = columns_from(
        "severity=:sign group:text consumers queues queuesObserved=observed?/4 unassigned? duplicateOwners? "
        "mismatches?/1 idle?/3 imbalance/2 strategy:text/5",
        "number",
        severity=lambda report: grave(report) or None,
        consumers=lambda report: None if report.hidden else len(set(report.sorted_consumers)),
        queues=lambda report: len(report.queues) or len(report.offsets),
        queuesObserved=lambda report: len(report.observed_queues),
        unassigned=lambda report: report.bad_owners[0],
        duplicateOwners=lambda report: report.bad_owners[1],
        mismatches=lambda report: _prediction(report)[1] if report.strategies else None,
        idle=own("idle"),
        imbalance=own("imbalance"),
        strategy=_strategy,
    )
    return section_of("groups", "groups", columns, reports)


def _strategy(report: OwnersReport) -> str:
    if not report.strategies:
        names = dict.fromkeys(topic.strategy for topic in report.pop_topics)
        return ", ".join("behind a Proxy" if name is None else f"{name} by POP" for name in names)
    reported = report.strategies_reported
    return ", ".join(reported) if len(reported) > 1 else basis(report).strategy
