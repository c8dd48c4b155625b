"""Results that `-o json` wrote before: recordings, and the predictions of plans and simulations."""

import json
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct, ValidationError
from msgspec.structs import replace

from rmqlb.decoding import convert
from rmqlb.engine.record.compare import Expected, planned, simulated
from rmqlb.engine.record.follow import at_event
from rmqlb.errors import UsageError
from rmqlb.model.plan import TopicPlan
from rmqlb.model.recording import Recording
from rmqlb.model.result import Finding
from rmqlb.model.simulate_rebalance import QueueTimeline
from rmqlb.model.snapshot import ClusterSnapshot, suggestion
from rmqlb.sources.user_files.text_file import read_text

MOST_BYTES = 256 << 20
_SCHEMA = re.compile(r'"schema"\s*:\s*"rmqlb/(plan|simulate-rebalance)(-of-groups)?"')
_RECORDING = "a file that rmqlb record wrote with -o json"
_PREDICTION = "a file that plan-rebalance or simulate-rebalance wrote with -o json"


class _Plan(Struct, rename="camel"):
    topics: tuple[TopicPlan, ...]


class _Event(Struct, rename="camel"):
    at_ms: float
    kind: str
    subject: str


class _Simulation(Struct, rename="camel"):
    queues: tuple[QueueTimeline, ...]
    events: tuple[_Event, ...]


_SHAPES: dict[str, type[_Plan | _Simulation]] = {"rmqlb/plan": _Plan, "rmqlb/simulate-rebalance": _Simulation}


def expected(paths: Sequence[str], group: str) -> Expected:
    """The prediction of the files of `--against` for the group (raises UsageError)."""
    parts = []
    for path in paths:
        found = _predictions(_document(path, "--against", _PREDICTION), f"--against {path}")
        if group not in found:
            hint = suggestion("groups", group, list(found))
            problem = f"--against {path}: the file belongs to another group than {group}"
            raise UsageError(problem, hint=hint, code="not-of-this")
        parts.append(found[group])
    if len(parts) > 1 and any(isinstance(part, _Plan) for part in parts):
        raise UsageError("--against takes one plan, or several simulations as trials", hint="name one of them")
    return _expected(parts)


def stored_prediction(path: str) -> Mapping[str, Expected] | None:
    """Group → the prediction that a file has; None where the file is no plan or simulation (raises UsageError)."""
    try:
        with open(path, encoding="utf-8") as file:
            is_one = _SCHEMA.search(file.read(1000)) is not None
    except (OSError, ValueError):
        is_one = False
    found = _predictions(_document(path, "A", _PREDICTION), f"A {path}") if is_one else {}
    return {name: _expected([part]) for name, part in found.items()} if is_one else None


def _predictions(document: Any, name: str) -> Mapping[str, _Plan | _Simulation]:
    """Group → its plan or simulation in a document (raises UsageError, with the name for the document)."""
    try:
        shape = _SHAPES[str(document["schema"]).removesuffix("-of-groups")]
        data = document["data"]
        parts = data.get("groups", [data]) if "topics" not in data else [data]
        return {str(part["group"]): convert(part, shape) for part in parts}
    except (KeyError, TypeError, AttributeError, ValidationError) as error:
        raise _wrong(name, "a plan or a simulation", _PREDICTION, error) from None


def _expected(parts: Sequence[_Plan | _Simulation]) -> Expected:
    if isinstance(parts[0], _Plan):
        return planned(parts[0].topics)
    trials = [part for part in parts if isinstance(part, _Simulation)]
    first = next(iter(trials[0].events), None)
    event = None if first is None else (first.kind, first.subject, first.at_ms)
    return simulated([trial.queues for trial in trials], event)


def recorded(path: str, event_at_ms: int | None) -> tuple[Recording, ClusterSnapshot, tuple[Finding, ...]]:
    """The recording of `--replay`, its source and its findings (raises UsageError)."""
    document = _document(path, "--replay", _RECORDING)
    try:
        if document["schema"] != "rmqlb/record":
            raise KeyError(document["schema"])
        recording = convert(document["data"], Recording)
        if {own for each in recording.queues for one in each.intervals for own in one.owners} - {*recording.client_ids}:
            raise ValidationError("an owner of a queue is not one of its consumers")
        source, findings = document["source"], convert(document["findings"], tuple[Finding, ...])
        taken_at = None if source["takenAt"] is None else datetime.fromisoformat(source["takenAt"])
        snapshot = ClusterSnapshot(source["kind"], source["endpoint"], taken_at, context=source["context"])
        if event_at_ms is not None:
            since = round(datetime.fromisoformat(recording.started_at).timestamp() * 1000)
            recording = at_event(recording, event_at_ms - since)
    except (KeyError, TypeError, ValueError, ValidationError) as error:
        raise _wrong(f"--replay {path}", "a recording", _RECORDING, error) from None
    return replace(recording, comparison=None, conditions=()), snapshot, findings


def _document(path: str, option: str, what: str) -> Any:
    try:
        return json.loads(read_text(path, option, MOST_BYTES, "the limit is 256 MB"))
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{option} {path}: not JSON: {error}", hint=f"pass {what}", code="not-a-result") from None


def _wrong(name: str, what: str, hint: str, error: Exception) -> UsageError:
    problem = f": {error}" if isinstance(error, ValidationError) else ""
    return UsageError(f"{name}: it is not {what}{problem}", hint=f"pass {hint}", code="not-a-result")
