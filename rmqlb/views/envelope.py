"""What is around the data of every result, and the error."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from rmqlb.model.finding import Finding


class Source(Struct, frozen=True, rename="camel"):
    """Where the result comes from.

    Attributes:
        kind: which kind of source it is, such as dump or dashboard.
        endpoint: its URL or path, never with a secret in it.
        taken_at: when it was seen, ISO-8601 in UTC; null when the source does not report it.
        context: the context that named the source; null when none did.
    """

    kind: str
    endpoint: str
    taken_at: str | None
    context: str | None


class Envelope(Struct, frozen=True, rename="camel"):
    """What is around the data of a result.

    Attributes:
        schema: which result it is.
        format_version: of the result; a minor version only adds keys, a major one may take some away.
        command: that made it.
        source: where it comes from.
        data: the result.
        findings: what is worth telling about it.
    """

    schema: str
    format_version: str
    command: str
    source: Source
    data: Any
    findings: tuple[Finding, ...]


class Error(Struct, frozen=True, rename="camel"):
    """An error.

    Attributes:
        code: stable, for scripts; `rmqlb explain CODE` says what it means.
        message: one line: what happened and where.
        hint: one line: what to try next.
        exit_code: the process ends with it.
    """

    code: str
    message: str
    hint: str | None
    exit_code: int


class ErrorDocument(Struct, frozen=True, rename="camel"):
    """What stands on stderr, alone on a line, when a command fails that was asked for JSON.

    Attributes:
        schema: rmqlb/error.
        format_version: of this object.
        error: what happened.
    """

    schema: str
    format_version: str
    error: Error
