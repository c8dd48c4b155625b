"""Results that `-o json` wrote before: recordings, and the predictions of plans and simulations."""

from __future__ import annotations

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
from rmqlb.model.finding import Finding
from rmqlb.model.plan import TopicPlan
from rmqlb.model.recording import Recording
from rmqlb.model.simulate_rebalance import QueueTimeline
from rmqlb.model.snapshot import ClusterSnapshot, suggestion
from rmqlb.sources.user_files.text_file import read_text

MOST_BYTES = 256 << 20
_SCHEMA = re.compile(r'"schema"\s*:\s*"rmqlb/(plan|simulate-rebalance)(-of-groups)?"')
_RECORDING = "what rmqlb record wrote with -o json"
_PREDICTION = "what plan-rebalance or simulate-rebalance wrote with -o json"


class StoredPlan(Struct, rename="camel"):
    group: str | None
    topics: tuple[TopicPlan, ...]


class _Event(Struct, rename="camel"):
    at_ms: float
    kind: str
    subject: str


class StoredSimulation(Struct, rename="camel"):
    group: str | None
    queues: tuple[QueueTimeline, ...]
    events: tuple[_Event, ...]


def expected(paths: Sequence[str], group: str) -> Expected:
    """The prediction of the files of `--against` for the group (raises UsageError)."""
    parts = []
    for path in paths:
        document = _document(path, "--against", _PREDICTION)
        found = predictions(document, f"--against {path}")
        if group not in found:
            hint = suggestion("groups", group, list(found))
            raise UsageError(f"--against {path}: it is not of {group}", hint=hint, code="not-of-this")
        parts.append(found[group])
    plans = [part for part in parts if isinstance(part, StoredPlan)]
    if plans and len(parts) > 1:
        raise UsageError("--against takes one plan, or several simulations as trials", hint="name one of them")
    return planned(plans[0].topics) if plans else of_trials([p for p in parts if isinstance(p, StoredSimulation)])


def of_trials(trials: Sequence[StoredSimulation]) -> Expected:
    first = next(iter(trials[0].events), None)
    event = None if first is None else (first.kind, first.subject, first.at_ms)
    return simulated([trial.queues for trial in trials], event)


def predictions(document: Any, name: str) -> Mapping[str, StoredPlan | StoredSimulation]:
    """Group → its plan or simulation in a document (raises UsageError, with the name for the document)."""
    try:
        kind = str(document["schema"]).removesuffix("-of-groups")
        if kind not in ("rmqlb/plan", "rmqlb/simulate-rebalance"):
            raise KeyError(kind)
        data = document["data"]
        parts = data.get("groups", [data]) if "topics" not in data else [data]
        if kind == "rmqlb/plan":
            return {str(part["group"]): convert(part, StoredPlan) for part in parts}
        return {str(part["group"]): convert(part, StoredSimulation) for part in parts}
    except (KeyError, TypeError, AttributeError, ValidationError) as error:
        raise _wrong(name, "a plan or a simulation", _PREDICTION, error) from None


def stored_prediction(path: str) -> Mapping[str, Expected] | None:
    """Group → the prediction that a file has; None where the file is no plan or simulation (raises UsageError)."""
    try:
        with open(path, encoding="utf-8") as file:
            is_one = _SCHEMA.search(file.read(1000)) is not None
    except (OSError, ValueError):
        is_one = False
    if not is_one:
        return None
    found = predictions(_document(path, "A", _PREDICTION), f"A {path}")
    return {
        name: planned(part.topics) if isinstance(part, StoredPlan) else of_trials([part])
        for name, part in found.items()
    }


def recorded(path: str, event_at_ms: int | None) -> tuple[Recording, ClusterSnapshot, tuple[Finding, ...]]:
    """The recording of `--replay`, its source and its findings (raises UsageError)."""
    document = _document(path, "--replay", _RECORDING)
    try:
        if document["schema"] != "rmqlb/record":
            raise KeyError(document["schema"])
        recording = convert(document["data"], Recording)
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
    text = read_text(path, option, MOST_BYTES, "it has at most 256 MB")
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{option} {path}: not JSON: {error}", hint=f"name {what}", code="not-a-result") from None


def _wrong(name: str, what: str, hint: str, error: Exception) -> UsageError:
    problem = f": {error}" if isinstance(error, ValidationError) else ""
    return UsageError(f"{name}: it is not {what}{problem}", hint=f"name {hint}", code="not-a-result")
