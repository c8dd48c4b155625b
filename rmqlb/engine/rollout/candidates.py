"""The orders, numbers at once and pauses in which a rollout can go on: which of them are worth a simulation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from rmqlb.engine.rollout.overlap import (
    LeastOverlap,
    Overlaps,
    added_overlap,
    least_overlap,
    mixed_stages,
    total_overlap,
)
from rmqlb.engine.rollout.restart_moves import fewest_moves
from rmqlb.engine.rollout.rollout_model import RolloutModel, RolloutRequest
from rmqlb.errors import UsageError
from rmqlb.model.rollout import MixedStage, RolloutChoice
from rmqlb.model.route import TopicRouteData

MOST_COMBINATIONS = 12  # of pauses and numbers at once; each is tried with up to five orders
ALL_AT_ONCE = "all at once"


class Candidate(Struct, frozen=True):
    """A choice before it is tried."""

    order: tuple[str, ...]  # client ids in the order in which they go down
    name: str  # how the order came about
    at_once: int
    pause_us: int  # from one going down to the next
    asked: bool = True  # it may be the best; one that was not asked for is only there to be compared with


def all_candidates(
    rollout: RolloutModel,
    routes: Sequence[TopicRouteData],
    known: Overlaps | None,  # the stages of a change of strategy; None of a mere restart
    least: Mapping[int, LeastOverlap],  # number at once → the order with the least overlap, where one was found
    request: RolloutRequest,
) -> list[Candidate]:
    """What to try.

    Orders are: sorted, reversed, the given one; of a change of strategy the one with the least overlap at rest, and
    its reverse, which has as much but swaps duplicate owners for unassigned queues; of a mere restart the one in
    which queues change owners least often, where orders differ in that. Where every choice of a change of strategy must
    pass through stages with gaps or overlaps at rest, a restart of all members at once is tried as well, to
    compare with.
    """
    number = len(rollout.client_ids)
    found = []
    for together in together_of(rollout, request.at_once):
        if together == number:
            found.append(Candidate(rollout.client_ids, "sorted" if number == 1 else ALL_AT_ONCE, number, 0))
            continue
        names: dict[tuple[str, ...], list[str]] = {}
        for name, its_order in _orders(rollout, routes, known, least.get(together), together, request.order):
            names.setdefault(its_order, []).append(name)
        found += [
            Candidate(its_order, ", ".join(its_names), together, pause_us)
            for pause_us in sorted(set(request.pauses_us))
            for its_order, its_names in names.items()
        ]
    if known is not None and all(added_overlap(known, stages_of(known, each, request.down_us)) for each in found):
        found.append(Candidate(rollout.client_ids, ALL_AT_ONCE, number, 0, asked=False))
    return found


def stages_of(known: Overlaps, choice: Candidate | RolloutChoice, down_us: int) -> tuple[MixedStage, ...]:
    """The mixed stages of a change of strategy; none when the last is down before the first is back."""
    last_down_us = (len(choice.order) - 1) // choice.at_once * choice.pause_us
    return () if last_down_us < down_us else mixed_stages(known, choice.order, choice.at_once)


def least_overlaps(rollout: RolloutModel, known: Overlaps, at_once: Sequence[int]) -> dict[int, LeastOverlap]:
    """Number at once → the order with the least overlap, where one can be looked for."""
    found = {together: least_overlap(known, together) for together in together_of(rollout, at_once)}
    return {together: least for together, least in found.items() if least is not None}


def together_of(rollout: RolloutModel, at_once: Sequence[int]) -> list[int]:
    """The numbers at once, no larger than the number of members."""
    return sorted({min(each, len(rollout.client_ids)) for each in at_once})


def check_candidates(rollout: RolloutModel, request: RolloutRequest) -> None:
    """Refuse what cannot be tried (raises UsageError)."""
    pauses_us, at_once = request.pauses_us, request.at_once
    if request.down_us < 0:
        raise UsageError("a consumer cannot be down for less than 0 s")
    if not pauses_us or min(pauses_us) <= 0:
        raise UsageError("a pause must be longer than 0 s", hint="consumers that go down together are --at-once")
    if not at_once or min(at_once) < 1:
        raise UsageError("at least one consumer goes down at once")
    if len(set(pauses_us)) * len(set(at_once)) > MOST_COMBINATIONS:
        raise UsageError(
            f"{len(set(pauses_us))} pauses with {len(set(at_once))} numbers at once: "
            f"no more than {MOST_COMBINATIONS} combinations are tried",
            hint="try fewer, then more around the best of them",
        )
    if request.order is not None:
        _check_order(rollout.client_ids, request.order)


def _check_order(client_ids: Sequence[str], order: Sequence[str]) -> None:
    named, restarting = set(order), set(client_ids)
    missing = [client_id for client_id in client_ids if client_id not in named]
    others = [client_id for client_id in order if client_id not in restarting]
    hint = f"it has to name each of the {len(client_ids)} consumers that restart once"
    if missing:
        raise UsageError(f"the order lacks {missing[0]}", hint=hint)
    if others:
        raise UsageError(f"the order names {others[0]}, which does not restart", hint=hint)
    if len(order) > len(client_ids):
        raise UsageError("the order names a consumer twice", hint=hint)


def _orders(
    rollout: RolloutModel,
    routes: Sequence[TopicRouteData],
    known: Overlaps | None,
    least: LeastOverlap | None,
    together: int,
    order: Sequence[str] | None,
) -> Iterator[tuple[str, tuple[str, ...]]]:
    yield "sorted", rollout.client_ids
    yield "reversed", rollout.client_ids[::-1]
    if order is not None:
        yield "given", tuple(order)
    if known is None and (rollout.becomes or together > 1):
        fewest = fewest_moves(rollout, routes, together)
        if fewest is not None:
            yield "fewest moves", fewest[0]
    if known is not None and least is not None:
        name = "least overlap" if least.is_least else "little overlap"
        yield name, least.order
        back = least.order[::-1]
        if total_overlap(mixed_stages(known, back, together)) == least.total:
            yield f"{name} reversed", back
