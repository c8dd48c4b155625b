"""The line of a plan that tells how long the change takes."""

from __future__ import annotations

from msgspec.structs import replace

from rmqlb.engine.plan.rebalance import plan_rebalance
from rmqlb.model.plan import Convergence
from rmqlb.views.plan_rebalance import facts
from tests.support.builders import route, side
from tests.support.mismatches import every_case

ALL = Convergence(
    trials=5,
    converged=5,
    convergence_ms=1054.321,
    max_convergence_ms=1062,
    longest_gap_ms=1001,
    longest_overlap_ms=56,
    unread_ms=0,
)
SOME = replace(ALL, converged=3, max_convergence_ms=None)
NONE = replace(
    ALL, converged=0, convergence_ms=None, max_convergence_ms=None, longest_gap_ms=None, longest_overlap_ms=None
)


@every_case(
    ("found", "line"),
    [
        (ALL, "converges in about 1.1 s (max 1.1 s over 5 simulations) · longest gap 1.0 s · longest overlap 56 ms"),
        (SOME, "converges in about 1.1 s (not in each of 5 simulations) · longest gap 1.0 s · longest overlap 56 ms"),
        (NONE, "does not converge in any of 5 simulations"),
    ],
    ids=["in each", "in some", "in none"],
)
def test_a_plan_says_in_how_many_simulations_it_converges(found: Convergence, line: str) -> None:
    group = side("a b", route(x=4))
    plan = replace(plan_rebalance("g", group, group), convergence=found)
    assert facts(plan)[2] == f"  {line}"
