"""The simulations of several groups as one report, and of producers of their topics while brokers fail."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from rmqlb.model.group_report import GroupFigures, GroupReport
from rmqlb.model.group_result import SimulationOfGroups, SimulationsSummary, gravity
from rmqlb.model.simulate_send import SendReport
from rmqlb.model.words import counted, messages, of_all
from rmqlb.views.group.facts import event_texts
from rmqlb.views.of_groups import of_groups, rank
from rmqlb.views.report import BETWEEN, Column, Report, Section, about, first_places, rows_of
from rmqlb.views.simulate_send import last_failed_ms, send_gravity, some_messages

_MOST_ROWS = 20


def simulations_report(
    data: SimulationOfGroups,
    parts: Sequence[tuple[str, Report]],
    simulations: Sequence[GroupReport],
    producers: Sequence[SendReport],
) -> Report:
    """The report of several groups: what happens to all, each in a line, the worst first, and the producers."""
    whole = of_groups(
        parts,
        tuple(_facts(data.summary, simulations, producers)),
        data,
        _overview(simulations),
        order=[(rank(gravity(report)), *_badness(report.figures)) for report in simulations],
        beside=(_producers(producers),) if producers else (),
    )
    return replace(whole, grave=min((whole.grave, *(send_gravity(each.totals) for each in producers)), key=rank))


def _facts(s: SimulationsSummary, simulations: Sequence[GroupReport], producers: Sequence[SendReport]) -> Iterator[str]:
    events = [event for report in simulations for event in report.events]
    verdict = [f"{of_all(s.groups_affected, s.groups, 'group')} affected", *_consumers(s), *_sends(s)]
    yield f"{event_texts(events) or 'no event'}: {'; '.join(verdict)}"
    yield f"  consumers: {BETWEEN.join(_more_of_consumers(s))}"
    if producers:
        yield f"  producers: {BETWEEN.join(_more_of_producers(s, producers))}"


def _consumers(s: SimulationsSummary) -> Iterator[str]:
    if s.queues_with_outage:
        yield f"{of_all(s.queues_with_outage, s.queues)} cannot be read for up to {about(s.longest_outage_ms)}"
    elif s.unread_ms:
        yield f"a message waits up to {about(s.unread_ms)}"
    if s.queues_unread_at_end:
        yield f"{of_all(s.queues_unread_at_end, s.queues)} not read at the end"
    if s.queues_misassigned_throughout:
        yield f"{of_all(s.queues_misassigned_throughout, s.queues)} without one owner from the start to the end"


def _sends(s: SimulationsSummary) -> Iterator[str]:
    if s.lost:
        yield some_messages(s.lost, s.messages, "lost")
    elif s.topics:
        yield f"producers of {counted(s.topics, 'topic')} lose no message"


def _more_of_consumers(s: SimulationsSummary) -> Iterator[str]:
    kinds = (("gap", s.longest_gap_ms, s.queues_with_gap), ("overlap", s.longest_overlap_ms, s.queues_with_overlap))
    for what, ms, queues in kinds:
        yield f"longest {what} {about(ms)} ({counted(queues, 'queue')})" if queues else f"no {what}"
    if s.unread_ms:
        yield f"a message waits up to {about(s.unread_ms)}"
    if s.redelivered is None:
        yield "how many messages are redelivered is unknown without --rate"
    else:
        yield f"at most {messages(s.redelivered)} redelivered"
    yield (
        "not all groups converge"
        if s.convergence_ms is None
        else (
            f"converged {about(s.convergence_ms)} after the first event"
            if s.convergence_ms
            else "no queue gets a new owner"
        )
    )


def _more_of_producers(s: SimulationsSummary, producers: Sequence[SendReport]) -> Iterator[str]:
    if s.retried:
        last = max((each for each in map(last_failed_ms, producers) if each is not None), default=None)
        until = "" if last is None else f", the last at {about(last)}"
        yield some_messages(s.retried, s.messages, "retried") + until
    else:
        yield f"none of {messages(s.messages)} retried"
    if s.longest_send_ms is not None:
        yield f"longest send {about(s.longest_send_ms)}"


def _overview(simulations: Sequence[GroupReport]) -> Section:
    """Each group in a line."""
    columns = (
        Column("", "status", "sign", of=gravity),
        Column("group", "group"),
        Column("queues", "queues", "number", of=lambda report: len(report.timelines)),
        Column("in outage", "queuesWithOutage", "number", of=lambda report: report.figures.queues_with_outage),
        Column("outage", "longestOutageMs", "ms", of=lambda report: report.figures.longest_outage_ms),
        Column("gap", "longestGapMs", "ms", of=lambda report: report.figures.longest_gap_ms),
        Column("overlap", "longestOverlapMs", "ms", of=lambda report: report.figures.longest_overlap_ms),
        Column("waits up to", "unreadMs", "ms", fold=2, of=lambda report: report.figures.unread_ms),
        Column("redelivered, at most", "redelivered", "number", fold=3, of=lambda report: report.figures.redelivered),
        Column("converged", "convergenceMs", "ms", fold=1, of=lambda report: report.figures.convergence_ms),
    )
    return Section("groups", "groups, the worst first", columns, rows_of(columns, simulations), heads=2)


def _badness(f: GroupFigures) -> tuple[float, ...]:
    return -f.queues_unread_at_end, -f.unread_ms, -f.longest_gap_ms, -f.longest_overlap_ms


def _producers(producers: Iterable[SendReport]) -> Section:
    """Each topic in a line, the worst first."""
    columns = (
        Column("", "status", "sign", of=lambda report: send_gravity(report.totals)),
        Column("topic", "topic"),
        Column("messages", "messages", "number", of=lambda report: report.totals.messages),
        Column("lost", "lost", "number", of=lambda report: report.totals.lost),
        Column("retried", "retried", "number", of=lambda report: report.totals.retried),
        Column("last at", "lastFailedMs", "ms", of=last_failed_ms),
        Column("longest send", "longestSendMs", "ms", fold=2, of=lambda report: report.totals.longest_send_ms),
        Column("not in list from", "isolatedMs", "ms", fold=1, of=lambda report: _first(report, "isolated_ms")),
        Column("used again at", "usedAgainMs", "ms", fold=1, of=lambda report: _first(report, "used_again_ms")),
    )
    ordered = sorted(
        producers, key=lambda report: (-report.totals.lost, -report.totals.retried / (report.totals.messages or 1))
    )
    rows = rows_of(columns, ordered)
    brief = first_places(len(rows), _MOST_ROWS)
    return Section("producers", "producers, the worst first", columns, rows, heads=2, brief=brief)


def _first(report: SendReport, field: str) -> float | None:
    """A time of the broker that fails first."""
    return getattr(report.failures[0], field) if report.failures else None
