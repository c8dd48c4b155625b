from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations
from pathlib import Path
from random import Random
from typing import Any
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from rmqlb import DataError, MessageQueue, QueueData, RmqlbError, TopicRouteData, UsageError
from rmqlb.engine.allocate.rules import WITHOUT_SETTINGS
from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.assignment.assign import Members, assign
from rmqlb.engine.plan_rollout import (
    MOST_REBALANCES,
    RolloutModel,
    RolloutRequest,
    cost_of_each,
    fewest_moves,
    least_overlap,
    overlaps,
    plan_rollout,
    ranked,
    rollout_findings,
    rollout_model,
    total_overlap,
)
from rmqlb.model.group_scenario import SECOND_US, GroupScenario
from rmqlb.model.plan import Rollout, RolloutChoice
from rmqlb.model.result import Meta, named, with_meta
from rmqlb.model.snapshot import ClusterSnapshot
from rmqlb.views.plan_rollout import rollout_report
from tests.support.builders import route
from tests.support.group_builders import choice as built
from tests.support.group_builders import trials
from tests.support.mismatches import assert_recorded, every_case, refusal


def rolled(
    client_ids: str,
    *routes: TopicRouteData,
    to: str | None = None,
    pauses: Sequence[float] = (60,),
    down: int = 15,
    orderly: bool = False,
    trials: int = 3,
    members: Members | None = None,
    scenario: GroupScenario | None = None,
    most_rebalances: int = MOST_REBALANCES,
    **asked: Any,
) -> Rollout:
    down_us, pauses_us = down * SECOND_US, [int(pause * SECOND_US) for pause in pauses]
    plan, findings = plan_rollout(
        "g",
        members or Members(tuple(client_ids.split()), "AVG"),
        routes or (route(a=4, b=4),),
        scenario or GroupScenario(orderly=orderly),
        RolloutRequest(to_strategy=to, down_us=down_us, pauses_us=pauses_us, **asked),
        trials=trials,
        progress=lambda _done, _total: None,
        most_rebalances=most_rebalances,
    )
    return with_meta(plan, Meta(ClusterSnapshot("dump", "x"), findings))


IDS = " ".join(f"10.0.0.{number:02d}@1#7" for number in range(1, 13))
MANY = " ".join(f"c{number:02}" for number in range(20))
ROOMS = TopicRouteData("T", (QueueData("r@a", 4, 4, 6), QueueData("plain", 3, 3, 6)), route(plain=3).broker_datas)
IN_ROOMS = Members(("x", "y"), "MACHINE_ROOM", Settings(consumer_idcs=frozenset({"r"})))
MIXED = Members(("a", "b", "c"), "AVG", strategy_of={"c": "AVG_BY_CIRCLE"})
ALL_FIRST = Members(("a", "b", "c"), "CONFIG", Settings(config=[MessageQueue("T", "a", 0)]))
NOT_ALL = Members(tuple("aabcd"), "AVG", Settings(hosts=frozenset("abcd")))
CIRCLE = "AVG_BY_CIRCLE"


def named_rollouts() -> Iterator[tuple[str, Rollout]]:
    yield "a restart in both directions, two pauses", rolled("b a c", pauses=[60, 20, 60])
    yield "a restart, one consumer comes back with another ID", rolled("a b c", becomes={"c": "0"})
    yield "a restart, two at once", rolled("a b c", at_once=[2])
    given: dict[str, Any] = {"pauses": [20, 10, 20], "at_once": [5, 1], "order": ["b", "a", "c"]}
    yield "a restart, a given order, and all at once", rolled("c a b", route(a=3), **given)
    yield "a restart, pauses shorter than the absence", rolled("a b c", pauses=[5, 10, 15])
    yield "two consumers swap a queue", rolled("x y", route(a=4), to=CIRCLE, pauses=[300])
    for orderly in (False, True):
        yield f"strategies that must overlap, orderly: {orderly}", rolled("a b c d", to=CIRCLE, orderly=orderly)
    yield "strategies that must overlap, two at once", rolled("a b c d", to=CIRCLE, at_once=[2])
    yield "neither direction has the least overlap", rolled("a b c d e", route(a=7), to="CONSISTENT_HASH")
    config = {"b": [MessageQueue("T", "a", 2)], "c": [MessageQueue("T", "a", 1)]}
    swap: dict[str, Any] = {"members": Members(("a", "b", "c"), "AVG", Settings(config=config)), "restart": ["b", "c"]}
    yield "an order with less overlap than its reverse", rolled("", route(a=3), to="CONFIG", orderly=True, **swap)
    for down in (30, 31):
        yield f"the last goes down after 30 s, {down} s away", rolled("a b c d", to=CIRCLE, pauses=[10], down=down)
    yield "others keep their strategy", rolled("a b c", to=CIRCLE, restart=["c"])
    for number in (1, 2):
        searched = rolled(MANY, route(a=60), to=CIRCLE, at_once=[number], most_rebalances=1)
        yield f"too many consumers for all orders, {number} at once", searched
    twice = Members(("a", "a", *MANY.split()), "AVG")
    badly: dict[str, Any] = {"members": twice, "restart": MANY.split(), "most_rebalances": 1}
    yield "too many consumers, and a queue badly owned in each stage", rolled("", route(a=264), to=CIRCLE, **badly)
    new: dict[str, Any] = {"becomes": {"c00": "d"}, "most_rebalances": 1}
    yield "too many consumers, one with another ID", rolled(MANY, route(a=60), to=CIRCLE, **new)
    doubly: dict[str, Any] = {"members": NOT_ALL, "restart": ["b", "c", "d"]}
    yield "queues badly owned in each stage", rolled("", route(a=5), to="PIN", **doubly)
    yield "queues badly owned in each stage, and others", rolled("", route(a=5), to="CONSISTENT_HASH", **doubly)
    yield "queues outside the rooms", rolled("", ROOMS, members=IN_ROOMS)
    for orderly in (False, True):
        yield f"a restart of a mixed group, orderly: {orderly}", rolled("", members=MIXED, orderly=orderly)
    yield "a restart, a queue that all own", rolled("", route(a=1), members=ALL_FIRST)
    for steps in (4 * 12 * 2, 4 * 5 * 2, 3 * 2, 0):  # fewer trials first, then fewer restarts, then fewer choices
        yield f"a large group, {steps} steps", rolled(IDS, pauses=(10, 60), most_rebalances=max(steps * 4 * 12, 1))
    yield "a large group within the bound", rolled(IDS, pauses=(10, 60))


def lines_of(plan: Rollout) -> Iterator[str]:
    yield rollout_report(plan).facts[0]
    least = "the least" if plan.misassigned_is_minimum else "maybe not the least"
    yield f"{plan.strategy_before} to {plan.strategy_after}: {plan.misassigned} badly owned in stages, {least}"
    for each in plan.choices:
        takes = "never" if each.takes_ms is None else f"{each.takes_ms / 1000:.0f} s"
        order = f"{each.order_name}: {named(each.order)}; {each.at_once} at once every {each.pause_ms / 1000:g} s"
        gap, overlap = (ms.p95 / 1000 for ms in (each.figures.total_gap_ms, each.figures.total_overlap_ms))
        tried = f"{each.restarts} restarts in {each.trials} trials{', the best' if each.best else ''}"
        yield f"  {order}: takes {takes}, gaps {gap:.0f} s, overlaps {overlap:.0f} s, {tried}"
    for stage in plan.stages:
        counts = f"{stage.duplicate_owners} with duplicate owners, {stage.unassigned} unassigned"
        yield f"  {stage.changed} changed, then {stage.next_id}: {counts}"
    yield from (f"  {each.code}: {each.message}" for each in plan.meta.findings)


def random_rollout(dice: Random) -> Rollout:
    ids, (runs, to) = "abcdef"[: dice.randint(2, 6)], dice.sample((None, *WITHOUT_SETTINGS), 2)
    return rolled(
        "", route(a=dice.randint(1, 6), b=dice.randint(0, 5)), members=Members(tuple(ids), runs or to or "AVG"),
        to=to if runs else None, restart=dice.choice((None, None, dice.sample(ids, dice.randint(1, len(ids))))),
        becomes=dice.choice(({}, {}, {ids[0]: "z"})), at_once=[dice.randint(1, 3)], down=dice.choice((5, 15, 40)),
        pauses=dice.sample((10, 25, 60, 120), dice.randint(1, 2)), orderly=dice.random() < 0.3, trials=1,
    )  # fmt: skip


def random_rollouts() -> Iterator[str]:
    for number in range(96):
        lines = [*lines_of(random_rollout(Random(f"rollout {number}")))]
        yield f"{crc32(repr(lines).encode()):08x} {lines[0]}"


def test_named_rollouts_are_as_recorded(request: pytest.FixtureRequest) -> None:
    answers = {name: lines_of(plan) for name, plan in named_rollouts()} | {"random": random_rollouts()}
    assert_recorded(Path(__file__).with_name("rollouts.txt"), answers, request)


@pytest.mark.parametrize("orderly", [False, True])
def test_with_long_pauses_the_simulation_has_the_overlap_of_the_stages(orderly: bool) -> None:
    """The stages at rest, summed, less the time that members are away, when others have their queues."""
    plan = rolled("a b c d", to="AVG_BY_CIRCLE", pauses=[1200], orderly=orderly, trials=1)
    best = plan.choices[0]
    several, none = sum(stage.duplicate_owners for stage in plan.stages), sum(stage.unassigned for stage in plan.stages)
    rests = (1200 - 15) * SECOND_US
    slack = 3 * 15 * 8 * SECOND_US
    assert best.figures.total_gap_ms.p50 * 1000 == pytest.approx(none * rests, abs=slack)
    assert best.figures.total_overlap_ms.p50 * 1000 == pytest.approx(several * rests, abs=slack)
    assert (several == 0) is orderly


def choice(name: str, *, takes: int | None = 0, settled: int = 10, **figures: float) -> RolloutChoice:
    """Gaps and overlaps in all as `none` and `several`, the longest ones as `longest` and `overlap`."""
    fields = {"none": "total_gap", "several": "total_overlap", "longest": "longest_gap", "overlap": "longest_overlap"}
    tried = trials(10, settled, **{f"{fields[figure]}_ms": (value, value, value) for figure, value in figures.items()})
    return built(tried, name=name, pause_ms=1, down_ms=1, takes_ms=takes)


@every_case(("choices", "order"), [
    ([choice("a", none=200), choice("b", none=100)], "b a"),
    ([choice("a", none=60, several=60), choice("b", several=100)], "b a"),
    ([choice("a", none=100, longest=9), choice("b", none=100, longest=8)], "b a"),
    ([choice("a", none=100, longest=7, overlap=9), choice("b", none=100, longest=8, overlap=5)], "b a"),
    ([choice("a", takes=105), choice("b", takes=100)], "b a"),
    ([choice("a", takes=111), choice("b", longest=1, takes=100)], "b a"),
    ([choice("a", takes=109), choice("b", longest=1, takes=100)], "a b"),
    ([choice("a", none=100, takes=900), choice("b", none=109, takes=100)], "b a"),
    ([choice("a", none=100, takes=900), choice("b", none=111, takes=100)], "a b"),
    ([choice("a", none=105, takes=100), choice("b", none=100, takes=105)], "b a"),
    ([choice("a", none=0, settled=9, takes=None), choice("b", none=900)], "b a"),
    ([choice("a", none=0, settled=0, takes=None), choice("b", none=9, settled=1, takes=None)], "b a"),
    ([choice("a"), choice("b")], "a b"),
    ([choice("a", none=300), choice("b", none=100, takes=50), choice("c", none=101, takes=1), choice("d", none=200)], "c b d a"),
])  # fmt: skip
def test_the_best_settles_then_hurts_least_then_is_quickest(choices: list[RolloutChoice], order: str) -> None:
    ordered = ranked(choices)
    assert " ".join(each.order_name for each in ordered) == order
    assert [each.best for each in ordered] == [True] + [False] * (len(choices) - 1)


@every_case(("settled", "unsettled"), [(7, 3), (1, 9), (0, 10)])
def test_trials_that_the_best_choice_leaves_unsettled_are_counted(settled: int, unsettled: int) -> None:
    plan = replace(rolled("a b"), choices=(choice("a", settled=settled), choice("b", settled=0)))
    rollout = rollout_model(Members(("a", "b"), "AVG"), None, None, {})
    (finding,) = rollout_findings(plan, rollout, GroupScenario(), None, None, 0)
    text = f"even with the best choice the group does not converge in {unsettled} of 10 trials"
    assert (finding.code, finding.message) == ("not-converged", text)


@every_case(("asked", "error"), [
    ({"client_ids": "a a b"}, "2 processes share the client ID a: rmqlb cannot tell their restarts apart"),
    ({"scenario": GroupScenario(broadcasting=True)}, "the group is BROADCASTING: every consumer reads every queue, so nothing is rebalanced"),
    ({"to": "AVG"}, "a already runs AVG"),
    ({"to": "AVG", "restart": ["c", "b"]}, "b already runs AVG"),
    ({"to": "CONFIG", "restart": ["c", "b"], "members": Members(("a", "b", "c"), "AVG", strategy_of={"b": "CONFIG"})}, "b already runs CONFIG"),
    ({"pauses": range(1, 14)}, "13 pauses with 1 batch sizes: rmqlb tries at most 12 combinations"),
    ({"pauses": range(1, 5), "at_once": [1, 2, 3, 4]}, "4 pauses with 4 batch sizes: rmqlb tries at most 12 combinations"),
    ({"order": ["a", "b"]}, "the order lacks c"),
    ({"order": ["b"]}, "the order lacks a"),
    ({"order": ["a", "b", "c", "d"]}, "the order names d, which does not restart"),
    ({"order": ["e", "a", "b", "c", "d"]}, "the order names e, which does not restart"),
    ({"order": ["a", "b", "c", "a"]}, "the order names a consumer twice"),
])  # fmt: skip
def test_what_cannot_be_planned_is_refused_in_one_line(asked: dict[str, Any], error: str) -> None:
    caught = refusal(RmqlbError, rolled, **{"client_ids": "a b c", **asked})
    assert caught.message == error
    assert isinstance(caught, UsageError | DataError)


AT_REST = ("AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH", "CONFIG", "PIN")
Owners = Mapping[MessageQueue, tuple[str, ...]]
Change = tuple[RolloutModel, list[TopicRouteData]]


@st.composite
def changes(draw: st.DrawFn, most: int = 6, *, new_ids: bool = False) -> Change:
    """A change of strategy of some consumers, on one or two topics; an ID that is not restarted may be shared."""
    ids = draw(st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=most, unique=True))
    topics, number = draw(st.sampled_from(["T", "TU"])), st.integers(0, 9)
    routes = [route(topic, a=draw(number), b=draw(st.integers(0, 4))) for topic in topics]
    queues = [queue for each in routes for queue in each.subscribe_queues()]
    config = {i: [queue for queue in queues if draw(st.integers(0, 2)) == 0] for i in ids}
    hosts = frozenset(i for i in ids if draw(st.booleans())) | {ids[0]}
    before, after = draw(st.lists(st.sampled_from(AT_REST), min_size=2, max_size=2, unique=True))
    restarted = [i for i in ids if draw(st.integers(0, 4))] or ids
    shared = [i for i in ids if i not in restarted and draw(st.booleans())]
    subscribed = {i: {"T"} for i in ids if not draw(st.integers(0, 5))}
    members = Members((*ids, *shared), before, Settings(config=config, hosts=hosts), subscribed=subscribed)
    becomes = {i: f"{draw(st.sampled_from('ax'))}{i}" for i in restarted if draw(st.booleans())} if new_ids else {}
    return rollout_model(members, restarted, after, becomes), routes


def owners_at(rollout: RolloutModel, routes: Sequence[TopicRouteData], changed: int, away: int = 0) -> Owners:
    members = rollout.members_when(changed, away)
    found = {queue: ids for each in routes for queue, ids in assign(each, members).owners.items()}
    return {queue: found[queue] for each in routes for queue in each.subscribe_queues()}


@given(st.booleans() | st.none(), st.data())
def test_each_stage_is_what_its_consumers_allocate(new_ids: bool | None, data: st.DataObject) -> None:
    orderly = data.draw(st.booleans())
    rollout, routes = data.draw(changes(new_ids=bool(new_ids)))
    known = overlaps(rollout, routes, orderly=orderly)
    stages = range(1 << len(rollout.client_ids))
    for changed in stages:
        owners = owners_at(rollout, routes, changed).values()
        several = 0 if orderly else sum(len(ids) > 1 for ids in owners)
        assert known.counts(changed) == (several, sum(not ids for ids in owners))
    if known.costs is not None:
        assert cost_of_each(known.costs, len(rollout.client_ids)) == [sum(known.counts(changed)) for changed in stages]


@given(st.booleans(), st.integers(1, 3), st.data())
def test_no_order_has_less_overlap_than_the_least(orderly: bool, at_once: int, data: st.DataObject) -> None:
    rollout, routes = data.draw(changes(most=5, new_ids=data.draw(st.booleans())))
    known = overlaps(rollout, routes, orderly=orderly)
    totals = {order: total_overlap(known.stages(order, at_once)) for order in permutations(rollout.client_ids)}
    least = least_overlap(known, at_once)
    assert least is not None
    assert least.is_least
    assert least.total == totals[least.order] == min(totals.values())
    if at_once == 1:
        assert known.bound <= least.total


def circle(client_ids: str, **brokers: int) -> Change:
    members = Members(tuple(client_ids.split()), "AVG")
    return rollout_model(members, None, "AVG_BY_CIRCLE", {}), [route("T", 6, True, **brokers)]


def test_queues_owned_badly_anyway_are_not_added_and_each_handover_counts_once() -> None:
    """The block of a's second process has no owner, whatever the others run: in both of three's stages."""
    members = Members(tuple("aabc"), "AVG", strategy_of={"b": "AVG_BY_CIRCLE"})
    assert overlaps(rollout_model(members, ["b"], "AVG", {}), [route(a=4)], orderly=False).anyway == 1
    members = Members(tuple("aabc"), "AVG", Settings(hosts=frozenset("abc")))
    known = overlaps(rollout_model(members, ["b", "c"], "PIN", {}), [route(a=4)], orderly=False)
    stages = known.stages(("b", "c"), 1)
    assert (total_overlap(stages), known.added(stages)) == (1, 0)
    members = Members(tuple("aabcd"), "AVG", Settings(hosts=frozenset("abcd")))
    known = overlaps(rollout_model(members, ["b", "c", "d"], "PIN", {}), [route(a=5)], orderly=False)
    assert (known.anyway, known.bound) == (1, 2)
    unknown = overlaps(rollout_model(members, ["b"], "PIN", {"b": "x"}), [route(a=5)], orderly=False)
    assert (unknown.anyway, unknown.bound) == (0, 0)
    config = {"b": [MessageQueue("T", "a", 2)], "c": [MessageQueue("T", "a", 1)]}
    swap = rollout_model(Members(("a", "b", "c"), "AVG", Settings(config=config)), ["b", "c"], "CONFIG", {})
    assert [overlaps(swap, [route(a=3)], orderly=orderly).bound for orderly in (False, True)] == [2, 0]


def test_a_group_too_large_for_all_orders_is_put_in_a_good_one_and_says_so() -> None:
    known = overlaps(*circle(" ".join(f"c{i:02}" for i in range(30)), a=90), orderly=False)
    least = least_overlap(known, 1)
    assert least is not None
    assert not least.is_least
    assert sorted(least.order) == list(known.client_ids)
    assert known.bound <= least.total == 452  # 750 in the sorted order


def test_a_strategy_that_throws_for_one_consumer_cannot_be_planned() -> None:
    settings = Settings(inner="CONFIG", broker_zones={"a": "z"}, client_zones={"near": "z", "far": "y"})
    rollout = rollout_model(Members(("near", "far"), "AVG", settings), None, "MACHINE_ROOM_NEARBY", {})
    with pytest.raises(DataError, match="topic T: under MACHINE_ROOM_NEARBY the client of near fails"):
        overlaps(rollout, [route(a=1)], orderly=False)


def restart(client_ids: str, strategy: str = "AVG", **becomes: str) -> RolloutModel:
    return rollout_model(Members(tuple(client_ids.split()), strategy), None, None, becomes)


def moves_of(rollout: RolloutModel, queues: int, order: Sequence[str], at_once: int = 1) -> int:
    topic, moves, changed = [route(a=queues)], 0, 0
    bit = {client_id: 1 << index for index, client_id in enumerate(rollout.client_ids)}
    for start in range(0, len(order), at_once):
        away = sum(bit[client_id] for client_id in order[start : start + at_once])
        without = owners_at(rollout, topic, changed, away)
        for end in (owners_at(rollout, topic, changed), owners_at(rollout, topic, changed | away)):
            moves += sum(end[queue] != without[queue] for queue in end)
        changed |= away
    return moves


@given(st.integers(1, 5), st.integers(1, 3), st.integers(0, 9), st.data())
def test_no_order_moves_fewer_queues(consumers: int, at_once: int, queues: int, data: st.DataObject) -> None:
    ids = "abcde"[:consumers]
    becomes = {i: f"{data.draw(st.sampled_from('ace'))}{i}" for i in ids if data.draw(st.booleans())}
    rollout = restart(" ".join(ids), data.draw(st.sampled_from(["AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH"])), **becomes)
    order = fewest_moves(rollout, [route(a=queues)], at_once)
    assert order is not None
    assert moves_of(rollout, queues, order, at_once) == min(
        moves_of(rollout, queues, other, at_once) for other in permutations(ids)
    )
