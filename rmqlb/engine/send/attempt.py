"""An attempt to send: the thread that makes it, its outcome, and the exception when the message is lost.

Mirrors the ends of `DefaultMQProducerImpl.sendDefaultImpl` and `sendSelectImpl`, and `MQClientAPIImpl.onExceptionImpl`
for the callback of ASYNC sends; differences between versions are in `ClientProfile`. An exception's text is None where
it holds what only a broker or a socket knows (the remark of an error response, the address of a time-out).
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field

from rmqlb.engine.send.fault import TopicPublishInfo
from rmqlb.engine.send.profile import ClientProfile
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.route import TopicRouteData
from rmqlb.model.send_scenario import Reaction, SendScenario
from rmqlb.model.simulate_send import LostMessage, MessageException

_GO_AWAY = 1500
_NOWHERE = MessageQueue("", "", -1)

NO_ROUTE = "no route"
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


class Outcome(Struct, frozen=True):
    """One way for an attempt to end."""

    name: str  # SEND_OK, a status, an error code's name, or the exception's class
    # stored; stored with a lesser status; a RemotingException; an MQBrokerException
    fate: Literal["ok", "status", "remoting", "code"]
    retry: bool = False  # a SYNC send tries another broker
    isolation: bool = False  # what the fault strategy is told: the attempt failed
    reachable: bool = True  # what the fault strategy is told about the broker
    code: int | None = None  # the broker's response code, of an MQBrokerException

    @property
    def failed(self) -> bool:
        """Nothing was stored as far as the producer knows."""
        return self.fate in ("remoting", "code")

    @property
    def lost_by(self) -> str | None:
        """The reason of the loss if the message ends with this outcome; None when it is stored."""
        return self.name if self.failed else None


SEND_OK = Outcome("SEND_OK", "ok")


class Thread(Struct, eq=False):
    """A sending thread, between two messages or waiting for an attempt to end; or one request of ASYNC sends."""

    number: int  # from 1; requests have numbers below 0, which only order events
    key: int  # of its random numbers
    draws: int = 0  # random numbers used so far
    arrival: int = 0  # number of its next message by arrival, from 0; its own messages are every K-th
    handed_over_by: Thread | None = None  # of an ASYNC request, the thread that sent it
    info: TopicPublishInfo = field(default_factory=lambda: TopicPublishInfo((), 0, {}))  # its view of the queue list
    # its index among isolated brokers, which a new route does not reset
    worst: TopicPublishInfo = field(default_factory=lambda: TopicPublishInfo((), 0, {}))
    version: int = -1  # of the route of `info`
    busy: bool = False  # an attempt is under way
    pausing: bool = False  # it waits before its next attempt
    message: int = 0  # number of the message under way
    began: int = 0  # when the message began
    attempt: int = 0  # number of its attempt under way, from 1
    queue: MessageQueue = _NOWHERE  # of that attempt
    outcome: Outcome = SEND_OK  # in which the attempt will end
    started: int = 0  # when the attempt began
    kept: int = 0  # earlier attempts of the message that were stored with a lesser status
    failure: int | None = None  # index of the failure that the attempt meets
    first: str = ""  # broker of the first attempt of an ASYNC message
    budget: int = 0  # ms that an ASYNC attempt has
    sent: list[str] = field(default_factory=list)  # brokers of the message's attempts
    phase: int = 0  # how far into a millisecond the message began, drawn after a time-out, when it matters

    @property
    def sender(self) -> Thread:
        return self.handed_over_by or self


def broken(name: str, *, reachable: bool) -> Outcome:
    """The outcome of a RemotingException: it isolates the broker, and another broker is tried."""
    return Outcome(name, "remoting", retry=True, isolation=True, reachable=reachable)


class Outcomes:
    """The outcomes of a client version, by the broker's reaction.

    With the detector (`startDetectorEnable`) an unreachable broker waits for it. A broker that is gone from the
    client's route has no address: the attempt ends before anything is sent.
    """

    def __init__(self, profile: ClientProfile, scenario: SendScenario) -> None:
        reachable = not scenario.detector
        self.no_address = Outcome(CLIENT, "remoting", retry=True, isolation=profile.client_error_isolates)
        self.refused = broken(CONNECT, reachable=reachable)
        self.timeout = broken(TIMED_OUT, reachable=reachable)
        self._profile = profile
        self._retry_status = scenario.retry_not_store_ok
        self._known: dict[str, Outcome] = {}

    def answer(self, reaction: Reaction | None) -> Outcome:
        if reaction is None or reaction.kind == "slow":
            return SEND_OK
        known = self._known.get(reaction.name)
        if known is None:
            known = self._known[reaction.name] = self._answer(reaction)
        return known

    def _answer(self, reaction: Reaction) -> Outcome:
        if reaction.kind == "status":
            return Outcome(reaction.name, "status", retry=self._retry_status)
        if reaction.code == _GO_AWAY and self._profile.resends_go_away:
            return broken(SEND, reachable=self.refused.reachable)
        retry = reaction.code in self._profile.retry_codes
        return Outcome(reaction.name, "code", retry=retry, isolation=True, reachable=False, code=reaction.code)


class Exceptions:
    """Makes the exceptions of a simulation."""

    def __init__(self, route: TopicRouteData, scenario: SendScenario, profile: ClientProfile, per_ms: int) -> None:
        self._topic = route.topic
        self._addresses = {data.broker_name: data.broker_addrs.get(0) for data in route.broker_datas}
        self._scenario, self._profile, self._per_ms = scenario, profile, per_ms

    def lost(self, thread: Thread, now: int, reason: str) -> LostMessage:
        return LostMessage(
            message=thread.message,
            thread=thread.sender.number,
            at_ms=now / self._per_ms,
            reason=reason,
            brokers_sent=tuple(thread.sent),
            exception=self._exception(thread, now, reason),
        )

    def _exception(self, thread: Thread, now: int, reason: str) -> MessageException | None:
        if reason == UNNOTICED:
            return None
        if self._scenario.sdk != "java":  # the application gets an error of its language, whose text is not simulated
            return MessageException(reason, response_code=thread.outcome.code if thread.attempt else None)
        if self._scenario.chosen_by is not None:
            return self._of_selector(thread, reason)
        if reason == NO_ROUTE:
            return self._client(f"No route info of this topic: {self._topic}", code=_NO_ROUTE_CODE, see=True)
        if reason == CALL_TIMEOUT:
            return MessageException(TOO_MUCH, "sendDefaultImpl call timeout")
        outcome = thread.outcome
        if self._scenario.mode == "async":
            return self._of_callback(thread, now, outcome)
        if outcome.fate == "code" and not outcome.retry:
            return MessageException(BROKER, response_code=outcome.code)
        return self._of_all_attempts(thread, now, outcome)

    def _of_all_attempts(self, thread: Thread, now: int, outcome: Outcome) -> MessageException:
        cost = (now - thread.began + thread.phase) // self._per_ms
        text = (
            f"Send [{thread.attempt}] times, still failed, cost [{cost}]ms, Topic: {self._topic}, "
            f"BrokersSent: [{', '.join(thread.sent)}]"
        )
        if outcome.fate == "code":
            return self._client(text, code=outcome.code, cause=BROKER, see=True)
        return self._client(text, code=_FINAL_CODES.get(outcome.name, _NO_CODE), cause=outcome.name, see=True)

    def _of_callback(self, thread: Thread, now: int, outcome: Outcome) -> MessageException:
        """`SendCallback.onException`."""
        profile, name = self._profile, outcome.name
        if outcome.fate == "code":
            return MessageException(BROKER, response_code=outcome.code)
        if name == TIMED_OUT:
            if profile.async_tells_cost:
                cost = (now - thread.started) // self._per_ms
                return self._client(f"wait response timeout, cost={cost}", cause=name)
            return self._client(f"wait response timeout {thread.budget}ms")
        if name == SEND:
            return self._client("send request failed", cause=name)
        if not profile.async_connects_first:
            return self._client("unknown reason", cause=name)
        if name == CONNECT and profile.async_raises and thread.attempt == 1:
            return self._of_all_attempts(thread, now, outcome)
        return MessageException(name, self._own_text(name, thread.queue.broker_name))

    def _own_text(self, name: str, broker_name: str) -> str | None:
        address = self._addresses.get(broker_name)
        if name == TOO_MUCH and not self._profile.late_names_address:
            return "invokeAsync call timeout"
        if address is None:
            return None
        known = {CONNECT: f"connect to {address} failed", TOO_MUCH: f"invokeAsync call the addr[{address}] timeout"}
        return known.get(name)

    def _of_selector(self, thread: Thread, reason: str) -> MessageException:
        if reason == NO_ROUTE:
            return self._client(f"No route info for this topic, {self._topic}")
        if reason in (RETURNED_NULL, THREW):
            return self._client(f"{reason}.")
        outcome, broker_name = thread.outcome, thread.queue.broker_name
        if outcome.fate == "code":
            return MessageException(BROKER, response_code=outcome.code)
        if outcome.name == CLIENT:
            return self._client(f"The broker[{broker_name}] not exist")
        return MessageException(outcome.name, self._own_text(outcome.name, broker_name))

    def _client(
        self, text: str, *, code: int | None = _NO_CODE, cause: str | None = None, see: bool = False
    ) -> MessageException:
        """An MQClientException, to whose text `FAQUrl` adds a link."""
        url = self._profile.faq_url
        tail = f"See {url} for further details." if see else f"For more information, please visit the url, {url}"
        return MessageException(CLIENT, f"{text}\n{tail}", code, cause)
