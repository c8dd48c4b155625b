"""Findings on the source of a snapshot, and on its unread parts."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from rmqlb.model.finding import Finding, info
from rmqlb.model.snapshot import ClusterSnapshot, Unread


def source_findings(snapshot: ClusterSnapshot, concerns: Callable[[Unread], bool] = lambda _: True) -> list[Finding]:
    return [*map(info, snapshot.notes), *unread_findings(filter(concerns, snapshot.unread))]


def unread_findings(parts: Iterable[Unread]) -> list[Finding]:
    """One finding for all unread parts of a kind."""
    kinds: dict[tuple[str, str], list[Unread]] = {}
    for part in parts:
        is_of_group = part.detail is not None or part.kind == "other"
        kinds.setdefault((part.kind, part.name if is_of_group else ""), []).append(part)
    findings = []
    for (kind, _), (first, *more) in kinds.items():
        others = f" and {len(more)} more" if more else ""
        ids = tuple(part.detail or "" for part in (first, *more)) if kind == "member" else ()
        findings.append(Finding("unread", f"not read: {first.what}{others}: {first.reason}", consumers=ids))
    return findings


def no_route_findings(group: str, topics: Iterable[str], snapshot: ClusterSnapshot) -> list[Finding]:
    why = f"whose route is not in {snapshot.endpoint}"
    lost = [topic for topic in topics if topic not in snapshot.routes]
    return [Finding("no-route", f"group {group} subscribes to {topic}, {why}", group) for topic in lost]
