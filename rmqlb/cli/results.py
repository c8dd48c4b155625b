"""The one table of what rmqlb prints as JSON: each result's name, the commands that print it, and its shape."""

from __future__ import annotations

from rmqlb.views.json_schema import Result

_STAGES = ("run", "ingest", "judge", "report")
_LISTING = ("add", "list", "use", "remove")

RESULTS = (
    Result(
        "rmqlb/snapshot",
        ("fetch-routes",),
        "a snapshot of a cluster, as fetch-routes writes it and -s reads it",
        "sources.formats.snapshot_file.SnapshotDocument",
        "snapshot",
    ),
    Result(
        "rmqlb/groups", ("show-groups",), "consumer groups in a line each, the worst first", "model.groups.Overview"
    ),
    Result(
        "rmqlb/consumers", ("show-consumers",), "a group's consumers, a running process each", "model.groups.Consumers"
    ),
    Result(
        "rmqlb/route",
        ("show-route",),
        "topics' brokers and the queue lists that clients make of them",
        "views.route_view.Routes",
    ),
    Result("rmqlb/owners", ("show-owners",), "who owns each queue under each strategy", "model.owners.OwnersReport"),
    Result(
        "rmqlb/owners-of-groups",
        ("show-owners",),
        "who owns each queue of several groups, with more than one --group",
        "model.owners.OwnersOfGroups",
    ),
    Result(
        "rmqlb/diagnosis",
        ("diagnose",),
        "why a group is as it is, with evidence and remedy",
        "model.diagnosis.Diagnosis",
    ),
    Result(
        "rmqlb/diagnosis-of-groups",
        ("diagnose",),
        "why several groups are as they are, with more than one --group",
        "model.diagnosis.DiagnosisOfGroups",
    ),
    Result(
        "rmqlb/diff",
        ("diff",),
        "two snapshots compared, and what explains each queue's new owners",
        "model.diff.SnapshotDiff",
    ),
    Result(
        "rmqlb/diff-prediction",
        ("diff",),
        "a stored plan or simulation compared with a snapshot",
        "model.diff.PredictionDiff",
    ),
    Result("rmqlb/plan", ("plan-rebalance",), "a group's owners before and after a change", "model.plan.RebalancePlan"),
    Result(
        "rmqlb/plan-of-groups",
        ("plan-rebalance",),
        "what a change does to several groups, with more than one --group",
        "model.plan.PlanOfGroups",
    ),
    Result(
        "rmqlb/topic-plan",
        ("plan-topic",),
        "the steps that change a topic's queues, and what each does",
        "model.plan_topic.TopicChangePlan",
    ),
    Result(
        "rmqlb/simulate-rebalance",
        ("simulate-rebalance",),
        "a consumer group over time",
        "model.simulate_rebalance.RebalanceResult",
    ),
    Result(
        "rmqlb/simulate-rebalance-of-groups",
        ("simulate-rebalance",),
        "several consumer groups over time, and producers while brokers fail, with more than one --group",
        "model.simulate_rebalance.RebalanceResults",
    ),
    Result(
        "rmqlb/plan-rollout",
        ("plan-rollout",),
        "ways to restart a group's consumers",
        "model.plan_rollout.Rollout",
    ),
    Result(
        "rmqlb/group-size",
        ("size-group",),
        "how many consumers a group should have, size by size",
        "model.size_group.GroupSize",
    ),
    Result(
        "rmqlb/sweep-failures",
        ("sweep-failures",),
        "every loss of consumers, brokers, hosts and zones, and the least that break a limit",
        "model.sweep_failures.FailureSweep",
    ),
    Result(
        "rmqlb/send",
        ("simulate-send",),
        "where a producer's messages go while brokers fail",
        "model.simulate_send.SendResult",
    ),
    Result(
        "rmqlb/attempt",
        ("simulate-send",),
        "one attempt to send a message, a line of -o jsonl",
        "model.simulate_send.Attempt",
        "whole",
    ),
    Result(
        "rmqlb/lost-message",
        ("simulate-send",),
        "a lost message and its exception, a line of -o jsonl --trace",
        "model.simulate_send.LostMessage",
        "whole",
    ),
    Result(
        "rmqlb/key-queues", ("select-queue",), "which queue each key goes to, SDK by SDK", "model.key_queues.KeyQueues"
    ),
    Result(
        "rmqlb/receive",
        ("simulate-receive",),
        "how long messages wait for consumers that receive",
        "model.simulate_receive.ReceiveReport",
    ),
    Result(
        "rmqlb/change",
        ("show-route", "show-owners", "plan-rebalance"),
        "what is new since the last look, a line of --watch in a pipe",
        "views.row_changes.ChangeLine",
        "whole",
    ),
    Result("rmqlb/record", ("record",), "the owners of a live group's queues over time", "model.recording.Recording"),
    Result(
        "rmqlb/record-line",
        ("record",),
        "something new that a look at a live group showed, a line of -o jsonl",
        "model.recording.RecordLine",
        "whole",
    ),
    Result("rmqlb/check", ("check",), "a policy's limits and what came of each", "model.policy.CheckResult"),
    Result(
        "rmqlb/pipeline",
        tuple(f"pipeline {stage}" for stage in _STAGES),
        "what a run of the pipeline did, and what the last night comes to",
        "model.pipeline_result.PipelineResult",
    ),
    Result(
        "rmqlb/contexts",
        tuple(f"context {verb}" for verb in _LISTING),
        "the contexts of the user",
        "views.config_view.Contexts",
    ),
    Result("rmqlb/context", ("context show",), "one context", "views.config_view.OneContext"),
    Result(
        "rmqlb/config",
        ("config show",),
        "the settings as a command would use them",
        "views.config_view.ConfiguredSettings",
    ),
    Result("rmqlb/schemas", ("schema",), "the results that have a schema", "views.schema_view.Schemas"),
    Result("rmqlb/explanations", ("explain",), "what codes mean", "views.explanations.Explanations"),
    Result(
        "rmqlb/error",
        (),
        "an error, alone on a line of stderr, of any command with -o json",
        "views.envelope.ErrorDocument",
        "whole",
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
