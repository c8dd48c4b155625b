import re
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from typing import Unpack

from msgspec.structs import replace

from rmqlb.engine.plan_rollout import MOST_COMBINATIONS, RolloutRequest
from rmqlb.engine.plan_rollout import plan_rollout as plan_of_group
from rmqlb.engine.rebalance.simulate import ROLLOUT_FIGURES, renamed_apart, try_on_rollout
from rmqlb.errors import DataError, UsageError
from rmqlb.model.limits import MOST_GROUP_TRIALS
from rmqlb.model.message_queue import sort_client_ids
from rmqlb.model.plan import Rollout
from rmqlb.model.result import Finding, Meta, Progress, no_progress, with_meta
from rmqlb.model.snapshot import suggestion
from rmqlb.verbs.amounts import count, duration_us
from rmqlb.verbs.parse import conditions, names_of, texts_of
from rmqlb.verbs.rebalance_events import NUMBER_AT_ONCE, new_ids_finding
from rmqlb.verbs.simulate_rebalance import Simulation, SimulationOptions
from rmqlb.verbs.source import AnySource, reader

_ALL = "all"


def plan_rollout(
    source: AnySource,
    group: str | None = None,
    *,
    restart: str | Sequence[str] = (),
    to_strategy: str | None = None,
    down: str = "15s",
    pauses: str | Sequence[str] = ("10s", "30s", "60s"),
    at_once: int | str | Sequence[int] = 1,
    order: str | Sequence[str] | None = None,
    ids: str | None = None,
    trials: int | str = 20,
    fail_on: str | Sequence[str] = (),
    progress: Progress = no_progress,
    **options: Unpack[SimulationOptions],
) -> Rollout:
    """Find the order and the pause of a rolling restart, or of a change of strategy, with the least gaps and overlaps.

    `order` lists the client IDs. The result has the tried ways, the best first. DataError is also raised for a
    BROADCASTING group.
    """
    wanted_conditions = conditions(fail_on, ROLLOUT_FIGURES)
    number = count(str(trials), "--trials", most=MOST_GROUP_TRIALS, least=2)
    parsed = Simulation(group, options, may_join=False)
    together = ",".join(map(str, (at_once,) if isinstance(at_once, int | str) else at_once))
    every = ",".join(names_of(pauses))
    request = RolloutRequest(
        down_us=duration_us(down, "--down"),
        pauses_us=_values(every, "--pause", "10s,30s,60s", lambda part: duration_us(part, "--pause")),
        at_once=_values(together, "--at-once", "1,2", lambda part: _number(part, together)),
        to_strategy=parsed.strategies.optional(to_strategy, "--to-strategy"),
        order=None if order is None else texts_of(order),
    )
    if not all(request.order or ()):
        raise UsageError(f"--order {','.join(request.order or ())}: a client ID is empty", hint="write --order ID,ID,…")
    opened = reader(source)
    parsed.rates, snapshot = parsed.rates.read(opened, parsed.chosen.wanted(opened), progress)
    found = parsed.of(parsed.chosen.only(snapshot), snapshot, opened)
    resolved = found.group
    restarting = restarted(names_of(restart), resolved.client_ids)
    becomes, of_ids = ids_afterwards(restarting or resolved.client_ids, resolved.client_ids, ids)
    plan, of_plan = plan_of_group(
        resolved.name,
        found.members,
        resolved.pulled_routes,
        found.scenario,
        replace(request, restart=restarting, becomes=becomes),
        trials=number,
        states=resolved.states,
        progress=lambda done, total: progress("trials", done, total),
    )
    tried = tuple(try_on_rollout(condition, plan) for condition in wanted_conditions)
    findings = tuple(dict.fromkeys((*found.findings, *of_ids, *of_plan)))
    return with_meta(replace(plan, conditions=tried), Meta(snapshot, findings))


def _values(text: str, option: str, right: str, read: Callable[[str], int]) -> tuple[int, ...]:
    """`10s,30s` or `1,2`; each once, from the smallest."""
    parts = [part.strip() for part in text.split(",")]
    if not all(parts):
        raise UsageError(f"{option} {text}: a value is missing", hint=f"write {option} {right}")
    if len(parts) > MOST_COMBINATIONS:
        raise UsageError(f"{option}: more than {MOST_COMBINATIONS} values")
    return tuple(sorted(set(map(read, parts))))


def _number(part: str, text: str) -> int:
    if not re.fullmatch(NUMBER_AT_ONCE, part):
        raise UsageError(f"--at-once {text}: {part} is not a number of consumers", hint="write --at-once 1,2")
    return int(part)


def restarted(texts: Sequence[str], client_ids: Sequence[str]) -> tuple[str, ...] | None:
    """`--restart`: the consumers that restart, sorted; None for all of them."""
    if not texts or (_ALL not in client_ids and _ALL in (text.lower() for text in texts)):
        return None
    found: set[str] = set()
    for text in texts:
        fitting = {text} if text in client_ids else {each for each in client_ids if fnmatchcase(each, text)}
        if not fitting:
            hint = suggestion("consumers", text, client_ids)
            raise DataError(f"--restart {text}: it is not in the group", hint=hint, code="not-in-group")
        found |= fitting
    return tuple(sort_client_ids(found))


def ids_afterwards(
    restarting: Sequence[str], client_ids: Sequence[str], ids: str | None
) -> tuple[dict[str, str], tuple[Finding, ...]]:
    """Client id → its id after the restart, of those that change; and the findings about that."""
    which = None if ids is None else ids.lower()
    if which not in (None, "new", "same"):
        raise UsageError(f"--ids {ids}: write new or same")
    changed = {} if which == "same" else renamed_apart(restarting, client_ids)
    if which == "new" and restarting and not changed:
        hint = "only IDs of the form host@pid#time change at a restart"
        raise UsageError(f"--ids {ids}: {restarting[0]} is set by the application, so a restart keeps it", hint=hint)
    findings = (new_ids_finding(changed, "--ids same keeps the IDs"),) if which is None and changed else ()
    return changed, findings
