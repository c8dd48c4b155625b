"""Names of topics and groups as shell patterns, and what is said of those that match nothing."""

from __future__ import annotations

from collections.abc import Collection
from fnmatch import fnmatchcase
from typing import Literal

from rmqlb.errors import DataError
from rmqlb.model.finding import Finding
from rmqlb.model.snapshot import suggestion
from rmqlb.model.system_names import is_system_group, is_system_topic

_IS_OWN = {"topic": is_system_topic, "group": is_system_group}


def in_vain_of(
    kind: Literal["topic", "group"],
    globs: Collection[str],
    present: Collection[str],
    taken: Collection[str],
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
    for name in globs:
        if name not in present and not any(char in name for char in "*?["):
            raise DataError(
                f"--{kind} {name}: it is not in {endpoint}",
                hint=suggestion(f"{kind}s", name, present) if present else None,
                code="topic-not-found" if kind == "topic" else "group-not-found",
            )
    findings = []
    for glob in globs:
        if not any(fnmatchcase(name, glob) for name in taken):
            left_out = _IS_OWN[kind](glob) or any(fnmatchcase(name, glob) for name in present)
            why = f"; RocketMQ's own are left out{but}" if left_out else ""
            findings.append(
                Finding("matches-nothing", f"none of the {kind}s matches {glob if told else 'a pattern'}{why}")
            )
    return findings
