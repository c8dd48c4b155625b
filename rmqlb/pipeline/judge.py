"""`pipeline judge`: groups and snapshots of a night → assignments, figures, findings, what_if, sends and changes.

- A night is judged when its snapshots or those of the night before change.
- `Question.rows` runs in Spark's Python processes, on a group or the topics of a cluster. It calls the functions of
  `show-groups`, `show-owners`, `sweep-failures`, `plan-rebalance` and `check`.
- Changes come from the tables of the night and the night before, by one SQL statement: each fact that may change has a
  key and a value, and the facts of both nights are grouped by key.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import date
from itertools import chain
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from rmqlb.engine.allocate import full_name
from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.assignment.assign import Owners, owners_at_rest, spread
from rmqlb.engine.assignment.consumers import broadcasting_finding, is_orderly, without_lock
from rmqlb.engine.check import check_policy, moved
from rmqlb.engine.group import Group, group_of, known
from rmqlb.engine.plan.changes import Edits, change_members
from rmqlb.engine.show_groups import group_line, unread_of_groups
from rmqlb.engine.sweep_failures.cases import GroupSubject, TopicSubject, by_thing, cluster_of, touching
from rmqlb.errors import DataError, RmqlbError
from rmqlb.model.diagnosis import MAX_LAG
from rmqlb.model.group import is_system_topic
from rmqlb.model.groups import GroupLine
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.owners import Spread
from rmqlb.model.pipeline_result import PipelineResult, Verdict
from rmqlb.model.policy import FAILED, GROUP, INCOMPLETE, TOPIC, JudgedLimit, Policy, Unit, WaivedLimit
from rmqlb.model.result import Progress, no_progress, sum_if_known
from rmqlb.model.snapshot import ClusterSnapshot
from rmqlb.model.sweep_failures import LossKind
from rmqlb.pipeline.documents import in_batches, read_back
from rmqlb.pipeline.spark import Batches, accumulator, in_workers
from rmqlb.pipeline.tables import (
    Assignments,
    Changes,
    Figures,
    Findings,
    Groups,
    Queues,
    Row,
    Sends,
    Snapshots,
    WhatIf,
    columns,
    name,
    union_ddl,
)
from rmqlb.pipeline.warehouse import NIGHTS, Night, Warehouse, short
from rmqlb.version import __version__
from rmqlb.views.numbers import about

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PER_GROUP: tuple[type[Row], ...] = (Assignments, Figures, Findings, WhatIf, Sends)
_OF_GROUPS: tuple[LossKind, ...] = ("consumer", "host", "broker", "master")
_OF_TOPICS: tuple[LossKind, ...] = ("broker", "master", "host")


class Question(Struct, frozen=True):
    """What judge is asked for, and its work in the workers."""

    settings: Settings = Settings()  # constructor arguments of the strategies
    strategies: tuple[str, ...] = ()  # further strategies for figures and assignments
    policy: Policy | None = None  # the limits of the fleet
    expected: tuple[str, ...] = ()  # the clusters that must report
    text: str = ""  # digest of the request
    rules_used: Any = None  # an accumulator of (night, rule) of the policy's rules with something to check

    def rows(self, batches: Batches) -> Batches:
        """Rows (cluster, date, group, document) → `union_ddl(PER_GROUP)`; without a group, the cluster's topics."""
        given = (row for batch in batches for row in batch.to_pylist())
        judged = (
            _Of(row["date"], row["cluster"], row["group"], read_back(row["document"]), self).rows() for row in given
        )
        yield from in_batches(PER_GROUP, chain.from_iterable(judged))


class _Of(Struct):
    date: date
    cluster: str
    name: str | None
    snapshot: ClusterSnapshot
    question: Question

    def rows(self) -> Iterator[Row]:
        return self.topics() if self.name is None else self.group()

    @property
    def _key(self) -> dict[str, Any]:
        return {"date": self.date, "cluster": self.cluster}

    def group(self) -> Iterator[Row]:
        name = self.name or ""
        facts = group_of(self.snapshot, name, self.question.settings)
        line = group_line(facts, unread_of_groups(self.snapshot).get(name, ()), MAX_LAG)
        problem = _problem(facts) if name in self.snapshot.groups else DataError("the group could not be read")
        label = ",".join(line.strategies) or None
        predicted = facts.predicted if problem is None else None
        yield self._as_it_runs(facts, line, label, predicted, problem)
        if predicted is not None and label is not None:
            yield from self._assignments(facts, label, predicted, runs=True)
            yield from self._what_if(facts, label)
        shares = name in self.snapshot.groups and not facts.broadcasting and facts.refusal is None
        for strategy in self.question.strategies if shares else ():
            yield from self._under(facts, full_name(strategy, self.question.settings), predicted)
        same = ("topic", "code", "severity", "message", "consumers", "consequence", "remedy")
        for found in line.findings:
            yield Findings(
                **self._key,
                **{field: getattr(found, field) for field in same},
                kind="group",
                group=name,
                queues=len(found.queues),
                evidence=tuple(f"{each.fact}: {each.value}" for each in found.evidence),
                command=self._command("diagnose", "--group", name),
            )
        yield from self._limits(GROUP)

    def topics(self) -> Iterator[Row]:
        """The topics without a writable broker after a loss, and the limits of topics."""
        own = self.snapshot.own_topics
        for topic, sighting in sorted(self.snapshot.routes.items()):
            if topic in own or is_system_topic(topic):
                continue
            try:
                subject = TopicSubject(sighting)
            except DataError:  # a static topic, or NameServers that disagree
                continue
            queues = subject.queues
            now: dict[str, Any] = {"writable_brokers": len(queues), "writable_queues": sum(queues.values())}
            if not subject.queues:
                yield Sends(**self._key, topic=topic, change="none", subject=None, **now, groups=0)
                continue
            failures = cluster_of([], [sighting.route]).failures(_OF_TOPICS)
            for number, mask in touching(subject, by_thing(failures)):
                if subject.outcome(subject.effect(mask)).writable_brokers == 0:
                    loss = failures[number].loss
                    row = {**self._key, **now, "change": loss.kind, "subject": loss.name}
                    yield Sends(topic=topic, groups=0, **row)
        yield from self._limits(TOPIC)

    def _as_it_runs(
        self, facts: Group, line: GroupLine, label: str | None, predicted: Owners | None, problem: RmqlbError | None
    ) -> Figures:
        owned = known(lambda: facts.ownership) if line.basis is not None else None
        row = {field: getattr(line, field) for field in _OF_LINE} | self._key
        row |= _per_consumer(None if owned is None or owned.unknown else owned.spread)
        row |= {"group": line.group, "strategy": label, "runs": True, "origin": line.strategy_origin}
        return Figures(
            **row,
            topics=None if line.topics is None else len(line.topics),
            max_lag_per_consumer=None if predicted is None else _most_lag(facts, predicted, facts.client_ids),
            moved=None if predicted is None else 0,
            code=None if problem is None else problem.code,
            problem=None if problem is None else problem.message,
        )

    def _under(self, facts: Group, strategy: str, now: Owners | None) -> Iterator[Row]:
        row: dict[str, Any] = {**dict.fromkeys(Figures.__struct_fields__), **self._key, "group": self.name}
        row |= {"strategy": strategy, "runs": False, "origin": "given"}
        try:
            members = facts.under(strategy)
            facts.must_be_answered(members)
            owners = owners_at_rest(facts.routes, members)
        except RmqlbError as error:
            yield Figures(**{**row, "code": error.code, "problem": error.message})
            return
        even = spread(owners, members.client_ids)
        observed = [queue for queue in owners if queue in facts.observed]
        row |= {field: getattr(even, field) for field in _EVEN} | _per_consumer(even)
        row |= {"basis": "predicted", "topics": len(facts.routes), "processes": len(members.client_ids)}
        yield Figures(
            **row
            | {
                "owners_unknown": 0,
                "mismatches": sum(facts.observed[queue] != owners[queue] for queue in observed) if observed else None,
                "max_lag_per_consumer": _most_lag(facts, owners, members.client_ids),
                "moved": None if now is None else moved(now, owners),
            }
        )
        yield from self._assignments(facts, strategy, owners, runs=False)

    def _assignments(self, facts: Group, strategy: str, owners: Owners, *, runs: bool) -> Iterator[Row]:
        for queue, own in owners.items():
            observed = facts.observed.get(queue)
            for owner in own or (None,):
                yield Assignments(
                    **self._key,
                    group=self.name or "",
                    strategy=strategy,
                    runs=runs,
                    topic=queue.topic,
                    broker_name=queue.broker_name,
                    queue_id=queue.queue_id,
                    owner=owner,
                    owners=len(own),
                    owners_observed=observed,
                    mismatch=None if observed is None else observed != own,
                    lag=_lag(facts, queue),
                )

    def _what_if(self, facts: Group, strategy: str) -> Iterator[Row]:
        """Every single loss, as `sweep-failures --losses 1`, and one more consumer, as `plan-rebalance --add 1`."""
        try:
            subject = GroupSubject(facts, orderly=is_orderly(facts.group))
        except RmqlbError:
            return
        cluster = cluster_of([subject.client_ids], subject.routes if subject.has_brokers else ())
        failures = cluster.failures(_OF_GROUPS)
        for number, mask in touching(subject, by_thing(failures)):
            try:
                outcome = subject.outcome(subject.effect(mask))
            except RmqlbError:  # RocketMQ's clients throw
                continue
            loss, figures = failures[number].loss, {name: getattr(outcome, name) for name in outcome.__struct_fields__}
            yield self._what_if_row(strategy, loss.kind, loss.name, figures)
        more = replace(subject.members, client_ids=change_members(subject.members.client_ids, Edits(add=(1,))))
        after = known(lambda: owners_at_rest(subject.routes, more))
        if after is None:
            return
        even = spread(after, more.client_ids)
        gone = [queue for queue, was in subject.before.items() if was and after.get(queue) and after[queue] != was]
        figures = {name: getattr(even, name) for name in _EVEN}
        figures |= {"moved": len(gone), "lag_moved": sum_if_known(_lag(facts, queue) for queue in gone)}
        figures["without_lock"] = without_lock(subject.routes, (), orderly=subject.orderly)
        yield self._what_if_row(strategy, "consumer-added", "+1", figures)

    def _what_if_row(self, strategy: str, change: str, subject: str, figures: dict[str, Any]) -> WhatIf:
        row: dict[str, Any] = {**self._key, **figures, "strategy": strategy, "change": change, "subject": subject}
        return WhatIf(group=self.name or "", **row)

    def _limits(self, about: str) -> Iterator[Row]:
        """The policy's limits that did not pass."""
        policy = self.question.policy
        if policy is None:
            return
        of_all = about == TOPIC and self.snapshot.gaps.unlisted is not None
        rules = tuple(rule for rule in policy.rules if rule.about == about or of_all)
        own = replace(policy, rules=rules)
        report = check_policy(self.snapshot, own, self.date, settings=self.question.settings, cluster=self.cluster)
        used = {one.rule for one in report.judged if one.name is not None}
        if self.question.rules_used is not None and used:
            self.question.rules_used.add(Counter((self.date, name) for name in used))
        for one in report.judged:
            of_fleet = one.name is None and not (one.about == GROUP and of_all)
            if one.verdict in (FAILED, INCOMPLETE) and not of_fleet:
                yield self._limit(one)

    def _limit(self, one: JudgedLimit) -> Findings:
        waived = one if isinstance(one, WaivedLimit) else None
        what = f"{one.about} {one.name}" if one.name is not None else "its groups"
        value, bound = (_text(each, one.unit) for each in (one.value, one.bound))
        said = f"rule {one.rule}: {what}"
        if one.limit is not None:
            said += f": {one.limit}" + (f" is {value}" if value is not None else "") + f" (limit {bound})"
        return Findings(
            **self._key,
            kind="policy",
            group=one.name if one.about == GROUP else None,
            topic=one.name if one.about == TOPIC else None,
            code="rule" if one.limit is None else one.limit,
            severity=one.severity,
            message=said + (f"; {one.why}" if one.why else ""),
            evidence=tuple(each.message for each in one.findings),
            rule=one.rule,
            verdict="waived" if waived is not None else "failed" if one.verdict == FAILED else "incomplete",
            value=value,
            bound=bound,
            waived_until=None if waived is None else waived.until,
            waived_by=None if waived is None else waived.owner,
            waived_reason=None if waived is None else waived.reason,
            command=self._command("check", "-p", self.question.policy.where if self.question.policy else ""),
        )

    def _command(self, verb: str, *more: str) -> str:
        return shlex.join(["rmqlb", verb, "-s", self.snapshot.endpoint, *more])


_EVEN = ("consumers", "queues", "unassigned", "duplicate_owners", "idle", "imbalance")
_OF_LINE = (
    *(*_EVEN, "status", "basis", "shares_queues", "processes", "owners_unknown", "mismatches", "duplicate_client_ids"),
    *("lag", "lag_at_least"),
)


def _per_consumer(even: Spread | None) -> dict[str, Any]:
    each = None if even is None else even.queues_per_consumer
    return {f"{name}_queues_per_consumer": each and getattr(each, name) for name in ("min", "mean", "max")}


def _problem(facts: Group) -> RmqlbError | None:
    if facts.broadcasting:
        found = broadcasting_finding(facts.title, facts.name)
        return DataError(found.message, code=found.code)
    if facts.refusal is not None:
        return facts.refusal
    try:
        _ = facts.predicted
    except RmqlbError as error:
        return error
    return None


def _most_lag(facts: Group, owners: Owners, client_ids: Sequence[str]) -> int | None:
    """Unread messages of the consumer with the most; None when those of an owned queue are unknown."""
    of = dict.fromkeys(client_ids, 0)
    for queue, own in owners.items():
        lag = _lag(facts, queue)
        if lag is None and own:
            return None
        for owner in own:
            of[owner] += lag or 0
    return max(of.values(), default=None)


def _lag(facts: Group, queue: MessageQueue) -> int | None:
    state = facts.states.get(queue)
    return None if state is None else state.lag


def _text(value: object, unit: Unit | None) -> str | None:
    if value is None:
        return None
    if isinstance(value, int | float) and unit == "ms":
        return about(value)
    return ", ".join(value) if isinstance(value, tuple) else f"{value:.12g}" if isinstance(value, float) else str(value)


def _fleet_findings(
    warehouse: Warehouse, night: date, question: Question, used: Collection[tuple[date, str]]
) -> Iterator[Findings]:
    """Findings outside any cluster's document: silent clusters, and rules with nothing to check."""
    there = warehouse.read(Snapshots, [night]).where("counts").select("cluster").collect() if question.expected else ()
    for cluster in sorted(set(question.expected) - {row[0] for row in there}):
        yield Findings(
            date=night,
            cluster=cluster,
            kind="fleet",
            group=None,
            topic=None,
            code="silent-cluster",
            severity="error",
            message=f"cluster {cluster} did not report",
            consequence="Its groups are unknown for this night.",
            remedy="Check the log of fetch-routes.",
        )
    for rule in question.policy.rules if question.policy is not None else ():
        if (night, rule.name) not in used:
            text = f"rule {rule.name}: no {rule.about} of the fleet matches {' or '.join(rule.patterns)}"
            of_fleet: dict[str, Any] = {"date": night, "cluster": None, "group": None, "topic": None}
            of_rule: dict[str, Any] = {"rule": rule.name, "severity": rule.severity, "message": text}
            yield Findings(kind="policy", code="rule", verdict="incomplete", **of_fleet, **of_rule)


_SQL = r"""
with owners as (
    -- who owns a queue: as observed, otherwise as predicted
    select date, cluster, `group`, topic, brokerName, queueId, max(observed) is not null as observed,
        concat_ws(', ', array_sort(coalesce(max(observed), collect_list(owner)))) as value
    from (
        select date, cluster, `group`, topic, brokerName, queueId, ownersObserved as observed,
            cast(null as string) as owner
        from queues where ownersObserved is not null and not startswith(topic, '%RETRY%')
        union all
        select date, cluster, `group`, topic, brokerName, queueId, null, owner from assignments where runs
    ) group by date, cluster, `group`, topic, brokerName, queueId
),
facts as (
    select date, cluster, 'owners' as kind, `group`, topic, brokerName, queueId, cast(null as string) as subject,
        cast(null as string) as rule, value, cast(null as string) as severity, observed from owners
    union all
    select date, cluster, 'queues', `group`, topic, null, null, null, null, cast(count(*) as string), null, null
        from owners group by date, cluster, `group`, topic
    union all
    select date, cluster, 'consumer', `group`, null, null, null, explode(consumers.clientId), null, '', null, null
        from `groups`
    union all
    select date, cluster, if(consumers is null, 'group', 'known group'), `group`, null, null, null, null, null, '',
        null, null from `groups`
    union all
    select date, cluster, 'strategy', `group`, null, null, null, null, null, strategy, null, null
        from figures where runs and strategy is not null
    union all
    -- without their texts as keys, which have figures in them
    select date, cluster, concat('finding ', kind), `group`, topic, null, null, code, rule, message, severity, null
        from findings where verdict is null or verdict <> 'waived'
    union all
    select date, cluster, 'cluster', null, null, null, null, null, null, '', null, null from snapshots where counts
),
compared as (
    select s.date, s.previous, f.cluster, if(kind = 'known group', 'group', kind) as kind, `group`, topic, brokerName,
        queueId, subject, rule, min(if(s.isNow, value, null)) as after, min(if(s.isNow, null, value)) as before,
        min(severity) as severity, min(observed) as observed, max(s.isNow) as isNow, max(not s.isNow) as wasThere,
        count_if(kind = 'known group') = 2 as isKnown
    from facts as f join sides as s on f.date = s.of
    group by all
),
marked as (
    select *, max(kind = 'cluster' and isNow and wasThere) over (partition by date, cluster) as inBoth,
        max(kind = 'group' and isKnown) over (partition by date, cluster, `group`) as knownInBoth
    from compared
),
named as (
    select *, case
        when kind = 'owners' then if(before <> after, 'queue-moved', null)
        when kind = 'queues' then if(before <> after, 'queue-count', null)
        when kind = 'strategy' then if(before <> after, 'strategy', null)
        when isNow and wasThere then null
        when kind = 'consumer' then if(knownInBoth, if(isNow, 'consumer-joined', 'consumer-left'), null)
        when kind = 'group' then if(isNow, 'group-new', 'group-gone')
        when startswith(kind, 'finding') then if(isNow, 'finding-new', 'finding-gone')
    end as change
    from marked where inBoth
)
select {columns} from named where change is not null
"""


def changes(warehouse: Warehouse, previous: Mapping[date, date]) -> DataFrame:
    """The changes of these nights since the night before, for clusters in both."""
    spark = warehouse.spark
    if not previous:
        return warehouse.frame(Changes, ())
    sides = [(of, day, before, of == day) for day, before in previous.items() for of in (day, before)]
    spark.createDataFrame(sides, "of date, date date, previous date, isNow boolean").createOrReplaceTempView("sides")
    for table in (Queues, Assignments, Groups, Findings, Figures, Snapshots):
        warehouse.read(table, {*previous, *previous.values()}).createOrReplaceTempView(name(table))
    emptied = {"before": "nullif(before, '')", "after": "nullif(after, '')"}
    shown = (f"{emptied[each]} as {each}" if each in emptied else f"`{each}`" for each in columns(Changes))
    return spark.sql(_SQL.replace("{columns}", ", ".join(shown)))


_BYTES_A_TASK = 256 << 10
_MOST_TASKS = 2048


def judge(warehouse: Warehouse, question: Question, *, force: bool, progress: Progress = no_progress) -> PipelineResult:
    """Judge new nights, nights with changed snapshots, and the last night after a changed request.

    A policy holds from its first night on; `force` judges all nights.
    """
    from pyspark.sql import functions as fn

    nights = warehouse.nights()
    ingested = [day for day, night in nights.items() if night.ingested is not None]
    unread = tuple(day for day in warehouse.dates(Snapshots) if nights.get(day, Night()).ingested is None)
    wanted = {day: _token(nights, ingested, day, question) for day in ingested}
    days = [day for day in ingested if force or _is_stale(nights[day], wanted[day], last=day == ingested[-1])]
    previous = dict(zip(ingested[1:], ingested[:-1], strict=True))
    if days:
        used = accumulator(warehouse.spark, Counter())
        rows = replace(question, rules_used=used).rows
        judged = in_workers(
            _inputs(warehouse, days), rows, union_ddl(PER_GROUP), lambda done: progress("judge groups", done, 0)
        )
        staged = warehouse.stage(judged, "judged")
        for day in days:
            warehouse.unmark(day, ingested=False)
        for table in (Assignments, Figures, WhatIf):
            warehouse.replace(table, _rows(staged, table), days)
        read_by = warehouse.read(Groups, days).select("date", "cluster", fn.explode("topics").alias("topic"))
        counts = read_by.groupBy("date", "cluster", "topic").agg(fn.count("*").alias("number"))
        sends = _rows(staged, Sends).join(counts, ["date", "cluster", "topic"], "left")
        sends = sends.withColumn("groups", fn.coalesce("number", fn.lit(0)))
        warehouse.replace(Sends, sends, days)
        own = [found for day in days for found in _fleet_findings(warehouse, day, question, used.value)]
        findings = _rows(staged, Findings).unionByName(warehouse.frame(Findings, own))
        warehouse.replace(Findings, findings, days)
        pairs = {day: previous[day] for day in days if day in previous}
        warehouse.replace(Changes, changes(warehouse, pairs), days)
        for day in days:
            warehouse.mark(day, NIGHTS, wanted[day])
    verdict = verdict_of_last_night(warehouse, question)
    return PipelineResult(warehouse.place, judged=tuple(days), incomplete=unread, verdict=verdict)


def _token(nights: Mapping[date, Night], ingested: Sequence[date], day: date, question: Question) -> str:
    place = ingested.index(day)
    before = ingested[place - 1] if place else None
    made = short(__version__, nights[day].ingested, before, before and nights[before].ingested)
    return f"{made}.{short(question.text, question.expected)}"


def _is_stale(night: Night, wanted: str, *, last: bool) -> bool:
    there, now = (night.judged or "").partition("."), wanted.partition(".")
    return there[0] != now[0] or (last and there != now)


def _inputs(warehouse: Warehouse, days: Sequence[date]) -> DataFrame:
    from pyspark.sql import functions as fn

    groups = warehouse.read(Groups, days).select("date", "cluster", "group", "document")
    clusters = warehouse.read(Snapshots, days).where("counts")
    rows = groups.union(clusters.select("date", "cluster", fn.lit(None).cast("string"), "document"))
    size = sum(file.length for day in days for file in warehouse.files_in(f"{warehouse.place}/groups/date={day}"))
    cores = warehouse.spark.sparkContext.defaultParallelism
    return rows.repartition(max(1, min(_MOST_TASKS, max(cores, size // _BYTES_A_TASK))))


def _rows(staged: DataFrame, table: type[Row]) -> DataFrame:
    return staged.where(f"{name(table)} is not null").select(f"{name(table)}.*").select(*columns(table))


_VERDICT = """
select sum(failed) as failed, sum(incomplete) as incomplete, sum(waived) as waived, sum(errors) as errors,
    sum(new) as new, sum(gone) as gone, sum(groups) as groups, collect_set(cluster) as clusters
from (
    select count_if(verdict = 'failed' and severity = 'error') as failed,
        count_if(verdict = 'incomplete' and severity = 'error') as incomplete, count_if(verdict = 'waived') as waived,
        count_if(kind = 'group' and severity = 'error') as errors, 0 as new, 0 as gone, 0 as groups, null as cluster
    from findings
    union all
    select 0, 0, 0, 0, count_if(change = 'finding-new'), count_if(change = 'finding-gone'), 0, null
    from changes where severity <> 'info'
    union all select 0, 0, 0, 0, 0, 0, count(*), null from `groups`
    union all select 0, 0, 0, 0, 0, 0, 0, cluster from snapshots where counts
)
"""


def verdict_of_last_night(warehouse: Warehouse, question: Question) -> Verdict | None:
    """The verdict of the last whole night; None without one."""
    days = warehouse.whole_nights()
    if not days:
        return None
    for table in (Findings, Changes, Groups, Snapshots):
        warehouse.read(table, days[-1:]).createOrReplaceTempView(name(table))
    (row,) = warehouse.spark.sql(_VERDICT).collect()
    found: dict[str, Any] = row.asDict()
    clusters = set(found.pop("clusters"))
    silent = tuple(sorted(set(question.expected) - clusters))
    previous = days[-2] if len(days) > 1 else None
    verdict = Verdict(date=days[-1], previous=previous, clusters=len(clusters), silent=silent, **found)
    return replace(verdict, line=verdict.sentence)
