"""A group's consumers and a topic's route after a change."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from itertools import count, islice

from msgspec import Struct
from msgspec.structs import replace

from rmqlb.errors import DataError, UsageError
from rmqlb.model.message_queue import sort_client_ids
from rmqlb.model.result import counted
from rmqlb.model.route import MASTER_ID, PERM_READ, PERM_WRITE, BrokerData, QueueData, TopicRouteData
from rmqlb.model.snapshot import suggestion

PLACEHOLDER_PREFIX = "placeholder-"
_REMOVE_MASTER = "--set remove-master="


class NewBroker(Struct, frozen=True):
    name: str
    read_queue_nums: int | None = None  # None is as on most of the topic's other brokers
    write_queue_nums: int | None = None  # None is the given number of read queues, otherwise as on most other brokers


class QueueCount(Struct, frozen=True):
    number: int  # how many each broker has
    broker_name: str | None = None  # the broker; None is each of the topic's


class Edits(Struct, frozen=True):
    add: tuple[str | int, ...] = ()  # client IDs, or a number of placeholders
    remove: tuple[str | int, ...] = ()  # client IDs, or a number, from the end of the sorted consumers
    replace: tuple[tuple[str, str], ...] = ()  # (old, new) client IDs, as after a restart
    scale_to: int | None = None  # final number of processes: adds placeholders, or removes the last sorted consumers
    to_strategy: str | None = None
    add_brokers: tuple[NewBroker, ...] = ()
    remove_brokers: tuple[str, ...] = ()
    remove_masters: tuple[str, ...] = ()  # brokers whose master is lost; slaves of the same name stay
    read_queues: tuple[QueueCount, ...] = ()
    write_queues: tuple[QueueCount, ...] = ()

    @property
    def touches_route(self) -> bool:
        brokers = self.add_brokers or self.remove_brokers or self.remove_masters
        return bool(brokers or self.read_queues or self.write_queues)


def placeholders(number: int, taken: Iterable[str] = ()) -> list[str]:
    """Unused client IDs that sort behind any IP address, the first 99 in their order."""
    present = set(taken)
    names = (f"{PLACEHOLDER_PREFIX}{index:02d}" for index in count(1))
    return list(islice((name for name in names if name not in present), max(number, 0)))


def change_members(client_ids: Iterable[str], changes: Edits) -> tuple[str, ...]:
    """The consumers after the change: replaced, then removed, then added, then scaled (raises UsageError)."""
    members = sort_client_ids(client_ids)
    _no_contradiction(changes)
    for old, new in changes.replace:
        _must_be_in(members, old, "--replace")
        members.remove(old)
        if new in members:
            raise UsageError(f"--replace {old}={new}: {new} is already in the group", code="already-in-group")
        members.append(new)
    for item in sorted(changes.remove, key=lambda each: isinstance(each, int)):
        if isinstance(item, str):
            _must_be_in(members, item, "--remove")
            members.remove(item)
        elif item > len(members):
            raise UsageError(f"--remove {item}: the group has only {len(members)} consumers")
        else:
            members = sort_client_ids(members)[: len(members) - item]
    for item in changes.add:
        if isinstance(item, str) and item in members:
            hint = "to simulate two processes with one client ID, name the ID twice in --consumers"
            raise UsageError(f"--add {item}: it is already in the group", hint=hint, code="already-in-group")
        members += [item] if isinstance(item, str) else placeholders(item, members)
    if changes.scale_to is not None:
        members = sort_client_ids(members)[: changes.scale_to]
        members += placeholders(changes.scale_to - len(members), members)
    return tuple(sort_client_ids(members))


def change_routes(routes: Sequence[TopicRouteData], changes: Edits) -> tuple[TopicRouteData, ...]:
    """The routes after the change (raises UsageError): only topics that have a broker lose it."""
    brokers = {data.broker_name for route in routes for data in route.queue_datas}
    names = ", ".join(route.topic for route in routes[:8]) + (", …" if len(routes) > 8 else "")
    have = f"topic {names} has" if len(routes) == 1 else f"topics {names} have"
    for option, lost in (("--remove-broker ", changes.remove_brokers), (_REMOVE_MASTER, changes.remove_masters)):
        for name in lost:
            _must_be_among(brokers, name, option, have)
    return tuple(change_route(route, changes) for route in routes)


def change_route(route: TopicRouteData, changes: Edits) -> TopicRouteData:
    """The topic's route after the change: brokers removed, then added, then queue counts set (raises UsageError).

    An added broker is readable and writable and has a master.
    """
    names = {data.broker_name for data in route.queue_datas}
    lost, headless = (names.intersection(each) for each in (changes.remove_brokers, changes.remove_masters))
    more = changes.add_brokers or changes.read_queues or changes.write_queues
    if route.is_static and (lost or headless or more):
        problem = f"topic {route.topic} is a static topic: its queues are logical and do not follow brokers"
        raise UsageError(problem, hint="plan only changes of its consumers", code="static-topic")
    for name in sorted(headless):
        route = _without_master(route, name)
    route = _without_brokers(route, lost)
    for broker in changes.add_brokers:
        route = _with_broker(route, broker)
    for kind, counts in (("read", changes.read_queues), ("write", changes.write_queues)):
        for each in counts:
            names = {data.broker_name for data in route.queue_datas}
            if each.broker_name is not None:
                _must_be_among(names, each.broker_name, f"--{kind}-queues ", f"topic {route.topic} has")
                names = {each.broker_name}
            becomes = {f"{kind}_queue_nums": each.number}
            datas = (replace(data, **becomes) if data.broker_name in names else data for data in route.queue_datas)
            route = replace(route, queue_datas=tuple(datas))
    return route


def describe(changes: Edits) -> tuple[str, ...]:
    lines = [f"{old} is replaced by {new}" for old, new in changes.replace]
    for item in changes.remove:
        last = "the last consumer" if item == 1 else f"the last {item} consumers"
        lines.append(f"remove {item if isinstance(item, str) else last}")
    lines += [f"add {item if isinstance(item, str) else counted(item, 'placeholder consumer')}" for item in changes.add]
    if changes.scale_to is not None:
        lines.append(f"scale to {counted(changes.scale_to, 'consumer')}")
    lines += [f"remove broker {name}" for name in changes.remove_brokers]
    lines += [f"remove the master of broker {name}" for name in changes.remove_masters]
    lines += [f"add broker {broker.name}" for broker in changes.add_brokers]
    for what, counts in (("read", changes.read_queues), ("write", changes.write_queues)):
        lines += [f"{each.number} {what} queues on {each.broker_name or 'every broker'}" for each in counts]
    if changes.to_strategy:
        lines.append(f"to strategy {changes.to_strategy}")
    return tuple(lines)


def _no_contradiction(changes: Edits) -> None:
    named = [
        *((item, "--add") for item in changes.add if isinstance(item, str)),
        *((item, "--remove") for item in set(changes.remove) if isinstance(item, str)),
        *((client_id, "--replace") for pair in changes.replace for client_id in pair),
    ]
    problem, hint = "", None
    for client_id, times in Counter(name for name, _ in named).items():
        if times > 1:
            options = " and ".join(dict.fromkeys(option for name, option in named if name == client_id))
            problem = f"{client_id} is named twice, in {options}: the changes contradict each other"
    if changes.scale_to is not None and any(isinstance(item, int) for item in (*changes.add, *changes.remove)):
        problem = "--scale-to sets the final number of consumers, but a count in --add or --remove changes it"
        hint = "leave one of them out, or name the client IDs to add or remove"
    brokers = (*(broker.name for broker in changes.add_brokers), *changes.remove_brokers, *changes.remove_masters)
    for name, times in Counter(brokers).items():
        if times > 1:
            problem = f"broker {name} is added or removed twice: the changes contradict each other"
    if problem:
        raise UsageError(problem, hint=hint, code="contradicting-changes")


def _without_brokers(route: TopicRouteData, names: Collection[str]) -> TopicRouteData:
    queues = tuple(data for data in route.queue_datas if data.broker_name not in names)
    brokers = tuple(broker for broker in route.broker_datas if broker.broker_name not in names)
    return replace(route, queue_datas=queues, broker_datas=brokers)


def _without_master(route: TopicRouteData, name: str) -> TopicRouteData:
    """The route without a broker's master; without any address, the broker leaves it (`unRegisterBroker`)."""
    broker = route.broker(name)
    if broker is None or not broker.has_master:
        text = f"{_REMOVE_MASTER}{name}: broker {name} of topic {route.topic} has no master"
        raise DataError(text, hint="--remove-broker removes its slaves too", code="unknown-broker")
    slaves = {number: address for number, address in broker.broker_addrs.items() if number != MASTER_ID}
    if not slaves:
        return _without_brokers(route, (name,))
    left = replace(broker, broker_addrs=slaves)
    return replace(route, broker_datas=tuple(left if each is broker else each for each in route.broker_datas))


def _with_broker(route: TopicRouteData, broker: NewBroker) -> TopicRouteData:
    option = f"--add-broker {broker.name}"
    if any(data.broker_name == broker.name for data in route.queue_datas):
        raise UsageError(f"{option}: topic {route.topic} already has queues there")
    usual = Counter((data.read_queue_nums, data.write_queue_nums) for data in route.queue_datas).most_common(1)
    if broker.read_queue_nums is None and not usual:
        text = f"{option}: topic {route.topic} has no other broker from which to copy the queue count"
        raise UsageError(text, hint=f"pass {option}:8")
    reads, writes = usual[0][0] if broker.read_queue_nums is None else (broker.read_queue_nums,) * 2
    if broker.write_queue_nums is not None:
        writes = broker.write_queue_nums
    cluster = route.broker_datas[0].cluster if route.broker_datas else ""
    return replace(
        route,
        queue_datas=(*route.queue_datas, QueueData(broker.name, reads, writes, PERM_READ | PERM_WRITE)),
        broker_datas=(*route.broker_datas, BrokerData(cluster, broker.name, {0: "assumed"})),
    )


def _must_be_in(members: list[str], client_id: str, option: str) -> None:
    if client_id not in members:
        hint = suggestion("consumers", client_id, set(members))
        raise DataError(f"{option} {client_id}: it is not in the group", hint=hint, code="not-in-group")


def _must_be_among(names: set[str], name: str, option: str, have: str) -> None:
    if name not in names:
        hint = suggestion("brokers", name, names)
        raise DataError(f"{option}{name}: {have} no such broker", hint=hint, code="unknown-broker")
