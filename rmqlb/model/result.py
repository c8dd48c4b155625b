"""The answer of a verb: the data that `-o json` prints, what belongs next to it, and the words of its sentences.

A figure is a number of a result on which people set limits, declared once, on the field that holds it. `--fail-on`, the
limits of a policy, Prometheus metrics and the JSON Schema derive from the declaration:

    moved: Annotated[int, Figure("queues that move to another consumer", of="kept_queues")]

None is unknown, and unknown is never 0.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from functools import cache
from typing import Annotated, Any, Literal, TypeVar, get_type_hints

from msgspec import Struct, field
from msgspec.structs import replace

from rmqlb.model.snapshot import ClusterSnapshot

Severity = Literal["error", "warning", "info"]
ERROR: Severity = "error"
WARNING: Severity = "warning"
INFO: Severity = "info"
SEVERITIES: tuple[Severity, ...] = (ERROR, WARNING, INFO)  # the gravest first
NO_CODE = "info"  # of what is good to know and needs no explanation


class Finding(Struct, frozen=True):
    """Something odd that the tool noticed, or that is good to know."""

    code: Annotated[str, "stable, for scripts; `rmqlb explain CODE` explains it"]
    message: Annotated[str, "one line for people, naming what it is about"]
    group: Annotated[str | None, "the consumer group that the message names; null when it names none"] = None
    severity: Annotated[Severity, "error: queues have no owner, or several, now or soon; info: no fault"] = WARNING
    consumers: Annotated[tuple[str, ...], "client IDs that it is about; none if it is not about single consumers"] = ()

    @property
    def line(self) -> str:
        """Severity, message and code; `error:` begins only lines of failed commands."""
        severity = WARNING if self.severity == ERROR else self.severity
        return f"{severity}: {self.message}" + ("" if self.code == NO_CODE else f" [{self.code}]")


def info(message: str) -> Finding:
    return Finding("info", message, severity=INFO)


_NAMED = 3


def counted(number: int, noun: str) -> str:
    """A number and its noun.

    >>> counted(0, "queue"), counted(1, "queue"), counted(1200, "queue")
    ('0 queues', '1 queue', '1,200 queues')
    """
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def of_all(number: int, whole: int, noun: str = "queue") -> str:
    return f"{number:,} of {counted(whole, noun)}"


def are(number: int) -> str:
    return "is" if number == 1 else "are"


def have(number: int) -> str:
    return "has" if number == 1 else "have"


def at_least(unknown: int | None) -> str:
    """Words before a number that unknown cases may raise."""
    return "at least " if unknown else ""


def all_or_some(number: int, whole: int, noun: str = "queue") -> str:
    if number == whole == 2:
        return f"both {noun}s"
    return f"all {counted(whole, noun)}" if number == whole > 1 else of_all(number, whole, noun)


def times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"


def messages(number: int, which: str = "") -> str:
    return f"{number:,} {which}message{'' if number == 1 else 's'}"


def rate_text(per_second: float) -> str:
    """Messages per second without the unit.

    >>> rate_text(1200.4), rate_text(0.0), rate_text(0.25)
    ('1,200', '0', '0.25')
    """
    return f"{per_second:,.0f}" if per_second >= 10 or per_second == int(per_second) else f"{per_second:.2g}"


def named(names: Iterable[str]) -> str:
    """The first few names, and the number of others.

    >>> named("ab"), named("abcde")
    ('a, b', 'a, b, c and 2 more')
    """
    listed = list(names)
    more = f" and {len(listed) - _NAMED} more" if len(listed) > _NAMED else ""
    return ", ".join(listed[:_NAMED]) + more


class Meta(Struct, frozen=True):
    """The snapshot and the findings that accompany a result."""

    snapshot: Annotated[ClusterSnapshot, "the snapshot that the result is made from"]
    findings: Annotated[tuple[Finding, ...], "on that snapshot and on its groups"] = ()
    made_from: Annotated[Any, "what the engine found or took, for pictures and CI reports"] = None


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
    notes: Annotated[tuple[str, ...], "notes on how the source was read"] = ()


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
    unknown: str = "when unknown"  # when the figure is null, if it may be, for the JSON Schema


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
    value: Annotated[float | None, "the value of the figure; null when it is unknown or infinite"]
    met: Annotated[bool | None, "the condition is met; null when the figure is unknown"]


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


def utc_text(at: datetime) -> str:
    """ISO 8601, with Z for UTC.

    >>> utc_text(datetime.fromisoformat("2026-11-21T02:00:00.123+00:00"))
    '2026-11-21T02:00:00.123Z'
    """
    is_short = at.microsecond and not at.microsecond % 1000
    return at.isoformat(timespec="milliseconds" if is_short else "auto").replace("+00:00", "Z")


class SnapshotSide(Struct, frozen=True, rename="camel"):
    """Where a snapshot comes from."""

    kind: Annotated[str, "kind of source, such as dump or dashboard"]
    endpoint: Annotated[str, "its URL or path, never with a secret in it"]
    taken_at: Annotated[str | None, "ISO-8601 in UTC; null when the source does not report it"]
    context: Annotated[str | None, "the context that named the source; null when none did"]


def side_of(snapshot: ClusterSnapshot) -> SnapshotSide:
    at = snapshot.taken_at
    return SnapshotSide(snapshot.kind, snapshot.endpoint, None if at is None else utc_text(at), snapshot.context)


def in_utc(at: datetime | None) -> datetime | None:
    """A time without a zone is UTC."""
    return at.replace(tzinfo=UTC) if at is not None and at.tzinfo is None else at


def milliseconds(us: int) -> float:
    """A whole number where possible."""
    return us // 1000 if us % 1000 == 0 else us / 1000


def milliseconds_if_known(us: int | None) -> float | None:
    return None if us is None else milliseconds(us)


class Microseconds:
    """A property of a Struct: a field in milliseconds as whole microseconds."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, owner: object, kind: object = None) -> int:
        milliseconds: float = getattr(owner, self.name)
        return round(milliseconds * 1000)


FORMAT_VERSION = "2.0"


class RateSource(Struct, frozen=True, rename="camel"):
    """Where the rates come from; a rate that was given wins over an observed one."""

    given: Annotated[tuple[str, ...], "as typed: messages per second of each topic, or of one as TOPIC=R"]
    over_ms: Annotated[float | None, "time between the two samples that give the other rates; null without samples"]
