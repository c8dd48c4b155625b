"""Opening the source that the text of `--source` names."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from rmqlb.errors import EndpointError, UsageError
from rmqlb.sources.source import Access
from rmqlb.sources.source_text import is_login_without_scheme

if TYPE_CHECKING:
    from rmqlb.sources.dashboard import DashboardReads
    from rmqlb.sources.dump import DumpSource
    from rmqlb.sources.live import LiveSource
    from rmqlb.sources.native.source import NameServerReads

_NAME_SERVER_PATH = "/rocketmq/nsaddr"
_NAME_SERVER_PORT = 9876
_LONGEST_ADDRESS_LIST = 64 * 1024
_ALMOST = r"(?i)\s*(https?|rocketmqs?):/*(?=[^/].*@)"
"""A mistyped URL must not count as a file: errors have a file's whole name, and a URL may hold a password."""


def for_another_reading(access: Access) -> Access:
    from rmqlb.sources.pace import Deadline, Pace, SilentServers

    pace = access.pace or Pace()
    return replace(access, pace=pace, deadline=Deadline(access.deadline_s, pace.now), silent=SilentServers())


def open_source(text: str, access: Access) -> DumpSource | LiveSource:
    if access.map_address:
        from rmqlb.sources.native.wire import parse_address_map

        parse_address_map(access.map_address)
    if access.proxies:
        from rmqlb.sources.native.source import proxy_address

        for proxy in access.proxies:
            proxy_address(proxy)
    if not text:
        raise UsageError("the source is empty", hint="-s takes HOST:9876, a URL, a file, or - for stdin")
    scheme = re.match(r"([A-Za-z][A-Za-z0-9+.-]*)://", text) if ":" in text else None
    if scheme is None and ":" in text and (almost := re.match(_ALMOST, text)):
        begins = "a blank" if text[0].isspace() else almost[0]
        raise UsageError(f"the source begins with {begins}, which is not a URL", hint=f"write {almost[1]}://HOST")
    if scheme is None and ":" in text and is_login_without_scheme(text):
        raise UsageError(
            "the source names a user and perhaps a password, but is neither a URL nor a file",
            hint="write https://USER@HOST for a Dashboard; the password goes to RMQLB_PASSWORD or --password-file",
        )
    if scheme is None:
        from rmqlb.sources.dump import DumpSource

        return DumpSource(text, max_bytes=access.max_bytes)
    opener = OPENERS.get(scheme[1].lower())
    if opener is None:
        hint = f"-s takes {', '.join(f'{kind}://' for kind in OPENERS)}, a file, or - for stdin"
        raise UsageError(f"cannot read {scheme[1]}:// sources", hint=hint, code="unknown-source")
    from rmqlb.sources.live import LiveSource

    return LiveSource(opener(text, access if access.silent is not None else for_another_reading(access)))


def _name_servers(hosts: str) -> list[str]:
    from rmqlb.sources.native.wire import parse_address

    if "@" in hosts:
        hint = "for a cluster with ACL, pass --access-key, and its secret in RMQLB_SECRET_KEY or --secret-key-file"
        raise UsageError("the source names a user, but RocketMQ's protocol has no users", hint=hint)
    parts = [parse_address(part, _NAME_SERVER_PORT) for part in re.split("[,;]", hosts.rstrip("/")) if part]
    if not parts:
        raise UsageError("the source has no NameServer", hint="write rocketmq://HOST:9876,HOST:9876")
    return [f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in parts]


def _named(text: str, access: Access, *, tls: bool = False) -> NameServerReads:
    from rmqlb.sources.native.source import NameServerReads

    return NameServerReads(_name_servers(text.partition("://")[2]), access, tls=tls)


def _over_http(text: str, access: Access) -> DashboardReads | NameServerReads:
    from rmqlb.sources.dashboard import DashboardReads

    if text.endswith(_NAME_SERVER_PATH):
        return _address_server(text, access)
    url, user = _without_login(text)
    return DashboardReads(url, replace(access, user=user or access.user))


def _address_server(url: str, access: Access) -> NameServerReads:
    """The NameServers that an address server lists in plain text (`TopAddressing.fetchNSAddr`).

    Raises UsageError for an access key over plain HTTP: an impostor of the address server would choose the hosts that
    get signed requests.
    """
    from rmqlb.sources.dashboard import HttpClient

    url, _ = _without_login(url)
    with closing(HttpClient(url, replace(access, max_bytes=_LONGEST_ADDRESS_LIST))) as http:
        answer = http.get("")
    if answer.status != 200:
        raise EndpointError(f"{answer.where}: HTTP {answer.status}", hint="is this an address server?")
    text = answer.body.decode("utf-8", "replace").strip()
    try:
        servers = f"rocketmq://{','.join(_name_servers(text))}"
    except UsageError:
        hint = "expected HOST:PORT;HOST:PORT; for a Dashboard, leave out /rocketmq"
        raise EndpointError(f"{answer.where}: not a list of NameServers: {text[:60]!r}", hint=hint) from None
    if access.access_key is not None and not url.lower().startswith("https:"):
        raise UsageError(
            "rmqlb does not sign requests to hosts that an address server names over plain HTTP",
            hint=f"use the address server's https:// URL, or name its hosts yourself: -s {servers}",
            code="hosts-over-http",
        )
    return _named(servers, access)


def _without_login(text: str) -> tuple[str, str | None]:
    from urllib.parse import unquote, urlsplit, urlunsplit

    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        # Text before an @ may be a password: one with a slash in it looks like a port.
        problem = "its login, host or port is malformed" if "@" in text else error
        raise UsageError(f"the source is not a URL: {problem}") from None
    if not host:
        raise UsageError(f"the source {parts.scheme}://… has no host", hint="write http://HOST:8082")
    if parts.password is not None:
        raise UsageError(
            "the source's URL contains a password, which others can see in the process list and the shell's history",
            hint="keep the user, and pass the password in RMQLB_PASSWORD or with --password-file",
            code="password-in-url",
        )
    netloc = (f"[{host}]" if ":" in host else host) + ("" if port is None else f":{port}")
    user = unquote(parts.username) if parts.username else None
    return urlunsplit((parts.scheme, netloc, parts.path, "", "")), user


OPENERS: Mapping[str, Callable[[str, Access], DashboardReads | NameServerReads]] = {
    "rocketmq": _named,
    "rocketmqs": partial(_named, tls=True),
    "http": _over_http,
    "https": _over_http,
}  # scheme → opener, for the schemes of `source_text.LIVE`
