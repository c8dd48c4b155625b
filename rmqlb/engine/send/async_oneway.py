"""ASYNC and ONEWAY sends: the thread hands the message over and goes on.

Mirrors `MQClientAPIImpl.sendMessageAsync` and `onExceptionImpl`: a retry asks the fault strategy for a broker, and
keeps the queue id of the first attempt. Retries run on callback threads; one for each sending thread is assumed.
"""

from __future__ import annotations

from rmqlb.engine.randomness import stream_key
from rmqlb.engine.send.clock import Thread
from rmqlb.engine.send.exceptions import NO_ROUTE, UNNOTICED
from rmqlb.engine.send.outcome import Outcome, broken
from rmqlb.engine.send.sender import Sender
from rmqlb.engine.send.simulation import SendSimulation
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.send_scenario import Reaction

_SCAN_MS = 1000
"""`NettyRemotingAbstract.scanResponseTable` runs each second and gives a request one second more than its budget."""
_ILLEGAL_QUEUE = Outcome("INVALID_PARAMETER", "code", isolation=True, code=29)
_LATE = broken("RemotingTooMuchRequestException", reachable=False)
_HANDED_OVER = Outcome("ONEWAY", "ok")
_LOST_UNNOTICED = Outcome("ONEWAY_LOST", "code")


class AsyncSender(Sender):
    """What happens to messages with a callback."""

    def __init__(self, simulation: SendSimulation) -> None:
        super().__init__(simulation)
        seed, threads = self.scenario.seed, simulation.threads
        self._callbacks = [
            Thread(len(threads) + thread.number, stream_key(seed, 0, thread.key & 0xFFFF_FFFF)) for thread in threads
        ]
        simulation.indexed += self._callbacks
        self._requests = 0
        # Outcomes of their own, not those of SYNC sends: the client tells the fault strategy other things, and `is`
        # tells them apart from an answer of the same name.
        self._refused = broken(self.outcomes.refused.name, reachable=not self.profile.async_connects_first)
        self._timeout = broken(self.outcomes.timeout.name, reachable=True)

    def go_on(self, thread: Thread, now: int) -> None:
        if thread.busy:
            self._done(thread, now)
            return
        self.begin(thread, now)
        if thread.info.queues:
            self._send(thread, now)
        else:
            self.finish(thread, now, NO_ROUTE)
        self.clock.next_message(thread, now)

    def _send(self, thread: Thread, now: int) -> None:
        """The first attempt; the update that follows the hand-over says that all is well."""
        queue = self.strategy.select(thread.info, thread.worst, None, now)
        request = self._request(thread)
        request.first = queue.broker_name
        self._start(request, queue, now, self.scenario.timeout_ms)
        if not self._is_still_sending(request):
            self._hand_over(request, now)

    def _is_still_sending(self, request: Thread) -> bool:
        """The sending thread itself is refused, and retries: old clients connect before they hand over."""
        return request.busy and request.outcome is self._refused and self.profile.async_connects_first

    def _hand_over(self, request: Thread, now: int) -> None:
        """The sending thread is done; whatever it met meanwhile, it speaks well of the first broker only."""
        self.learn(request.first, now - request.began, now, isolation=False, reachable=True)

    def _request(self, thread: Thread) -> Thread:
        """A record of its own for the message: the thread goes on with its next."""
        self._requests += 1
        return Thread(
            number=self._requests - (1 << 40),
            key=0,
            handed_over_by=thread,
            info=thread.info,
            worst=thread.worst,
            version=thread.version,
            message=thread.message,
            began=thread.began,
        )

    def _start(self, request: Thread, queue: MessageQueue, now: int, budget: int) -> None:
        self.recorder.pick(queue)
        reaction = self.start(request, queue, now)
        request.budget = budget
        if budget < 0:
            outcome, took = _LATE, 0
        else:
            outcome, took = self._ends(request, reaction, now, budget)
        self.under_way(request, outcome, took, now)

    def _ends(self, request: Thread, reaction: Reaction | None, now: int, budget: int) -> tuple[Outcome, int]:
        """What the request ends in, and after how long; an answer counts until the table is scanned."""
        if reaction is not None and reaction.kind == "refused":
            return self._refused, self.refusal_time(reaction)
        scan = _SCAN_MS * self.per_ms
        given_up = -(-(now + budget * self.per_ms + scan) // scan) * scan - now
        if reaction is not None and reaction.kind == "timeout":
            return self._timeout, given_up
        took = self.answer_time(request, reaction)
        if took > given_up:
            return self._timeout, given_up
        if request.queue.queue_id >= self.simulation.cluster.queue_counts.get(request.queue.broker_name, 0):
            return _ILLEGAL_QUEUE, took
        outcome = self.outcomes.answer(reaction)
        if outcome.fate == "remoting":
            outcome = broken(outcome.name, reachable=True)
        elif outcome.fate == "code":
            outcome = Outcome(outcome.name, "code", isolation=True, code=outcome.code)
        return outcome, took

    def _done(self, request: Thread, now: int) -> None:
        outcome = request.outcome
        self.recorder.attempt_done(request, now, outcome)
        took = now - request.started
        self._learn(request, took, now)
        left = request.budget - took // self.per_ms
        was_sending = self._is_still_sending(request)
        if self._retries(request, left):
            self._retry(request, now, left)
        else:
            request.busy = False
            if outcome.fate == "status":
                self.not_store_ok()
            self.finish(request, now, outcome.lost_by)
        if was_sending and not self._is_still_sending(request) and not self.profile.async_raises:
            self._hand_over(request, now)

    def _learn(self, request: Thread, took: int, now: int) -> None:
        outcome, name = request.outcome, request.queue.broker_name
        connects_first = self.profile.async_connects_first
        reachable = outcome.reachable if outcome is not _LATE or connects_first else True
        if self.profile.async_raises and outcome is _LATE:
            return
        if self.profile.async_raises and outcome is self._refused and request.attempt > 1:
            name = request.sent[-2]
        self.learn(name, took, now, isolation=outcome.isolation, reachable=reachable)

    def _retries(self, request: Thread, left: int) -> bool:
        profile, outcome = self.profile, request.outcome
        if outcome.fate != "remoting" or request.attempt > self.scenario.retries:
            return False
        if outcome is _LATE and profile.async_late == "stops":
            return False
        if outcome is self._refused and profile.async_raises and request.attempt == 1:
            return False
        return left > 0 or not profile.async_needs_time

    def _retry(self, request: Thread, now: int, left: int) -> None:
        info, worst = request.info, request.worst
        if not self._is_still_sending(request):
            callback = self._callbacks[request.sender.number - 1]
            if callback.version != request.version:
                self.simulation.look_at_route(callback)
            info, worst = callback.info, callback.worst
            info.queues = request.info.queues
        chosen = self.strategy.select(info, worst, request.queue.broker_name, now)
        queue = MessageQueue(chosen.topic, chosen.broker_name, request.queue.queue_id)
        self._start(request, queue, now, left)


class OnewaySender(Sender):
    """What happens to messages that nobody answers."""

    def go_on(self, thread: Thread, now: int) -> None:
        if thread.busy:
            thread.busy = False
            self._refused(thread, now)
        else:
            self.begin(thread, now)
            if thread.info.queues:
                self._send(thread, now)
            else:
                self.finish(thread, now, NO_ROUTE)
        if not thread.busy:
            self.clock.next_message(thread, now)

    def _send(self, thread: Thread, now: int) -> None:
        """One attempt; clients before 5.3.0 wait for the connection."""
        queue = self.strategy.select(thread.info, thread.worst, None, now)
        self.recorder.pick(queue)
        reaction = self.start(thread, queue, now)
        if reaction is not None and reaction.kind == "refused" and self.profile.oneway_tells:
            self.under_way(thread, self.outcomes.refused, self.refusal_time(reaction), now)
            return
        lost = reaction is not None and reaction.kind in ("refused", "timeout", "code")
        outcome = _LOST_UNNOTICED if lost else _HANDED_OVER
        if not lost:
            self.recorder.failures.used(queue.broker_name, now)
        self.recorder.attempt_done(thread, now, outcome)
        self.learn(queue.broker_name, 0, now, isolation=False, reachable=True)
        self.finish(thread, now, UNNOTICED if lost else None)

    def _refused(self, thread: Thread, now: int) -> None:
        refused = self.outcomes.refused
        self.recorder.attempt_done(thread, now, refused)
        self.learn(thread.queue.broker_name, now - thread.started, now, isolation=True, reachable=refused.reachable)
        self.finish(thread, now, refused.name)
