"""Random questions, seeded: the same number is the same question for every version that answers alike."""

from __future__ import annotations

import random
from dataclasses import dataclass

from .vector import Fault, Layout, Pick, Update

NAMES = (
    ("broker-a", "broker-b", "broker-c", "broker-d", "broker-e", "broker-f", "broker-g"),
    ("b10", "b9", "b8", "b7", "b6", "b5", "b4", "b3", "b2", "b1", "b0", "b11", "b12", "b13", "b14", "b15"),
    ("брокер-1", "経路-乙", "経路-甲", "\U0001f418-1", "Ж", "zażółć", "ﬁ", "\u00e9", "e\u0301"),
    ("AaAa", "AaBB", "BBAa", "BBBB", "AaC#", "C#Aa", "Aa", "BB", "C#"),  # equal hash codes, by length
    tuple(f"DefaultCluster-broker-{number:02}" for number in range(30)),
)
STRANGER = "nobody"
UNLISTED = "unlisted"  # in the route, but not in the publish list

LAST = 2**31 - 1
EXTREMES = (LAST, LAST - 1, -(2**31), -(2**31) + 1, -1, 0, 1, -2)
# What the two generations of fault strategies compare a latency with.
LATENCIES = tuple(bound + near for bound in (50, 100, 550, 1000, 1800, 2000, 3000, 5000, 15000) for near in (-1, 0, 1))
SLOW = tuple(latency for latency in LATENCIES if latency >= 549)
FEW = (600, 600, 600, 1000, 30000)  # ties between brokers


@dataclass(frozen=True)
class Mood:
    """How a sequence goes: the chances that a step has this or that."""

    quiet: float  # no time passes
    edge: float  # the time of an isolation's end, or a millisecond off
    isolation: float
    latencies: tuple[int, ...]
    steps: tuple[int, int]
    names: tuple[tuple[str, ...], ...] = NAMES
    brokers: tuple[int, ...] = (1, 2, 2, 3, 3, 4, 5, 6, 7, 7, 11, 16)
    queues: tuple[int, ...] = (1, 3, 4, 8)  # of a broker at the most
    ties: bool = False  # brokers with the same latency
    wraps: int | None = None  # both counters wrap after so many steps at the most
    own: bool = False  # updates are for the picked broker only


CALM = Mood(quiet=0.2, edge=0.4, isolation=0.05, latencies=(0, 1, 20, *LATENCIES), steps=(10, 25))
MIXED = Mood(quiet=0.2, edge=0.35, isolation=0.3, latencies=LATENCIES, steps=(15, 30))
STORM = Mood(quiet=0.5, edge=0.05, isolation=0.6, latencies=SLOW, steps=(20, 40))
EQUAL_HASHES_OFTEN = (NAMES[1], NAMES[2], NAMES[3], NAMES[3])
TIED = Mood(0.9, 0.03, 0.3, FEW, (20, 40), EQUAL_HASHES_OFTEN, brokers=(6, 9), queues=(3,), ties=True)
# More fault items than Java's table takes without growing.
CROWD = Mood(0.9, 0.03, 0.3, FEW, (40, 40), NAMES[4:], brokers=(26,), queues=(2,), ties=True, own=True)
# Negative counter values count where they meet a number that does not divide 2^31.
WRAP = Mood(0.5, 0, 0.6, SLOW, steps=(20, 30), brokers=(1, 2, 7), queues=(3, 5, 6, 7), wraps=24)
MOODS = (STORM, MIXED, CALM, STORM, MIXED, TIED, STORM, MIXED, CALM, STORM, WRAP, CROWD, MIXED, WRAP)


class Question:
    def __init__(self, number: int, latency_fault: bool) -> None:
        self._rng = random.Random(f"{'on' if latency_fault else 'off'} {number}")
        self._mood = MOODS[number % len(MOODS)] if latency_fault else CALM
        self.layout = self._layout(latency_fault, empty=number == 0)
        self.length = self._rng.randint(*self._mood.steps)
        self._now = self._rng.choice((0, 1000, self._rng.randrange(10**6)))
        self._previous: str | None = None

    def next_pick(self, faults: dict[str, Fault], *, can_reset: bool) -> tuple[int, str | None, int | None]:
        """When the next pick is, the broker it shall avoid, and the seed of a new index."""
        self._now = self._time(faults)
        brokers = [self._previous, *dict.fromkeys(broker for _, broker, _ in self.layout.queues)]
        chosen = self._weighted({None: 4, self._previous: 4, self._rng.choice(brokers): 2, STRANGER: 0.3})
        reset = self._rng.randrange(1000) if self._rng.random() < 0.2 else None
        return self._now, chosen, reset if can_reset else None

    def next_update(self, pick: Pick, faults: dict[str, Fault], *, tells_reachable: bool, ties: bool) -> Update | None:
        """What is said after the pick. Unless ties are wanted, no two brokers have the same latency."""
        rng = self._rng
        self._previous = pick[0] if isinstance(pick, list) else None
        listed = [broker for _, broker, _ in self.layout.queues] or [STRANGER]
        foreign = rng.choice((STRANGER, UNLISTED))
        chosen = self._weighted({None: 1, self._previous: 6, rng.choice(listed): 1.5, foreign: 0.4})
        broker = self._previous if self._mood.own else chosen
        latency = rng.choice(self._mood.latencies) if rng.random() < 0.8 else rng.randrange(40000)
        isolation, reachable = rng.random() < self._mood.isolation, rng.random() < 0.7
        if broker is None:
            return None
        if not (ties and self._mood.ties):
            while any(fault.latency == latency for other, fault in faults.items() if other != broker):
                latency += 1
        return Update(broker, latency, isolation, reachable if tells_reachable else None)

    def _time(self, faults: dict[str, Fault]) -> int:
        rng = self._rng
        edges = sorted({fault.start + off for fault in faults.values() for off in (-1, 0, 1)})
        edges = [edge for edge in edges if edge > self._now]
        roll = rng.random()
        if edges and roll < self._mood.edge:
            return rng.choice(edges[:4])
        if roll > 1 - self._mood.quiet:
            return self._now
        return self._now + rng.choice((1, 3, 20, 150, 2500))

    def _layout(self, latency_fault: bool, empty: bool) -> Layout:
        rng = self._rng
        names = rng.choice(self._mood.names)
        many = min(len(names), rng.choice(self._mood.brokers))
        brokers = rng.sample(names, 0 if empty else many)
        most = min(rng.choice(self._mood.queues), 2 if many > 7 else 8)
        counts = {broker: most if rng.random() < 0.5 else rng.randint(1, most) for broker in brokers}
        queues = [("T", broker, number) for broker, count in counts.items() for number in range(count)]
        order = rng.randrange(4)
        if order == 0:
            rng.shuffle(queues)
        elif order == 1:
            queues.sort(key=lambda queue: (queue[2], queue[1]))
        elif order == 2:
            queues.sort()
        write_queues, perm = (counts, dict[str, int]()) if self._mood.wraps else self._route(counts)
        return Layout(
            latency_fault=latency_fault,
            queues=tuple(queues),
            write_queue_nums=write_queues,
            perm=perm,
            index=self._counter(),
            worst=self._counter(),
        )

    def _route(self, counts: dict[str, int]) -> tuple[dict[str, int], dict[str, int]]:
        rng = self._rng
        write_queues = dict(counts)
        perm: dict[str, int] = {}
        odd = rng.random() < 0.4
        for broker, count in counts.items():
            kind = rng.randrange(6) if odd else 0
            if kind == 1:
                write_queues[broker] = max(0, count + rng.choice((-2, -1, 1, 3)))
            elif kind == 2:
                del write_queues[broker]
            elif kind == 3:
                perm[broker] = rng.choice((4, 2, 0))
        if odd and rng.random() < 0.5:
            write_queues[UNLISTED] = rng.randint(1, 5)
        return write_queues, perm

    def _counter(self) -> int:
        rng = self._rng
        if self._mood.wraps:
            return LAST - rng.randrange(self._mood.wraps)
        return rng.choice(
            (rng.randint(-(2**31), LAST), rng.choice(EXTREMES), LAST - rng.randrange(30), LAST - rng.randrange(3))
        )

    def _weighted(self, choices: dict[str | None, float]) -> str | None:
        return self._rng.choices(list(choices), list(choices.values()))[0]
