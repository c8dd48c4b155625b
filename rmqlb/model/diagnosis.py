"""Why a group is as it is: what is the case, by which evidence, what comes of it, and what to do."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from rmqlb.model.finding import INFO, Severity
from rmqlb.model.message_queue import MessageQueue

Outcome = Literal["found", "unknown", "inOrder"]


class Evidence(Struct, frozen=True, rename="camel"):
    """One fact that was observed.

    Attributes:
        fact: what was looked at.
        value: what was seen.
        threshold: the value from which on it counts; null where no number decides.
        source: where it was seen: URL, address or file, never with a secret in it.
        at: when it was seen, ISO-8601 in UTC; null when the source does not report it.
    """

    fact: str
    value: str | int
    threshold: str | int | None
    source: str
    at: str | None


class Explains(Struct, frozen=True, rename="camel"):
    """What the prediction says of a cause; null is what cannot be predicted, as where something unknown acts too.

    Attributes:
        reproduces: the causes found together predict exactly the observed owners; null when none were observed.
        fixes_all: with this cause gone, each queue has one owner by prediction.
        unassigned_after: unassigned queues by prediction with this cause gone.
        duplicate_owners_after: queues with duplicate owners by prediction with this cause gone.
    """

    reproduces: bool | None = None
    fixes_all: bool | None = None
    unassigned_after: int | None = None
    duplicate_owners_after: int | None = None


class GroupFinding(Struct, frozen=True, rename="camel"):
    """What is the case in a group.

    Attributes:
        code: stable, for scripts; `rmqlb explain CODE` says what it means.
        severity: error where queues have no owner or several, or messages wait unread; warning where they may; info
            where nothing is wrong.
        group: the consumer group.
        topic: the topic that it is about; null when it is not about a single one.
        queues: that it concerns, as clients sort them.
        consumers: client IDs that it is about, as clients sort them.
        evidence: what was seen.
        consequence: what comes of it, a sentence.
        remedy: what to do, a sentence.
        explains: how much of what is observed it explains; null of what is no cause of owners.
    """

    code: str
    severity: Severity
    group: str
    topic: str | None = None
    queues: tuple[MessageQueue, ...] = ()
    consumers: tuple[str, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    consequence: str = ""
    remedy: str = ""
    explains: Explains | None = None


class Undecided(Struct, frozen=True, rename="camel"):
    """A rule that gives no answer.

    Attributes:
        code: of the finding that it looks for.
        reason: the evidence that is missing, or why the rule does not apply.
    """

    code: str
    reason: str


class Consequence(Struct, frozen=True, rename="camel"):
    """What is the case because of a cause, and so is no cause itself.

    Attributes:
        code: of the finding that it would be.
        causes: the codes of the findings that it comes of.
    """

    code: str
    causes: tuple[str, ...]


class Diagnosis(Struct, frozen=True, rename="camel"):
    """What all rules say of a group; each rule is in exactly one of the lists.

    Attributes:
        group: the consumer group.
        findings: the likeliest cause first.
        consequences: what comes of the findings.
        checked: codes of what was looked for and is in order.
        unknown: codes of what could not be decided.
        not_applicable: codes of what cannot be the case in such a group.
    """

    group: str
    findings: tuple[GroupFinding, ...] = ()
    consequences: tuple[Consequence, ...] = ()
    checked: tuple[str, ...] = ()
    unknown: tuple[Undecided, ...] = ()
    not_applicable: tuple[Undecided, ...] = ()

    @property
    def outcome(self) -> Outcome:
        """In order is only what every rule has looked at."""
        if any(finding.severity != INFO for finding in self.findings):
            return "found"
        return "unknown" if self.unknown else "inOrder"
