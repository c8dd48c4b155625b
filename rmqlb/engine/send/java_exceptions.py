"""The exception that a Java application gets for a lost message.

Mirrors the ends of `DefaultMQProducerImpl.sendDefaultImpl` and `sendSelectImpl`, and `MQClientAPIImpl.onExceptionImpl`
for the callback of ASYNC sends; differences between versions are in `ClientProfile`. An exception's text is None where
it holds what only a broker or a socket knows (the remark of an error response, the address of a time-out).
"""

from __future__ import annotations

from rmqlb.engine.send.message import NO_ROUTE, Message
from rmqlb.engine.send.profile import ClientProfile
from rmqlb.model.route import TopicRouteData
from rmqlb.model.send_scenario import SendScenario
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


class Exceptions:
    """Makes the exceptions of a simulation."""

    def __init__(self, route: TopicRouteData, scenario: SendScenario, profile: ClientProfile, per_ms: int) -> None:
        self._topic = route.topic
        self._addresses = {data.broker_name: data.broker_addrs.get(0) for data in route.broker_datas}
        self._scenario, self._profile, self._per_ms = scenario, profile, per_ms

    def of(self, message: Message, at: int, reason: str) -> MessageException | None:
        """The exception for a message that is lost for that reason; None when the application gets none."""
        selects = self._scenario.chosen_by is not None
        alone = selects or self._scenario.mode == "async"  # the exception of one attempt, not of all together
        if reason == UNNOTICED:
            return None
        if reason in (RETURNED_NULL, THREW):
            return self._client(f"{reason}.")
        if reason == NO_ROUTE and selects:
            return self._client(f"No route info for this topic, {self._topic}")
        if reason == NO_ROUTE:
            return self._client(f"No route info of this topic: {self._topic}", code=_NO_ROUTE_CODE, see=True)
        if reason == CALL_TIMEOUT:
            return MessageException(TOO_MUCH, "sendDefaultImpl call timeout")
        if message.outcome.fate == "code" and (alone or not message.outcome.retry):
            return MessageException(BROKER, response_code=message.outcome.code)
        make = self._of_selector if selects else self._of_callback if alone else self._of_all_attempts
        return make(message, at)

    def _of_selector(self, message: Message, _: int) -> MessageException:
        if message.outcome.name == CLIENT:
            return self._client(f"The broker[{message.queue.broker_name}] not exist")
        return MessageException(message.outcome.name, self._own_text(message))

    def _of_all_attempts(self, message: Message, at: int) -> MessageException:
        cost, outcome = (at - message.began + message.phase) // self._per_ms, message.outcome
        text = (
            f"Send [{message.attempt}] times, still failed, cost [{cost}]ms, Topic: {self._topic}, "
            f"BrokersSent: [{', '.join(message.sent)}]"
        )
        if outcome.fate == "code":
            return self._client(text, code=outcome.code, cause=BROKER, see=True)
        return self._client(text, code=_FINAL_CODES.get(outcome.name, _NO_CODE), cause=outcome.name, see=True)

    def _of_callback(self, message: Message, at: int) -> MessageException:
        """`SendCallback.onException`, of a RemotingException."""
        profile, name = self._profile, message.outcome.name
        if name == TIMED_OUT and profile.async_tells_cost:
            cost = (at - message.started) // self._per_ms
            return self._client(f"wait response timeout, cost={cost}", cause=name)
        if name == TIMED_OUT:
            return self._client(f"wait response timeout {message.budget}ms")
        if name == SEND:
            return self._client("send request failed", cause=name)
        if not profile.async_connects_first:
            return self._client("unknown reason", cause=name)
        if name == CONNECT and profile.async_raises and message.attempt == 1:
            return self._of_all_attempts(message, at)
        return MessageException(name, self._own_text(message))

    def _own_text(self, message: Message) -> str | None:
        """The text of a RemotingException that no other one wraps."""
        name, address = message.outcome.name, self._addresses.get(message.queue.broker_name)
        if name == TOO_MUCH and not self._profile.late_names_address:
            return "invokeAsync call timeout"
        if address is None:
            return None
        known = {CONNECT: f"connect to {address} failed", TOO_MUCH: f"invokeAsync call the addr[{address}] timeout"}
        return known.get(name)

    def _client(
        self, text: str, *, code: int | None = _NO_CODE, cause: str | None = None, see: bool = False
    ) -> MessageException:
        """An MQClientException, to whose text `FAQUrl` adds a link."""
        url = self._profile.faq_url
        tail = f"See {url} for further details." if see else f"For more information, please visit the url, {url}"
        return MessageException(CLIENT, f"{text}\n{tail}", code, cause)
