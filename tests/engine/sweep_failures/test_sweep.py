from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import timedelta
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from rmqlb import FailureSweep, Members, TopicRouteData, UsageError
from rmqlb.engine.check import Measured, measure_topic, verdict
from rmqlb.engine.plan.changes import Edits, change_members, change_routes
from rmqlb.engine.plan.rebalance import Side, plan_rebalance
from rmqlb.engine.sweep_failures.cases import Lost, Thing, ZoneRule
from rmqlb.engine.sweep_failures.sweep import sweep_snapshot
from rmqlb.model.group import BROADCASTING
from rmqlb.model.message_queue import sort_client_ids
from rmqlb.model.plan import Summary
from rmqlb.model.policy import FAILED, GROUP, Limit, Policy, Rule, Waiver
from rmqlb.model.process_queue import ConsumerEvidence
from rmqlb.model.result import Finding
from rmqlb.model.route import TopicQueueMappingInfo
from rmqlb.model.snapshot import ClusterSnapshot, Unread
from tests.engine.check.clusters import cluster
from tests.support.mismatches import assert_recorded, refusal

from .clusters import (
    CLASSES,
    DAY,
    GROUP_LIMITS,
    ROOMS,
    TOPIC_LIMITS,
    broker,
    clusters,
    consumers,
    every_loss,
    policy,
    request,
    route,
    swept,
)

IDS = tuple(f"10.1.0.{number}@app" for number in (1, 2, 3))


def two_brokers(ids: Sequence[str] = IDS, **more: object) -> ClusterSnapshot:
    brokers = broker("a", "10.0.0.1", "10.0.0.9"), broker("b", "10.0.0.2")
    return cluster(consumers("g", ids, ["T"], **more), routes=(route("T", brokers, [4, 4]),))  # type: ignore[arg-type]


def limited(**limits: float) -> Policy:
    return policy(dict(limits), {})


def orderly(snapshot: ClusterSnapshot, *, reported: bool | None) -> ClusterSnapshot:
    group = snapshot.groups["g"]
    evidence = ConsumerEvidence(orderly=reported)
    reports = {each: replace(report, evidence=evidence) for each, report in group.reports.items()}
    return replace(snapshot, groups={"g": replace(group, reports=reports)})


def zoned() -> ClusterSnapshot:
    snapshot = two_brokers()
    here = snapshot.routes["T"].route
    datas = tuple(replace(each, zone_name=f"z-{each.broker_name}") for each in here.broker_datas)
    return cluster(*snapshot.groups.values(), routes=(replace(here, broker_datas=datas),))


def not_to_judge() -> ClusterSnapshot:
    """Groups without a consumer, of broadcasting consumers and of two static topics."""
    gone = replace(consumers("empty", (), ["T"]), reports={})
    everyone = replace(consumers("all", IDS, ["T"]), message_model=BROADCASTING)
    two, mapping = two_brokers(), {"a": TopicQueueMappingInfo("S", "__global__", 4, "a", 1, {0: 0})}
    own = (route(name, (broker("a", "10.0.0.1"),), [4]) for name in ("S", "S2"))
    static = (replace(each, topic_queue_mapping_by_broker=mapping) for each in own)
    logical = consumers("logical", IDS[:2], ["S", "S2"])
    return cluster(two.groups["g"], gone, everyone, logical, routes=(two.routes["T"].route, *static))


Found = tuple[FailureSweep, Sequence[Finding]]


def found(snapshot: ClusterSnapshot, rules: Policy | None = None, **more: object) -> Found:
    return sweep_snapshot(snapshot, rules or policy(), request(snapshot, **more), DAY, settings=ROOMS)


def named_sweeps() -> Iterator[tuple[str, Found]]:
    two, no_lock = two_brokers(), limited(withoutLock=0)
    yield "everything that can be lost", found(two_brokers(IDS[:2]), zones=(ZoneRule("z", "10.0.0.0/29"),))
    # Nobody locks the queues of a lost master for an orderly group.
    for reported in (True, False):
        yield f"orderly as consumers report, {reported}", found(orderly(two, reported=reported), no_lock)
    yield "orderly or not, unknown", found(two, no_lock)
    yield "orderly as is said", found(two, no_lock, orderly=("g",))
    given: dict[str, Any] = {"source_words": ("-s", "a file.json"), "kinds": ("host",), "zones": ()}
    odd = two_brokers(("10.0.0.1@x", "10.0.0.1@y", "-z@1"))
    yield "a command names all that a host has", found(odd, limited(minConsumers=2), **given)
    yield "a command of a topic", found(odd, policy({}, {"writableBrokers": 1}), **given)
    for kind, more in (("consumer", {}), ("host", {"zones": ()}), ("consumer", {"orderly": ("g",)})):
        given = {"kinds": (kind,), "source_words": ("-s", "x"), "at_once": 1, **more}
        yield f"the gap of a {kind}, {more}", found(two, limited(minConsumers=3), **given)
    for day in (DAY, DAY - timedelta(days=1)):
        waiver = Waiver("known", day, group="g", limit="minConsumers")
        waived = replace(limited(minConsumers=3, idle=0), waivers=(waiver,))
        yield f"waived until {day}", found(two, waived, kinds=("consumer",), at_once=1)
    yield "what cannot be judged", found(not_to_judge())
    unread = (Unread("group", "lost", "timed out"), Unread("route", "Gone", "no answer"))
    asked = request(two)
    asked = replace(asked, groups=[*asked.groups, "lost"], topics=[*asked.topics, "Gone"])
    yield "what could not be read", sweep_snapshot(replace(two, unread=unread), policy(), asked, DAY)
    yield "zones that brokers report", found(zoned(), zones=())
    rule = Rule("r", GROUP, ("*",), (Limit("forbiddenFindings", ("more-consumers-than-queues",)),))
    brokers = broker("a", "10.0.0.1"), broker("b", "10.0.0.2")
    few = cluster(consumers("g", IDS, ["T"]), routes=(route("T", brokers, [2, 2]),))
    yield "a forbidden finding", found(few, replace(policy(), rules=(rule,)), kinds=("broker",), at_once=1)


def lines_of(sweep: FailureSweep, findings: Sequence[Finding]) -> Iterator[str]:
    yield f"{sweep.cases}, {sweep.waived} waived"
    for loss in sweep.losses:
        yield f"loss {loss.kind} {loss.name}: {' '.join((*loss.consumers, *loss.addresses))}"
    for each in sweep.counterexamples:
        losses = " + ".join(f"{loss.kind} {loss.name}" for loss in each.losses)
        yield f"{each.name} {each.limit} {each.value} by {losses}, {each.cases} cases"
        yield from (f"  {command}" for command in (each.command, each.gap_command) if command)
    yield from (f"worst {each}" for each in (*sweep.groups, *sweep.topics))
    yield from (f"already broken {each}" for each in sweep.broken_already)
    yield from (f"unjudged {each.about} {each.name} {each.limit}: {each.why}" for each in sweep.unjudged)
    yield from (f"{each.code}: {each.message}" for each in findings)


def test_named_sweeps_are_as_recorded(request: pytest.FixtureRequest) -> None:
    answers = {name: lines_of(*each) for name, each in named_sweeps()}
    assert_recorded(Path(__file__).with_name("sweeps.txt"), answers, request)


def test_too_many_pairs_and_a_zone_with_nothing_in_it_are_refused() -> None:
    raised = refusal(UsageError, swept, two_brokers(), zones=(ZoneRule("az9", "10.9.*"),))
    assert raised.message == "zone az9: 10.9.* matches no consumer, broker or address"
    with pytest.raises(UsageError, match="zone b"):
        swept(two_brokers(), zones=(ZoneRule("a", "*"), ZoneRule("b", "10.0.0.1")))
    ids = [f"10.{n // 60000}.{n // 250 % 240}.{n % 250}@a" for n in range(3300)]
    snapshot = two_brokers(ids)
    assert refusal(UsageError, swept, snapshot, limited(minConsumers=1), kinds=("consumer",)).code == "too-many-cases"


def test_groups_divided_among_processes_come_to_the_same() -> None:
    brokers = broker("a", "10.0.0.1"), broker("b", "10.0.0.2")
    strategies = ("AVG", "CONSISTENT_HASH", "AVG_BY_CIRCLE")
    groups = [consumers(f"g{at}", IDS, ["T"], strategy) for at, strategy in enumerate(strategies)]
    snapshot = cluster(*groups, routes=(route("T", brokers, [4, 3]),))
    assert swept(snapshot, jobs=2) == swept(snapshot)


@settings(max_examples=60, deadline=None)
@given(clusters(), st.integers(1, 400))
def test_a_bounded_sweep_tries_single_losses_and_counts_the_others(snapshot: ClusterSnapshot, most_steps: int) -> None:
    whole, part = swept(snapshot), swept(snapshot, most_steps=most_steps)
    assert swept(snapshot, most_steps=most_steps) == part, "the bound counts work: equal input, equal result"
    assert (part.cases.all, part.cases.broken_singles) == (whole.cases.all, whole.cases.broken_singles)
    assert part.cases.singles <= part.cases.tried <= part.cases.all == whole.cases.tried
    left_out = whole.cases.tried - part.cases.tried
    assert 0 <= whole.cases.broken - part.cases.broken <= left_out
    _, findings = sweep_snapshot(snapshot, policy(), request(snapshot, most_steps=most_steps), DAY, settings=ROOMS)
    told = [each.message for each in findings if each.code == "searched-in-part"]
    assert told or not left_out, "a pair that breaks a limit of another subject counts as tried"
    assert told or part == whole


NAMES = {java_class: name for name, java_class in CLASSES.items()}
Case = tuple[Lost, ...]
Key = tuple[str, str]
"""Group or topic, and limit."""
Size = tuple[str, str, float, int]
"""The key, the value and the number of losses."""


def cases(snapshot: ClusterSnapshot) -> Iterator[Case]:
    taken = every_loss(snapshot)
    yield from ((each,) for each in taken)
    yield from combinations(taken, 2)


def changes(case: Case, ids: tuple[str, ...], routes: tuple[TopicRouteData, ...]) -> Edits:
    """The changes that plan-rebalance takes for the case, derived from its losses."""
    present = [Thing("process", each, at) for each in sort_client_ids(set(ids)) for at in range(ids.count(each))]
    gone_things = {thing for one in case for thing in one.things}
    gone, headless = [], []
    for name in sorted({data.broker_name for each in routes for data in each.queue_datas}):
        datas = [each for topic in routes for each in topic.broker_datas if each.broker_name == name]
        own = {number for each in datas for number in each.broker_addrs}
        lost = {each.number for each in gone_things if each.kind == "address" and each.name == name}
        if lost >= own:
            gone.append(name)
        elif 0 in lost:
            headless.append(name)
    removed = tuple(each.name for each in present if each in gone_things)
    return Edits(remove=removed, remove_brokers=tuple(gone), remove_masters=tuple(headless))


class Plans:
    """The plans of a snapshot's cases; many cases ask for the same changes of a group, and are planned once."""

    def __init__(self, snapshot: ClusterSnapshot) -> None:
        self.snapshot = snapshot
        self._found: dict[tuple[str, Edits], Summary] = {}

    def of(self, name: str, case: Case) -> tuple[Edits, Summary]:
        group = self.snapshot.groups[name]
        routes = tuple(self.snapshot.routes[topic].route for topic in group.topics or ())
        ids = group.client_ids or ()
        what = changes(case, ids, routes)
        if (name, what) not in self._found:
            strategy = NAMES[next(iter(group.reports.values())).strategy_class or ""]
            reads = {each: report.topics for each, report in group.reports.items() if report.topics is not None}
            before = Side(Members(ids, strategy, ROOMS, subscribed=reads), routes)
            members = replace(before.members, client_ids=change_members(ids, what))
            plan = plan_rebalance(name, before, Side(members, change_routes(routes, what)), states=group.queues)
            self._found[name, what] = plan.summary
        return what, self._found[name, what]


def group_values(what: Edits, s: Summary, consumers: int) -> dict[str, float | None]:
    share = s.moved / s.after.queues if s.after.queues else 0
    return {
        "unassigned": s.unassigned, "imbalance": s.imbalance, "idle": s.idle,
        "minConsumers": consumers - len(what.remove), "duplicateOwners": s.duplicate_owners, "withoutLock": 0,
        "movedOnConsumerLoss": share if what.remove and not what.remove_brokers else None,
        "movedOnBrokerLoss": share if what.remove_brokers and not what.remove else None,
    }  # fmt: skip


def broken_in(plans: Plans, case: Case) -> dict[Key, float]:
    snapshot = plans.snapshot
    found: dict[Key, float] = {}
    for name, group in snapshot.groups.items():
        what, summary = plans.of(name, case)
        for limit, value in group_values(what, summary, len(group.client_ids or ())).items():
            if value is not None and verdict(Limit(limit, GROUP_LIMITS[limit]), Measured(value)) == FAILED:
                found[name, limit] = value
    for topic, sighting in snapshot.routes.items():
        what = changes(case, (), (sighting.route,))
        (left,) = change_routes((sighting.route,), what)
        for limit, bound in TOPIC_LIMITS.items():
            measured = measure_topic(limit, type(sighting)(left, sighting.seen))
            if verdict(Limit(limit, bound), measured) == FAILED:
                assert isinstance(measured.value, int | float)
                found[topic, limit] = measured.value
    return found


def parts(snapshot: ClusterSnapshot, name: str, case: Case) -> frozenset[object]:
    if name in snapshot.groups:
        group = snapshot.groups[name]
        ids = group.client_ids or ()
        routes = [snapshot.routes[topic].route for topic in group.topics or ()]
    else:
        ids, routes = (), [snapshot.routes[name].route]
    brokers = {data.broker_name for each in routes for data in each.queue_datas}
    return frozenset(
        each
        for one in case
        for each in one.things
        if (each.name in brokers if each.kind == "address" else (each.number or 0) < ids.count(each.name))
    )


@settings(max_examples=12, deadline=None)
@given(clusters())
def test_every_case_is_counted_and_the_least_that_break_a_limit_are_found(snapshot: ClusterSnapshot) -> None:
    plans = Plans(snapshot)
    without = broken_in(plans, ())
    every = {case: broken_in(plans, case) for case in cases(snapshot)}
    broken = {case: {key: value for key, value in found.items() if key not in without} for case, found in every.items()}
    sweep = swept(snapshot)
    singles = [case for case in every if len(case) == 1]
    assert (sweep.cases.all, sweep.cases.singles) == (len(every), len(singles))
    assert sweep.cases.broken_singles == sum(bool(broken[case]) for case in singles)
    assert sweep.cases.broken == sum(map(bool, broken.values()))
    assert {(each.name, each.limit): each.value for each in sweep.broken_already} == without
    for worst in sweep.groups:
        assert worst.broken == sum(any(name == worst.group for name, _ in found) for found in broken.values())
        assert worst.cases == sum(bool(parts(snapshot, worst.group, case)) for case in every)
        summaries = [plans.of(worst.group, case)[1] for case in ((), *every)]
        for figure in ("unassigned", "idle", "imbalance", "moved", "lag_moved"):
            values = [getattr(each, figure) for each in summaries]
            if figure == "imbalance":  # there is none without queues or consumers
                values = [value or 0 for value in values]
            found = getattr(worst, figure)
            assert (None if found is None else found.value) == (None if None in values else max(values)), figure
    for topic in sweep.topics:
        assert topic.broken == sum(any(name == topic.topic for name, _ in found) for found in broken.values())
        route = snapshot.routes[topic.topic].route
        taking = [changes(case, (), (route,)) for case in every if parts(snapshot, topic.topic, case)]
        left = [change_routes((route,), each)[0].publish_queues() for each in taking]
        assert topic.unwritable == left.count([])
    numbers: Counter[Size] = Counter()
    for each in sweep.counterexamples:
        assert isinstance(each.value, int | float)
        numbers[each.name, each.limit, each.value, len(each.losses)] += each.cases
    assert numbers == least(snapshot, broken)


def least(snapshot: ClusterSnapshot, broken: dict[Case, dict[Key, float]]) -> Counter[Size]:
    """The least cases: none that takes less of the group or topic, or as much with fewer losses, breaks the limit."""
    found: Counter[Size] = Counter()
    for key in {key for each in broken.values() for key in each}:
        those = [(parts(snapshot, key[0], case), len(case), case) for case in broken if key in broken[case]]
        sizes = {(taken, number) for taken, number, _ in those}
        for taken, number, case in those:
            if not any(less < taken or (less == taken and fewer < number) for less, fewer in sizes):
                found[*key, broken[case][key], number] += 1
    return found
