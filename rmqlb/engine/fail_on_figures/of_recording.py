"""The figures of a recording that `--fail-on` can ask about."""

from __future__ import annotations

import math
from collections.abc import Iterable

from rmqlb.engine.conditions import Condition, Figures
from rmqlb.errors import UsageError
from rmqlb.model.condition import TriedCondition
from rmqlb.model.recording import DIFFERENCES, Recording, RecordingFigures

_OF_RECORDING = tuple(name.replace("_", "-") for name in RecordingFigures.__struct_fields__ if name != "queues")
_OF_COMPARISON = ("differences", *DIFFERENCES)
_SHARES = ("changed", "moved", "unassigned", "duplicate-owners", "unknown", *_OF_COMPARISON)
RECORDING_FIGURES = Figures((*_OF_RECORDING, *_OF_COMPARISON), shares=_SHARES)


def must_be_askable(conditions: Iterable[Condition], *, is_compared: bool) -> None:
    """Refuse what asks about a comparison where there is none (raises UsageError)."""
    for condition in conditions:
        if condition.name in _OF_COMPARISON and not is_compared:
            raise UsageError(f"--fail-on {condition.text!r}: against which prediction?", hint="name it with --against")


def try_on_recording(condition: Condition, recording: Recording) -> TriedCondition:
    """Whether the condition is met."""
    compared = recording.comparison
    if condition.name in _OF_COMPARISON:
        queues = () if compared is None else compared.queues
        outcomes = DIFFERENCES if condition.name == "differences" else (condition.name,)
        return condition.try_on(sum(queue.outcome in outcomes for queue in queues), len(queues))
    value = getattr(recording.figures, condition.name.replace("-", "_"))
    if (
        value is None and recording.converged_by is None
    ):  # a time that is not over; no document holds more than any number
        return TriedCondition(condition.text, None, condition.compare(math.inf, condition.limit))
    return condition.try_on(0 if value is None else value, recording.figures.queues)
