"""A rollout planned and shown: from the options to the exit code."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase

from msgspec.structs import replace

from rmqlb.cli.common.amounts import count, duration_us
from rmqlb.cli.common.fail_on import conditions, judge, require_known
from rmqlb.cli.common.group_simulation.inputs import RATE_HINT, Gathered, gather, scenario_of
from rmqlb.cli.common.group_simulation.options import GroupOverTimeOptions, GroupSimulationOptions
from rmqlb.cli.common.group_simulation.parse_events import NUMBER_AT_ONCE
from rmqlb.cli.common.reading import fetch, wanted_for
from rmqlb.cli.common.terminal import Terminal
from rmqlb.cli.plan_rollout.options import RolloutOptions
from rmqlb.engine.consume.events import renamed_apart
from rmqlb.engine.fail_on_figures.of_simulation import ROLLOUT_FIGURES, try_on_rollout
from rmqlb.engine.rollout.plan import plan_rollout
from rmqlb.engine.rollout.rollout_model import RolloutRequest
from rmqlb.errors import UsageError
from rmqlb.model.finding import Finding
from rmqlb.model.limits import MOST_GROUP_TRIALS
from rmqlb.model.message_queue import sort_client_ids
from rmqlb.model.rollout import PlannedRollout
from rmqlb.model.snapshot import suggestion
from rmqlb.verbs.strategies import Strategies
from rmqlb.views.rollout_view import rollout_report

_MOST_CHOICES = 12
_ALL = "all"


def run(
    options: GroupSimulationOptions,
    which: GroupOverTimeOptions,
    strategy: str | None,
    rollout: RolloutOptions,
    trials: str,
    fail_on: Sequence[str],
    terminal: Terminal,
) -> None:
    """What the command does with its options; everything that needs no source is checked before it is read."""
    asked = conditions(fail_on, ROLLOUT_FIGURES)
    request = RolloutRequest(
        down_us=duration_us(rollout.down, "--down"),
        pauses_us=pauses(rollout.pause),
        at_once=numbers(rollout.at_once),
    )
    number = count(trials, "--trials", most=MOST_GROUP_TRIALS, least=2)
    strategies = Strategies(options.strategies.strategy_option)
    request = replace(request, to_strategy=strategies.optional(rollout.to_strategy, "--to-strategy"))
    own = strategies.optional(strategy)
    scenario_of(options)
    snapshot = fetch(options.source, wanted_for(options.source, which), terminal)
    found = gather(options, which, snapshot, own, strategies, terminal, broadcasting_too=False)
    client_ids = found.on_topics.client_ids
    restart = restarted(rollout.restart or (), client_ids)
    becomes, of_ids = ids_afterwards(restart or client_ids, client_ids, rollout.ids)
    request = replace(request, restart=restart, becomes=becomes, order=order(rollout.order))
    plan = _planned(found, request, number, terminal)
    tried = [try_on_rollout(condition, plan) for condition in asked]
    require_known(tried, RATE_HINT)
    report = rollout_report(plan, conditions=tried)
    findings = tuple(dict.fromkeys((*found.findings, *of_ids, *plan.findings)))
    terminal.show(report, found.snapshot, findings)
    judge(tried, terminal)


def _planned(found: Gathered, request: RolloutRequest, trials: int, terminal: Terminal) -> PlannedRollout:
    with terminal.progress(verb="simulating") as progress:
        return plan_rollout(
            found.on_topics.name,
            found.members,
            found.on_topics.pulled_routes,
            found.scenario,
            request,
            trials=trials,
            states=found.on_topics.states,
            progress=lambda done, total: progress("trials", done, total),
        )


def pauses(text: str) -> tuple[int, ...]:
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


def order(text: str | None) -> tuple[str, ...] | None:
    """`--order ID,ID,…`."""
    if text is None:
        return None
    ids = tuple(part.strip() for part in text.split(","))
    if not all(ids):
        raise UsageError(f"--order {text}: a client id is empty", hint="write --order ID,ID,…")
    return ids


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
