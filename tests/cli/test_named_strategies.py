"""`show-owners` with strategies that are named, of a group that runs another one."""

from __future__ import annotations

import json

from tests.support.mismatches import every_case

from .run import EXAMPLE, run

ON = ("show-owners", "-s", EXAMPLE, "-g", "audit-svc", "-o", "json")
"""The group's observed owners are those of CONSISTENT_HASH, which no consumer reports."""


def mismatches(*strategies: str) -> list[str]:
    ran = run(*ON, *(word for name in strategies for word in ("--strategy", name)))
    return [each["message"] for each in json.loads(ran.stdout)["findings"] if each["code"] == "mismatch"]


@every_case("strategies", [("AVG",), ("AVG", "AVG_BY_CIRCLE"), ("AVG_BY_CIRCLE", "AVG")])
def test_observed_owners_of_a_third_strategy_are_a_mismatch_with_the_one_that_is_closest(
    strategies: tuple[str, ...],
) -> None:
    (message,) = mismatches(*strategies)
    closest, number = ("AVG_BY_CIRCLE", 13) if len(strategies) == 2 else ("AVG", 14)
    assert message.startswith(f"observed owners of {number} of 16 queues differ from what {closest} predicts; first ")


@every_case("strategies", [("CONSISTENT_HASH",), ("AVG", "CONSISTENT_HASH"), ()])
def test_observed_owners_of_one_of_the_strategies_shown_are_no_mismatch(strategies: tuple[str, ...]) -> None:
    assert mismatches(*strategies) == []
