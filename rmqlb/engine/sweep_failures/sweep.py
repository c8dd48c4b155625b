"""Every failure, single and in pairs, tried on every group and topic: the answer of `sweep-failures`."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterator, Sequence
from datetime import date
from math import comb
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.assignment.consumers import is_orderly
from rmqlb.engine.conditions import Condition, FailOn, declared
from rmqlb.engine.group import Given, Group, assumption
from rmqlb.engine.kernel import in_processes
from rmqlb.engine.rebalance.profile import consumer_types
from rmqlb.engine.sweep_failures import cases
from rmqlb.engine.sweep_failures.cases import AnySubject, Cases, GroupSubject, Lost, TopicSubject, ZoneRule
from rmqlb.errors import DataError, RmqlbError, UsageError
from rmqlb.model import sweep_failures as result
from rmqlb.model.message_queue import grouped
from rmqlb.model.policy import GROUP, TOPIC, About, Bound, Policy, Rule
from rmqlb.model.result import (
    INFO,
    SEVERITIES,
    Finding,
    Progress,
    TriedCondition,
    annotated_figures,
    figures_of,
    no_progress,
)
from rmqlb.model.snapshot import ClusterSnapshot, suggestion

MOST_PAIRS = 5_000_000  # pairs of failures of one group or topic; more take minutes and gigabytes
_STOPS_MESSAGES = ("writableBrokers", "unassigned", "withoutLock", "minConsumers", "duplicateOwners", "minBrokers")
"""Limits that stop messages when broken, the gravest first; others measure balance or time."""
_GAP_TRIALS = 3


class SweepRequest(Struct, frozen=True):
    groups: Sequence[str]
    topics: Sequence[str]
    only_topics: Sequence[str] = ()  # groups are swept on these topics only; () is all of their own
    kinds: Sequence[result.LossKind] = result.LOSS_KINDS
    zones: Sequence[ZoneRule] = ()
    in_part: bool = False  # only some groups and topics of the cluster, so a zone may be empty
    at_once: int = 2  # most simultaneous losses, 1 or 2
    orderly: Collection[str] = ()  # groups that consume in order even if they do not report it
    most_steps: int = cases.MOST_STEPS  # of the work for the pairs of losses of each group
    jobs: int = 1  # processes
    source_words: Sequence[str] = ()  # options of printed commands for the source; () where none can read it
    more_words: Sequence[str] = ()  # their options of strategies


def sweep_snapshot(
    snapshot: ClusterSnapshot,
    policy: Policy,
    request: SweepRequest,
    today: date,  # for waivers
    *,
    settings: Settings | None = None,
    progress: Progress = no_progress,
) -> tuple[result.FailureSweep, tuple[Finding, ...]]:
    """Try every loss on groups and topics of a snapshot (raises UsageError for empty zones, or too many cases)."""
    subjects, unjudged = _subjects(snapshot, policy, request, settings or Settings())
    groups = [each for each in subjects if isinstance(each, GroupSubject)]
    routes = [route for group in groups if group.has_brokers for route in group.routes]
    routes += [each.sighting.route for each in subjects if isinstance(each, TopicSubject)]
    cluster = cases.cluster_of([group.client_ids for group in groups], routes, request.zones)
    findings, failures = list(_zone_findings(cluster, request)), cluster.failures(request.kinds)
    pairs = _judged(subjects, failures, policy, request, unjudged, progress)
    judged = [Judged(subject, found, failures) for subject, found in pairs]
    counts = cases.count_cases(len(failures), [each.cases for each in judged], request.at_once)
    found = [one for each in judged for one in each.counterexamples(request)]
    valid = [waiver for waiver in policy.waivers if waiver.until >= today]
    kept = [one for one in found if not any(w.fits(one.rule, one.about, one.name, one.limit) for w in valid)]
    for group in groups:
        for topic in group.static_topics[:1]:
            why = f"topic {topic} is a static topic, whose queues do not follow brokers"
            unjudged.append(result.Unjudged(GROUP, group.name, None, f"{why}: only losses of consumers were tried"))
    for each in judged:
        subject, own = each.subject, each.cases
        for at, why in own.unknown.items():
            unjudged.append(result.Unjudged(subject.about, subject.name, own.limits[at][1].name, why))
        if own.untried:
            tried, untried = len(own.classes), len(own.untried)
            text = f"group {subject.name}: searched {tried:,} of {tried + untried:,} different cases: all single losses"
            more = "and the pairs with the most brokers; an untried pair may break a limit"
            findings.append(Finding("searched-in-part", f"{text}, {more}", subject.name))
    if outside := cluster.outside_zones(failures):
        text = f"in no zone: {outside}; they fail with their host, not with a zone"
        findings.append(Finding("in-no-zone", text, severity=INFO))
    worst_groups = [each.worst_group(each.subject) for each in judged if isinstance(each.subject, GroupSubject)]
    worst_topics = [each.worst_topic() for each in judged if isinstance(each.subject, TopicSubject)]
    sweep = result.FailureSweep(
        policy=policy.where,
        most_losses=request.at_once,
        cases=counts,
        losses=tuple(failure.parts for failure in failures),
        counterexamples=tuple(sorted(kept, key=_badness)),
        waived=len(found) - len(kept),
        broken_already=tuple(each.limit(*broken) for each in judged for broken in each.cases.already.items()),
        groups=tuple(sorted(worst_groups, key=_group_badness)),
        topics=tuple(sorted(worst_topics, key=lambda one: (-one.broken, one.least_writable.value, one.topic))),
        unjudged=tuple(unjudged),
    )
    return sweep, tuple(findings)


def _subjects(
    snapshot: ClusterSnapshot, policy: Policy, request: SweepRequest, settings: Settings
) -> tuple[list[AnySubject], list[result.Unjudged]]:
    found, unjudged = list[AnySubject](), list[result.Unjudged]()
    for name in request.groups:
        assume = next((rule.assume for rule in _rules_for(policy, GROUP, name) if rule.assume is not None), None)
        try:
            if assume is None and name in snapshot.groups:
                assume = assumption(snapshot, name).assume
            group = Group(snapshot, name, settings, Given(assume=assume))
            if request.only_topics:
                topics = tuple(topic for topic in group.topics if topic in request.only_topics)
                group = Group(snapshot, name, settings, Given(assume=assume, topics=topics))
            if group.apart is not None:
                raise DataError(group.apart)
            found.append(GroupSubject(group, orderly=True if name in request.orderly else is_orderly(group.group)))
        except RmqlbError as error:
            unjudged.append(result.Unjudged(GROUP, name, None, error.message))
    for name in request.topics:
        try:
            if name not in snapshot.routes:
                raise DataError(f"its route could not be read: {snapshot.gaps.topics[name]}")
            found.append(TopicSubject(snapshot.routes[name]))
        except RmqlbError as error:
            unjudged.append(result.Unjudged(TOPIC, name, None, error.message))
    return found, unjudged


def _rules_for(policy: Policy, about: About, name: str) -> list[Rule]:
    return [rule for rule in policy.rules if rule.about == about and rule.takes(name)]


def _zone_findings(cluster: cases.Placement, request: SweepRequest) -> Iterator[Finding]:
    empty = cluster.empty_zones() if cluster.hosts else {}
    is_wrong = not request.in_part or len(empty) == len({rule.zone for rule in request.zones})
    for zone, why in empty.items():
        if is_wrong:
            hint = "write GLOB=ZONE or 10.1.0.0/16=ZONE; if several patterns match, the first counts"
            raise UsageError(f"zone {zone}: {why}", hint=hint, code="unknown-zone")
        text = f"zone {zone} has nothing of the selected groups and topics: {why}"
        yield Finding("empty-zone", text, severity=INFO)


def _judged(
    subjects: Sequence[AnySubject],
    failures: Sequence[Lost],
    policy: Policy,
    request: SweepRequest,
    unjudged: list[result.Unjudged],
    progress: Progress,
) -> Iterator[tuple[AnySubject, Cases]]:
    takers, pairable = cases.by_thing(failures), len(failures) if request.at_once > 1 else 0
    touching = [cases.touching(subject, takers) for subject in subjects]
    for subject, own in zip(subjects, touching, strict=True):
        if pairable and comb(len(own), 2) > MOST_PAIRS:
            text = f"{len(own)} losses affect it, but rmqlb tries at most {MOST_PAIRS} pairs"
            hint = "try single losses with --losses 1, or fewer kinds with --lose"
            raise UsageError(f"{subject.about} {subject.name}: {text}", hint=hint, code="too-many-cases")
    # Other processes do not write to the terminal.
    within = progress if min(request.jobs, len(subjects)) < 2 else no_progress

    def judge_one(at: int) -> Cases | str:
        """The cases of a group or topic, or why they cannot be judged; may run in another process."""
        rules = _rules_for(policy, subjects[at].about, subjects[at].name)
        try:
            return cases.judge(subjects[at], rules, touching[at], pairable, request.most_steps, within)
        except RmqlbError as error:
            return error.message

    progress("groups and topics", 0, len(subjects))
    for done, found in enumerate(in_processes(judge_one, range(len(subjects)), request.jobs)):
        progress("groups and topics", done, len(subjects))
        subject = subjects[done]
        if isinstance(found, str):
            unjudged.append(result.Unjudged(subject.about, subject.name, None, found))
        else:
            subject.outcomes = dict(found.outcomes)
            yield subject, found


class Judged(Struct, frozen=True):
    subject: AnySubject
    cases: Cases
    failures: Sequence[Lost]

    def limit(self, at: int, value: Bound) -> result.BrokenAlready:
        rule, limit = self.cases.limits[at]
        about, name = self.subject.about, self.subject.name
        return result.BrokenAlready(rule.name, rule.severity, about, name, limit.name, limit.bound, value)

    def counterexamples(self, request: SweepRequest) -> Iterator[result.Counterexample]:
        """The smallest failures that break a limit.

        Failures with equal kinds of losses and equal values of a broken limit are one, shown by the case with the most
        moves.
        """
        for at in range(len(self.cases.limits)):
            similar = grouped(
                ((tuple(loss.kind for loss in self._losses(mask)), self.cases.broken[mask][at]), mask)
                for mask in self.cases.smallest(at)
            )
            for (_, value), masks in similar.items():
                mask = max(masks, key=lambda each: getattr(self._outcome(each), "moved", 0))
                outcome, case = self._outcome(mask), self._case(mask)
                yield result.Counterexample(
                    **asdict(self.limit(at, value)),
                    losses=self._losses(mask),
                    cases=sum(self.cases.classes[each].fewest for each in masks),
                    group=outcome if isinstance(outcome, result.GroupOutcome) else None,
                    topic=outcome if isinstance(outcome, result.TopicOutcome) else None,
                    **_shown(self.subject, self.subject.effect(mask), case, request),
                )

    def _case(self, mask: int) -> list[Lost]:
        return [self.failures[number] for number in self.cases.classes[mask].first]

    def _losses(self, mask: int) -> tuple[result.Loss, ...]:
        return tuple(failure.loss for failure in self._case(mask))

    def _outcome(self, mask: int) -> result.GroupOutcome | result.TopicOutcome:
        return self.subject.outcome(self.subject.effect(mask))

    def _outcomes(self) -> list[tuple[Any, tuple[result.Loss, ...]]]:
        """Outcomes with their losses: without a loss first, then by number of losses."""
        masks = sorted(self.cases.classes, key=lambda mask: len(self.cases.classes[mask].first))
        losses = ((self._outcome(mask), self._losses(mask)) for mask in masks)
        return [(self.subject.outcome(cases.Effect()), ()), *losses]

    def worst_topic(self) -> result.TopicWorst:
        outcomes = self._outcomes()
        least, losses = min(outcomes, key=lambda item: item[0].writable_brokers)
        unwritable = [mask for mask in self.cases.classes if not getattr(self._outcome(mask), "writable_queues", 0)]
        return result.TopicWorst(
            topic=self.subject.name,
            writable_brokers=outcomes[0][0].writable_brokers,
            unwritable=self.cases.count(unwritable),
            least_writable=result.Worst(least.writable_brokers, losses),
            cases=self.cases.number,
            broken=self.cases.count(self.cases.broken),
        )

    def worst_group(self, group: GroupSubject) -> result.GroupWorst:
        outcomes, found = self._outcomes(), dict[str, Any]()
        for figure in annotated_figures(result.GroupWorst):
            usual = 0 if figure == "imbalance" else None  # no imbalance without queues or consumers
            values: list[Any] = [getattr(outcome, figure) for outcome, _ in outcomes]
            values = [usual if value is None else value for value in values]
            at = None if None in values else max(range(len(values)), key=values.__getitem__)
            found[figure] = None if at is None else result.Worst(values[at], outcomes[at][1])
        return result.GroupWorst(
            group=group.name,
            strategy=group.members.name,
            basis="assumed" if group.basis == "assumed" else "predicted",
            consumers=outcomes[0][0].consumers,
            queues=outcomes[0][0].queues,
            computed=len(group.outcomes) - 1,
            cases=self.cases.number,
            broken=self.cases.count(self.cases.broken),
            **found,
        )


def _badness(one: result.Counterexample) -> tuple[object, ...]:
    """Sort key, worst first: severity, stopped messages, fewer losses, distance from the limit."""
    grave = _STOPS_MESSAGES.index(one.limit) if one.limit in _STOPS_MESSAGES else len(_STOPS_MESSAGES)
    beyond = float(len(one.value)) if isinstance(one.value, tuple) else 0.0
    if isinstance(one.value, int | float) and isinstance(one.bound, int | float):
        beyond = abs(one.value - one.bound)
    losses = [(loss.kind, loss.name) for loss in one.losses]
    return SEVERITIES.index(one.severity), grave, len(one.losses), -beyond, one.name, losses


def _group_badness(worst: result.GroupWorst) -> tuple[object, ...]:
    """Sort key, worst first: cases that break a limit, unassigned queues, imbalance."""
    figures = (worst.unassigned, worst.imbalance)
    return -worst.broken, *(0 if each is None else -each.value for each in figures), worst.group


def _shown(subject: AnySubject, effect: cases.Effect, case: Sequence[Lost], request: SweepRequest) -> dict[str, Any]:
    """Shell commands that show a case; None where no command line can name the losses.

    A crashed process closes its connections; a lost host or zone falls silent.
    """
    if not request.source_words:
        return {}
    silent = {thing.name for each in case if each.loss.kind in result.SILENT for thing in each.things}
    if isinstance(subject, TopicSubject):
        lost = [name for name in subject.queues if name in effect.brokers or name in effect.masters]
        fails = [f"{name}:{'timeout' if name in silent else 'refused'}" for name in lost]
        words = ["rmqlb", "simulate-send", *request.source_words, "-t", subject.name, *_each("--fail", fails)]
        return {"command": shlex.join(words) if fails else None}
    strategy = ["--strategy", subject.members.group_strategy] if subject.basis == "assumed" else []
    on = _each("-t", [topic for topic in request.only_topics if topic in {route.topic for route in subject.routes}])
    start, end = [*request.source_words, "-g", subject.name, *strategy], [*on, *request.more_words]
    ids = [subject.client_ids[place] for place in effect.places]
    removed = [*_each("--remove", ids), *_each("--remove-broker", effect.brokers)]
    removed += _each("--set", [f"remove-master={name}" for name in effect.masters])
    plan = ["rmqlb", "plan-rebalance", *start, *removed, *end]
    events = [f"{'host-loss' if name in silent else 'crash'} {name}@0s" for name in ids]
    for name in (*effect.brokers, *effect.masters):
        what = "broker-loss" if name in silent else "broker-down"
        events.append(f"{what} {name}@0s{', with slaves' if name in effect.brokers else ''}")
    changes = [*_each("--event", events), "--trials", str(_GAP_TRIALS), *(["--orderly"] if subject.orderly else [])]
    # plan-rebalance reads digits as a number of consumers; a comma ends the name in an event.
    is_number = any(re.fullmatch(r"[+-]?\d+", client_id) for client_id in ids)
    has_comma = any("," in name for name in (*ids, *effect.brokers, *effect.masters))
    has_gap = _has_gaps(subject, effect) and not has_comma
    gap = shlex.join(["rmqlb", "simulate-rebalance", *start, *changes, *end]) if has_gap else None
    return {"command": None if is_number else shlex.join(plan), "gap_command": gap}


def _has_gaps(subject: GroupSubject, effect: cases.Effect) -> bool:
    """Whether consumers are left, every queue gets an owner, and simulate-rebalance accepts the losses."""
    outcome = subject.outcome(effect)
    if not outcome.consumers or not outcome.queues or outcome.unassigned:
        return False
    kind, kinds, _ = consumer_types(subject.group.group)
    known = {broker.broker_name for route in subject.routes for broker in route.broker_datas}
    return known.issuperset(effect.brokers) and (not subject.orderly or {kind, *kinds.values()} == {"push"})


def _each(option: str, values: Sequence[str]) -> Iterator[str]:
    for value in values:
        yield from (f"{option}={value}",) if value.startswith("-") else (option, value)


_CASE_FIGURES = ("counterexamples", "broken-cases", "broken-singles", "broken-already", "unwritable-topics")
_GROUP_FIGURES = declared(result.GroupWorst)
SWEEP_FIGURES = FailOn(
    (*_CASE_FIGURES, *_GROUP_FIGURES.names),
    of_subject=_GROUP_FIGURES.names,
    shares=("broken-cases", "broken-singles", "unwritable-topics", *_GROUP_FIGURES.shares),
)
"""Figures of `--fail-on`: of all cases, and the worst of all groups or of the named one."""


def try_on_sweep(condition: Condition, sweep: result.FailureSweep) -> TriedCondition:
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
        hint = suggestion("groups", condition.subject, [each.group for each in sweep.groups])
        problem = f"{condition.subject} is not one of the selected groups"
        raise UsageError(f"--fail-on {condition.text!r}: {problem}", hint=hint)
    field, _ = figures_of(result.GroupWorst)[condition.name]
    found = [(getattr(each, field), each.queues) for each in groups]
    tried = [condition.try_on(worst.value, whole) for worst, whole in found if worst is not None]
    met = [each for each in tried if each.met]
    if not met and len(tried) < len(found):
        return condition.try_on(None)
    return max(met or tried, key=lambda each: each.value or 0, default=condition.try_on(0, 1))
