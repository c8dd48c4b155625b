"""Every failure, single and in pairs, tried on every group and topic: the answer of `sweep-failures`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import date
from math import comb, isfinite
from typing import Annotated, Any

from msgspec import Meta, Struct
from msgspec.structs import replace

from rmqlb.engine.allocate import check_settings
from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.arguments import check_routes, require
from rmqlb.engine.assignment.assign import Members
from rmqlb.engine.assignment.consumers import is_orderly
from rmqlb.engine.check import judgement, waive
from rmqlb.engine.group import Gaps, Given, Group, assumption, gaps
from rmqlb.engine.kernel import in_processes
from rmqlb.engine.sweep_failures.cases import MOST_STEPS, Cases, by_thing, count_cases, judge, losses_of, touching
from rmqlb.engine.sweep_failures.commands import Commands
from rmqlb.engine.sweep_failures.failures import Cluster, Failure, ZoneRule, cluster_of
from rmqlb.engine.sweep_failures.subjects import LIMITS_AFTER_FAILURE, AnySubject, Effect, GroupSubject, TopicSubject
from rmqlb.errors import DataError, RmqlbError, UsageError
from rmqlb.model.check_result import FAILED, WaivedLimit
from rmqlb.model.finding import INFO, SEVERITIES, Finding
from rmqlb.model.group import BROADCASTING, ConsumerGroup, Seen
from rmqlb.model.policy import GROUP, LIMITS, TOPIC, About, Bound, Limit, Policy, Rule
from rmqlb.model.progress import Progress, no_progress
from rmqlb.model.route import TopicRouteData
from rmqlb.model.snapshot import ClusterSnapshot, RouteSighting, suggestion
from rmqlb.model.sweep_failures import (
    LOSS_KINDS,
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
DEFAULT_LIMITS: Mapping[str, float] = {
    "unassigned": 0,
    "duplicateOwners": 0,
    "minConsumers": 1,
    "withoutLock": 0,
    "imbalance": 2,
    "writableBrokers": 1,
}
"""Those of the command's built-in policy."""
_STOPS_MESSAGES = ("writableBrokers", "unassigned", "withoutLock", "minConsumers", "duplicateOwners", "minBrokers")
"""Limits that stop messages when they are broken, the gravest first; others measure balance or time."""

Judged = tuple[AnySubject, Cases]


class SweepRequest(Struct, frozen=True):
    """What to sweep, and how.

    Attributes:
        groups: names of the groups.
        topics: names of the topics.
        only_topics: groups are swept on these topics alone; empty means all of their own.
        kinds: what is lost.
        zones: which names and addresses are in which zone.
        in_part: groups and topics are some of the cluster's, so that a zone may have nothing of them.
        at_once: how many losses come together at most, 1 or 2.
        orderly: groups that consume in order, whether they report it or not.
        most_steps: of the work for the pairs of losses of each group.
        jobs: processes among which groups are divided.
        commands: how commands name the source; None where no command can read it.
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


def sweep_failures(
    groups: Mapping[str, Members],
    routes: Sequence[TopicRouteData],
    *,
    limits: Mapping[str, float] = DEFAULT_LIMITS,
    kinds: Sequence[LossKind] = LOSS_KINDS,
    zones: Mapping[str, Sequence[str]] | None = None,
    at_once: int = 2,
    orderly: Collection[str] = (),
) -> FailureSweep:
    """Try every loss of consumers, brokers, masters, hosts and zones, alone and in pairs, on these groups and topics.

    Args:
        groups: name → its consumers; they subscribe to all topics, or to those that `subscribed` names.
        routes: the topics.
        limits: limits of policies of groups and topics, with the most that is allowed (for `min…` and
            `writableBrokers` the least; shares are 0 to 1).
        kinds: what is lost: consumer, broker, master, host, zone.
        zones: zone → patterns of addresses, broker names and client IDs, or networks; without them brokers' zoneName.
        at_once: how many losses come together at most, 1 or 2.
        orderly: groups that consume in order.

    Raises:
        UsageError: an argument has a wrong type or value, a zone is empty, or there are too many cases.
    """
    zones = zones or {}
    require(groups, Mapping[str, Members], "groups")
    require(limits, Mapping[str, float], "limits")
    require(kinds, Sequence[LossKind], "kinds")
    require(zones, Mapping[str, Sequence[str]], "zones")
    require(at_once, Annotated[int, Meta(ge=1, le=2)], "at_once")
    require(orderly, Collection[str], "orderly")
    _check_values(groups, limits, zones, orderly)
    check_routes(routes)
    rules = [ZoneRule(zone, pattern) for zone, patterns in zones.items() for pattern in patterns]
    request = SweepRequest(
        tuple(groups), tuple(route.topic for route in routes), kinds=kinds, zones=rules, at_once=at_once
    )
    sightings = {route.topic: RouteSighting(route, _GIVEN) for route in routes}
    unjudged: list[Unjudged] = []
    subjects: list[AnySubject] = []
    for name, members in groups.items():
        subjects += _trying(unjudged, GROUP, name, _given_group, name, members, sightings, name in orderly)
    for topic, sighting in sightings.items():
        subjects += _trying(unjudged, TOPIC, topic, TopicSubject, sighting)
    policy = Policy("limits", tuple(rule for about in (GROUP, TOPIC) if (rule := _rule(about, limits)).limits))
    return _sweep(subjects, policy, request, date.min, unjudged)[0]  # without waivers no day matters


_GIVEN = Seen("given", None)


def _check_values(
    groups: Mapping[str, Members],
    limits: Mapping[str, float],
    zones: Mapping[str, Sequence[str]],
    orderly: Collection[str],
) -> None:
    for members in groups.values():
        check_settings(members.settings)
    if empty := [zone for zone, patterns in zones.items() if not patterns]:
        raise UsageError(f"zone {empty[0]}: it has no pattern", code="unknown-zone")
    if unknown := [name for name in orderly if name not in groups]:
        hint = suggestion("groups", unknown[0], groups)
        raise UsageError(f"orderly: {unknown[0]} is not among the groups", hint=hint)
    for name, bound in limits.items():
        if name not in LIMITS_AFTER_FAILURE:
            hint = suggestion("limits", name, LIMITS_AFTER_FAILURE)
            raise UsageError(f"limits: there is no limit {name} here", hint=hint)
        if not (isfinite(bound) and bound >= 0):
            raise UsageError(f"limits[{name!r}] is {bound}, not a number from 0")


def _given_group(name: str, members: Members, sightings: Mapping[str, RouteSighting], orderly: bool) -> GroupSubject:
    subscribed = {topic for topics in members.subscribed.values() for topic in topics}
    topics = tuple(topic for topic in sightings if not subscribed or topic in subscribed)
    model = BROADCASTING if members.broadcasting else None
    snapshot = ClusterSnapshot(
        "given",
        "given",
        routes=sightings,
        groups={name: ConsumerGroup(name, _GIVEN, message_model=model, topics=topics)},
    )
    group = Group(snapshot, name, given=Given(client_ids=members.client_ids, topics=topics, members=members))
    if members.broadcasting:
        raise DataError(group.apart or "")
    return GroupSubject(group, orderly=orderly)


def _rule(about: About, limits: Mapping[str, float]) -> Rule:
    own = tuple(Limit(name, bound) for name, bound in limits.items() if LIMITS[name].about == about)
    return Rule(f"{about}s", about, ("*",), own)


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
    unjudged: list[Unjudged] = []
    subjects: list[AnySubject] = []
    missing = gaps(snapshot)
    for name in request.groups:
        args = snapshot, policy, request, settings or Settings(), missing
        subjects += _trying(unjudged, GROUP, name, _group_of, name, *args)
    for name in request.topics:
        if name in snapshot.routes:
            subjects += _trying(unjudged, TOPIC, name, TopicSubject, snapshot.routes[name])
        else:
            unjudged.append(Unjudged(TOPIC, name, None, f"its route could not be read: {missing.topics[name]}"))
    return _sweep(subjects, policy, request, today, unjudged, progress)


def _trying(
    unjudged: list[Unjudged], about: About, name: str, make: Callable[..., AnySubject], *args: object
) -> Iterator[AnySubject]:
    """A group or topic, unless it cannot be judged."""
    try:
        yield make(*args)
    except RmqlbError as error:
        unjudged.append(Unjudged(about, name, None, error.message))


def _group_of(
    name: str, snapshot: ClusterSnapshot, policy: Policy, request: SweepRequest, settings: Settings, missing: Gaps
) -> GroupSubject:
    assume = next((rule.assume for rule in _rules_for(policy, GROUP, name) if rule.assume is not None), None)
    if assume is None and name in snapshot.groups:
        assume = assumption(snapshot, name).assume
    given = Given(assume=assume)
    group = Group(snapshot, name, settings, given, missing)
    if request.only_topics:
        given = replace(given, topics=tuple(topic for topic in group.topics if topic in request.only_topics))
        group = Group(snapshot, name, settings, given, missing)
    if group.apart is not None:
        raise DataError(group.apart)
    return GroupSubject(group, orderly=True if name in request.orderly else is_orderly(group.group))


def _rules_for(policy: Policy, about: About, name: str) -> list[Rule]:
    return [rule for rule in policy.rules if rule.about == about and rule.takes(name)]


def _sweep(
    subjects: Sequence[AnySubject],
    policy: Policy,
    request: SweepRequest,
    today: date,
    unjudged: list[Unjudged],  # those that are not among the subjects
    progress: Progress = no_progress,
) -> tuple[FailureSweep, tuple[Finding, ...]]:
    groups = [each for each in subjects if isinstance(each, GroupSubject)]
    topics = [each for each in subjects if isinstance(each, TopicSubject)]
    routes = [route for group in groups if group.has_brokers for route in group.routes]
    cluster = cluster_of(
        [group.client_ids for group in groups],
        [*routes, *(topic.sighting.route for topic in topics)],
        request.zones,
    )
    findings = list(_zone_findings(cluster, request))
    failures = cluster.failures(request.kinds)
    judged = [
        *_judged("groups", groups, failures, policy, request, unjudged, progress),
        *_judged("topics", topics, failures, policy, replace(request, jobs=1), unjudged, progress),
    ]
    counts = count_cases(len(failures), [cases for _, cases in judged], request.at_once)
    commands = request.commands and replace(request.commands, topics=request.only_topics)
    found = [one for each in judged for one in _counterexamples(each, failures, commands)]
    kept = _not_waived(found, policy, today)
    for group in groups:
        if group.static_topics:
            why = (
                f"topic {group.static_topics[0]} is a static topic, whose queues do not follow brokers: only losses of "
            )
            unjudged.append(Unjudged(GROUP, group.name, None, f"{why}its consumers were tried"))
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
    what: str,
    subjects: Sequence[AnySubject],
    failures: Sequence[Failure],
    policy: Policy,
    request: SweepRequest,
    unjudged: list[Unjudged],
    progress: Progress,
) -> Iterator[Judged]:
    takers = by_thing(failures)

    def judge_one(at: int) -> Cases | str:
        """The cases of a group or topic, or why they cannot be judged; perhaps in another process."""
        subject = subjects[at]
        rules = _rules_for(policy, subject.about, subject.name)
        try:
            within = (
                progress if min(request.jobs, len(subjects)) < 2 else no_progress
            )  # other processes do not write to the terminal
            return judge(subject, rules, takers, request.at_once, within, request.most_steps)
        except RmqlbError as error:
            return error.message

    for subject in subjects:
        number = len(touching(subject, takers))
        if request.at_once > 1 and comb(number, 2) > MOST_PAIRS:
            raise UsageError(
                f"{subject.about} {subject.name}: {number} losses take something of it, and at most {MOST_PAIRS} pairs "
                "are tried",
                hint="try single losses with --at-once 1, or fewer kinds with --lose",
                code="too-many-cases",
            )
    progress(what, 0, len(subjects))
    for done, cases in enumerate(in_processes(judge_one, range(len(subjects)), request.jobs)):
        progress(what, done, len(subjects))
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


def _counterexamples(
    judged: Judged, failures: Sequence[Failure], commands: Commands | None
) -> Iterator[Counterexample]:
    """The smallest failures that break a limit of a group or topic.

    As many losses of the same kinds that break the same limit with the same value are one, shown by the case with the
    most moves.
    """
    subject, cases = judged
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
                command=None if commands is None else commands.in_full(subject, effect, case),
                gap_command=None if commands is None else commands.gap(subject, effect, case),
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
