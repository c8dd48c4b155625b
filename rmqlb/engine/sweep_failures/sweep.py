"""Every failure, single and in pairs, tried on every group and topic: the answer of `sweep-failures`."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import date
from math import comb
from typing import Any

from msgspec import Struct

from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.assignment.consumers import is_orderly
from rmqlb.engine.check import judgement, waive
from rmqlb.engine.conditions import Condition, Figures, declared
from rmqlb.engine.group import Given, Group, assumption, gaps
from rmqlb.engine.kernel import in_processes
from rmqlb.engine.rebalance.reported_clients import consumer_types
from rmqlb.engine.sweep_failures.cases import (
    MOST_STEPS,
    AnySubject,
    Cases,
    Effect,
    GroupSubject,
    TopicSubject,
    by_thing,
    count_cases,
    judge,
    losses_of,
    touching,
)
from rmqlb.engine.sweep_failures.failures import Cluster, Failure, ZoneRule, cluster_of
from rmqlb.errors import DataError, RmqlbError, UsageError
from rmqlb.model.check_result import FAILED, WaivedLimit
from rmqlb.model.condition import TriedCondition
from rmqlb.model.figures import figures_of
from rmqlb.model.finding import INFO, SEVERITIES, Finding
from rmqlb.model.policy import GROUP, TOPIC, About, Bound, Limit, Policy, Rule
from rmqlb.model.progress import Progress, no_progress
from rmqlb.model.snapshot import ClusterSnapshot, suggestion
from rmqlb.model.sweep_failures import (
    LOSS_KINDS,
    SILENT,
    BrokenAlready,
    CaseCounts,
    Counterexample,
    FailureSweep,
    GroupOutcome,
    GroupWorst,
    Loss,
    LossKind,
    TopicOutcome,
    TopicWorst,
    Unjudged,
    Worst,
)

MOST_PAIRS = 5_000_000
"""Pairs of failures of one group or topic; more take minutes and gigabytes."""
_STOPS_MESSAGES = ("writableBrokers", "unassigned", "withoutLock", "minConsumers", "duplicateOwners", "minBrokers")
"""Limits that stop messages when they are broken, the gravest first; others measure balance or time."""
_GAP_TRIALS = 3

Judged = tuple[AnySubject, Cases]


class SweepRequest(Struct, frozen=True):
    groups: Sequence[str]
    topics: Sequence[str]
    only_topics: Sequence[str] = ()  # groups are swept on these alone; () is all of their own
    kinds: Sequence[LossKind] = LOSS_KINDS
    zones: Sequence[ZoneRule] = ()
    in_part: bool = False  # groups and topics are some of the cluster's, so that a zone may have nothing of them
    at_once: int = 2  # how many losses come together at most, 1 or 2
    orderly: Collection[str] = ()  # groups that consume in order, whether they report it or not
    most_steps: int = MOST_STEPS  # of the work for the pairs of losses of each group
    jobs: int = 1  # processes among which groups are divided
    commands: Commands | None = None  # None where no command can read the source


def sweep_snapshot(
    snapshot: ClusterSnapshot,
    policy: Policy,
    request: SweepRequest,
    today: date,  # for waivers
    *,
    settings: Settings | None = None,
    progress: Progress = no_progress,
) -> tuple[FailureSweep, tuple[Finding, ...]]:
    """Try every loss on groups and topics of a snapshot.

    Raises:
        UsageError: a zone is empty, and groups and topics are not some of the cluster's, or all zones are; or there are
            too many cases.
    """
    subjects, unjudged = _subjects(snapshot, policy, request, settings or Settings())
    groups = [each for each in subjects if isinstance(each, GroupSubject)]
    routes = [route for group in groups if group.has_brokers for route in group.routes]
    routes += [each.sighting.route for each in subjects if isinstance(each, TopicSubject)]
    cluster = cluster_of([group.client_ids for group in groups], routes, request.zones)
    findings = list(_zone_findings(cluster, request))
    failures = cluster.failures(request.kinds)
    judged = list(_judged(subjects, failures, policy, request, unjudged, progress))
    counts = count_cases(len(failures), [cases for _, cases in judged], request.at_once)
    found = [one for each in judged for one in _counterexamples(each, failures, request)]
    kept = _not_waived(found, policy, today)
    for group in groups:
        for topic in group.static_topics[:1]:
            why = f"topic {topic} is a static topic, whose queues do not follow brokers"
            unjudged.append(Unjudged(GROUP, group.name, None, f"{why}: only losses of its consumers were tried"))
    for subject, cases in judged:
        unjudged += [
            Unjudged(subject.about, subject.name, cases.limits[at][1].name, why) for at, why in cases.unknown.items()
        ]
        if cases.untried:
            tried, untried = len(cases.classes), len(cases.untried)
            text = (
                f"group {subject.name}: searched {tried:,} of {tried + untried:,} different cases: all single "
                "losses, and the pairs that take most brokers first; a pair that was not tried may break a limit"
            )
            findings.append(Finding("searched-in-part", text, subject.name))
    if outside := cluster.outside_zones(failures):
        text = f"in no zone: {outside}; they are lost with their host, not with a zone"
        findings.append(Finding("in-no-zone", text, severity=INFO))
    worst = [_worst(each, failures, counts, request.at_once) for each in judged]
    result = FailureSweep(
        policy=policy.where,
        at_once=request.at_once,
        cases=counts,
        losses=tuple(failure.parts for failure in failures),
        counterexamples=tuple(sorted(kept, key=_badness)),
        waived=len(found) - len(kept),
        broken_already=tuple(
            BrokenAlready(**_broken_limit(each, at, value)) for each in judged for at, value in each[1].already.items()
        ),
        groups=tuple(sorted((one for one in worst if isinstance(one, GroupWorst)), key=_group_badness)),
        topics=tuple(
            sorted(
                (one for one in worst if isinstance(one, TopicWorst)),
                key=lambda one: (-one.broken, one.least_writable.value, one.topic),
            )
        ),
        unjudged=tuple(unjudged),
    )
    return result, tuple(findings)


def _subjects(
    snapshot: ClusterSnapshot, policy: Policy, request: SweepRequest, settings: Settings
) -> tuple[list[AnySubject], list[Unjudged]]:
    missing, found, unjudged = gaps(snapshot), list[AnySubject](), list[Unjudged]()
    for name in request.groups:
        assume = next((rule.assume for rule in _rules_for(policy, GROUP, name) if rule.assume is not None), None)
        try:
            if assume is None and name in snapshot.groups:
                assume = assumption(snapshot, name).assume
            group = Group(snapshot, name, settings, Given(assume=assume), missing)
            if request.only_topics:
                topics = tuple(topic for topic in group.topics if topic in request.only_topics)
                group = Group(snapshot, name, settings, Given(assume=assume, topics=topics), missing)
            if group.apart is not None:
                raise DataError(group.apart)
            orderly = True if name in request.orderly else is_orderly(group.group)
            found.append(GroupSubject(group, orderly=orderly))
        except RmqlbError as error:
            unjudged.append(Unjudged(GROUP, name, None, error.message))
    for name in request.topics:
        try:
            if name not in snapshot.routes:
                raise DataError(f"its route could not be read: {missing.topics[name]}")
            found.append(TopicSubject(snapshot.routes[name]))
        except RmqlbError as error:
            unjudged.append(Unjudged(TOPIC, name, None, error.message))
    return found, unjudged


def _rules_for(policy: Policy, about: About, name: str) -> list[Rule]:
    return [rule for rule in policy.rules if rule.about == about and rule.takes(name)]


def _zone_findings(cluster: Cluster, request: SweepRequest) -> Iterator[Finding]:
    """The empty zones (raises UsageError where none may be empty)."""
    empty = cluster.empty_zones()
    if not empty or not (cluster.processes or cluster.addresses):
        return
    if not request.in_part or len(empty) == len({rule.zone for rule in request.zones}):
        zone, why = next(iter(empty.items()))
        raise UsageError(
            f"zone {zone}: {why}",
            hint="write GLOB=ZONE or 10.1.0.0/16=ZONE; of several patterns the first that matches counts",
            code="unknown-zone",
        )
    for zone, why in empty.items():
        text = f"zone {zone} has nothing of the groups and topics looked at: {why}"
        yield Finding("empty-zone", text, severity=INFO)


def _judged(
    subjects: Sequence[AnySubject],
    failures: Sequence[Failure],
    policy: Policy,
    request: SweepRequest,
    unjudged: list[Unjudged],
    progress: Progress,
) -> Iterator[Judged]:
    takers = by_thing(failures)
    for subject in subjects:
        number = len(touching(subject, takers))
        if request.at_once > 1 and comb(number, 2) > MOST_PAIRS:
            raise UsageError(
                f"{subject.about} {subject.name}: {number} losses take something of it, and at most {MOST_PAIRS} pairs "
                "are tried",
                hint="try single losses with --at-once 1, or fewer kinds with --lose",
                code="too-many-cases",
            )
    # other processes do not write to the terminal
    within = progress if min(request.jobs, len(subjects)) < 2 else no_progress

    def judge_one(at: int) -> Cases | str:
        """The cases of a group or topic, or why they cannot be judged; perhaps in another process."""
        subject = subjects[at]
        rules = _rules_for(policy, subject.about, subject.name)
        try:
            return judge(subject, rules, takers, request.at_once, within, request.most_steps)
        except RmqlbError as error:
            return error.message

    progress("groups and topics", 0, len(subjects))
    for done, cases in enumerate(in_processes(judge_one, range(len(subjects)), request.jobs)):
        progress("groups and topics", done, len(subjects))
        subject = subjects[done]
        if isinstance(cases, str):
            unjudged.append(Unjudged(subject.about, subject.name, None, cases))
        else:
            subject.outcomes = dict(cases.outcomes)
            yield subject, cases


def _broken_limit(judged: Judged, at: int, value: Bound) -> dict[str, Any]:
    subject, cases = judged
    rule, limit = cases.limits[at]
    return {
        "rule": rule.name,
        "severity": rule.severity,
        "about": subject.about,
        "name": subject.name,
        "limit": limit.name,
        "bound": limit.bound,
        "value": value,
    }


def _counterexamples(judged: Judged, failures: Sequence[Failure], request: SweepRequest) -> Iterator[Counterexample]:
    """The smallest failures that break a limit of a group or topic.

    As many losses of the same kinds that break the same limit with the same value are one, shown by the case with the
    most moves.
    """
    subject, cases = judged
    commands, topics = request.commands, request.only_topics
    for at in range(len(cases.limits)):
        similar: dict[tuple[tuple[LossKind, ...], Bound], list[int]] = {}
        for mask in cases.smallest(at):
            kinds = tuple(loss.kind for loss in losses_of(cases.classes[mask].first, failures))
            similar.setdefault((kinds, cases.broken[mask][at]), []).append(mask)
        for (_, value), masks in similar.items():
            mask = max(masks, key=lambda each: getattr(subject.outcome(subject.effect(each)), "moved", 0))
            effect, first = subject.effect(mask), cases.classes[mask].first
            outcome, case = subject.outcome(effect), [failures[number] for number in first]
            yield Counterexample(
                **_broken_limit(judged, at, value),
                losses=losses_of(first, failures),
                cases=sum(cases.classes[each].fewest for each in masks),
                group=outcome if isinstance(outcome, GroupOutcome) else None,
                topic=outcome if isinstance(outcome, TopicOutcome) else None,
                command=None if commands is None else commands.in_full(subject, effect, case, topics),
                gap_command=None if commands is None else commands.gap(subject, effect, case, topics),
            )


def _not_waived(found: Sequence[Counterexample], policy: Policy, today: date) -> list[Counterexample]:
    rules = {rule.name: rule for rule in policy.rules}
    failed = [judgement(rules[one.rule], one.name, Limit(one.limit, one.bound), FAILED, one.value) for one in found]
    judged, _ = waive(failed, policy.waivers, today)
    return [one for one, limit in zip(found, judged, strict=True) if not isinstance(limit, WaivedLimit)]


def _badness(one: Counterexample) -> tuple[object, ...]:
    """Sorts the worst first: by severity, by what stops messages, by fewer losses, by how far beyond the limit."""
    grave = _STOPS_MESSAGES.index(one.limit) if one.limit in _STOPS_MESSAGES else len(_STOPS_MESSAGES)
    beyond = float(len(one.value)) if isinstance(one.value, tuple) else 0.0
    if isinstance(one.value, int | float) and isinstance(one.bound, int | float):
        beyond = abs(one.value - one.bound)
    losses = [(loss.kind, loss.name) for loss in one.losses]
    return SEVERITIES.index(one.severity), grave, len(one.losses), -beyond, one.name, losses


def _group_badness(worst: GroupWorst) -> tuple[object, ...]:
    """Sorts the worst group first: by cases that break a limit, then by unassigned queues and imbalance."""
    figures = (worst.unassigned, worst.imbalance)
    return -worst.broken, *(0 if each is None else -each.value for each in figures), worst.group


def _worst(judged: Judged, failures: Sequence[Failure], counts: CaseCounts, at_once: int) -> GroupWorst | TopicWorst:
    subject, cases = judged
    fewest_first = sorted(cases.classes.items(), key=lambda item: len(item[1].first))
    outcomes: list[tuple[Any, tuple[Loss, ...]]] = [(subject.outcome(Effect()), ())]
    outcomes += [(subject.outcome(subject.effect(mask)), losses_of(one.first, failures)) for mask, one in fewest_first]
    number = cases.count(counts.singles, at_once)
    broken = cases.count_with(cases.broken, counts.singles, at_once)
    if isinstance(subject, TopicSubject):
        least, losses = min(outcomes, key=lambda item: item[0].writable_brokers)
        unwritable = [mask for mask, _ in fewest_first if not subject.outcome(subject.effect(mask)).writable_queues]
        return TopicWorst(
            topic=subject.name,
            writable_brokers=outcomes[0][0].writable_brokers,
            cases=number,
            unwritable=cases.count_with(unwritable, counts.singles, at_once),
            broken=broken,
            least_writable=Worst(least.writable_brokers, losses),
        )
    return GroupWorst(
        group=subject.name,
        strategy=subject.members.name,
        basis="assumed" if subject.basis == "assumed" else "predicted",
        consumers=outcomes[0][0].consumers,
        queues=outcomes[0][0].queues,
        cases=number,
        computed=len(subject.outcomes) - 1,
        broken=broken,
        unassigned=_largest("unassigned", outcomes),
        imbalance=_largest("imbalance", outcomes),
        idle=_largest("idle", outcomes),
        moved=_largest("moved", outcomes),
        lag_moved=_largest("lag_moved", outcomes),
        without_lock=_largest("without_lock", outcomes),
    )


def _largest(figure: str, outcomes: Sequence[tuple[Any, tuple[Loss, ...]]]) -> Worst | None:
    """The first of the largest; None where the figure is unknown in some case."""
    values = [(getattr(outcome, figure), losses) for outcome, losses in outcomes]
    if figure == "imbalance":
        values = [(value or 0, losses) for value, losses in values]  # without queues or consumers there is none
    if any(value is None for value, _ in values):
        return None
    return Worst(*max(values, key=lambda item: item[0]))


class Commands(Struct, frozen=True):
    """Commands that show a case on the same source, to copy into a shell."""

    source: Sequence[str]  # options that name the source and say how to read it, as words
    more: Sequence[str] = ()  # options of strategies

    def in_full(
        self, subject: AnySubject, effect: Effect, case: Iterable[Failure], topics: Sequence[str]
    ) -> str | None:
        """plan-rebalance for a group, simulate-send for a topic; None where no command line can name what is lost."""
        if isinstance(subject, TopicSubject):
            silent = _silent(case)
            lost = [name for name in subject.queues if name in effect.brokers or name in effect.masters]
            fails = [f"{name}:{'timeout' if name in silent else 'refused'}" for name in lost]
            words = ["rmqlb", "simulate-send", *self.source, "-t", subject.name, *_each("--fail", fails)]
            return shlex.join(words) if fails else None
        ids = [subject.client_ids[place] for place in effect.places]
        if any(re.fullmatch(r"[+-]?\d+", client_id) for client_id in ids):
            return None  # plan-rebalance reads it as a number of consumers
        changes = [
            *_each("--remove", ids),
            *_each("--remove-broker", effect.brokers),
            *_each("--remove-master", effect.masters),
        ]
        return self._for_group("plan-rebalance", subject, changes, topics)

    def gap(self, subject: AnySubject, effect: Effect, case: Iterable[Failure], topics: Sequence[str]) -> str | None:
        """simulate-rebalance for a group whose queues have no owner until its consumers have rebalanced.

        A process that ends closes its connections; all that runs on a lost host or in a lost zone falls silent.
        """
        if isinstance(subject, TopicSubject) or not _has_gaps(subject, effect):
            return None
        ids = [subject.client_ids[place] for place in effect.places]
        if any("," in name for name in (*ids, *effect.brokers, *effect.masters)):
            return None  # a comma ends the name in an event
        silent = _silent(case)
        events = [f"{'host-loss' if name in silent else 'crash'} {name}@0s" for name in ids]
        down = [(name, ", with slaves") for name in effect.brokers] + [(name, "") for name in effect.masters]
        events += [f"broker-{'loss' if name in silent else 'down'} {name}@0s{slaves}" for name, slaves in down]
        orderly = ["--orderly"] if subject.orderly else []
        changes = [*_each("--event", events), "--trials", str(_GAP_TRIALS), *orderly]
        return self._for_group("simulate-rebalance", subject, changes, topics)

    def _for_group(self, command: str, subject: GroupSubject, changes: Sequence[str], topics: Sequence[str]) -> str:
        strategy = ["--strategy", subject.members.group_strategy] if subject.basis == "assumed" else []
        own = {route.topic for route in subject.routes}
        on = _each("-t", [topic for topic in topics if topic in own])
        return shlex.join(["rmqlb", command, *self.source, "-g", subject.name, *strategy, *changes, *on, *self.more])


def _has_gaps(subject: GroupSubject, effect: Effect) -> bool:
    """Consumers are left, every queue gets an owner, and simulate-rebalance can read what is lost."""
    outcome = subject.outcome(effect)
    if not outcome.consumers or not outcome.queues or outcome.unassigned:
        return False
    kind, kinds, _ = consumer_types(subject.group.group)
    known = {broker.broker_name for route in subject.routes for broker in route.broker_datas}
    return known.issuperset(effect.brokers) and (not subject.orderly or {kind, *kinds.values()} == {"push"})


def _silent(case: Iterable[Failure]) -> set[str]:
    return {name for each in case if each.loss.kind in SILENT for name, _ in (*each.processes, *each.addresses)}


def _each(option: str, values: Sequence[str]) -> Iterator[str]:
    for value in values:
        if value.startswith("-"):
            yield f"{option}={value}"
        else:
            yield from (option, value)


_CASE_FIGURES = ("counterexamples", "broken-cases", "broken-singles", "broken-already", "unwritable-topics")
_GROUP_FIGURES = declared(GroupWorst)
SWEEP_FIGURES = Figures(
    (*_CASE_FIGURES, *_GROUP_FIGURES.names),
    of_subject=_GROUP_FIGURES.names,
    shares=("broken-cases", "broken-singles", "unwritable-topics", *_GROUP_FIGURES.shares),
)
"""The figures of `--fail-on`: of all cases, and the worst of all groups or of the one named."""


def try_on_sweep(condition: Condition, sweep: FailureSweep) -> TriedCondition:
    """Whether the condition is met in the worst case."""
    if condition.name in _CASE_FIGURES:
        unwritable, cases = sum(each.unwritable > 0 for each in sweep.topics), sweep.cases
        value, whole = {
            "counterexamples": (len(sweep.counterexamples), None),
            "broken-cases": (cases.broken, cases.all),
            "broken-singles": (cases.broken_singles, cases.singles),
            "broken-already": (len(sweep.broken_already), None),
            "unwritable-topics": (unwritable, len(sweep.topics)),
        }[condition.name]
        return condition.try_on(value, whole)
    groups = [each for each in sweep.groups if condition.subject in (None, each.group)]
    if condition.subject is not None and not groups:
        raise UsageError(
            f"--fail-on {condition.text!r}: {condition.subject} is not among the groups looked at",
            hint=suggestion("groups", condition.subject, [each.group for each in sweep.groups]),
        )
    field, _ = figures_of(GroupWorst)[condition.name]
    found = [(getattr(each, field), each.queues) for each in groups]
    tried = [condition.try_on(worst.value, whole) for worst, whole in found if worst is not None]
    met = [each for each in tried if each.met]
    if not met and len(tried) < len(found):
        return condition.try_on(None)
    return max(met or tried, key=lambda each: each.value or 0, default=condition.try_on(0, 1))
