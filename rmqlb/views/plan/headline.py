"""The first lines of a plan: what becomes of the group, the worst first, so that no change looks calmer than it is."""

from __future__ import annotations

from collections.abc import Iterator

from rmqlb.model.finding import ERROR, WARNING
from rmqlb.model.plan import SAME, MovedRange, RebalancePlan, Summary
from rmqlb.model.sdk_use import sdks_text
from rmqlb.model.words import all_or_some, counted, messages, of_all
from rmqlb.views.report import BETWEEN, about


def headline(plan: RebalancePlan) -> str:
    """The group, its consumers before and after, and the verdict."""
    s = plan.summary
    before, after = s.before.consumers, s.after.consumers
    consumers = counted(after, "consumer") if before == after else f"{before} → {counted(after, 'consumer')}"
    told = verdict(s, broadcasting=plan.broadcasting)
    if not s.before.queues and not s.after.queues:
        told = "its topics have no readable queue, so there is nothing to plan"
    return f"{plan.group or 'a group'}, {consumers}: {told}"


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
        yield f"{of_all(s.duplicate_owners, s.after.queues)} {verb} duplicate owners"
    if number := s.after.queues_of_duplicate_client_ids:
        verb = "is" if number == 1 else "are"
        yield f"{of_all(number, s.after.queues)} {verb} read by several processes of one client ID"
    if s.removed:
        verb = "is" if s.removed == 1 else "are"
        left = f" with {messages(s.lag_removed, 'unread ')}" if s.lag_removed else ""
        yield f"{of_all(s.removed, s.before.queues)} {verb} removed{left}"


def _unassigned(s: Summary) -> str:
    number, queues = s.unassigned, s.after.queues
    whole = all_or_some(number, queues)
    before = s.before.unassigned
    verb = ("becomes" if number == 1 else "become") if not before else ("is" if number == 1 else "are")
    was = f" ({before} before the change)" if before else ""
    left = f", {messages(s.lag_unassigned)} left waiting" if s.lag_unassigned else ""
    return f"{whole} {verb} unassigned{was}{left}"


def moves(moved: int, over_places: MovedRange | None, kept: int) -> str:
    """How many queues move to another consumer; of ids that are not known yet, over all of their orders."""
    if over_places is None:
        return f"{_moving(str(moved), kept)} with placeholder client IDs, which other IDs change"
    if over_places.fewest == over_places.most:
        text = _moving(str(moved), kept)
        return text if over_places.complete else f"about {text} (not every order of the new client IDs was tried)"
    number = f"{over_places.fewest} to {over_places.most}"
    if over_places.complete:
        return f"{_moving(number, kept)}, depending on how the new client IDs sort"
    return f"about {_moving(number, kept)}, depending on how the new client IDs sort (not every order was tried)"


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
    yield f"observed owners of {of_all(seen.mismatches, seen.queues)} differ from the prediction before the change{so}"


def grave(plan: RebalancePlan) -> str:
    """How grave the plan is: red where queues are left without one owner, green where nothing changes."""
    s = plan.summary
    seen = s.observed
    if s.unassigned or s.duplicate_owners or s.after.queues_of_duplicate_client_ids:
        return ERROR
    if s.lag_removed or (seen is not None and seen.mismatches):
        return WARNING
    return "inOrder" if all(move.change == SAME for move in plan.moves) else ""


def facts(plan: RebalancePlan, *, explained: bool = False) -> tuple[str, ...]:
    """The first lines: what becomes of the group, then what shows how good that is and how it is known."""
    lines = [
        list(_quality(plan)),
        list(_convergence(plan)),
        [_strategy(plan), *filter(None, [sdks_text(plan.sdks)]), _change(plan)],
    ]
    told = [headline(plan), *(f"  {BETWEEN.join(parts)}" for parts in lines if parts)]
    if explained:
        told += [f"  sorted consumers before: {_numbered(plan.sorted_consumers_before)}"]
        told += [f"  sorted consumers after: {_numbered(plan.sorted_consumers_after)}"]
    return tuple(told)


def _numbered(client_ids: tuple[str, ...]) -> str:
    return "  ".join(f"{index}={client_id}" for index, client_id in enumerate(client_ids)) or "none"


def _quality(plan: RebalancePlan) -> Iterator[str]:
    s = plan.summary
    if s.minimum_moves is not None and not plan.broadcasting and s.moved:
        yield f"a balanced plan needs at least {counted(s.minimum_moves, 'move')}"
    if not s.unassigned and s.after.queues:
        yield "nothing unassigned"
    if s.idle:
        yield f"{counted(s.idle, 'idle consumer')}{_from(s.before.idle, s.idle)}"
    if s.after.imbalance is not None:
        yield f"imbalance {imbalance_text(s)}"
    if s.writable_queues_before != s.writable_queues_after:
        yield f"writable queues {s.writable_queues_before} → {s.writable_queues_after}"
    if s.lag_moved:
        yield f"{messages(s.lag_moved)} waiting in queues that move"
    if s.observed is not None and s.observed.moved != s.moved:
        move = "moves" if s.observed.moved == 1 else "move"
        yield f"{counted(s.observed.moved, 'queue')} {move} away from the observed owner"


def _from(before: int, after: int) -> str:
    return "" if before == after else f" ({before} before)"


def imbalance_text(s: Summary) -> str:
    """The imbalance before and after, or both in one where they are the same."""
    before, after = (_two_digits(side.imbalance) for side in (s.before, s.after))
    return after if before == after else f"{before} → {after}"


def _two_digits(imbalance: float | None) -> str:
    return "unknown" if imbalance is None else f"{imbalance:.2f}"


def strategies(plan: RebalancePlan) -> str:
    """The strategy before, or of consumers that differ each one's, and the one afterwards where that is another."""
    before = plan.strategy
    if len(plan.strategies_reported) > 1:
        before = ", ".join(f"{name} ({number})" for name, number in plan.strategies_reported.items())
    return before if plan.strategy_after == plan.strategy else f"{before} → {plan.strategy_after}"


def _strategy(plan: RebalancePlan) -> str:
    consumers, told = plan.summary.before.consumers, sum(plan.strategies_reported.values())
    origin = {"observed": ", fits the observed owners", "assumed": ", assumed"}.get(plan.strategy_origin, "")
    if told:
        by = all_or_some(told, consumers, "consumer")
        origin = f", reported by {by}"
    return f"{'strategies' if len(plan.strategies_reported) > 1 else 'strategy'} {strategies(plan)}{origin}"


def _change(plan: RebalancePlan) -> str:
    return f"change: {'; '.join(plan.changes) or 'none'}"


def _convergence(plan: RebalancePlan) -> Iterator[str]:
    """How long the change takes; or what else tells that."""
    if plan.strategy_after != plan.strategy:
        yield "consumers restart one after the other to change their strategy: see plan-rollout"
    found = plan.convergence
    if found is None:
        return
    if found.convergence_ms is None:
        yield f"does not converge in any of {found.trials} simulations"
    else:
        most = found.max_convergence_ms
        worst = "not in each of" if most is None else f"max {about(most)} over"
        yield f"converges in about {about(found.convergence_ms)} ({worst} {found.trials} simulations)"
    lengths = (("gap", found.longest_gap_ms), ("overlap", found.longest_overlap_ms))
    yield from (f"longest {what} {about(ms)}" for what, ms in lengths if ms)
