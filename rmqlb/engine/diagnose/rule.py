"""What a rule is: a code, and a function that looks for it in a group's evidence."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

from msgspec import Struct

from rmqlb.engine.diagnose.evidence import DoesNotApply
from rmqlb.engine.diagnose.hypotheses import Hypotheses
from rmqlb.errors import RmqlbError
from rmqlb.model.diagnosis import GroupFinding
from rmqlb.model.finding import INFO
from rmqlb.model.message_queue import MessageQueue, sort_queues


class ComesOf(Exception):
    """What a rule looks for is there, and comes of these causes."""

    def __init__(self, causes: tuple[str, ...]) -> None:
        super().__init__(*causes)
        self.causes = causes


class Answer(Struct, frozen=True):
    """What a rule found, and why it found no more; None when it has looked at all."""

    findings: tuple[GroupFinding, ...]
    why: ComesOf | DoesNotApply | RmqlbError | None


class Case(Hypotheses, dict=True, eq=False):
    """A group that is diagnosed: its evidence, the hypotheses about its owners, and what other rules say."""

    rules: Sequence[DiagnosisRule]

    def answer(self, code: str) -> Answer:
        """What the rule says; each is asked once."""
        if code not in self._answers:
            self._answers[code] = _asked(self._checks[code], self)
        return self._answers[code]

    def without_those_of(
        self, queues: Sequence[MessageQueue], causes: Sequence[str]
    ) -> tuple[tuple[MessageQueue, ...], tuple[str, ...]]:
        """The queues that no finding of these causes concerns, as clients sort them, and the causes of the others."""
        left, acting = set(queues), []
        for code in causes:
            its = {queue for each in self._grave(code) for queue in each.queues}
            if not its.isdisjoint(queues):
                acting.append(code)
            left -= its
        return tuple(sort_queues(left)), tuple(acting)

    def has(self, code: str) -> bool:
        """Whether the rule of that code is asked here and finds anything."""
        return code in self._checks and bool(self.answer(code).findings)

    def _grave(self, code: str) -> list[GroupFinding]:
        found = self.answer(code).findings if code in self._checks else ()
        return [finding for finding in found if finding.severity != INFO]

    @cached_property
    def _answers(self) -> dict[str, Answer]:
        return {}

    @cached_property
    def _checks(self) -> dict[str, Check]:
        return {rule.code: rule.check for rule in self.rules}


Check = Callable[[Case], Iterator[GroupFinding]]
"""Gives what it finds; nothing when it is in order.

Raises:
    DataError: evidence is missing; the message says which, the hint how to get it.
    DoesNotApply: such a group cannot have it.
    ComesOf: it is there, and another finding is its cause.
"""


class DiagnosisRule(Struct, frozen=True):
    """A finding's code, and what looks for it."""

    code: str
    check: Check


def _asked(check: Check, case: Case) -> Answer:
    found: list[GroupFinding] = []
    try:
        for finding in check(case):
            found.append(finding)  # noqa: PERF402 - what was found stands, whatever is missing after it
    except (ComesOf, DoesNotApply, RmqlbError) as why:
        return Answer(tuple(found), why)
    return Answer(tuple(found), None)
