"""Servers that do not answer: remembered while a cluster is read, so that each costs one timeout and not one per read.

Rule of this file: only a request that every server answers by itself, and at once, shows that a server is silent. A
broker passes the request for a consumer's running information on (`AdminBrokerProcessor.callConsumer`), works on the
progress of a large group for a while, and 4.9 never answers a request code that it does not know.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

from rmqlb.errors import EndpointError
from rmqlb.remoting.codes import RequestCode

_PROMPT = frozenset(
    {
        RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG,
        RequestCode.GET_BROKER_CLUSTER_INFO,
        RequestCode.GET_CONSUMER_CONNECTION_LIST,
        RequestCode.GET_MAX_OFFSET,
        RequestCode.GET_MIN_OFFSET,
        RequestCode.GET_ROUTEINFO_BY_TOPIC,
        RequestCode.QUERY_CONSUMER_OFFSET,
    }
)


class SilentServers:
    """Address → why the server there counts as silent; may be used by several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._errors: dict[str, EndpointError] = {}

    def note(self, address: str, code: int, error: EndpointError) -> None:
        """Remember the server if a request with this code, which failed, shows that it is silent."""
        if error.code == "unreachable" or (error.code == "no-answer" and code in _PROMPT):
            with self._lock:
                self._errors[address] = error

    def must_answer(self, address: str) -> None:
        """Refuse to ask a silent server again (raises EndpointError with the reason of its first silence)."""
        error = self._errors.get(address)
        if error is not None:
            raise EndpointError(error.message, hint=error.hint, code=error.code)

    def __contains__(self, address: str) -> bool:
        return address in self._errors

    def forget(self, addresses: Sequence[str]) -> None:
        """Let these servers be asked again."""
        with self._lock:
            for address in addresses:
                self._errors.pop(address, None)
