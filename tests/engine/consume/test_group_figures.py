"""Conditions on a group's simulation, on many of them, and on a rollout."""

from __future__ import annotations

import pytest

from rmqlb.engine.fail_on_figures.conditions import parse_condition
from rmqlb.engine.fail_on_figures.of_simulation import (
    GROUP_FIGURES,
    ROLLOUT_FIGURES,
    try_on_group,
    try_on_group_trials,
    try_on_rollout,
)
from rmqlb.errors import UsageError
from rmqlb.model.group_report import FigureSpread, GroupFigures, GroupReport, GroupTrials
from rmqlb.model.group_scenario import GroupScenario
from rmqlb.model.rollout import Rollout, RolloutChoice


def report(settled_us: int | None = 2_500_000, again: int | None = 7, **at_end: int) -> GroupReport:
    """A simulation in which every figure is another."""
    figures = GroupFigures(
        settled_us,
        1_000_000,
        4_000_000,
        500_000,
        1_500_000,
        750_000,
        again,
        4,
        3,
        9,
        20,
        6_000_000,
        8_000_000,
        5,
        **at_end,
    )
    return GroupReport("g", "AVG", "5.5.0 and newer", GroupScenario(), (), 0, ("a",), 10_000_000, (), (), figures)


def trials(settled: int = 100, **spreads: tuple[float, float, float]) -> GroupTrials:
    """A hundred of them, with median, p95 and worst of some fields."""
    return GroupTrials(100, settled, {name: FigureSpread(*three, worst_trial=3) for name, three in spreads.items()})


def rollout(takes_us: int | None, overlap: int = 0) -> Rollout:
    """A rollout with one choice."""
    of_all = trials(longest_none_us=(1e6, 2e6, 3e6))
    choice = RolloutChoice(("a",), "sorted", 1, 30_000_000, 15_000_000, takes_us, of_all, best=True)
    return Rollout("g", "AVG", "AVG", ("a",), (choice,), (), overlap, overlap_is_least=True)


def test_the_hint_names_each_figure_once() -> None:
    with pytest.raises(UsageError) as refused:
        parse_condition("zz>0", GROUP_FIGURES)
    names = (refused.value.hint or "").removeprefix("there are the figures ").split(", ")
    assert len(names) == len(set(names)) > 5


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("settled-ms>0", 2500),
        ("longestNoneMs>0", 1000),
        ("none-ms>0", 4000),
        ("longest-several-ms>0", 500),
        ("several-ms>0", 1500),
        ("unread-ms>0", 750),
        ("again>0", 7),
        ("queues-none>0", 4),
        ("queues-several>0", 3),
        ("taken>0", 9),
        ("longest-outage-ms>0", 6000),
        ("longestOutageMs>0", 6000),
        ("total-outage-ms>0", 8000),
        ("totalOutageMs>0", 8000),
        ("queues-outage>0", 5),
    ],
)
def test_every_figure_is_in_its_unit(text: str, value: float) -> None:
    condition = parse_condition(text, GROUP_FIGURES)
    tried = try_on_group(condition, report())
    assert (tried.value, tried.met) == (value, True)


def test_a_group_that_does_not_settle_takes_longer_than_anything() -> None:
    never = report(settled_us=None)
    for text, met in (("settled-ms>999999999", True), ("settled-ms<=999999999", False), ("settled-ms=5", False)):
        tried = try_on_group(parse_condition(text, GROUP_FIGURES), never)
        assert (tried.value, tried.met) == (None, met)


@pytest.mark.parametrize(
    ("field", "names"),
    [
        ("queues_none_at_end", ["longest-none-ms", "none-ms"]),
        ("queues_several_at_end", ["longest-several-ms", "several-ms"]),
        ("queues_outage_at_end", ["longest-outage-ms", "total-outage-ms"]),
        ("queues_unread_at_end", ["unread-ms"]),
    ],
)
def test_what_is_not_over_at_the_end_lasts_longer_than_anything(field: str, names: list[str]) -> None:
    timed = [name for name in GROUP_FIGURES.names if name.endswith("-ms") and name != "settled-ms"]
    for name in timed:
        condition = parse_condition(f"{name}>999999999", GROUP_FIGURES)
        assert try_on_group(condition, report(**{field: 1})).met is (name in names)
        known = name.replace("-ms", "_us").replace("-", "_")
        of_all = GroupTrials(100, 100, {known: FigureSpread(1, 2, 3, 0), field: FigureSpread(0, 0, 1, 0)})
        assert try_on_group_trials(condition, of_all).met is (name in names)
    name = field.replace("_", "-")
    assert try_on_group(parse_condition(f"{name}=3", GROUP_FIGURES), report(**{field: 3})).met is True


def test_an_unknown_rate_leaves_the_condition_open() -> None:
    assert try_on_group(parse_condition("again>0", GROUP_FIGURES), report(again=None)).met is None
    assert try_on_group_trials(parse_condition("again>0", GROUP_FIGURES), trials()).met is None


@pytest.mark.parametrize(
    ("text", "value"),
    [("none-ms>0", 2000), ("none-ms[p95]>0", 2000), ("none-ms[median]>0", 1000), ("none-ms[worst]>0", 3000)],
)
def test_of_trials_it_is_what_95_of_100_do_not_exceed(text: str, value: float) -> None:
    tried = try_on_group_trials(parse_condition(text, GROUP_FIGURES), trials(none_us=(1e6, 2e6, 3e6)))
    assert (tried.value, tried.met) == (value, True)


def test_one_trial_that_does_not_settle_is_enough() -> None:
    of_all = trials(settled=99, settled_us=(1e6, 2e6, 3e6))
    assert try_on_group_trials(parse_condition("settled-ms>5000", GROUP_FIGURES), of_all).met is True
    of_all = trials(settled_us=(1e6, 2e6, 3e6))
    assert try_on_group_trials(parse_condition("settled-ms>5000", GROUP_FIGURES), of_all).met is False


def test_a_spread_needs_trials_and_a_name() -> None:
    with pytest.raises(UsageError, match="of many trials"):
        try_on_group(parse_condition("none-ms[p95]>0", GROUP_FIGURES), report())
    with pytest.raises(UsageError, match="what is mean"):
        try_on_group_trials(parse_condition("none-ms[mean]>0", GROUP_FIGURES), trials(none_us=(1, 2, 3)))


def test_a_rollout_is_judged_by_its_best_choice() -> None:
    def tried(text: str, takes_us: int | None) -> tuple[float | None, bool | None]:
        found = try_on_rollout(parse_condition(text, ROLLOUT_FIGURES), rollout(takes_us, overlap=4))
        return found.value, found.met

    assert tried("overlap>0", 1) == (4, True)
    assert tried("takes-ms>100", 90_000) == (90, False)
    assert tried("takes-ms>100", None) == (None, True)
    assert tried("longest-none-ms>1500", 1) == (2000, True)
    assert tried("longest-none-ms[median]>1500", 1) == (1000, False)
