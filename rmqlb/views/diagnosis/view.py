"""A `Diagnosis` as a report: the verdict, the findings as blocks, then what is in order and what is unknown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime

from rmqlb.model.diagnosis import Diagnosis, GroupCounts, GroupFinding, Look, Undecided
from rmqlb.model.words import counted
from rmqlb.views.diagnosis.blocks import finding_blocks, rules_block
from rmqlb.views.diagnosis.verdict import status, verdict
from rmqlb.views.diagnosis.words import in_order
from rmqlb.views.report import (
    BETWEEN,
    QUEUE_COLUMNS,
    Cell,
    Column,
    Report,
    Rows,
    Section,
    attribute_of,
    duration,
    first_places,
    rows_of,
)

_MOST_FINDINGS = 8


def diagnosis_report(found: Diagnosis, *, with_name: bool = False) -> Report:
    """The report for people and machines.

    Args:
        with_name: the group's name stands in headings, as several groups need it.
    """
    facts = (verdict(found), *(f"  {fact}" for fact in (_counts(found), _looks(found.looks)) if fact))
    return Report(
        "rmqlb/diagnosis",
        found,
        facts,
        (
            findings_section(found, with_name=with_name),
            _rules(found, with_name=with_name),
            _evidence(found),
            _queues(found),
        ),
        rows=_rows(found),
        grave="" if found.outcome == "unknown" else status(found),
        more=_more(found),
    )


def _more(found: Diagnosis) -> str:
    code = found.findings[0].code if found.findings else "CODE"
    return f"rmqlb explain {code} says more; --all lists all evidence and queues, -o json has everything"


def _counts(found: Diagnosis) -> str:
    counts, parts = found.counts, []
    if counts.consumers is not None and counts.processes is not None:
        more = f" ({counts.processes} processes)"
        parts.append(counted(counts.consumers, "consumer") + more * (counts.processes != counts.consumers))
    parts += [] if counts.queues is None else [counted(counts.queues, "queue")]
    parts += [] if counts.lag_at_least is None else [f"lag {lag_text(counts)}"]
    return BETWEEN.join(parts)


def lag_text(counts: GroupCounts) -> str:
    """Messages not yet read, at least so many with a plus sign; a question mark where none are known."""
    if counts.lag is not None:
        return f"{counts.lag:,}"
    return "?" if counts.lag_at_least is None else f"{counts.lag_at_least:,}+"


def _looks(looks: Sequence[Look]) -> str:
    """Where and when the group was read."""
    if not looks:
        return ""
    last = looks[-1]
    when = "at an unknown time" if last.at is None else f"at {last.at}"
    if len(looks) == 1:
        return f"read {when} from {last.source}"
    sources = ", ".join(dict.fromkeys(look.source for look in looks))
    return f"{len(looks)} looks{_span(looks[0].at, last.at)}, the last {when}, from {sources}"


def _span(first: str | None, last: str | None) -> str:
    """How long they took; nothing where a time is not known.

    >>> _span("2026-11-21T01:59:50Z", "2026-11-21T02:00:00Z"), _span(None, "2026-11-21T02:00:00Z")
    (' over 10s', '')
    """
    try:
        took = datetime.fromisoformat(last or "") - datetime.fromisoformat(first or "")
    except (ValueError, TypeError):
        return ""
    return f" over {duration(took.total_seconds() * 1000)}"


def findings_section(found: Diagnosis, *, with_name: bool = False) -> Section:
    """What was found, the likeliest cause first; a table for scripts, blocks for people."""
    columns = (
        Column("", "severity", "sign"),
        Column("finding", "code"),
        Column("topic", "topic"),
        Column("queues", "queues", "number", of=_queue_number),
        Column("consumers", "consumers", of=_consumers),
        Column("consequence", "consequence", "prose"),
        Column("remedy", "remedy", "prose"),
        Column("explains all", "reproduces", of=_reproduces),
        Column("fixes all", "fixesAll", of=_fixes_all),
    )
    return Section(
        "findings",
        "",
        columns,
        rows_of(columns, found.findings),
        brief=first_places(len(found.findings), _MOST_FINDINGS),
        blocks=finding_blocks(found, with_name=with_name),
    )


def _queue_number(finding: GroupFinding) -> Cell:
    return len(finding.queues)


def _consumers(finding: GroupFinding) -> Cell:
    return " ".join(finding.consumers)


def _reproduces(finding: GroupFinding) -> Cell:
    return None if finding.explains is None else _yes_no(finding.explains.reproduces)


def _fixes_all(finding: GroupFinding) -> Cell:
    return None if finding.explains is None else _yes_no(finding.explains.fixes_all)


def _yes_no(value: bool | None) -> Cell:
    return None if value is None else "yes" if value else "no"


def _rules(found: Diagnosis, *, with_name: bool) -> Section:
    """Each rule and what it says."""
    columns = (
        Column("", "status", "sign"),
        Column("rule", "code"),
        Column("says", "says"),
        Column("what", "what", "prose"),
    )
    rows: list[tuple[Cell, ...]] = [(each.severity, each.code, "found", each.consequence) for each in found.findings]
    rows += [("info", each.code, "consequence", f"because of {', '.join(each.causes)}") for each in found.consequences]
    rows += [("unknown", each.code, "unknown", each.reason) for each in found.unknown]
    rows += [
        ("inOrder", code, "inOrder", words) for code, words in zip(found.checked, in_order(found.checked), strict=True)
    ]
    rows += [("info", each.code, "notApplicable", each.reason) for each in found.not_applicable]
    return Section("rules", "", columns, tuple(rows), blocks=(rules_block(found, with_name=with_name),))


def _evidence(found: Diagnosis) -> Section:
    columns = (
        Column("finding", "code"),
        Column("fact", "fact", "prose"),
        Column("value", "value"),
        Column("threshold", "threshold"),
        Column("source", "source", quiet=True),
        Column("at", "at", quiet=True),
    )
    rows = tuple(
        (finding.code, each.fact, each.value, each.threshold, each.source, each.at)
        for finding in found.findings
        for each in finding.evidence
    )
    return Section("evidence", "evidence", columns, rows, named_only=True, heads=2)


def _queues(found: Diagnosis) -> Section:
    columns = (Column("finding", "code"), *QUEUE_COLUMNS)
    rows = tuple(
        (finding.code, *(getattr(queue, attribute_of(column.key)) for column in QUEUE_COLUMNS))
        for finding in found.findings
        for queue in finding.queues
    )
    return Section("queues", "queues of the findings", columns, rows, named_only=True, heads=4)


def _rows(found: Diagnosis) -> Rows:
    """Findings and what is unknown; when evidence alone changes, that is no news."""
    keys = ("list", "code", "about")
    items = [*_told("findings", found.findings, found.group), *_told("unknown", found.unknown, found.group)]
    return Rows(keys, items, unwatched=("evidence", "consequence"))


def _told(
    name: str, items: Sequence[GroupFinding | Undecided], group: str
) -> Iterator[tuple[dict[str, str], GroupFinding | Undecided]]:
    """Each with what names it: of findings of a code, the consumers and the topic; of equals, a number."""
    times: Counter[tuple[str, str]] = Counter()
    for each in items:
        about = " ".join(filter(None, (*each.consumers, each.topic))) if isinstance(each, GroupFinding) else ""
        times[each.code, about] += 1
        number = times[each.code, about]
        yield {"group": group, "list": name, "about": about if number == 1 else f"{about} {number}".strip()}, each
