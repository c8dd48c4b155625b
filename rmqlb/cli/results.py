"""The one table of what rmqlb prints as JSON: each result's name, the commands that print it, and its shape."""

from __future__ import annotations

from collections.abc import Iterator

from rmqlb.views.json_schema import Result

_TABLE = """
snapshot (snapshot) | fetch-routes | sources.formats.snapshot_file.SnapshotDocument
    a snapshot of a cluster, as fetch-routes writes it and -s reads it
groups | show-groups | model.groups.Overview
    consumer groups in a line each, the worst first
consumers | show-consumers | model.groups.Consumers
    a group's consumers, a running process each
route | show-route | views.route_view.Routes
    topics' brokers and the queue lists that clients make of them
owners | show-owners | model.owners.OwnersReport
    who owns each queue under each strategy
owners-of-groups | show-owners | model.owners.OwnersOfGroups
    who owns each queue of several groups, with more than one --group
diagnosis | diagnose | model.diagnosis.Diagnosis
    why a group is as it is, with evidence and remedy
diagnosis-of-groups | diagnose | model.diagnosis.DiagnosisOfGroups
    why several groups are as they are, with more than one --group
diff | diff | model.diff.SnapshotDiff
    two snapshots compared, and what explains each queue's new owners
diff-prediction | diff | model.diff.PredictionDiff
    a stored plan or simulation compared with a snapshot
plan | plan-rebalance | model.plan.RebalancePlan
    a group's owners before and after a change
plan-of-groups | plan-rebalance | model.plan.PlanOfGroups
    what a change does to several groups, with more than one --group
topic-plan | plan-topic | model.plan_topic.TopicChangePlan
    the steps that change a topic's queues, and what each does
simulate-rebalance | simulate-rebalance | model.simulate_rebalance.RebalanceResult
    a consumer group over time
simulate-rebalance-of-groups | simulate-rebalance | model.simulate_rebalance.RebalanceResults
    several consumer groups over time, and producers while brokers fail, with more than one --group
plan-rollout | plan-rollout | model.plan_rollout.Rollout
    ways to restart a group's consumers
group-size | size-group | model.size_group.GroupSize
    how many consumers a group should have, size by size
sweep-failures | sweep-failures | model.sweep_failures.FailureSweep
    every loss of consumers, brokers, hosts and zones, and the least that break a limit
send | simulate-send | model.simulate_send.SendResult
    where a producer's messages go while brokers fail
attempt (whole) | simulate-send | model.simulate_send.Attempt
    one attempt to send a message, a line of -o jsonl
lost-message (whole) | simulate-send | model.simulate_send.LostMessage
    a lost message and its exception, a line of -o jsonl --trace
key-queues | select-queue | model.key_queues.KeyQueues
    which queue each key goes to, SDK by SDK
receive | simulate-receive | model.simulate_receive.ReceiveReport
    how long messages wait for consumers that receive
change (whole) | show-route, show-owners, plan-rebalance | views.row_changes.ChangeLine
    what is new since the last look, a line of --watch in a pipe
record | record | model.recording.Recording
    the owners of a live group's queues over time
record-line (whole) | record | model.recording.RecordLine
    something new that a look at a live group showed, a line of -o jsonl
check | check | model.check_result.CheckResult
    a policy's limits and what came of each
pipeline | pipeline run, pipeline ingest, pipeline judge, pipeline report | model.pipeline_result.PipelineResult
    what a run of the pipeline did, and what the last night comes to
contexts | context add, context list, context use, context remove | views.config_view.Contexts
    the contexts of the user
context | context show | views.config_view.OneContext
    one context
config | config show | views.config_view.Settings
    the settings as a command would use them
schemas | schema | views.schema_view.Schemas
    the results that have a schema
explanations | explain | views.explanations.Explanations
    what codes mean
error (whole) |  | views.envelope.ErrorDocument
    an error, alone on a line of stderr, of any command with -o json
"""
"""NAME (KIND) | COMMANDS | SHAPE, and below it the meaning; in the order of the commands.

What a command prints as a whole stands before what it prints otherwise.
"""


def _results() -> Iterator[Result]:
    lines = _TABLE.strip().split("\n")
    for head, meaning in zip(lines[::2], lines[1::2], strict=True):
        name, commands, struct = head.split(" | ")
        name, _, kind = name.partition(" ")
        yield Result(
            f"rmqlb/{name}",
            tuple(filter(None, commands.split(", "))),
            meaning.strip(),
            struct,
            kind.strip("()") or "data",  # type: ignore[arg-type]
        )


RESULTS = tuple(_results())


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
