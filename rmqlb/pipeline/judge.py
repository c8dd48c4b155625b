"""`pipeline judge`: groups and snapshots of a night → assignments, figures, findings, what_if, sends and changes.

A night is judged when its snapshots or those of the night before change. One `mapInArrow` judges groups
(`group_rows.py`); changes come from the tables of the night and the night before, by one SQL
statement: each fact that may change has a key and a value, and the facts of both nights are grouped by key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from rmqlb.engine.allocate.strategy import Settings
from rmqlb.model.pipeline_result import PipelineResult, Verdict
from rmqlb.model.policy import Policy
from rmqlb.pipeline.group_rows import PER_GROUP, Judge, fleet_findings
from rmqlb.pipeline.ingest import silent
from rmqlb.pipeline.spark import in_workers
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
    ddl,
    name,
    union_ddl,
)
from rmqlb.pipeline.warehouse import NIGHTS, Night, Warehouse, short
from rmqlb.version import __version__

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from rmqlb.pipeline.warehouse import Warehouse

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
        return spark.createDataFrame([], ddl(Changes))
    sides = [(of, day, before, of == day) for day, before in previous.items() for of in (day, before)]
    spark.createDataFrame(sides, "of date, date date, previous date, isNow boolean").createOrReplaceTempView("sides")
    for table in (Queues, Assignments, Groups, Findings, Figures, Snapshots):
        warehouse.read(table, {*previous, *previous.values()}).createOrReplaceTempView(name(table))
    emptied = {"before": "nullif(before, '')", "after": "nullif(after, '')"}
    shown = (f"{emptied[each]} as {each}" if each in emptied else f"`{each}`" for each in columns(Changes))
    return spark.sql(_SQL.replace("{columns}", ", ".join(shown)))


_BYTES_A_TASK = 256 << 10
_MOST_TASKS = 2048


class Asked(Struct, frozen=True):
    settings: Settings = Settings()  # constructor arguments of the strategies
    strategies: tuple[str, ...] = ()  # further strategies for figures and assignments
    policy: Policy | None = None  # the limits of the fleet
    expected: tuple[str, ...] = ()  # the clusters that must report
    text: str = ""  # digest of the request


def judge(warehouse: Warehouse, asked: Asked, *, force: bool) -> PipelineResult:
    """Judge new nights, nights with changed snapshots, and the last night after a changed request.

    A policy holds from its first night on; `force` judges all nights.
    """
    from pyspark.sql import functions as fn

    nights = warehouse.nights()
    ingested = [day for day, night in nights.items() if night.ingested is not None]
    unread = tuple(day for day in warehouse.dates(Snapshots) if nights.get(day, Night()).ingested is None)
    wanted = {day: _token(nights, ingested, day, asked) for day in ingested}
    days = [day for day in ingested if force or _is_stale(nights[day], wanted[day], last=day == ingested[-1])]
    previous = dict(zip(ingested[1:], ingested[:-1], strict=True))
    if days:
        used = warehouse.spark.sparkContext.accumulator(set(), _union())
        worker = Judge(asked.settings, asked.strategies, asked.policy, used)
        staged = warehouse.stage(in_workers(_inputs(warehouse, days), worker.rows, union_ddl(PER_GROUP)), "judged")
        for day in days:
            warehouse.unmark(day, ingested=False)
        for table in (Assignments, Figures, WhatIf):
            warehouse.replace(table, _rows(staged, table), days)
        read_by = warehouse.read(Groups, days).select("date", "cluster", fn.explode("topics").alias("topic"))
        counts = read_by.groupBy("date", "cluster", "topic").agg(fn.count("*").alias("number"))
        sends = _rows(staged, Sends).join(counts, ["date", "cluster", "topic"], "left")
        sends = sends.withColumn("groups", fn.coalesce("number", fn.lit(0)))
        warehouse.replace(Sends, sends, days)
        own = _fleet_findings(warehouse, asked, days, used.value)
        warehouse.replace(Findings, _rows(staged, Findings).unionByName(own), days)
        pairs = {day: previous[day] for day in days if day in previous}
        warehouse.replace(Changes, changes(warehouse, pairs), days)
        for day in days:
            warehouse.mark(day, NIGHTS, wanted[day])
    verdict = verdict_of_last_night(warehouse, asked)
    return PipelineResult(warehouse.place, judged=tuple(days), incomplete=unread, verdict=verdict)


def _token(nights: Mapping[date, Night], ingested: Sequence[date], day: date, asked: Asked) -> str:
    place = ingested.index(day)
    before = ingested[place - 1] if place else None
    made = short(__version__, nights[day].ingested, before, before and nights[before].ingested)
    return f"{made}.{short(asked.text, asked.expected)}"


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


def _fleet_findings(warehouse: Warehouse, asked: Asked, days: Sequence[date], used: set[tuple[date, str]]) -> DataFrame:
    found: list[Findings] = []
    for day in days:
        absent = silent(warehouse, day, asked.expected) if asked.expected else ()
        found += fleet_findings(day, asked.policy, [rule for night, rule in used if night == day], absent)
    fields = dict(zip(Findings.__struct_encode_fields__, Findings.__struct_fields__, strict=True))
    values = [tuple(getattr(row, fields[column]) for column in columns(Findings)) for row in found]
    return warehouse.spark.createDataFrame(values, ddl(Findings))


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


def verdict_of_last_night(warehouse: Warehouse, asked: Asked) -> Verdict | None:
    """The verdict of the last whole night; None without one."""
    days = warehouse.whole_nights()
    if not days:
        return None
    for table in (Findings, Changes, Groups, Snapshots):
        warehouse.read(table, days[-1:]).createOrReplaceTempView(name(table))
    (row,) = warehouse.spark.sql(_VERDICT).collect()
    found: dict[str, Any] = row.asDict()
    clusters = set(found.pop("clusters"))
    silent = tuple(sorted(set(asked.expected) - clusters))
    previous = days[-2] if len(days) > 1 else None
    verdict = Verdict(date=days[-1], previous=previous, clusters=len(clusters), silent=silent, **found)
    return replace(verdict, line=verdict.sentence)


def _union() -> Any:
    from pyspark.accumulators import AccumulatorParam

    class Union(AccumulatorParam[set[Any]]):
        def zero(self, value: set[Any]) -> set[Any]:  # noqa: ARG002 - pyspark's signature
            return set()

        def addInPlace(self, value1: set[Any], value2: set[Any]) -> set[Any]:  # noqa: N802 - likewise
            return value1 | value2

    return Union()
