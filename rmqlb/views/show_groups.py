from collections.abc import Iterator, Sequence
from itertools import islice

from msgspec.structs import asdict, replace

from rmqlb.model.diagnosis import CODES, Drain, GroupCounts, GroupFinding, Lagging, QueueDrain
from rmqlb.model.groups import STATUSES, ConsumerProcess, Consumers, ConsumersOfGroups, GroupLine, GroupState, Overview
from rmqlb.model.message_queue import MessageQueue, grouped, queue_ranges
from rmqlb.model.result import ERROR, INFO, at_least, counted, messages, named, of_all, rate_text
from rmqlb.views.columns import QUEUE_COLUMNS, Cell, Column, columns_from
from rmqlb.views.formats.text import clip
from rmqlb.views.numbers import about
from rmqlb.views.of_groups import of_groups, statuses
from rmqlb.views.report import Report, Rows, Section, labels, section_of

_OF_OWNERS = ("unassigned-queues", "duplicate-owners")
_LONGEST = 80
_RANGES = 3
_SLOWEST = 5


def strategies_text(state: GroupState) -> str:
    names = ", ".join(state.strategies)
    return f"{names} (assumed)" if state.strategy_origin == "assumed" else names


def lag_text(state: GroupState) -> str:
    """Unread messages, with a plus sign for a lower bound; a question mark if none are known."""
    if state.lag is not None:
        return f"{state.lag:,}"
    return f"{state.lag_at_least:,}+" if state.lag_at_least else "?"


def drain_text(drain: Drain | None) -> str | None:
    """For a cell; None where it is unknown.

    >>> drain_text(Drain("finite", 263_000, 240_000, 300_000)), drain_text(Drain("finite", 263_000, 240_000))
    ('4m to 5m', '4m or more')
    """
    if drain is None or drain.drains == "unknown":
        return None
    if drain.drains == "never" or not drain.drain_ms:
        return "never" if drain.drains == "never" else "0 s"
    least, most = about(drain.drain_ms_at_least or 0), drain.drain_ms_at_most
    if most is None:
        return f"{least} or more"
    return least if least == about(most) else f"{least} to {about(most)}"


def drain_sentence(drain: Drain | None, slowest: Sequence[QueueDrain] = ()) -> str | None:
    """When the lag is gone; `slowest` has the queues, if there are several samples."""
    if drain is None:
        return None
    if drain.drains == "unknown":
        return f"drain time unknown: {drain.reason}" if slowest else None
    if drain.drains == "never":
        needed = drain.consumers_at_least
        reason = (drain.reason or "").replace("never at", "never drains at")
        return reason + (f"; needs at least {counted(needed, 'consumer')}" if needed else "")
    if drain.inflow_per_second is None:
        return None
    rates = f"inflow {rate_text(drain.inflow_per_second)}/s, consumption {rate_text(drain.consumed_per_second or 0)}/s"
    more = f"; {drain.reason}" if drain.reason else ""
    return f"drains in {drain_text(drain)} ({rates}){more}" if drain.drain_ms else f"keeps up ({rates})"


def slowest_text(queues: Sequence[QueueDrain]) -> str | None:
    """The queues that take the longest, in up to two groups with the same time.

    >>> a, b = (QueueDrain("T", "a", n, None, 9, Drain("finite", 9_000, 8_000, 10_000)) for n in (0, 1))
    >>> slowest_text([QueueDrain("T", "b", 0, None, 9, Drain("never")), a, b])
    'slowest queues: T b 0 (never); T a 0-1 (8.0 s to 10.0 s)'
    """
    by_text = grouped(
        (text, MessageQueue(each.topic, each.broker_name, each.queue_id))
        for each in queues
        if each.drain.drain_ms != 0 and (text := drain_text(each.drain)) is not None
    )
    parts = [f"{queue_ranges(own, _RANGES)} ({text})" for text, own in islice(by_text.items(), 2)]
    return f"slowest queues: {'; '.join(parts)}" if parts else None


_Drained = GroupState | ConsumerProcess | QueueDrain


def _drain_columns(items: Sequence[_Drained]) -> tuple[Column, ...]:
    """Shown where earlier samples give some rates."""
    drains = [each.drain for each in items if each.drain is not None]
    known = [each for each in drains if each.drains == "never" or each.inflow_per_second is not None]
    is_known = any(map(drain_text, known))
    keys = "drainMs/hidden drainMsAtMost/hidden inflowPerSecond/hidden consumedPerSecond/hidden"
    text = Column("drains in", "drainText", "number", shown=is_known, fold=1, of=lambda one: drain_text(one.drain))
    return (text, *columns_from(keys, "number", path="drain"))


def _lag_columns() -> tuple[Column, ...]:
    keys = "lagText=lag lag/hidden"
    return columns_from(keys, "number", lagText=lambda one: None if one.lag is None else f"{one.lag:,}")


def lag_waits(lag_at_least: int | None, drain: Drain | None) -> bool:
    """Messages wait, in its topics or to be retried."""
    return bool(lag_at_least) or (drain is not None and (drain.drains == "never" or bool(drain.drain_ms)))


def headline(findings: Sequence[GroupFinding], state: GroupState | GroupCounts, lagging: Lagging | None = None) -> str:
    """The gravest finding in a line: its code and effect, and the number of other kinds of findings."""
    grave = [each for each in findings if each.severity != INFO]
    if lagging is not None and not grave:
        return f"lag: {lag_place(lagging)}"
    if not findings:
        return ""
    first = findings[0]
    others = {each.code for each in findings if each.severity == first.severity} - {first.code}
    is_of_owners = first.explains is not None or first.code in _OF_OWNERS
    others = others.difference(_OF_OWNERS) if is_of_owners else others
    bad = ", ".join(bad_owners(state)) if is_of_owners else ""
    same = [each for each in findings if each.code == first.code]
    text = f"{first.code}: {bad or clip(_effect(same, state), _LONGEST - len(first.code))}"
    return f"{text} (+{len(others)})" if others else text


def _effect(findings: Sequence[GroupFinding], state: GroupState | GroupCounts) -> str:
    first = findings[0]
    queues = {queue for each in findings for queue in each.queues}
    if first.code == "mismatch":
        number = getattr(state, "mismatches", None) or len(queues)
        return f"{of_all(number, state.queues or number)} with other owners than predicted"
    ids = list(dict.fromkeys(client_id for each in findings for client_id in each.consumers))
    if first.code not in CODES or first.severity == INFO or not (ids or queues):
        return message_without_group(first)
    parts = [named(ids)] if ids else []
    if queues and not first.explains:
        parts.append(of_all(len(queues), state.queues or len(queues)))
    return ", ".join(parts) or message_without_group(first)


def message_without_group(finding: GroupFinding) -> str:
    """The message of a finding where the group's name is next to it.

    >>> message_without_group(GroupFinding("c", "info", "g", message="group g, x: consumers of group g wait"))
    'x: consumers of the group wait'
    """
    text = finding.message
    for title, instead in ((": ", ""), (", ", ""), (" ", "the group ")):
        text = text.replace(f"group {finding.group}{title}", instead)
    return text


def bad_owners(state: GroupState | GroupCounts) -> Iterator[str]:
    least = at_least(state.owners_unknown)
    if number := state.unassigned:
        yield f"{least}{number if state.queues is None else of_all(number, state.queues)} unassigned"
    if number := state.duplicate_owners:
        which = number if state.unassigned or state.queues is None else of_all(number, state.queues)
        yield f"{least}{which} with duplicate owners"


def lag_place(lagging: Lagging, *, with_queues: bool = False) -> str:
    where = f" ({queue_ranges(lagging.queues, _RANGES)})" if with_queues and lagging.queues else ""
    if lagging.consumer is None:
        return f"in {counted(len(lagging.queues), 'queue')}{where}"
    share = "all" if lagging.share == 1 else f"{int(lagging.share * 100)}%"
    return f"{share} of it on {lagging.consumer}{where}"


def consumers_text(state: GroupState | GroupCounts) -> str:
    if state.consumers is None:
        return "consumers unknown"
    more = f" ({state.processes} processes)" if state.processes != state.consumers else ""
    return f"{counted(state.consumers, 'consumer')}{more}"


def verdict(state: GroupState, findings: Sequence[GroupFinding]) -> str:
    texts = [*_verdicts(state, findings)]
    if state.lagging is not None:
        texts.append(f"lag {state.lagging.lag:,}, {lag_place(state.lagging, with_queues=True)}")
    return f"{state.group}, {consumers_text(state)}: {'; '.join(texts)}"


def _verdicts(state: GroupState, findings: Sequence[GroupFinding]) -> Iterator[str]:
    queues = "?" if state.queues is None else counted(state.queues, "queue")
    bad = [*filter(None, [", ".join(bad_owners(state))])] if state.consumers else []
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
        yield message_without_group(findings[0]) + (f"; and {counted(left, 'more finding')}" if left else "")
    elif state.status == "unknown":
        yield message_without_group(findings[0]) if findings else "the owners of its queues are unknown"
    elif state.status == "inOrder":
        yield f"in order, {queues}"


def groups_report(overview: Overview) -> Report:
    lines, s = overview.groups, overview.summary
    rows = Rows(("group",), [({}, line) for line in lines], unwatched=("evidence",))
    left = f"; {len(lines)} shown" if len(lines) < s.groups else ""
    facts = [f"{counted(s.groups, 'group')}: {', '.join(statuses(s)) or 'nothing to show'}{left}"]
    if s.own:
        facts.append(f"  {counted(s.own, 'group')} of RocketMQ's own not listed")
    grave = "inOrder" if s.in_order and s.in_order + s.offline == s.groups else ""
    if s.with_errors or s.with_warnings or s.lagging:
        grave = "error" if s.with_errors else "warning"
    more = "rmqlb show-consumers -g GROUP shows a group's consumers" if lines else ""
    if lines and lines[0].status in STATUSES[:3]:
        more = f"rmqlb diagnose -g {lines[0].group} shows why; -o wide shows all columns"
    sections = (_groups(lines), _findings(lines))
    return Report("rmqlb/groups", overview, tuple(facts), sections, {}, rows, grave=grave, more=more)


def _groups(lines: tuple[GroupLine, ...]) -> Section:
    differ = any(line.processes != line.consumers for line in lines)
    columns = (
        *columns_from("status=:sign group:name"),
        *columns_from(
            "topicCount=topics/9 consumers/2 processes/4 queues/3 lagText=lag lag/hidden lagAtLeast/hidden",
            "number",
            hidden=() if differ else ("processes",),
            topicCount=lambda one: None if one.topics is None else len(one.topics),
            lagText=lag_text,
        ),
        *_drain_columns(lines),
        *columns_from(
            "unassigned?/7 duplicateOwners?/7 idle?/8 duplicateClientIds=duplicate_IDs?/8 mismatches?/8 "
            "strategies=strategy:text/6 imbalance/5 basis:text/hidden worstFinding=finding:headline?",
            "number",
            strategies=strategies_text,
            worstFinding=lambda one: headline(one.findings, one, one.lagging),
        ),
    )
    return section_of("groups", "groups", columns, lines)


def _findings(lines: tuple[GroupLine, ...]) -> Section:
    columns = columns_from("severity=:sign group code=finding message=what:prose")
    rows = tuple(
        (one.severity, line.group, one.code, message_without_group(one)) for line in lines for one in line.findings
    )
    return Section("findings", "findings", columns, rows, named_only=True)


def consumers_report(result: Consumers | ConsumersOfGroups) -> Report:
    if isinstance(result, Consumers):
        return _consumers_of_one(result)
    lines = tuple(GroupLine(**asdict(each.overview), findings=each.findings) for each in result.groups)
    parts = [(each.overview.group, _consumers_of_one(each)) for each in result.groups]
    order = [(float(STATUSES.index(line.status)), float(-(line.lag_at_least or 0))) for line in lines]
    known = sum(line.consumers or 0 for line in lines)
    fact = f"{counted(len(lines), 'group')}, {counted(known, 'consumer')}: {', '.join(statuses(result.summary))}"
    return of_groups(parts, [fact], result, _groups(lines), order=order)


def _consumers_of_one(consumers: Consumers) -> Report:
    state, processes = consumers.overview, consumers.consumers
    facts = (verdict(state, consumers.findings), *(f"  {fact}" for fact in _facts(state, consumers.queues)))
    listed = labels(dict.fromkeys(each.client_id for each in processes))
    why = f"rmqlb diagnose -g {state.group} shows why; " if state.status in ("error", "warning") else ""
    more = f"{why}rmqlb show-owners -g {state.group} shows each queue and its owner"
    # Processes with one client ID differ by their address, or otherwise by their number.
    rows = Rows(("clientId", "address"), [({"address": str(_address(p) or at)}, p) for at, p in enumerate(processes)])
    sections = (_consumers(processes), *([_queues(consumers.queues)] if consumers.queues else []))
    return Report("rmqlb/consumers", consumers, facts, sections, listed, rows, grave=state.status, more=more)


def _facts(state: GroupState, drains: Sequence[QueueDrain]) -> Iterator[str]:
    topics = "topics unknown" if state.topics is None else f"topics {', '.join(state.topics)}"
    queues = "" if state.queues is None else f" ({counted(state.queues, 'queue')})"
    yield f"{topics}{queues}"
    strategy = f"strategy {strategies_text(state)}" if state.strategies else "strategy unknown"
    origin = {"reported": ", reported", "observed": ", fits the observed owners"}.get(state.strategy_origin or "", "")
    model = f"; {state.message_model}" if state.message_model else ""
    yield f"{strategy}{origin}; lag {lag_text(state)}{model}"
    if lag_waits(state.lag_at_least, state.drain) and (when := drain_sentence(state.drain, drains)):
        yield when


def _consumers(processes: Sequence[ConsumerProcess]) -> Section:
    indexes = {client_id: at for at, client_id in enumerate(dict.fromkeys(each.client_id for each in processes))}
    columns = (
        *columns_from(
            "index=#:label clientId=consumer processes:number/hidden address",
            index=lambda one: indexes[one.client_id],
            address=_address,
        ),
        Column("version", "version", quiet=True, fold=7),
        Column("language", "language", quiet=True, fold=9),
        Column("type", "consumeType", quiet=True, fold=5),
        Column("strategy", "strategy", quiet=True, fold=4),
        Column("topics", "topics", quiet=True, fold=8, of=lambda one: _words(one.topics)),
        *columns_from("queuesObserved=observed queuesPredicted=predicted/6", "number"),
        *_lag_columns(),
        *_drain_columns(processes),
        Column("started", "startedAt", quiet=True, fold=10, spare=True),
        Column("not listed by", "notListedBy", spare=True, of=lambda one: _words(one.not_listed_by)),
        Column("findings", "findings", "prose", spare=True, of=lambda one: _words(one.findings)),
    )
    return section_of("consumers", "consumers", columns, processes, heads=3)


def _queues(queues: Sequence[QueueDrain]) -> Section:
    columns = (
        *QUEUE_COLUMNS,
        Column("consumer", "owners", "owners"),
        *_lag_columns(),
        *_drain_columns(queues),
        *columns_from(
            "inflowText=inflow:number/3 consumptionText=consumption:number/3 why:prose/hidden@drain.reason",
            inflowText=lambda one: _per_second(one.drain.inflow_per_second),
            consumptionText=lambda one: _per_second(one.drain.consumed_per_second),
        ),
    )
    waiting = tuple(at for at, each in enumerate(queues) if each.drain.drain_ms != 0)
    section = section_of("queues", "queues, longest drain time first", columns, queues, heads=3)
    return replace(section, brief=waiting[:_SLOWEST], named_only=not waiting)


def _per_second(rate: float | None) -> str | None:
    return None if rate is None else f"{rate_text(rate)}/s"


def _words(names: Sequence[str] | None) -> str | None:
    return None if names is None else " ".join(names)


def _address(one: ConsumerProcess) -> Cell:
    """The process's end of its first connection; other connections differ only by their ports."""
    return one.addresses[0].client_addr if one.addresses else None
