"""Sends through a queue selector: `sendSelectImpl`, exactly one attempt, and the fault strategy learns nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

from rmqlb.engine.randomness import stream_key
from rmqlb.engine.send.clock import Thread
from rmqlb.engine.send.exceptions import NO_ROUTE, RETURNED_NULL, THREW
from rmqlb.engine.send.selectors import JavaRandom, hash_position
from rmqlb.engine.send.sender import Sender
from rmqlb.engine.send.simulation import SendSimulation
from rmqlb.engine.user_functions import SELECTOR, as_function, kind_of, quietly, shortened, thrown
from rmqlb.errors import DataError
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.send_scenario import Selector


class SelectorSender(Sender):
    """What a thread does that picks its queues itself."""

    def __init__(self, simulation: SendSimulation, selector: Selector) -> None:
        super().__init__(simulation)
        self._choose = _chooser(selector, stream_key(self.scenario.seed, simulation.trial, 0))

    def go_on(self, thread: Thread, now: int) -> None:
        if thread.busy:
            thread.busy = False
            self._done(thread, now)
            return
        self.begin(thread, now)
        queues = thread.info.queues
        self.simulation.surprises += 1  # nobody knows what a selector does next
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
        if queue.broker_name in self.simulation.cluster.gone:
            outcome, took = self.outcomes.no_address, self.simulation.empty
        elif reaction is not None and reaction.kind == "refused":
            outcome, took = self.outcomes.refused, self.refusal_time(reaction)
        else:
            outcome, took = self.outcomes.answer(reaction), self.answer_time(thread, reaction)
            if took > ticks or (reaction is not None and reaction.kind == "timeout"):
                outcome, took = self.outcomes.timeout, ticks + self.simulation.overshoot
        self.under_way(thread, outcome, took, now)

    def _done(self, thread: Thread, now: int) -> None:
        outcome = thread.outcome
        self.recorder.attempt_done(thread, now, outcome)
        if outcome.fate == "status":
            self.not_store_ok()
        self.finish(thread, now, outcome.lost_by)
        self.clock.next_message(thread, now)


class SelectorError(Exception):
    """What a user's selector throws."""


class _Asked:
    """A selector that a user wrote, asked as `sendSelectImpl` asks it: for each message, with a list of its own."""

    def __init__(self, selector: Selector) -> None:
        self._function = as_function(selector.function, SELECTOR)
        self._keys = selector.keys
        self._name = selector.name

    def queue_of(self, message: int, queues: list[MessageQueue]) -> MessageQueue | None:
        """The message's queue; raises SelectorError, DataError."""
        key = self._keys[(message - 1) % len(self._keys)] if self._keys else message
        try:
            queue: object = quietly(self._function, list(queues), key)
        except (Exception, SystemExit) as error:
            raise SelectorError(thrown(error, self._function)) from error
        if queue is None or (isinstance(queue, MessageQueue) and queue in queues):
            return queue
        found = str(queue) if isinstance(queue, MessageQueue) else kind_of(queue)
        raise DataError(
            f"selector {self._name} returned {found} for key {shortened(repr(key), 40)}",
            hint=f"return one of the {len(queues)} queues it is given, or None, as a Java class returns null",
            code="custom-answer",
        )


def _chooser(selector: Selector, seed: int) -> Callable[[int, list[MessageQueue]], MessageQueue | None]:
    """From a message's number and the queue list to its queue."""
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
            return _Asked(selector).queue_of
        case _ as unknown:
            assert_never(unknown)
