"""Conditions that a user asks to be told about: `idle>0`, `moved>50%`."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable

from msgspec import Struct

from rmqlb.errors import UsageError
from rmqlb.model.plan import Summary, TriedCondition
from rmqlb.model.snapshot import suggestion

_CONDITION = re.compile(r"\s*([A-Za-z/][\w/-]*)\s*(>=|<=|==|!=|>|<|=)\s*(\d+(?:\.\d+)?)\s*(%?)\s*")
_OPERATORS: dict[str, Callable[[float, float], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
    "=": operator.eq,
    "==": operator.eq,
    "!=": operator.ne,
}
_Figure = Callable[[Summary], float | None]
_FIGURES: dict[str, _Figure] = {
    "moved": lambda s: s.moved,
    "assigned": lambda s: s.assigned,
    "unassigned": lambda s: s.unassigned,
    "added": lambda s: s.added,
    "removed": lambda s: s.removed,
    "idle": lambda s: s.after.idle,
    "unowned": lambda s: s.after.unowned,
    "multiply-owned": lambda s: s.after.multiply_owned,
    "shared-id": lambda s: s.after.shared_id,
    "max": lambda s: s.after.most,
    "min": lambda s: s.after.least,
    "max/mean": lambda s: s.after.max_over_mean,
    "lag-moved": lambda s: s.lag_moved,
    "excess-moves": lambda s: None if s.least_moves is None else s.moved - s.least_moves,
}
_WHOLES: dict[str, _Figure] = {
    "moved": lambda s: s.before.queues - s.removed,
    "assigned": lambda s: s.after.queues,
    "unassigned": lambda s: s.after.queues,
    "idle": lambda s: s.after.consumers,
    "unowned": lambda s: s.after.queues,
    "multiply-owned": lambda s: s.after.queues,
    "shared-id": lambda s: s.after.queues,
}
NAMES = tuple(_FIGURES)


class Condition(Struct, frozen=True):
    """A parsed condition.

    Attributes:
        text: as typed.
        name: the figure.
        compare: the comparison.
        limit: what it is compared with; a percentage when `percent`.
        percent: the figure is taken as a share of its whole (queues, or consumers for `idle`).
    """

    text: str
    name: str
    compare: Callable[[float, float], bool]
    limit: float
    percent: bool

    def try_on(self, summary: Summary) -> TriedCondition:
        """Whether the condition is there; unknown when its figure is."""
        value = _FIGURES[self.name](summary)
        if self.percent:
            whole = _WHOLES[self.name](summary)
            value = 100 * value / whole if value is not None and whole else None
        met = None if value is None else self.compare(value, self.limit)
        return TriedCondition(self.text, value, met)


def parse_condition(text: str) -> Condition:
    """A condition as typed: NAME, a comparison, a number, perhaps a percent sign.

    Raises:
        UsageError: it is not of that form, or there is no such figure.
    """
    match = _CONDITION.fullmatch(text)
    if not match:
        raise UsageError(
            f"--fail-on {text!r}: not a condition", hint="write NAME>NUMBER or NAME>NUMBER%, as in 'idle>0'"
        )
    name = re.sub(r"([a-z])([A-Z])", r"\1-\2", match[1]).lower()
    if name not in _FIGURES:
        raise UsageError(f"--fail-on {text!r}: there is no figure {match[1]}", hint=suggestion("figures", name, NAMES))
    if match[4] and name not in _WHOLES:
        raise UsageError(f"--fail-on {text!r}: {name} is not a share of anything", hint="leave out the percent sign")
    return Condition(text.strip(), name, _OPERATORS[match[2]], float(match[3]), bool(match[4]))
