"""Rows of FLEET as flat arrays, for vectorized rules.

Names are numbered once a batch (`client_ids`, `brokers`); arrays hold the numbers, −1 for none. A pair is one group on
one topic. Queues of pair 0 come first, in the clients' order, then those of pair 1, …; members likewise by group.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from rmqlb.engine.allocate.sdks import JAVA, SDKS
from rmqlb.engine.arrays.lanes import Bools, Ints
from rmqlb.engine.arrays.ragged import numbers, offsets, starts
from rmqlb.pipeline.arrow import Batches

QUEUES_A_SLICE = 1 << 17
"""What is allocated at once: some ten arrays of so many numbers, and a row of Arrow for each."""


@dataclass(frozen=True)
class GroupBatch:
    """Some groups, their members and their topics; `client_ids` and `brokers` are what the numbers stand for.

    Attributes:
        members: how many each group has; shape (groups,).
        ids: the members' client ids; shape (sum of members,).
        group_of, topics, queues: each pair's group, topic and number of queues; shape (pairs,).
        broker_of, queue_ids: each queue's broker, and its id there; shape (sum of queues,).
        absent: (pair, client id) of members known not to subscribe; shape (n, 2).
        lags, lag_known: messages not yet read, 0 where that is not known; shape (sum of queues,).
        seen: somebody looked who holds the queue; shape (sum of queues,).
        held: (queue, client id) of owners seen, by queue; shape (n, 2).
        sdks: group → client id → its client library, of the groups in which one is not Java's.
    """

    groups: int
    names: Sequence[str]
    members: Ints
    ids: Ints
    client_ids: Sequence[str]
    group_of: Ints
    topics: Sequence[str]
    queues: Ints
    broker_of: Ints
    queue_ids: Ints
    brokers: Sequence[str]
    absent: Ints
    lags: Ints
    lag_known: Bools
    seen: Bools
    held: Ints
    sdks: Mapping[int, Mapping[str, str]]

    def is_java(self, strategy: str) -> Bools:
        """The groups that Java's rules compute under a strategy (its full name): each gets what a Java consumer would.

        Shape (groups,).
        """
        others = {
            group
            for group, sdks in self.sdks.items()
            if group not in self._sort_alike
            or any(name != JAVA.name and strategy not in SDKS[name].deals_as_java for name in sdks.values())
        }
        java = np.ones(self.groups, np.bool_)
        java[list(others)] = False
        return java

    @cached_property
    def _sort_alike(self) -> frozenset[int]:
        """Of the groups with other libraries those whose client ids and brokers all libraries sort alike."""
        odd_brokers = np.array([not _sorts_alike(name) for name in self.brokers], np.bool_)[self.broker_of]
        odd = set(np.unique(self.group_of[self.pair_of[odd_brokers]]).tolist())
        return frozenset(
            group for group, sdks in self.sdks.items() if group not in odd and all(map(_sorts_alike, sdks))
        )

    @cached_property
    def pair_of(self) -> Ints:
        """Each queue's pair; shape (sum of queues,)."""
        return numbers(self.queues)

    @cached_property
    def ends(self) -> Ints:
        """Where each pair's queues end; shape (pairs,)."""
        return np.cumsum(self.queues)

    @cached_property
    def member_ends(self) -> Ints:
        """Where each group's members end; shape (groups,)."""
        return np.cumsum(self.members)

    def ids_at(self, places: Ints) -> Ints:
        """The client ids, by number, of the members at these places; −1 stays."""
        ids: Ints = np.append(self.ids, -1)[places]
        return ids


def in_slices(batches: Batches, queues: int = QUEUES_A_SLICE) -> Batches:
    """The batches in slices of whole groups with no more queues than these, but where one group has more itself.

    A group that was split by topic says in each part how many queues it has in all, and is a slice by itself.
    """
    for batch in batches:
        ends = np.cumsum(_ints(batch.column("queues")))
        begin = 0
        while begin < batch.num_rows:
            before = int(ends[begin - 1]) if begin else 0
            end = max(begin + 1, int(np.searchsorted(ends, before + queues, side="right")))
            yield batch.slice(begin, end - begin)
            begin = end


def read_batch(batch: pa.RecordBatch) -> GroupBatch:
    """A batch of FLEET rows as arrays."""
    members = batch.column("clientIds")
    topics = batch.column("topics")
    pairs: Any = topics.flatten()
    runs = pairs.field("subscribe")
    run: Any = runs.flatten()
    sizes = _ints(run.field("queues"))
    brokers, broker_of_run = _numbered(run.field("brokerName"))
    queues_of_pair = np.diff(starts(sizes)[starts(_lengths(runs))])
    absent = pairs.field("absent")
    owned = pairs.field("owners")
    owners: Any = owned.flatten()
    holders = owners.field("owners")
    numbered = pa.concat_arrays([members.flatten(), absent.flatten(), holders.flatten()])
    client_ids, codes = _numbered(numbered)
    ids, absentees, holding = np.split(codes, np.cumsum([len(members.flatten()), len(absent.flatten())]))
    first_queue = starts(queues_of_pair)[:-1]
    total = int(queues_of_pair.sum())
    lags, lag_known = _placed_lags(pairs.field("lags"), first_queue, total)
    at = np.repeat(first_queue, _lengths(owned)) + _ints(owners.field("place"))
    seen = np.zeros(total, np.bool_)
    seen[at] = True
    held = np.column_stack((np.repeat(at, _lengths(holders)), holding))
    return GroupBatch(
        groups=batch.num_rows,
        names=batch.column("group").to_pylist(),
        members=_lengths(members),
        ids=ids,
        client_ids=client_ids,
        group_of=numbers(_lengths(topics)),
        topics=pairs.field("topic").to_pylist(),
        queues=queues_of_pair,
        broker_of=np.repeat(broker_of_run, sizes),
        queue_ids=offsets(sizes),
        brokers=brokers,
        absent=np.column_stack((numbers(_lengths(absent)), absentees)),
        lags=lags,
        lag_known=lag_known,
        seen=seen,
        held=held[np.argsort(held[:, 0], kind="stable")],
        sdks=_sdks(batch),
    )


def _sorts_alike(name: str) -> bool:
    """By UTF-16 as by bytes: up to where surrogates begin."""
    return name != "" and (name.isascii() or max(name) < "\ud800")


def _sdks(batch: pa.RecordBatch) -> dict[int, dict[str, str]]:
    """Of processes that share an id, the first one's counts."""
    column: Any = batch.column("sdks")
    found: dict[int, dict[str, str]] = {}
    for group in np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False)).tolist():
        names = [sdk["name"] for sdk in column[group].as_py()]
        if any(name != JAVA.name for name in names):
            found[group] = {}
            for client_id, name in zip(batch.column("clientIds")[group].as_py(), names, strict=True):
                found[group].setdefault(client_id, name)
    return found


def _placed_lags(lags: Any, first_queue: Ints, total: int) -> tuple[Ints, Bools]:
    placed: Any = lags.flatten()
    at = np.repeat(first_queue, _lengths(lags)) + _ints(placed.field("place"))
    values, known = np.zeros(total, np.int64), np.zeros(total, np.bool_)
    values[at] = _ints(placed.field("lag"))
    known[at] = True
    return values, known


def _numbered(names: Any) -> tuple[list[str], Ints]:
    """The distinct names, and each one's number."""
    coded = names.dictionary_encode()
    return coded.dictionary.to_pylist(), _ints(coded.indices)


def _lengths(lists: Any) -> Ints:
    return _ints(lists.value_lengths().fill_null(0))


def _ints(values: Any) -> Ints:
    return np.asarray(values.to_numpy(zero_copy_only=False), np.int64)
