"""`rmqlb.show_groups` and `rmqlb.show_consumers`: all groups in a line each, and the consumers of one."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from rmqlb.engine.fail_on_figures.conditions import Condition, parse_condition
from rmqlb.engine.fail_on_figures.of_groups import GROUPS_FIGURES, try_on_groups
from rmqlb.engine.group import all_groups, only_group, resolve_all
from rmqlb.engine.group_findings import group_source_findings
from rmqlb.engine.overview.consumers import consumers_of
from rmqlb.engine.overview.groups import overview, unread_of_groups, unread_of_no_group
from rmqlb.engine.source_findings import source_findings
from rmqlb.model.finding import Severity
from rmqlb.model.groups import Consumers, Overview
from rmqlb.model.progress import Progress, no_progress
from rmqlb.model.result import Meta, with_meta
from rmqlb.model.snapshot import Everything, Wanted
from rmqlb.verbs.globs import each_matches
from rmqlb.verbs.parse import names_of
from rmqlb.verbs.parse import severity as parse_severity
from rmqlb.verbs.selection import Selection, select
from rmqlb.verbs.source import AnySource, Reader, reader
from rmqlb.verbs.strategies import Strategies, reported_strategies


def show_groups(
    source: AnySource,
    groups: str | Sequence[str] = (),
    *,
    severity: Severity | None = None,
    strategy_options: Sequence[str] = (),
    fail_on: Sequence[str] = (),
) -> Overview:
    """Show consumer groups in a line each, the worst first.

    Args:
        source: a URL, a file, a snapshot or a reader.
        groups: names or patterns; () is every group but RocketMQ's own.
        severity: only groups with a finding at least so grave.
        strategy_options: settings of strategies, as `virtual-nodes=20`.
        fail_on: conditions such as `unassigned>0`, which the result's `conditions` answer.

    Raises:
        UsageError: an argument cannot be meant.
        DataError: a name or a pattern matches no group.
        EndpointError: the source cannot be read.
    """
    lowest = None if severity is None else parse_severity(severity, "--severity")
    asked = [parse_condition(text, GROUPS_FIGURES) for text in fail_on]
    return groups_of(reader(source), names_of(groups), reported_strategies(strategy_options), lowest, asked)


def groups_of(
    source: Reader,
    names: tuple[str, ...],
    strategies: Strategies,
    lowest: Severity | None = None,
    asked: Sequence[Condition] = (),
    progress: Progress = no_progress,
) -> Overview:
    """The groups that names and patterns choose, those included that could not be read (raises RmqlbError)."""
    everything = Everything(groups=names, of_groups=True)
    snapshot = source.fetch(Wanted(everything=everything))
    present = all_groups(snapshot)
    chosen = [name for name in present if everything.takes_group(name)]
    each_matches("group", names, present, chosen, snapshot.endpoint)
    whole = overview(snapshot, chosen, strategies.settings_for(list(snapshot.routes)), progress=progress)
    tried = tuple(try_on_groups(condition, whole.groups) for condition in asked)
    others = unread_of_no_group(snapshot, whole.groups)
    findings = tuple(source_findings(replace(snapshot, unread=others)))
    return with_meta(whole.at_least(lowest, tried), Meta(snapshot, findings))


def show_consumers(source: AnySource, group: str | None = None, *, strategy_options: Sequence[str] = ()) -> Consumers:
    """Show a group's consumers: each running process with its address, version, queues and lag.

    Args:
        source: a URL, a file, a snapshot or a reader.
        group: the group; None takes the only one.
        strategy_options: settings of strategies, as `virtual-nodes=20`.

    Raises:
        UsageError: an argument cannot be meant.
        DataError: the group is not there.
        EndpointError: the source cannot be read.
    """
    return consumers_in(reader(source), select(group), reported_strategies(strategy_options))


def consumers_in(source: Reader, chosen: Selection, strategies: Strategies) -> Consumers:
    """The consumers of the chosen group (raises RmqlbError)."""
    snapshot = source.fetch(chosen.wanted(source))
    name = only_group(snapshot, next(iter(chosen.names), None))
    (group,) = resolve_all(snapshot, [name], strategies.settings_for(list(snapshot.routes), name))
    its_unread = unread_of_groups(snapshot).get(name, ())
    found = consumers_of(group, its_unread)
    others = replace(snapshot, unread=tuple(part for part in snapshot.unread if part not in its_unread))
    of_source = group_source_findings(others, group)
    return with_meta(found, Meta(snapshot, (*(each.brief for each in found.findings), *of_source)))
