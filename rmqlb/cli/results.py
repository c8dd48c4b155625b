"""The one table of what rmqlb prints as JSON: each result's name, the commands that print it, and its shape."""

from __future__ import annotations

from msgspec import Struct

from rmqlb.model.diagnosis import Diagnosis, DiagnosisOfGroups
from rmqlb.model.diff import SnapshotDiff
from rmqlb.model.fleet import FleetSummary
from rmqlb.model.group_size import GroupSize
from rmqlb.model.groups import Consumers, Overview
from rmqlb.model.key_queues import KeyQueues
from rmqlb.model.owners import OwnersReport
from rmqlb.model.plan import RebalancePlan
from rmqlb.model.receive_report import ReceiveReport
from rmqlb.model.recording import Recording, RecordLine, TakenSnapshot, TakenSnapshots
from rmqlb.model.rollout import Rollout
from rmqlb.model.send_report import Attempt, LostMessage
from rmqlb.model.sweep import FailureSweep
from rmqlb.model.topic_change import TopicChangePlan
from rmqlb.sources.formats.snapshot_document import SnapshotDocument
from rmqlb.views.check.result import CheckResult
from rmqlb.views.config_view import Contexts, OneContext, Settings
from rmqlb.views.envelope import ErrorDocument
from rmqlb.views.explanations import Explanations
from rmqlb.views.group.result import GroupResult
from rmqlb.views.group.several import SimulationOfGroups
from rmqlb.views.json_schema import Result
from rmqlb.views.owners.several import OwnersOfGroups
from rmqlb.views.pipeline_view import PipelineResult
from rmqlb.views.plan.several import PlanOfGroups
from rmqlb.views.route_view import Routes
from rmqlb.views.row_changes import ChangeLine
from rmqlb.views.schema_view import Schemas
from rmqlb.views.send.result import SendResult

_STAGES = ("run", "ingest", "allocate", "score", "what-if", "producers", "history", "report")
_LISTING = ("add", "list", "use", "remove")


def _scenario() -> type[Struct]:
    """Made of all options of four commands, which other schemas do not wait for."""
    from rmqlb.cli.scenario_shape import scenario_shape

    return scenario_shape()


RESULTS = (
    Result(
        "rmqlb/snapshot",
        ("fetch-routes",),
        "a snapshot of a cluster, as fetch-routes writes it and -s reads it",
        SnapshotDocument,
        "snapshot",
    ),
    Result("rmqlb/groups", ("show-groups",), "consumer groups in a line each, the worst first", Overview),
    Result("rmqlb/consumers", ("show-consumers",), "a group's consumers, a running process each", Consumers),
    Result("rmqlb/route", ("show-route",), "topics' brokers and the queue lists that clients make of them", Routes),
    Result("rmqlb/owners", ("show-owners",), "who owns each queue under each strategy", OwnersReport),
    Result(
        "rmqlb/owners-of-groups",
        ("show-owners",),
        "who owns each queue of several groups, with more than one --group",
        OwnersOfGroups,
    ),
    Result("rmqlb/diagnosis", ("diagnose",), "why a group is as it is, with evidence and remedy", Diagnosis),
    Result(
        "rmqlb/diagnosis-of-groups",
        ("diagnose",),
        "why several groups are as they are, with more than one --group",
        DiagnosisOfGroups,
    ),
    Result("rmqlb/diff", ("diff",), "two snapshots compared, and what explains each queue's new owners", SnapshotDiff),
    Result("rmqlb/plan", ("plan-rebalance",), "a group's owners before and after a change", RebalancePlan),
    Result(
        "rmqlb/plan-of-groups",
        ("plan-rebalance",),
        "what a change does to several groups, with more than one --group",
        PlanOfGroups,
    ),
    Result(
        "rmqlb/topic-plan",
        ("plan-topic",),
        "the steps that change a topic's queues, and what each does",
        TopicChangePlan,
    ),
    Result("rmqlb/simulate-rebalance", ("simulate-rebalance",), "a consumer group over time", GroupResult),
    Result(
        "rmqlb/simulate-rebalance-of-groups",
        ("simulate-rebalance",),
        "several consumer groups over time, and producers while brokers fail, with more than one --group",
        SimulationOfGroups,
    ),
    Result("rmqlb/plan-rollout", ("plan-rollout",), "ways to restart a group's consumers", Rollout),
    Result("rmqlb/group-size", ("size-group",), "how many consumers a group should have, size by size", GroupSize),
    Result(
        "rmqlb/sweep-failures",
        ("sweep-failures",),
        "every loss of consumers, brokers, hosts and zones, and the least that break a limit",
        FailureSweep,
    ),
    Result("rmqlb/send", ("simulate-send",), "where a producer's messages go while brokers fail", SendResult),
    Result("rmqlb/attempt", ("simulate-send",), "one attempt to send a message, a line of -o jsonl", Attempt, "whole"),
    Result(
        "rmqlb/lost-message",
        ("simulate-send",),
        "a lost message and its exception, a line of -o jsonl --trace",
        LostMessage,
        "whole",
    ),
    Result("rmqlb/key-queues", ("select-queue",), "which queue each key goes to, SDK by SDK", KeyQueues),
    Result("rmqlb/receive", ("simulate-receive",), "how long messages wait for consumers that receive", ReceiveReport),
    Result(
        "rmqlb/change",
        ("show-route", "show-owners", "plan-rebalance"),
        "what is new since the last look, a line of --watch in a pipe",
        ChangeLine,
        "whole",
    ),
    Result("rmqlb/record", ("record",), "the owners of a live group's queues over time", Recording),
    Result(
        "rmqlb/record-line",
        ("record",),
        "something new that a look at a live group showed, a line of -o jsonl",
        RecordLine,
        "whole",
    ),
    Result("rmqlb/record-snapshots", ("record",), "snapshots that --to wrote to a directory", TakenSnapshots),
    Result(
        "rmqlb/taken-snapshot",
        ("record",),
        "one of them, or a look that failed, a line of -o jsonl",
        TakenSnapshot,
        "whole",
    ),
    Result("rmqlb/check", ("check",), "a policy's limits and what came of each", CheckResult),
    Result(
        "rmqlb/pipeline",
        tuple(f"pipeline {stage}" for stage in _STAGES),
        "what stages of the pipeline have done",
        PipelineResult,
    ),
    Result("rmqlb/fleet", ("pipeline generate",), "a generated fleet in numbers", FleetSummary),
    Result("rmqlb/contexts", tuple(f"context {verb}" for verb in _LISTING), "the contexts of the user", Contexts),
    Result("rmqlb/context", ("context show",), "one context", OneContext),
    Result("rmqlb/config", ("config show",), "the settings as a command would use them", Settings),
    Result("rmqlb/schemas", ("schema",), "the results that have a schema", Schemas),
    Result("rmqlb/explanations", ("explain",), "what codes mean", Explanations),
    Result("rmqlb/scenario", (), "a file for --scenario: options that are kept and replayed", _scenario, "read"),
    Result(
        "rmqlb/error", (), "an error, alone on a line of stderr, of any command with -o json", ErrorDocument, "whole"
    ),
)
"""In the order of the commands; what a command prints as a whole stands before what it prints otherwise."""


def result_of(text: str) -> Result | None:
    """The result that a command prints, or that is called so, with or without `rmqlb/`."""
    for result in RESULTS:
        if text in (*result.commands, result.name, result.name.removeprefix("rmqlb/")):
            return result
    return None


def known_names() -> list[str]:
    """All that `result_of` knows, each once, but for names without `rmqlb/`."""
    commands = dict.fromkeys(command for result in RESULTS for command in result.commands)
    return [*commands, *(result.name for result in RESULTS)]
