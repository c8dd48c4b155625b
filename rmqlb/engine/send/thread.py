"""A sending thread's or a request's state: all there is between two of its wakings."""

from __future__ import annotations

from msgspec import Struct, field

from rmqlb.engine.send.outcome import SEND_OK, Outcome
from rmqlb.engine.send.publish_info import TopicPublishInfo
from rmqlb.model.message_queue import MessageQueue

_NOWHERE = MessageQueue("", "", -1)


class Thread(Struct, eq=False):
    """A sending thread, between two messages or waiting for an attempt to end; or one request of ASYNC sends.

    Attributes:
        number: from 1; a request has one below 0, of use to the order of events alone.
        key: of its random numbers.
        draws: how many of them it has used.
        arrival: number of the message it sends next, from 0, by arrival; its own messages are every K-th.
        handed_over_by: of an ASYNC request, the thread whose message it is and whose random numbers it uses.
        info: its view of the queue list, without queues before the first message.
        version: of the route that view is from.
        busy: an attempt is under way.
        message: number of the message under way.
        began: when that began.
        attempt: its attempt under way, from 1.
        queue: of that attempt.
        row: of that queue in the counters.
        outcome: what the attempt will end in.
        started: when the attempt began.
        kept: how many earlier attempts of the message were stored with a lesser status.
        failure: index of the failure that the attempt meets, or −1.
        first: broker of the first attempt of an ASYNC message.
        budget: how many ms an ASYNC attempt has.
        sent: brokers of the message's attempts.
        phase: how far into a millisecond the message began, drawn when it matters: after a time-out.
    """

    number: int
    key: int
    draws: int = 0
    arrival: int = 0
    handed_over_by: Thread | None = None
    info: TopicPublishInfo = field(default_factory=lambda: TopicPublishInfo((), 0, {}))
    version: int = -1
    busy: bool = False
    message: int = 0
    began: int = 0
    attempt: int = 0
    queue: MessageQueue = _NOWHERE
    row: int = 0
    outcome: Outcome = SEND_OK
    started: int = 0
    kept: int = 0
    failure: int = -1
    first: str = ""
    budget: int = 0
    sent: list[str] = field(default_factory=list)
    phase: int = 0

    @property
    def sender(self) -> Thread:
        """The sending thread."""
        return self.handed_over_by or self
