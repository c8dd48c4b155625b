from collections.abc import Iterator, Sequence

from rmqlb.model.diagnosis import GroupCounts, GroupFinding
from rmqlb.model.groups import ConsumerProcess, Consumers, GroupLine, GroupState, Overview
from rmqlb.model.result import ERROR, at_least, counted, messages, named, of_all
from rmqlb.views.columns import Cell, Column, columns_from
from rmqlb.views.of_groups import statuses
from rmqlb.views.report import Report, Rows, Section, labels, section_of

_COUNTED = {
    "unassigned-queues": ("unassigned", "unassigned"),
    "duplicate-owners": ("duplicate_owners", "with duplicate owners"),
    "mismatch": ("mismatches", "with other owners than predicted"),
}
"""Finding → its count of queues, and the words for the count."""
_OF_CONSUMERS = ("duplicate-client-id", "more-consumers-than-queues", "idle-by-strategy")
_MOST_OF_IT = 0.5


def strategies_text(state: GroupState) -> str:
    names = ", ".join(state.strategies)
    return f"{names} (assumed)" if state.strategy_origin == "assumed" else names


def lag_text(state: GroupState) -> str:
    """Unread messages, with a plus sign for a lower bound; a question mark if none are known."""
    if state.lag is not None:
        return f"{state.lag:,}"
    return f"{state.lag_at_least:,}+" if state.lag_at_least else "?"


def worst_text(state: GroupState, findings: Sequence[GroupFinding]) -> str:
    if not findings:
        return ""
    grave: dict[str, list[GroupFinding]] = {}
    for one in findings:
        if one.severity == findings[0].severity:
            grave.setdefault(one.code, []).append(one)
    texts: list[str] = []
    left = 0
    for code, some_of in grave.items():
        text = _brief(some_of, state)
        if not texts:
            texts.append(f"{code}: {text or some_of[0].message}")
            left += 0 if text else len(some_of) - 1
        elif text:
            texts.append(f"{text} {_COUNTED[code][1]}" if code in _COUNTED else text)
        else:
            left += len(some_of)
    if findings[0].explains is not None:  # consequences of a cause are not separate findings
        bad = (code for code in ("unassigned-queues", "duplicate-owners") if code not in grave)
        counts = (code for code in bad if getattr(state, _COUNTED[code][0]))
        texts += (f"{_queues_of(code, state)} {_COUNTED[code][1]}" for code in counts)
    return "; ".join([*texts, *([f"and {counted(left, 'more finding')}"] if left else [])])


def _brief(findings: Sequence[GroupFinding], state: GroupState) -> str:
    code = findings[0].code
    if code in _COUNTED:
        return _queues_of(code, state)
    if code in _OF_CONSUMERS:
        return named(client_id for one in findings for client_id in one.consumers)
    return ", ".join(state.strategies) if code == "mixed-strategies" else ""


def _queues_of(code: str, state: GroupState) -> str:
    number, queues = getattr(state, _COUNTED[code][0]), state.queues
    return at_least(state.owners_unknown) + (counted(number, "queue") if queues is None else of_all(number, queues))


def consumers_text(state: GroupState | GroupCounts) -> str:
    if state.consumers is None:
        return "consumers unknown"
    more = f" ({state.processes} processes)" if state.processes != state.consumers else ""
    return f"{counted(state.consumers, 'consumer')}{more}"


def verdict(state: GroupState, findings: Sequence[GroupFinding], processes: Sequence[ConsumerProcess]) -> str:
    texts = [*_verdicts(state, findings), *_whose_lag(state, processes)]
    if state.status == "inOrder":
        texts.reverse()
    return f"{state.group}, {consumers_text(state)}: {'; '.join(texts)}"


def _whose_lag(state: GroupState, processes: Sequence[ConsumerProcess]) -> Iterator[str]:
    """The consumer with more than half of the lag, if there are several consumers."""
    lags = {each.client_id: each.lag for each in processes if each.lag}
    if not state.lag or not lags or not state.consumers:
        return
    worst = max(lags, key=lambda client_id: lags[client_id] or 0)
    share = (lags[worst] or 0) / state.lag
    if state.consumers > 1 and share > _MOST_OF_IT:
        yield f"lag {state.lag:,}, {'all' if share == 1 else f'{share:.0%}'} of it on {worst}"


def _verdicts(state: GroupState, findings: Sequence[GroupFinding]) -> Iterator[str]:
    queues = "?" if state.queues is None else counted(state.queues, "queue")
    bad = []
    if state.unassigned and state.consumers:
        bad.append(f"{at_least(state.owners_unknown)}{state.unassigned} of {queues} unassigned")
    if state.duplicate_owners:
        bad.append(f"{at_least(state.owners_unknown)}{state.duplicate_owners} of {queues} with duplicate owners")
    if state.mismatches:
        bad.append(f"observed owners of {state.mismatches} of {queues} differ from the prediction")
    yield from bad
    if state.duplicate_client_ids:
        ids = [client_id for one in findings if one.code == "duplicate-client-id" for client_id in one.consumers]
        yield f"{counted(state.duplicate_client_ids, 'duplicate client ID')} {named(ids)}"
    if len(state.strategies) > 1:
        yield f"mixed strategies {strategies_text(state)}"
    nobody = any(one.code == "no-consumer-online" and one.severity == ERROR for one in findings)
    if state.status == "offline" or nobody:
        waiting = f", {messages(state.lag_at_least)} left waiting" if state.lag_at_least else ""
        yield f"no consumer is visible{waiting}"
    elif state.status == "warning" and not bad:
        left = len(findings) - 1
        yield findings[0].message + (f"; and {counted(left, 'more finding')}" if left else "")
    elif state.status == "unknown":
        yield findings[0].message if findings else "who owns its queues is not known"
    elif state.status == "inOrder":
        yield f"in order, {queues}"


def groups_report(overview: Overview) -> Report:
    lines, s = overview.groups, overview.summary
    rows = Rows(("group",), [({}, line) for line in lines], unwatched=("evidence",))
    left = f"; {len(lines)} shown" if len(lines) < s.groups else ""
    headline = f"{counted(s.groups, 'group')}: {', '.join(statuses(s)) or 'nothing to show'}{left}"
    grave = "inOrder" if s.in_order and s.in_order + s.offline == s.groups else ""
    if s.with_errors or s.with_warnings:
        grave = "error" if s.with_errors else "warning"
    more = "rmqlb show-consumers -g GROUP shows a group's consumers" if lines else ""
    if lines and lines[0].status in ("error", "warning"):
        more = f"rmqlb diagnose -g {lines[0].group} says why; rmqlb explain CODE says what a finding means"
    sections = (_groups(lines), _findings(lines))
    return Report("rmqlb/groups", overview, (headline,), sections, {}, rows, grave=grave, more=more)


def _groups(lines: tuple[GroupLine, ...]) -> Section:
    differ = any(line.processes != line.consumers for line in lines)
    columns = (
        *columns_from("status=:sign group"),
        Column(
            "topics", "topicCount", "number", fold=9, of=lambda one: None if one.topics is None else len(one.topics)
        ),
        Column("consumers", "consumers", "number"),
        Column("processes", "processes", "number", shown=differ, fold=2),
        Column("queues", "queues", "number"),
        Column("lag", "lagText", "number", of=lag_text),
        *columns_from("lag/hidden lagAtLeast/hidden", "number"),
        *columns_from("unassigned?/4 duplicateOwners?/5 idle?/8 duplicateClientIds=duplicate_IDs?/6", "number"),
        *columns_from("mismatches:number?/7"),
        Column("strategy", "strategies", fold=1, of=strategies_text),
        *columns_from("imbalance:number/3 basis/hidden"),
        Column("worst finding", "worstFinding", "prose", spare=True, of=lambda one: worst_text(one, one.findings)),
    )
    return section_of("groups", "groups", columns, lines)


def _findings(lines: tuple[GroupLine, ...]) -> Section:
    columns = columns_from("severity=:sign group code=finding message=what:prose")
    rows = tuple((one.severity, line.group, one.code, one.message) for line in lines for one in line.findings)
    return Section("findings", "findings", columns, rows, named_only=True)


def consumers_report(consumers: Consumers) -> Report:
    state, processes = consumers.overview, consumers.consumers
    facts = (verdict(state, consumers.findings, processes), *(f"  {fact}" for fact in _facts(state)))
    listed = labels(dict.fromkeys(each.client_id for each in processes))
    why = f"rmqlb diagnose -g {state.group} says why; " if state.status in ("error", "warning") else ""
    more = f"{why}rmqlb show-owners -g {state.group} shows each queue and its owner"
    # Processes with one client ID differ by their address, or otherwise by their number.
    rows = Rows(("clientId", "address"), [({"address": str(_address(p) or at)}, p) for at, p in enumerate(processes)])
    sections = (_consumers(processes),)
    return Report("rmqlb/consumers", consumers, facts, sections, listed, rows, grave=state.status, more=more)


def _facts(state: GroupState) -> Iterator[str]:
    topics = "topics unknown" if state.topics is None else f"topics {', '.join(state.topics)}"
    queues = "" if state.queues is None else f" ({counted(state.queues, 'queue')})"
    yield f"{topics}{queues}"
    strategy = f"strategy {strategies_text(state)}" if state.strategies else "strategy unknown"
    origin = {"reported": ", reported", "observed": ", fits the observed owners"}.get(state.strategy_origin or "", "")
    model = f"; {state.message_model}" if state.message_model else ""
    yield f"{strategy}{origin}; lag {lag_text(state)}{model}"


def _consumers(processes: Sequence[ConsumerProcess]) -> Section:
    indexes = {client_id: at for at, client_id in enumerate(dict.fromkeys(each.client_id for each in processes))}
    columns = (
        Column("#", "index", "label", of=lambda one: indexes[one.client_id]),
        *columns_from("clientId=consumer processes:number/hidden"),
        Column("address", "address", of=_address),
        Column("version", "version", quiet=True, fold=7),
        Column("language", "language", quiet=True, fold=9),
        Column("type", "consumeType", quiet=True, fold=5),
        Column("strategy", "strategy", quiet=True, fold=4),
        Column("topics", "topics", quiet=True, fold=8, of=lambda one: _words(one.topics)),
        *columns_from("queuesObserved=observed queuesPredicted=predicted/6", "number"),
        Column("lag", "lagText", "number", of=lambda one: None if one.lag is None else f"{one.lag:,}"),
        Column("lag", "lag", "number", shown=False),
        Column("started", "startedAt", quiet=True, fold=10, spare=True),
        Column("not listed by", "notListedBy", spare=True, of=lambda one: _words(one.not_listed_by)),
        Column("findings", "findings", "prose", spare=True, of=lambda one: _words(one.findings)),
    )
    return section_of("consumers", "consumers", columns, processes, heads=3)


def _words(names: Sequence[str] | None) -> str | None:
    return None if names is None else " ".join(names)


def _address(one: ConsumerProcess) -> Cell:
    """The process's end of its first connection; other connections differ only by their ports."""
    return one.addresses[0].client_addr if one.addresses else None
