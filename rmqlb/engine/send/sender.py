"""The life of a message, as far as all ways of sending have it in common."""

from __future__ import annotations

from abc import ABC, abstractmethod

from rmqlb.engine.send.clock import Thread
from rmqlb.engine.send.counters import Total
from rmqlb.engine.send.exceptions import Exceptions
from rmqlb.engine.send.latency import pick
from rmqlb.engine.send.outcome import Outcome
from rmqlb.engine.send.simulation import SendSimulation
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.send_scenario import Reaction

_NO_ROUTE_US = 1000
"""How long a message takes that fails before any attempt: about one question to a NameServer."""


class Sender(ABC):
    """What a thread does when it wakes: subclasses say how it picks queues, and what it makes of an attempt's end."""

    def __init__(self, simulation: SendSimulation) -> None:
        self.simulation = simulation
        self.scenario, self.profile, self.per_ms = simulation.scenario, simulation.profile, simulation.per_ms
        self.clock, self.recorder = simulation.clock, simulation.recorder
        self.strategy, self.outcomes = simulation.strategy, simulation.outcomes
        self._exceptions = Exceptions(simulation.route, simulation.scenario, simulation.profile, simulation.per_ms)
        self._ticks_per_us = simulation.clock.ticks_per_us

    @abstractmethod
    def go_on(self, thread: Thread, now: int) -> None:
        """The thread wakes at that time: its attempt is done, or its next message is due."""

    def begin(self, thread: Thread, now: int) -> None:
        self.clock.begin(thread)
        self.simulation.begin_message(now)
        self.simulation.look_at_route(thread)
        self.recorder.begin()
        thread.message = self.clock.started
        thread.began = now
        thread.attempt = thread.kept = thread.phase = 0
        thread.sent = []

    def start(self, thread: Thread, queue: MessageQueue, now: int) -> Reaction | None:
        """The thread's next attempt begins, at a queue that was picked: find out what its broker does."""
        thread.attempt += 1
        thread.queue = queue
        thread.sent.append(queue.broker_name)
        thread.started = now
        self.recorder.attempt(thread)
        thread.failure, reaction = self.simulation.reaction_of(queue.broker_name)
        return reaction

    def under_way(self, thread: Thread, outcome: Outcome, took: int, now: int) -> None:
        """The attempt will end so, that many ticks from now."""
        thread.outcome = outcome
        thread.busy = True
        if not outcome.failed:
            self.recorder.failures.used(thread.queue.broker_name, thread.started)
        self.clock.wake(thread, now + took)

    def refusal_time(self, reaction: Reaction) -> int:
        return reaction.cost_us * self._ticks_per_us

    def answer_time(self, thread: Thread, reaction: Reaction | None) -> int:
        """Ticks until the broker answers, if it does; a constant latency needs no random number."""
        if reaction is not None and reaction.kind == "slow":
            return reaction.cost_us * self._ticks_per_us
        latency = self.scenario.latencies.get(thread.queue.broker_name, self.scenario.latency)
        us = latency.table[0] if len(latency.table) == 1 else pick(latency, self.simulation.draw(thread.sender))
        return us * self._ticks_per_us

    def learn(self, broker_name: str, took: int, now: int, *, isolation: bool, reachable: bool) -> None:
        strategy = self.strategy
        if not strategy.enabled:
            return
        known = strategy.items.get(broker_name)
        before = 0 if known is None else known.start
        start = strategy.update(broker_name, took // self.per_ms, now, isolation=isolation, reachable=reachable)
        if start > now and start != before:
            self.recorder.isolate(broker_name, now, start)
        elif start <= now < before:
            self.recorder.isolation.isolate(broker_name, now, now)

    def finish(self, thread: Thread, now: int, lost_by: str | None) -> None:
        """The message is over; `lost_by` says why nothing of it is stored, as far as the producer knows."""
        self.recorder.finish(thread, now, None if lost_by is None else self._exceptions.lost(thread, now, lost_by))

    def fail_at_once(self, thread: Thread, now: int, lost_by: str) -> None:
        later = now + _NO_ROUTE_US * self._ticks_per_us
        self.finish(thread, later, lost_by)
        self.clock.next_message(thread, later)

    def not_store_ok(self) -> None:
        self.recorder.add(Total.NOT_STORE_OK)
