"""`rmqlb.show_owners`: which consumer owns each queue under each strategy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from rmqlb.engine.allocate.rules import WITHOUT_SETTINGS
from rmqlb.engine.assignment.asked_brokers import assignment_findings, assignment_questions, compare_assignments
from rmqlb.engine.assignment.group_owners import owners_of_group
from rmqlb.engine.group import Group
from rmqlb.model.finding import Finding
from rmqlb.model.owners import BrokerAssignments, OwnersOfGroups, OwnersReport, owners_of_groups
from rmqlb.model.progress import Progress, no_progress
from rmqlb.model.result import Meta, with_meta
from rmqlb.model.snapshot import ClusterSnapshot
from rmqlb.verbs.selection import Selection, select
from rmqlb.verbs.source import MOST_ASKED, AnySource, Reader, reader
from rmqlb.verbs.strategies import Strategies


class OwnersQuestion(Struct, frozen=True):
    """What is asked about each group.

    Attributes:
        names: the strategies.
        named: the caller names them.
        strategies: the same with their settings.
        pop_share: as if topics were consumed by POP with this `popShareQueueNum`.
        explain: with the reason for each queue's owner.
    """

    names: tuple[str, ...]
    named: bool
    strategies: Strategies
    pop_share: int | None = None
    explain: bool = False


def show_owners(
    source: AnySource,
    group: str | Sequence[str] | None = None,
    *,
    topics: Sequence[str] = (),
    consumers: Sequence[str] | int | None = None,
    include_retry: bool = False,
    sdk: str | Mapping[str, str] | None = None,
    strategies: Sequence[str] = (),
    strategy_options: Sequence[str] = (),
    pop_share: int | None = None,
    explain: bool = False,
) -> OwnersReport | OwnersOfGroups:
    """Show which consumer owns each queue under each strategy, next to the observed owner.

    Args:
        source: a URL, a file, a snapshot or a reader.
        group: a group, a pattern, or several; None takes the only one.
        topics: only these; () takes those that the group subscribes to.
        consumers: client IDs, or a number of invented ones, in the place of those of the source.
        include_retry: the group's retry topic too.
        sdk: the client library of all consumers, or client ID → library.
        strategies: names, or `FILE.py:NAME`; () takes those that need no settings.
        strategy_options: settings of strategies, as `virtual-nodes=20`.
        pop_share: as if topics were consumed by POP with this `popShareQueueNum`.
        explain: with the reason for each queue's owner.

    Returns:
        The owners; of several groups, or a pattern, an OwnersOfGroups.

    Raises:
        UsageError: an argument cannot be meant.
        DataError: the group, its topics or consumers are not there or unknown.
        EndpointError: the source cannot be read.
    """
    chosen = select(group, topics, consumers, sdk, include_retry=include_retry)
    question = owners_question(strategies, strategy_options, pop_share=pop_share, explain=explain)
    return owners_of(reader(source), chosen, question)


def owners_question(
    names: Sequence[str], options: Sequence[str], *, pop_share: int | None = None, explain: bool = False
) -> OwnersQuestion:
    """The question that options or arguments ask (raises UsageError)."""
    strategies = Strategies(options)
    found = tuple(dict.fromkeys(strategies.name(name) for name in names or WITHOUT_SETTINGS))
    strategies.must_apply(reported=False)
    return OwnersQuestion(found, bool(names), strategies, pop_share, explain)


def owners_of(
    source: Reader, chosen: Selection, question: OwnersQuestion, progress: Progress = no_progress
) -> OwnersReport | OwnersOfGroups:
    """The owners of the chosen groups' queues, from one reading (raises RmqlbError)."""
    snapshot = source.fetch(chosen.wanted(source))
    reports, findings = chosen.ask(snapshot, lambda name: _owners(source, snapshot, chosen, name, question, progress))
    meta = Meta(snapshot, findings)
    return with_meta(owners_of_groups(reports), meta) if chosen.several else with_meta(reports[0], meta)


def _owners(
    source: Reader,
    snapshot: ClusterSnapshot,
    chosen: Selection,
    name: str | None,
    question: OwnersQuestion,
    progress: Progress,
) -> tuple[OwnersReport, tuple[Finding, ...]]:
    by_pop = question.pop_share is not None
    group = chosen.resolve(snapshot, name, question.strategies.settings_for, by_pop=by_pop)
    progress(f"the owners of {group.title}", 0, 0)
    chosen.require_named(group.client_ids)
    report, findings = owners_of_group(
        group, question.names, named=question.named, pop_share=question.pop_share, explain=question.explain
    )
    asked, of_brokers = _by_brokers(group, source)
    return replace(report, broker_assignments=asked), (*findings, *of_brokers)


def _by_brokers(group: Group, source: Reader) -> tuple[tuple[BrokerAssignments, ...], tuple[Finding, ...]]:
    """What brokers answer consumers that let them assign their queues, where they can be asked."""
    if group.seen is None or group.broadcasting or group.by_proxy or not group.asks_brokers:
        return (), ()
    routes = (*group.pulled_routes, *group.popped_routes)
    questions = tuple(assignment_questions(group.seen, routes))
    answers = source.ask_assignments(group.seen.group, questions[:MOST_ASKED])
    if answers is None:
        return (), ()
    asked = compare_assignments(group.seen, routes, answers)
    return asked, tuple(assignment_findings(asked, len(questions)))
