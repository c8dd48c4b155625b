"""`rmqlb.plan_rollout`: the order and the pause of a rolling restart, or of a change of strategy."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

from msgspec.structs import replace

from rmqlb.engine.fail_on_figures.of_simulation import ROLLOUT_FIGURES, try_on_rollout
from rmqlb.engine.plan_rollout.plan import plan_rollout as plan_of_group
from rmqlb.engine.plan_rollout.stages import RolloutRequest
from rmqlb.engine.rebalance.events import renamed_apart
from rmqlb.errors import UsageError
from rmqlb.model.finding import Finding
from rmqlb.model.limits import MOST_GROUP_TRIALS
from rmqlb.model.message_queue import sort_client_ids
from rmqlb.model.plan_rollout import Rollout
from rmqlb.model.progress import Progress, no_progress
from rmqlb.model.result import Meta, with_meta
from rmqlb.model.snapshot import suggestion
from rmqlb.verbs.amounts import count, duration_us
from rmqlb.verbs.parse import conditions, names_of, texts_of
from rmqlb.verbs.rebalance_events import NUMBER_AT_ONCE
from rmqlb.verbs.selection import select
from rmqlb.verbs.simulated_group import SimulatedGroup, SimulationArguments, simulated_group
from rmqlb.verbs.source import AnySource, Earlier, earlier, reader
from rmqlb.verbs.strategies import Strategies

_MOST_CHOICES = 12
_ALL = "all"


def plan_rollout(
    source: AnySource,
    group: str | None = None,
    *,
    topics: str | Sequence[str] = (),
    consumers: str | Sequence[str] | int | None = None,
    include_retry: bool = False,
    sdk: str | Sequence[str] | Mapping[str, str] | None = None,
    strategy: str | None = None,
    strategy_options: str | Sequence[str] = (),
    restart: str | Sequence[str] = (),
    to_strategy: str | None = None,
    down: str = "15s",
    pauses: str | Sequence[str] = ("10s", "30s", "60s"),
    at_once: int | str | Sequence[int] = 1,
    order: str | Sequence[str] | None = None,
    ids: str | None = None,
    client: str | None = None,
    orderly: bool = False,
    consumer_types: str | Sequence[str] = (),
    consume_from: str | None = None,
    timers: str | Sequence[str] = (),
    latency: str = "1ms",
    consume_time: str = "0s",
    rates: str | Sequence[str] = (),
    rates_since: AnySource | Earlier | None = None,
    trials: int | str = 20,
    seed: int = 1,
    fail_on: str | Sequence[str] = (),
    progress: Progress = no_progress,
) -> Rollout:
    """Find the order and the pause of a rolling restart, or of a change of strategy, with the least gaps and overlaps.

    Args:
        source: a URL, a file, a snapshot, a parsed document or a reader.
        group: the group; None takes the only one.
        topics: only these; () takes those that the group subscribes to.
        consumers: client IDs, or a number of invented ones, in the place of those of the source.
        include_retry: the group's retry topic too.
        sdk: the client library of all consumers, or client ID → library.
        strategy: what consumers run; None takes what they report or show, otherwise AVG.
        strategy_options: settings of strategies, as `virtual-nodes=20`.
        restart: consumers, or patterns of them, that restart; () is all.
        to_strategy: what they come back with; None is the same strategy.
        down: how long each is away.
        pauses: to try, from one going down to the next.
        at_once: to try, how many go down together.
        order: an order of all of them, to try next to others.
        ids: `new` or `same`: whether IDs of the form host@pid#time change with the restart; None is new.
        client: version of the client library; None is what consumers report, or the newest.
        orderly: a MessageListenerOrderly: queues are locked.
        consumer_types: `push`, `pull`, `lite-pull` or `assign` for all, or `ID=TYPE`; () is what the source says.
        consume_from: `last`, `first` or `timestamp`; None is what the source says.
        timers: clocks that differ from their defaults, as `rebalance-wait=10s`.
        latency: a request's way to a broker and back.
        consume_time: how long the listener takes for a message.
        rates: messages per second of each topic, as `500`, or of one, as `TOPIC=500`.
        rates_since: an earlier snapshot: each queue's rate is what came since.
        trials: simulations of each choice, from 2 on.
        seed: of everything random.
        fail_on: conditions such as `misassigned>0`, which the result's `conditions` answer.
        progress: told what is being done.

    Returns:
        The ways that were tried, the best first.

    Raises:
        UsageError: an argument cannot be meant.
        DataError: the group, its topics or consumers are not there or unknown, or the group is BROADCASTING.
        EndpointError: the source cannot be read.
    """
    conditions_asked = conditions(fail_on, ROLLOUT_FIGURES)
    together = (at_once,) if isinstance(at_once, int | str) else at_once
    strategies = Strategies(strategy_options)
    number = count(str(trials), "--trials", most=MOST_GROUP_TRIALS, least=2)
    asked = SimulationArguments(
        strategies=strategies,
        strategy=strategies.optional(strategy),
        client=client,
        orderly=orderly,
        consumer_types=texts_of(consumer_types),
        consume_from=consume_from,
        timers=texts_of(timers),
        latency=latency,
        consume_time=consume_time,
        rates=texts_of(rates),
        earlier=earlier(rates_since),
        seed=seed,
        may_join=False,
    )
    request = RolloutRequest(
        down_us=duration_us(down, "--down"),
        pauses_us=pauses_in(",".join(names_of(pauses))),
        at_once=numbers(",".join(map(str, together))),
        to_strategy=strategies.optional(to_strategy, "--to-strategy"),
        order=order_of(None if order is None else texts_of(order)),
    )
    chosen, opened = select(group, topics, consumers, sdk, include_retry=include_retry), reader(source)
    snapshot = opened.fetch(chosen.wanted(opened))
    found = simulated_group(asked, chosen, group, snapshot, opened, broadcasting_too=False)
    plan, of_plan = _planned(found, request, names_of(restart), ids, number, progress)
    tried = tuple(try_on_rollout(condition, plan) for condition in conditions_asked)
    findings = tuple(dict.fromkeys((*found.findings, *of_plan)))
    return with_meta(replace(plan, conditions=tried), Meta(snapshot, findings))


def _planned(
    found: SimulatedGroup,
    request: RolloutRequest,
    names: Sequence[str],
    ids: str | None,
    trials: int,
    progress: Progress,
) -> tuple[Rollout, tuple[Finding, ...]]:
    group = found.group
    restart = restarted(names, group.client_ids)
    becomes, of_ids = ids_afterwards(restart or group.client_ids, group.client_ids, ids)
    plan, of_plan = plan_of_group(
        group.name,
        found.members,
        group.pulled_routes,
        found.scenario,
        replace(request, restart=restart, becomes=becomes),
        trials=trials,
        states=group.states,
        progress=lambda done, total: progress("trials", done, total),
    )
    return plan, (*of_ids, *of_plan)


def pauses_in(text: str) -> tuple[int, ...]:
    """`--pause 10s,30s`, in microseconds; each once, from the shortest."""
    return tuple(sorted({duration_us(part, "--pause") for part in _parts(text, "--pause", "10s,30s,60s")}))


def numbers(text: str) -> tuple[int, ...]:
    """`--at-once 1,2`; each once, from the smallest."""
    parts = _parts(text, "--at-once", "1,2")
    for part in parts:
        if not re.fullmatch(NUMBER_AT_ONCE, part):
            raise UsageError(f"--at-once {text}: {part} is not a number of consumers", hint="write --at-once 1,2")
    return tuple(sorted({int(part) for part in parts}))


def restarted(texts: Sequence[str], client_ids: Sequence[str]) -> tuple[str, ...] | None:
    """`--restart`: the members that restart, sorted; None for all of them."""
    if not texts or (_ALL not in client_ids and _ALL in (text.lower() for text in texts)):
        return None
    found: list[str] = []
    for text in texts:
        fitting = [text] if text in client_ids else [each for each in client_ids if fnmatchcase(each, text)]
        if not fitting:
            hint = suggestion("consumers", text, client_ids)
            raise UsageError(f"--restart {text}: it is not in the group", hint=hint, code="not-in-group")
        found += fitting
    return tuple(sort_client_ids(set(found)))


def order_of(ids: Sequence[str] | None) -> tuple[str, ...] | None:
    """`--order ID,ID,…`."""
    if ids is not None and not all(ids):
        raise UsageError(f"--order {','.join(ids)}: a client id is empty", hint="write --order ID,ID,…")
    return None if ids is None else tuple(ids)


def ids_afterwards(
    members: Sequence[str], client_ids: Sequence[str], ids: str | None
) -> tuple[dict[str, str], tuple[Finding, ...]]:
    """Client id → its id after the restart, of those that change; and the findings about that."""
    if ids is not None and ids.lower() not in ("new", "same"):
        raise UsageError(f"--ids {ids}: write new or same")
    if ids is not None and ids.lower() == "same":
        return {}, ()
    changed = renamed_apart(members, client_ids)
    if ids is not None and members and not changed:
        raise UsageError(
            f"--ids {ids}: {members[0]} is an id that the application chose, and stays",
            hint="only host@pid#time changes by itself",
        )
    if ids is not None or not changed:
        return changed, ()
    old, new = next(iter(changed.items()))
    text = (
        f"a restarted process gets a new client ID, and may sort elsewhere: {old} comes back as {new}; "
        "--ids same keeps the IDs"
    )
    return changed, (Finding("new-ids", text),)


def _parts(text: str, option: str, right: str) -> list[str]:
    parts = [part.strip() for part in text.split(",")]
    if not all(parts):
        raise UsageError(f"{option} {text}: something is missing", hint=f"write {option} {right}")
    if len(parts) > _MOST_CHOICES:
        raise UsageError(f"{option}: more than {_MOST_CHOICES} to try")
    return parts
