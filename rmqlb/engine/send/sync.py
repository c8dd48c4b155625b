"""SYNC sends: `DefaultMQProducerImpl.sendDefaultImpl`, the loop over attempts with one deadline for all of them."""

from __future__ import annotations

from rmqlb.engine.send.counters import PICKS, Total
from rmqlb.engine.send.exceptions import CALL_TIMEOUT, NO_ROUTE
from rmqlb.engine.send.outcome import Outcome
from rmqlb.engine.send.simulation import Run
from rmqlb.engine.send.thread import Thread
from rmqlb.model.send_scenario import Reaction


class SyncSender:
    """What a thread does that waits for each attempt.

    Args:
        run: the simulation it is part of.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        scenario = run.scenario
        self._attempts = 1 + scenario.retries
        self._cap = scenario.timeout_per_request_ms if run.profile.caps_request else None
        self._empty = run.profile.empty_attempt_us * run.ticks_per_us

    def go_on(self, thread: Thread, now: int) -> None:
        """The thread wakes: its attempt is done, or its next message is due."""
        run = self._run
        if thread.busy:
            thread.busy = False
            self._done(thread, now)
            return
        run.begin(thread, now)
        if thread.info.queues:
            self._try(thread, now, None)
        else:
            run.fail_at_once(thread, now, NO_ROUTE)

    def _try(self, thread: Thread, now: int, last_broker_name: str | None) -> None:
        """The next round of the loop: a pick, and an attempt if the deadline allows one."""
        run = self._run
        queue = run.strategy.select(thread.info, last_broker_name, now, reset_index=last_broker_name is not None)
        run.tally.rows[run.tally.row(queue) + PICKS] += 1
        budget = run.scenario.timeout_ms - (now - thread.began + thread.phase) // run.per_ms
        if budget < 0:
            self._end(thread, now, CALL_TIMEOUT)
            return
        thread.attempt += 1
        if self._cap is not None and thread.attempt < self._attempts and budget > self._cap:
            budget = self._cap
        outcome, took = self._ends(thread, run.take(thread, queue, now), budget)
        run.under_way(thread, outcome, took, now)

    def _ends(self, thread: Thread, reaction: Reaction | None, budget: int) -> tuple[Outcome, int]:
        """What the attempt ends in, and after how long.

        The client compares whole milliseconds of its clock: after a time-out it depends on how far into one the message
        began whether the deadline is over, or there is another attempt with no time at all. No request is written then.
        """
        run = self._run
        if thread.queue.broker_name in run.cluster.gone:
            return run.outcomes.no_address, self._empty
        if budget == 0:
            return run.outcomes.timeout, self._empty
        if reaction is not None and reaction.kind == "refused":
            return run.outcomes.refused, reaction.cost_us * run.ticks_per_us
        ticks = budget * run.per_ms
        if reaction is None or reaction.kind != "timeout":
            took = run.answer_time(thread, reaction)
            if took <= ticks:
                return run.outcomes.answer(reaction), took
        if thread.attempt == 1 and self._cap is None:
            thread.phase = (run.draw(thread) >> 32) * run.per_ms >> 32
        return run.outcomes.timeout, ticks + run.overshoot

    def _done(self, thread: Thread, now: int) -> None:
        """An attempt ended: the fault strategy learns of it, and the loop goes on or ends."""
        run, outcome = self._run, thread.outcome
        run.done(thread, now, outcome)
        run.learn(
            thread.queue.broker_name,
            now - thread.started,
            now,
            isolation=outcome.isolation,
            reachable=outcome.reachable,
        )
        if outcome.fate == "status":
            thread.kept += 1
        if outcome.retry and thread.attempt < self._attempts:
            self._try(thread, now, thread.queue.broker_name)
        else:
            self._end(thread, now, outcome.lost_by)

    def _end(self, thread: Thread, now: int, lost_by: str | None) -> None:
        """An earlier attempt that was stored with a lesser status is the result, whatever came later."""
        run = self._run
        if thread.kept:
            lost_by = None
            if thread.outcome.fate != "ok":
                run.not_store_ok()
            if thread.kept > 1 or thread.outcome.fate == "ok":
                run.tally.totals[Total.DUPLICATED] += 1
        run.finish(thread, now, lost_by)
        run.next_message(thread, now)
