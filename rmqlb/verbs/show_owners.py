from collections.abc import Sequence
from typing import Unpack

from msgspec.structs import replace

from rmqlb.engine.assignment.brokers import assignment_findings, assignment_questions, compare_assignments
from rmqlb.engine.assignment.owners import owners_of_group
from rmqlb.engine.group import Group
from rmqlb.model.owners import BrokerAssignments, OwnersOfGroups, OwnersReport, owners_of_groups
from rmqlb.model.result import Finding, Meta, Progress, no_progress, with_meta
from rmqlb.verbs.selection import GroupOptions, select
from rmqlb.verbs.source import MOST_ASKED, AnySource, Reader, reader
from rmqlb.verbs.strategies import ALL, Strategies


def show_owners(
    source: AnySource,
    group: str | Sequence[str] | None = None,
    *,
    strategies: str | Sequence[str] = (),
    pop_share: int | None = None,
    explain: bool = False,
    progress: Progress = no_progress,
    **options: Unpack[GroupOptions],
) -> OwnersReport | OwnersOfGroups:
    """Show which consumer owns each queue under each strategy, next to the observed owner.

    Several groups, or a pattern, give an OwnersOfGroups.
    """
    own = Strategies(options.get("strategy_options"))
    names, has_all = own.compared(strategies or ALL)
    named = not has_all
    own.must_apply(reported=False)
    chosen, opened = select(group, **options), reader(source)
    snapshot = opened.fetch(chosen.wanted(opened))

    def owners_in(name: str | None) -> tuple[OwnersReport, tuple[Finding, ...]]:
        found = chosen.resolve(snapshot, name, own.settings_for, by_pop=pop_share is not None)
        progress(f"the owners of {found.title}", 0, 0)
        chosen.require_named(found.client_ids)
        report, findings = owners_of_group(found, names, named=named, pop_share=pop_share, explain=explain)
        answers, of_brokers = _by_brokers(found, opened)
        return replace(report, broker_assignments=answers), (*findings, *of_brokers)

    reports, findings = chosen.ask(snapshot, owners_in)
    meta = Meta(snapshot, findings)
    return with_meta(owners_of_groups(reports), meta) if chosen.several else with_meta(reports[0], meta)


def _by_brokers(group: Group, source: Reader) -> tuple[tuple[BrokerAssignments, ...], tuple[Finding, ...]]:
    if group.seen is None or group.broadcasting or group.by_proxy or not group.asks_brokers:
        return (), ()
    routes = (*group.pulled_routes, *group.popped_routes)
    questions = tuple(assignment_questions(group.seen, routes))
    answers = source.open().ask_assignments(group.seen.group, questions[:MOST_ASKED])
    if answers is None:
        return (), ()
    answered = compare_assignments(group.seen, routes, answers)
    return answered, tuple(assignment_findings(answered, len(questions)))
