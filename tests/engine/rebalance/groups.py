"""Small groups on small topics, put through events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rmqlb.engine.assignment.assign import Members
from rmqlb.engine.rebalance.simulate import simulate_group
from rmqlb.model.group_scenario import SECOND_US, Event, EventKind, GroupScenario
from rmqlb.model.route import TopicRouteData
from rmqlb.model.simulate_rebalance import QueueTimeline, RebalanceResult
from tests.support.builders import route

START_US = 10 * SECOND_US


def at(kind: EventKind, subject: str, seconds: float = 10, **more: Any) -> Event:
    """An event so many seconds after the start."""
    return Event(kind, round(seconds * SECOND_US), subject, **more)


def simulate(
    client_ids: str,
    *events: Event,
    routes: Sequence[TopicRouteData] = (),
    strategy: str = "AVG",
    trial: int = 0,
    explain: bool = False,
    **scenario: Any,
) -> RebalanceResult:
    """The members, named in one text, on two brokers with four queues each unless routes are given."""
    members = Members(tuple(client_ids.split()), strategy)
    topics = routes or (route(a=4, b=4),)
    return simulate_group("g", members, topics, GroupScenario(events, **scenario), trial=trial, explain=explain)


def line(report: RebalanceResult, broker_name: str, queue_id: int) -> QueueTimeline:
    """One queue's time line."""
    return next(
        each for each in report.queues if (each.queue.broker_name, each.queue.queue_id) == (broker_name, queue_id)
    )


def owners_at_the_end(report: RebalanceResult) -> dict[str, tuple[str, ...]]:
    """`a0` → its owners."""
    return {f"{each.queue.broker_name}{each.queue.queue_id}": each.intervals[-1].owners for each in report.queues}


def seconds(us: int | None) -> float:
    """For readable expectations."""
    assert us is not None
    return us / SECOND_US
