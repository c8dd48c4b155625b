"""RocketMQ's Java producer: SYNC, ASYNC and ONEWAY sends, and sends through a queue selector."""

from collections.abc import Callable
from typing import Any, assert_never

from msgspec.structs import replace

from rmqlb.engine.arguments import SELECTOR, as_function, kind_of, quietly, shortened, thrown
from rmqlb.engine.kernel import Draws, stream_key
from rmqlb.engine.send.cluster import NO_ROUTE, SEND_OK, Message, Outcome, Thread, broken
from rmqlb.engine.send.fault import FaultStrategy
from rmqlb.engine.send.java import JavaRandom
from rmqlb.engine.send.producer import Producer, Steps
from rmqlb.errors import CustomAnswerError
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.send_scenario import Reaction, Selector
from rmqlb.model.simulate_send import MessageException

CALL_TIMEOUT = "call timeout"
UNNOTICED = "lost unnoticed"
RETURNED_NULL = "select message queue return null"
THREW = "select message queue threw exception"
"""Reasons of a loss without a failed attempt."""
CLIENT, BROKER = "MQClientException", "MQBrokerException"
CONNECT, TIMED_OUT = "RemotingConnectException", "RemotingTimeoutException"
SEND, TOO_MUCH = "RemotingSendRequestException", "RemotingTooMuchRequestException"
_NO_CODE = -1
_FINAL_CODES = {CONNECT: 10001, TIMED_OUT: 10002, CLIENT: 10003}
"""`ClientErrorCode`, by the class of the last attempt's exception."""
_NO_ROUTE_CODE = 10005
_DETECTS_EACH_MS = 3000
_DETECT_TIMEOUT_US = 200_000
"""`LatencyFaultToleranceImpl` queries unreachable brokers that often, and waits so long for an answer."""
_SCAN_MS = 1000
"""`NettyRemotingAbstract.scanResponseTable` runs each second and gives a request one second more than its budget."""
_GO_AWAY = 1500
_ILLEGAL_QUEUE = Outcome("INVALID_PARAMETER", "code", isolation=True, code=29)
_LATE = broken(TOO_MUCH, reachable=False)
_HANDED_OVER = Outcome("ONEWAY", "ok")
_LOST_UNNOTICED = Outcome("ONEWAY_LOST", "code")


class JavaProducer(Producer):
    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        scenario, profile = self.scenario, self.profile
        self.strategy = FaultStrategy(profile, enabled=scenario.latency_fault, per_ms=self.per_ms)
        self._next_detect = _DETECTS_EACH_MS * self.per_ms
        self._detects = scenario.detector and scenario.latency_fault and profile.only_extends
        overshoot_us = profile.overshoot_us if scenario.overshoot_us is None else scenario.overshoot_us
        self.overshoot = overshoot_us * self.per_us  # of a timed-out SYNC attempt, beyond its budget
        self.empty = profile.empty_attempt_us * self.per_us  # of an attempt without time left, or without an address
        # A broker that is gone from the client's route has no address: nothing is sent.
        self.no_address = Outcome(CLIENT, "remoting", retry=True, isolation=profile.client_error_isolates)
        self.refused = broken(CONNECT, reachable=not scenario.detector)
        self.timeout = broken(TIMED_OUT, reachable=not scenario.detector)

    def advance(self, now: int) -> None:
        super().advance(now)
        if now < self._next_detect:
            return
        period = _DETECTS_EACH_MS * self.per_ms
        self._next_detect += ((now - self._next_detect) // period + 1) * period
        for name, item in self.strategy.items.items() if self._detects else ():
            item.reachable = item.reachable or not is_silent(self.reaction_of(name))

    def answer(self, message: Message, reaction: Reaction | None) -> Outcome:  # noqa: ARG002 - for ASYNC
        if reaction is None or reaction.kind == "slow":
            return SEND_OK
        if reaction.kind == "status":
            return Outcome(reaction.name, "status", retry=self.scenario.retry_not_store_ok)
        if reaction.code == _GO_AWAY and self.profile.resends_go_away:
            return broken(SEND, reachable=self.refused.reachable)
        retry = reaction.code in self.profile.retry_codes
        return Outcome(reaction.name, "code", retry=retry, isolation=True, reachable=False, code=reaction.code)

    def learn(self, broker_name: str, took: int, *, isolation: bool, reachable: bool) -> None:
        strategy, now = self.strategy, self.now
        if not strategy.enabled:
            return
        before = strategy.items[broker_name].start if broker_name in strategy.items else 0
        start = strategy.update(broker_name, took // self.per_ms, now, isolation=isolation, reachable=reachable)
        if start > now and start != before:
            self.recorder.isolate(broker_name, now, start)
        elif start <= now < before:
            self.recorder.isolated_until(broker_name, now, now)

    def exception(self, message: Message, at: int, reason: str) -> MessageException | None:
        """Mirror the ends of `sendDefaultImpl` and `sendSelectImpl`, and `onExceptionImpl` for ASYNC callbacks.

        A text is None where only a broker or a socket knows it (an error response's remark, a time-out's address).
        """
        selects = self.scenario.chosen_by is not None
        alone = selects or self.scenario.mode == "async"  # the exception of one attempt, not of all together
        if reason == UNNOTICED:
            return None
        if reason in (RETURNED_NULL, THREW):
            return self._client(f"{reason}.")
        if reason == NO_ROUTE and selects:
            return self._client(f"No route info for this topic, {self.route.topic}")
        if reason == NO_ROUTE:
            return self._client(f"No route info of this topic: {self.route.topic}", code=_NO_ROUTE_CODE, see=True)
        if reason == CALL_TIMEOUT:
            return MessageException(TOO_MUCH, "sendDefaultImpl call timeout")
        if message.outcome.fate == "code" and (alone or not message.outcome.retry):
            return MessageException(BROKER, response_code=message.outcome.code)
        make = self._of_selector if selects else self._of_callback if alone else self._of_all_attempts
        return make(message, at)

    def _of_selector(self, message: Message, _: int) -> MessageException:
        if message.outcome.name == CLIENT:
            return self._client(f"The broker[{message.queue.broker_name}] not exist")
        return MessageException(message.outcome.name, self._unwrapped_text(message))

    def _of_all_attempts(self, message: Message, at: int) -> MessageException:
        cost, outcome = (at - message.began + message.phase) // self.per_ms, message.outcome
        text = f"Send [{message.attempt}] times, still failed, cost [{cost}]ms, Topic: {self.route.topic}"
        text += f", BrokersSent: [{', '.join(message.sent)}]"
        if outcome.fate == "code":
            return self._client(text, code=outcome.code, cause=BROKER, see=True)
        return self._client(text, code=_FINAL_CODES.get(outcome.name, _NO_CODE), cause=outcome.name, see=True)

    def _of_callback(self, message: Message, at: int) -> MessageException:
        """`SendCallback.onException`, of a RemotingException."""
        profile, name = self.profile, message.outcome.name
        if name == TIMED_OUT and profile.async_tells_cost:
            return self._client(f"wait response timeout, cost={(at - message.started) // self.per_ms}", cause=name)
        if name == TIMED_OUT:
            return self._client(f"wait response timeout {message.budget}ms")
        if name == SEND:
            return self._client("send request failed", cause=name)
        if not profile.async_connects_first:
            return self._client("unknown reason", cause=name)
        if name == CONNECT and profile.async_raises and message.attempt == 1:
            return self._of_all_attempts(message, at)
        return MessageException(name, self._unwrapped_text(message))

    def _unwrapped_text(self, message: Message) -> str | None:
        name, broker = message.outcome.name, self.route.broker(message.queue.broker_name)
        address = None if broker is None else broker.broker_addrs.get(0)
        if name == TOO_MUCH and not self.profile.late_names_address:
            return "invokeAsync call timeout"
        known = {CONNECT: f"connect to {address} failed", TOO_MUCH: f"invokeAsync call the addr[{address}] timeout"}
        return None if address is None else known.get(name)

    def _client(
        self, text: str, *, code: int | None = _NO_CODE, cause: str | None = None, see: bool = False
    ) -> MessageException:
        """An MQClientException, to whose text `FAQUrl` adds a link."""
        url = self.profile.faq_url
        tail = f"See {url} for further details." if see else f"For more information, please visit the url, {url}"
        return MessageException(CLIENT, f"{text}\n{tail}", code, cause)


def is_silent(reaction: Reaction | None) -> bool:
    """Whether the broker does not answer the detector in time."""
    if reaction is None:
        return False
    too_slow = reaction.kind == "slow" and reaction.cost_us > _DETECT_TIMEOUT_US
    return too_slow or reaction.kind in ("refused", "timeout")


class SyncProducer(JavaProducer):
    """`DefaultMQProducerImpl.sendDefaultImpl`: a loop over attempts with one deadline for all of them."""

    def send(self, thread: Thread) -> Steps:
        message, retries = self.begin(thread), self.scenario.retries
        if not message.info.queues:
            self.fail_at_once(message, NO_ROUTE)
            return
        cap = self.scenario.timeout_per_request_ms if self.profile.caps_request else None
        kept, last = 0, None  # earlier attempts that were stored with a lesser status; the broker of the one before
        while True:
            queue = self.strategy.select(message.info, thread.worst, last, self.now, reset_index=last is not None)
            budget = self.scenario.timeout_ms - (self.now - message.began + message.phase) // self.per_ms
            if budget < 0:
                self.recorder.pick(queue)
                lost_by: str | None = CALL_TIMEOUT
                break
            reaction = self.start(message, queue)
            if cap is not None and message.attempt <= retries:
                budget = min(budget, cap)
            yield from self.attempt(message, *self._ends(message, reaction, budget, capped=cap is not None))
            outcome, last = message.outcome, queue.broker_name
            self.learn(last, self.now - message.started, isolation=outcome.isolation, reachable=outcome.reachable)
            kept += outcome.fate == "status"
            if not outcome.retry or message.attempt > retries:
                lost_by = outcome.lost_by
                break
        if kept:  # an earlier attempt that was stored with a lesser status is the result, whatever came later
            lost_by = None
            self.recorder.not_store_ok += message.outcome.fate != "ok"
            self.recorder.duplicated += kept > 1 or message.outcome.fate == "ok"
        self.finish(message, lost_by)

    def _ends(self, message: Message, reaction: Reaction | None, budget: int, *, capped: bool) -> tuple[Outcome, int]:
        """The attempt's outcome, and after how many ticks.

        The client compares whole milliseconds: how far into a millisecond the message began decides whether a time-out
        ends the message, or another attempt follows with no time at all, for which no request is written.
        """
        if message.queue.broker_name in self.cluster.gone:
            return self.no_address, self.empty
        if budget == 0:
            return self.timeout, self.empty
        outcome, took = self.ends(message, reaction, budget * self.per_ms)
        # Later attempts begin a known time after the first, and a cap ends it before the deadline comes near.
        if outcome is self.timeout and message.attempt == 1 and not capped:
            message.phase = self.below(self.per_ms, message.thread)
        return outcome, took


class AsyncProducer(JavaProducer):
    """`MQClientAPIImpl.sendMessageAsync` and `onExceptionImpl`: the thread hands the message over and goes on.

    A retry takes its broker from the fault strategy and its queue id from the first attempt. Retries run on callback
    threads; one callback thread per sending thread is assumed.
    """

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        number, seed = len(self.threads), self.scenario.seed
        keys = ((each.number, stream_key(seed, 0, self.key(each.number) & 0xFFFF_FFFF)) for each in self.threads)
        self._callbacks = [Thread(number + own, Draws(key)) for own, key in keys]
        # Separate objects: the fault strategy learns something else than after SYNC sends, and `is` distinguishes the
        # objects from a broker's answer of the same name.
        self.refused = broken(CONNECT, reachable=not self.profile.async_connects_first)
        self.timeout = broken(TIMED_OUT, reachable=True)
        self.overshoot = 0

    def send(self, thread: Thread) -> Steps:
        message = self.begin(thread)
        if not message.info.queues:
            self.finish(message, NO_ROUTE)
            return iter(())
        self.spawn(thread, self._send(message, self.strategy.select(message.info, thread.worst, None, self.now)))
        if not self._is_sending(message):
            self._hand_over(message)
        return iter(())

    def _is_sending(self, message: Message) -> bool:
        """Whether the sending thread itself is refused and retries: old clients connect before they hand over."""
        return message.outcome is self.refused and self.profile.async_connects_first

    def _hand_over(self, message: Message) -> None:
        """Record success for the first broker when the sending thread is done, whatever happened meanwhile."""
        self.learn(message.sent[0], self.now - message.began, isolation=False, reachable=True)

    def _send(self, message: Message, queue: MessageQueue) -> Steps:
        message.budget, was_sending = self.scenario.timeout_ms, False
        while True:
            reaction = self.start(message, queue)
            # An answer counts until the table is scanned.
            scan = _SCAN_MS * self.per_ms
            given_up = -(-(self.now + message.budget * self.per_ms + scan) // scan) * scan - self.now
            outcome, took = (_LATE, 0) if message.budget < 0 else self.ends(message, reaction, given_up)
            self.under_way(message, outcome)
            if was_sending and not self._is_sending(message) and not self.profile.async_raises:
                self._hand_over(message)
            yield took
            self.recorder.attempt_done(message, self.now)
            self._learn(message, took)
            left, was_sending = message.budget - took // self.per_ms, self._is_sending(message)
            if not self._retries(message, left):
                break
            queue, message.budget = self._next_queue(message, was_sending), left
        self.finish_stored(message)
        if was_sending and not self.profile.async_raises:
            self._hand_over(message)

    def answer(self, message: Message, reaction: Reaction | None) -> Outcome:
        if message.queue.queue_id >= self.cluster.queue_counts.get(message.queue.broker_name, 0):
            return _ILLEGAL_QUEUE
        outcome = super().answer(message, reaction)
        return outcome if outcome.reachable else replace(outcome, reachable=True)

    def _learn(self, message: Message, took: int) -> None:
        outcome, profile = message.outcome, self.profile
        if profile.async_raises and outcome is _LATE:
            return
        reachable = outcome.reachable or (outcome is _LATE and not profile.async_connects_first)
        self.learn(message.queue.broker_name, took, isolation=outcome.isolation, reachable=reachable)

    def _retries(self, message: Message, left: int) -> bool:
        profile, outcome = self.profile, message.outcome
        if outcome.fate != "remoting" or message.attempt > self.scenario.retries:
            return False
        if outcome is _LATE and profile.async_late == "stops":
            return False
        if outcome is self.refused and profile.async_raises and message.attempt == 1:
            return False
        return left > 0 or not profile.async_needs_time

    def _next_queue(self, message: Message, is_sending: bool) -> MessageQueue:
        info, worst = message.info, message.thread.worst
        if not is_sending:
            callback = self._callbacks[message.thread.number - 1]
            if callback.version != message.version:
                self.adopt_route(callback)
            info, worst = callback.info, callback.worst
            info.queues = message.info.queues
        chosen = self.strategy.select(info, worst, message.queue.broker_name, self.now)
        return MessageQueue(chosen.topic, chosen.broker_name, message.queue.queue_id)


class OnewayProducer(JavaProducer):
    """`MQClientAPIImpl.sendMessage` with ONEWAY: nobody answers."""

    def send(self, thread: Thread) -> Steps:
        message = self.begin(thread)
        if not message.info.queues:
            self.finish(message, NO_ROUTE)
            return
        queue = self.strategy.select(message.info, thread.worst, None, self.now)
        reaction = self.start(message, queue)
        if reaction is not None and reaction.kind == "refused" and self.profile.oneway_tells:
            yield from self.attempt(message, self.refused, self.answer_time(message, reaction))
            took = self.now - message.started
            self.learn(queue.broker_name, took, isolation=True, reachable=self.refused.reachable)
            self.finish(message, self.refused.name)
            return
        lost = reaction is not None and reaction.kind in ("refused", "timeout", "code")
        self.under_way(message, _LOST_UNNOTICED if lost else _HANDED_OVER)
        self.recorder.attempt_done(message, self.now)
        self.learn(queue.broker_name, 0, isolation=False, reachable=True)
        self.finish(message, UNNOTICED if lost else None)


class SelectorProducer(JavaProducer):
    """`DefaultMQProducerImpl.sendSelectImpl`: exactly one attempt, and the fault strategy learns nothing."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._choose = _chooser(self.scenario.chosen_by or Selector("machine-room"), seed=self.key(0))

    def send(self, thread: Thread) -> Steps:
        message = self.begin(thread)
        queues = message.info.queues
        lost_by = RETURNED_NULL if queues else NO_ROUTE
        try:
            queue = self._choose(message.number, queues) if queues else None
        except SelectorError as error:
            queue, lost_by = None, THREW
            self.recorder.selector_threw = self.recorder.selector_threw or str(error)
        if queue is None:
            self.fail_at_once(message, lost_by)
            return
        yield from self.attempt(message, *self._ends(message, self.start(message, queue)))
        self.finish_stored(message)

    def _ends(self, message: Message, reaction: Reaction | None) -> tuple[Outcome, int]:
        if message.queue.broker_name in self.cluster.gone:
            return self.no_address, self.empty
        ticks, took = self.scenario.timeout_ms * self.per_ms, self.answer_time(message, reaction)
        if reaction is not None and reaction.kind == "refused":
            return self.refused, took
        if took > ticks or (reaction is not None and reaction.kind == "timeout"):
            return self.timeout, ticks + self.overshoot
        return self.answer(message, reaction), took


class SelectorError(Exception):
    """An exception of the user's selector."""


def _chooser(selector: Selector, seed: int) -> Callable[[int, list[MessageQueue]], MessageQueue | None]:
    match selector.kind:
        case "hash":
            hashes = selector.key_hashes or (0,)
            return lambda message, queues: queues[abs(hashes[(message - 1) % len(hashes)]) % len(queues)]
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
    """Call the user's function as `sendSelectImpl` does, with a list of its own (raises SelectorError, DataError)."""
    function = as_function(selector.function, SELECTOR)
    key = selector.keys[(message - 1) % len(selector.keys)] if selector.keys else message
    try:
        queue: object = quietly(function, list(queues), key)
    except (Exception, SystemExit) as error:
        raise SelectorError(thrown(error, function)) from error
    if queue is None or (isinstance(queue, MessageQueue) and queue in queues):
        return queue
    found = str(queue) if isinstance(queue, MessageQueue) else kind_of(queue)
    problem = f"selector {selector.name} returned {found} for key {shortened(repr(key), 40)}"
    hint = f"return one of the {len(queues)} given queues, or None where a Java class returns null"
    raise CustomAnswerError(problem, hint=hint)
