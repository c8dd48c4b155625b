from collections.abc import Iterator, Sequence
from typing import get_args

from msgspec.structs import replace

from rmqlb.engine.group import Group
from rmqlb.engine.group_findings import planning_findings
from rmqlb.engine.plan.rebalance import Side, plan_rebalance
from rmqlb.engine.plan_topic import Keys, PlannedGroup, Routes, TopicRequest, consumed_per_ms, routes_of
from rmqlb.engine.plan_topic import check_step as check_one_step
from rmqlb.engine.plan_topic import plan_topic as steps_of_topic
from rmqlb.engine.rebalance.start_offsets import new_queues, start_questions
from rmqlb.engine.send.profile import sdks_of
from rmqlb.engine.source_findings import sighting_findings, source_findings
from rmqlb.errors import DataError, UsageError
from rmqlb.model.group_scenario import CONSUME_FROM_LAST_OFFSET
from rmqlb.model.plan_topic import StepCheck, TopicChangePlan
from rmqlb.model.result import INFO, Finding, Meta, Progress, counted, named, no_progress, with_meta
from rmqlb.model.route import BrokerData
from rmqlb.model.send_scenario import ProxyMode
from rmqlb.model.snapshot import ClusterSnapshot, Everything, Wanted
from rmqlb.verbs import parse as values
from rmqlb.verbs.amounts import one_of
from rmqlb.verbs.parse import names_of, texts_of
from rmqlb.verbs.selection import select
from rmqlb.verbs.source import AnySource, Earlier, Reader, ask_route, ask_starts, ask_type, earlier, reader
from rmqlb.verbs.strategies import Strategies

MESSAGE_TYPES = ("NORMAL", "FIFO", "DELAY", "TRANSACTION", "MIXED", "PRIORITY", "LITE")
_NATIVE = ("rocketmq://", "rocketmqs://")


def plan_topic(
    source: AnySource,
    topic: str,
    *,
    queues: int | str | None = None,
    add_brokers: str | Sequence[str] | None = (),
    drain_brokers: str | Sequence[str] | None = (),
    move_to_cluster: str | None = None,
    message_type: str | None = None,
    unordered: bool = False,
    groups: str | Sequence[str] | None = (),
    strategy: str | None = None,
    strategy_options: str | Sequence[str] | None = (),
    keys: str | Sequence[str] | None = None,
    sdks: str | Sequence[str] | None = (),
    proxy_mode: str = "local",
    rates_since: AnySource | Earlier | None = None,
    check_step: int | None = None,
    progress: Progress = no_progress,
) -> TopicChangePlan:
    """Plan a change of a topic's queues in steps, with the mqadmin commands to copy and what to wait for.

    `keys` are the messages' keys themselves. DataError is also raised if it is unknown whether step `check_step` holds.
    """
    given, drained = texts_of(add_brokers), texts_of(drain_brokers)
    request = TopicRequest(
        queues=None if queues is None else values.queue_number(str(queues), f"--queues {queues}"),
        add_brokers=tuple(values.new_broker(text, f"--add-broker {text}") for text in given),
        drain_brokers=tuple(dict.fromkeys(drained)),
        move_to_cluster=move_to_cluster,
        ordered=not unordered,
    )
    _check(request, given)
    texts = tuple(dict.fromkeys(() if keys is None else texts_of(keys)))
    sent = Keys(texts, tuple(sdks_of(names_of(sdks))), one_of(proxy_mode, "--proxy-mode", get_args(ProxyMode)))
    typed = None if message_type is None else one_of(message_type, "--message-type", MESSAGE_TYPES)
    strategies = Strategies(strategy_options)
    own = strategies.optional(strategy)
    strategies.must_apply(reported=own is None)
    before, opened = earlier(rates_since), reader(source)
    wanted = Wanted((topic,), everything=Everything(topics=(topic,), groups=names_of(groups)))
    snapshot = opened.fetch(wanted)
    progress(topic, 0, 0)
    routes = routes_of(snapshot.route(topic), request, _known(snapshot, request, opened))
    then = None if before is None else before.source.fetch(wanted)
    present = Wanted(several=names_of(groups) or ("*",)).groups_among(snapshot.groups)
    names = [name for name in present if snapshot.group(name).subscribes_to(topic)]
    planned: list[PlannedGroup] = []
    findings = [*sighting_findings(snapshot.routes[topic]), *source_findings(snapshot)]
    offline: list[str] = []
    for name in names:
        rates = {} if then is None or before is None else consumed_per_ms(snapshot, then, name, before.option)
        group = PlannedGroup(name, None, snapshot.group(name).without_foreign_offsets.queues, consumed_per_ms=rates)
        try:
            found = select(topics=(topic,)).resolve(snapshot, name, strategies.settings_for, strategy=own)
            found.must_share(broadcasting=True, pop=True)
            if found.client_ids and not found.broadcasting and not found.popped_routes:
                group, missing = _with_members(group, found, routes, opened)
                findings += (each for each in planning_findings(found) if each.group in (None, found.name))
                findings += missing
            elif not found.client_ids and not found.broadcasting and found.consume_from == CONSUME_FROM_LAST_OFFSET:
                offline.append(name)
        except (DataError, UsageError) as error:
            text = f"group {name}: its owners are not predicted: {error.problem}"
            findings.append(Finding("owners-not-planned", text, name, INFO))
        planned.append(group)
    known_type, of_type = _message_type(typed, routes, opened)
    known_groups, servers = planned if snapshot.groups else None, _name_servers(snapshot)
    plan = steps_of_topic(routes, request, known_groups, sent, name_servers=servers, message_type=known_type)
    if check_step is not None:
        plan = replace(plan, checked=_checked(plan, check_step, snapshot, names))
    findings += (*_offline(offline, routes), *of_type)
    return with_meta(plan, Meta(snapshot, tuple(dict.fromkeys(findings))))


def _check(request: TopicRequest, add_brokers: Sequence[str]) -> None:
    if request.queues == 0:
        raise UsageError("--queues 0: a topic without queues takes no message", hint="write 1 or more")
    values.must_differ(add_brokers, [broker.name for broker in request.add_brokers], "--add-broker")
    for broker, text in zip(request.add_brokers, add_brokers, strict=True):
        if request.queues is not None and broker.read_queue_nums is not None:
            hint = f"--queues applies to all brokers: write --add-broker {broker.name}"
            raise UsageError(f"--queues {request.queues} and --add-broker {text} contradict each other", hint=hint)
    if request == TopicRequest(ordered=request.ordered):
        hint = "name a change with --queues N, --add-broker, --drain-broker or --move-to-cluster"
        raise UsageError("what changes?", hint=hint, code="nothing-changes")


def _checked(plan: TopicChangePlan, number: int, snapshot: ClusterSnapshot, groups: Sequence[str]) -> StepCheck:
    if not 0 < number <= len(plan.steps):
        raise UsageError(f"--check-step {number}: the plan has {len(plan.steps)} steps")
    checked = check_one_step(plan.steps, number, snapshot, plan.topic, groups)
    if checked.holds is None:
        unknown = [each.found.removeprefix("unknown: ") for each in checked.conditions if each.holds is None]
        text = f"--check-step {number}: the condition is unknown: {'; '.join(unknown)}"
        hint = "read the running cluster, or a snapshot with groups (fetch-routes --all)"
        raise DataError(text, hint=hint, code="step-not-known")
    return checked


def _message_type(typed: str | None, routes: Routes, reader: Reader) -> tuple[str | None, list[Finding]]:
    """The topic's type, where a broker is to get the topic, as typed or as a broker reports; or that it is unknown."""
    has = {data.broker_name for data in routes.now.queue_datas}
    new = [data.broker_name for data in routes.target.queue_datas if data.broker_name not in has]
    if typed is not None or not new:
        return typed, []
    found = ask_type(reader, routes.now)
    if found is not None:
        return found, []
    text = f"message.type of topic {routes.now.topic} is unknown: updateTopic makes it NORMAL on {named(new)}"
    return None, [Finding("message-type-unknown", f"{text}; name the type with --message-type")]


def _known(snapshot: ClusterSnapshot, request: TopicRequest, reader: Reader) -> list[BrokerData]:
    """The brokers that the source knows: of a running cluster those asked for, by the topic that has their name."""
    own = [broker.name for broker in request.add_brokers]
    own += [] if request.move_to_cluster is None else [request.move_to_cluster]
    routes = [route for name in own if (route := ask_route(reader, name)) is not None]
    return [*snapshot.brokers, *(broker for route in routes for broker in route.broker_datas)]


def _name_servers(snapshot: ClusterSnapshot) -> str | None:
    """For mqadmin's `-n`, where the source is NameServers that speak as mqadmin does."""
    endpoint = snapshot.endpoint
    prefix = next((prefix for prefix in _NATIVE if endpoint.startswith(prefix)), None)
    return None if prefix is None else endpoint.removeprefix(prefix).rstrip("/").replace(",", ";")


def _with_members(
    group: PlannedGroup, found: Group, routes: Routes, reader: Reader
) -> tuple[PlannedGroup, Sequence[Finding]]:
    """The group with its consumers, and with the offsets of queues that it begins to read and may have messages."""
    group = replace(group, members=found.members, consume_from=found.consume_from)
    if found.seen is None:
        return group, ()
    before, after = (Side(found.members, (route,)) for route in (routes.now, routes.opened))
    plan = plan_rebalance(group.name, before, after, states=group.states)
    questions = start_questions(plan, found.seen, found.consume_from, (routes.now,))
    readable, is_new = set(routes.now.subscribe_queues()), new_queues((routes.now,))  # a new queue is empty
    stored = [each for each in questions if each.queue not in readable and not is_new(each.queue)]
    answers, missing = ask_starts(reader, found.seen, stored)
    return replace(group, states={**group.states, **answers}), missing


def _offline(names: Sequence[str], routes: Routes) -> Iterator[Finding]:
    if names and not set(routes.target.subscribe_queues()) <= set(routes.now.subscribe_queues()):
        yield Finding(
            "starts-later",
            f"no consumer of {counted(len(names), 'group')} is online ({named(names)}): one that starts after "
            "producers have written a new queue begins at its first message only while the broker has that in memory, "
            "otherwise at its end",
        )
