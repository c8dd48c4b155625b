"""What a rule is: a code, and a function that looks for it in a group's evidence."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec import Struct

from rmqlb.engine.diagnose.hypotheses import Hypotheses
from rmqlb.model.diagnosis import GroupFinding

Check = Callable[[Hypotheses], Iterator[GroupFinding]]
"""Gives what it finds; nothing when it is in order.

Raises:
    DataError: evidence is missing; the message says which.
    DoesNotApply: such a group cannot have it.
    ComesOf: it is there, and another finding is its cause.
"""


class ComesOf(Exception):
    """What a rule looks for is there, and comes of these causes."""

    def __init__(self, causes: tuple[str, ...]) -> None:
        super().__init__(*causes)
        self.causes = causes


class DiagnosisRule(Struct, frozen=True):
    """A finding's code, and what looks for it."""

    code: str
    check: Check
