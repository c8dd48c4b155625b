"""Something odd that the tool noticed: with a code that scripts can match, and a severity."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

Severity = Literal["error", "warning", "info"]
ERROR: Severity = "error"
WARNING: Severity = "warning"
INFO: Severity = "info"
SEVERITIES: tuple[Severity, ...] = (ERROR, WARNING, INFO)  # the gravest first


class Finding(Struct, frozen=True):
    """Something odd that the tool noticed, or that is good to know.

    Attributes:
        code: stable, for scripts; `rmqlb explain CODE` says what it means.
        message: one line for people, naming what it is about.
        group: the consumer group that the message names; null when it names none.
        severity: warning, or info where nothing is wrong.
    """

    code: str
    message: str
    group: str | None = None
    severity: Severity = WARNING

    @property
    def line(self) -> str:
        """For people: severity, message and code."""
        return f"{self.severity}: {self.message}" + ("" if self.severity == INFO else f" [{self.code}]")


def info(message: str) -> Finding:
    """What is good to know."""
    return Finding("info", message, severity=INFO)
