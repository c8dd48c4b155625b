"""A group in the course of a rollout: who is a member, which strategy each of them runs, and what happens when."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence, Set

from msgspec import Struct
from msgspec.structs import replace

from rmqlb.engine.allocate import full_name
from rmqlb.engine.assignment.assign import Members, assign
from rmqlb.engine.rebalance.events import restarts
from rmqlb.errors import DataError, UsageError
from rmqlb.model.assignment import Assignment
from rmqlb.model.group_scenario import Event
from rmqlb.model.message_queue import sort_client_ids
from rmqlb.model.route import TopicRouteData
from rmqlb.model.snapshot import suggestion


class RolloutRequest(Struct, frozen=True, kw_only=True):
    """A rolling restart or a change of strategy that is to be planned."""

    # who is restarted; None is everybody, of a change of strategy those that do not run the new one yet
    restart: Sequence[str] | None = None
    to_strategy: str | None = None  # name of the strategy that they come back with; None for a mere restart
    becomes: Mapping[str, str] | None = None  # client id → the id afterwards, of those whose id changes
    down_us: int  # how long each is away
    pauses_us: Sequence[int]  # from one going down to the next, each to be tried
    at_once: Sequence[int] = (1,)  # how many go down together, each to be tried
    order: Sequence[str] | None = None


class RolloutModel(Struct, frozen=True):
    """What a rollout does to a group."""

    members: Members  # the group before; what is known of the ids to come is in it as well
    client_ids: tuple[str, ...]  # the members that are restarted, sorted as clients sort them
    becomes: Mapping[str, str]  # client id → the id after the restart, of those whose id changes
    to_strategy: str | None  # what they run afterwards; None leaves each its own

    @property
    def name_after(self) -> str:
        if self.to_strategy is None:
            return self.members.name
        return full_name(self.to_strategy, self.members.settings)


def rollout_model(
    members: Members, restart: Sequence[str] | None, to_strategy: str | None, becomes: Mapping[str, str] | None
) -> RolloutModel:
    """The rollout (raises DataError, UsageError); `restart` None is everybody who does not run the new strategy."""
    if not members.client_ids:
        raise DataError("the group has no consumers: there is nothing to restart")
    chosen = _chosen(members, restart, to_strategy)
    _check_shared(chosen, Counter(members.client_ids))
    changes = {old: new for old, new in (becomes or {}).items() if new != old and old in chosen}
    _check_becomes(changes, becomes or {}, members)
    return RolloutModel(_with_ids_to_come(members, changes), tuple(sort_client_ids(chosen)), changes, to_strategy)


def members_when(rollout: RolloutModel, changed: Set[str], away: Set[str] = frozenset()) -> Members:
    """The members while some are back already (`changed`, by their ids of before) and others are away."""
    ids = []
    strategy_of = dict(rollout.members.strategy_of)
    for client_id in rollout.members.client_ids:
        if client_id in away:
            continue
        if client_id not in changed:
            ids.append(client_id)
            continue
        new_id = rollout.becomes.get(client_id, client_id)
        ids.append(new_id)
        if rollout.to_strategy is not None:
            strategy_of[new_id] = rollout.to_strategy
    return replace(rollout.members, client_ids=tuple(ids), strategy_of=strategy_of)


def assigned(routes: Sequence[TopicRouteData], members: Members) -> list[Assignment]:
    """Who owns what at rest; DataError when a member's client throws; what it then keeps depends on what it had."""
    assignments = [assign(route, members) for route in routes]
    for assignment in assignments:
        for client_id, failure in assignment.failures.items():
            strategy = members.strategy_for(client_id)
            raise DataError(
                f"topic {assignment.topic}: under {strategy} the client of {client_id} throws: {failure}",
                hint="such a consumer keeps what it holds, which cannot be planned; correct its settings first",
            )
    return assignments


def badly_owned(rollout: RolloutModel, routes: Sequence[TopicRouteData], *, orderly: bool) -> int:
    """Queues with duplicate owners or none before a mere restart and after it: not the restart does that."""
    before = assigned(routes, rollout.members)
    after = assigned(routes, members_when(rollout, set(rollout.client_ids)))
    bad = (0,) if orderly else (0, 2)
    return sum(
        min(len(owners), 2) in bad and min(len(becomes.owners.get(queue, ())), 2) in bad
        for was, becomes in zip(before, after, strict=True)
        for queue, owners in was.owners.items()
    )


def events_of(
    rollout: RolloutModel, order: Sequence[str], *, at_once: int, pause_us: int, down_us: int
) -> tuple[Event, ...]:
    """The restarts in that order, one every `pause_us`; each comes back with the strategy that it is to run."""
    return restarts(
        order,
        0,
        every_us=pause_us,
        down_us=down_us,
        at_once=at_once,
        becomes=rollout.becomes,
        strategy=rollout.to_strategy,
    )


def _chosen(members: Members, restart: Sequence[str] | None, to_strategy: str | None) -> list[str]:
    present = dict.fromkeys(sort_client_ids(members.client_ids))
    named = present if restart is None else dict.fromkeys(restart)
    for client_id in named:
        if client_id not in present:
            raise UsageError(f"{client_id} is not in the group", hint=suggestion("consumers", client_id, present))
    if restart is not None and len(named) < len(restart):
        twice = next(client_id for client_id, times in Counter(restart).items() if times > 1)
        raise UsageError(f"{twice} is to restart twice", hint="name each consumer once")
    if not named:
        raise UsageError("no consumer is to restart")
    if to_strategy is None:
        return list(named)
    after = full_name(to_strategy, members.settings)
    others = [each for each in named if full_name(members.strategy_for(each), members.settings) != after]
    if not others or (restart is not None and len(others) < len(named)):
        already = next(client_id for client_id in named if client_id not in others)
        raise UsageError(f"{already} runs {after} already", hint="a mere restart is planned without a new strategy")
    return others


def _check_shared(chosen: Sequence[str], processes: Counter[str]) -> None:
    for client_id in chosen:
        if processes[client_id] > 1:
            raise DataError(
                f"{processes[client_id]} processes share the client ID {client_id}: "
                "the restart of one looks like that of another",
                hint="give each its own instanceName first, or restart only the other consumers",
            )


def _check_becomes(changes: Mapping[str, str], becomes: Mapping[str, str], members: Members) -> None:
    present = set(members.client_ids)
    for old in becomes:
        if old not in present:
            raise UsageError(f"{old} is not in the group", hint=suggestion("consumers", old, present))
    taken = Counter(changes.values())
    for old, new in changes.items():
        if not new:
            raise UsageError(f"{old} cannot come back with an empty client id")
        if new in present or taken[new] > 1:
            raise UsageError(
                f"{old} cannot come back as {new}: another consumer has that ID",
                hint="processes that share an id read the same queues; choose an id of its own",
            )


def _with_ids_to_come(members: Members, changes: Mapping[str, str]) -> Members:
    own, topics = members.strategy_of, members.subscribed
    return replace(
        members,
        strategy_of={**own, **{new: own[old] for old, new in changes.items() if old in own}},
        subscribed={**topics, **{new: topics[old] for old, new in changes.items() if old in topics}},
    )
