"""A source, checked step by step: name, port, protocol, server, each broker, permissions, clocks.

Each step has one attempt and no retry. A step that fails leaves out the steps of the same server that need it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, suppress
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from msgspec.structs import replace

from rmqlb.errors import DataError, EndpointError, RmqlbError
from rmqlb.model.doctor import SourceStep
from rmqlb.model.result import Progress, counted, no_progress, utc_text
from rmqlb.model.snapshot import Everything, Wanted
from rmqlb.sources.live import LiveSource
from rmqlb.sources.native.source import ANY_GROUP, NameServerReads, Proxies
from rmqlb.sources.native.wire import TimedSocket, look_up, parse_address, parse_address_map
from rmqlb.sources.opening import for_another_reading, open_source
from rmqlb.sources.pace import Deadline, ask_concurrently, reason
from rmqlb.sources.source import Access, Refused

if TYPE_CHECKING:
    from rmqlb.sources.dashboard import DashboardReads
    from rmqlb.sources.dump import DumpSource

_AT_ONCE = 16  # brokers, with one request each
_MOST_OFF_S = 2.0  # from this machine's clock; brokers and HTTP report whole seconds
_LATER = "not tried: it needs the step above"
_CLOCK = "synchronise the clocks (NTP): rmqlb compares times of different machines"
_REACHED = ("name", "port")
_NAME_SERVER = (*_REACHED, "protocol", "NameServer")
_BROKER = ("broker", "permissions", "clock")
_DASHBOARD = (*_REACHED, "protocol", "login", "brokers", "permissions", "clock")
_OF_A_LOGIN = ("login-needed", "login-failed", "access-denied")


class NotTried(str):
    """The reason for which a server does not report a step's result."""

    __slots__ = ()


Results = Generator[str, None, None]
"""The result of each step of a server; an error (RmqlbError) is that of the step that comes next."""


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
        return list(_tried("stdin" if text == "-" else text, ("file", "time"), _of_file(source)))
    reads = source.reads
    with closing(reads):
        scheme, _, servers = reads.endpoint.partition("://")
        tls = scheme == "rocketmqs"
        if isinstance(reads, NameServerReads):
            steps = list(_of_cluster(servers.split(","), access, progress, now, tls=tls))
        else:
            url = urlsplit(reads.endpoint)
            host, port = url.hostname or "", url.port or (443 if url.scheme == "https" else 80)
            steps = list(_tried(f"{host}:{port}", _DASHBOARD, _of_dashboard(reads, host, port, access, now)))
        for proxy in access.proxies:
            steps += _tried(proxy, ("Proxy",), _of_proxy(replace(access, proxies=(proxy,)), tls=tls))
        return steps


def _tried(server: str | None, steps: Sequence[str], results: Results) -> Iterator[SourceStep]:
    """The steps of one server, in turn until one fails."""
    with closing(results):
        for number, step in enumerate(steps, 1):
            try:
                result = next(results)
            except RmqlbError as error:
                yield SourceStep(step, server, "fails", error.message, error.hint, error.code)
                yield from (SourceStep(later, server, "notTried", _LATER) for later in steps[number:])
                return
            yield SourceStep(step, server, "notTried" if isinstance(result, NotTried) else "works", str(result))


def _reached(host: str, port: int, access: Access) -> Results:
    try:
        found = look_up(host, port, Deadline(access.timeout))
    except (OSError, ValueError) as error:
        problem = f"no address of {host}: {reason(error)}"
        raise EndpointError(problem, hint="is the name right? does DNS work here?", code="unreachable") from None
    yield ", ".join(dict.fromkeys(str(each[4][0]) for each in found))
    try:
        TimedSocket(host, port, Deadline(access.timeout)).close()
    except OSError as error:
        problem = f"cannot connect to {host}:{port}: {reason(error)}"
        hint = "is the port right, is the server up, does the firewall allow the connection?"
        raise EndpointError(problem, hint=hint, code="unreachable") from None
    yield "open"


def _of_cluster(
    servers: Sequence[str], access: Access, progress: Progress, now: Callable[[], float], *, tls: bool
) -> Iterator[SourceStep]:
    brokers: dict[str, str] = {}
    for at, server in enumerate(servers):
        progress(server, at, len(servers))
        yield from _tried(server, _NAME_SERVER, _of_name_server(server, access, brokers, tls=tls))
    if not brokers:
        yield SourceStep("brokers", None, "notTried", "no NameServer lists one")
        return
    with closing(NameServerReads(servers, access, tls=tls)) as reads:

        def steps(broker: tuple[str, str]) -> list[SourceStep]:
            return list(_tried(" ".join(broker), _BROKER, _of_broker(reads, *broker, now)))

        with ask_concurrently(steps, sorted(brokers.items()), _AT_ONCE) as futures:
            for at, future in enumerate(futures):
                progress("brokers", at, len(brokers))
                yield from future.result()


def _of_name_server(server: str, access: Access, brokers: dict[str, str], *, tls: bool) -> Results:
    with closing(NameServerReads([server], access, tls=tls)) as reads:
        yield from _reached(*parse_address(parse_address_map(access.map_address).apply(server)), access)
        refused = None
        try:
            brokers.update(reads.broker_addresses())
        except Refused as error:
            refused = error
        yield f"RocketMQ's protocol{' over TLS' if tls else ''}, version {reads.version(server)}"
        if refused is not None:
            raise refused
        yield f"lists {counted(len(reads.broker_addresses()), 'broker')}"


def _of_broker(reads: NameServerReads, name: str, address: str, now: Callable[[], float]) -> Results:
    try:
        with suppress(Refused):
            reads.connections(ANY_GROUP, address)
    except EndpointError as error:
        hint = error.hint
        if error.code == "unreachable":
            hint = f"--map-address '{address}=HOST:PORT' if it has another address from here"
        raise EndpointError(error.message, hint=hint, code=error.code) from None
    yield f"{name} answers, version {reads.version(address)}"
    _must_be_allowed(lambda: reads.connections(ANY_GROUP, address))
    _must_be_allowed(lambda: reads.groups_of(address))
    _must_be_allowed(lambda: reads.offsets(ANY_GROUP, [address]))
    yield "groups, consumers, offsets readable"
    before, there = now(), None
    with suppress(Refused):
        there = reads.clock_s(address)
    yield NotTried("the broker does not report its clock") if there is None else _clock(there, (before + now()) / 2)


def _must_be_allowed(read: Callable[[], object]) -> None:
    try:
        read()
    except Refused as error:
        if error.code == "access-denied":
            raise


def _clock(there: float, here: float) -> str:
    if abs(there - here) <= _MOST_OFF_S:
        return "as this machine's"
    problem = f"{abs(there - here):,.0f} s {'ahead of' if there > here else 'behind'} this machine's"
    raise DataError(problem, hint=_CLOCK, code="clock-off")


def _of_dashboard(reads: DashboardReads, host: str, port: int, access: Access, now: Callable[[], float]) -> Results:
    yield from _reached(host, port, access)
    brokers, refused = {}, None
    try:
        brokers = reads.brokers("")
    except EndpointError as error:
        if error.code not in _OF_A_LOGIN and not isinstance(error, Refused):
            raise
        refused = error
    yield f"{reads.endpoint.partition(':')[0].upper()}, a Dashboard"
    if refused is not None:
        raise refused
    yield "not needed" if access.user is None else f"as {access.user}"
    yield f"the Dashboard asks {counted(len(brokers), 'broker')} itself"
    yield f"{counted(len(reads.topics()), 'topic')} and {counted(len(reads.groups()), 'group')} can be read"
    before = now()
    reads.topics()
    try:
        there = parsedate_to_datetime(reads.date or "").timestamp() + 0.5
    except ValueError:
        yield NotTried("the Dashboard does not report its clock")
    else:
        yield _clock(there, (before + now()) / 2)


def _of_proxy(access: Access, *, tls: bool) -> Results:
    with closing(Proxies(access, tls=tls)) as opened:
        opened.consumers(ANY_GROUP)
        for part in opened.unread():
            raise EndpointError(part.reason)
    yield "reports its consumers"


def _of_file(source: DumpSource) -> Results:
    snapshot = source.fetch(Wanted(everything=Everything(system=True)))
    yield f"{counted(len(snapshot.routes), 'topic')} and {counted(len(snapshot.groups), 'group')}"
    taken = snapshot.taken_at
    yield NotTried("the file does not report when it was taken") if taken is None else f"taken at {utc_text(taken)}"
