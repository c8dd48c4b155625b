"""A message on its way: the thread that sends it, its latest attempt, and how an attempt ends."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field

from rmqlb.engine.send.fault import TopicPublishInfo
from rmqlb.model.message_queue import MessageQueue

NO_ROUTE = "no route"


class Outcome(Struct, frozen=True):
    name: str  # SEND_OK, a status, an error code's name, or the exception's class
    # stored; stored with a lesser status; a RemotingException; an MQBrokerException
    fate: Literal["ok", "status", "remoting", "code"]
    retry: bool = False  # another broker is tried
    isolation: bool = False  # the fault strategy learns that the attempt failed
    reachable: bool = True  # for the fault strategy
    code: int | None = None  # the broker's response code, of an MQBrokerException

    @property
    def failed(self) -> bool:
        return self.fate in ("remoting", "code")

    @property
    def lost_by(self) -> str | None:
        return self.name if self.failed else None


SEND_OK = Outcome("SEND_OK", "ok")


def broken(name: str, *, reachable: bool) -> Outcome:
    return Outcome(name, "remoting", retry=True, isolation=True, reachable=reachable)


def _no_queues_yet() -> TopicPublishInfo:
    return TopicPublishInfo((), 0, {})


class Thread(Struct, eq=False):
    number: int  # from 1
    key: int  # of its random numbers
    arrival: int = 0  # number of its next message by arrival, from 0; its own messages are every K-th
    draws: int = 0  # random numbers used so far
    free: int = 0  # the tick from which it may begin its next message
    info: TopicPublishInfo = field(default_factory=_no_queues_yet)  # its view of the queue list
    version: int = -1  # of the route of `info`
    # its index among isolated brokers, which a new route does not reset
    worst: TopicPublishInfo = field(default_factory=_no_queues_yet)


class Message(Struct, eq=False):
    number: int
    thread: Thread
    began: int
    info: TopicPublishInfo  # the thread's when the message began
    version: int  # of the route of `info`
    attempt: int = 0  # number of the attempt, from 1
    queue: MessageQueue = MessageQueue("", "", -1)
    outcome: Outcome = SEND_OK  # in which the attempt ends
    started: int = 0  # tick of the attempt's begin
    failure: int | None = None  # index of the failure that the attempt meets
    budget: int = 0  # ms that an ASYNC attempt has
    phase: int = 0  # ticks from a full millisecond to the message's begin, drawn after a time-out
    sent: list[str] = []  # brokers of the attempts
