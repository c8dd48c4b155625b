import re
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from rmqlb import RmqlbError, UsageError
from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.assignment.assign import Members
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
from rmqlb.engine.plan_rollout.stages import LeastOverlap, Overlaps, overlaps, rollout_model
from rmqlb.errors import DataError
from rmqlb.model.group_scenario import SECOND_US, GroupScenario
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.plan import MixedStage, Rollout, RolloutChoice
from rmqlb.model.result import Meta, with_meta
from rmqlb.model.route import QueueData, TopicRouteData
from rmqlb.model.snapshot import ClusterSnapshot
from rmqlb.views.plan_rollout import rollout_report
from tests.support.builders import route
from tests.support.group_builders import choice as built
from tests.support.group_builders import trials, us
from tests.support.mismatches import every_case


def rolled(
    client_ids: str,
    *routes: TopicRouteData,
    strategy: str = "AVG",
    to: str | None = None,
    pauses: Sequence[float] = (60,),
    down: int = 15,
    orderly: bool = False,
    trials: int = 3,
    members: Members | None = None,
    scenario: GroupScenario | None = None,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
    most_rebalances: int = MOST_REBALANCES,
    **asked: Any,
) -> Rollout:
    plan, findings = plan_rollout(
        "g",
        members or Members(tuple(client_ids.split()), strategy),
        routes or (route(a=4, b=4),),
        scenario or GroupScenario(orderly=orderly),
        RolloutRequest(to_strategy=to, down_us=down * SECOND_US, pauses_us=[int(pause * SECOND_US) for pause in pauses], **asked),
        trials=trials,
        progress=progress,
        most_rebalances=most_rebalances,
    )  # fmt: skip
    return with_meta(plan, Meta(ClusterSnapshot("dump", "x"), findings))


def codes(plan: Rollout) -> list[str]:
    return [finding.code for finding in plan.meta.findings]


def message(plan: Rollout, code: str) -> str:
    (text,) = (finding.message for finding in plan.meta.findings if finding.code == code)
    return text


def test_a_mere_restart_tries_both_directions_with_each_pause() -> None:
    plan = rolled("b a c", pauses=[60, 20, 60])
    assert plan.members == ("a", "b", "c")
    orders = {"reversed": ("c", "b", "a"), "sorted": ("a", "b", "c")}
    tried = sorted((c.order_name, c.order, c.pause_ms) for c in plan.choices)
    assert tried == [(name, order, ms) for name, order in orders.items() for ms in (20_000, 60_000)]
    assert (plan.stages, plan.misassigned, plan.misassigned_is_minimum) == ((), 0, True)
    assert plan.strategy_before == plan.strategy_after == "AVG"
    assert codes(plan) == []


def test_a_restart_takes_until_the_last_member_is_back_and_has_its_queues() -> None:
    for choice in rolled("a b c", pauses=[20, 60]).choices:
        assert us(choice.takes_ms) is not None
        back = 2 * us(choice.pause_ms) + us(choice.down_ms)
        assert back < us(choice.takes_ms) < back + 3 * SECOND_US


def test_consumers_come_back_with_their_new_ids() -> None:
    same, changed = rolled("a b c", trials=1), rolled("a b c", trials=1, becomes={"c": "0"})
    assert changed.members == same.members
    assert {each.figures.taken.max for each in same.choices} != {each.figures.taken.max for each in changed.choices}
    names = [
        " ".join(each.order_name for each in plan.choices) for plan in (same, changed, rolled("a b c", at_once=[2]))
    ]
    assert ["fewest moves" in each for each in names] == [False, True, True]


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
        "no order with 1 consumer at a time, each back before the next goes down, prevents it: "
        "while some consumers run AVG and others AVG_BY_CIRCLE, queues are "
        f"unassigned or have duplicate owners; the best choice has {plan.misassigned} over its 3 mixed stages at rest, the least is {plan.misassigned}"
    )
    compared = plan.choices[-1]
    assert (compared.order_name, compared.at_once, compared.best) == ("all at once", 4, False)
    assert compared.figures.longest_gap_ms.p95 * 1000 == pytest.approx(16 * SECOND_US, abs=SECOND_US)
    assert hurt_ms(compared) < hurt_ms(plan.choices[0])
    said = message(plan, "all-at-once")
    assert "a restart of all 4 at once has no mixed stage: queues then have a gap of 16s" in said
    best = round(hurt_ms(plan.choices[0]) / 1000)
    assert re.search(rf", against {best}(\.\d+)?s of the best choice$", said)


def test_a_group_whose_last_member_is_down_before_the_first_is_back_is_never_mixed() -> None:
    plan = rolled("a b c d", to="AVG_BY_CIRCLE", pauses=[10], down=31, trials=1)
    assert (plan.stages, plan.misassigned, plan.misassigned_is_minimum) == ((), 0, True)
    assert plan.choices[0].figures.total_overlap_ms.max * 1000 < 10 * SECOND_US  # one queue over one stage
    assert codes(plan) == ["several-away"]
    assert rolled("a b c d", to="AVG_BY_CIRCLE", pauses=[10], down=30, trials=1).stages


def test_the_minimum_of_more_consumers_than_can_be_searched_is_unknown() -> None:
    ids = " ".join(f"c{number:02d}" for number in range(19))
    plan = rolled(ids, route(a=38), to="AVG_BY_CIRCLE", trials=1)
    assert plan.misassigned > 0
    assert not plan.misassigned_is_minimum
    assert any("little overlap" in choice.order_name for choice in plan.choices)


def test_a_restart_is_not_blamed_for_queues_that_are_badly_owned_anyway() -> None:
    members = Members(("x", "y"), "MACHINE_ROOM", Settings(consumer_idcs=frozenset({"r"})))
    rooms = TopicRouteData("T", (QueueData("r@a", 4, 4, 6), QueueData("plain", 3, 3, 6)), route(plain=3).broker_datas)
    plan = rolled("", rooms, members=members, trials=2)
    assert message(plan, "badly-owned-anyway") == (
        "3 queues are unassigned or with duplicate owners before and after the restart; the times of each choice count them"
    )
    mixed = Members(("a", "b", "c"), "AVG", strategy_of={"c": "AVG_BY_CIRCLE"})
    assert "4 queues are unassigned or with duplicate owners" in message(
        rolled("", members=mixed, trials=2), "badly-owned-anyway"
    )
    orderly = rolled("", members=mixed, trials=2, orderly=True)
    assert "2 queues are unassigned or with duplicate owners" in message(orderly, "badly-owned-anyway")
    assert "badly-owned-anyway" not in codes(rolled("a b c", trials=2))
    fixed = Settings(config=[MessageQueue("T", "a", 0)])
    three = rolled("", route(a=1), members=Members(("a", "b", "c"), "CONFIG", fixed), trials=2)
    assert message(three, "badly-owned-anyway").startswith("1 queue is unassigned or with duplicate owners")


def test_a_change_of_some_members_leaves_the_group_mixed() -> None:
    plan = rolled("a b c", to="AVG_BY_CIRCLE", restart=["c"])
    assert plan.members == ("c",)
    assert plan.stages == ()
    assert message(plan, "stays-mixed").startswith("consumers that keep their strategy: 2; the group stays mixed, ")


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


def test_a_pause_shorter_than_the_restart_is_warned_of() -> None:
    plan = rolled("a b c", pauses=[5, 10, 15], down=15)
    assert message(plan, "several-away") == (
        "consumers are down for 15s: with a pause of 5s and 10s the next goes before the last is back"
    )


def choice(
    name: str,
    *,
    none: float = 0,
    several: float = 0,
    longest: int = 0,
    overlap: int = 0,
    takes: int | None = 0,
    settled: int = 10,
) -> RolloutChoice:
    figures = {
        "total_gap_ms": none, "total_overlap_ms": several, "longest_gap_ms": longest, "longest_overlap_ms": overlap,
    }  # fmt: skip
    tried = trials(10, settled, **{field: (value, value, value) for field, value in figures.items()})
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
    assert (finding.code, finding.message) == (
        "not-converged",
        f"even with the best choice the group does not converge in {unsettled} of 10 trials",
    )


def said(
    *choices: RolloutChoice, known: Overlaps, least: LeastOverlap | None = None, orderly: bool = False
) -> dict[str, str]:
    """Code → message of a change of a, b and c to AVG_BY_CIRCLE, d staying; each stage has three queues badly owned."""
    members = Members(("a", "b", "c", "d", "d"), "AVG")
    rollout = rollout_model(members, ["a", "b", "c"], "AVG_BY_CIRCLE", {})
    stages = (MixedStage(1, "b", 2, 1), MixedStage(2, "c", 0, 3))
    plan = Rollout("g", "AVG", "AVG_BY_CIRCLE", ("a", "b", "c"), choices, stages, 6, misassigned_is_minimum=False)
    findings = rollout_findings(plan, rollout, GroupScenario(orderly=orderly), known, least, 7)
    return {finding.code: finding.message for finding in findings}


def overlapping(*, anyway: int, bound: int, end: tuple[int, int] = (0, 0)) -> Overlaps:
    return Overlaps(("a", "b", "c"), lambda changed: end if changed == 0b111 else (9, 9), None, 1, anyway, bound)


ONE_AT_A_TIME = "no order with 1 consumer at a time, each back before the next goes down, prevents it: "
IN_PAIRS = "no order with 2 consumers at a time, each back before the next goes down, prevents it: "


@every_case(("at_once", "bound", "least", "proven", "claim"), [
    (1, 5, None, ONE_AT_A_TIME, "the least is 3 or more"),
    (1, 3, None, ONE_AT_A_TIME, "the least is 1 or more"),
    (1, 2, None, "", "another order may have fewer"),
    (2, 5, None, "", "another order may have fewer"),
    (1, 3, LeastOverlap(("a", "b", "c"), 5, is_least=True), ONE_AT_A_TIME, "the least is 3"),
    (2, 3, LeastOverlap(("a", "b", "c"), 3, is_least=True), IN_PAIRS, "the least is 1"),
    (1, 3, LeastOverlap(("a", "b", "c"), 5, is_least=False), ONE_AT_A_TIME, "the least is 1 or more"),
    (1, 2, LeastOverlap(("a", "b", "c"), 2, is_least=True), "", "the least is 0"),
])  # fmt: skip
def test_only_a_proven_minimum_is_claimed(
    at_once: int, bound: int, least: LeastOverlap | None, proven: str, claim: str
) -> None:
    """One queue is badly owned anyway, in each of two stages: two of six, and of every total."""
    best, known = replace(choice("a"), at_once=at_once), overlapping(anyway=1, bound=bound)
    mixed = "while some consumers run AVG and others AVG_BY_CIRCLE, queues are unassigned"
    rest = f"; the best choice has 4 over its 2 mixed stages at rest, {claim}"
    found = said(best, known=known, least=least)
    assert found["mixed-strategies"] == f"{proven}{mixed} or have duplicate owners{rest}"
    assert "all-at-once" not in found
    assert said(best, known=known, least=least, orderly=True)["mixed-strategies"] == f"{proven}{mixed}{rest}"
    assert found["badly-owned-anyway"] == (
        "1 queue is unassigned or with duplicate owners before, during and after the change; each stage counts them"
    )


@every_case(("asked", "error"), [
    ({"client_ids": "a a b"}, "2 processes share the client ID a: the restart of one looks like that of another"),
    ({"scenario": GroupScenario(broadcasting=True)}, "the group is BROADCASTING: every consumer reads every queue, nothing is rebalanced"),
    ({"to": "AVG"}, "a runs AVG already"),
    ({"to": "AVG", "restart": ["c", "b"]}, "b runs AVG already"),
    ({"to": "CONFIG", "restart": ["c", "b"], "members": Members(("a", "b", "c"), "AVG", strategy_of={"b": "CONFIG"})}, "b runs CONFIG already"),
    ({"pauses": range(1, 14)}, "13 pauses with 1 numbers at once: no more than 12 combinations are tried"),
    ({"pauses": range(1, 5), "at_once": [1, 2, 3, 4]}, "4 pauses with 4 numbers at once: no more than 12 combinations are tried"),
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


def test_a_large_group_is_searched_in_part_and_the_plan_says_so() -> None:
    """One step is a restart of a consumer, after which each of 12 rebalances: the bound counts steps, not seconds."""
    step = 4 * 12
    whole = rolled(IDS, pauses=(10, 60))
    assert "searched-in-part" not in codes(whole)
    assert {(each.restarts, each.trials) for each in whole.choices} == {(12, 3)}
    assert (len(whole.choices), whole.choices_in_all) == (4, 4)
    for most, expected in (
        (4 * 12 * 2 * step, (4, 2, 12)),  # fewer trials first
        (4 * 5 * 2 * step, (4, 2, 5)),  # then fewer restarts
        (3 * 2 * step, (3, 2, 1)),  # then fewer choices
        (1, (1, 2, 1)),  # one is always tried
    ):
        plan = rolled(IDS, pauses=(10, 60), most_rebalances=most)
        assert rolled(IDS, pauses=(10, 60), most_rebalances=most) == plan
        (first, *_) = plan.choices
        assert (len(plan.choices), first.trials, first.restarts) == expected
        choices, trials_, restarts = expected
        assert message(plan, "searched-in-part").startswith(
            f"searched {choices} of 4 orders and pauses, in {trials_} of 3 trials each, with {restarts} of 12 restarts"
        )
        assert (len(first.order), first.takes_ms is not None) == (12, True)
        shown = rollout_report(plan)
        assert (f"(in {restarts} of 12 restarts)" in shown.facts[0]) is (restarts < 12)
