"""Opening the source that the text of `--source` names."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from rmqlb.errors import EndpointError, UsageError
from rmqlb.sources.formats.limits import DEFAULT_LIMIT
from rmqlb.sources.source_text import is_login_without_scheme

if TYPE_CHECKING:
    from rmqlb.sources.dashboard import DashboardReads
    from rmqlb.sources.dump import DumpSource
    from rmqlb.sources.live import LiveSource
    from rmqlb.sources.native.source import NameServerReads
    from rmqlb.sources.native.wire import WireSettings
    from rmqlb.sources.pace import Deadline, Pace, SilentServers

_NAME_SERVER_PATH = "/rocketmq/nsaddr"
_NAME_SERVER_PORT = 9876
_LONGEST_ADDRESS_LIST = 64 * 1024
DEADLINE_S = 60.0  # default for all reads of one reading
_ALMOST = r"(?i)\s*(https?|rocketmqs?):/*(?=[^/].*@)"
"""A mistyped URL must not count as a file: errors have a file's whole name, and a URL may hold a password."""


class Access(Struct, frozen=True):
    user: str | None = None
    password: Callable[[str], str] | None = None
    ca_file: str | None = None
    timeout: float = 5.0  # seconds per answer
    retries: int = 2
    max_bytes: int = DEFAULT_LIMIT  # largest dump or answer
    access_key: str | None = None
    secret_key: Callable[[], str] | None = None  # called when the key is needed
    security_token: str | None = None
    client_cert: str | None = None  # PEM file
    client_key: str | None = None  # PEM file; None when the key is in the certificate's file
    tls_name: str | None = None  # name expected in every certificate; None is the host's own
    map_address: tuple[str, ...] = ()  # FROM=TO rules for addresses behind a tunnel
    proxies: tuple[str, ...] = ()  # remoting ports of Proxies that list further consumers
    pace: Pace | None = None  # shared by all readings
    deadline_s: float = DEADLINE_S  # of one reading
    reading: tuple[Deadline, SilentServers] | None = None  # shared by the reads of one reading; None begins another


def for_another_reading(access: Access) -> Access:
    from rmqlb.sources.pace import Deadline, Pace, SilentServers

    pace = access.pace or Pace()
    return replace(access, pace=pace, reading=(Deadline(access.deadline_s, pace.now), SilentServers()))


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
    return opener(text, access if access.reading is not None else for_another_reading(access))


def _name_servers(hosts: str) -> list[str]:
    from rmqlb.sources.native.wire import parse_address

    if "@" in hosts:
        hint = "for a cluster with ACL, pass --access-key, and its secret in RMQLB_SECRET_KEY or --secret-key-file"
        raise UsageError("the source names a user, but RocketMQ's protocol has no users", hint=hint)
    parts = [parse_address(part, _NAME_SERVER_PORT) for part in re.split("[,;]", hosts.rstrip("/")) if part]
    if not parts:
        raise UsageError("the source has no NameServer", hint="write rocketmq://HOST:9876,HOST:9876")
    return [f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in parts]


def _native(name_servers: list[str], access: Access, *, tls: bool) -> LiveSource:
    from rmqlb.sources.native.source import NameServerReads

    return _live(NameServerReads(name_servers, wire_settings(access, tls=tls)), access, tls=tls)


def _live(reads: DashboardReads | NameServerReads, access: Access, *, tls: bool) -> LiveSource:
    from rmqlb.sources.live import LiveSource

    proxies = None
    if access.proxies:
        from rmqlb.sources.native.source import TLS_PREFIX, Proxies, proxy_address

        addresses = dict.fromkeys(map(proxy_address, access.proxies))
        tls = tls or any(proxy.startswith(TLS_PREFIX) for proxy in access.proxies)
        proxies = Proxies(tuple(addresses), wire_settings(access, tls=tls))
    return LiveSource(reads, pace=access.pace, proxies=proxies, deadline=_reading(access)[0])


def _reading(access: Access) -> tuple[Deadline, SilentServers]:
    if access.reading is None:
        raise AssertionError("open_source begins a reading")
    return access.reading


def wire_settings(access: Access, *, tls: bool) -> WireSettings:
    from rmqlb.remoting.acl import Credentials
    from rmqlb.sources.native.wire import WireSettings, parse_address_map, tls_context

    deadline, silent = _reading(access)
    credentials = None
    if access.access_key is not None:
        secret = access.secret_key() if access.secret_key else ""
        credentials = Credentials(access.access_key, secret, access.security_token)
    return WireSettings(
        timeout=access.timeout,
        retries=access.retries,
        tls=tls_context(access.ca_file, access.client_cert, access.client_key) if tls else None,
        server_name=access.tls_name,
        credentials=credentials,
        addresses=parse_address_map(access.map_address),
        max_bytes=access.max_bytes,
        deadline=deadline,
        silent=silent,
    )


def _named(text: str, access: Access, *, tls: bool = False) -> LiveSource:
    return _native(_name_servers(text.partition("://")[2]), access, tls=tls)


def _over_http(text: str, access: Access) -> LiveSource:
    return _address_server(text, access) if text.endswith(_NAME_SERVER_PATH) else _dashboard(text, access)


def _address_server(url: str, access: Access) -> LiveSource:
    """The NameServers that an address server lists in plain text (`TopAddressing.fetchNSAddr`).

    Raises UsageError for an access key over plain HTTP: an impostor of the address server would choose the hosts that
    get signed requests.
    """
    from rmqlb.sources.dashboard import HttpClient, HttpSettings

    url, _ = _without_login(url)
    http = HttpClient(url, HttpSettings(access.timeout, access.retries, access.ca_file, _LONGEST_ADDRESS_LIST))
    try:
        answer = http.get("")
    finally:
        http.close()
    if answer.status != 200:
        raise EndpointError(f"{answer.where}: HTTP {answer.status}", hint="is this an address server?")
    text = answer.body.decode("utf-8", "replace").strip()
    try:
        servers = _name_servers(text)
    except UsageError:
        hint = "expected HOST:PORT;HOST:PORT; for a Dashboard, leave out /rocketmq"
        raise EndpointError(f"{answer.where}: not a list of NameServers: {text[:60]!r}", hint=hint) from None
    if access.access_key is not None and not url.lower().startswith("https:"):
        raise UsageError(
            "rmqlb does not sign requests to hosts that an address server names over plain HTTP",
            hint=f"use the address server's https:// URL, or name its hosts yourself: -s rocketmq://{','.join(servers)}",
            code="hosts-over-http",
        )
    return _native(servers, access, tls=False)


def _dashboard(text: str, access: Access) -> LiveSource:
    from rmqlb.sources.dashboard import Credentials, DashboardReads, HttpSettings

    url, named = _without_login(text)
    user, password = named or access.user, access.password
    credentials = Credentials(user, lambda: password(user)) if user and password else None
    deadline, _ = _reading(access)
    settings = HttpSettings(access.timeout, access.retries, access.ca_file, access.max_bytes, deadline=deadline)
    return _live(DashboardReads(url, settings, credentials), access, tls=False)


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


OPENERS: Mapping[str, Callable[[str, Access], LiveSource]] = {
    "rocketmq": _named,
    "rocketmqs": partial(_named, tls=True),
    "http": _over_http,
    "https": _over_http,
}  # scheme → opener, for the schemes of `source_text.LIVE`
