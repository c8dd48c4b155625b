import re
from collections.abc import Mapping, Sequence
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from rmqlb import DataError, MessageQueue, QueueData, RmqlbError, TopicRouteData, UsageError
from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.assignment.assign import Members, assign
from rmqlb.engine.plan_rollout.plan import (
    MOST_REBALANCES,
    Candidate,
    RolloutRequest,
    all_candidates,
    hurt_ms,
    plan_rollout,
    ranked,
    rollout_findings,
)
from rmqlb.engine.plan_rollout.stages import (
    LeastOverlap,
    Overlaps,
    RolloutModel,
    cost_of_each,
    fewest_moves,
    least_overlap,
    overlaps,
    rollout_model,
    total_overlap,
)
from rmqlb.model.group_scenario import SECOND_US, GroupScenario
from rmqlb.model.plan import MixedStage, Rollout, RolloutChoice
from rmqlb.model.result import Meta, with_meta
from rmqlb.model.snapshot import ClusterSnapshot
from rmqlb.views.plan_rollout import rollout_report
from tests.support.builders import route
from tests.support.group_builders import choice as built
from tests.support.group_builders import trials
from tests.support.mismatches import every_case


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


def codes(plan: Rollout) -> list[str]:
    return [finding.code for finding in plan.meta.findings]


def message(plan: Rollout, code: str) -> str:
    (text,) = (finding.message for finding in plan.meta.findings if finding.code == code)
    return text


def test_a_mere_restart_tries_both_directions_and_ends_with_its_last_queues() -> None:
    plan = rolled("b a c", pauses=[60, 20, 60])
    assert plan.members == ("a", "b", "c")
    orders = {"reversed": ("c", "b", "a"), "sorted": ("a", "b", "c")}
    tried = sorted((c.order_name, c.order, c.pause_ms) for c in plan.choices)
    assert tried == [(name, order, ms) for name, order in orders.items() for ms in (20_000, 60_000)]
    assert (plan.stages, plan.misassigned, plan.misassigned_is_minimum) == ((), 0, True)
    assert plan.strategy_before == plan.strategy_after == "AVG"
    assert codes(plan) == []
    for choice in rolled("a b c", pauses=[20, 60]).choices:
        assert choice.takes_ms is not None
        back = 2 * choice.pause_ms + choice.down_ms
        assert back < choice.takes_ms < back + 3000


def test_consumers_come_back_with_their_new_ids() -> None:
    same, changed = rolled("a b c", trials=1), rolled("a b c", trials=1, becomes={"c": "0"})
    assert changed.members == same.members
    assert {each.figures.taken.max for each in same.choices} != {each.figures.taken.max for each in changed.choices}
    names = [{each.order_name for each in plan.choices} for plan in (same, changed, rolled("a b c", at_once=[2]))]
    assert [any("fewest moves" in each for each in name) for name in names] == [False, True, True]


def test_two_members_that_swap_a_queue_overlap_for_the_pause_between_them() -> None:
    plan = rolled("x y", route(a=4), to="AVG_BY_CIRCLE", pauses=[300])
    best = plan.choices[0]
    assert [(s.changed, s.next_id, s.duplicate_owners, s.unassigned) for s in plan.stages] == [(1, best.order[1], 1, 1)]
    assert (plan.misassigned, plan.misassigned_is_minimum) == (2, True)
    for figure in (best.figures.longest_overlap_ms, best.figures.longest_gap_ms):
        assert figure.max * 1000 == pytest.approx((300 - 15) * SECOND_US, abs=3 * SECOND_US)


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


def test_where_strategies_must_overlap_the_plan_says_so_and_what_all_at_once_would_do() -> None:
    plan = rolled("a b c d", to="AVG_BY_CIRCLE")
    assert message(plan, "mixed-strategies") == (
        "no order with 1 consumer at a time, each back before the next one stops, prevents this: "
        "while some consumers run AVG and others AVG_BY_CIRCLE, queues are "
        f"unassigned or have duplicate owners; the best choice has {plan.misassigned} such queues in its 3 mixed stages at rest, the minimum is {plan.misassigned}"
    )
    compared = plan.choices[-1]
    assert (compared.order_name, compared.at_once, compared.best) == ("all at once", 4, False)
    assert compared.figures.longest_gap_ms.p95 * 1000 == pytest.approx(16 * SECOND_US, abs=SECOND_US)
    assert hurt_ms(compared) < hurt_ms(plan.choices[0])
    said = message(plan, "all-at-once")
    assert "a restart of all 4 at once has no mixed stage, but then queues have a gap of 16s" in said
    best = round(hurt_ms(plan.choices[0]) / 1000)
    assert re.search(rf"\({best}(\.\d+)?s for the best choice\)$", said)


def test_a_group_whose_last_member_is_down_before_the_first_is_back_is_never_mixed() -> None:
    plan = rolled("a b c d", to="AVG_BY_CIRCLE", pauses=[10], down=31, trials=1)
    assert (plan.stages, plan.misassigned, plan.misassigned_is_minimum) == ((), 0, True)
    assert plan.choices[0].figures.total_overlap_ms.max * 1000 < 10 * SECOND_US  # one queue over one stage
    assert codes(plan) == ["several-away"]
    assert rolled("a b c d", to="AVG_BY_CIRCLE", pauses=[10], down=30, trials=1).stages


ROOMS = TopicRouteData("T", (QueueData("r@a", 4, 4, 6), QueueData("plain", 3, 3, 6)), route(plain=3).broker_datas)
MIXED = Members(("a", "b", "c"), "AVG", strategy_of={"c": "AVG_BY_CIRCLE"})


@every_case(("routes", "members", "orderly", "queues"), [
    ((ROOMS,), Members(("x", "y"), "MACHINE_ROOM", Settings(consumer_idcs=frozenset({"r"}))), False, "3 queues are"),
    ((), MIXED, False, "4 queues are"),
    ((), MIXED, True, "2 queues are"),
    ((route(a=1),), Members(("a", "b", "c"), "CONFIG", Settings(config=[MessageQueue("T", "a", 0)])), False, "1 queue is"),
    ((), Members(("a", "b", "c"), "AVG"), False, None),
])  # fmt: skip
def test_a_restart_is_not_blamed_for_queues_that_are_badly_owned_anyway(
    routes: tuple[TopicRouteData, ...], members: Members, orderly: bool, queues: str | None
) -> None:
    plan = rolled("", *routes, members=members, orderly=orderly, trials=2)
    found = [each.message for each in plan.meta.findings if each.code == "badly-owned-anyway"]
    said = f"{queues} unassigned or with duplicate owners before and after the restart; the times of each choice include them"
    assert found == ([] if queues is None else [said])


def test_a_plan_warns_of_a_group_that_stays_mixed_and_of_a_short_pause() -> None:
    plan = rolled("a b c", to="AVG_BY_CIRCLE", restart=["c"])
    assert plan.members == ("c",)
    assert plan.stages == ()
    assert message(plan, "stays-mixed").startswith("consumers that keep their strategy: 2; so the group stays mixed: ")
    plan = rolled("a b c", pauses=[5, 10, 15], down=15)
    text = "consumers are down for 15s: with a pause of 5s and 10s, the next consumer stops before the previous one is back"
    assert message(plan, "several-away") == text


def test_each_order_is_tried_with_each_pause_and_all_members_at_once_without_one() -> None:
    rollout, routes = rollout_model(Members(("c", "a", "b"), "AVG"), None, None, {}), [route(a=3)]
    request = RolloutRequest(down_us=15, pauses_us=[20, 10, 20], at_once=[5, 1], order=["b", "a", "c"])
    orders = {"sorted": ("a", "b", "c"), "reversed": ("c", "b", "a"), "given": ("b", "a", "c")}
    assert all_candidates(rollout, routes, None, {}, request) == [
        *(Candidate(order, name, 1, pause) for pause in (10, 20) for name, order in orders.items()),
        Candidate(orders["sorted"], "all at once", 3, 0),
    ]


@every_case(("total", "back"), [(2, "reversed, little overlap reversed"), (3, "reversed"), (1, "reversed")])
def test_the_reverse_of_an_order_is_named_for_it_when_it_has_as_much_overlap(total: int, back: str) -> None:
    """Each order of x and y has two queues badly owned in its only stage."""
    rollout, routes = rollout_model(Members(("x", "y"), "AVG"), None, "AVG_BY_CIRCLE", {}), [route(a=4)]
    known = overlaps(rollout, routes, orderly=False)
    little = {1: LeastOverlap(("x", "y"), total, is_least=False)}
    tried = all_candidates(rollout, routes, known, little, RolloutRequest(down_us=1, pauses_us=[2]))
    assert [each.name for each in tried] == ["sorted, little overlap", back, "all at once"]


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


def said(best: RolloutChoice, known: Overlaps, least: LeastOverlap | None = None, **scenario: Any) -> dict[str, str]:
    """Code → message of a change of a, b and c to AVG_BY_CIRCLE, d staying; each stage has three queues badly owned."""
    members = Members(("a", "b", "c", "d", "d"), "AVG")
    rollout = rollout_model(members, ["a", "b", "c"], "AVG_BY_CIRCLE", {})
    stages = (MixedStage(1, "b", 2, 1), MixedStage(2, "c", 0, 3))
    plan = Rollout("g", "AVG", "AVG_BY_CIRCLE", ("a", "b", "c"), (best,), stages, 6, misassigned_is_minimum=False)
    findings = rollout_findings(plan, rollout, GroupScenario(**scenario), known, least, 7)
    return {finding.code: finding.message for finding in findings}


def overlapping(*, anyway: int, bound: int, end: tuple[int, int] = (0, 0)) -> Overlaps:
    return Overlaps(("a", "b", "c"), lambda changed: end if changed == 0b111 else (9, 9), None, 1, anyway, bound)


ONE_AT_A_TIME = "no order with 1 consumer at a time, each back before the next one stops, prevents this: "
IN_PAIRS = "no order with 2 consumers at a time, each back before the next one stops, prevents this: "


@every_case(("at_once", "bound", "least", "proven", "claim"), [
    (1, 5, None, ONE_AT_A_TIME, "the minimum is 3 or more"),
    (1, 3, None, ONE_AT_A_TIME, "the minimum is 1 or more"),
    (1, 2, None, "", "another order may have fewer"),
    (2, 5, None, "", "another order may have fewer"),
    (1, 3, LeastOverlap(("a", "b", "c"), 5, is_least=True), ONE_AT_A_TIME, "the minimum is 3"),
    (2, 3, LeastOverlap(("a", "b", "c"), 3, is_least=True), IN_PAIRS, "the minimum is 1"),
    (1, 3, LeastOverlap(("a", "b", "c"), 5, is_least=False), ONE_AT_A_TIME, "the minimum is 1 or more"),
    (1, 2, LeastOverlap(("a", "b", "c"), 2, is_least=True), "", "the minimum is 0"),
])  # fmt: skip
def test_only_a_proven_least_is_claimed(
    at_once: int, bound: int, least: LeastOverlap | None, proven: str, claim: str
) -> None:
    """One queue is badly owned anyway, in each of two stages: two of six, and of every total."""
    best, known = replace(choice("a"), at_once=at_once), overlapping(anyway=1, bound=bound)
    mixed = "while some consumers run AVG and others AVG_BY_CIRCLE, queues are unassigned"
    rest = f"; the best choice has 4 such queues in its 2 mixed stages at rest, {claim}"
    found = said(best, known=known, least=least)
    assert found["mixed-strategies"] == f"{proven}{mixed} or have duplicate owners{rest}"
    assert "all-at-once" not in found
    assert said(best, known=known, least=least, orderly=True)["mixed-strategies"] == f"{proven}{mixed}{rest}"
    assert found["badly-owned-anyway"] == (
        "1 queue is unassigned or with duplicate owners before, during and after the change; each stage includes them"
    )


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
    with pytest.raises(RmqlbError) as caught:
        rolled(**{"client_ids": "a b c", **asked})
    assert caught.value.message == error
    assert isinstance(caught.value, UsageError | DataError)


IDS = " ".join(f"10.0.0.{number:02d}@1#7" for number in range(1, 13))


@every_case(("cost", "choices", "trials_", "restarts"), [
    (4 * 12 * 2, 4, 2, 12),  # fewer trials first
    (4 * 5 * 2, 4, 2, 5),  # then fewer restarts
    (3 * 2, 3, 2, 1),  # then fewer choices
    (0, 1, 2, 1),  # one is always tried
])  # fmt: skip
def test_a_large_group_is_searched_in_part(cost: int, choices: int, trials_: int, restarts: int) -> None:
    """One step is a restart of a consumer, after which each of 12 rebalances: the bound counts steps, not seconds."""
    most = max(cost * 4 * 12, 1)
    plan = rolled(IDS, pauses=(10, 60), most_rebalances=most)
    assert rolled(IDS, pauses=(10, 60), most_rebalances=most) == plan
    (first, *_) = plan.choices
    assert (len(plan.choices), first.trials, first.restarts) == (choices, trials_, restarts)
    assert message(plan, "searched-in-part").startswith(
        f"searched {choices} of 4 orders and pauses, with {trials_} of 3 trials each, with {restarts} of 12 restarts"
    )
    assert (len(first.order), first.takes_ms is not None) == (12, True)
    assert (f"(in {restarts} of 12 restarts)" in rollout_report(plan).facts[0]) is (restarts < 12)


def test_a_group_within_the_bound_is_searched_whole() -> None:
    whole = rolled(IDS, pauses=(10, 60))
    assert "searched-in-part" not in codes(whole)
    assert {(each.restarts, each.trials) for each in whole.choices} == {(12, 3)}
    assert (len(whole.choices), whole.choices_in_all) == (4, 4)


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
    if known.pairs is not None:
        assert cost_of_each(known.pairs) == [sum(known.counts(changed)) for changed in stages]


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
    found = fewest_moves(rollout, [route(a=queues)], at_once)
    assert found is not None
    order, moves = found
    assert moves == moves_of(rollout, queues, order, at_once)
    assert moves == min(moves_of(rollout, queues, other, at_once) for other in permutations(ids))
