import pytest
from msgspec.structs import replace

from rmqlb.engine.conditions import parse_condition
from rmqlb.engine.rebalance.figures import GROUP_FIGURES, ROLLOUT_FIGURES, summarise, try_on_group, try_on_rollout
from rmqlb.errors import UsageError
from rmqlb.model.plan_rollout import Rollout
from rmqlb.model.simulate_rebalance import GroupFigures, GroupTrials
from tests.support.group_builders import choice, trials
from tests.support.mismatches import every_case

FIGURES = GroupFigures(2500, 1000, 4000, 500, 1500, 6000, 8000, 750, 7, 4, 3, 5, 0, 0, 0, 0, 9, 20)
"""Every figure is another."""


def tried(text: str, found: GroupFigures | GroupTrials = FIGURES) -> tuple[float | None, bool | None]:
    answer = try_on_group(parse_condition(text, GROUP_FIGURES), found)
    return answer.value, answer.met


def test_every_figure_is_in_its_unit() -> None:
    shown = [value for value in FIGURES.__struct_fields__ if getattr(FIGURES, value)]
    for name in set(shown) - {"rebalances"}:
        first, *rest = name.split("_")
        for text in (name.replace("_", "-"), first + "".join(map(str.capitalize, rest))):
            assert tried(f"{text}>0") == (getattr(FIGURES, name), True)


@every_case(("text", "met"), [("convergence-ms>999999999", True), ("convergence-ms<=999999999", False), ("convergence-ms=5", False)])  # fmt: skip
def test_a_group_that_does_not_settle_takes_longer_than_anything(text: str, met: bool) -> None:
    assert tried(text, replace(FIGURES, convergence_ms=None)) == (None, met)


@every_case(("field", "names"), [
    ("queues_with_gap_at_end", ["longest-gap-ms", "total-gap-ms"]),
    ("queues_with_overlap_at_end", ["longest-overlap-ms", "total-overlap-ms"]),
    ("queues_with_outage_at_end", ["longest-outage-ms", "total-outage-ms"]),
    ("queues_unread_at_end", ["unread-ms"]),
])  # fmt: skip
def test_what_is_not_over_at_the_end_lasts_longer_than_anything(field: str, names: list[str]) -> None:
    for name in [each for each in GROUP_FIGURES.names if each.endswith("-ms") and each != "convergence-ms"]:
        assert tried(f"{name}>999999999", replace(FIGURES, **{field: 1}))[1] is (name in names)
        of_all = trials(100, 100, **{name.replace("-", "_"): (1, 2, 3), field: (0, 0, 1)})
        assert tried(f"{name}>999999999", of_all)[1] is (name in names)
    assert tried(f"{field.replace('_', '-')}=3", replace(FIGURES, **{field: 3}))[1] is True


def test_an_unknown_rate_leaves_the_condition_open() -> None:
    assert tried("redelivered>0", replace(FIGURES, redelivered=None))[1] is None
    assert tried("redelivered>0", trials())[1] is None


def test_of_trials_it_is_what_95_of_100_do_not_exceed() -> None:
    for spread, value in (("", 2000), ("[p95]", 2000), ("[p50]", 1000), ("[max]", 3000)):
        assert tried(f"total-gap-ms{spread}>0", trials(total_gap_ms=(1000, 2000, 3000))) == (value, True)


def test_quantiles_are_nearest_ranks() -> None:
    found = summarise([replace(FIGURES, taken=number) for number in range(1, 101)]).figures.taken
    assert (found.p50, found.p95, found.max, found.max_trial) == (50, 95, 100, 99)


def test_a_spread_needs_trials_and_a_name() -> None:
    with pytest.raises(UsageError, match="of many trials"):
        tried("total-gap-ms[p95]>0")
    with pytest.raises(UsageError, match="what is mean"):
        tried("total-gap-ms[mean]>0", trials(total_gap_ms=(1, 2, 3)))


@every_case(("text", "takes_ms", "value", "met"), [
    ("misassigned>0", 1, 4, True),
    ("takes-ms>100", 90, 90, False),
    ("takes-ms>100", None, None, True),
    ("longest-gap-ms>1500", 1, 2000, True),
    ("unread-ms>0", 90, 0, False),
    ("convergence-ms>0", None, None, None),
    ("longest-gap-ms[p50]>1500", 1, 1000, False),
])  # fmt: skip
def test_a_rollout_is_judged_by_its_best_choice(
    text: str, takes_ms: float | None, value: float | None, met: bool | None
) -> None:
    best = choice(trials(100, longest_gap_ms=(1000, 2000, 3000)), takes_ms=takes_ms, best=True)
    rollout = Rollout("g", "AVG", "AVG", ("a",), (best,), (), 4, misassigned_is_minimum=True)
    found = try_on_rollout(parse_condition(text, ROLLOUT_FIGURES), rollout)
    assert (found.value, found.met) == (value, met)
