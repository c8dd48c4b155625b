"""Something odd that the tool noticed: with a code that scripts can match, and a severity."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Struct

Severity = Literal["error", "warning", "info"]
ERROR: Severity = "error"
WARNING: Severity = "warning"
INFO: Severity = "info"
SEVERITIES: tuple[Severity, ...] = (ERROR, WARNING, INFO)  # the gravest first
NO_CODE = "info"  # of what is good to know and needs no explanation


class Finding(Struct, frozen=True):
    """Something odd that the tool noticed, or that is good to know."""

    code: Annotated[str, "stable, for scripts; `rmqlb explain CODE` says what it means"]
    message: Annotated[str, "one line for people, naming what it is about"]
    group: Annotated[str | None, "the consumer group that the message names; null when it names none"] = None
    severity: Annotated[Severity, "error where queues have no or several owners, or soon will; warning; info"] = WARNING
    consumers: Annotated[tuple[str, ...], "client IDs that it is about; none where it is not about single ones"] = ()

    @property
    def line(self) -> str:
        """Severity, message and code; `error:` begins only lines of failed commands."""
        severity = WARNING if self.severity == ERROR else self.severity
        return f"{severity}: {self.message}" + ("" if self.code == NO_CODE else f" [{self.code}]")


def info(message: str) -> Finding:
    return Finding("info", message, severity=INFO)
