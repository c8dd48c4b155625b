"""A source, checked step by step: name, port, protocol, server, each broker, permissions, clocks.

Each step has one attempt and no retry. A step that fails leaves out the steps of the same server that need it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from email.utils import parsedate_to_datetime
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from msgspec.structs import replace

from rmqlb.errors import DataError, EndpointError, RmqlbError
from rmqlb.model.doctor import SourceStep
from rmqlb.model.result import Progress, counted, no_progress, utc_text
from rmqlb.model.snapshot import Everything, Wanted
from rmqlb.sources.live import LiveSource
from rmqlb.sources.native.source import ANY_GROUP, TLS_PREFIX, NameServerReads, Proxies, proxy_address
from rmqlb.sources.native.wire import TimedSocket, look_up, parse_address, parse_address_map
from rmqlb.sources.opening import Access, for_another_reading, open_source, wire_settings
from rmqlb.sources.pace import Deadline, ask_concurrently, reason
from rmqlb.sources.source import Refused

if TYPE_CHECKING:
    from rmqlb.sources.dashboard import DashboardReads
    from rmqlb.sources.dump import DumpSource

_AT_ONCE = 16  # brokers, with one request each
_MOST_OFF_S = 2.0  # from this machine's clock; brokers and HTTP report whole seconds
_LATER = "not tried: it needs the step above"
_CLOCK = "synchronise the clocks (NTP): rmqlb compares times of different machines"

Attempt = Callable[[], str]
Chain = Sequence[tuple[str, Attempt]]
"""Steps and what they do: an attempt returns its result, and raises NotTried or RmqlbError."""


class NotTried(Exception):
    """Raised if the server does not report the fact."""


def check_source(
    text: str, access: Access, progress: Progress = no_progress, now: Callable[[], float] = time.time
) -> list[SourceStep]:
    """Check each step of reading the source (raises UsageError for a text that names none)."""
    access = for_another_reading(replace(access, retries=0))
    try:
        source = open_source(text, access)
    except EndpointError as error:  # an address server, which is read first
        return [SourceStep("address server", text, "fails", error.message, error.hint, error.code)]
    if not isinstance(source, LiveSource):
        return list(_of_file(text, source))
    reads = source.reads
    try:
        if not isinstance(reads, NameServerReads):
            return [*_of_dashboard(reads, access, now), *_of_proxies(access, tls=False)]
        scheme, _, servers = reads.endpoint.partition("://")
        tls = scheme == "rocketmqs"
        found = [*_of_cluster(servers.split(","), access, progress, now, tls=tls)]
        return [*found, *_of_proxies(access, tls=tls)]
    finally:
        reads.close()


def _tried(server: str | None, chain: Chain) -> Iterator[SourceStep]:
    """The steps of one server, in turn until one fails."""
    failed = False
    for step, attempt in chain:
        if failed:
            yield SourceStep(step, server, "notTried", _LATER)
            continue
        try:
            yield SourceStep(step, server, "works", attempt())
        except NotTried as why:
            yield SourceStep(step, server, "notTried", str(why))
        except RmqlbError as error:
            failed = True
            yield SourceStep(step, server, "fails", error.message, error.hint, error.code)


def _reached(host: str, port: int, access: Access) -> Chain:
    def name() -> str:
        try:
            found = look_up(host, port, Deadline(access.timeout))
        except (OSError, ValueError) as error:
            problem = f"no address of {host}: {reason(error)}"
            raise EndpointError(problem, hint="is the name right? does DNS work here?", code="unreachable") from None
        return ", ".join(dict.fromkeys(str(each[4][0]) for each in found))

    def open_port() -> str:
        try:
            TimedSocket(host, port, Deadline(access.timeout)).close()
        except OSError as error:
            problem = f"cannot connect to {host}:{port}: {reason(error)}"
            hint = "is the port right, is the server up, does the firewall allow the connection?"
            raise EndpointError(problem, hint=hint, code="unreachable") from None
        return "open"

    return ("name", name), ("port", open_port)


def _of_cluster(
    servers: Sequence[str], access: Access, progress: Progress, now: Callable[[], float], *, tls: bool
) -> Iterator[SourceStep]:
    settings = wire_settings(access, tls=tls)
    brokers: dict[str, str] = {}
    for at, server in enumerate(servers):
        progress(server, at, len(servers))
        reads = NameServerReads([server], settings)
        host, port = parse_address(parse_address_map(access.map_address).apply(server))
        answering = _name_server(reads, server, brokers, tls=tls)
        yield from _tried(server, (*_reached(host, port, access), *answering))
        reads.close()
    if not brokers:
        yield SourceStep("brokers", None, "notTried", "no NameServer lists one")
        return
    reads = NameServerReads(servers, settings)
    listed = sorted(brokers.items())
    with ask_concurrently(lambda each: list(_of_broker(reads, *each, now)), listed, _AT_ONCE) as futures:
        for at, future in enumerate(futures):
            progress("brokers", at, len(listed))
            yield from future.result()
    reads.close()


def _name_server(reads: NameServerReads, server: str, brokers: dict[str, str], *, tls: bool) -> Chain:
    refused: list[Refused] = []

    def protocol() -> str:
        try:
            brokers.update(reads.broker_addresses())
        except Refused as error:
            refused.append(error)
        return f"RocketMQ's protocol{' over TLS' if tls else ''}, version {reads.version(server)}"

    def lists() -> str:
        for error in refused:
            raise error
        return f"lists {counted(len(reads.broker_addresses()), 'broker')}"

    return ("protocol", protocol), ("NameServer", lists)


def _of_broker(reads: NameServerReads, name: str, address: str, now: Callable[[], float]) -> Iterator[SourceStep]:
    def permissions() -> str:
        _must_be_allowed(lambda: reads.connections(ANY_GROUP, address))
        _must_be_allowed(lambda: reads.groups_of(address))
        _must_be_allowed(lambda: reads.offsets(ANY_GROUP, [address]))
        return "groups, consumers, offsets readable"

    def clock() -> str:
        before = now()
        try:
            seconds = reads.clock_s(address)
        except Refused:
            seconds = None
        if seconds is None:
            raise NotTried("the broker does not report its clock")
        return _clock_off(seconds - (before + now()) / 2)

    answers = partial(_broker_answers, reads, name, address)
    return _tried(f"{name} {address}", (("broker", answers), ("permissions", permissions), ("clock", clock)))


def _broker_answers(reads: NameServerReads, name: str, address: str) -> str:
    try:
        reads.connections(ANY_GROUP, address)
    except Refused:
        pass
    except EndpointError as error:
        hint = error.hint
        if error.code == "unreachable":
            hint = f"--map-address '{address}=HOST:PORT' if it has another address from here"
        raise EndpointError(error.message, hint=hint, code=error.code) from None
    return f"{name} answers, version {reads.version(address)}"


def _must_be_allowed(read: Callable[[], object]) -> None:
    try:
        read()
    except Refused as error:
        if error.code == "access-denied":
            raise


def _clock_off(seconds: float) -> str:
    if abs(seconds) <= _MOST_OFF_S:
        return "as this machine's"
    problem = f"{abs(seconds):,.0f} s {'ahead of' if seconds > 0 else 'behind'} this machine's"
    raise DataError(problem, hint=_CLOCK, code="clock-off")


def _of_dashboard(reads: DashboardReads, access: Access, now: Callable[[], float]) -> Iterator[SourceStep]:
    url = urlsplit(reads.endpoint)
    host, port = url.hostname or "", url.port or (443 if url.scheme == "https" else 80)
    failed: list[EndpointError] = []
    found: list[str] = []

    def protocol() -> str:
        try:
            found.extend(reads.brokers(""))
        except EndpointError as error:
            if error.code in ("login-needed", "login-refused", "access-denied") or isinstance(error, Refused):
                failed.append(error)
            else:
                raise
        return f"{url.scheme.upper()}, a Dashboard"

    def login() -> str:
        for error in failed:
            raise error
        return "not needed" if access.user is None else f"as {access.user}"

    def permissions() -> str:
        return f"{counted(len(reads.topics()), 'topic')} and {counted(len(reads.groups()), 'group')} can be read"

    def clock() -> str:
        before = now()
        reads.topics()
        try:
            there = parsedate_to_datetime(reads.date or "").timestamp()
        except ValueError:
            raise NotTried("the Dashboard does not report its clock") from None
        return _clock_off(there + 0.5 - (before + now()) / 2)

    brokers: Attempt = lambda: f"the Dashboard asks {counted(len(found), 'broker')} itself"  # noqa: E731
    chain = (("protocol", protocol), ("login", login), ("brokers", brokers), ("permissions", permissions))
    return _tried(f"{host}:{port}", (*_reached(host, port, access), *chain, ("clock", clock)))


def _of_proxies(access: Access, *, tls: bool) -> Iterator[SourceStep]:
    for proxy in access.proxies:
        yield from _tried(proxy, (("Proxy", partial(_proxy, proxy, access, tls=tls)),))


def _proxy(text: str, access: Access, *, tls: bool) -> str:
    asked = Proxies((proxy_address(text),), wire_settings(access, tls=tls or text.startswith(TLS_PREFIX)))
    try:
        asked.consumers(ANY_GROUP)
        for part in asked.unread():
            raise EndpointError(part.reason)
    finally:
        asked.close()
    return "reports its consumers"


def _of_file(text: str, source: DumpSource) -> Iterator[SourceStep]:
    taken: list[str] = []

    def content() -> str:
        snapshot = source.fetch(Wanted(everything=Everything(system=True)))
        taken.append(utc_text(snapshot.taken_at) if snapshot.taken_at else "")
        return f"{counted(len(snapshot.routes), 'topic')} and {counted(len(snapshot.groups), 'group')}"

    def time_taken() -> str:
        if not taken[0]:
            raise NotTried("the file does not report when it was taken")
        return f"taken at {taken[0]}"

    return _tried("stdin" if text == "-" else text, (("file", content), ("time", time_taken)))
