"""What each command prints: its results as JSON, the tables of `--section`, and the figures of `--fail-on`."""

from collections.abc import Iterable, Mapping

from rmqlb.errors import UsageError
from rmqlb.model.snapshot import suggestion
from rmqlb.views.envelope import Kind, PrintedResult, imported


def _result(name: str, commands: str, struct: str, kind: Kind = "data") -> PrintedResult:
    return PrintedResult(f"rmqlb/{name}", tuple(filter(None, commands.split(", "))), struct, kind)


RESULTS = (
    _result("groups", "show-groups", "model.groups.Overview"),
    _result("consumers", "show-consumers", "model.groups.Consumers"),
    _result("consumers-of-groups", "show-consumers", "model.groups.ConsumersOfGroups"),
    _result("snapshot", "fetch-routes", "sources.formats.snapshot_file.SnapshotDocument", "snapshot"),
    _result("route", "show-route", "views.route_view.ShownRoutes"),
    _result("owners", "show-owners", "model.owners.OwnersReport"),
    _result("owners-of-groups", "show-owners", "model.owners.OwnersOfGroups"),
    _result("diagnosis", "diagnose", "model.diagnosis.Diagnosis"),
    _result("diagnosis-of-groups", "diagnose", "model.diagnosis.DiagnosisOfGroups"),
    _result("diff", "diff", "model.diff.SnapshotDiff"),
    _result("diff-prediction", "diff", "model.diff.PredictionDiff"),
    _result("plan", "plan-rebalance", "model.plan.RebalancePlan"),
    _result("plan-of-groups", "plan-rebalance", "model.plan.PlanOfGroups"),
    _result("topic-plan", "plan-topic", "model.plan_topic.TopicChangePlan"),
    _result("simulate-rebalance", "simulate-rebalance", "model.simulate_rebalance.RebalanceResult"),
    _result("simulate-rebalance-of-groups", "simulate-rebalance", "model.simulate_rebalance.RebalanceResults"),
    _result("plan-rollout", "plan-rollout", "model.plan.Rollout"),
    _result("group-size", "size-group", "model.size_group.GroupSize"),
    _result("group-size-of-groups", "size-group", "model.size_group.SizesOfGroups"),
    _result("sweep-failures", "sweep-failures", "model.sweep_failures.FailureSweep"),
    _result("send", "simulate-send", "model.simulate_send.SendResult"),
    _result("attempt", "simulate-send", "model.simulate_send.Attempt", "whole"),
    _result("lost-message", "simulate-send", "model.simulate_send.LostMessage", "whole"),
    _result("key-queues", "select-queue", "model.simulate_send.KeyQueues"),
    _result("receive", "simulate-receive", "model.simulate_receive.ReceiveReport"),
    _result("change", "show-route, show-owners, plan-rebalance", "views.row_changes.ChangeLine", "whole"),
    _result("record", "record", "model.recording.Recording"),
    _result("record-line", "record", "model.recording.RecordLine", "whole"),
    _result("check", "check", "model.policy.CheckResult"),
    _result(
        "pipeline",
        "pipeline run, pipeline ingest, pipeline judge, pipeline report",
        "model.pipeline_result.PipelineResult",
    ),
    _result("doctor", "doctor", "model.doctor.SourceCheck"),
    _result("contexts", "context add, context list, context use, context remove", "views.config_view.Contexts"),
    _result("context", "context show", "views.config_view.OneContext"),
    _result("config", "config show", "views.config_view.ConfiguredSettings"),
    _result("schemas", "schema", "views.json_schema.Schemas"),
    _result("explanations", "explain", "views.explanations.Explanations"),
    _result("error", "", "views.envelope.ErrorDocument", "whole"),
)
"""In the order of the commands; what a command prints as a whole comes before what it prints otherwise."""
PANELS: Mapping[str, tuple[str, ...]] = {
    "Look": ("show-groups", "show-consumers", "show-owners", "show-route", "fetch-routes"),
    "Explain": ("diagnose", "diff", "explain"),
    "Plan": ("plan-rebalance", "plan-topic", "plan-rollout", "size-group"),
    "Simulate": ("simulate-rebalance", "simulate-send", "simulate-receive", "select-queue", "sweep-failures"),
    "Watch": ("record", "check"),
    "Fleet": ("pipeline",),
    "Set up": ("doctor", "context", "config", "schema", "completion", "options"),
}
"""The panels of `rmqlb --help`, with their commands."""

ALIASES = {"snapshot": "fetch-routes"}
COMMANDS = tuple(name for names in PANELS.values() for name in names)
_IN_ONE_MODULE = ("show", "simulate")
"""First words of commands that share a module."""


def module_of(command: str) -> str:
    word = command.partition("-")[0]
    return f"cli.{word if word in _IN_ONE_MODULE else command.replace('-', '_')}"


def result_of(text: str) -> PrintedResult | None:
    """The result that a command prints, or that has this name, with or without `rmqlb/`."""
    for result in RESULTS:
        if text in (*result.commands, result.name, result.name.removeprefix("rmqlb/")):
            return result
    return None


def schema_of(data: object) -> str:
    return next(each.name for each in RESULTS if each.struct.endswith(f".{type(data).__name__}"))


def result_names() -> list[str]:
    """The commands and names that `result_of` finds, but for names without `rmqlb/`."""
    commands = dict.fromkeys(command for result in RESULTS for command in result.commands)
    return [*commands, *(result.name for result in RESULTS)]


_SECTIONS = {
    "show-groups": "groups findings",
    "show-consumers": "consumers queues groups",
    "show-route": "brokers queues",
    "show-owners": "owners mismatches pop offsets groups queues reasons consumers summary",
    "diagnose": "groups findings rules evidence queues",
    "diff": "groups topics unexplained lag queues",
    "plan-rebalance": "groups strategies consumers moves pop queues summary timeline lag-chart",
    "plan-topic": "steps commands waits groups keys brokers checked",
    "simulate-rebalance": "timeline lag-chart lag windows takeovers consumers events trials summary steps queues "
    "intervals groups producers",
    "plan-rollout": "choices order stages",
    "size-group": "chart curve candidates topics groups",
    "sweep-failures": "counterexamples broken-already groups topics unjudged losses summary",
    "simulate-send": "attempts queues brokers keys failures timeline slices totals comparison clients sdks trials "
    "spreads lost exceptions",
    "simulate-receive": "waits brokers failures crashes quantiles queues closed-forms totals messages",
    "record": "differences timeline consumers changes queues intervals comparison summary",
    "select-queue": "moved keys pairs sdks",
    "check": "failed waived incomplete not-applicable rules waivers summary",
    "doctor": "steps",
    "context": "contexts context",
    "config": "settings",
    "pipeline": "night quarantine",
    "schema": "schemas keys",
    "explain": "explanations",
}
SECTIONS: Mapping[str, tuple[str, ...]] = {command: tuple(names.split()) for command, names in _SECTIONS.items()}
"""Command, or the group of commands it is of → the tables that it may show."""


def sections_of(command: str) -> tuple[str, ...]:
    """The tables of a command, by its path as typed (`pipeline run`); none of one that shows none."""
    return SECTIONS.get(command) or SECTIONS.get(command.partition(" ")[0]) or ()


def check_sections(command: str, wanted: Iterable[str]) -> None:
    """Refuse an unknown table before anything is read or computed (raises UsageError)."""
    known = sections_of(command)
    for name in wanted:
        if name not in known:
            raise UsageError(f"--section {name}: no such table", hint=suggestion("sections", name, known))


_FIGURES = {
    "show-groups": "engine.show_groups.GROUPS_FIGURES",
    "diff": "verbs.diff.FIGURES",
    "plan-rebalance": "engine.plan.rebalance.PLAN_FIGURES",
    "simulate-rebalance": "engine.rebalance.simulate.GROUP_FIGURES",
    "plan-rollout": "engine.rebalance.simulate.ROLLOUT_FIGURES",
    "size-group": "engine.size_group.size_group.SIZE_FIGURES",
    "record": "engine.record.compare.FIGURES",
    "sweep-failures": "engine.sweep_failures.sweep.SWEEP_FIGURES",
    "simulate-send": "engine.send.findings.SEND_FIGURES",
    "simulate-receive": "engine.simulate_receive.simulate_receive.RECEIVE_FIGURES",
}
"""Command → where the figures of its `--fail-on` are, below `rmqlb`."""


def figures_of(command: str) -> tuple[str, ...]:
    """The figures of a command's `--fail-on`; a figure that takes a name in brackets ends in `[`."""
    if command not in _FIGURES:
        return ()
    figures = imported(_FIGURES[command])
    return (*figures.names, *(f"{each}[" for each in figures.of_subject))
