"""The tables that each command may show, so that a wrong name is told before anything is read or computed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rmqlb.errors import UsageError
from rmqlb.model.snapshot import suggestion

SECTIONS: Mapping[str, tuple[str, ...]] = {
    "show-groups": ("groups", "findings"),
    "show-consumers": ("consumers",),
    "show-route": ("brokers", "queues"),
    "show-owners": ("owners", "mismatches", "pop", "offsets", "groups", "queues", "reasons", "consumers", "summary"),
    "diagnose": ("groups", "findings", "rules", "evidence", "queues"),
    "diff": ("groups", "topics", "unexplained", "lag", "queues"),
    "plan-rebalance": ("groups", "strategies", "consumers", "moves", "pop", "queues", "summary"),
    "plan-topic": ("steps", "commands", "waits", "groups", "keys", "brokers", "checked"),
    "simulate-rebalance": (
        *("timeline", "windows", "takeovers", "consumers", "events", "trials", "summary"),
        *("steps", "queues", "intervals", "groups", "producers"),
    ),
    "plan-rollout": ("choices", "order", "stages"),
    "size-group": ("chart", "curve", "candidates", "topics"),
    "sweep-failures": ("counterexamples", "broken-already", "groups", "topics", "unjudged", "losses", "summary"),
    "simulate-send": (
        *("attempts", "queues", "brokers", "keys", "failures", "timeline", "slices", "totals"),
        *("comparison", "clients", "sdks", "trials", "spreads", "lost", "exceptions"),
    ),
    "simulate-receive": (
        *("waits", "brokers", "failures", "crashes", "quantiles", "queues", "closed-forms", "totals"),
        "messages",
    ),
    "record": ("differences", "timeline", "consumers", "changes", "queues", "intervals", "comparison", "summary"),
    "select-queue": ("moved", "keys", "pairs", "sdks"),
    "check": ("failed", "waived", "incomplete", "not-applicable", "rules", "waivers", "summary"),
    "context": ("contexts", "context"),
    "config": ("settings",),
    "pipeline": ("night", "quarantine"),
    "schema": ("schemas", "keys"),
    "explain": ("explanations",),
}
"""Command, or the group of commands it is of → the tables that it may show."""


def sections_of(command: str) -> tuple[str, ...]:
    """The tables of a command, by its path as typed (`pipeline run`); none of one that shows none."""
    return SECTIONS.get(command) or SECTIONS.get(command.partition(" ")[0]) or ()


def check_sections(command: str, wanted: Iterable[str]) -> None:
    known = sections_of(command)
    for name in wanted:
        if name not in known:
            raise UsageError(f"--section {name}: no such table", hint=suggestion("sections", name, known))
