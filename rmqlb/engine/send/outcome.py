"""What one attempt ends in, and what the client makes of it."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from rmqlb.engine.send.profile import ClientProfile
from rmqlb.model.send_scenario import Reaction

_GO_AWAY = 1500
Fate = Literal["ok", "status", "remoting", "code"]


class Outcome(Struct, frozen=True):
    """One way for an attempt to end."""

    name: str  # SEND_OK, a status, an error code's name, or the exception's class
    fate: Fate  # stored; stored with a lesser status; a RemotingException; an MQBrokerException
    retry: bool = False  # a SYNC send tries another broker
    isolation: bool = False  # the fault strategy is told of a failure
    reachable: bool = True  # what it is told about the broker's reachability
    code: int | None = None  # the broker's response code, of an MQBrokerException

    @property
    def failed(self) -> bool:
        """Nothing was stored as far as the producer knows."""
        return self.fate in ("remoting", "code")

    @property
    def lost_by(self) -> str | None:
        """The reason under which a message counts that is lost by it; None when it is stored."""
        return self.name if self.failed else None


SEND_OK = Outcome("SEND_OK", "ok")


def broken(name: str, *, reachable: bool) -> Outcome:
    """The outcome of an attempt that ends in a RemotingException: it isolates, and another broker is tried."""
    return Outcome(name, "remoting", retry=True, isolation=True, reachable=reachable)


class Outcomes:
    """The outcomes of a client version, by what the broker does.

    With `detector` (`startDetectorEnable`) a broker that cannot be reached waits for the detector;
    `retry_not_store_ok` is `retryAnotherBrokerWhenNotStoreOK`. A broker that is gone from the client's route has no
    address: the attempt ends before anything is sent.
    """

    def __init__(self, profile: ClientProfile, *, detector: bool, retry_not_store_ok: bool) -> None:
        reachable = not detector
        self.no_address = Outcome("MQClientException", "remoting", retry=True, isolation=profile.client_error_isolates)
        self.refused = broken("RemotingConnectException", reachable=reachable)
        self.timeout = broken("RemotingTimeoutException", reachable=reachable)
        self._profile = profile
        self._retry_status = retry_not_store_ok
        self._known: dict[str, Outcome] = {}

    def answer(self, reaction: Reaction | None) -> Outcome:
        """What a broker that answers in time makes of an attempt."""
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
            return broken("RemotingSendRequestException", reachable=self.refused.reachable)
        retry = reaction.code in self._profile.retry_codes
        return Outcome(reaction.name, "code", retry=retry, isolation=True, reachable=False, code=reaction.code)
