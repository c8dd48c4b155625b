"""Judge a snapshot by a policy: measure every limit of every rule on each group or topic that the rule matches.

A judgement uses certain facts. A limit that an unknown fact could still break or satisfy is incomplete.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date
from fnmatch import fnmatchcase
from itertools import filterfalse
from math import ceil, floor, inf
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict, replace

from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.assignment import consumers
from rmqlb.engine.assignment.assign import Owners, counts, owners_at_rest
from rmqlb.engine.assignment.detect import fitting_strategies
from rmqlb.engine.diagnose.diagnose import case_since, diagnose
from rmqlb.engine.drain import drains_of
from rmqlb.engine.group import Given, Group, Ownership
from rmqlb.engine.plan.changes import Edits, change_routes
from rmqlb.errors import DataError, RmqlbError
from rmqlb.model import policy as result
from rmqlb.model.diagnosis import Drain, GroupFinding
from rmqlb.model.group import BROADCASTING, RETRY_PREFIX, is_system_group, is_system_topic
from rmqlb.model.message_queue import MessageQueue, queue_ranges, sort_client_ids, sort_key
from rmqlb.model.owners import Basis
from rmqlb.model.policy import FAILED, GROUP, INCOMPLETE, NOT_APPLICABLE, PASSED, Bound, Limit, Policy, Rule, Verdict
from rmqlb.model.result import ERROR, SEVERITIES, Finding, Progress, Severity, counted, named, no_progress
from rmqlb.model.route import TopicRouteData
from rmqlb.model.snapshot import ClusterSnapshot, RouteSighting

_SLACK = 1e-9
LOCK_UNKNOWN = "it is unknown whether its consumers consume in order, or whether a slave acts as the master"


# -- a policy on a snapshot


def check_policy(
    snapshot: ClusterSnapshot,
    policy: Policy,
    today: date,  # for waivers
    *,
    settings: Settings | None = None,  # None is RocketMQ's defaults
    fail_on: Severity = ERROR,  # the lowest severity that decides the outcome
    cluster: str | None = None,  # its name in a fleet; without it, waivers for clusters do not apply
    earlier: Sequence[ClusterSnapshot] = (),  # the oldest first
    progress: Progress = no_progress,
) -> result.JudgedPolicy:
    found: list[result.JudgedLimit] = []
    for rule in policy.rules:
        found += _judge(rule, snapshot, settings or Settings(), earlier, progress)
    chosen = [each for each in policy.waivers if each.cluster is None or fnmatchcase(cluster or "", each.cluster)]
    judged, waivers = _waived(found, chosen, today)
    gravest_first = sorted(judged, key=lambda one: SEVERITIES.index(one.severity))
    unwaived = [one for one in gravest_first if not isinstance(one, result.WaivedLimit)]
    verdicts: tuple[Verdict, ...] = (FAILED, INCOMPLETE)  # a failure is certain, and decides first
    outcome = next((v for v in verdicts if any(one.verdict == v and one.decides(fail_on) for one in unwaived)), PASSED)
    rules = []
    for rule in policy.rules:
        own = [one for one in judged if one.rule == rule.name]
        number, more = len({one.name for one in own} - {None}), _counts(own)
        rules.append(result.RuleCounts(rule=rule.name, severity=rule.severity, about=rule.about, names=number, **more))
    answer = result.CheckResult(
        policy=policy.where,
        today=today,
        fail_on=fail_on,
        outcome=outcome,
        failed=tuple(one for one in unwaived if one.verdict == FAILED),
        waived=tuple(one for one in judged if isinstance(one, result.WaivedLimit)),
        incomplete=tuple(one for one in unwaived if one.verdict == INCOMPLETE),
        not_applicable=tuple(one for one in unwaived if one.verdict == NOT_APPLICABLE),
        rules=tuple(rules),
        waivers=waivers,
        summary=result.CheckSummary(rules=len(policy.rules), **_counts(judged)),
    )
    return result.JudgedPolicy(policy, judged, answer, tuple(_waiver_findings(waivers)))


def _counts(judged: Iterable[result.JudgedLimit]) -> dict[str, Any]:
    """The fields of `LimitCounts`; a rule without names counts as incomplete, not as a limit."""
    found: Counter[str] = Counter()
    for one in judged:
        found["limits"] += one.limit is not None
        found["waived" if isinstance(one, result.WaivedLimit) else one.verdict] += 1
    keys = zip(result.LimitCounts.__struct_fields__, result.LimitCounts.__struct_encode_fields__, strict=True)
    return {field: found[key] for field, key in keys}


def subjects(rule: Rule, snapshot: ClusterSnapshot) -> list[str]:
    missing = snapshot.gaps
    if rule.about == GROUP:
        names = {*filterfalse(is_system_group, {*snapshot.groups, *missing.groups})}
        if rule.skip_offline and missing.proxies is None:  # brokers and Proxies reported, and nothing shows consumption
            empty = [(name, group) for name, group in snapshot.groups.items() if group.client_ids == ()]
            offline = {name for name, group in empty if consumers.behind_proxy(group) is None}
            names -= offline - missing.members.keys()
    else:
        names = {*filterfalse(is_system_topic, {*snapshot.routes, *missing.topics} - snapshot.own_topics)}
    return sorted(name for name in names if rule.takes(name))


def _judge(
    rule: Rule, snapshot: ClusterSnapshot, settings: Settings, earlier: Sequence[ClusterSnapshot], progress: Progress
) -> Iterator[result.JudgedLimit]:
    names, applies = subjects(rule, snapshot), False
    for done, name in enumerate(names):
        progress(f"rule {rule.name}", done, len(names))
        group = Group(snapshot, name, settings, Given(assume=rule.assume))
        for limit in rule.limits:
            if rule.about == GROUP:
                measured = measure_group(limit, group, earlier)
            elif name in snapshot.routes:
                measured = measure_topic(limit.name, snapshot.routes[name])
            else:
                measured = Measured(missing=f"its route could not be read: {snapshot.gaps.topics[name]}")
            one = _judgement(rule, name, limit, measured)
            applies = applies or one.verdict != NOT_APPLICABLE
            yield one
    if rule.about == GROUP and snapshot.gaps.unlisted is not None:
        yield _judgement(rule, None, None, Measured(why=snapshot.gaps.unlisted))
    elif not names or not applies:
        without = f" without {', '.join(rule.exclude)}" if rule.exclude else ""
        none_matches = f"no {rule.about} matches {' or '.join(rule.patterns)}{without}"
        text = f"its limits do not apply to any matching {rule.about}" if names else none_matches
        yield _judgement(rule, None, None, Measured(why=text))


def _judgement(rule: Rule, name: str | None, limit: Limit | None, measured: Measured) -> result.JudgedLimit:
    judged = INCOMPLETE if limit is None else verdict(limit, measured)
    return result.JudgedLimit(
        rule=rule.name,
        severity=rule.severity,
        about=rule.about,
        name=name,
        limit=limit.name if limit else None,
        verdict=judged,
        value=None if judged == INCOMPLETE or measured.value == inf else measured.value,
        bound=limit.bound if limit else None,
        unit=limit.kind.unit if limit else None,
        basis=measured.basis,
        why=measured.apart or (measured.missing if judged == INCOMPLETE else None) or measured.why or None,
        findings=measured.findings,
    )


def _waived(
    judged: Sequence[result.JudgedLimit], waivers: Sequence[result.Waiver], today: date
) -> tuple[tuple[result.JudgedLimit, ...], tuple[result.WaiverResult, ...]]:
    """The limits, waived ones as `WaivedLimit`, and the state of each waiver; waivers accept only known failures."""
    uses: Counter[int] = Counter()
    states: list[result.WaiverState] = ["expired" if waiver.until < today else "unused" for waiver in waivers]
    found: list[result.JudgedLimit] = []
    for one in judged:
        of_limit = one.rule, one.about, one.name, one.limit
        fits = (at for at, waiver in enumerate(waivers) if waiver.until >= today and waiver.fits(*of_limit))
        at = next(fits, None) if one.verdict in (FAILED, INCOMPLETE) else None
        if at is not None and one.verdict == FAILED:
            uses[at] += 1
            of_waiver = {name: getattr(waivers[at], name) for name in ("until", "reason", "owner")}
            found.append(result.WaivedLimit(**asdict(one), **of_waiver))
        else:
            found.append(one)
        if at is not None and states[at] != "used":
            states[at] = "used" if one.verdict == FAILED else "undecided"
    return tuple(found), tuple(
        result.WaiverResult(w.rule, w.group, w.topic, w.limit, w.until, w.reason, states[at], uses[at])
        for at, w in enumerate(waivers)
    )


def _waiver_findings(waivers: Sequence[result.WaiverResult]) -> Iterator[Finding]:
    for waiver in waivers:
        parts = (("rule", waiver.rule), ("limit", waiver.limit), ("group", waiver.group), ("topic", waiver.topic))
        target = ", ".join(f"{what} {name}" for what, name in parts if name is not None)
        if waiver.state == "expired":
            yield Finding("expired-waiver", f"the waiver for {target} expired after {waiver.until}")
        elif waiver.state == "unused":
            yield Finding("unused-waiver", f"the waiver for {target} has no effect: remove it")


# -- what a limit measures


class Measured(Struct, frozen=True):
    value: Bound | None = None  # with `missing` the certain part of it
    missing: str | None = None  # why the value is only partly known
    apart: str | None = None  # why the limit does not apply
    why: str = ""  # where to look
    basis: Basis | None = None  # how owners are known, where the value follows from owners
    one_of: bool = False  # only one of the names in `value` is true
    most: float | None = None  # with `missing`: an upper bound of the value
    findings: tuple[GroupFinding, ...] = ()  # that break the limit


def verdict(limit: Limit, measured: Measured) -> Verdict:
    """Judge a limit; certain facts decide before missing ones."""
    if measured.apart is not None:
        return NOT_APPLICABLE
    if measured.value is None:
        return INCOMPLETE
    broken = _is_broken(limit, measured, measured.value)
    if limit.kind.unit == "least" and measured.missing is not None:
        return INCOMPLETE if broken else PASSED  # a larger value only helps
    if broken is None:
        return INCOMPLETE
    if broken:
        return FAILED
    is_within = measured.most is not None and not _is_broken(limit, measured, measured.most)
    return PASSED if measured.missing is None or is_within else INCOMPLETE


def _is_broken(limit: Limit, measured: Measured, value: Bound) -> bool | None:
    """Whether the value breaks the limit; None when that depends on which of several names is true."""
    bound = limit.bound
    if limit.kind.unit == "noneOf":
        return bool(value)
    if isinstance(value, tuple) and isinstance(bound, tuple):
        others = [name for name in value if name not in bound]
        return None if measured.one_of and 0 < len(others) < len(value) else bool(others)
    if isinstance(value, int | float) and isinstance(bound, int | float):
        return value < bound if limit.kind.unit == "least" else value > bound + _SLACK
    return None


# -- limits of groups


def measure_group(limit: Limit, group: Group, earlier: Sequence[ClusterSnapshot] = ()) -> Measured:
    """The limit's figure of the group; missing where a fact is unknown, or RocketMQ's clients would throw."""
    try:
        if limit.name in _OF_SHARED_QUEUES:
            if group.apart is not None:
                return Measured(apart=group.apart)
            group.must_be_assigned()
        if isinstance(limit.bound, tuple) and limit.name == result.FORBIDDEN:
            return _forbidden_findings(limit.bound, group, earlier)
        if limit.name == result.DRAIN_TIME:
            return _broadcasts(group) or _drain_time(drains_of(case_since(group, earlier)).group)
        return GROUP_MEASURES[limit.name](group)
    except RmqlbError as error:
        return Measured(missing=error.message)


def _moved_on_consumer_loss(group: Group) -> Measured:
    _ = group.all_client_ids  # raises where they are unknown
    ids = sort_client_ids(group.members.client_ids)

    def without(client_id: str) -> Owners:
        at = ids.index(client_id)
        return owners_at_rest(group.routes, replace(group.members, client_ids=(*ids[:at], *ids[at + 1 :])))

    return _worst_loss(group, ((f"consumer {each}", without(each)) for each in dict.fromkeys(ids)))


def _moved_on_broker_loss(group: Group) -> Measured:
    _ = group.all_client_ids

    def without(name: str) -> Owners:
        return owners_at_rest(change_routes(group.routes, Edits(remove_brokers=(name,))), group.members)

    names = sorted({data.broker_name for route in group.routes for data in route.queue_datas})
    return _worst_loss(group, ((f"broker {name}", without(name)) for name in names))


def moved(before: Owners, after: Owners) -> int:
    return sum(1 for queue, owners in before.items() if owners and after.get(queue) and after[queue] != owners)


def _worst_loss(group: Group, losses: Iterable[tuple[str, Owners]]) -> Measured:
    before = owners_at_rest(group.routes, group.members)
    worst, why = 0.0, ""
    for lost, after in losses:
        number, left = moved(before, after), sum(queue in after for queue in before)
        if number > worst * left:
            worst, why = number / left, f"{number} of {left} queues move when {lost} is lost"
    return Measured(worst, why=why, basis=group.basis)


def _queues_per_consumer(group: Group) -> tuple[dict[str, int], Ownership]:
    found = group.ownership
    if found.unknown:
        raise DataError(f"the owners of {counted(found.unknown, 'queue')} are unknown")
    return counts(found.owners, dict.fromkeys(group.all_client_ids)), found


def _imbalance(group: Group) -> Measured:
    numbers, found = _queues_per_consumer(group)
    if found.spread.imbalance is None:
        return Measured(missing="no queue has an owner", basis=found.basis)
    fullest = max(numbers, key=lambda client_id: numbers[client_id])
    why = f"{fullest} has {numbers[fullest]} of {len(found.owners)} queues"
    return Measured(found.spread.imbalance, why=why, basis=found.basis)


def _idle(group: Group) -> Measured:
    numbers, found = _queues_per_consumer(group)
    idle = [client_id for client_id, number in numbers.items() if not number]
    return Measured(len(idle), why=named(idle), basis=found.basis)


def _faulty(group: Group, queues: tuple[MessageQueue, ...]) -> Measured:
    """The number of these queues; where not all owners are known, the observed ones are certain."""
    faults = group.faults
    most = None if faults.unknown is None else len(queues) + faults.unknown
    return Measured(len(queues), missing=faults.missing, why=queue_ranges(queues), basis=faults.basis, most=most)


def _duplicate_client_ids(group: Group) -> Measured:
    shared = [client_id for client_id, number in Counter(group.visible_ids).items() if number > 1]
    return Measured(len(shared), missing=group.untold, why=named(shared))


def _mixed_strategies(group: Group) -> Measured:
    """Consumers that report another strategy than most; silent ones count as usual if that explains all owners."""
    reported, silent = _reported(group)
    usual = [name for name, _ in Counter(reported.values()).most_common(1)]
    others = [i for i, name in reported.items() if name not in usual]
    missing = f"{named(silent)} did not report a strategy" if silent and len(reported) + len(silent) > 1 else None
    fits = _fitting(group)[0] if missing else ()
    if fits and set(usual) <= set(fits):
        missing = None
    return Measured(len(others), missing=missing, why=named(others), basis="observed")


def _mixed_subscriptions(group: Group) -> Measured:
    """Consumers whose topics differ from those of most; their shares of the other topics have no owner."""
    others = consumers.other_subscriptions(group.group)
    silent = sorted(set(group.visible_ids) - consumers.subscriptions(group.group).keys(), key=sort_key)
    is_unsure = silent and len(set(group.visible_ids)) > 1
    missing = f"{named(silent)} did not report their subscriptions" if is_unsure else group.untold
    return Measured(len(others), missing=missing, why=named(others))


def _split_views(group: Group) -> Measured:
    _ = group.visible_ids
    lists = {view.broker_addr or view.seen.where: group.group.sharing_in(view) for view in group.group.views or ()}
    usual = Counter(lists.values()).most_common(1)
    others = [broker for broker, listed in lists.items() if listed != usual[0][0]]
    return Measured(len(others), missing=group.untold, why=named(others))


def _broadcasts(group: Group) -> Measured | None:
    if group.group.message_model != BROADCASTING:
        return None
    return Measured(apart=f"group {group.group.group} is BROADCASTING: each consumer keeps its own offsets")


def _lag(group: Group) -> Measured:
    if (apart := _broadcasts(group)) is not None:
        return apart
    lags = ((queue, state.lag) for queue, state in group.group.queues.items())
    known = {queue: lag for queue, lag in lags if lag is not None and not queue.topic.startswith(RETRY_PREFIX)}
    fullest = sorted((queue for queue in known if known[queue]), key=lambda queue: -known[queue])
    try:
        unknown = [queue for route in group.routes for queue in route.subscribe_queues() if queue not in known]
        missing = f"the offsets of {len(unknown)} queues are unknown ({queue_ranges(unknown)})" if unknown else None
    except DataError as error:
        missing = error.message
    where = named(f"{queue.topic} {queue.broker_name} {queue.queue_id}" for queue in fullest)
    return Measured(sum(known.values()), missing=missing, why=where)


def _drain_time(drain: Drain) -> Measured:
    """The least drain time, which is certain: 0 if the group keeps up, above any limit if it never drains."""
    if drain.drains == "unknown":
        return Measured(missing=drain.reason)
    if drain.drains == "never" or not drain.drain_ms:
        return Measured(inf if drain.drains == "never" else 0.0, why=drain.reason or "")
    least, most = drain.drain_ms_at_least or 0, drain.drain_ms_at_most
    upper = "" if most is None else f" and at most {ceil(most / 1000):,} s"
    missing = f"it takes at least {floor(least / 1000):,} s{upper}: needs samples over more time"
    return Measured(least, missing=missing, why=f"at the current rates {round(drain.drain_ms / 1000):,} s", most=most)


def _without_lock(group: Group) -> Measured:
    value = consumers.without_lock(group.routes, orderly=consumers.is_orderly(group.group))
    if value is None:
        return Measured(missing=LOCK_UNKNOWN)
    return Measured(value, why=queue_ranges(consumers.unlocked_queues(group.routes)) if value else "")


def _strategies(group: Group) -> Measured:
    reported, silent = _reported(group)
    names = tuple(sorted(set(reported.values())))
    if names and not silent:
        return Measured(names, basis="observed")
    fits, unfit = _fitting(group)
    why = f"the observed owners match {' or '.join(fits)}"
    if names:
        missing = None if fits == names else f"{named(silent)} did not report a strategy"
        return Measured(names, missing=missing, why=why if fits else "", basis="observed")
    if not fits:
        return Measured(missing=f"its consumers report no strategy, and {unfit}")
    return Measured(fits, why=why, basis="observed", one_of=True)


def _reported(group: Group) -> tuple[dict[str, str], list[str]]:
    ids = dict.fromkeys(group.all_client_ids)
    reported = {i: name for i, name in consumers.reported_strategies(group.group).items() if i in ids}
    return reported, [i for i in ids if i not in reported]


def _fitting(group: Group) -> tuple[tuple[str, ...], str]:
    try:
        fits = fitting_strategies(group.routes, replace(group.under("AVG"), subscribed={}), group.group.queues)
    except DataError as error:  # its routes are not known
        return (), error.message
    none_fits = "no strategy without settings predicts the observed owners"
    return fits, none_fits if group.observed else "no owner of a queue is known"


GROUP_MEASURES: Mapping[str, Callable[[Group], Measured]] = {
    "minConsumers": lambda group: Measured(len(group.visible_ids), missing=group.untold),
    "imbalance": _imbalance,
    "idle": _idle,
    "unassigned": lambda group: _faulty(group, group.faults.unassigned),
    "duplicateOwners": lambda group: _faulty(group, group.faults.duplicate_owners),
    "duplicateClientIds": _duplicate_client_ids,
    "movedOnConsumerLoss": _moved_on_consumer_loss,
    "movedOnBrokerLoss": _moved_on_broker_loss,
    "mixedStrategies": _mixed_strategies,
    "mixedSubscriptions": _mixed_subscriptions,
    "splitViews": _split_views,
    "withoutLock": _without_lock,
    "lag": _lag,
    "strategies": _strategies,
}
"""Limit → its figure of a group (raises RmqlbError)."""
_OF_ANY_GROUP = {"minConsumers", "duplicateClientIds", "mixedSubscriptions", "splitViews", "lag"}
_OF_SHARED_QUEUES = GROUP_MEASURES.keys() - _OF_ANY_GROUP  # only where consumers share queues


def _forbidden_findings(codes: tuple[str, ...], group: Group, earlier: Sequence[ClusterSnapshot]) -> Measured:
    """The forbidden codes that hold, including consequences of a cause; unknown while a rule cannot decide."""
    _ = group.group
    found = diagnose(case_since(group, earlier))
    causes = {each.code: each.causes for each in found.consequences}
    there = {each.code for each in found.findings} | causes.keys()
    value = tuple(code for code in codes if code in there)
    breaking = {*value}.union(*(causes.get(code, ()) for code in value))
    findings = tuple(each for each in found.findings if each.code in breaking)
    missing = [f"{each.code}: {each.reason}" for each in found.unknown if each.code in codes]
    apart = {each.code: each.reason for each in found.not_applicable}
    return Measured(
        value,
        missing="; ".join(missing) or None,
        apart=apart[codes[0]] if all(code in apart for code in codes) else None,
        why="; ".join(each.message for each in findings),
        findings=findings,
    )


# -- limits of topics


def measure_topic(limit: str, sighting: RouteSighting) -> Measured:
    """The number of brokers; unknown where NameServers disagree or an order configuration is malformed."""
    try:
        names = TOPIC_MEASURES[limit](sighting.route)
        if any(len(TOPIC_MEASURES[limit](other.route)) != len(names) for other in sighting.others):
            return Measured(missing="NameServers have different routes of the topic")
    except DataError as error:
        return Measured(missing=error.message)
    return Measured(len(names), why=named(sorted(names)))


def writable_brokers(route: TopicRouteData) -> set[str]:
    """The brokers with a master and a queue in the producers' list (raises DataError)."""
    brokers, queues = route.brokers_by_name(), {queue.broker_name for queue in route.publish_queues()}
    if route.is_static:
        queues = set(route.serving_brokers().values())
    return {name for name in queues if name in brokers and brokers[name].has_master}


def _brokers(route: TopicRouteData) -> set[str]:
    datas = ((data.readable and data.read_queue_nums > 0, data) for data in route.queue_datas)
    return {data.broker_name for reads, data in datas if reads or (data.writable and data.write_queue_nums > 0)}


def _without_master(route: TopicRouteData) -> set[str]:
    """Brokers with queues but without a master or any address: producers skip them."""
    brokers, names = route.brokers_by_name(), {data.broker_name for data in route.queue_datas}
    return {name for name in names if name not in brokers or not brokers[name].has_master}


TOPIC_MEASURES: Mapping[str, Callable[[TopicRouteData], set[str]]] = {
    "minBrokers": _brokers,
    "writableBrokers": writable_brokers,
    "missingMasters": _without_master,
}
