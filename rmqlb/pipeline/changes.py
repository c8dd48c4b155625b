"""The differences from the night before: one SQL statement over the tables of two nights.

Each fact that may change has a key and a value. The facts of both nights are grouped by key, so each table is read once
and rows are shuffled once.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import TYPE_CHECKING

from rmqlb.pipeline.tables import Assignments, Changes, Figures, Findings, Groups, Queues, Snapshots, columns, ddl, name

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
