from collections import Counter
from collections.abc import Iterator
from itertools import combinations

from hypothesis import given, settings
from msgspec.structs import replace

from rmqlb import Members, TopicRouteData
from rmqlb.engine.check import Measured, measure_topic, verdict
from rmqlb.engine.plan.changes import Changes, change_members, change_routes
from rmqlb.engine.plan.rebalance import Side, plan_rebalance
from rmqlb.engine.sweep_failures.cases import Failure, Thing
from rmqlb.model.message_queue import sort_client_ids
from rmqlb.model.plan import Summary
from rmqlb.model.policy import FAILED, Limit
from rmqlb.model.snapshot import ClusterSnapshot

from .clusters import CLASSES, GROUP_LIMITS, ROOMS, TOPIC_LIMITS, clusters, every_loss, swept

NAMES = {java_class: name for name, java_class in CLASSES.items()}
Case = tuple[Failure, ...]
Key = tuple[str, str]
"""Group or topic, and limit."""
Size = tuple[str, str, float, int]
"""The key, the value and the number of losses."""


def cases(snapshot: ClusterSnapshot) -> Iterator[Case]:
    taken = every_loss(snapshot)
    yield from ((each,) for each in taken)
    yield from combinations(taken, 2)


def changes(case: Case, ids: tuple[str, ...], routes: tuple[TopicRouteData, ...]) -> Changes:
    """What plan-rebalance is told of the case: in plain words, from the losses themselves."""
    present = [Thing("process", each, at) for each in sort_client_ids(set(ids)) for at in range(ids.count(each))]
    gone_things = {thing for one in case for thing in one.things}
    gone, headless = [], []
    for name in sorted({data.broker_name for route in routes for data in route.queue_datas}):
        own = {
            number
            for route in routes
            for each in route.broker_datas
            if each.broker_name == name
            for number in each.broker_addrs
        }
        lost = {each.number for each in gone_things if each.kind == "address" and each.name == name}
        if lost >= own:
            gone.append(name)
        elif 0 in lost:
            headless.append(name)
    removed = tuple(each.name for each in present if each in gone_things)
    return Changes(remove=removed, remove_brokers=tuple(gone), remove_masters=tuple(headless))


class Plans:
    """The plans of a snapshot's cases; many cases ask for the same changes of a group, and are planned once."""

    def __init__(self, snapshot: ClusterSnapshot) -> None:
        self.snapshot = snapshot
        self._found: dict[tuple[str, Changes], Summary] = {}

    def of(self, name: str, case: Case) -> tuple[Changes, Summary]:
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


def group_values(what: Changes, s: Summary, consumers: int) -> dict[str, float | None]:
    share = s.moved / s.after.queues if s.after.queues else 0
    return {
        "unassigned": s.unassigned,
        "imbalance": s.imbalance,
        "idle": s.idle,
        "minConsumers": consumers - len(what.remove),
        "duplicateOwners": s.duplicate_owners,
        "withoutLock": 0,
        "movedOnConsumerLoss": share if what.remove and not what.remove_brokers else None,
        "movedOnBrokerLoss": share if what.remove_brokers and not what.remove else None,
    }


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
    brokers = {data.broker_name for route in routes for data in route.queue_datas}
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
