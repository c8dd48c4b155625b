"""What a result was made from, and what has changed since an earlier one, in a line each."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from rmqlb.model.made_from import Against, MadeFrom
from rmqlb.model.words import counted
from rmqlb.views.report import Report

_MOST_CHANGES = 4


def dated(report: Report, used: MadeFrom, against: Against | None) -> Report:
    """The report of a result with what it was made from: for machines in its data, for people in lines."""
    data = report.data
    facts = report.facts if against is None else (report.facts[0], f"  {against_line(against)}", *report.facts[1:])
    if isinstance(data, Struct):
        data = replace(data, made_from=used, against=against)
    return replace(report, data=data, facts=facts, closing=(*report.closing, fingerprint_line(used)))


def fingerprint_line(used: MadeFrom) -> str:
    """The last line of a plan or a simulation."""
    parts = [counted(len(used.topics), "topic")]
    if used.group is not None or used.consumers:
        strategies = dict.fromkeys(consumer.strategy for consumer in used.consumers)
        parts += [counted(len(used.consumers), "consumer"), *strategies]
    at = "" if used.taken_at is None else f", read at {used.taken_at}"
    return f"fingerprint {used.fingerprint}: {', '.join(parts)}{at}"


def against_line(against: Against) -> str:
    """Whether the cluster has moved on since, and what changed."""
    at = "" if against.taken_at is None else f" of {against.taken_at}"
    if against.same:
        owners = "; other owners are observed" if against.same_owners is False else ""
        return f"the cluster is as it was for {against.file}{at}{owners}"
    from rmqlb.views.diff.view import group_rows
    from rmqlb.views.diff.words import route_text

    topics = {topic.topic: topic for topic in against.topics}
    group, changes, caused = against.group, [], False
    if group is not None:
        changes = [f"{what}: {effect}" for _, _, what, effect in group_rows(group, topics)]
        caused = any("routes" in explained.causes for explained in group.explanations)
    if not caused:
        changes += [f"{topic.topic}: {route_text(topic)}" for topic in against.topics]
    more = f"; and {len(changes) - _MOST_CHANGES} more changes" if len(changes) > _MOST_CHANGES else ""
    what = "; ".join(changes[:_MOST_CHANGES]) or "other settings"
    return f"the cluster has moved on since {against.file}{at}: {what}{more}"
