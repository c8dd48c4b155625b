"""SYNC sends: `DefaultMQProducerImpl.sendDefaultImpl`, the loop over attempts with one deadline for all of them."""

from __future__ import annotations

from rmqlb.engine.send.clock import Thread
from rmqlb.engine.send.counters import Total
from rmqlb.engine.send.exceptions import CALL_TIMEOUT, NO_ROUTE
from rmqlb.engine.send.outcome import Outcome
from rmqlb.engine.send.sender import Sender
from rmqlb.engine.send.simulation import SendSimulation
from rmqlb.model.send_scenario import Reaction


class SyncSender(Sender):
    """What a thread does that waits for each attempt."""

    def __init__(self, simulation: SendSimulation) -> None:
        super().__init__(simulation)
        self._attempts = 1 + self.scenario.retries
        self._cap = self.scenario.timeout_per_request_ms if self.profile.caps_request else None

    def go_on(self, thread: Thread, now: int) -> None:
        if thread.busy:
            thread.busy = False
            self._done(thread, now)
            return
        self.begin(thread, now)
        if thread.info.queues:
            self._try(thread, now, None)
        else:
            self.fail_at_once(thread, now, NO_ROUTE)

    def _try(self, thread: Thread, now: int, last_broker_name: str | None) -> None:
        """The next round of the loop: a pick, and an attempt if the deadline allows one."""
        queue = self.strategy.select(
            thread.info, thread.worst, last_broker_name, now, reset_index=last_broker_name is not None
        )
        self.recorder.pick(queue)
        budget = self.scenario.timeout_ms - (now - thread.began + thread.phase) // self.per_ms
        if budget < 0:
            self._end(thread, now, CALL_TIMEOUT)
            return
        reaction = self.start(thread, queue, now)
        if self._cap is not None and thread.attempt < self._attempts and budget > self._cap:
            budget = self._cap
        outcome, took = self._ends(thread, reaction, budget)
        self.under_way(thread, outcome, took, now)

    def _ends(self, thread: Thread, reaction: Reaction | None, budget: int) -> tuple[Outcome, int]:
        """What the attempt ends in, and after how many ticks.

        The client compares whole milliseconds of its clock: after a time-out it depends on how far into one the message
        began whether the deadline is over, or there is another attempt with no time at all. No request is written then.
        """
        simulation, outcomes = self.simulation, self.outcomes
        if thread.queue.broker_name in simulation.cluster.gone:
            return outcomes.no_address, simulation.empty
        if budget == 0:
            return outcomes.timeout, simulation.empty
        if reaction is not None and reaction.kind == "refused":
            return outcomes.refused, self.refusal_time(reaction)
        ticks = budget * self.per_ms
        if reaction is None or reaction.kind != "timeout":
            took = self.answer_time(thread, reaction)
            if took <= ticks:
                return outcomes.answer(reaction), took
        # Later attempts begin a known time after the first, and a cap ends it before the deadline comes near.
        if thread.attempt == 1 and self._cap is None:
            thread.phase = (simulation.draw(thread) >> 32) * self.per_ms >> 32
        return outcomes.timeout, ticks + simulation.overshoot

    def _done(self, thread: Thread, now: int) -> None:
        """An attempt ended: the fault strategy learns of it, and the loop goes on or ends."""
        outcome, name = thread.outcome, thread.queue.broker_name
        self.recorder.attempt_done(thread, now, outcome)
        self.learn(name, now - thread.started, now, isolation=outcome.isolation, reachable=outcome.reachable)
        if outcome.fate == "status":
            thread.kept += 1
        if outcome.retry and thread.attempt < self._attempts:
            self._try(thread, now, name)
        else:
            self._end(thread, now, outcome.lost_by)

    def _end(self, thread: Thread, now: int, lost_by: str | None) -> None:
        """An earlier attempt that was stored with a lesser status is the result, whatever came later."""
        if thread.kept:
            lost_by = None
            if thread.outcome.fate != "ok":
                self.not_store_ok()
            if thread.kept > 1 or thread.outcome.fate == "ok":
                self.recorder.add(Total.DUPLICATED)
        self.finish(thread, now, lost_by)
        self.clock.next_message(thread, now)
