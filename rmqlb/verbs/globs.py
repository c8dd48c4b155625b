"""Names of topics and groups as shell patterns, and what is said of those that match nothing."""

from __future__ import annotations

from collections.abc import Collection
from fnmatch import fnmatchcase
from typing import Literal

from rmqlb.errors import DataError
from rmqlb.model.finding import Finding
from rmqlb.model.snapshot import is_pattern, suggestion
from rmqlb.model.system_names import is_system_group, is_system_topic

_IS_OWN = {"topic": is_system_topic, "group": is_system_group}
Kind = Literal["topic", "group"]
Names = Collection[str]


def in_vain_of(
    kind: Kind,
    globs: Names,
    present: Names,
    taken: Names,
    endpoint: str,
    *,
    told: bool = True,
    but: str = " without --system",
) -> list[Finding]:
    """A finding for each pattern that matches nothing; DataError for a name in full that is not there.

    Args:
        taken: of those that are present.
        told: whether names may stand in findings.
        but: of RocketMQ's own, which are left out: how not.
    """
    return [
        Finding(
            "matches-nothing",
            f"none of the {kind}s matches {glob if told else 'a pattern'}{_own_left_out(kind, glob, present, but)}",
        )
        for glob in _unmatched(kind, globs, present, taken, endpoint)
    ]


def each_matches(kind: Kind, globs: Names, present: Names, taken: Names, endpoint: str) -> None:
    """DataError for a name or a pattern that matches nothing."""
    for glob in _unmatched(kind, globs, present, taken, endpoint):
        own = _own_left_out(kind, glob, present)
        raise _not_found(kind, f"{glob}: it matches no {kind} of {endpoint}{own}", glob, present)


def _unmatched(kind: Kind, globs: Names, present: Names, taken: Names, endpoint: str) -> list[str]:
    for name in globs:
        if name not in present and not is_pattern(name):
            raise _not_found(kind, f"{name}: it is not in {endpoint}", name, present)
    return [glob for glob in globs if not any(fnmatchcase(name, glob) for name in taken)]


def _own_left_out(kind: Kind, glob: str, present: Names, but: str = "") -> str:
    left_out = _IS_OWN[kind](glob) or any(fnmatchcase(name, glob) for name in present)
    return f"; RocketMQ's own are left out{but}" if left_out else ""


def _not_found(kind: Kind, problem: str, name: str, known: Names) -> DataError:
    hint = suggestion(f"{kind}s", name, known) if known else None
    if kind == "topic":
        return DataError(f"--topic {problem}", hint=hint, code="topic-not-found")
    return DataError(f"--group {problem}", hint=hint, code="group-not-found")
