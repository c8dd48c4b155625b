"""Something odd that the tool noticed, with a code and a severity; and the words for numbers in sentences."""

from __future__ import annotations

from collections.abc import Iterable
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


_NAMED = 3


def counted(number: int, noun: str) -> str:
    """A number and its noun.

    >>> counted(0, "queue"), counted(1, "queue"), counted(1200, "queue")
    ('0 queues', '1 queue', '1200 queues')
    """
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def of_all(number: int, whole: int, noun: str = "queue") -> str:
    return f"{number} of {counted(whole, noun)}"


def are(number: int) -> str:
    return "is" if number == 1 else "are"


def have(number: int) -> str:
    return "has" if number == 1 else "have"


def at_least(unknown: int | None) -> str:
    """Words before a number that unknown cases may raise."""
    return "at least " if unknown else ""


def all_or_some(number: int, whole: int, noun: str = "queue") -> str:
    return f"all {counted(whole, noun)}" if number == whole > 1 else of_all(number, whole, noun)


def times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"


def messages(number: int, which: str = "") -> str:
    return f"{number:,} {which}message{'' if number == 1 else 's'}"


def named(names: Iterable[str]) -> str:
    """The first few names, and the number of others.

    >>> named("ab"), named("abcde")
    ('a, b', 'a, b, c and 2 more')
    """
    listed = list(names)
    more = f" and {len(listed) - _NAMED} more" if len(listed) > _NAMED else ""
    return ", ".join(listed[:_NAMED]) + more
