"""What every result has in common, and the error."""

from __future__ import annotations

from typing import Any, TypedDict


class SourceData(TypedDict):
    """Where the result comes from.

    Attributes:
        kind: which kind of source it is, such as dump or dashboard.
        endpoint: its URL or path, never with a secret in it.
        takenAt: when it was seen, ISO-8601 in UTC; null when the source does not tell.
        context: the context that named the source; null when none did.
    """

    kind: str
    endpoint: str
    takenAt: str | None
    context: str | None


class WarningData(TypedDict):
    """Something worth telling that is not an error.

    Attributes:
        code: stable, for scripts; `rmqlb explain CODE` says what it means.
        message: one line for people.
    """

    code: str
    message: str


class Envelope(TypedDict):
    """What is around the data of a result.

    Attributes:
        schema: which result it is.
        formatVersion: of the result; a minor version only adds keys, a major one may take some away.
        command: that made it.
        source: where it comes from.
        data: the result.
        warnings: what is worth telling about it.
    """

    schema: str
    formatVersion: str
    command: str
    source: SourceData
    data: Any
    warnings: list[WarningData]


class ErrorData(TypedDict):
    """An error.

    Attributes:
        code: stable, for scripts; `rmqlb explain CODE` says what it means.
        message: one line: what happened and where.
        hint: one line: what to try next.
        exitCode: the process ends with it.
    """

    code: str
    message: str
    hint: str | None
    exitCode: int


class ErrorDocument(TypedDict):
    """What stands on stderr, alone on a line, when a command fails that was asked for JSON.

    Attributes:
        schema: rmqlb/error.
        formatVersion: of this object.
        error: what happened.
    """

    schema: str
    formatVersion: str
    error: ErrorData


class QueueNameData(TypedDict):
    """A queue of the topic at hand.

    Attributes:
        brokerName: its broker.
        queueId: its number there, from 0.
    """

    brokerName: str
    queueId: int


class ConditionData(TypedDict):
    """A `--fail-on` condition.

    Attributes:
        condition: as typed.
        value: the figure that it looked at; null when it is unknown, or without end.
        met: it is met; null when the figure is unknown.
    """

    condition: str
    value: float | None
    met: bool | None
