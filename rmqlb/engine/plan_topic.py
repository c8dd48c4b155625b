"""The steps that change a topic's queues, with their mqadmin commands and the routes between them.

Consumers own new queues before producers write them, and producers leave queues before consumers do. So every change
has the same three routes, some of which may be equal: opened (all queues readable), switched (the new writable ones),
target.

Commands mirror `UpdateTopicSubCommand` and `UpdateOrderConfCommand` (5.5.0). `updateTopic` resets each missing option
to its default (8 queues, RW, no flag), so every command has all of them. A broker that lacks the topic creates it with
the attributes in the command (`TopicConfigManager.updateSingleTopicConfigWithoutPersist`), so its first command names
the message type. Brokers take the order flag from the NameServers' configuration (`.updateOrderTopicConfig`).
`updateTopicPerm` gives each broker the queue numbers of the route's first one, and `deleteTopic` takes a whole cluster,
so neither is used.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import count, product
from math import lcm

from msgspec import Struct
from msgspec.structs import astuple, replace

from rmqlb.engine.assignment.assign import Members
from rmqlb.engine.plan.changes import NewBroker
from rmqlb.engine.plan.rebalance import Side, plan_rebalance
from rmqlb.engine.rates import seconds_between
from rmqlb.engine.rebalance.profile import Clocks
from rmqlb.engine.rebalance.start_offsets import with_starts
from rmqlb.engine.send.profile import ChosenSdk
from rmqlb.engine.send.select_queue import key_queues
from rmqlb.errors import DataError, UsageError
from rmqlb.model import plan_topic as result
from rmqlb.model.group import BROADCASTING, CONSUME_POP, ConsumerGroup, QueueState, States
from rmqlb.model.group_scenario import CONSUME_FROM_LAST_OFFSET
from rmqlb.model.message_queue import MessageQueue, QueueName, sort_queues, split
from rmqlb.model.plan import ADDED, ASSIGNED
from rmqlb.model.plan_topic import GroupEffect, KeysMoved, MovedKey, PlanStep, WaitFor
from rmqlb.model.result import counted, messages, named
from rmqlb.model.route import MASTER_ID, PERM_READ, PERM_WRITE, BrokerData, QueueData, TopicRouteData
from rmqlb.model.send_scenario import ProxyMode
from rmqlb.model.snapshot import ClusterSnapshot, suggestion

_NO_MASTER: Mapping[int, str] = {0: "unknown"}


class TopicRequest(Struct, frozen=True):
    queues: int | None = None  # read and write queues of each broker that keeps some
    add_brokers: tuple[NewBroker, ...] = ()
    drain_brokers: tuple[str, ...] = ()
    move_to_cluster: str | None = None
    ordered: bool = True  # producers that send by key are held while the writable queues change


class Routes(Struct, frozen=True):
    now: TopicRouteData
    opened: TopicRouteData
    switched: TopicRouteData
    target: TopicRouteData


def routes_of(route: TopicRouteData, request: TopicRequest, known: Iterable[BrokerData] = ()) -> Routes:
    """The routes on the way; `known` are the cluster's other brokers (raises UsageError, DataError)."""
    if route.is_static:
        text = f"topic {route.topic} is a static topic: its queues are logical and do not follow brokers"
        raise UsageError(text, hint="mqadmin updateStaticTopic adds queues to it", code="static-topic")
    target = _target(route, request, {broker.broker_name: broker for broker in known})
    old = {data.broker_name: data for data in route.queue_datas}
    datas = [_between(old.get(data.broker_name), data) for data in target.queue_datas]
    opened = replace(target, queue_datas=tuple(each for each, _ in datas), order_topic_conf=route.order_topic_conf)
    switched = replace(target, queue_datas=tuple(each for _, each in datas))
    if not target.publish_queues() or not target.subscribe_queues():
        raise UsageError(f"topic {route.topic} would have no queue left", hint="add a broker, or drain fewer")
    for data in target.queue_datas:
        name, writes = data.broker_name, data.write_queue_nums
        if data != old.get(name) and data.writable and writes > (data.read_queue_nums if data.readable else 0):
            hint = f"make them readable: --add-broker {name}:{writes}"
            raise UsageError(f"producers would write queues of {name} that consumers cannot read", hint=hint)
    return Routes(now=route, opened=opened, switched=switched, target=target)


def describe(request: TopicRequest) -> tuple[str, ...]:
    lines = [] if request.move_to_cluster is None else [f"move to cluster {request.move_to_cluster}"]
    lines += [f"add broker {broker.name}" for broker in request.add_brokers]
    lines += [] if request.queues is None else [f"{counted(request.queues, 'queue')} per broker"]
    return (*lines, *(f"drain broker {name}" for name in request.drain_brokers))


def _target(route: TopicRouteData, request: TopicRequest, known: Mapping[str, BrokerData]) -> TopicRouteData:
    brokers = route.brokers_by_name()
    everywhere = {**known, **brokers}
    there = [name for name, broker in everywhere.items() if broker.cluster == request.move_to_cluster]
    if request.move_to_cluster is not None and not there:
        problem = f"--move-to-cluster {request.move_to_cluster}: the source has no broker of that cluster"
        hint = suggestion("clusters", request.move_to_cluster, {broker.cluster for broker in everywhere.values()})
        raise DataError(problem, hint=hint, code="unknown-cluster")
    datas = {data.broker_name: data for data in route.queue_datas}
    drained = _drained(route, request, {*there})
    more = [NewBroker(name) for name in there if name not in request.drain_brokers]
    usual = Counter((d.read_queue_nums, d.write_queue_nums) for d in route.queue_datas if d.read_queue_nums > 0)
    reads, writes = usual.most_common(1)[0][0] if usual else (0, 0)
    for broker in (*request.add_brokers, *more):
        if broker.name in drained:
            raise UsageError(f"broker {broker.name} is added and drained: the changes contradict each other")
        here = datas.get(broker.name)
        first = here if here is not None and here.read_queue_nums > 0 else QueueData(broker.name, reads, writes)
        read, write = broker.read_queue_nums, broker.write_queue_nums
        datas[broker.name] = replace(
            first,
            read_queue_nums=first.read_queue_nums if read is None else read,
            write_queue_nums=(read or first.write_queue_nums) if write is None else write,
            perm=first.perm | PERM_READ | PERM_WRITE,
        )
        brokers.setdefault(broker.name, known.get(broker.name) or BrokerData("", broker.name, _NO_MASTER))
    datas = {name: _becomes(data, request.queues, name in drained) for name, data in datas.items()}
    conf, broker_datas = _order_conf(route, datas), tuple(brokers.values())
    return replace(route, queue_datas=tuple(datas.values()), broker_datas=broker_datas, order_topic_conf=conf)


def _drained(route: TopicRouteData, request: TopicRequest, there: Collection[str]) -> set[str]:
    """The brokers that lose their queues; `there` are those of the cluster to move to."""
    names = [data.broker_name for data in route.queue_datas]
    for name in request.drain_brokers:
        if name not in names:
            problem = f"--drain-broker {name}: topic {route.topic} has no such broker"
            raise DataError(problem, hint=suggestion("brokers", name, names), code="unknown-broker")
    left = () if request.move_to_cluster is None else (name for name in names if name not in there)
    return {*request.drain_brokers, *left}


def _becomes(data: QueueData, queues: int | None, drained: bool) -> QueueData:
    if drained:
        return replace(data, read_queue_nums=0, write_queue_nums=0, perm=data.perm & ~PERM_WRITE)
    if queues is None or max(data.read_queue_nums, data.write_queue_nums) <= 0:
        return data
    return replace(data, read_queue_nums=queues, write_queue_nums=queues)


def _between(old: QueueData | None, new: QueueData) -> tuple[QueueData, QueueData]:
    """The broker's queues once all are readable, and then with the final writable ones; readable ones stay readable."""
    if old is None:
        return replace(new, perm=new.perm & ~PERM_WRITE), new
    opened, most = old, max(old.read_queue_nums if old.readable else 0, new.read_queue_nums)
    if new.readable and new.read_queue_nums > 0:
        opened = replace(old, read_queue_nums=most, perm=old.perm | PERM_READ)
    if not new.writable:
        return opened, replace(opened, perm=opened.perm & ~PERM_WRITE)
    return opened, replace(new, read_queue_nums=most, perm=new.perm | (old.perm & PERM_READ))


def _order_conf(route: TopicRouteData, datas: Mapping[str, QueueData]) -> str | None:
    """The final order configuration, brokers that stay in their places; only for a topic that has one."""
    if not route.order_topic_conf:
        return route.order_topic_conf
    route.publish_queues()  # raises where clients cannot read the configuration
    listed = dict.fromkeys(split(part, ":")[0] for part in split(route.order_topic_conf, ";"))
    ordered = ((name, datas[name]) for name in dict.fromkeys((*listed, *datas)) if name in datas)
    writable = ((name, data.write_queue_nums) for name, data in ordered if data.writable)
    return ";".join(f"{name}:{number}" for name, number in writable if number > 0)


NORMAL = "NORMAL"  # the type of a topic without `message.type`
_UNIT, _UNIT_SUB = 1, 2  # `TopicSysFlag`: a unit topic, one with subscriptions of units


def commands_between(
    before: TopicRouteData, after: TopicRouteData, name_servers: str | None, message_type: str | None = None
) -> list[result.AdminCommand]:
    """Commands from one route to the other, brokers that producers gain first, so that a writable queue always exists.

    Without `name_servers` (`HOST:PORT;HOST:PORT`) mqadmin takes NAMESRV_ADDR.
    """
    old = {data.broker_name: data for data in before.queue_datas}
    changed = [data for data in after.queue_datas if data != old.get(data.broker_name)]
    changed.sort(key=lambda data: not data.perm & PERM_WRITE)
    types = (None if data.broker_name in old else message_type for data in changed)
    servers = [] if name_servers is None else ["-n", name_servers]
    found = [_update_topic(after, data, servers, kind) for data, kind in zip(changed, types, strict=True)]
    if before.order_topic_conf != after.order_topic_conf and after.order_topic_conf is not None:
        words = ["mqadmin", "updateOrderConf", *servers, "-t", after.topic, "-m", "put"]
        found.append(result.AdminCommand(None, None, shlex.join([*words, "-v", after.order_topic_conf])))
    return found


def _update_topic(
    route: TopicRouteData, data: QueueData, servers: Sequence[str], message_type: str | None
) -> result.AdminCommand:
    broker = route.broker(data.broker_name)
    known = None if broker is None else broker.broker_addrs.get(MASTER_ID)
    address = None if known == "unknown" else known
    words = ["mqadmin", "updateTopic", *servers, "-b", address or f"ADDRESS-OF-{data.broker_name}"]
    words += ["-t", route.topic, "-r", str(max(data.read_queue_nums, 0)), "-w", str(max(data.write_queue_nums, 0))]
    words += ["-p", str(data.perm), *(["-u", "true"] if data.topic_sys_flag & _UNIT else [])]
    words += ["-s", "true"] if data.topic_sys_flag & _UNIT_SUB else []
    words += [] if message_type in (None, NORMAL) else ["-a", f"+message.type={message_type}"]
    return result.AdminCommand(data.broker_name, address, shlex.join(words))


_POLL_MS = Clocks().route_poll_us / 1000
_NOTICED_MS = _POLL_MS + Clocks().rebalance_wait_us / 1000
"""Longest time until consumers own new queues: a route poll, then a rebalance."""


def plan_topic(
    routes: Routes,
    request: TopicRequest,
    groups: Sequence[PlannedGroup] | None,  # None where they are unknown
    keys: Keys | None = None,
    *,
    name_servers: str | None = None,  # for the commands' `-n`
    message_type: str | None = None,  # the topic's, for brokers that lack the topic
) -> result.TopicChangePlan:
    commands = partial(commands_between, name_servers=name_servers, message_type=message_type)
    steps = tuple(_steps(routes, groups, keys or Keys(), commands, request.ordered))
    times = [step.estimated_ms for step in steps]
    return result.TopicChangePlan(
        topic=routes.now.topic,
        changes=describe(request),
        ordered=request.ordered,
        readable_queues_before=len(routes.now.subscribe_queues()),
        readable_queues_after=len(routes.target.subscribe_queues()),
        writable_queues_before=len(routes.now.publish_queues()),
        writable_queues_after=len(routes.target.publish_queues()),
        next_step=next((step.number for step in steps if not step.done), None),
        estimated_ms=None if None in times else sum(time for time in times if time is not None),
        steps=steps,
    )


def _steps(
    routes: Routes,
    groups: Sequence[PlannedGroup] | None,
    keys: Keys,
    commands: Callable[[TopicRouteData, TopicRouteData], list[result.AdminCommand]],
    ordered: bool,
) -> Iterator[PlanStep]:
    now, opened, switched, target = routes.now, routes.opened, routes.switched, routes.target
    readable, writable = opened.subscribe_queues(), target.publish_queues()
    final = target.subscribe_queues()
    kept, numbers = set(final), count(1)
    leaving = [queue for queue in switched.subscribe_queues() if queue not in kept]
    wait_readable, wait_writable = _wait("readable", final), WaitFor("writable", _names(writable))
    opens = not set(now.subscribe_queues()).issuperset(final)
    written = now.publish_queues()
    switches = written != writable
    same_length = len(written) == len(writable)  # otherwise keys leave every queue
    losing = [queue for at, queue in enumerate(written) if not same_length or writable[at] != queue]
    drained = drain_ms(groups, losing)
    # Producers poll the route at different moments; then the queues that keys leave have to be read to their ends.
    broken_ms = 0.0 if not switches else None if drained is None else _POLL_MS + drained

    def step(
        kind: result.StepKind,
        before: TopicRouteData,
        after: TopicRouteData,
        todo: bool,
        ms: float | None,
        *waits: WaitFor,
    ) -> PlanStep:
        return PlanStep(
            number=next(numbers),
            kind=kind,
            done=not todo,
            commands=tuple(commands(before, after)) if todo else (),
            wait_for=waits,
            estimated_ms=ms if todo else 0.0,
            brokers=tuple(
                result.BrokerQueues(each.broker_name, each.read_queue_nums, each.write_queue_nums, each.perm)
                for each in sorted(after.queue_datas, key=lambda data: data.broker_name)
            ),
            readable_queues=len(after.subscribe_queues()),
            writable_queues=len(after.publish_queues()),
            groups=tuple(group_effect(group, before, after) for group in groups or ()) if before is not after else (),
        )

    yield step("add-read-queues", now, opened, opens, _NOTICED_MS, wait_readable, _wait("owned", final))
    if ordered:
        held_ms = drain_ms(groups, now.subscribe_queues())
        yield step("hold-producers", opened, opened, switches, held_ms, _wait("drained", readable))
    change = step("change-write-queues", opened, switched, switches, _POLL_MS, wait_writable)
    evenly = leaving_shares(written, writable)
    sdks, shares = ([], []) if not switches else moved_keys(now, target, keys, evenly)
    effects = [(each, out_of_order(of, shares)) for of, each in zip(groups or (), change.groups, strict=False)]
    yield replace(
        change,
        groups=tuple(replace(each, out_of_order_unheld=number) for each, number in effects),
        keys=tuple(sdks),
        uniform_share=sum(evenly.values()) / len(written) if written else 1.0,
        order_broken_ms=0.0 if ordered else broken_ms,
        order_broken_unheld_ms=broken_ms,
    )
    if ordered:
        yield step("release-producers", switched, switched, switches, 0.0, wait_writable)
    drained_ms = 0.0 if ordered and switches else drain_ms(groups, leaving)
    yield step("drain-queues", switched, switched, bool(leaving), drained_ms, wait_writable, _wait("drained", leaving))
    closing = _wait("not-readable", leaving), _wait("owned", final)
    yield step("remove-read-queues", switched, target, bool(leaving), _NOTICED_MS, *closing)


def _wait(kind: result.WaitKind, queues: Sequence[MessageQueue]) -> WaitFor:
    return WaitFor(kind, _names(sort_queues(queues)))


def _names(queues: Sequence[MessageQueue]) -> tuple[QueueName, ...]:
    return tuple(QueueName(queue.broker_name, queue.queue_id) for queue in queues)


# -- whether what a step waits for holds in a snapshot ----------------------------------------------------------------

_LASTING = ("readable", "writable")  # waits of earlier steps that must still hold


def check_step(
    steps: Sequence[PlanStep], number: int, snapshot: ClusterSnapshot, topic: str, groups: Sequence[str]
) -> result.StepCheck:
    waits = [wait for step in steps[: number - 1] for wait in step.wait_for if wait.kind in _LASTING]
    waits += steps[number - 1].wait_for
    found = tuple(check(wait, snapshot, topic, groups) for wait in dict.fromkeys(waits))
    holds = {each.holds for each in found}  # one that does not hold decides; otherwise one that is unknown does
    return result.StepCheck(number, False if False in holds else None if None in holds else True, found)


def check(wait: WaitFor, snapshot: ClusterSnapshot, topic: str, groups: Sequence[str]) -> result.Checked:
    """Whether the awaited state holds (raises DataError where the snapshot lacks the topic)."""
    snapshot.route(topic)
    if wait.kind in ("readable", "writable", "not-readable"):
        sighting = snapshot.routes[topic]
        faults = [fault for each in (sighting, *sighting.others) if (fault := _fault_of_route(wait, each.route))]
        return result.Checked(wait.kind, not faults, "; ".join(faults))
    faults, unknown = [], []
    for name in groups:
        if name in snapshot.groups:
            fault, number = _fault_of_group(wait, topic, snapshot.groups[name])
            faults += [f"group {name}{fault}"] if fault else []
            what = "lag" if wait.kind == "drained" else "owners"
            unknown += [f"group {name}: {what} of {counted(number, 'queue')}"] if number and not fault else []
    if wait.kind == "drained":
        parts = ("groups", "group", "members", "member", "offsets")
        unknown += [each.what for each in snapshot.unread if each.kind in parts]
        unknown += [] if snapshot.groups else ["the source has no group of the topic"]
    if faults:
        return result.Checked(wait.kind, holds=False, found="; ".join(faults))
    if unknown and wait.queues:
        return result.Checked(wait.kind, holds=None, found=f"unknown: {named(unknown)}")
    return result.Checked(wait.kind, holds=True, found="")


def _fault_of_route(wait: WaitFor, route: TopicRouteData) -> str | None:
    found = _names(route.publish_queues() if wait.kind == "writable" else route.subscribe_queues())
    if wait.kind == "writable":
        return None if found == wait.queues else f"producers have {counted(len(found), 'queue')}: {_listed(found)}"
    if wait.kind == "readable":
        missing = [queue for queue in wait.queues if queue not in set(found)]
        return f"consumers cannot read {_listed(missing)}" if missing else None
    left = [queue for queue in found if queue in set(wait.queues)]
    return f"consumers can still read {_listed(left)}" if left else None


def _fault_of_group(wait: WaitFor, topic: str, group: ConsumerGroup) -> tuple[str, int]:
    """The fault of the group's lag or owners, and the number of queues for which they are unknown."""
    queues = {queue: MessageQueue(topic, queue.broker_name, queue.queue_id) for queue in wait.queues}
    states = {queue: group.queues.get(of, QueueState()) for queue, of in queues.items()}
    if wait.kind == "drained":
        lags = {queue: state.lag for queue, state in states.items()}
        behind = [queue for queue, lag in lags.items() if lag]
        unread = messages(sum(lags[queue] or 0 for queue in behind), "unread ")
        return f" has {unread} in {_listed(behind)}" if behind else "", list(lags.values()).count(None)
    by_pop = group.consume_type == CONSUME_POP or "POP" in (group.request_modes or {}).get(topic, ())
    if not group.client_ids or group.message_model == BROADCASTING or by_pop:
        return "", 0
    without = [queue for queue, state in states.items() if state.owners is not None and not state.owners]
    unknown = sum(state.owners is None for state in states.values())
    return f": {_listed(without)} without an owner" if without else "", unknown


def _listed(queues: Sequence[QueueName]) -> str:
    return named(f"{queue.broker_name} {queue.queue_id}" for queue in queues)


# -- what a step does: to the owners of each group, to where new queues begin, and to the keys of producers


def consumed_per_ms(now: ClusterSnapshot, then: ClusterSnapshot, group: str, where: str) -> dict[MessageQueue, float]:
    """Messages per millisecond of each queue in both snapshots; `where` names the earlier one in errors (DataError)."""
    if group not in then.groups:
        return {}
    later, earlier = now.groups[group], then.groups[group]
    to, since = later.seen.at or now.taken_at, earlier.seen.at or then.taken_at
    length_ms = seconds_between(to, since, where) * 1000
    rates: dict[MessageQueue, float] = {}
    for queue, state in later.queues.items():
        offset, old = state.consumer_offset, earlier.queues.get(queue, QueueState()).consumer_offset
        if offset is not None and old is not None:
            rates[queue] = max(max(offset, 0) - max(old, 0), 0) / length_ms
    return rates


class PlannedGroup(Struct, frozen=True):
    name: str
    members: Members | None  # None when it has no consumer online, or when no strategy decides who owns a queue
    states: States  # what is known of its queues
    consume_from: str = CONSUME_FROM_LAST_OFFSET
    consumed_per_ms: Mapping[MessageQueue, float] = {}  # messages of each queue, as two snapshots show

    def lag(self, queue: MessageQueue) -> int | None:
        return self.states.get(queue, QueueState()).lag


class Keys(Struct, frozen=True):
    keys: tuple[str, ...] = ()
    sdks: tuple[ChosenSdk, ...] = ()
    proxy_mode: ProxyMode = "local"


def group_effect(group: PlannedGroup, before: TopicRouteData, after: TopicRouteData) -> GroupEffect:
    if group.members is None:
        return GroupEffect(group.name)
    sides = Side(group.members, (before,)), Side(group.members, (after,))
    plan = plan_rebalance(group.name, *sides, states=group.states)
    plan = with_starts(plan, group.states, group.consume_from, (before,))
    moves = ((topic.topic, move) for topic in plan.topics for move in topic.queues if move.owners_after)
    new = ((topic, move) for topic, move in moves if move.change in (ADDED, ASSIGNED))
    begun = [(MessageQueue(topic, move.broker_name, move.queue_id), move) for topic, move in new]
    rules = Counter(move.start_rule or "unknown" for _, move in begun)
    known = all(move.start_offset is not None for _, move in begun)
    at_end = [(queue, move.start_offset or 0) for queue, move in begun if move.start_rule == "end"]
    firsts = [group.states.get(queue, QueueState()).min_offset or 0 for queue, _ in at_end]
    # Even CONSUME_FROM_LAST_OFFSET begins at 0 while the first message is in the broker's memory
    # (`ConsumerManageProcessor.queryConsumerOffset`; since 5.1.0 the page cache, which on Java 17 counts as all;
    # before, the last 40 % of the machine's memory). So a queue counts that has or had messages, but no stored offset.
    lose_first = sum(end > 0 for _, end in at_end)
    same = ("moved", "added", "removed", "unassigned", "idle", "imbalance", "lag_removed")
    return GroupEffect(
        group=group.name,
        strategy=group.members.name,
        **{name: getattr(plan.summary, name) for name in same},
        starts=tuple(result.StartCount(rule, rules[rule]) for rule in sorted(rules)),
        skipped=sum(max(end - first, 0) for (_, end), first in zip(at_end, firsts, strict=True)) if known else None,
        first_lost=lose_first if known else None,
    )


Leaving = Mapping[MessageQueue, float]  # queue → the share of its keys that leave


def moved_keys(
    before: TopicRouteData, after: TopicRouteData, keys: Keys, evenly: Leaving
) -> tuple[list[KeysMoved], list[Leaving]]:
    """The moved keys of each SDK, and their shares; evenly hashed keys where none is known (raises DataError)."""
    if not keys.keys:
        return [], [evenly]
    found = key_queues(before, keys.keys, keys.sdks, keys.proxy_mode, after=after)
    sdks, leaving = list[KeysMoved](), list[Leaving]()
    for each in found.sdks:
        sent = [MovedKey(key.key, key.queues[each.sdk], (key.queues_after or {}).get(each.sdk)) for key in found.keys]
        moving = tuple(key for key in sent if each.moved and key.queue != key.queue_after)
        sdks.append(KeysMoved(each.sdk, each.moved, each.moved_share, moving))
        if each.moved is not None:
            whole, left = (Counter(key.queue for key in some if key.queue is not None) for some in (sent, moving))
            shares = {queue: left[queue] / number for queue, number in whole.items()}
            leaving.append({MessageQueue(before.topic, *astuple(queue)): share for queue, share in shares.items()})
    return sdks, leaving or [evenly]


def leaving_shares(before: Sequence[MessageQueue], after: Sequence[MessageQueue]) -> dict[MessageQueue, float]:
    """The share of each queue's evenly distributed hashes that leave the queue, by hash % n; `after` has a queue."""
    rounds = lcm(len(before), len(after)) // max(len(before), 1)
    return {
        queue: sum(after[(place + turn * len(before)) % len(after)] != queue for turn in range(rounds)) / rounds
        for place, queue in enumerate(before)
    }


def out_of_order(group: PlannedGroup, leaving: Sequence[Leaving]) -> int | None:
    """The number of unread messages whose key leaves their queue, the most of any SDK; None when unknown."""
    most = 0.0
    for shares in leaving:
        lags = {queue: group.lag(queue) for queue, share in shares.items() if share > 0}
        if None in lags.values():
            return None
        most = max(most, sum((lag or 0) * shares[queue] for queue, lag in lags.items()))
    return round(most)


def drain_ms(groups: Sequence[PlannedGroup] | None, queues: Sequence[MessageQueue]) -> float | None:
    """The time in which the groups consume all messages in the queues without new ones; None when unknown.

    Groups consume at the rates between two snapshots, which are a lower bound while messages still arrive.
    """
    if groups is None and queues:
        return None
    longest = 0.0
    for group, queue in product(groups or (), queues):
        lag, rate = group.lag(queue), group.consumed_per_ms.get(queue, 0.0)
        if lag != 0:
            if lag is None or rate <= 0:
                return None
            longest = max(longest, lag / rate)
    return longest
