"""The conditions of `--fail-on`: `idle>0`, `moved>50%`, `share[broker-a]>60%`."""

import math
import re
from collections.abc import Callable, Collection
from operator import eq, ge, gt, le, lt, ne

from msgspec import Struct

from rmqlb.errors import UsageError
from rmqlb.model.result import TriedCondition, figures_of
from rmqlb.model.snapshot import suggestion

_CONDITION = (
    r"\s*(?P<name>[A-Za-z/][\w/-]*)\s*(?:\[(?P<subject>[^\]]*)\])?\s*"
    r"(?P<compare>>=|<=|==|!=|>|<|=)\s*(?P<limit>\d+(?:\.\d+)?)\s*(?:(?P<percent>%)|(?P<unit>ms|s|m|h))?\s*"
)
_UNITS_MS: dict[str | None, int] = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000}
_OPERATORS = {">": gt, ">=": ge, "<": lt, "<=": le, "=": eq, "==": eq, "!=": ne}


class FailOn(Struct, frozen=True):
    names: Collection[str]
    of_subject: Collection[str] = ()  # figures of one part of the result, such as a broker, named in brackets
    shares: Collection[str] = ()  # figures with a percentage as a possible limit
    flags: Collection[str] = ()  # true or false: the name alone is a condition


def declared(shape: type[Struct]) -> FailOn:
    found = figures_of(shape)
    return FailOn(tuple(found), shares=tuple(name for name, (_, figure) in found.items() if figure.of))


class Condition(Struct, frozen=True):
    text: str
    name: str
    subject: str | None
    compare: Callable[[float, float], bool]
    limit: float  # a percentage when `percent`
    percent: bool

    def try_on(self, value: float | None, whole: float | None = None) -> TriedCondition:
        """Whether the condition is met; unknown when its figure is. A percentage is a share of `whole`."""
        if self.percent:
            value = 100 * value / whole if value is not None and whole else None
        if isinstance(value, float):
            value = float(f"{value:.12g}")  # 7 of 100 as a share and back is 7.000000000000001
        return TriedCondition(self.text, value, None if value is None else self.compare(value, self.limit))

    def try_on_endless(self) -> TriedCondition:
        """Try it on more than any number; JSON has no infinity, so the value is null."""
        return TriedCondition(self.text, None, self.compare(math.inf, self.limit))

    def judge(self, result: Struct) -> TriedCondition:
        field, figure = figures_of(type(result))[self.name]
        return self.try_on(getattr(result, field), getattr(result, figure.of) if self.percent else None)


def parse_condition(text: str, figures: FailOn) -> Condition:
    """NAME or NAME[SUBJECT], comparison, number, and a percent sign or unit of time or none (raises UsageError)."""
    if text.strip().lower() in figures.flags:
        return Condition(text.strip(), text.strip().lower(), None, gt, 0, percent=False)
    match = re.fullmatch(_CONDITION, text)
    if not match:
        hint = f"write {''.join(f'{flag}, ' for flag in figures.flags)}NAME>NUMBER or NAME>NUMBER%, as in 'idle>0'"
        raise UsageError(f"--fail-on {text!r}: not a condition", hint=hint)
    name = re.sub(r"([a-z])([A-Z])", r"\1-\2", match["name"]).lower()
    known = tuple(dict.fromkeys((*figures.names, *figures.of_subject)))  # some are of both
    if match["unit"]:
        name = _in_ms(text, name, known)
    if name not in known:
        problem = f"--fail-on {text!r}: there is no figure {match['name']}"
        raise UsageError(problem, hint=suggestion("figures", name, known), code="unknown-figure")
    subject = match["subject"]
    if subject is None and name not in figures.names:
        raise UsageError(f"--fail-on {text!r}: {name} needs a name in brackets", hint=f"write {name}[NAME]")
    if subject is not None and name not in figures.of_subject:
        raise UsageError(f"--fail-on {text!r}: {name} takes no name in brackets", hint="leave out the brackets")
    if match["percent"] and name not in figures.shares:
        raise UsageError(f"--fail-on {text!r}: {name} is not a share", hint="leave out the percent sign")
    limit = float(match["limit"]) * _UNITS_MS.get(match["unit"], 1)
    return Condition(text.strip(), name, subject, _OPERATORS[match["compare"]], limit, bool(match["percent"]))


def _in_ms(text: str, name: str, known: Collection[str]) -> str:
    """The figure in milliseconds for a limit with a unit: `wait-max>1s` is `wait-max-ms>1000`."""
    full = name if name.endswith("-ms") else f"{name}-ms"
    if full in known:
        return full
    if name in known:
        raise UsageError(f"--fail-on {text!r}: {name} is not a time", hint="leave out the unit")
    return name
