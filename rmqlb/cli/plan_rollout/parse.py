"""Option values of `plan-rollout` as typed, parsed. Each error names the option."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase

from rmqlb.cli.common.amounts import duration_us
from rmqlb.cli.common.group_simulation.parse_events import NUMBER_AT_ONCE
from rmqlb.engine.consume.events import renamed_apart
from rmqlb.errors import UsageError
from rmqlb.model.finding import Finding
from rmqlb.model.message_queue import sort_client_ids
from rmqlb.model.snapshot import suggestion

_MOST_CHOICES = 12
_ALL = "all"


def pauses(text: str) -> tuple[int, ...]:
    """`--pause 10s,30s`, in microseconds; each once, from the shortest."""
    return tuple(sorted({duration_us(part, "--pause") for part in _parts(text, "--pause", "10s,30s,60s")}))


def numbers(text: str) -> tuple[int, ...]:
    """`--at-once 1,2`; each once, from the smallest."""
    parts = _parts(text, "--at-once", "1,2")
    for part in parts:
        if not re.fullmatch(NUMBER_AT_ONCE, part):
            raise UsageError(f"--at-once {text}: {part} is not a number of consumers", hint="write --at-once 1,2")
    return tuple(sorted({int(part) for part in parts}))


def restarted(texts: Sequence[str], client_ids: Sequence[str]) -> tuple[str, ...] | None:
    """`--restart`: the members that restart, sorted; None for all of them."""
    if not texts or (_ALL not in client_ids and _ALL in (text.lower() for text in texts)):
        return None
    found: list[str] = []
    for text in texts:
        fitting = [text] if text in client_ids else [each for each in client_ids if fnmatchcase(each, text)]
        if not fitting:
            hint = suggestion("consumers", text, client_ids)
            raise UsageError(f"--restart {text}: it is not in the group", hint=hint, code="not-in-group")
        found += fitting
    return tuple(sort_client_ids(set(found)))


def order(text: str | None) -> tuple[str, ...] | None:
    """`--order ID,ID,…`."""
    if text is None:
        return None
    ids = tuple(part.strip() for part in text.split(","))
    if not all(ids):
        raise UsageError(f"--order {text}: a client id is empty", hint="write --order ID,ID,…")
    return ids


def becomes(
    members: Sequence[str], client_ids: Sequence[str], ids: str | None
) -> tuple[dict[str, str], tuple[Finding, ...]]:
    """Client id → its id after the restart, of those that change; and the findings about that.

    Args:
        ids: `--ids` as typed: new, same, or None.
    """
    if ids is not None and ids.lower() not in ("new", "same"):
        raise UsageError(f"--ids {ids}: write new or same")
    if ids is not None and ids.lower() == "same":
        return {}, ()
    changed = renamed_apart(members, client_ids)
    if ids is not None and members and not changed:
        raise UsageError(
            f"--ids {ids}: {members[0]} is an id that the application chose, and stays",
            hint="only host@pid#time changes by itself",
        )
    if ids is not None or not changed:
        return changed, ()
    old, new = next(iter(changed.items()))
    text = (
        f"a process that restarts names itself anew, as {new} for {old}, and may sort elsewhere; --ids same keeps ids"
    )
    return changed, (Finding("new-ids", text),)


def _parts(text: str, option: str, right: str) -> list[str]:
    parts = [part.strip() for part in text.split(",")]
    if not all(parts):
        raise UsageError(f"{option} {text}: something is missing", hint=f"write {option} {right}")
    if len(parts) > _MOST_CHOICES:
        raise UsageError(f"{option}: more than {_MOST_CHOICES} to try")
    return parts
