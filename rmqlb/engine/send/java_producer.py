"""RocketMQ's Java producer: SYNC, ASYNC and ONEWAY sends, and sends through a queue selector."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, assert_never

from rmqlb.engine.kernel import stream_key
from rmqlb.engine.send.attempt import (
    CALL_TIMEOUT,
    NO_ROUTE,
    RETURNED_NULL,
    THREW,
    UNNOTICED,
    Outcome,
    Thread,
    broken,
)
from rmqlb.engine.send.java import JavaRandom, hash_position
from rmqlb.engine.send.simulation import Producer
from rmqlb.engine.user_functions import SELECTOR, as_function, kind_of, quietly, shortened, thrown
from rmqlb.errors import DataError
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.send_scenario import Reaction, Selector

_SCAN_MS = 1000
"""`NettyRemotingAbstract.scanResponseTable` runs each second and gives a request one second more than its budget."""
_ILLEGAL_QUEUE = Outcome("INVALID_PARAMETER", "code", isolation=True, code=29)
_LATE = broken("RemotingTooMuchRequestException", reachable=False)
_HANDED_OVER = Outcome("ONEWAY", "ok")
_LOST_UNNOTICED = Outcome("ONEWAY_LOST", "code")


class SyncProducer(Producer):
    """`DefaultMQProducerImpl.sendDefaultImpl`: a loop over attempts with one deadline for all of them."""

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
        cap = self.scenario.timeout_per_request_ms if self.profile.caps_request else None
        if cap is not None and thread.attempt <= self.scenario.retries and budget > cap:
            budget = cap
        outcome, took = self._ends(thread, reaction, budget, capped=cap is not None)
        self.under_way(thread, outcome, took, now)

    def _ends(self, thread: Thread, reaction: Reaction | None, budget: int, *, capped: bool) -> tuple[Outcome, int]:
        """The attempt's outcome, and after how many ticks.

        The client compares whole milliseconds of its clock: after a time-out it depends on how far into one the message
        began whether the deadline is over, or there is another attempt with no time at all. No request is written then.
        """
        outcomes = self.outcomes
        if thread.queue.broker_name in self.cluster.gone:
            return outcomes.no_address, self.empty
        if budget == 0:
            return outcomes.timeout, self.empty
        if reaction is not None and reaction.kind == "refused":
            return outcomes.refused, self.answer_time(thread, reaction)
        ticks = budget * self.per_ms
        if reaction is None or reaction.kind != "timeout":
            took = self.answer_time(thread, reaction)
            if took <= ticks:
                return outcomes.answer(reaction), took
        # Later attempts begin a known time after the first, and a cap ends it before the deadline comes near.
        if thread.attempt == 1 and not capped:
            thread.phase = (self.draw(thread) >> 32) * self.per_ms >> 32
        return outcomes.timeout, ticks + self.overshoot

    def _done(self, thread: Thread, now: int) -> None:
        outcome, name = thread.outcome, thread.queue.broker_name
        self.recorder.attempt_done(thread, now, outcome)
        self.learn(name, now - thread.started, now, isolation=outcome.isolation, reachable=outcome.reachable)
        if outcome.fate == "status":
            thread.kept += 1
        if outcome.retry and thread.attempt <= self.scenario.retries:
            self._try(thread, now, name)
        else:
            self._end(thread, now, outcome.lost_by)

    def _end(self, thread: Thread, now: int, lost_by: str | None) -> None:
        """An earlier attempt that was stored with a lesser status is the result, whatever came later."""
        if thread.kept:
            lost_by = None
            if thread.outcome.fate != "ok":
                self.recorder.not_store_ok += 1
            if thread.kept > 1 or thread.outcome.fate == "ok":
                self.recorder.duplicated += 1
        self.finish(thread, now, lost_by)
        self.next_message(thread, now)


class AsyncProducer(Producer):
    """`MQClientAPIImpl.sendMessageAsync` and `onExceptionImpl`: the thread hands the message over and goes on.

    A retry asks the fault strategy for a broker, and keeps the queue id of the first attempt. Retries run on callback
    threads; one for each sending thread is assumed.
    """

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._callbacks = [
            Thread(len(self.threads) + thread.number, stream_key(self.scenario.seed, 0, thread.key & 0xFFFF_FFFF))
            for thread in self.threads
        ]
        # Objects of their own: the client tells the fault strategy other things than after SYNC sends, and `is` tells
        # them from a broker's answer of the same name.
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
        self.next_message(thread, now)

    def _send(self, thread: Thread, now: int) -> None:
        queue = self.strategy.select(thread.info, thread.worst, None, now)
        request = self.request_of(thread)
        request.first = queue.broker_name
        self._start(request, queue, now, self.scenario.timeout_ms)
        if not self._is_still_sending(request):
            self._hand_over(request, now)

    def _is_still_sending(self, request: Thread) -> bool:
        """The sending thread itself is refused, and retries: old clients connect before they hand over."""
        return request.busy and request.outcome is self._refused and self.profile.async_connects_first

    def _hand_over(self, request: Thread, now: int) -> None:
        """The sending thread is done; it reports success for the first broker, whatever happened meanwhile."""
        self.learn(request.first, now - request.began, now, isolation=False, reachable=True)

    def _start(self, request: Thread, queue: MessageQueue, now: int, budget: int) -> None:
        self.recorder.pick(queue)
        reaction = self.start(request, queue, now)
        request.budget = budget
        outcome, took = (_LATE, 0) if budget < 0 else self._ends(request, reaction, now, budget)
        self.under_way(request, outcome, took, now)

    def _ends(self, request: Thread, reaction: Reaction | None, now: int, budget: int) -> tuple[Outcome, int]:
        """The request's outcome, and after how long; an answer counts until the table is scanned."""
        if reaction is not None and reaction.kind == "refused":
            return self._refused, self.answer_time(request, reaction)
        scan = _SCAN_MS * self.per_ms
        given_up = -(-(now + budget * self.per_ms + scan) // scan) * scan - now
        if reaction is not None and reaction.kind == "timeout":
            return self._timeout, given_up
        took = self.answer_time(request, reaction)
        if took > given_up:
            return self._timeout, given_up
        if request.queue.queue_id >= self.cluster.queue_counts.get(request.queue.broker_name, 0):
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
            self.finish_stored(request, now)
        if was_sending and not self._is_still_sending(request) and not self.profile.async_raises:
            self._hand_over(request, now)

    def _learn(self, request: Thread, took: int, now: int) -> None:
        outcome, name = request.outcome, request.queue.broker_name
        if self.profile.async_raises and outcome is _LATE:
            return
        reachable = outcome.reachable or (outcome is _LATE and not self.profile.async_connects_first)
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
                self.look_at_route(callback)
            info, worst = callback.info, callback.worst
            info.queues = request.info.queues
        chosen = self.strategy.select(info, worst, request.queue.broker_name, now)
        queue = MessageQueue(chosen.topic, chosen.broker_name, request.queue.queue_id)
        self._start(request, queue, now, left)


class OnewayProducer(Producer):
    """`MQClientAPIImpl.sendMessage` with ONEWAY: nobody answers."""

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
            self.next_message(thread, now)

    def _send(self, thread: Thread, now: int) -> None:
        queue = self.strategy.select(thread.info, thread.worst, None, now)
        self.recorder.pick(queue)
        reaction = self.start(thread, queue, now)
        if reaction is not None and reaction.kind == "refused" and self.profile.oneway_tells:
            self.under_way(thread, self.outcomes.refused, self.answer_time(thread, reaction), now)
            return
        lost = reaction is not None and reaction.kind in ("refused", "timeout", "code")
        if not lost:
            self.recorder.will_succeed(thread)
        self.recorder.attempt_done(thread, now, _LOST_UNNOTICED if lost else _HANDED_OVER)
        self.learn(queue.broker_name, 0, now, isolation=False, reachable=True)
        self.finish(thread, now, UNNOTICED if lost else None)

    def _refused(self, thread: Thread, now: int) -> None:
        refused = self.outcomes.refused
        self.recorder.attempt_done(thread, now, refused)
        self.learn(thread.queue.broker_name, now - thread.started, now, isolation=True, reachable=refused.reachable)
        self.finish(thread, now, refused.name)


class SelectorProducer(Producer):
    """`DefaultMQProducerImpl.sendSelectImpl`: exactly one attempt, and the fault strategy learns nothing."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        seed = stream_key(self.scenario.seed, self.trial, 0)
        self._choose = _chooser(self.scenario.chosen_by or Selector("machine-room"), seed)

    def go_on(self, thread: Thread, now: int) -> None:
        if thread.busy:
            thread.busy = False
            self._done(thread, now)
            return
        self.begin(thread, now)
        queues = thread.info.queues
        lost_by = RETURNED_NULL if queues else NO_ROUTE
        try:
            queue = self._choose(thread.message, queues) if queues else None
        except SelectorError as error:
            queue, lost_by = None, THREW
            self.recorder.selector_threw = self.recorder.selector_threw or str(error)
        if queue is None:
            self.fail_at_once(thread, now, lost_by)
        else:
            self._try(thread, now, queue)

    def _try(self, thread: Thread, now: int, queue: MessageQueue) -> None:
        self.recorder.pick(queue)
        reaction = self.start(thread, queue, now)
        ticks = self.scenario.timeout_ms * self.per_ms
        if queue.broker_name in self.cluster.gone:
            outcome, took = self.outcomes.no_address, self.empty
        elif reaction is not None and reaction.kind == "refused":
            outcome, took = self.outcomes.refused, self.answer_time(thread, reaction)
        else:
            outcome, took = self.outcomes.answer(reaction), self.answer_time(thread, reaction)
            if took > ticks or (reaction is not None and reaction.kind == "timeout"):
                outcome, took = self.outcomes.timeout, ticks + self.overshoot
        self.under_way(thread, outcome, took, now)

    def _done(self, thread: Thread, now: int) -> None:
        self.recorder.attempt_done(thread, now, thread.outcome)
        self.finish_stored(thread, now)
        self.next_message(thread, now)


class SelectorError(Exception):
    """An exception of the user's selector."""


def _chooser(selector: Selector, seed: int) -> Callable[[int, list[MessageQueue]], MessageQueue | None]:
    match selector.kind:
        case "hash":
            hashes = selector.key_hashes or (0,)
            return lambda message, queues: queues[hash_position(hashes[(message - 1) % len(hashes)], len(queues))]
        case "random":
            random = JavaRandom(seed)
            return lambda _, queues: queues[random.next_int(len(queues))]
        case "machine-room":
            return lambda *_: None
        case "queue":
            return lambda *_: selector.queue
        case "function":
            return lambda message, queues: _call(selector, message, queues)
        case _ as unknown:
            assert_never(unknown)


def _call(selector: Selector, message: int, queues: list[MessageQueue]) -> MessageQueue | None:
    """Call the user's function as `sendSelectImpl` does: for each message, with a list of its own.

    Raises:
        SelectorError: the function raised.
        DataError: it returned something else than one of the queues or None.
    """
    function = as_function(selector.function, SELECTOR)
    key = selector.keys[(message - 1) % len(selector.keys)] if selector.keys else message
    try:
        queue: object = quietly(function, list(queues), key)
    except (Exception, SystemExit) as error:
        raise SelectorError(thrown(error, function)) from error
    if queue is None or (isinstance(queue, MessageQueue) and queue in queues):
        return queue
    found = str(queue) if isinstance(queue, MessageQueue) else kind_of(queue)
    raise DataError(
        f"selector {selector.name} returned {found} for key {shortened(repr(key), 40)}",
        hint=f"return one of the {len(queues)} queues it is given, or None, as a Java class returns null",
        code="custom-answer",
    )
