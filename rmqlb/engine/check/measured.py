"""What a measure says of one group or topic, and what that means for a limit."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from rmqlb.model.checking import HOLDS, INCOMPLETE, NOT_APPLICABLE, VIOLATED, Basis, Verdict
from rmqlb.model.policy import Bound, Limit

_SLACK = 1e-9
_NAMED = 3


class Measured(Struct, frozen=True):
    """A measure."""

    value: Bound | None = None  # what was measured; beside `missing` it is what is certain, and the truth may be more
    missing: str | None = None  # why the value is not wholly known, or None
    apart: str | None = None  # why the limit makes no sense here, or None
    why: str = ""  # where to look
    basis: Basis | None = None  # how the value is known, where that is a question
    one_of: bool = False  # of the names in `value` only one is true


def verdict(limit: Limit, measured: Measured) -> Verdict:
    """Whether the limit holds: what is certain decides, and only then what is missing."""
    if measured.apart is not None:
        return NOT_APPLICABLE
    if measured.value is None:
        return INCOMPLETE
    broken = _is_broken(limit, measured)
    if limit.kind.unit == "least" and measured.missing is not None:
        return INCOMPLETE if broken else HOLDS  # there may be more, which only helps
    if broken is None:
        return INCOMPLETE
    if broken:
        return VIOLATED
    return HOLDS if measured.missing is None else INCOMPLETE


def _is_broken(limit: Limit, measured: Measured) -> bool | None:
    """The value breaks the limit; None when that depends on which of several names is true."""
    value, bound = measured.value, limit.bound
    if isinstance(value, tuple) and isinstance(bound, tuple):
        others = [name for name in value if name not in bound]
        return None if measured.one_of and 0 < len(others) < len(value) else bool(others)
    if isinstance(value, int | float) and isinstance(bound, int | float):
        return value < bound if limit.kind.unit == "least" else value > bound + _SLACK
    return None


def named(names: Iterable[str]) -> str:
    """The first few names, and how many more there are."""
    listed = list(names)
    more = f" and {len(listed) - _NAMED} more" if len(listed) > _NAMED else ""
    return ", ".join(listed[:_NAMED]) + more
