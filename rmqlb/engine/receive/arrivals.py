"""When messages come into which queue.

Rules of this file:
- At rates, each queue has arrivals of its own that know nothing of each other (a Poisson process).
- Rare messages come one at a time, the next after one to three rounds of all receives, in any queue: each finds the
  receives as if there had never been a message.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heapreplace
from math import log

from rmqlb.engine.randomness import Draws
from rmqlb.engine.receive.randomness import ARRIVALS, draws
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.receive_scenario import ReceiveScenario

_FINE = 1 << 53
Arrival = tuple[int, int]
"""When, in microseconds, and the place of the queue in the list."""


def arrivals(queues: list[MessageQueue], scenario: ReceiveScenario, trial: int, round_us: int) -> Iterator[Arrival]:
    """The arrivals, in order; without end where the scenario has none.

    Args:
        queues: all that can be read.
        scenario: with its rates, of which some queue has one, or rare.
        trial: which of many runs.
        round_us: how long one round of all receives takes when no message comes.
    """
    if scenario.rare:
        return _rare(len(queues), draws(scenario.seed, trial, ARRIVALS), round_us)
    return _at_rates(queues, scenario, trial)


def _rare(queues: int, numbers: Draws, round_us: int) -> Iterator[Arrival]:
    now = 0
    while True:
        now += round_us + numbers.below(2 * round_us + 1)
        yield now, numbers.below(queues)


def _at_rates(queues: list[MessageQueue], scenario: ReceiveScenario, trial: int) -> Iterator[Arrival]:
    places = {(queue.broker_name, queue.queue_id): place for place, queue in enumerate(queues)}
    streams: dict[int, tuple[Draws, float]] = {}
    due: list[Arrival] = []
    for rate in scenario.rates:
        place = places[rate.broker_name, rate.queue_id]
        gap_us = float(1_000_000 / rate.per_second)
        streams[place] = draws(scenario.seed, trial, ARRIVALS, place), gap_us
        due.append((_gap(*streams[place]), place))
    heapify(due)
    while True:
        at, place = due[0]
        heapreplace(due, (at + _gap(*streams[place]), place))
        yield at, place


def _gap(numbers: Draws, mean_us: float) -> int:
    """Until the next of independent arrivals."""
    return round(-log((numbers.below(_FINE) + 1) / _FINE) * mean_us)
