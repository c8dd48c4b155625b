"""What lies between the two ends of a plan, as a line and as data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rmqlb.model.plan import RebalancePlan, Settling
from rmqlb.views.report import duration, milliseconds_if_known

if TYPE_CHECKING:
    from rmqlb.views.shapes.plan import SettlingData


def settling_facts(plan: RebalancePlan) -> Iterator[str]:
    """How long the change takes, in a line; or what else tells that."""
    if plan.strategy_after != plan.strategy_before:
        yield "members restart one after the other to change their strategy: see plan-rollout"
    s = plan.settling
    if s is None:
        return
    if s.settled_us is None:
        settled = f"not settled after the change in any of {s.trials} simulations"
    else:
        worst = "not in each" if s.worst_settled_us is None else f"{_time(s.worst_settled_us)} in the worst"
        settled = f"settled about {_time(s.settled_us)} after the change, {worst} of {s.trials} simulations"
    lengths = ((s.longest_none_us, "without owner"), (s.longest_several_us, "with two"))
    windows = ", ".join(f"{_time(us)} {what}" for us, what in lengths if us)
    yield settled + (f"; a queue is at the worst {windows}" if windows else "")


def _time(us: int) -> str:
    """To the millisecond from a millisecond on: more digits would promise too much."""
    return duration(round(us / 1000) if us >= 1000 else us / 1000)


def settling_data(settling: Settling | None) -> SettlingData | None:
    """Its keys in JSON; None when nothing was simulated."""
    if settling is None:
        return None
    return {
        "trials": settling.trials,
        "settled": settling.settled,
        "settledMs": milliseconds_if_known(settling.settled_us),
        "worstSettledMs": milliseconds_if_known(settling.worst_settled_us),
        "longestNoneMs": milliseconds_if_known(settling.longest_none_us),
        "longestSeveralMs": milliseconds_if_known(settling.longest_several_us),
        "unreadMs": milliseconds_if_known(settling.unread_us),
    }
