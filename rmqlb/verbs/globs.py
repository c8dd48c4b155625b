"""Names of topics and groups as shell patterns, and what is said of those that match nothing."""

from collections.abc import Collection, Iterator
from fnmatch import fnmatchcase
from typing import Literal

from rmqlb.errors import DataError
from rmqlb.model.group import is_system_group, is_system_topic
from rmqlb.model.result import Finding
from rmqlb.model.snapshot import is_pattern, suggestion

_IS_OWN = {"topic": is_system_topic, "group": is_system_group}
Kind = Literal["topic", "group"]
Names = Collection[str]


def in_vain_of(
    kind: Kind, globs: Names, present: Names, taken: Names, endpoint: str, *, told: bool = True
) -> list[Finding]:
    """A finding for each pattern that matches nothing (raises DataError where a name in full is not there)."""
    return [
        Finding("matches-nothing", f"none of the {kind}s matches {glob if told else 'a pattern'}{own}")
        for glob, own in _unmatched(kind, globs, present, taken, endpoint, " without --system")
    ]


def each_matches(kind: Kind, globs: Names, present: Names, taken: Names, endpoint: str) -> None:
    """DataError for a name or a pattern that matches nothing."""
    for glob, own in _unmatched(kind, globs, present, taken, endpoint):
        raise _not_found(kind, f"{glob}: it matches no {kind} of {endpoint}{own}", glob, present)


def _unmatched(
    kind: Kind, globs: Names, present: Names, taken: Names, endpoint: str, how: str = ""
) -> Iterator[tuple[str, str]]:
    for name in globs:
        if name not in present and not is_pattern(name):
            raise _not_found(kind, f"{name}: it is not in {endpoint}", name, present)
    for glob in globs:
        if not any(fnmatchcase(name, glob) for name in taken):
            left_out = _IS_OWN[kind](glob) or any(fnmatchcase(name, glob) for name in present)
            yield glob, f"; RocketMQ's own are left out{how}" if left_out else ""


def _not_found(kind: Kind, problem: str, name: str, known: Names) -> DataError:
    hint = suggestion(f"{kind}s", name, known) if known else None
    if kind == "topic":
        return DataError(f"--topic {problem}", hint=hint, code="topic-not-found")
    return DataError(f"--group {problem}", hint=hint, code="group-not-found")
