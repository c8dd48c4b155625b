"""Common parts of the sources."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from rmqlb.errors import EndpointError
from rmqlb.model.group import States
from rmqlb.model.snapshot import AssignmentAnswer, AssignmentQuestion


def utc_now() -> datetime:
    """Now, in whole milliseconds: a second is a tenth of the time between two samples, and so of a rate."""
    now = datetime.now(UTC)
    return now.replace(microsecond=now.microsecond // 1000 * 1000)


class NothingToAsk:
    """A source without a broker or consumer to ask."""

    shown: object = None  # the progress that a source with brokers shows while it reads

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


def redact_secrets(text: str, *secrets: str | None) -> str:
    """Replace each secret by `***`, except those shorter than 4, which ordinary words contain."""
    for secret in secrets:
        if secret and len(secret) >= 4:
            text = text.replace(secret, "***")
    return text
