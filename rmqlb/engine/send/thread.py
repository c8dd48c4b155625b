"""A sending thread's or a request's state: all there is between two of its wakings."""

from __future__ import annotations

from rmqlb.engine.send.outcome import Outcome
from rmqlb.engine.send.publish_info import TopicPublishInfo
from rmqlb.model.message_queue import MessageQueue


class Thread:
    """A sending thread, between two messages or waiting for an attempt to end; or one request of ASYNC sends.

    Attributes:
        number: from 1; a request has one below 0, of use to the order of events alone.
        key: of its random numbers.
        draws: how many of them it has used.
        info: its view of the queue list, without queues before the first message.
        version: of the route that view is from.
        arrival: number of the message it sends next, from 0, by arrival; its own messages are every K-th.
        busy: an attempt is under way.
        message: number of the message under way.
        began: when that began.
        attempt: its attempt under way, from 1.
        queue: of that attempt.
        row: of that queue in the tally.
        outcome: what the attempt will end in.
        started: when the attempt began.
        kept: how many earlier attempts of the message were stored with a lesser status.
        failure: index of the failure that the attempt meets, or −1.
        first: broker of the first attempt of an ASYNC message.
        budget: how many ms an ASYNC attempt has.
        sent: brokers of the message's attempts.
        sender: of an ASYNC request, the thread that handed it over and whose random numbers it uses; else itself.
        phase: how far into a millisecond the message began, drawn when it matters: after a time-out.
    """

    __slots__ = (
        "arrival",
        "attempt",
        "began",
        "budget",
        "busy",
        "draws",
        "failure",
        "first",
        "info",
        "kept",
        "key",
        "message",
        "number",
        "outcome",
        "phase",
        "queue",
        "row",
        "sender",
        "sent",
        "started",
        "version",
    )

    def __init__(self, number: int, key: int, idle: Outcome, queue: MessageQueue) -> None:
        self.number = number
        self.key = key
        self.draws = 0
        self.info = TopicPublishInfo((), 0, {})
        self.version = -1
        self.arrival = number - 1
        self.busy = False
        self.message = 0
        self.began = 0
        self.attempt = 0
        self.queue = queue
        self.row = 0
        self.outcome = idle
        self.started = 0
        self.kept = 0
        self.failure = -1
        self.first = ""
        self.budget = 0
        self.sent: list[str] = []
        self.sender = self
        self.phase = 0
