"""Diagnose a group by all rules over one or several samples: the likeliest cause first."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime

from msgspec.structs import replace

from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.diagnose import consumption, lags, owners, shares
from rmqlb.engine.diagnose.case import OVER_TIME, Case, ComesOf
from rmqlb.engine.diagnose.evidence import BLOCKED_MS, NEEDED, AnotherSampleNeeded, DoesNotApply
from rmqlb.engine.drain import drains_of
from rmqlb.engine.group import Group, group_of, known
from rmqlb.errors import DataError
from rmqlb.model import diagnosis as result
from rmqlb.model.group import BROADCASTING, RETRY_PREFIX, ConsumerGroup
from rmqlb.model.message_queue import grouped, queue_ranges, sort_client_ids, sort_queues
from rmqlb.model.process_queue import ConsumerEvidence
from rmqlb.model.result import ERROR, INFO, SEVERITIES, WARNING, named, utc_text
from rmqlb.model.snapshot import ClusterSnapshot

RULE_FILES = (consumption, lags, owners, shares)
ONE_SAMPLE: tuple[str, ...] = tuple(code for code in result.CODES if code not in OVER_TIME)
MOST_SAMPLES = 8  # after which an undecided rule stays undecided, over a minute at 10 s


def diagnose(case: Case, *, max_lag: int = result.MAX_LAG) -> result.Diagnosis:
    findings = findings_of(case)
    consequences: list[result.Consequence] = []
    checked: list[str] = []
    unknown: list[result.Undecided] = []
    not_applicable: list[result.Undecided] = []
    for code in result.CODES:
        answer = case.answer(code)
        why = answer.why
        if isinstance(why, ComesOf):
            consequences.append(result.Consequence(code, why.causes))
        elif isinstance(why, DoesNotApply):
            not_applicable.append(result.Undecided(code, str(why)))
        elif why is None:
            checked += [] if answer.findings else [code]
        elif all(each.severity == INFO for each in answer.findings):  # otherwise missing evidence adds nothing new
            needs, shown = NEEDED.get(why.hint or "", "other evidence"), None
            if isinstance(why, AnotherSampleNeeded):
                needs, shown = (
                    result.MORE_SAMPLES if case.earlier else result.SECOND_SAMPLE,
                    why.shown if why.suspect else None,
                )
            remedy = None if why.hint is None else str(why.hint)
            unknown.append(result.Undecided(code, why.message, remedy, needs, shown))
    found_any = any(finding.severity != INFO for finding in findings)
    group = known(lambda: case.group)
    samples = case.earlier if group is None else case.samples
    at = case.facts.snapshot.taken_at
    drains = None if group is None else drains_of(case)
    return result.Diagnosis(
        case.facts.name or "",
        "found" if found_any else "unknown" if unknown else "inOrder",
        tuple(
            result.DiagnosedSample(each.seen.where, None if (then := each.seen.at or at) is None else utc_text(then))
            for each in samples
        ),
        result.GroupCounts() if group is None else _counts(case),
        findings,
        tuple(consequences),
        tuple(checked),
        tuple(unknown),
        tuple(not_applicable),
        None if group is None else _stacks(case),
        None if group is None else lagging(case.facts, max_lag),
        None if drains is None else drains.group,
        tuple(each for each in drains.listed if each.drain.drain_ms != 0)[:8] if drains and case.earlier else (),
    )


def suspicions(case: Case) -> tuple[result.GroupFinding, ...]:
    """A warning for each problem that one sample shows, and that another sample has to confirm."""
    name = case.facts.name or ""
    return tuple(
        result.GroupFinding(
            code, WARNING, name, consumers=(why.suspect,), message=f"group {name}: {why.shown}; another sample decides"
        )
        for code in ONE_SAMPLE
        if isinstance(why := case.answer(code).why, AnotherSampleNeeded) and why.suspect
    )


def lagging(group: Group, limit: int) -> result.Lagging | None:
    """The place of most of the lag, if it is above the limit; retries and offsets of other clients do not count."""
    states = group.group.without_foreign_offsets.queues
    lags = {q: state.lag for q, state in states.items() if state.lag and not q.topic.startswith(RETRY_PREFIX)}
    lag = sum(lags.values())
    if lag <= limit or group.group.message_model == BROADCASTING:
        return None
    owned = known(lambda: group.ownership)
    owners = {} if owned is None or owned.basis == "assumed" else owned.owners
    by_owner = grouped((own[0], queue) for queue in lags if len(own := owners.get(queue, ())) == 1)
    sums = {client_id: sum(lags[queue] for queue in queues) for client_id, queues in by_owner.items()}
    worst = max(sort_client_ids(sums), key=sums.__getitem__, default=None)
    if worst is None:
        return result.Lagging(lag, limit, queues=tuple(sort_queues(lags)))
    return result.Lagging(lag, limit, worst, sums[worst] / lag, tuple(sort_queues(by_owner[worst])))


def findings_of(case: Case, codes: Sequence[str] = result.CODES) -> tuple[result.GroupFinding, ...]:
    """The findings of these rules: causes that explain the owners first, then by severity and number of queues."""

    def place(finding: result.GroupFinding) -> tuple[bool, int, bool, int, int]:
        explains = finding.severity != INFO and finding.code in case.explanation
        severity = SEVERITIES.index(finding.severity)
        by_rule = 0 if explains else codes.index(finding.code)
        return not explains, severity, finding.explains is None, by_rule, -len(finding.queues)

    found = [_with_message(each) for code in codes for each in case.answer(code).findings]
    return tuple(sorted(found, key=place))


def _with_message(finding: result.GroupFinding) -> result.GroupFinding:
    who = ", ".join((f"group {finding.group}", *([named(finding.consumers)] if finding.consumers else ())))
    text = finding.consequence.removesuffix(".")
    where = f" ({queue_ranges(finding.queues)})" if finding.queues else ""
    return replace(finding, message=f"{who}: {text[:1].lower()}{text[1:]}{where}")


def _counts(case: Case) -> result.GroupCounts:
    listed, queues = case.facts.listed, known(lambda: case.queues)
    faults = known(lambda: case.facts.faults) if case.facts.shares and case.observed else None
    unknown = None if queues is None else sum(queue not in case.observed for queue in queues)
    none = 0 if unknown == 0 else None  # the absence of bad queues is certain only where all owners are known
    lags = {queue: state.lag for queue, state in case.facts.states.items() if not queue.topic.startswith(RETRY_PREFIX)}
    known_lags = [lag for lag in lags.values() if lag is not None]
    all_known = queues is not None and all(lags.get(queue) is not None for queue in queues)
    return result.GroupCounts(
        consumers=None if listed is None else len(set(listed)),
        processes=None if listed is None else len(listed),
        queues=None if queues is None else len(queues),
        unassigned=None if faults is None else len(faults.unassigned) or none,
        duplicate_owners=None if faults is None else len(faults.duplicate_owners) or none,
        owners_unknown=None if faults is None else unknown,
        lag=sum(known_lags) if all_known else None,
        lag_at_least=sum(known_lags) if known_lags else None,
    )


def _stacks(case: Case) -> tuple[result.ConsumerStacks, ...] | None:
    stacks = {client_id: case.report_of(client_id).stacks for client_id in case.group.reports}
    ids = sort_client_ids(client_id for client_id, threads in stacks.items() if threads is not None)
    return tuple(result.ConsumerStacks(client_id, stacks[client_id] or ()) for client_id in ids) or None


def earlier_sample(snapshot: ClusterSnapshot, name: str) -> ConsumerGroup:
    """The group of an earlier snapshot, with its time (raises DataError)."""
    group = snapshot.group(name)
    return group if group.seen.at is not None else replace(group, seen=replace(group.seen, at=snapshot.taken_at))


def case_of(samples: Sequence[ClusterSnapshot], name: str, settings: Settings) -> Case:
    """The evidence of the last sample, with earlier samples that have the group."""
    return case_since(group_of(samples[-1], name, settings), samples[:-1])


def case_since(group: Group, earlier: Sequence[ClusterSnapshot]) -> Case:
    name = group.name or ""
    return Case(group, tuple(earlier_sample(sample, name) for sample in earlier if name in sample.groups))


def wants_another(case: Case) -> bool:
    """Whether a later sample would decide an undecided rule."""
    is_open = (isinstance(case.answer(code).why, AnotherSampleNeeded) for code in result.CODES)
    return len(case.earlier) + 1 < MOST_SAMPLES and any(is_open)


def worth_stacks(case: Case) -> tuple[str, ...]:
    """The consumers with messages of a queue of which they consumed none for a minute, sorted."""

    def waits(client_id: str) -> bool:
        report = case.report_of(client_id)
        times = [item.last_consume for item in report.queues or () if item.cached and item.last_consume is not None]
        return report.read_at is not None and any(report.read_at - time > BLOCKED_MS for time in times)

    return tuple(sort_client_ids(i for i in case.processes if i in case.group.reports and waits(i)))


def with_stacks(sample: ClusterSnapshot, name: str, stacks: Mapping[str, tuple[str, ...]]) -> ClusterSnapshot:
    group = sample.groups[name]
    reports = {
        client_id: replace(report, evidence=replace(report.evidence or ConsumerEvidence(), stacks=stacks[client_id]))
        if client_id in stacks
        else report
        for client_id, report in group.reports.items()
    }
    return replace(sample, groups={**sample.groups, name: replace(group, reports=reports)})


def must_be_earlier(
    earlier: Sequence[tuple[str, ClusterSnapshot]], now: ClusterSnapshot, names: Collection[str]
) -> tuple[ClusterSnapshot, ...]:
    """The earlier snapshots by time; `earlier` has each with its name for errors.

    Raises DataError for a snapshot of another cluster, without any of the groups, or that is not earlier.
    """
    at, brokers_now = _taken_at(now, names), {broker.broker_name for broker in now.brokers}
    times: list[tuple[datetime, ClusterSnapshot]] = []
    for which, sample in earlier:
        then, others = _taken_at(sample, names), {broker.broker_name for broker in sample.brokers}
        if others and brokers_now and not others & brokers_now:
            problem = f"it has broker {min(others)}, {now.endpoint} has {min(brokers_now)}"
            raise DataError(f"{which} belongs to another cluster: {problem}", code="not-earlier")
        if not any(name in sample.groups for name in names):
            problem = f"{which} does not have group {next(iter(names))}"
            raise DataError(problem, hint="name a snapshot that has the group", code="group-not-found")
        if then is None or at is None:
            where = which if then is None else now.endpoint
            problem = f"{where} does not report when it was taken, so the order of the samples is unknown"
            raise DataError(problem, code="not-earlier")
        if then >= at:
            problem = f"it was taken at {utc_text(then)}, {now.endpoint} at {utc_text(at)}"
            hint = "pass the latest snapshot with -s, and earlier ones with --earlier"
            raise DataError(f"{which} is not earlier: {problem}", hint=hint, code="not-earlier")
        times.append((then, sample))
    return tuple(sample for _, sample in sorted(times, key=lambda each: each[0]))


def _taken_at(sample: ClusterSnapshot, names: Iterable[str]) -> datetime | None:
    seen = [sample.groups[name].seen.at for name in names if name in sample.groups]
    return sample.taken_at or next((at for at in seen if at is not None), None)


def diagnosis_of_groups(diagnoses: Iterable[result.Diagnosis]) -> result.DiagnosisOfGroups:
    """Order diagnoses, worst first: by severity, lag and bad queues."""
    statuses = (ERROR, WARNING, "lagging", "unknown", "inOrder")

    def badness(found: result.Diagnosis) -> tuple[int, int, int, str]:
        bad = (found.counts.unassigned or 0) + (found.counts.duplicate_owners or 0)
        return statuses.index(found.status), -(found.counts.lag_at_least or 0), -bad, found.group

    groups = tuple(sorted(diagnoses, key=badness))
    numbers = Counter(each.status for each in groups)
    return result.DiagnosisOfGroups(
        groups, result.DiagnosisSummary(len(groups), *(numbers[status] for status in statuses))
    )
