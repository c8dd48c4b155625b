"""The shape of every source: told what a command needs, it answers with a snapshot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Protocol

from rmqlb.errors import EndpointError
from rmqlb.model.group import States
from rmqlb.model.progress import Progress, no_progress
from rmqlb.model.snapshot import AssignmentAnswer, AssignmentQuestion, ClusterSnapshot, OffsetQuestion, Wanted


class Source(Protocol):
    """Where snapshots come from."""

    # the wanted parts of the cluster (raises DataError, EndpointError)
    def fetch(self, wanted: Wanted, progress: Progress = no_progress) -> ClusterSnapshot: ...
    def ask_offsets(
        self, group: str, questions: Sequence[OffsetQuestion], progress: Progress = no_progress
    ) -> States | None:
        """What brokers would tell consumers of the group that take these queues; only a running cluster can be asked.

        Returns the queues whose broker answered; None where no broker can be asked.
        """

    def ask_assignments(
        self, group: str, questions: Sequence[AssignmentQuestion], progress: Progress = no_progress
    ) -> Mapping[AssignmentQuestion, AssignmentAnswer] | None:
        """What brokers answer consumers that let them assign their queues, of those that answered; see `assignments`.

        None where no broker can be asked.
        """

    def ask_stacks(
        self, group: str, client_ids: Sequence[str], progress: Progress = no_progress
    ) -> Mapping[str, tuple[str, ...]]:
        """The stack traces of the consume threads of these consumers, as `ConsumerEvidence.stacks` has them.

        Returns those of the consumers that answered; only a running cluster can be asked.
        """

    def ask_message_type(self, topic: str, addresses: Sequence[str]) -> str | None:
        """The topic's `message.type` at the first of these brokers that reports it; None where none does."""


def utc_now() -> datetime:
    """This moment, in whole seconds."""
    return datetime.now(UTC).replace(microsecond=0)


class NothingToAsk:
    """A source that has what it has: no broker and no consumer can be asked anything more."""

    live = False

    def ask_offsets(self, *_: object) -> States | None:
        return None

    def ask_assignments(self, *_: object) -> Mapping[AssignmentQuestion, AssignmentAnswer] | None:
        return None

    def ask_stacks(self, *_: object, **__: object) -> Mapping[str, tuple[str, ...]]:
        return {}

    def ask_message_type(self, *_: object) -> str | None:
        return None


class Refused(EndpointError):
    """The far side answered, and the answer is an error."""

    code = "refused"

    def __init__(
        self,
        message: str,
        text: str,  # the far side's own words, whole
        *,
        response_code: int | None = None,  # RocketMQ's, or None where it is only part of the text
        hint: str | None = None,
        code: str | None = None,
    ) -> None:
        super().__init__(message, hint=hint, code=code)
        self.text = text
        self.response_code = response_code


_SHORTEST = 4  # shorter ones would be found in ordinary words; they are no secrets


def redact_secrets(text: str, *secrets: str | None) -> str:
    """The text with each secret replaced by `***`.

    >>> redact_secrets("bad password s3cret", "s3cret", None)
    'bad password ***'
    """
    for secret in secrets:
        if secret and len(secret) >= _SHORTEST:
            text = text.replace(secret, "***")
    return text
