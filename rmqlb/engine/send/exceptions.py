"""What the application is told of a message that is lost: the exception, in the client's own words.

Mirrors the ends of `DefaultMQProducerImpl.sendDefaultImpl` and `sendSelectImpl`, and `MQClientAPIImpl.onExceptionImpl`
for the callback of ASYNC sends; what differs from version to version is in `ClientProfile`.

Rule of this file: a text that holds what only a broker or a socket knows (the remark of an error response, the address
that a client measured its time-out at) is None.
"""

from __future__ import annotations

from rmqlb.engine.send.clock import Thread
from rmqlb.engine.send.outcome import Outcome
from rmqlb.engine.send.profile import ClientProfile
from rmqlb.model.route import TopicRouteData
from rmqlb.model.send_report import LostMessage, MessageException
from rmqlb.model.send_scenario import SendScenario

NO_ROUTE = "no route"
CALL_TIMEOUT = "call timeout"
UNNOTICED = "lost unnoticed"
RETURNED_NULL = "select message queue return null"
THREW = "select message queue threw exception"
"""Reasons of a loss that are no attempt's outcome."""
CLIENT, BROKER = "MQClientException", "MQBrokerException"
CONNECT, TIMED_OUT = "RemotingConnectException", "RemotingTimeoutException"
SEND, TOO_MUCH = "RemotingSendRequestException", "RemotingTooMuchRequestException"
_NO_CODE = -1
_FINAL_CODES = {CONNECT: 10001, TIMED_OUT: 10002, CLIENT: 10003}
"""`ClientErrorCode`, by the class of the last attempt's exception."""
_NO_ROUTE_CODE = 10005


class Exceptions:
    """Makes the exceptions of a simulation."""

    def __init__(self, route: TopicRouteData, scenario: SendScenario, profile: ClientProfile, per_ms: int) -> None:
        self._topic = route.topic
        self._addresses = {data.broker_name: data.broker_addrs.get(0) for data in route.broker_datas}
        self._scenario, self._profile, self._per_ms = scenario, profile, per_ms

    def lost(self, thread: Thread, now: int, reason: str) -> LostMessage:
        """What is known of a message that was just lost, by the thread's last attempt or before any."""
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
        """Of an exception of the transport that comes as it was thrown."""
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
        """An MQClientException, to whose text `FAQUrl` adds where to look."""
        url = self._profile.faq_url
        tail = f"See {url} for further details." if see else f"For more information, please visit the url, {url}"
        return MessageException(CLIENT, f"{text}\n{tail}", code, cause)
