"""Files that `record` reads: recordings, and predictions of plans and simulations."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct, ValidationError
from msgspec.structs import replace

from rmqlb.decoding import convert
from rmqlb.engine.record.compare import Expected, of_plan, of_simulation
from rmqlb.engine.record.follow import at_event
from rmqlb.errors import UsageError
from rmqlb.model.finding import Finding
from rmqlb.model.plan import TopicPlan
from rmqlb.model.recording import Recording
from rmqlb.model.simulate_rebalance import QueueTimeline
from rmqlb.model.snapshot import ClusterSnapshot, suggestion
from rmqlb.sources.user_files.send_inputs import read_text

MOST_BYTES = 256 << 20
_PREDICTIONS = ("rmqlb/plan", "rmqlb/simulate-rebalance")


class _Plan(Struct, rename="camel"):
    """Of a plan, what is compared."""

    group: str | None
    topics: tuple[TopicPlan, ...]


class _Event(Struct, rename="camel"):
    at_ms: float
    kind: str
    subject: str


class _Simulation(Struct, rename="camel"):
    """Of a simulation, what is compared."""

    group: str | None
    queues: tuple[QueueTimeline, ...]
    events: tuple[_Event, ...]


def expected(paths: Sequence[str], group: str) -> Expected:
    """What the files of `--against` predict of the group (raises UsageError)."""
    parts = [_part(path, group) for path in paths]
    plans = [part for part in parts if isinstance(part, _Plan)]
    simulations = [part for part in parts if isinstance(part, _Simulation)]
    if plans and len(parts) > 1:
        raise UsageError("--against takes one plan, or several simulations as trials", hint="name one of them")
    if plans:
        return of_plan(plans[0].topics)
    events = simulations[0].events
    first = (events[0].kind, events[0].subject, events[0].at_ms) if events else None
    return of_simulation([simulation.queues for simulation in simulations], first)


def _part(path: str, group: str) -> _Plan | _Simulation:
    document = _document(path, "--against", "what plan-rebalance or simulate-rebalance wrote with -o json")
    try:
        kind = str(document["schema"]).removesuffix("-of-groups")
        if kind not in _PREDICTIONS:
            raise KeyError(kind)
        data = document["data"]
        parts = data.get("groups", [data]) if "topics" not in data else [data]
        named = {part["group"]: part for part in parts}
        if group in named:
            part = named[group]
            return convert(part, _Plan) if kind == "rmqlb/plan" else convert(part, _Simulation)
    except (KeyError, TypeError, AttributeError, ValidationError) as error:
        raise _wrong(path, "--against", "a plan or a simulation", error) from None
    problem = f"--against {path}: it is not of {group}"
    raise UsageError(problem, hint=suggestion("groups", group, [str(name) for name in named]), code="not-of-this")


def recorded(path: str, event_at_ms: int | None) -> tuple[Recording, ClusterSnapshot, tuple[Finding, ...]]:
    """The recording of `--replay`, where it is from, and what was odd about it (raises UsageError)."""
    document = _document(path, "--replay", "what rmqlb record wrote with -o json")
    try:
        if document["schema"] != "rmqlb/record":
            raise KeyError(document["schema"])
        recording = convert(document["data"], Recording)
        source, findings = document["source"], convert(document["findings"], tuple[Finding, ...])
        taken_at = None if source["takenAt"] is None else datetime.fromisoformat(source["takenAt"])
        snapshot = ClusterSnapshot(source["kind"], source["endpoint"], taken_at, context=source["context"])
        if event_at_ms is not None:
            since = (datetime.fromisoformat(recording.started_at).timestamp() * 1000).__round__()
            recording = at_event(recording, event_at_ms - since)
    except (KeyError, TypeError, ValueError, ValidationError) as error:
        raise _wrong(path, "--replay", "a recording", error) from None
    return replace(recording, comparison=None, conditions=()), snapshot, findings


def _document(path: str, option: str, what: str) -> Any:
    text = read_text(path, option, MOST_BYTES, "it has at most 256 MB")
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{option} {path}: not JSON: {error}", hint=f"name {what}", code="not-a-result") from None


def _wrong(path: str, option: str, what: str, error: Exception) -> UsageError:
    problem = f": {error}" if isinstance(error, ValidationError) else ""
    hint = (
        "name what rmqlb record wrote with -o json"
        if option == "--replay"
        else "name what plan-rebalance or simulate-rebalance wrote with -o json"
    )
    return UsageError(f"{option} {path}: it is not {what}{problem}", hint=hint, code="not-a-result")
