"""Every loss, single and in pairs, on every group and topic: the answer of `sweep-failures`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import date
from functools import partial
from math import comb

from msgspec import Struct
from msgspec.structs import replace

from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.assignment.consumers import is_orderly
from rmqlb.engine.check.check import waive
from rmqlb.engine.group import Given, Group, assumption, gaps
from rmqlb.engine.sweep.commands import Commands
from rmqlb.engine.sweep.counting import count_cases
from rmqlb.engine.sweep.effects import Effect, Takers, takers_of
from rmqlb.engine.sweep.group_cases import GroupCases
from rmqlb.engine.sweep.in_processes import each_in_processes
from rmqlb.engine.sweep.losses import Cluster, ZoneRule, cluster_of, empty_zones, losses, without_zone
from rmqlb.engine.sweep.subject import MOST_STEPS, AnySwept, Judged, Swept, judge_cases, rules_for
from rmqlb.engine.sweep.topic_cases import TopicCases, topic_cases
from rmqlb.engine.sweep.worst import (
    already_broken,
    badness,
    counterexamples,
    group_worst,
    topic_worst,
    worst_group,
    worst_topic,
)
from rmqlb.errors import RmqlbError, UsageError
from rmqlb.model.checking import FAILED, Judgement
from rmqlb.model.finding import INFO, Finding
from rmqlb.model.policy import GROUP, TOPIC, About, Limit, Policy, Rule
from rmqlb.model.progress import Progress, no_progress
from rmqlb.model.snapshot import ClusterSnapshot
from rmqlb.model.sweep import LOSS_KINDS, Counterexample, FailureSweep, GroupOutcome, LossKind, Unjudged

MOST_COMPUTED = 5_000_000
"""Pairs of losses of one group or topic; more take minutes and gigabytes."""


class SweepRequest(Struct, frozen=True):
    """What is swept, and how.

    Attributes:
        groups: names of the groups.
        topics: names of the topics.
        only_topics: groups are looked at on these topics alone; empty is on all of their own.
        kinds: what is lost.
        zones: which names and addresses are in which zone.
        in_part: groups and topics are some of the cluster's, so that a zone may have nothing of them.
        at_once: how many losses come together at most, 1 or 2.
        orderly: groups that consume in order, whether they report it or not.
        most_steps: of the work of the pairs of losses of each group.
        jobs: processes among which groups are divided.
        commands: how commands name the source; None where there is none that a command could read.
    """

    groups: Sequence[str]
    topics: Sequence[str]
    only_topics: Sequence[str] = ()
    kinds: Sequence[LossKind] = LOSS_KINDS
    zones: Sequence[ZoneRule] = ()
    in_part: bool = False
    at_once: int = 2
    orderly: Collection[str] = ()
    most_steps: int = MOST_STEPS
    jobs: int = 1
    commands: Commands | None = None


def sweep_snapshot(
    snapshot: ClusterSnapshot,
    policy: Policy,
    request: SweepRequest,
    today: date,  # the day on which waivers are looked at
    *,
    settings: Settings | None = None,
    progress: Progress = no_progress,
) -> tuple[FailureSweep, tuple[Finding, ...]]:
    """What comes of every loss, and what is odd about that.

    Raises:
        UsageError: a zone has nothing in it, and groups and topics are not some of the cluster's, or no zone has; or
            there are too many cases.
    """
    unjudged: list[Unjudged] = []
    groups = list(_groups(snapshot, policy, request, settings or Settings(), unjudged))
    return sweep_cases(groups, list(_topics(snapshot, request, unjudged)), policy, request, today, unjudged, progress)


def sweep_cases(
    groups: Sequence[GroupCases],
    topics: Sequence[TopicCases],
    policy: Policy,
    request: SweepRequest,
    today: date,
    unjudged: list[Unjudged],  # of groups and topics that are not among these; more are added
    progress: Progress = no_progress,
) -> tuple[FailureSweep, tuple[Finding, ...]]:
    """What comes of every loss to these groups and topics (raises UsageError as `sweep_snapshot` does)."""
    cluster = cluster_of(
        [cases.members.client_ids for cases in groups],
        [
            *(route for cases in groups if cases.atoms.has_addresses for route in cases.routes),
            *(cases.route for cases in topics),
        ],
    )
    findings = list(_zones_told(cluster, request))
    taken = losses(cluster, request.kinds, request.zones)
    takers = takers_of(taken)
    of_groups = list(_groups_swept(groups, policy, takers, request, unjudged, progress))
    of_topics = list(_topics_swept(topics, policy, takers, request, unjudged, progress))
    swept: list[AnySwept] = [*of_groups, *of_topics]
    counts = count_cases(len(taken), swept, request.at_once)
    commands = None if request.commands is None else request.commands.on(request.only_topics)
    found = [each for subject in swept for each in counterexamples(subject, taken, commands)]
    kept, waived = _waived(found, policy, today)
    result = FailureSweep(
        policy=policy.where,
        at_once=request.at_once,
        cases=counts,
        losses=tuple(each.parts for each in taken),
        counterexamples=tuple(sorted(kept, key=badness)),
        waived=waived,
        broken_already=tuple(each for subject in swept for each in already_broken(subject)),
        groups=tuple(
            sorted((group_worst(each, taken, counts, request.at_once) for each in of_groups), key=worst_group)
        ),
        topics=tuple(
            sorted((topic_worst(each, taken, counts, request.at_once) for each in of_topics), key=worst_topic)
        ),
        unjudged=(*unjudged, *_unknown(swept)),
    )
    findings += _in_part(of_groups)
    if told := without_zone(taken, cluster):
        text = f"in no zone: {told}; they are lost with their host, not with a zone"
        findings.append(Finding("in-no-zone", text, severity=INFO))
    return result, tuple(findings)


def _silent(_done: int, _total: int) -> None:
    """Other processes do not write to the terminal."""


def _in_part(groups: Sequence[Swept[GroupCases]]) -> Iterator[Finding]:
    """The groups that are too large for all pairs of losses."""
    for each in groups:
        if each.judged.untried:
            tried, untried = len(each.judged.classes), len(each.judged.untried)
            text = (
                f"group {each.name}: searched {tried:,} of {tried + untried:,} different cases: all single "
                "losses, and the pairs that take most brokers first; a pair that was not tried may break a limit"
            )
            yield Finding("searched-in-part", text, each.name)


def _zones_told(cluster: Cluster, request: SweepRequest) -> Iterator[Finding]:
    """The zones without anything (raises UsageError where none may be without)."""
    empty = empty_zones(cluster, request.zones)
    if not empty or not (cluster.processes or cluster.brokers):
        return
    if not request.in_part or len(empty) == len({rule.zone for rule in request.zones}):
        zone, why = next(iter(empty.items()))
        raise UsageError(
            f"zone {zone}: {why}",
            hint="write GLOB=ZONE or 10.1.0.0/16=ZONE; of several patterns the first that matches counts",
            code="unknown-zone",
        )
    for zone, why in empty.items():
        yield Finding("empty-zone", f"zone {zone} has nothing of the groups and topics looked at: {why}", severity=INFO)


def _groups(
    snapshot: ClusterSnapshot, policy: Policy, request: SweepRequest, settings: Settings, unjudged: list[Unjudged]
) -> Iterable[GroupCases]:
    """Those whose consumers share their queues."""
    missing = gaps(snapshot)
    only = frozenset(request.only_topics)
    for name in request.groups:
        try:
            given = Given(assume=_assumed(snapshot, policy.rules, name))
            facts = Group(snapshot, name, settings, given, missing)
            if only:
                given = replace(given, topics=tuple(topic for topic in facts.topics if topic in only))
                facts = Group(snapshot, name, settings, given, missing)
            if facts.apart is not None:
                unjudged.append(Unjudged(GROUP, name, None, facts.apart))
                continue
            cases = GroupCases(facts, orderly=True if name in request.orderly else is_orderly(facts.group))
        except RmqlbError as error:
            unjudged.append(Unjudged(GROUP, name, None, error.message))
            continue
        if cases.static:
            why = f"topic {cases.static[0]} is a static topic, whose queues do not follow brokers: only losses of "
            unjudged.append(Unjudged(GROUP, name, None, f"{why}its consumers were tried"))
        yield cases


def _assumed(snapshot: ClusterSnapshot, rules: Sequence[Rule], name: str) -> str | None:
    """The strategy of consumers that report none: as the first rule for the group says, otherwise the default."""
    said = [rule.assume for rule in rules_for(rules, GROUP, name) if rule.assume is not None]
    if said or name not in snapshot.groups:
        return said[0] if said else None
    return assumption(snapshot, name).assume


def _topics(snapshot: ClusterSnapshot, request: SweepRequest, unjudged: list[Unjudged]) -> Iterable[TopicCases]:
    missing = gaps(snapshot)
    for name in request.topics:
        if name not in snapshot.routes:
            unjudged.append(Unjudged(TOPIC, name, None, f"its route could not be read: {missing.topics[name]}"))
            continue
        try:
            yield topic_cases(snapshot.routes[name])
        except RmqlbError as error:
            unjudged.append(Unjudged(TOPIC, name, None, error.message))


def _groups_swept(
    groups: Sequence[GroupCases],
    policy: Policy,
    takers: Takers,
    request: SweepRequest,
    unjudged: list[Unjudged],
    progress: Progress,
) -> Iterator[Swept[GroupCases]]:
    def one(at: int) -> tuple[Judged | str, dict[Effect, GroupOutcome]]:
        """The group's cases, or why they cannot be judged; and what was computed, perhaps in another process."""
        cases = groups[at]
        told = partial(progress, cases.name) if min(request.jobs, len(groups)) < 2 else _silent
        try:
            rules = rules_for(policy.rules, GROUP, cases.name)
            return judge_cases(cases, takers, rules, request.at_once, told, request.most_steps), cases.found
        except RmqlbError as error:
            return error.message, {}

    for cases in groups:
        _few_enough(GROUP, cases.name, len(cases.atoms.touching(takers)), request.at_once)
    progress("groups", 0, len(groups))
    for done, (judged, found) in enumerate(each_in_processes(one, len(groups), request.jobs)):
        progress("groups", done, len(groups))
        cases = groups[done]
        cases.found = found
        if isinstance(judged, str):
            unjudged.append(Unjudged(GROUP, cases.name, None, judged))
        else:
            yield Swept(GROUP, cases.name, cases, judged)


def _topics_swept(
    topics: Sequence[TopicCases],
    policy: Policy,
    takers: Takers,
    request: SweepRequest,
    unjudged: list[Unjudged],
    progress: Progress,
) -> Iterator[Swept[TopicCases]]:
    for done, cases in enumerate(topics):
        progress("topics", done, len(topics))
        name = cases.route.topic
        _few_enough(TOPIC, name, len(cases.atoms.touching(takers)), request.at_once)
        try:
            rules = rules_for(policy.rules, TOPIC, name)
            yield Swept(TOPIC, name, cases, judge_cases(cases, takers, rules, request.at_once))
        except RmqlbError as error:
            unjudged.append(Unjudged(TOPIC, name, None, error.message))


def _few_enough(about: About, name: str, touching: int, at_once: int) -> None:
    if at_once > 1 and comb(touching, 2) > MOST_COMPUTED:
        raise UsageError(
            f"{about} {name}: {touching} losses take something of it, and at most {MOST_COMPUTED} pairs are tried",
            hint="try single losses with --at-once 1, or fewer kinds with --lose",
            code="too-many-cases",
        )


def _waived(found: Sequence[Counterexample], policy: Policy, today: date) -> tuple[list[Counterexample], int]:
    """Those that no waiver lets pass, and how many others there are."""
    rules = {rule.name: rule for rule in policy.rules}
    judgements = [
        Judgement(rules[each.rule], each.name, Limit(each.limit, each.bound), FAILED, each.value) for each in found
    ]
    waived, _ = waive(judgements, policy.waivers, today)
    kept = [each for each, judged in zip(found, waived, strict=True) if judged.waiver is None]
    return kept, len(found) - len(kept)


def _unknown(swept: Sequence[AnySwept]) -> Iterable[Unjudged]:
    for subject in swept:
        for place, why in subject.judged.unknown.items():
            yield Unjudged(subject.about, subject.name, subject.judged.held[place][1].name, why)
