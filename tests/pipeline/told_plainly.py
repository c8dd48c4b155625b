"""The history's rules in plain Python, written from the tables' docstrings: what the property test compares with.

Rules of this file:
- Everything is a loop over a cluster's moments; speed does not matter.
- Rows have their table's columns in order.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date, datetime
from itertools import pairwise
from typing import Any

from rmqlb.engine.assignment.balance import spread
from rmqlb.model.message_queue import MessageQueue
from tests.pipeline.pasts import Shot, queue

Row = tuple[Any, ...]


@dataclass
class Moment:
    """What all snapshots of one time show together: owners by group and queue, members by group."""

    at: datetime
    held: dict[tuple[str, int], set[str]] = field(default_factory=dict)
    members: dict[str, Counter[str]] = field(default_factory=dict)

    def observes(self, group: str) -> bool:
        return any(of == group for of, _ in self.held)


def moments(shots: Iterable[Shot]) -> list[Moment]:
    """Of one cluster, in their order."""
    found: dict[datetime, Moment] = {}
    for shot in shots:
        if shot.at is None:
            continue
        moment = found.setdefault(shot.at, Moment(shot.at))
        for group, queues in shot.queues.items():
            for number, owners in queues.items():
                moment.held.setdefault((group, number), set()).update(owners)
        for group, ids in shot.members.items():
            if ids is not None:
                moment.members[group] = moment.members.get(group, Counter()) | Counter(ids)
    return sorted(found.values(), key=lambda moment: moment.at)


def sessions(cluster: str, past: list[Moment]) -> list[Row]:
    found = []
    for group, number in {key for moment in past for key in moment.held}:
        sighted = [moment for moment in past if (group, number) in moment.held]
        going: dict[str, list[datetime]] = {}
        ended: list[tuple[str, list[datetime], datetime | None, str | None]] = []
        for moment in sighted:
            owners = moment.held[group, number]
            by = "moved" if owners else "unassigned"
            ended += [(owner, going.pop(owner), moment.at, by) for owner in set(going) - owners]
            for owner in owners:
                going.setdefault(owner, []).append(moment.at)
        later = [moment.at for moment in past if moment.at > sighted[-1].at and moment.observes(group)]
        last = (later[0], "unobserved") if later else (None, None)
        ended += [(owner, seen, *last) for owner, seen in going.items()]
        for owner, seen, end, reason in ended:
            times = seen[0], end, seen[-1], len(seen)
            is_open = reason in (None, "unobserved")
            found.append((cluster, group, *queue(number).values(), owner, *times, reason, is_open))
    return found


def steps(past: list[Moment], group: str) -> list[tuple[Moment, Moment]]:
    observed = [moment for moment in past if moment.observes(group)]
    return list(pairwise(observed))


def moves(cluster: str, past: list[Moment], group: str) -> list[Row]:
    found: dict[date, Counter[str]] = defaultdict(Counter)
    for before, after in steps(past, group):
        today = found[after.at.date()]
        today["snapshots"] += 1
        for key in before.held.keys() & after.held.keys():
            if key[0] == group:
                today["observed"] += 1
                today[_change(before.held[key], after.held[key])] += 1
    return [
        (cluster, day, group, n["moved"], n["newlyUnassigned"], n["newlyAssigned"], n["observed"], n["snapshots"])
        for day, n in found.items()
    ]


def flapping(cluster: str, past: list[Moment], group: str) -> Row:
    moved = [
        (after.at, key)
        for before, after in steps(past, group)
        for key in before.held.keys() & after.held.keys()
        if key[0] == group and _change(before.held[key], after.held[key]) == "moved"
    ]
    returned = set()
    for key in {key for moment in past for key in moment.held if key[0] == group}:
        had: set[str] = set()
        has: set[str] = set()
        for moment in past:
            if key in moment.held:
                if moment.held[key] & had - has:
                    returned.add((moment.at, key))
                has = moment.held[key]
                had |= has
    observed = [moment for moment in past if moment.observes(group)]
    days = max((observed[-1].at.date() - observed[0].at.date()).days, 1)
    most = max(sum(of == group for of, _ in moment.held) for moment in observed)
    back_and_forth = len({at for at, _ in returned}) >= max(2, days / 14)
    never_still = len({at for at, _ in moved}) >= 2 and len(moved) / days >= most / 2
    flaps = back_and_forth or never_still
    queues = {key for _, key in moved}
    return cluster, group, len(moved), len(returned), len(queues), days, len(moved) / days, flaps


def churn(cluster: str, past: list[Moment], group: str) -> list[Row]:
    found: dict[date, list[Any]] = {}
    before: Counter[str] | None = None
    for moment in past:
        if group not in moment.members:
            continue
        now = moment.members[group]
        today = found.setdefault(moment.at.date(), [0, None, None])
        today[0] = now.total()
        if before is not None:
            today[1] = (today[1] or 0) + (now - before).total()
            today[2] = (today[2] or 0) + (before - now).total()
        before = now
    return [(cluster, day, group, *counts) for day, counts in found.items()]


def trend(shot: Shot, group: str) -> Row | None:
    """As the judge of the engine sees it; None for a snapshot without a time or without the group's owners."""
    if shot.at is None or not shot.queues.get(group):
        return None
    queues, ids, lags = shot.queues[group], shot.members.get(group), shot.lags.get(group, {})
    lag = None if any(lags.get(number) is None for number in queues) else sum(lags[number] or 0 for number in queues)
    key = (*shot.key.values(), shot.at, group)
    if ids is None:
        held = Counter(owner for owners in queues.values() for owner in owners)
        most = max(held.values(), default=None)
        return (*key, None, len(queues), None, most, None, None, list(queues.values()).count(""), lag)
    owners = {MessageQueue("T", "b", number): tuple(held) for number, held in queues.items()}
    judged = spread(owners, list(ids))
    imbalance = judged.most / judged.mean if judged.most is not None and judged.mean else None
    return (*key, len(ids), judged.queues, judged.mean, judged.most, imbalance, judged.idle, judged.unassigned, lag)


def _change(before: set[str], after: set[str]) -> str:
    if before and after:
        return "moved" if before != after else "kept"
    return "newlyUnassigned" if before else "newlyAssigned" if after else "kept"
