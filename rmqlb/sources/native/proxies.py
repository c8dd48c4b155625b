"""The consumers that Proxies list, through their remoting port.

Of rmqlb's requests a Proxy answers only 203 on that port (which consumers of a group are online, since 5.1.1). Its
answers have an ext field that those of brokers and NameServers lack.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Sequence
from datetime import datetime

from rmqlb.errors import EndpointError, RmqlbError, UsageError
from rmqlb.model.group import Connection, ProxyView, Seen, is_grpc
from rmqlb.model.snapshot import Unread
from rmqlb.remoting.codes import RequestCode, ResponseCode
from rmqlb.remoting.command import request
from rmqlb.sources.formats import documents as docs
from rmqlb.sources.formats.limits import require_few_values
from rmqlb.sources.native.wire import RemotingClient, WireSettings, parse_address
from rmqlb.sources.source import utc_now

PROXY_PORT = 8080  # default `remotingListenPort`
_MARK = "MSG_REGION"  # in each answer of a Proxy's own (`AbstractRemotingActivity.writeResponse`)
_TRY = "give its remoting port (remotingListenPort, 8080 if not set)"
TLS_PREFIX = "rocketmqs://"
_GRPC = f"if it is a Proxy's gRPC port, {_TRY}"

Answer = tuple[ProxyView, docs.ConnectionsDocument | None]  # the document when a consumer is online


def proxy_address(text: str, where: str = "--proxy") -> str:
    """`HOST:PORT` of HOST, HOST:PORT or rocketmq(s)://HOST:PORT (raises UsageError)."""
    found = re.fullmatch(r"(?:rocketmqs?://)?(.+)", text)
    try:
        host, port = parse_address(found[1].rstrip("/") if found else text, PROXY_PORT)
    except UsageError:
        # Text before an @ may be a password.
        problem = "it names a user" if "@" in text else f"{text[:80]!a} is not the address of a Proxy"
        hint = "write HOST or HOST:8080, with the Proxy's remoting port; once for each Proxy"
        raise UsageError(f"{where}: {problem}", hint=hint) from None
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


class Proxies:
    """Several Proxies; thread-safe. A silent Proxy gets no further request."""

    def __init__(
        self, addresses: Sequence[str], settings: WireSettings, clock: Callable[[], datetime] = utc_now
    ) -> None:
        self.client = RemotingClient(settings)
        self._max_bytes = settings.max_bytes
        self._clock = clock
        self._locks = {address: threading.Lock() for address in addresses}
        self._lost: dict[str, str] = {}

    def consumers(self, group: str) -> list[Answer]:
        return [answer for address in self._locks if (answer := self._listed(address, group)) is not None]

    def unread(self) -> list[Unread]:
        return [Unread("proxy", address, reason) for address, reason in self._lost.items()]

    def close(self) -> None:
        self.client.close()

    def _listed(self, address: str, group: str) -> Answer | None:
        with self._locks[address]:
            if address in self._lost:
                return None
            try:
                document = self._document(address, group)
            except RmqlbError as error:
                self._lost[address] = error.message
                return None
        # Each process once: each of several Proxies lists a consumer that is connected to all of them several times, as
        # its own and as that of the others. The ID of a gRPC client is unique; processes that share one have an address
        # each.
        found: dict[tuple[str, str | None], Connection] = {}
        for each in () if document is None else docs.connections(document):
            found.setdefault((each.client_id, None if is_grpc(each.client_id) else each.client_addr), each)
        return ProxyView(tuple(found.values()), Seen(f"Proxy {address}", self._clock()), address), document

    def _document(self, address: str, group: str) -> docs.ConnectionsDocument | None:
        command = request(RequestCode.GET_CONSUMER_CONNECTION_LIST, consumerGroup=group)
        try:
            response = self.client.call(address, command)
        except RmqlbError as error:
            unheard = error.code in ("unreachable", "tls-failed")
            also = "is its remoting port (remotingListenPort, 8080 if not set) open from here?" if unheard else _GRPC
            raise EndpointError(f"{error.message}; {also}") from None
        if _MARK not in response.ext_fields:
            if response.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED:
                raise EndpointError(f"a NameServer answers there, or a Proxy before 5.1.1; {_TRY}")
            raise EndpointError(f"a broker answers there, not a Proxy; {_TRY}")
        if response.code == ResponseCode.CONSUMER_NOT_ONLINE:
            return None
        if response.code != ResponseCode.SUCCESS:
            text = docs.first_line(response.remark or "no reason given")
            raise EndpointError(f"it refuses to tell its consumers: code {response.code}: {text}")
        body, where = response.body or b"{}", f"Proxy {address}"
        require_few_values(body, where, self._max_bytes)
        return docs.convert(docs.parse_document(body, where), docs.ConnectionsDocument, where)
