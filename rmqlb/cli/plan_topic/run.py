"""A change of a topic planned and shown: from the options to the exit code."""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

import typer
from msgspec.structs import replace

from rmqlb.cli.common.keys import file_of_keys, sdks_of
from rmqlb.cli.common.options import SourceOptions, StrategyOptions
from rmqlb.cli.common.reading import Reader, fetch
from rmqlb.cli.common.terminal import Terminal
from rmqlb.cli.exit_codes import ExitCode
from rmqlb.cli.plan_topic.groups import GroupsQuestion, group_names, planned_groups
from rmqlb.cli.plan_topic.options import ChangeOptions, TopicOptions
from rmqlb.engine.route_findings import sighting_findings
from rmqlb.engine.source_findings import source_findings
from rmqlb.engine.topic_change.conditions import check_step
from rmqlb.engine.topic_change.effects import Keys
from rmqlb.engine.topic_change.plan import plan_topic
from rmqlb.engine.topic_change.target import Routes, TopicRequest, routes_of
from rmqlb.errors import DataError, UsageError
from rmqlb.model.finding import Finding
from rmqlb.model.route import MASTER_ID, BrokerData
from rmqlb.model.send_scenario import ProxyMode
from rmqlb.model.snapshot import ClusterSnapshot, Everything, Wanted
from rmqlb.model.topic_change import StepCheck
from rmqlb.model.words import named
from rmqlb.verbs import parse as values
from rmqlb.verbs.amounts import one_of
from rmqlb.verbs.source import ask_route
from rmqlb.verbs.strategies import Strategies
from rmqlb.views.topic_change_view import topic_change_report

_TYPES = ("normal", "fifo", "delay", "transaction", "mixed", "priority", "lite")
_NATIVE = ("rocketmq://", "rocketmqs://")


def run(
    source: SourceOptions,
    topic: str,
    change: ChangeOptions,
    which: TopicOptions,
    strategy_options: StrategyOptions,
    terminal: Terminal,
) -> None:
    """What the command does with its options; everything that needs no source is checked before it is read."""
    request = request_of(change)
    keys = _keys(source, which)
    typed = None if change.message_type is None else one_of(change.message_type, "--message-type", _TYPES).upper()
    if which.rates_since is not None and "://" in which.rates_since:
        raise UsageError(
            f"--rates-since {which.rates_since}: an earlier snapshot is a file",
            hint="write one with fetch-routes --to FILE",
        )
    if source.source == "-" and which.rates_since == "-":
        raise UsageError("-s - and --rates-since - both read stdin")
    strategies = Strategies(strategy_options.strategy_option)
    strategy = strategies.optional(which.strategy)
    strategies.must_apply(reported=strategy is None)
    wanted, reader = _wanted(topic, which), Reader(source, terminal)
    snapshot = reader(wanted)
    routes = routes_of(snapshot.route(topic), request, _known(snapshot, request, reader))
    earlier = None
    if which.rates_since is not None:
        earlier = fetch(replace(source, source=which.rates_since), wanted, terminal)
    names = group_names(snapshot, topic, which.group)
    question = GroupsQuestion(strategies, strategy, earlier, f"--rates-since {which.rates_since}")
    groups, of_groups = planned_groups(snapshot, names, routes, question, reader)
    findings = [*sighting_findings(snapshot.routes[topic]), *source_findings(snapshot), *of_groups]
    message_type, of_type = _message_type(typed, routes, reader)
    findings += of_type
    plan = plan_topic(
        routes,
        request,
        groups if snapshot.groups else None,
        keys,
        name_servers=_name_servers(snapshot),
        message_type=message_type,
    )
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
    values.must_differ(change.add_broker or (), [broker.name for broker in request.add_brokers], "--add-broker")
    for broker, text in zip(request.add_brokers, change.add_broker or (), strict=True):
        if request.queues is not None and broker.read_queue_nums is not None:
            raise UsageError(
                f"--queues {request.queues} and --add-broker {text} contradict each other",
                hint=f"--queues is about all brokers: write --add-broker {broker.name}",
            )
    if request == TopicRequest(ordered=request.ordered):
        hint = "name it with --queues N, --add-broker, --drain-broker or --move-to-cluster"
        raise UsageError("what changes?", hint=hint, code="nothing-changes")
    return request


def _message_type(typed: str | None, routes: Routes, reader: Reader) -> tuple[str | None, list[Finding]]:
    """The topic's type, where a broker is to get the topic, as typed or as a broker reports; or that it is unknown."""
    has = {data.broker_name for data in routes.now.queue_datas}
    new = [data.broker_name for data in routes.target.queue_datas if data.broker_name not in has]
    if typed is not None or not new:
        return typed, []
    masters = (broker.broker_addrs.get(MASTER_ID) for broker in routes.now.broker_datas if broker.broker_name in has)
    found = reader.ask_message_type(routes.now.topic, [address for address in masters if address is not None])
    if found is not None:
        return found, []
    text = f"message.type of topic {routes.now.topic} is unknown: updateTopic makes it NORMAL on {named(new)}"
    return None, [Finding("message-type-unknown", f"{text}; name the type with --message-type")]


def _keys(source: SourceOptions, which: TopicOptions) -> Keys | None:
    mode: ProxyMode = one_of(which.proxy_mode, "--proxy-mode", get_args(ProxyMode))
    sdks = sdks_of(which.sdk)
    if which.keys_file is None:
        return None
    keys = dict.fromkeys(file_of_keys(which.keys_file, source.source, source.max_size))
    return Keys(tuple(keys), tuple(sdks), mode)


def _wanted(topic: str, which: TopicOptions) -> Wanted:
    """The topic with its groups; of a file all that is in it."""
    return Wanted((topic,), everything=Everything(topics=(topic,), groups=tuple(which.group or ())))


def _known(snapshot: ClusterSnapshot, request: TopicRequest, reader: Reader) -> list[BrokerData]:
    """The brokers that the source knows: of a running cluster those asked for, by the topic that has their name."""
    own = [broker.name for broker in request.add_brokers]
    own += [] if request.move_to_cluster is None else [request.move_to_cluster]
    routes = [sighting.route for sighting in snapshot.routes.values()]
    routes += [route for name in own if (route := ask_route(reader, name)) is not None]
    return [broker for route in routes for broker in route.broker_datas]


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
