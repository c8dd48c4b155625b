"""A batch of groups allocated before and after changes, and each change in figures.

A *case* is one group after one change. Its pairs are parts of the batch: other members, or fewer queues.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rmqlb.engine.allocate.vectorized.pairs import Pairs, counts, first_processes
from rmqlb.engine.arrays.lanes import Bools, Ints
from rmqlb.engine.arrays.ragged import elements, numbers, starts
from rmqlb.engine.plan.changes import placeholders
from rmqlb.model.message_queue import sort_client_ids
from rmqlb.model.route import LOGICAL_PREFIX
from rmqlb.pipeline.arrow import null_unless
from rmqlb.pipeline.groups.group_batch import GroupBatch

ROWS_AT_ONCE = 1 << 20
"""Queues of cases that are looked at together, where one case does not have more."""


@dataclass(frozen=True)
class Roster:
    """Members that are there, and placeholder ones that may join.

    Attributes:
        batch: the groups with both kinds of members.
        joins: which of the placeholder ones a member is, from 1; 0 for one that is there; shape (members,).
        behind: how many real members stand behind it; shape (members,).
        is_id: it is the first process with its client id; shape (members,).
    """

    batch: GroupBatch
    joins: Ints
    behind: Ints
    is_id: Bools

    def present(self, change: int) -> Bools:
        """Who is there after so many have joined (above 0) or the last so many have left (below 0)."""
        there: Bools = self.joins <= max(change, 0)
        return there & (self.behind >= -change) if change < 0 else there

    def real(self) -> Ints:
        """How many members each group has now; shape (groups,)."""
        return np.bincount(numbers(self.batch.members)[self.joins == 0], minlength=self.batch.groups)


def roster(batch: GroupBatch, joiners: int) -> Roster:
    """The batch with so many placeholders in each group, where they sort (`engine.plan.changes.placeholders`)."""
    codes = {client_id: number for number, client_id in enumerate(batch.client_ids)}
    ids: list[int] = []
    joins: list[int] = []
    for end, size in zip(batch.member_ends.tolist(), batch.members.tolist(), strict=True):
        names = [batch.client_ids[number] for number in batch.ids[end - size : end].tolist()]
        new = {name: rank for rank, name in enumerate(placeholders(joiners, names), 1)}
        for name in sort_client_ids([*names, *new]):
            ids.append(codes.setdefault(name, len(codes)))
            joins.append(new.get(name, 0))
    members = batch.members + joiners
    whole = replace(batch, members=members, ids=np.array(ids, np.int64), client_ids=list(codes))
    joined = np.array(joins, np.int64)
    real = (joined == 0).astype(np.int64)
    up_to = np.cumsum(real)
    last = np.append(up_to, 0)[whole.member_ends - 1]
    behind = last[numbers(whole.members)] - up_to
    first = first_processes(whole.ids, whole.members)[0]
    return Roster(whole, joined, behind, first == np.arange(len(first)))


@dataclass(frozen=True)
class Cases:
    """One change to many groups.

    Attributes:
        groups: each case's group in the batch; shape (cases,).
        pairs: what is allocated afterwards, case after case.
        case_of: each pair's case; shape (pairs,).
        removed: queues that are gone by then; shape (cases,).
    """

    groups: Ints
    pairs: Pairs
    case_of: Ints
    removed: Ints

    @property
    def case_of_row(self) -> Ints:
        """Each queue's case; shape (rows,)."""
        return np.repeat(self.case_of, self.pairs.queues)

    def having(self, marked: Bools) -> Bools:
        """The cases that have a marked pair (shape (pairs,)); shape (cases,)."""
        return np.bincount(self.case_of[marked], minlength=len(self.groups)) > 0


def every_group(pairs: Pairs, groups: int) -> Cases:
    """A case for each group, with all its queues."""
    return Cases(np.arange(groups), pairs, pairs.groups, np.zeros(groups, np.int64))


def every_broker(batch: GroupBatch, pairs: Pairs) -> Iterator[tuple[Cases, Ints]]:
    """A case for each group and broker that has queues of it, without the broker; and each case's broker by number.

    Some cases at a time: together they have almost as often all queues as there are brokers. The logical brokers of
    static topics are none: no machine bears their name, and their queues follow none.
    """
    width = len(batch.brokers) + 1
    is_real = np.array([not name.startswith(LOGICAL_PREFIX) for name in batch.brokers], np.bool_)[batch.broker_of]
    of_group = batch.group_of[batch.pair_of]
    groups, brokers = np.divmod(np.unique(of_group[is_real] * width + batch.broker_of[is_real]), width)
    sizes = np.bincount(of_group, minlength=batch.groups)[groups]
    for some in np.split(np.arange(len(groups)), np.flatnonzero(np.diff(np.cumsum(sizes) // ROWS_AT_ONCE)) + 1):
        yield _without(batch, pairs, groups[some], brokers[some]), brokers[some]


def _without(batch: GroupBatch, pairs: Pairs, groups: Ints, brokers: Ints) -> Cases:
    """Each of the groups without the broker beside it."""
    pairs_of_group = np.bincount(batch.group_of, minlength=batch.groups)
    pair = elements(pairs_of_group, groups)
    case = numbers(pairs_of_group[groups])
    row, case_of_row = elements(batch.queues, pair), np.repeat(case, batch.queues[pair])
    stays = batch.broker_of[row] != brokers[case_of_row]
    left = np.bincount(numbers(batch.queues[pair])[stays], minlength=len(pair))
    removed = np.bincount(case_of_row[~stays], minlength=len(groups))
    part = Pairs(left, pairs.groups[pair], pairs.members, row[stays], pairs.places, pairs.owners)
    return Cases(groups, part, case, removed)


def queue_counts(batch: GroupBatch, cases: Cases, before: Ints, after: Ints) -> dict[str, Any]:
    """What happens to the cases' queues, as columns of WHAT_IF.

    `before`: the place of each queue's owner, shape (queues of the batch,); `after`: the same, shape (rows of the
    cases,).
    """
    rows, case_of_row, number = cases.pairs.rows, cases.case_of_row, len(cases.groups)
    was = before[rows]

    def count(where: Bools) -> Ints:
        return np.bincount(case_of_row[where], minlength=number)

    moved = (was >= 0) & (after >= 0) & (was != after)
    lag = np.zeros(number, np.int64)
    np.add.at(lag, case_of_row[moved], batch.lags[rows[moved]])
    stay = np.bincount(case_of_row, minlength=number)
    return {
        "queuesBefore": stay + cases.removed,
        "queuesAfter": stay,
        "moved": count(moved),
        "newlyAssigned": count((was < 0) & (after >= 0)),
        "newlyUnassigned": count((was >= 0) & (after < 0)),
        "removed": cases.removed,
        "unassignedAfter": count(after < 0),
        "duplicateOwnersAfter": np.zeros(number, np.int64),
        "lagMoved": null_unless(lag, count(moved & ~batch.lag_known[rows]) == 0),
    }


@dataclass(frozen=True)
class Spreads:
    """How the cases' queues lie on their client ids (`rmqlb.model.plan.Spread`); each of shape (cases,)."""

    members: Ints
    idle: Ints
    owned: Ints
    least: Ints
    most: Ints


def spreads(cases: Cases, places: Ints, is_id: Bools) -> Spreads:
    """Measure an assignment: `places` holds the place of each queue's owner, shape (rows,); `is_id` is the roster's."""
    pairs, number = cases.pairs, len(cases.groups)
    queues = np.bincount(cases.case_of_row, minlength=number)
    whole = Pairs(queues, cases.groups, pairs.members, pairs.rows, pairs.places, pairs.owners)
    ids = is_id[pairs.places[elements(pairs.members, cases.groups)]]
    owned = counts(whole, places)[ids]
    case = numbers(pairs.members[cases.groups])[ids]
    members = np.bincount(case, minlength=number)
    least, most = np.zeros(number, np.int64), np.zeros(number, np.int64)
    filled = np.flatnonzero(members)
    if len(filled):
        begins = starts(members)[:-1][filled]
        least[filled] = np.minimum.reduceat(owned, begins)
        most[filled] = np.maximum.reduceat(owned, begins)
    idle = np.bincount(case[owned == 0], minlength=number)
    total = np.bincount(case, owned, minlength=number).astype(np.int64)
    return Spreads(members, idle, total, least, most)
