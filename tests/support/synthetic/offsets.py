"""How far every queue has been written and read, night by night, for a whole cluster at once.

Arrays are flat: `topic` arrays have a row for each queue of each topic, `pair` arrays one for each queue of each topic
of each group, in the groups' order. Offsets never go back.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tests.support.synthetic.draw import FleetCluster

_HOT = 0.004
"""Share of the queues whose readers have fallen behind."""
_DAY_MS = 86_400_000


class NightOffsets(NamedTuple):
    """A night's figures as lists, topic rows first, then pair rows."""

    broker: list[int]
    consumer: list[int]
    last_timestamp: list[int]


class Offsets:
    """A cluster's offsets; `counts`: queues of each topic, shape (topics,).

    `topic_start`: first row of each topic, shape (topics + 1,); `pair_start`: group → first pair row of each of its
    topics.
    """

    def __init__(self, cluster: FleetCluster, counts: list[int], seed: int) -> None:
        self._seed = [seed, cluster.number]
        draw = np.random.default_rng([*self._seed, 0])
        sizes = np.array(counts, np.int64)
        self.topic_start = np.concatenate(([0], np.cumsum(sizes))).tolist()
        rows = int(sizes.sum())
        self._rate = draw.lognormal(8.0, 2.0, len(counts)).repeat(sizes) * draw.lognormal(0.0, 0.3, rows)
        self._base = draw.integers(0, 10**7, rows)
        topics = np.fromiter((topic for group in cluster.groups for topic in group.topics), np.int64)
        starts = np.concatenate(([0], np.cumsum(sizes[topics])))
        within = np.arange(int(starts[-1])) - starts[:-1].repeat(sizes[topics])
        self._row = np.array(self.topic_start, np.int64)[topics].repeat(sizes[topics]) + within
        self.pair_start: list[list[int]] = []
        first = 0
        for group in cluster.groups:
            self.pair_start.append(starts[first : first + len(group.topics)].tolist())
            first += len(group.topics)
        self._hot = draw.random(len(self._row)) < _HOT
        self._consumer = np.zeros(len(self._row), np.int64)

    def at(self, night: int, now_ms: int) -> NightOffsets:
        """The figures of a night, taken at `now_ms` (ms since 1970); nights come in order, from 0."""
        draw = np.random.default_rng([*self._seed, 1, night])
        grown = np.floor(self._rate * (night + draw.random(len(self._rate)))).astype(np.int64)
        broker = self._base + grown
        written = broker[self._row]
        lag = draw.lognormal(1.5, 2.0, len(self._row)) * np.where(self._hot, 2000.0, 1.0)
        self._consumer = np.maximum(self._consumer, written - np.minimum(lag.astype(np.int64), written))
        behind = (written - self._consumer) / np.maximum(self._rate[self._row], 1.0)
        last = now_ms - np.minimum(behind, 30.0) * _DAY_MS - draw.random(len(self._row)) * 1000
        return NightOffsets(broker.tolist(), self._consumer.tolist(), last.astype(np.int64).tolist())
