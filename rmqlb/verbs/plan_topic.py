"""`rmqlb.plan_topic`: a change of a topic's queues in steps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import get_args

from msgspec import Struct
from msgspec.structs import replace

from rmqlb.engine.group import Group
from rmqlb.engine.group_findings import planning_findings
from rmqlb.engine.plan.rebalance import Side, plan_rebalance
from rmqlb.engine.plan_topic.conditions import check_step as check_one_step
from rmqlb.engine.plan_topic.effects import Keys, PlannedGroup, consumed_per_ms
from rmqlb.engine.plan_topic.steps import Routes, TopicRequest, routes_of
from rmqlb.engine.plan_topic.steps import plan_topic as steps_of_topic
from rmqlb.engine.rebalance.start_offsets import new_queues, start_questions
from rmqlb.engine.route_findings import sighting_findings
from rmqlb.engine.send.sdks.profile import sdks_of
from rmqlb.engine.source_findings import source_findings
from rmqlb.errors import DataError, UsageError
from rmqlb.model.finding import INFO, Finding
from rmqlb.model.group_scenario import CONSUME_FROM_LAST_OFFSET
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.plan_topic import StepCheck, TopicChangePlan
from rmqlb.model.progress import Progress, no_progress
from rmqlb.model.result import Meta, with_meta
from rmqlb.model.route import MASTER_ID, BrokerData
from rmqlb.model.send_scenario import ProxyMode
from rmqlb.model.snapshot import ClusterSnapshot, Everything, OffsetQuestion, Wanted
from rmqlb.model.words import counted, named
from rmqlb.verbs import parse as values
from rmqlb.verbs.amounts import one_of
from rmqlb.verbs.parse import names_of, texts_of
from rmqlb.verbs.selection import Selection
from rmqlb.verbs.source import AnySource, Earlier, Reader, ask_route, ask_starts, earlier, reader
from rmqlb.verbs.strategies import Strategies

MESSAGE_TYPES = ("NORMAL", "FIFO", "DELAY", "TRANSACTION", "MIXED", "PRIORITY", "LITE")
_NATIVE = ("rocketmq://", "rocketmqs://")


def plan_topic(
    source: AnySource,
    topic: str,
    *,
    queues: int | str | None = None,
    add_brokers: str | Sequence[str] = (),
    drain_brokers: str | Sequence[str] = (),
    move_to_cluster: str | None = None,
    message_type: str | None = None,
    unordered: bool = False,
    groups: str | Sequence[str] = (),
    strategy: str | None = None,
    strategy_options: str | Sequence[str] = (),
    keys: str | Sequence[str] | None = None,
    sdks: str | Sequence[str] = (),
    proxy_mode: str = "local",
    rates_since: AnySource | Earlier | None = None,
    check_step: int | None = None,
    progress: Progress = no_progress,
) -> TopicChangePlan:
    """Plan a change of a topic's queues in steps, with the mqadmin commands to copy and what to wait for.

    Args:
        source: a URL, a file, a snapshot, a parsed document or a reader.
        topic: its name.
        queues: read and write queues on each broker afterwards.
        add_brokers: `NAME`, `NAME:READ` or `NAME:READ:WRITE`, in queues: brokers that get the topic.
        drain_brokers: brokers that lose its queues.
        move_to_cluster: to the brokers of this cluster, away from all others.
        message_type: the topic's type, for brokers that get it; None is what a running broker reports.
        unordered: no message is sent by key: leave out the steps that hold producers.
        groups: names or patterns; () is every group that reads the topic.
        strategy: what consumers run; None takes what they report or show.
        strategy_options: settings of strategies, as `virtual-nodes=20`.
        keys: of the topic's messages: how many of them move.
        sdks: whose producers send them, as `go`; () is all.
        proxy_mode: how the Proxy of gRPC producers runs: `local` or `cluster`.
        rates_since: an earlier snapshot: how fast groups read, for the estimated time.
        check_step: the number of the step whose conditions `checked` answers.
        progress: told what is being done.

    Raises:
        UsageError: an argument cannot be meant.
        DataError: the topic is not there, or whether the step holds is unknown.
        EndpointError: the source cannot be read.
    """
    request = _request(queues, texts_of(add_brokers), texts_of(drain_brokers), move_to_cluster, ordered=not unordered)
    asked_keys = _keys(None if keys is None else texts_of(keys), names_of(sdks), proxy_mode)
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
    names = group_names(snapshot, topic, names_of(groups))
    question = GroupsQuestion(strategies, own, then, "" if before is None else before.option)
    planned, of_groups = planned_groups(snapshot, names, routes, question, opened)
    known_type, of_type = _message_type(typed, routes, opened)
    findings = [*sighting_findings(snapshot.routes[topic]), *source_findings(snapshot), *of_groups, *of_type]
    plan = steps_of_topic(
        routes,
        request,
        planned if snapshot.groups else None,
        asked_keys,
        name_servers=_name_servers(snapshot),
        message_type=known_type,
    )
    if check_step is not None:
        plan = replace(plan, checked=_checked(plan, check_step, snapshot, names))
    return with_meta(plan, Meta(snapshot, tuple(dict.fromkeys(findings))))


def _checked(plan: TopicChangePlan, number: int, snapshot: ClusterSnapshot, groups: Sequence[str]) -> StepCheck:
    if not 0 < number <= len(plan.steps):
        raise UsageError(f"--check-step {number}: the plan has {len(plan.steps)} steps")
    checked = check_one_step(plan.steps, number, snapshot, plan.topic, groups)
    _must_be_known(checked)
    return checked


def _request(
    queues: int | str | None,
    add_brokers: Sequence[str],
    drain_brokers: Sequence[str],
    move_to_cluster: str | None,
    *,
    ordered: bool,
) -> TopicRequest:
    """The requested change (raises UsageError)."""
    request = TopicRequest(
        queues=None if queues is None else values.queue_number(str(queues), f"--queues {queues}"),
        add_brokers=tuple(values.new_broker(text, f"--add-broker {text}") for text in add_brokers),
        drain_brokers=tuple(dict.fromkeys(drain_brokers)),
        move_to_cluster=move_to_cluster,
        ordered=ordered,
    )
    if request.queues == 0:
        raise UsageError("--queues 0: a topic without queues takes no message", hint="write 1 or more")
    values.must_differ(add_brokers, [broker.name for broker in request.add_brokers], "--add-broker")
    for broker, text in zip(request.add_brokers, add_brokers, strict=True):
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


def _keys(keys: Sequence[str] | None, sdks: Sequence[str], proxy_mode: str) -> Keys | None:
    """The keys that producers send, each once, and whose producers (raises UsageError)."""
    mode: ProxyMode = one_of(proxy_mode, "--proxy-mode", get_args(ProxyMode))
    named = sdks_of(sdks)
    return None if keys is None else Keys(tuple(dict.fromkeys(keys)), tuple(named), mode)


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


class GroupsQuestion(Struct, frozen=True):
    """What is asked about every group alike."""

    strategies: Strategies
    strategy: str | None  # the one to predict with, or None for what consumers report or show
    earlier: ClusterSnapshot | None  # for how fast they read
    earlier_option: str  # what errors about it begin with


def group_names(snapshot: ClusterSnapshot, topic: str, patterns: Sequence[str] | None) -> list[str]:
    """The groups that read the topic (raises DataError for one that is named and not there)."""
    names = Wanted(several=tuple(patterns or ("*",))).groups_among(snapshot.groups)
    return [name for name in names if snapshot.group(name).subscribes_to(topic)]


def planned_groups(
    snapshot: ClusterSnapshot, names: Sequence[str], routes: Routes, question: GroupsQuestion, reader: Reader
) -> tuple[list[PlannedGroup], list[Finding]]:
    """The groups with what decides who owns what, and what there is to say of them (raises DataError)."""
    groups: list[PlannedGroup] = []
    findings: list[Finding] = []
    offline: list[str] = []
    for name in names:
        states = snapshot.group(name).without_foreign_offsets.queues
        group = PlannedGroup(name, None, states, consumed_per_ms=_rates(snapshot, name, question))
        try:
            chosen = Selection(topics=(routes.now.topic,))
            found = chosen.resolve(snapshot, name, question.strategies.settings_for, strategy=question.strategy)
            found.must_share(broadcasting=True, pop=True)
            if found.client_ids and not found.broadcasting and not found.popped_routes:
                of_group = (each for each in planning_findings(found) if each.group in (None, found.name))
                group = replace(group, members=found.members, consume_from=found.consume_from)
                group, missing = _with_starts(group, found, routes, reader)
                findings += (*of_group, *missing)
            elif not found.client_ids and not found.broadcasting and found.consume_from == CONSUME_FROM_LAST_OFFSET:
                offline.append(name)
        except (DataError, UsageError) as error:
            text = f"group {name}: its owners are not predicted: {error.problem}"
            findings.append(Finding("owners-not-planned", text, name, INFO))
        groups.append(group)
    return groups, [*findings, *_offline(offline, routes)]


def _rates(snapshot: ClusterSnapshot, name: str, question: GroupsQuestion) -> Mapping[MessageQueue, float]:
    if question.earlier is None:
        return {}
    return consumed_per_ms(snapshot, question.earlier, name, question.earlier_option)


def _with_starts(
    group: PlannedGroup, found: Group, routes: Routes, reader: Reader
) -> tuple[PlannedGroup, list[Finding]]:
    """The group with what brokers say of queues that it begins to read and that may have messages already."""
    if group.members is None or found.seen is None:
        return group, []
    before, after = (Side(group.members, (route,)) for route in (routes.now, routes.opened))
    plan = plan_rebalance(group.name, before, after, states=group.states)
    questions = start_questions(plan, found.seen, found.consume_from, (routes.now,))
    answers, missing = ask_starts(reader, found.seen, list(_of_opened(questions, routes)))
    return replace(group, states={**group.states, **answers}), list(missing)


def _of_opened(questions: Sequence[OffsetQuestion], routes: Routes) -> Iterator[OffsetQuestion]:
    """Those about queues that consumers cannot read yet and that are there: what is new is empty."""
    known, is_new = set(routes.now.subscribe_queues()), new_queues((routes.now,))
    return (each for each in questions if each.queue not in known and not is_new(each.queue))


def _offline(names: Sequence[str], routes: Routes) -> Iterator[Finding]:
    """That groups without a consumer do not come to new queues before producers do."""
    if names and not set(routes.target.subscribe_queues()) <= set(routes.now.subscribe_queues()):
        yield Finding(
            "starts-later",
            f"no consumer of {counted(len(names), 'group')} is online ({named(names)}): one that starts after "
            "producers have written a new queue begins at its first message only while the broker has that in memory, "
            "otherwise at its end",
        )
