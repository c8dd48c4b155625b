"""Something odd that the tool noticed: with a code that scripts can match, and a severity."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

Severity = Literal["error", "warning", "info"]
ERROR: Severity = "error"
WARNING: Severity = "warning"
INFO: Severity = "info"
SEVERITIES: tuple[Severity, ...] = (ERROR, WARNING, INFO)  # the gravest first
NO_CODE = "info"  # of what is good to know and needs no explanation


class Finding(Struct, frozen=True):
    """Something odd that the tool noticed, or that is good to know.

    Attributes:
        code: stable, for scripts; `rmqlb explain CODE` says what it means.
        message: one line for people, naming what it is about.
        group: the consumer group that the message names; null when it names none.
        severity: error where queues have no owner or several, or are about to; warning; info where nothing is wrong.
        consumers: client IDs that it is about; none where it is not about single ones.
    """

    code: str
    message: str
    group: str | None = None
    severity: Severity = WARNING
    consumers: tuple[str, ...] = ()

    @property
    def line(self) -> str:
        """For people: severity, message and code; a line that begins with `error:` is that of a command that fails."""
        severity = WARNING if self.severity == ERROR else self.severity
        return f"{severity}: {self.message}" + ("" if self.code == NO_CODE else f" [{self.code}]")


def info(message: str) -> Finding:
    """What is good to know."""
    return Finding("info", message, severity=INFO)
