"""Conditions on a group's simulation, on many of them, and on a rollout."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from rmqlb.engine.conditions import parse_condition
from rmqlb.engine.rebalance.figures import (
    GROUP_FIGURES,
    ROLLOUT_FIGURES,
    try_on_group,
    try_on_rollout,
)
from rmqlb.errors import UsageError
from rmqlb.model.plan_rollout import Rollout
from rmqlb.model.simulate_rebalance import GroupFigures
from tests.support.group_builders import choice, trials
from tests.support.mismatches import every_case

FIGURES = GroupFigures(2500, 1000, 4000, 500, 1500, 6000, 8000, 750, 7, 4, 3, 5, 0, 0, 0, 0, 9, 20)
"""Every figure is another."""


def rollout(takes_ms: float | None, misassigned: int = 0) -> Rollout:
    """A rollout with one choice."""
    best = choice(trials(100, longest_gap_ms=(1000, 2000, 3000)), takes_ms=takes_ms, best=True)
    return Rollout("g", "AVG", "AVG", ("a",), (best,), (), misassigned, misassigned_is_minimum=True)


@every_case(
    ("text", "value"),
    [
        ("convergence-ms>0", 2500),
        ("longestGapMs>0", 1000),
        ("total-gap-ms>0", 4000),
        ("longest-overlap-ms>0", 500),
        ("total-overlap-ms>0", 1500),
        ("unread-ms>0", 750),
        ("redelivered>0", 7),
        ("queues-with-gap>0", 4),
        ("queues-with-overlap>0", 3),
        ("taken>0", 9),
        ("longest-outage-ms>0", 6000),
        ("longestOutageMs>0", 6000),
        ("total-outage-ms>0", 8000),
        ("totalOutageMs>0", 8000),
        ("queues-with-outage>0", 5),
    ],
)
def test_every_figure_is_in_its_unit(text: str, value: float) -> None:
    condition = parse_condition(text, GROUP_FIGURES)
    tried = try_on_group(condition, FIGURES)
    assert (tried.value, tried.met) == (value, True)


def test_a_group_that_does_not_settle_takes_longer_than_anything() -> None:
    never = replace(FIGURES, convergence_ms=None)
    for text, met in (
        ("convergence-ms>999999999", True),
        ("convergence-ms<=999999999", False),
        ("convergence-ms=5", False),
    ):
        tried = try_on_group(parse_condition(text, GROUP_FIGURES), never)
        assert (tried.value, tried.met) == (None, met)


@every_case(
    ("field", "names"),
    [
        ("queues_with_gap_at_end", ["longest-gap-ms", "total-gap-ms"]),
        ("queues_with_overlap_at_end", ["longest-overlap-ms", "total-overlap-ms"]),
        ("queues_with_outage_at_end", ["longest-outage-ms", "total-outage-ms"]),
        ("queues_unread_at_end", ["unread-ms"]),
    ],
)
def test_what_is_not_over_at_the_end_lasts_longer_than_anything(field: str, names: list[str]) -> None:
    timed = [name for name in GROUP_FIGURES.names if name.endswith("-ms") and name != "convergence-ms"]
    for name in timed:
        condition = parse_condition(f"{name}>999999999", GROUP_FIGURES)
        assert try_on_group(condition, replace(FIGURES, **{field: 1})).met is (name in names)
        of_all = trials(100, 100, **{name.replace("-", "_"): (1, 2, 3), field: (0, 0, 1)})
        assert try_on_group(condition, of_all).met is (name in names)
    name = field.replace("_", "-")
    assert try_on_group(parse_condition(f"{name}=3", GROUP_FIGURES), replace(FIGURES, **{field: 3})).met is True


def test_an_unknown_rate_leaves_the_condition_open() -> None:
    assert try_on_group(parse_condition("redelivered>0", GROUP_FIGURES), replace(FIGURES, redelivered=None)).met is None
    assert try_on_group(parse_condition("redelivered>0", GROUP_FIGURES), trials()).met is None


@every_case(
    ("text", "value"),
    [
        ("total-gap-ms>0", 2000),
        ("total-gap-ms[p95]>0", 2000),
        ("total-gap-ms[p50]>0", 1000),
        ("total-gap-ms[max]>0", 3000),
    ],
)
def test_of_trials_it_is_what_95_of_100_do_not_exceed(text: str, value: float) -> None:
    tried = try_on_group(parse_condition(text, GROUP_FIGURES), trials(total_gap_ms=(1000, 2000, 3000)))
    assert (tried.value, tried.met) == (value, True)


def test_a_spread_needs_trials_and_a_name() -> None:
    with pytest.raises(UsageError, match="of many trials"):
        try_on_group(parse_condition("total-gap-ms[p95]>0", GROUP_FIGURES), FIGURES)
    with pytest.raises(UsageError, match="what is mean"):
        try_on_group(parse_condition("total-gap-ms[mean]>0", GROUP_FIGURES), trials(total_gap_ms=(1, 2, 3)))


def test_a_rollout_is_judged_by_its_best_choice() -> None:
    def tried(text: str, takes_ms: float | None) -> tuple[float | None, bool | None]:
        found = try_on_rollout(parse_condition(text, ROLLOUT_FIGURES), rollout(takes_ms, misassigned=4))
        return found.value, found.met

    assert tried("misassigned>0", 1) == (4, True)
    assert tried("takes-ms>100", 90) == (90, False)
    assert tried("takes-ms>100", None) == (None, True)
    assert tried("longest-gap-ms>1500", 1) == (2000, True)
    assert tried("unread-ms>0", 90) == (0, False)
    assert tried("convergence-ms>0", None) == (None, None)
    assert tried("longest-gap-ms[p50]>1500", 1) == (1000, False)
