"""The answer of a verb: the data that `-o json` prints, what belongs next to it, and the progress of its work.

A figure is a number of a result on which people set limits, declared once, on the field that holds it. `--fail-on`, the
limits of a policy, Prometheus metrics and the JSON Schema derive from the declaration:

    moved: Annotated[int, Figure("queues that move to another consumer", of="kept_queues")]

None is unknown, and unknown is never 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Annotated, Any, TypeVar, get_type_hints

from msgspec import Struct, field
from msgspec.structs import replace

from rmqlb.model.finding import Finding
from rmqlb.model.snapshot import ClusterSnapshot


class Meta(Struct, frozen=True):
    """The snapshot and the findings that accompany a result."""

    snapshot: Annotated[ClusterSnapshot, "the snapshot that the result is made from"]
    findings: Annotated[tuple[Finding, ...], "on that snapshot and on its groups"] = ()
    made_from: Annotated[Any, "what the engine found, for pictures and CI reports"] = None


class Result(Struct, frozen=True, rename="camel", dict=True):
    @property
    def meta(self) -> Meta:
        found = self.__dict__.get("meta")
        if isinstance(found, Meta):
            return found
        raise AttributeError("only the result of a verb has meta")


class Snapshot(Result, frozen=True, omit_defaults=True):
    """A snapshot as `rmqlb.fetch_routes` returns it; every verb takes it as a source."""

    topics: Annotated[tuple[Mapping[str, Any], ...], "each topic with its route and where it was seen"]
    groups: Annotated[tuple[Mapping[str, Any], ...], "each group with its consumers, owners and offsets"]
    unread: Annotated[tuple[Mapping[str, Any], ...], "the parts that could not be read, with the reason"]
    notes: Annotated[tuple[str, ...], "what was odd about the bytes of the source"] = ()


Kind = TypeVar("Kind", bound=Result)


def with_meta(result: Kind, meta: Meta) -> Kind:
    found = replace(result)
    found.__dict__["meta"] = meta
    return found


Progress = Callable[[str, int, int], None]  # the work, the number of parts done, of all


def no_progress(what: str, done: int, total: int) -> None:
    """A `Progress` for those who do not watch."""


class Figure(Struct, frozen=True):
    """The annotation of a field, or of a property's return value."""

    what: str  # what it counts or measures, as a noun phrase
    of: str = ""  # the field or property of the same Struct that is 100 %; "" where a percentage makes no sense
    name: str = ""  # the name in `--fail-on`; "" is the field's name in kebab case
    metric: str = ""  # the Prometheus metric without its prefix; "" for none
    unknown: str = ""  # when the figure is null, for the JSON Schema; "" where it never is

    @property
    def description(self) -> str:
        return f"{self.what}; null {self.unknown}" if self.unknown else self.what


@cache
def annotated_figures(shape: type[Struct]) -> Mapping[str, Figure]:
    hints: dict[str, Any] = get_type_hints(shape, include_extras=True)
    for base in reversed(shape.__mro__):
        for name, value in vars(base).items():
            if isinstance(value, property) and "Figure(" in str(
                getattr(value.fget, "__annotations__", {}).get("return")
            ):
                hints[name] = get_type_hints(value.fget, include_extras=True)["return"]
    found = ((name, extra) for name, hint in hints.items() for extra in getattr(hint, "__metadata__", ()))
    return {name: extra for name, extra in found if isinstance(extra, Figure)}


@cache
def figures_of(shape: type[Struct]) -> Mapping[str, tuple[str, Figure]]:
    return {
        figure.name or field.replace("_", "-"): (field, figure) for field, figure in annotated_figures(shape).items()
    }


class TriedCondition(Struct, frozen=True):
    """A `--fail-on` condition."""

    text: Annotated[str, "as typed"] = field(name="condition")
    value: Annotated[float | None, "the figure that it looked at; null when it is unknown, or without end"]
    met: Annotated[bool | None, "it is met; null when the figure is unknown"]


def sum_if_known(numbers: Iterable[int | None]) -> int | None:
    """The sum; None when a part of it is unknown.

    >>> sum_if_known([1, 2]), sum_if_known([]), sum_if_known([1, None])
    (3, 0, None)
    """
    total = 0
    for number in numbers:
        if number is None:
            return None
        total += number
    return total
