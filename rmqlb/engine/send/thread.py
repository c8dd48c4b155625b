"""A sending thread's or a request's state: all there is between two of its wakings."""

from __future__ import annotations

from msgspec import Struct, field

from rmqlb.engine.send.outcome import SEND_OK, Outcome
from rmqlb.engine.send.publish_info import TopicPublishInfo
from rmqlb.model.message_queue import MessageQueue

_NOWHERE = MessageQueue("", "", -1)


class Thread(Struct, eq=False):
    """A sending thread, between two messages or waiting for an attempt to end; or one request of ASYNC sends."""

    number: int  # from 1; a request has one below 0, of use to the order of events alone
    key: int  # of its random numbers
    draws: int = 0  # how many of them it has used
    arrival: int = 0  # number of the message it sends next, from 0, by arrival; its own messages are every K-th
    # of an ASYNC request, the thread whose message it is and whose random numbers it uses
    handed_over_by: Thread | None = None
    # its view of the queue list, without queues before the first message
    info: TopicPublishInfo = field(default_factory=lambda: TopicPublishInfo((), 0, {}))
    version: int = -1  # of the route that view is from
    busy: bool = False  # an attempt is under way
    message: int = 0  # number of the message under way
    began: int = 0  # when that began
    attempt: int = 0  # its attempt under way, from 1
    queue: MessageQueue = _NOWHERE  # of that attempt
    row: int = 0  # of that queue in the counters
    outcome: Outcome = SEND_OK  # what the attempt will end in
    started: int = 0  # when the attempt began
    kept: int = 0  # how many earlier attempts of the message were stored with a lesser status
    failure: int = -1  # index of the failure that the attempt meets, or −1
    first: str = ""  # broker of the first attempt of an ASYNC message
    budget: int = 0  # how many ms an ASYNC attempt has
    sent: list[str] = field(default_factory=list)  # brokers of the message's attempts
    phase: int = 0  # how far into a millisecond the message began, drawn when it matters: after a time-out

    @property
    def sender(self) -> Thread:
        """The sending thread."""
        return self.handed_over_by or self
