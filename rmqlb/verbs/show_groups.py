import os
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from rmqlb.engine import show_groups as engine
from rmqlb.engine.group import all_groups, group_of, only_group
from rmqlb.engine.group_findings import group_source_findings
from rmqlb.engine.source_findings import source_findings
from rmqlb.model.diagnosis import MAX_LAG
from rmqlb.model.groups import Consumers, ConsumersOfGroups, Overview
from rmqlb.model.result import SEVERITIES, Finding, Meta, Progress, no_progress, with_meta
from rmqlb.model.snapshot import Everything, Wanted
from rmqlb.verbs.amounts import given, one_of
from rmqlb.verbs.check import policy_of
from rmqlb.verbs.diagnose import earlier_snapshots, samples_before
from rmqlb.verbs.parse import conditions, each_matches, names_of, require_lag
from rmqlb.verbs.selection import select
from rmqlb.verbs.source import AnySource, Earlier, reader
from rmqlb.verbs.strategies import reported_strategies


def show_groups(
    source: AnySource,
    groups: str | Sequence[str] = (),
    *,
    severity: str | None = None,
    max_lag: int = MAX_LAG,
    policy: str | os.PathLike[str] | Mapping[str, Any] | None = None,
    earlier: AnySource | Earlier | Sequence[AnySource | Earlier] = (),
    strategy_options: str | Sequence[str] = (),
    fail_on: str | Sequence[str] = (),
    progress: Progress = no_progress,
) -> Overview:
    """Show consumer groups in a line each, the worst first.

    A group lags with more than `max_lag` unread messages, or more than the smallest limit `lag` that a rule of `policy`
    has for it. With `earlier` snapshots, or one (raises DataError for one that is not earlier), there are drain times:
    a group also lags if its lag is never gone, or takes longer than the smallest limit `maxDrainTime` of its rules.
    """
    require_lag(max_lag)
    rules = None if policy is None else policy_of(policy)
    lowest = given(one_of, severity, "--severity", SEVERITIES)
    fail_conditions = conditions(fail_on, engine.GROUPS_FIGURES)
    strategies, names = reported_strategies(strategy_options), names_of(groups)
    before = earlier_snapshots(earlier)
    everything = Everything(groups=names, of_groups=True)
    snapshot = reader(source).fetch(Wanted(everything=everything, evidence=True))
    present = all_groups(snapshot)
    chosen = [name for name in present if everything.takes_group(name)]
    each_matches("group", names, present, chosen, snapshot.endpoint)
    settings = strategies.settings_for(list(snapshot.routes))
    past = samples_before(before, snapshot, chosen)
    whole = engine.overview(snapshot, chosen, settings, max_lag, rules, earlier=past, progress=progress)
    tried = tuple(engine.try_on_groups(condition, whole.groups) for condition in fail_conditions)
    findings = tuple(source_findings(replace(snapshot, unread=engine.unread_of_no_group(snapshot, whole.groups))))
    return with_meta(whole.at_least(lowest, tried), Meta(snapshot, findings))


def show_consumers(
    source: AnySource,
    group: str | Sequence[str] | None = None,
    *,
    max_lag: int = MAX_LAG,
    earlier: AnySource | Earlier | Sequence[AnySource | Earlier] = (),
    strategy_options: str | Sequence[str] = (),
    progress: Progress = no_progress,
) -> Consumers | ConsumersOfGroups:
    """Show a group's consumers: each running process with its address, version, queues and lag.

    Several groups, or a pattern, give a ConsumersOfGroups. Drain times need `earlier` snapshots, or one (raises
    DataError for one that is not earlier).
    """
    require_lag(max_lag)
    before = earlier_snapshots(earlier)
    chosen, strategies, opened = select(group), reported_strategies(strategy_options), reader(source)
    snapshot = opened.fetch(replace(chosen.wanted(opened), evidence=True))
    unread = engine.unread_of_groups(snapshot)

    def consumers_in(group: str | None) -> tuple[Consumers, tuple[Finding, ...]]:
        name = only_group(snapshot, group)
        resolved = group_of(snapshot, name, strategies.settings_for(list(snapshot.routes), name))
        progress(resolved.title, 0, 0)
        found = engine.consumers_of(resolved, unread.get(name, ()), max_lag, samples_before(before, snapshot, [name]))
        own = [part for each in (name, *groups) for part in unread.get(each, ())]
        others = replace(snapshot, unread=tuple(part for part in snapshot.unread if part not in own))
        return found, (*(each.brief for each in found.findings), *group_source_findings(others, resolved))

    groups = chosen.names_in(snapshot) if chosen.several else ()
    found, findings = chosen.ask(snapshot, consumers_in)
    meta = Meta(snapshot, findings)
    return with_meta(engine.consumers_of_groups(found), meta) if chosen.several else with_meta(found[0], meta)
