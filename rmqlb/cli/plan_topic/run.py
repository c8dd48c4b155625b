"""A change of a topic planned and shown: from the options to the exit code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import get_args

import typer
from msgspec.structs import replace

from rmqlb.cli.common import parse as values
from rmqlb.cli.common.amounts import one_of
from rmqlb.cli.common.inputs import group_on_topics
from rmqlb.cli.common.keys import file_of_keys, sdks_of
from rmqlb.cli.common.options import GroupOptions, SourceOptions
from rmqlb.cli.common.reading import fetch
from rmqlb.cli.common.terminal import Terminal
from rmqlb.cli.exit_codes import ExitCode
from rmqlb.cli.plan_topic.options import ChangeOptions, TopicOptions
from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.assignment.detect import detect_strategy
from rmqlb.engine.route_findings import sighting_findings
from rmqlb.engine.source_findings import source_findings
from rmqlb.engine.topic_change.conditions import check_step
from rmqlb.engine.topic_change.effects import Keys, PlannedGroup
from rmqlb.engine.topic_change.plan import plan_topic
from rmqlb.engine.topic_change.rates import consumed_per_ms
from rmqlb.engine.topic_change.target import TopicRequest, routes_of
from rmqlb.errors import DataError, UsageError
from rmqlb.model.finding import INFO, Finding
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.route import BrokerData
from rmqlb.model.send_scenario import ProxyMode
from rmqlb.model.snapshot import ClusterSnapshot, Everything, Wanted
from rmqlb.model.topic_change import StepCheck
from rmqlb.views.topic_change_view import topic_change_report

_NATIVE = ("rocketmq://", "rocketmqs://")


def run(source: SourceOptions, topic: str, change: ChangeOptions, which: TopicOptions, terminal: Terminal) -> None:
    """What the command does with its options; everything that needs no source is checked before it is read."""
    request = request_of(change)
    keys = _keys(source, which)
    if which.rates_since is not None and "://" in which.rates_since:
        raise UsageError(
            f"--rates-since {which.rates_since}: an earlier snapshot is a file",
            hint="write one with fetch-routes --to FILE",
        )
    if source.source == "-" and which.rates_since == "-":
        raise UsageError("-s - and --rates-since - both read stdin")
    wanted = _wanted(topic, request, which)
    snapshot = fetch(source, wanted, terminal)
    routes = routes_of(snapshot.route(topic), request, _known(snapshot))
    earlier = None
    if which.rates_since is not None:
        earlier = fetch(replace(source, source=which.rates_since), wanted, terminal)
    names = _groups(snapshot, topic, which)
    groups, findings = [], [*sighting_findings(snapshot.routes[topic]), *source_findings(snapshot)]
    for name in names:
        rates = (
            {} if earlier is None else consumed_per_ms(snapshot, earlier, name, f"--rates-since {which.rates_since}")
        )
        group, of_group = _planned(snapshot, name, topic, rates)
        groups.append(group)
        findings += of_group
    plan = plan_topic(routes, request, groups if snapshot.groups else None, keys, name_servers=_name_servers(snapshot))
    checked = None
    if which.check_step is not None:
        if which.check_step > len(plan.steps):
            raise UsageError(f"--check-step {which.check_step}: the plan has {len(plan.steps)} steps")
        checked = check_step(plan.steps, which.check_step, snapshot, topic, names)
        _must_be_known(checked)
        plan = replace(plan, checked=checked)
    terminal.show(topic_change_report(plan), snapshot, tuple(dict.fromkeys(findings)))
    if checked is not None and not checked.holds:
        raise typer.Exit(ExitCode.CONDITION)


def request_of(change: ChangeOptions) -> TopicRequest:
    """What is asked for (raises UsageError)."""
    request = TopicRequest(
        queues=None if change.queues is None else values.queue_number(change.queues, f"--queues {change.queues}"),
        add_brokers=tuple(values.new_broker(text, f"--add-broker {text}") for text in change.add_broker or ()),
        drain_brokers=tuple(dict.fromkeys(change.drain_broker or ())),
        move_to_cluster=change.move_to_cluster,
        ordered=not change.unordered,
    )
    if request.queues == 0:
        raise UsageError("--queues 0: a topic without queues takes no message", hint="write 1 or more")
    if request == TopicRequest(ordered=request.ordered):
        hint = "name it with --queues N, --add-broker, --drain-broker or --move-to-cluster"
        raise UsageError("what changes?", hint=hint, code="nothing-changes")
    return request


def _keys(source: SourceOptions, which: TopicOptions) -> Keys | None:
    mode: ProxyMode = one_of(which.proxy_mode, "--proxy-mode", get_args(ProxyMode))
    sdks = sdks_of(which.sdk)
    if which.keys_file is None:
        return None
    keys = dict.fromkeys(file_of_keys(which.keys_file, source.source, source.max_size))
    return Keys(tuple(keys), tuple(sdks), mode)


def _wanted(topic: str, request: TopicRequest, which: TopicOptions) -> Wanted:
    """The topic with its groups; and the topics that brokers and clusters have under their own names, for addresses."""
    brokers = [broker.name for broker in request.add_brokers]
    clusters = [] if request.move_to_cluster is None else [request.move_to_cluster]
    everything = Everything(topics=(topic, *brokers, *clusters), groups=tuple(which.group or ()))
    return Wanted((topic,), everything=everything)  # the name is that of a file with a single route


def _known(snapshot: ClusterSnapshot) -> list[BrokerData]:
    return [broker for sighting in snapshot.routes.values() for broker in sighting.route.broker_datas]


def _groups(snapshot: ClusterSnapshot, topic: str, which: TopicOptions) -> list[str]:
    """The groups that read the topic (raises DataError for one that is named and not there)."""
    names = Wanted(several=tuple(which.group or ("*",))).groups_among(snapshot.groups)
    return [name for name in names if snapshot.group(name).subscribes_to(topic)]


def _planned(
    snapshot: ClusterSnapshot, name: str, topic: str, rates: Mapping[MessageQueue, float]
) -> tuple[PlannedGroup, list[Finding]]:
    """The group with its members, where a strategy decides who owns what."""
    states = snapshot.group(name).without_foreign_offsets.queues
    unplanned = PlannedGroup(name, None, states, consumed_per_ms=rates)
    try:
        found = group_on_topics(snapshot, GroupOptions(name, [topic]), broadcasting_too=True, pop_too=True)
        if found.broadcasting or found.popped or not found.client_ids:
            return unplanned, []
        members = found.members(Settings())
        detected = detect_strategy(None, found.group, found.routes, members)
    except (DataError, UsageError) as error:
        return unplanned, [
            Finding("owners-not-planned", f"group {name}: its owners are not predicted: {error.problem}", name, INFO)
        ]
    members = replace(members, strategy=detected.strategy, strategy_of=detected.strategy_of)
    of_group = (each for each in (*found.findings, *detected.findings) if each.group in (None, name))
    return PlannedGroup(name, members, states, found.consume_from, rates), list(of_group)


def _name_servers(snapshot: ClusterSnapshot) -> str | None:
    """For mqadmin's `-n`, where the source is NameServers that speak as mqadmin does."""
    endpoint = snapshot.endpoint
    prefix = next((prefix for prefix in _NATIVE if endpoint.startswith(prefix)), None)
    return None if prefix is None else endpoint.removeprefix(prefix).rstrip("/").replace(",", ";")


def _must_be_known(checked: StepCheck) -> None:
    if checked.holds is None:
        raise DataError(
            f"--check-step {checked.number}: whether it holds is unknown: {'; '.join(_unknown(checked))}",
            hint="ask the running cluster, or a snapshot of it with groups: fetch-routes --all",
            code="step-not-known",
        )


def _unknown(checked: StepCheck) -> Iterator[str]:
    return (each.found.removeprefix("unknown: ") for each in checked.conditions if each.holds is None)
