"""The limits of groups and topics, each measured by its own function."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from rmqlb.engine.assignment.assign import Members, owners_at_rest
from rmqlb.engine.assignment.balance import Owners, counts
from rmqlb.engine.assignment.consumers import other_subscriptions, reported_strategies, subscriptions
from rmqlb.engine.assignment.detect import fitting_strategies
from rmqlb.engine.diagnose.diagnose import diagnose
from rmqlb.engine.diagnose.evidence import GroupEvidence
from rmqlb.engine.group import Group, Ownership
from rmqlb.engine.plan.changes import Changes, change_routes
from rmqlb.errors import DataError
from rmqlb.model.assignment import Basis
from rmqlb.model.check_result import FAILED, INCOMPLETE, NOT_APPLICABLE, PASSED, Verdict
from rmqlb.model.diagnosis import GroupFinding
from rmqlb.model.group import BROADCASTING, RETRY_PREFIX
from rmqlb.model.java import sort_key
from rmqlb.model.message_queue import MessageQueue, queue_ranges, sort_client_ids
from rmqlb.model.policy import Bound, Limit
from rmqlb.model.route import TopicRouteData
from rmqlb.model.snapshot import RouteSighting
from rmqlb.model.words import counted, named

_SLACK = 1e-9


class Measured(Struct, frozen=True):
    value: Bound | None = None  # what was measured; beside `missing` it is what is certain, and the truth may be more
    missing: str | None = None  # why the value is not wholly known, or None
    apart: str | None = None  # why the limit makes no sense here, or None
    why: str = ""  # where to look
    basis: Basis | None = None  # how the value is known, where that is a question
    one_of: bool = False  # of the names in `value` only one is true
    most: float | None = None  # beside `missing`: the truth is at most so much; None is no bound
    findings: tuple[GroupFinding, ...] = ()  # which break the limit


def verdict(limit: Limit, measured: Measured) -> Verdict:
    """Whether the limit passed: what is certain decides, and only then what is missing."""
    if measured.apart is not None:
        return NOT_APPLICABLE
    if measured.value is None:
        return INCOMPLETE
    broken = _is_broken(limit, measured)
    if limit.kind.unit == "least" and measured.missing is not None:
        return INCOMPLETE if broken else PASSED  # there may be more, which only helps
    if broken is None:
        return INCOMPLETE
    if broken:
        return FAILED
    is_within = measured.most is not None and not _is_broken(limit, replace(measured, value=measured.most))
    return PASSED if measured.missing is None or is_within else INCOMPLETE


def _is_broken(limit: Limit, measured: Measured) -> bool | None:
    """The value breaks the limit; None when that depends on which of several names is true."""
    value, bound = measured.value, limit.bound
    if limit.kind.unit == "noneOf":
        return bool(value)
    if isinstance(value, tuple) and isinstance(bound, tuple):
        others = [name for name in value if name not in bound]
        return None if measured.one_of and 0 < len(others) < len(value) else bool(others)
    if isinstance(value, int | float) and isinstance(bound, int | float):
        return value < bound if limit.kind.unit == "least" else value > bound + _SLACK
    return None


def moved_on_consumer_loss(facts: Group) -> Measured:
    """The largest share of the queues that moves when one process ends (raises RmqlbError)."""
    members = _members(facts)
    ids = sort_client_ids(members.client_ids)
    places = ((i, ids.index(i)) for i in dict.fromkeys(ids))
    left = ((f"consumer {i}", (*ids[:at], *ids[at + 1 :])) for i, at in places)
    return _worst(facts, ((lost, replace(members, client_ids=rest), facts.routes) for lost, rest in left))


def moved_on_broker_loss(facts: Group) -> Measured:
    """The largest share of the remaining queues that moves when one broker is lost (raises RmqlbError)."""
    members, routes = _members(facts), facts.routes
    names = sorted({data.broker_name for route in routes for data in route.queue_datas})
    losses = ((f"broker {name}", change_routes(routes, Changes(remove_brokers=(name,)))) for name in names)
    return _worst(facts, ((lost, members, rest) for lost, rest in losses))


def moved(before: Owners, after: Owners) -> int:
    """How many queues go from one owner to another."""
    return sum(1 for queue, owners in before.items() if owners and after.get(queue) and after[queue] != owners)


def _worst(facts: Group, losses: Iterable[tuple[str, Members, Sequence[TopicRouteData]]]) -> Measured:
    before = owners_at_rest(facts.routes, _members(facts))
    worst, why = 0.0, ""
    for lost, members, routes in losses:
        after = owners_at_rest(routes, members)
        number, left = moved(before, after), sum(queue in after for queue in before)
        if number > worst * left:
            worst = number / left
            why = f"{number} of {left} queues move when {lost} is lost"
    return Measured(worst, why=why, basis=facts.basis)


def _members(facts: Group) -> Members:
    _ = facts.all_client_ids
    return facts.members


Measure = Callable[[Group], Measured]


def _imbalance(facts: Group) -> Measured:
    numbers, found = _queues_per_consumer(facts)
    if found.spread.imbalance is None:
        return Measured(missing="no queue has an owner", basis=found.basis)
    fullest = max(numbers, key=lambda client_id: numbers[client_id])
    why = f"{fullest} has {numbers[fullest]} of {len(found.owners)} queues"
    return Measured(found.spread.imbalance, why=why, basis=found.basis)


def _idle(facts: Group) -> Measured:
    numbers, found = _queues_per_consumer(facts)
    idle = [client_id for client_id, number in numbers.items() if not number]
    return Measured(len(idle), why=named(idle), basis=found.basis)


def _queues_owned(facts: Group, which: Literal["unassigned", "duplicate_owners"]) -> Measured:
    """How many queues have such owners; where not all are known, those that were observed are certain."""
    faults = facts.faults
    queues: tuple[MessageQueue, ...] = getattr(faults, which)
    most = None if faults.unknown is None else len(queues) + faults.unknown
    return Measured(len(queues), missing=faults.missing, why=queue_ranges(queues), basis=faults.basis, most=most)


def _duplicate_client_ids(facts: Group) -> Measured:
    """Ids that several processes carry, so that each of them reads the same queues."""
    shared = [client_id for client_id, number in Counter(facts.visible_ids).items() if number > 1]
    return Measured(len(shared), missing=facts.untold, why=named(shared))


def _mixed_strategies(facts: Group) -> Measured:
    """Consumers that run another strategy than most: as they report it, otherwise none where one gives all owners."""
    reported, silent = _reported(facts)
    usual = [name for name, _ in Counter(reported.values()).most_common(1)]
    others = [i for i, name in reported.items() if name not in usual]
    missing = f"{named(silent)} did not report a strategy" if silent and len(reported) + len(silent) > 1 else None
    fits = _fitting(facts)[0] if missing else ()
    if fits and set(usual) <= set(fits):
        missing = None
    return Measured(len(others), missing=missing, why=named(others), basis="observed")


def _mixed_subscriptions(facts: Group) -> Measured:
    """Consumers that subscribe to other topics than most: their shares of the topics of the others stay unassigned."""
    others = other_subscriptions(facts.group)
    silent = sorted(set(facts.visible_ids) - subscriptions(facts.group).keys(), key=sort_key)
    missing = facts.untold
    if silent and len(set(facts.visible_ids)) > 1:
        missing = f"{named(silent)} did not report what they subscribe to"
    return Measured(len(others), missing=missing, why=named(others))


def _split_views(facts: Group) -> Measured:
    _ = facts.visible_ids
    lists = {view.broker_addr or view.seen.where: facts.group.sharing_in(view) for view in facts.group.views or ()}
    usual = Counter(lists.values()).most_common(1)
    others = [broker for broker, its in lists.items() if its != usual[0][0]]
    return Measured(len(others), missing=facts.untold, why=named(others))


def _lag(facts: Group) -> Measured:
    if facts.group.message_model == BROADCASTING:
        return Measured(apart=f"group {facts.group.group} is BROADCASTING: each consumer keeps its offsets to itself")
    known = {
        queue: state.lag
        for queue, state in facts.group.queues.items()
        if state.lag is not None and not queue.topic.startswith(RETRY_PREFIX)
    }
    fullest = sorted((queue for queue in known if known[queue]), key=lambda queue: -known[queue])
    try:
        unknown = [queue for route in facts.routes for queue in route.subscribe_queues() if queue not in known]
        missing = f"the offsets of {len(unknown)} queues are not known ({queue_ranges(unknown)})" if unknown else None
    except DataError as error:
        missing = error.message
    where = named(f"{queue.topic} {queue.broker_name} {queue.queue_id}" for queue in fullest)
    return Measured(sum(known.values()), missing=missing, why=where)


def _without_lock(facts: Group) -> Measured:
    from rmqlb.engine.assignment.consumers import is_orderly, unlocked_queues, without_lock

    if facts.group.message_model == BROADCASTING:
        return Measured(apart=f"group {facts.group.group} is BROADCASTING: its consumers need no locks")
    value = without_lock(facts.routes, orderly=is_orderly(facts.group))
    if value is None:
        return Measured(missing="whether its consumers consume in order, or a slave acts as the master, is not known")
    return Measured(value, why=queue_ranges(unlocked_queues(facts.routes)) if value else "")


def _strategies(facts: Group) -> Measured:
    """What the consumers run: as they report it, otherwise what gives the observed owners."""
    reported, silent = _reported(facts)
    names = tuple(sorted(set(reported.values())))
    if names and not silent:
        return Measured(names, basis="observed")
    fits, unfit = _fitting(facts)
    why = f"the observed owners match {' or '.join(fits)}"
    if names:
        missing = None if fits == names else f"{named(silent)} did not report a strategy"
        return Measured(names, missing=missing, why=why if fits else "", basis="observed")
    if not fits:
        return Measured(missing=f"its consumers report no strategy, and {unfit}")
    return Measured(fits, why=why, basis="observed", one_of=True)


def _reported(facts: Group) -> tuple[dict[str, str], list[str]]:
    """Client ID → the strategy that it reports, and the consumers that report none (raises DataError)."""
    ids = dict.fromkeys(facts.all_client_ids)
    reported = {i: name for i, name in reported_strategies(facts.group).items() if i in ids}
    return reported, [i for i in ids if i not in reported]


def _fitting(facts: Group) -> tuple[tuple[str, ...], str]:
    try:
        members = replace(facts.under("AVG"), subscribed={})
        fits = fitting_strategies(facts.routes, members, facts.group.queues)
    except DataError as error:  # its routes are not known
        return (), error.message
    return (
        fits,
        "none that needs no settings gives the observed owners" if facts.observed else "no queue's owner is known",
    )


def _where_clients_rebalance(measure: Measure) -> Measure:
    """The measure, which makes no sense where clients do not share queues among themselves."""

    def measured(facts: Group) -> Measured:
        if facts.apart is not None:
            return Measured(apart=facts.apart)
        facts.must_be_assigned()
        return measure(facts)

    return measured


GROUP_MEASURES: Mapping[str, Measure] = {
    "minConsumers": lambda facts: Measured(len(facts.visible_ids), missing=facts.untold),
    "imbalance": _where_clients_rebalance(_imbalance),
    "idle": _where_clients_rebalance(_idle),
    "unassigned": _where_clients_rebalance(lambda facts: _queues_owned(facts, "unassigned")),
    "duplicateOwners": _where_clients_rebalance(lambda facts: _queues_owned(facts, "duplicate_owners")),
    "duplicateClientIds": _duplicate_client_ids,
    "movedOnConsumerLoss": _where_clients_rebalance(moved_on_consumer_loss),
    "movedOnBrokerLoss": _where_clients_rebalance(moved_on_broker_loss),
    "mixedStrategies": _where_clients_rebalance(_mixed_strategies),
    "mixedSubscriptions": _mixed_subscriptions,
    "splitViews": _split_views,
    "withoutLock": _where_clients_rebalance(_without_lock),
    "lag": _lag,
    "strategies": _where_clients_rebalance(_strategies),
}


def writable_brokers(route: TopicRouteData) -> set[str]:
    """Those with a master and a queue in the producers' list (raises DataError)."""
    brokers = route.brokers_by_name()
    queues = {queue.broker_name for queue in route.publish_queues()}
    if route.is_static:
        queues = set(route.serving_brokers().values())
    return {name for name in queues if name in brokers and brokers[name].has_master}


def _brokers(route: TopicRouteData) -> set[str]:
    return {
        data.broker_name
        for data in route.queue_datas
        if (data.readable and data.read_queue_nums > 0) or (data.writable and data.write_queue_nums > 0)
    }


def _without_master(route: TopicRouteData) -> set[str]:
    """Brokers with queues and no master, or no address at all: producers skip them."""
    brokers = route.brokers_by_name()
    names = {data.broker_name for data in route.queue_datas}
    return {name for name in names if name not in brokers or not brokers[name].has_master}


def _counted(names_of: Callable[[TopicRouteData], set[str]], route: TopicRouteData) -> Measured:
    names = names_of(route)
    return Measured(len(names), why=named(sorted(names)))


def measure_topic(limit: str, sighting: RouteSighting) -> Measured:
    """The measure of a topic, where NameServers that know other routes do not say something else."""
    measured = TOPIC_MEASURES[limit](sighting.route)
    if any(TOPIC_MEASURES[limit](other.route).value != measured.value for other in sighting.others):
        return Measured(missing="NameServers give different routes of it")
    return measured


TOPIC_MEASURES: Mapping[str, Callable[[TopicRouteData], Measured]] = {
    "minBrokers": partial(_counted, _brokers),
    "writableBrokers": partial(_counted, writable_brokers),
    "missingMasters": partial(_counted, _without_master),
}


def forbidden_findings(limit: Limit, facts: Group) -> Measured:
    """Which of the codes are the case, what comes of a cause included; unknown as long as a rule could not decide."""
    codes = limit.bound if isinstance(limit.bound, tuple) else ()
    _ = facts.group
    found = diagnose(GroupEvidence(facts))
    causes = {each.code: each.causes for each in found.consequences}
    there = {each.code for each in found.findings} | causes.keys()
    value = tuple(code for code in codes if code in there)
    named = {*value}.union(*(causes.get(code, ()) for code in value))
    findings = tuple(each for each in found.findings if each.code in named)
    missing = [f"{each.code}: {each.reason}" for each in found.unknown if each.code in codes]
    apart = {each.code: each.reason for each in found.not_applicable}
    return Measured(
        value,
        missing="; ".join(missing) or None,
        apart=apart[codes[0]] if all(code in apart for code in codes) else None,
        why="; ".join(each.message for each in findings),
        findings=findings,
    )


def _queues_per_consumer(facts: Group) -> tuple[dict[str, int], Ownership]:
    found = facts.ownership
    if found.unknown:
        raise DataError(f"the owners of {counted(found.unknown, 'queue')} are unknown")
    return counts(found.owners, dict.fromkeys(facts.all_client_ids)), found
