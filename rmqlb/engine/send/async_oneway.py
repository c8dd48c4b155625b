"""ASYNC and ONEWAY sends: the thread hands the message over and goes on.

Mirrors `MQClientAPIImpl.sendMessageAsync` and `onExceptionImpl`: a retry asks the fault strategy for a broker, and
keeps the queue id of the first attempt. Retries run on callback threads; one for each sending thread is assumed.
"""

from __future__ import annotations

from rmqlb.engine.randomness import stream_key
from rmqlb.engine.send.counters import PICKS
from rmqlb.engine.send.exceptions import NO_ROUTE, UNNOTICED
from rmqlb.engine.send.outcome import Outcome, broken
from rmqlb.engine.send.simulation import Run
from rmqlb.engine.send.thread import Thread
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.send_scenario import Reaction

_SCAN_MS = 1000
"""`NettyRemotingAbstract.scanResponseTable` runs each second and gives a request one second more than its budget."""
_ILLEGAL_QUEUE = Outcome("INVALID_PARAMETER", "code", isolation=True, code=29)
_LATE = broken("RemotingTooMuchRequestException", reachable=False)
_HANDED_OVER = Outcome("ONEWAY", "ok")
_LOST_UNNOTICED = Outcome("ONEWAY_LOST", "code")


class AsyncSender:
    """What happens to messages with a callback.

    Args:
        run: the simulation it is part of.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        count = len(run.threads)
        self._callbacks = [
            Thread(
                count + thread.number,
                stream_key(run.scenario.seed, 0, thread.key & 0xFFFF_FFFF),
                run.outcomes.ok,
                thread.queue,
            )
            for thread in run.threads
        ]
        run.indexed += self._callbacks
        self._requests = 0
        connects_first = run.profile.async_connects_first
        self._refused = broken(run.outcomes.refused.name, reachable=not connects_first)
        self._timeout = broken(run.outcomes.timeout.name, reachable=True)

    def go_on(self, thread: Thread, now: int) -> None:
        """A sending thread's next message is due, or a request is done."""
        run = self._run
        if thread.busy:
            self._done(thread, now)
            return
        run.begin(thread, now)
        if thread.info.queues:
            self._send(thread, now)
        else:
            run.finish(thread, now, NO_ROUTE)
        run.next_message(thread, now)

    def _send(self, thread: Thread, now: int) -> None:
        """The first attempt; the update that follows the hand-over says that all is well."""
        run = self._run
        queue = run.strategy.select(thread.info, None, now)
        request = self._request(thread)
        request.first = queue.broker_name
        self._start(request, queue, now, run.scenario.timeout_ms)
        if not self._is_still_sending(request):
            self._hand_over(request, now)

    def _is_still_sending(self, request: Thread) -> bool:
        """The sending thread itself is refused, and retries: old clients connect before they hand over."""
        return request.busy and request.outcome is self._refused and self._run.profile.async_connects_first

    def _hand_over(self, request: Thread, now: int) -> None:
        """The sending thread is done; whatever it met meanwhile, it speaks well of the first broker only."""
        self._run.learn(request.first, now - request.began, now, isolation=False, reachable=True)

    def _request(self, thread: Thread) -> Thread:
        """A record of its own for the message: the thread goes on with its next."""
        self._requests += 1
        request = Thread(self._requests - (1 << 40), 0, thread.outcome, thread.queue)
        request.message, request.began = thread.message, thread.began
        request.info, request.version = thread.info, thread.version
        request.sender = thread
        return request

    def _start(self, request: Thread, queue: MessageQueue, now: int, budget: int) -> None:
        run = self._run
        run.tally.rows[run.tally.row(queue) + PICKS] += 1
        request.attempt += 1
        reaction = run.take(request, queue, now)
        request.budget = budget
        if budget < 0:
            outcome, took = _LATE, 0
        else:
            outcome, took = self._ends(request, reaction, now, budget)
        run.under_way(request, outcome, took, now)

    def _ends(self, request: Thread, reaction: Reaction | None, now: int, budget: int) -> tuple[Outcome, int]:
        """What the request ends in, and after how long; an answer counts until the table is scanned."""
        run = self._run
        if reaction is not None and reaction.kind == "refused":
            return self._refused, reaction.cost_us * run.ticks_per_us
        scan = _SCAN_MS * run.per_ms
        given_up = -(-(now + budget * run.per_ms + scan) // scan) * scan - now
        if reaction is not None and reaction.kind == "timeout":
            return self._timeout, given_up
        took = run.answer_time(request, reaction)
        if took > given_up:
            return self._timeout, given_up
        if request.queue.queue_id >= run.cluster.queue_counts.get(request.queue.broker_name, 0):
            return _ILLEGAL_QUEUE, took
        outcome = run.outcomes.answer(reaction)
        if outcome.fate == "remoting":
            outcome = broken(outcome.name, reachable=True)
        elif outcome.fate == "code":
            outcome = Outcome(outcome.name, "code", isolation=True, code=outcome.code)
        return outcome, took

    def _done(self, request: Thread, now: int) -> None:
        run, outcome = self._run, request.outcome
        run.done(request, now, outcome)
        took = now - request.started
        self._learn(request, took, now)
        left = request.budget - took // run.per_ms
        was_sending = self._is_still_sending(request)
        if self._retries(request, left):
            self._retry(request, now, left)
        else:
            request.busy = False
            if outcome.fate == "status":
                run.not_store_ok()
            run.finish(request, now, outcome.lost_by)
        if was_sending and not self._is_still_sending(request) and not run.profile.async_raises:
            self._hand_over(request, now)

    def _learn(self, request: Thread, took: int, now: int) -> None:
        run, outcome, name = self._run, request.outcome, request.queue.broker_name
        connects_first = run.profile.async_connects_first
        reachable = outcome.reachable if outcome is not _LATE or connects_first else True
        if run.profile.async_raises and outcome is _LATE:
            return
        if run.profile.async_raises and outcome is self._refused and request.attempt > 1:
            name = request.sent[-2]
        run.learn(name, took, now, isolation=outcome.isolation, reachable=reachable)

    def _retries(self, request: Thread, left: int) -> bool:
        profile, outcome = self._run.profile, request.outcome
        if outcome.fate != "remoting" or request.attempt > self._run.scenario.retries:
            return False
        if outcome is _LATE and profile.async_late == "stops":
            return False
        if outcome is self._refused and profile.async_raises and request.attempt == 1:
            return False
        return left > 0 or not profile.async_needs_time

    def _retry(self, request: Thread, now: int, left: int) -> None:
        """Another broker, the same queue id."""
        run = self._run
        info = request.info
        if not self._is_still_sending(request):
            callback = self._callbacks[request.sender.number - 1]
            if callback.version != request.version:
                run.look_at_route(callback)
            info = callback.info
            info.queues = request.info.queues
        chosen = run.strategy.select(info, request.queue.broker_name, now)
        queue = MessageQueue(chosen.topic, chosen.broker_name, request.queue.queue_id)
        self._start(request, queue, now, left)


class OnewaySender:
    """What happens to messages that nobody answers.

    Args:
        run: the simulation it is part of.
    """

    def __init__(self, run: Run) -> None:
        self._run = run

    def go_on(self, thread: Thread, now: int) -> None:
        """The thread's next message is due, or its connection was refused."""
        run = self._run
        if thread.busy:
            thread.busy = False
            self._refused(thread, now)
        else:
            run.begin(thread, now)
            if thread.info.queues:
                self._send(thread, now)
            else:
                run.finish(thread, now, NO_ROUTE)
        if not thread.busy:
            run.next_message(thread, now)

    def _send(self, thread: Thread, now: int) -> None:
        """One attempt; clients before 5.3.0 wait for the connection."""
        run = self._run
        queue = run.strategy.select(thread.info, None, now)
        run.tally.rows[run.tally.row(queue) + PICKS] += 1
        thread.attempt = 1
        reaction = run.take(thread, queue, now)
        if reaction is not None and reaction.kind == "refused" and run.profile.oneway_tells:
            run.under_way(thread, run.outcomes.refused, reaction.cost_us * run.ticks_per_us, now)
            return
        lost = reaction is not None and reaction.kind in ("refused", "timeout", "code")
        outcome = _LOST_UNNOTICED if lost else _HANDED_OVER
        run.uses(thread, outcome)
        run.done(thread, now, outcome)
        run.learn(queue.broker_name, 0, now, isolation=False, reachable=True)
        run.finish(thread, now, UNNOTICED if lost else None)

    def _refused(self, thread: Thread, now: int) -> None:
        run, refused = self._run, self._run.outcomes.refused
        run.done(thread, now, refused)
        run.learn(thread.queue.broker_name, now - thread.started, now, isolation=True, reachable=refused.reachable)
        run.finish(thread, now, refused.name)
