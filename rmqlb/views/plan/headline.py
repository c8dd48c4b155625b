"""The first lines of a plan: what becomes of the group, the worst first, so that no change looks calmer than it is."""

from __future__ import annotations

from collections.abc import Iterator

from rmqlb.model.plan import MovedRange, RebalancePlan, Summary
from rmqlb.model.words import counted, messages
from rmqlb.views.report import duration


def headline(plan: RebalancePlan) -> str:
    """The group, its consumers before and after, and the verdict."""
    s = plan.summary
    before, after = s.before.consumers, s.after.consumers
    consumers = counted(after, "consumer") if before == after else f"{before} → {counted(after, 'consumer')}"
    group = f"group {plan.group}" if plan.group else "a group"
    return f"{group}, {consumers}: {verdict(s, broadcasting=plan.broadcasting)}"


def verdict(s: Summary, *, broadcasting: bool = False) -> str:
    """What becomes of the queues, the worst first."""
    return "; ".join((*_bad(s), *_moves(s, broadcasting=broadcasting), *_observed(s)))


def _moves(s: Summary, *, broadcasting: bool) -> Iterator[str]:
    if broadcasting:  # who comes reads all, who goes leaves nothing to others
        if not s.unassigned:
            yield "BROADCASTING, so each consumer reads every queue and none moves"
        return
    if s.unassigned != s.after.queues or s.moved:
        yield moves(s.moved, s.moved_range, s.before.queues - s.removed)
    if s.newly_assigned:
        verb = "gets" if s.newly_assigned == 1 else "get"
        yield f"{counted(s.newly_assigned, 'queue')} that had no owner {verb} one"
    if s.added:
        yield f"{counted(s.added, 'queue')} {'is' if s.added == 1 else 'are'} added"


def _bad(s: Summary) -> Iterator[str]:
    if s.unassigned:
        yield _unassigned(s)
    if s.duplicate_owners:
        verb = "has" if s.duplicate_owners == 1 else "have"
        yield f"{_of(s.duplicate_owners, s.after.queues)} {verb} duplicate owners"
    if number := s.after.queues_of_duplicate_client_ids:
        verb = "is" if number == 1 else "are"
        yield f"{_of(number, s.after.queues)} {verb} read by several processes of one client ID"
    if s.removed:
        verb = "is" if s.removed == 1 else "are"
        left = f" with {messages(s.lag_removed, 'unread ')}" if s.lag_removed else ""
        yield f"{_of(s.removed, s.before.queues)} {verb} removed{left}"


def _unassigned(s: Summary) -> str:
    number, queues = s.unassigned, s.after.queues
    whole = f"all {queues} queues" if number == queues > 1 else _of(number, queues)
    before = s.before.unassigned
    verb = ("becomes" if number == 1 else "become") if not before else ("is" if number == 1 else "are")
    was = f" ({before} before the change)" if before else ""
    left = f", {messages(s.lag_unassigned)} left waiting" if s.lag_unassigned else ""
    return f"{whole} {verb} unassigned{was}{left}"


def moves(moved: int, over_places: MovedRange | None, kept: int) -> str:
    """How many queues move to another consumer; of ids that are not known yet, over all of their orders."""
    if over_places is None:
        return f"{_moving(str(moved), kept)} with placeholder client IDs, which other ids change"
    if over_places.fewest == over_places.most:
        text = _moving(str(moved), kept)
        return text if over_places.complete else f"{text}, or more or fewer, depending on how the new client ids sort"
    number = f"{over_places.fewest} to {over_places.most}"
    more = "" if over_places.complete else ", or more or fewer"
    return f"{_moving(number, kept)}{more}, depending on how the new client ids sort"


def _moving(number: str, kept: int) -> str:
    if number == "0":
        return "no queue moves" if kept else "there is no queue that could move"
    return f"{number} of {counted(kept, 'queue')} move{'s' if number == '1' else ''}"


def _observed(s: Summary) -> Iterator[str]:
    seen = s.observed
    if seen is None or not seen.mismatches:
        return
    bad = [
        f"{number} {what}"
        for number, what in ((seen.unassigned, "unassigned"), (seen.duplicate_owners, "with duplicate owners"))
        if number
    ]
    so = f", {' and '.join(bad)}" if bad else ""
    yield f"observed owners of {_of(seen.mismatches, seen.queues)} differ from the prediction before the change{so}"


def _of(number: int, queues: int) -> str:
    return f"{number} of {counted(queues, 'queue')}"


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
