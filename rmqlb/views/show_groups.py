"""The output of show-groups and show-consumers: groups in a line each, and the processes of one group."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rmqlb.model.diagnosis import GroupFinding
from rmqlb.model.finding import SEVERITIES
from rmqlb.model.groups import ConsumerProcess, Consumers, GroupLine, GroupState, Overview, OverviewSummary
from rmqlb.model.words import at_least, counted, messages, named, of_all
from rmqlb.views.queue_lists import figure_column
from rmqlb.views.report import Cell, Column, Report, Rows, Section, labels, rows_of

_COUNTED = {
    "unassigned-queues": ("unassigned", "unassigned"),
    "duplicate-owners": ("duplicate_owners", "with duplicate owners"),
    "mismatch": ("mismatches", "with other owners than predicted"),
}
"""Finding → the count that says all of it, and what is counted: queues."""
_OF_CONSUMERS = ("duplicate-client-id", "more-consumers-than-queues", "idle-by-strategy")
_MOST_OF_IT = 0.5


def strategies_text(state: GroupState) -> str:
    """What its consumers run; empty where that is not known."""
    names = ", ".join(state.strategies)
    return f"{names} (assumed)" if state.strategy_origin == "assumed" else names


def lag_text(state: GroupState) -> str:
    """Messages not yet read, at least so many with a plus sign; a question mark where none are known."""
    if state.lag is not None:
        return f"{state.lag:,}"
    return f"{state.lag_at_least:,}+" if state.lag_at_least else "?"


def worst_text(state: GroupState, findings: Sequence[GroupFinding]) -> str:
    """The worst finding by its code and what it is about, and the others that are as grave, in a few words."""
    if not findings:
        return ""
    grave: dict[str, list[GroupFinding]] = {}
    for one in findings:
        if one.severity == findings[0].severity:
            grave.setdefault(one.code, []).append(one)
    first, *others = grave.values()
    texts = [f"{first[0].code}: {_brief(first, state) or first[0].message}"]
    left = 0 if _brief(first, state) else len(first) - 1
    for some_of in others:
        text = _brief(some_of, state)
        left += 0 if text else len(some_of)
        texts += [text + _what(some_of[0])] if text else []
    if findings[0].explains is not None:  # what comes of it is no finding by itself
        bad = (code for code in ("unassigned-queues", "duplicate-owners") if code not in grave)
        texts += (
            _queues_of(code, state) + f" {_COUNTED[code][1]}" for code in bad if getattr(state, _COUNTED[code][0])
        )
    return "; ".join([*texts, *([f"and {counted(left, 'more finding')}"] if left else [])])


def _what(finding: GroupFinding) -> str:
    return f" {_COUNTED[finding.code][1]}" if finding.code in _COUNTED else ""


def _brief(findings: Sequence[GroupFinding], state: GroupState) -> str:
    """Findings of one code in a few words; empty where figures or client IDs do not say it."""
    code = findings[0].code
    if code in _COUNTED:
        return _queues_of(code, state)
    if code in _OF_CONSUMERS:
        return named(client_id for one in findings for client_id in one.consumers)
    return ", ".join(state.strategies) if code == "mixed-strategies" else ""


def _queues_of(code: str, state: GroupState) -> str:
    number, queues = getattr(state, _COUNTED[code][0]), state.queues
    return at_least(state.owners_unknown) + (counted(number, "queue") if queues is None else of_all(number, queues))


def consumers_text(state: GroupState) -> str:
    """How many consumers and, where they differ, processes."""
    if state.consumers is None:
        return "consumers unknown"
    more = f" ({state.processes} processes)" if state.processes != state.consumers else ""
    return f"{counted(state.consumers, 'consumer')}{more}"


def verdict(state: GroupState, findings: Sequence[GroupFinding], processes: Sequence[ConsumerProcess]) -> str:
    """The group in a sentence: what is wrong, or that nothing is, and whose lag it is."""
    texts = [*_verdicts(state, findings), *_whose_lag(state, processes)]
    if state.status == "inOrder":
        texts.reverse()
    return f"{state.group}, {consumers_text(state)}: {'; '.join(texts)}"


def _whose_lag(state: GroupState, processes: Sequence[ConsumerProcess]) -> Iterator[str]:
    """The consumer that has more than half of the lag, where there are several."""
    lags = {each.client_id: each.lag for each in processes if each.lag}
    if not state.lag or not lags or not state.consumers:
        return
    worst = max(lags, key=lambda client_id: lags[client_id] or 0)
    share = (lags[worst] or 0) / state.lag
    if state.consumers > 1 and share > _MOST_OF_IT:
        yield f"lag {state.lag:,}, {'all' if share == 1 else f'{share:.0%}'} of it on {worst}"


def _verdicts(state: GroupState, findings: Sequence[GroupFinding]) -> Iterator[str]:
    queues = "?" if state.queues is None else counted(state.queues, "queue")
    bad = list(_owned_badly(state, queues))
    yield from bad
    causes = [one for one in findings if one.severity == SEVERITIES[0] and one.code not in _COUNTED]
    if state.duplicate_client_ids:
        ids = [client_id for one in findings if one.code == "duplicate-client-id" for client_id in one.consumers]
        yield f"{counted(state.duplicate_client_ids, 'duplicate client ID')} {named(ids)}"
    if len(state.strategies) > 1:
        yield f"mixed strategies {strategies_text(state)}"
    if state.status == "offline" or any(one.code == "no-consumer-online" for one in causes):
        yield "no consumer is visible" + (
            f", {messages(state.lag_at_least)} left waiting" if state.lag_at_least else ""
        )
    elif state.status == "warning" and not bad:
        left = len(findings) - 1
        yield findings[0].message + (f"; and {counted(left, 'more finding')}" if left else "")
    elif state.status == "unknown":
        yield findings[0].message if findings else "who owns its queues is not known"
    elif state.status == "inOrder":
        yield f"in order, {queues}"


def _owned_badly(state: GroupState, queues: str) -> Iterator[str]:
    if state.unassigned and state.consumers:
        yield f"{at_least(state.owners_unknown)}{state.unassigned} of {queues} unassigned"
    if state.duplicate_owners:
        yield f"{at_least(state.owners_unknown)}{state.duplicate_owners} of {queues} with duplicate owners"
    if state.mismatches:
        yield f"observed owners of {state.mismatches} of {queues} differ from the prediction"


def groups_report(overview: Overview) -> Report:
    """The report for people and machines."""
    lines = overview.groups
    sections = (_groups(lines), _findings(lines))
    rows = Rows(("group",), [({}, line) for line in lines], unwatched=("evidence",))
    facts = (_headline(overview),)
    grave = _worst(overview.summary)
    return Report("rmqlb/groups", overview, facts, sections, {}, rows, grave=grave, more=_more(lines))


def _headline(overview: Overview) -> str:
    s = overview.summary
    shown = len(overview.groups)
    left = f"; {shown} shown" if shown < s.groups else ""
    return f"{counted(s.groups, 'group')}: {', '.join(_counts(s)) or 'nothing to show'}{left}"


def _counts(s: OverviewSummary) -> Iterator[str]:
    if s.with_errors:
        yield f"{s.with_errors} with {'an error' if s.with_errors == 1 else 'errors'}"
    if s.with_warnings:
        yield f"{s.with_warnings} with {'a warning' if s.with_warnings == 1 else 'warnings'}"
    if s.unknown:
        yield f"{s.unknown} unknown"
    if s.offline:
        yield f"{s.offline} with no visible consumer"
    if s.in_order:
        yield f"{'all ' if s.in_order == s.groups > 1 else ''}{s.in_order} in order"


def _worst(s: OverviewSummary) -> str:
    if s.with_errors:
        return "error"
    if s.with_warnings:
        return "warning"
    return "inOrder" if s.in_order and s.in_order + s.offline == s.groups else ""


def _more(lines: tuple[GroupLine, ...]) -> str:
    if not lines:
        return ""
    if lines[0].status not in ("error", "warning"):
        return "rmqlb show-consumers -g GROUP shows a group's consumers"
    return f"rmqlb diagnose -g {lines[0].group} says why; rmqlb explain CODE says what a finding means"


def _groups(lines: tuple[GroupLine, ...]) -> Section:
    differ = any(line.processes != line.consumers for line in lines)
    columns = (
        Column("", "status", "sign"),
        Column("group", "group"),
        Column(
            "topics", "topicCount", "number", fold=9, of=lambda line: None if line.topics is None else len(line.topics)
        ),
        Column("consumers", "consumers", "number"),
        Column("processes", "processes", "number", shown=differ, fold=2),
        Column("queues", "queues", "number"),
        Column("lag", "lagText", "number", of=lag_text),
        Column("lag", "lag", "number", shown=False),
        Column("at least", "lagAtLeast", "number", shown=False),
        figure_column("unassigned", "unassigned", lines, fold=4),
        figure_column("duplicate owners", "duplicateOwners", lines, fold=5),
        figure_column("idle", "idle", lines, fold=8),
        figure_column("duplicate IDs", "duplicateClientIds", lines, fold=6),
        figure_column("mismatches", "mismatches", lines, fold=7),
        Column("strategy", "strategies", fold=1, of=strategies_text),
        Column("imbalance", "imbalance", "number", fold=3),
        Column("basis", "basis", shown=False),
        Column(
            "worst finding",
            "worstFinding",
            "prose",
            shown=any(line.findings for line in lines),
            of=lambda line: worst_text(line, line.findings),
        ),
    )
    return Section("groups", "groups", columns, rows_of(columns, lines))


def _findings(lines: tuple[GroupLine, ...]) -> Section:
    columns = (
        Column("", "severity", "sign"),
        Column("group", "group"),
        Column("finding", "code"),
        Column("what", "message", "prose"),
    )
    rows = tuple((one.severity, line.group, one.code, one.message) for line in lines for one in line.findings)
    return Section("findings", "findings", columns, rows, named_only=True)


def consumers_report(consumers: Consumers) -> Report:
    """The report for people and machines."""
    state, processes = consumers.overview, consumers.consumers
    facts = (verdict(state, consumers.findings, processes), *(f"  {fact}" for fact in _facts(state)))
    listed = labels(dict.fromkeys(each.client_id for each in processes))
    why = f"rmqlb diagnose -g {state.group} says why; " if state.status in ("error", "warning") else ""
    more = f"{why}rmqlb show-owners -g {state.group} shows each queue and its owner"
    table, rows = _consumers(processes), _rows(processes)
    return Report("rmqlb/consumers", consumers, facts, (table,), listed, rows, grave=state.status, more=more)


def _facts(state: GroupState) -> Iterator[str]:
    topics = "topics unknown" if state.topics is None else f"topics {', '.join(state.topics)}"
    queues = "" if state.queues is None else f" ({counted(state.queues, 'queue')})"
    yield f"{topics}{queues}"
    strategy = f"strategy {strategies_text(state)}" if state.strategies else "strategy unknown"
    origin = {"reported": ", reported", "observed": ", fits the observed owners"}.get(state.strategy_origin or "", "")
    model = f"; {state.message_model}" if state.message_model else ""
    yield f"{strategy}{origin}; lag {lag_text(state)}{model}"


def _consumers(processes: Sequence[ConsumerProcess]) -> Section:
    columns = (
        Column("#", "index", "label", of=lambda one: indexes[one.client_id]),
        Column("consumer", "clientId"),
        Column("processes", "processes", "number", shown=False),
        Column("address", "address", of=_address),
        Column("version", "version", quiet=True, fold=7),
        Column("language", "language", quiet=True, fold=9),
        Column("type", "consumeType", quiet=True, fold=5),
        Column("strategy", "strategy", quiet=True, fold=4),
        Column(
            "topics", "topics", quiet=True, fold=8, of=lambda one: None if one.topics is None else " ".join(one.topics)
        ),
        Column("observed", "queuesObserved", "number"),
        Column("predicted", "queuesPredicted", "number", fold=6),
        Column("lag", "lagText", "number", of=lambda one: None if one.lag is None else f"{one.lag:,}"),
        Column("lag", "lag", "number", shown=False),
        Column("started", "startedAt", quiet=True, fold=10, shown=any(each.started_at for each in processes)),
        Column(
            "not listed by",
            "notListedBy",
            shown=any(each.not_listed_by for each in processes),
            of=lambda one: " ".join(one.not_listed_by),
        ),
        Column(
            "findings",
            "findings",
            "prose",
            shown=any(each.findings for each in processes),
            of=lambda one: " ".join(one.findings),
        ),
    )
    indexes = {client_id: at for at, client_id in enumerate(dict.fromkeys(each.client_id for each in processes))}
    return Section("consumers", "consumers", columns, rows_of(columns, processes), heads=3)


def _address(one: ConsumerProcess) -> Cell:
    """The process's end of its first connection: the others differ by their ports, where nothing stands between."""
    return one.addresses[0].client_addr if one.addresses else None


def _rows(processes: Sequence[ConsumerProcess]) -> Rows:
    """Processes that share a client ID are told apart by their address, or else by their number."""
    items = [({"address": str(_address(one) or at)}, one) for at, one in enumerate(processes)]
    return Rows(("clientId", "address"), items)
