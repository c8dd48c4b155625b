"""How sources are reached, and what they have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct

from rmqlb.errors import EndpointError
from rmqlb.model.group import States
from rmqlb.model.snapshot import AssignmentAnswer, AssignmentQuestion
from rmqlb.sources.formats.limits import DEFAULT_LIMIT

if TYPE_CHECKING:
    from rmqlb.remoting.codes import ResponseCode
    from rmqlb.sources.pace import Deadline, Pace, SilentServers

Answer = TypeVar("Answer")


def utc_now() -> datetime:
    """Now, in whole milliseconds: a second is a tenth of the time between two samples, and so of a rate."""
    now = datetime.now(UTC)
    return now.replace(microsecond=now.microsecond // 1000 * 1000)


class Access(Struct, frozen=True):
    """How servers are reached, and within which limits."""

    user: str | None = None
    password: Callable[[str], str] | None = None  # of a user, called when the Dashboard requests a login
    ca_file: str | None = None  # the only trusted CA certificates; None is the system's
    timeout: float = 5.0  # seconds per answer: over HTTP of each attempt, otherwise retries included
    retries: int = 2  # on transient faults
    max_bytes: int = DEFAULT_LIMIT  # largest dump or answer
    access_key: str | None = None  # of the account that signs requests to NameServers and brokers
    secret_key: Callable[[], str] | None = None  # called when the key is needed
    security_token: str | None = None
    client_cert: str | None = None  # PEM file
    client_key: str | None = None  # PEM file; None when the key is in the certificate's file
    tls_name: str | None = None  # name expected in every certificate; None is the host's own, before it is mapped
    map_address: tuple[str, ...] = ()  # FROM=TO rules for addresses behind a tunnel
    proxies: tuple[str, ...] = ()  # remoting ports of Proxies that list further consumers
    deadline_s: float = 60.0  # of one reading
    pace: Pace | None = None  # shared by all readings; None is a new one
    deadline: Deadline | None = None  # of all requests of one reading, whatever `timeout` is
    silent: SilentServers | None = None  # servers without further requests in one reading; None begins another reading
    clock: Callable[[], datetime] = utc_now


class NothingToAsk:
    """A source without a broker or consumer to ask."""

    live = False  # it is no running cluster
    shown: object = None  # the progress that a source with brokers shows while it reads

    def open(self) -> NothingToAsk:
        return self

    def ask_offsets(self, *_: object) -> States | None:
        return None

    def ask_assignments(self, *_: object) -> Mapping[AssignmentQuestion, AssignmentAnswer] | None:
        return None

    def ask_stacks(self, *_: object, **__: object) -> Mapping[str, tuple[str, ...]]:
        return {}

    def ask_message_type(self, *_: object) -> str | None:
        return None


class Refused(EndpointError):
    """An error that the server returned."""

    code = "refused"

    def __init__(
        self,
        message: str,
        text: str,  # the server's own words, whole
        *,
        response_code: int | None = None,  # RocketMQ's; None where the text has it
        hint: str | None = None,
        code: str | None = None,
    ) -> None:
        super().__init__(message, hint=hint, code=code)
        self.text = text
        self.response_code = response_code


def read_unless(code: ResponseCode, read: Callable[[], Answer]) -> Answer | None:
    """The answer; None where the server refuses with this code."""
    try:
        return read()
    except Refused as refused:
        if refused.response_code == code:
            return None
        raise


def redact_secrets(text: str, *secrets: str | None) -> str:
    """Replace each secret by `***`, except those shorter than 4, which ordinary words contain."""
    for secret in secrets:
        if secret and len(secret) >= 4:
            text = text.replace(secret, "***")
    return text
