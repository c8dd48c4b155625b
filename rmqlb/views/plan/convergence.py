"""What lies between the two ends of a plan, as a line."""

from __future__ import annotations

from collections.abc import Iterator

from rmqlb.model.plan import RebalancePlan
from rmqlb.views.report import duration


def convergence_facts(plan: RebalancePlan) -> Iterator[str]:
    """How long the change takes, in a line; or what else tells that."""
    if plan.strategy_after != plan.strategy:
        yield "members restart one after the other to change their strategy: see plan-rollout"
    found = plan.convergence
    if found is None:
        return
    if found.convergence_ms is None:
        converged = f"not converged after the change in any of {found.trials} simulations"
    else:
        most = found.max_convergence_ms
        worst = "not in each" if most is None else f"{_time(most)} in the worst"
        converged = (
            f"converged about {_time(found.convergence_ms)} after the change, {worst} of {found.trials} simulations"
        )
    lengths = (("gap", found.longest_gap_ms), ("overlap", found.longest_overlap_ms))
    windows = ", ".join(f"longest {what} {_time(ms)}" for what, ms in lengths if ms)
    yield converged + (f"; {windows}" if windows else "")


def _time(ms: float) -> str:
    """To the millisecond from a millisecond on: more digits would promise too much."""
    return duration(round(ms) if ms >= 1 else ms)
