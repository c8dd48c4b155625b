"""A diagnosis rule: a function that looks for one problem in a group's evidence, and the case that it examines.

A new rule is a function with `@rule(code)` in one of the files next to this one, the words of its code in
`model/diagnosis.py`, and a page in `views/explanations.toml`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cached_property

from msgspec import Struct
from msgspec.structs import replace

from rmqlb.engine.diagnose.evidence import DoesNotApply
from rmqlb.engine.diagnose.hypotheses import Hypotheses
from rmqlb.engine.diagnose.reports import Troubles
from rmqlb.errors import RmqlbError
from rmqlb.model.diagnosis import Evidence, Explains, GroupFinding
from rmqlb.model.finding import INFO, Severity
from rmqlb.model.message_queue import MessageQueue, sort_client_ids, sort_queues


class ComesOf(Exception):
    """The problem is there, and these causes explain it."""

    def __init__(self, *causes: str) -> None:
        super().__init__(*causes)
        self.causes = causes


class Answer(Struct, frozen=True):
    """The findings of a rule, and why it ended early; None when it examined everything."""

    findings: tuple[GroupFinding, ...]
    why: ComesOf | DoesNotApply | RmqlbError | None


class Case(Hypotheses, dict=True, eq=False):
    """A group under diagnosis: its evidence, the hypotheses about its owners, and the answers of other rules."""

    rules: Sequence[DiagnosisRule] = ()

    def answer(self, code: str) -> Answer:
        """The rule's answer, computed once."""
        if code not in self._answers:
            findings: list[GroupFinding] = []
            why: ComesOf | DoesNotApply | RmqlbError | None = None
            try:
                for finding in self._checks[code](self):
                    findings.append(replace(finding, code=code))  # noqa: PERF401 - an error later undoes no finding
            except (ComesOf, DoesNotApply, RmqlbError) as error:
                why = error
            self._answers[code] = Answer(tuple(findings), why)
        return self._answers[code]

    @cached_property
    def _answers(self) -> dict[str, Answer]:
        return {}

    @cached_property
    def _checks(self) -> dict[str, Check]:
        return {rule.code: rule.check for rule in self.rules}

    def has(self, code: str) -> bool:
        """The rule is among those of this case, and has findings."""
        return code in self._checks and bool(self.answer(code).findings)

    def explained(self, queues: Collection[MessageQueue], causes: Sequence[str]) -> tuple[set[MessageQueue], list[str]]:
        """The queues that grave findings of these causes concern, and the codes of these causes."""
        explained, acting = set[MessageQueue](), []
        for code in causes:
            findings = self.answer(code).findings if code in self._checks else ()
            concerned = {queue for each in findings if each.severity != INFO for queue in each.queues}
            if not concerned.isdisjoint(queues):
                acting.append(code)
                explained |= concerned
        return explained, acting

    def unexplained(self, queues: Collection[MessageQueue], causes: Sequence[str]) -> tuple[MessageQueue, ...]:
        """The queues that no grave finding of these causes concerns, sorted; raises ComesOf when all are explained."""
        explained, acting = self.explained(queues, causes)
        left = tuple(sort_queues({*queues} - explained))
        if queues and not left:
            raise ComesOf(*acting)
        return left

    def finding(
        self,
        severity: Severity,
        consequence: str,
        remedy: str,
        *,
        of: Troubles | None = None,
        queues: Collection[MessageQueue] | None = None,
        consumers: Iterable[str] | None = None,
        facts: Iterable[Evidence] | None = None,
        topic: str | None = None,
        explains: Explains | None = None,
    ) -> GroupFinding:
        """A finding of the present rule; its topic is the one of all its queues, unless given.

        Args:
            of: the troubles that give the queues, consumers and facts that are not given.
        """
        of = of or Troubles()
        found = {*(of.queues if queues is None else queues)}
        topics = {queue.topic for queue in found}
        return GroupFinding(
            "",
            severity,
            self.group.group,
            topics.pop() if len(topics) == 1 else topic,
            tuple(sort_queues(found)),
            tuple(sort_client_ids({*(of.ids if consumers is None else consumers)})),
            tuple(of.facts if facts is None else facts),
            consequence,
            remedy,
            explains,
        )


Check = Callable[[Case], Iterator[GroupFinding]]
"""Yields its findings; none when all is in order.

Raises:
    DataError: evidence is missing; the hint says how to get it.
    DoesNotApply: such a group cannot have the problem.
    ComesOf: the problem is there, and another finding is its cause.
"""


class DiagnosisRule(Struct, frozen=True):
    """A rule and the code of its findings; `one_look`: a single look may be enough for a finding."""

    code: str
    check: Check
    one_look: bool = True


CHECKS: dict[str, DiagnosisRule] = {}
"""Every rule by its code, as soon as its file is imported."""


def rule(code: str, *, one_look: bool = True) -> Callable[[Check], Check]:
    """Register a function as the rule with this code."""

    def registered(check: Check) -> Check:
        CHECKS[code] = DiagnosisRule(code, check, one_look)
        return check

    return registered
