"""The plain trial beside which allocate is measured: one `mapInArrow` from Parquet to Parquet, and nothing else.

Rules of this file:
- The groups are there already, each in one row with its consumers and its topics' runs of queues: nothing is joined,
  nothing is observed, no warehouse is kept. The rows that come out are those of ASSIGNMENTS.
- Nothing of `rmqlb.pipeline` and of the engine is used: what a strategy gives is written here once more, in numpy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    Ints = npt.NDArray[np.int64]

COLUMNS = (
    "cluster string, date date, snapshot string, `group` string, topic string, brokerName string, queueId int, "
    "strategy string, owner string, owners int, lag bigint, mismatch boolean"
)
"""Of what is written, as in the table ASSIGNMENTS."""
STRATEGIES = ("AVG", "AVG_BY_CIRCLE")


def trial(groups: DataFrame) -> DataFrame:
    """Rows of FLEET whose consumers all run Java's client, each id once → rows of ASSIGNMENTS."""
    return groups.select("cluster", "date", "snapshot", "group", "clientIds", "topics").mapInArrow(_batches, COLUMNS)


def write_trial(spark: SparkSession, groups: str, schema: str, to: str) -> None:
    """From one folder of Parquet files to another."""
    trial(spark.read.schema(schema).parquet(groups)).write.mode("overwrite").parquet(to)


def _batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    for batch in batches:
        for name, places in _PLACES.items():
            columns = _rows(batch, name, places)
            yield pa.RecordBatch.from_arrays([*columns.values()], names=[*columns])


def _rows(batch: pa.RecordBatch, name: str, places: Callable[[Ints, Ints, Ints], Ints]) -> Mapping[str, Any]:
    import numpy as np
    import pyarrow as pa

    topics: Any = batch.column("topics").flatten()
    runs: Any = topics.field("subscribe").flatten()
    sizes = _lengths(topics.field("subscribe"))
    on_broker = runs.field("queues").to_numpy().astype(np.int64)
    queues = np.add.reduceat(np.append(on_broker, 0), np.cumsum(sizes) - sizes) * (sizes > 0)
    pair = np.repeat(np.arange(len(queues)), queues)
    group = np.repeat(np.arange(batch.num_rows), _lengths(batch.column("topics")))
    members = _lengths(batch.column("clientIds"))
    index = np.arange(len(pair)) - np.repeat(np.cumsum(queues) - queues, queues)
    owner = places(index, queues[pair], np.maximum(members[group], 1)[pair])
    owner += (np.cumsum(members) - members)[group][pair]
    run = np.repeat(np.arange(len(on_broker)), on_broker)
    queue_id = np.arange(len(run)) - np.repeat(np.cumsum(on_broker) - on_broker, on_broker)
    unowned = (members == 0)[group][pair]
    of_group = pa.array(group[pair])
    number = len(pair)
    return {
        **{key: batch.column(key).take(of_group) for key in ("cluster", "date", "snapshot", "group")},
        "topic": topics.field("topic").take(pa.array(pair)),
        "brokerName": runs.field("brokerName").take(pa.array(run)),
        "queueId": pa.array(queue_id.astype(np.int32)),
        "strategy": pa.repeat(name, number),
        "owner": batch.column("clientIds").flatten().take(pa.array(owner, mask=unowned)),
        "owners": pa.array((~unowned).astype(np.int32)),
        "lag": pa.nulls(number, pa.int64()),
        "mismatch": pa.nulls(number, pa.bool_()),
    }


def _avg(index: Ints, queues: Ints, members: Ints) -> Ints:
    import numpy as np

    size, extra = queues // members, queues % members
    long = extra * (size + 1)
    return np.where(index < long, index // (size + 1), extra + (index - long) // np.maximum(size, 1))


def _by_circle(index: Ints, _: Ints, members: Ints) -> Ints:
    return index % members


_PLACES: Mapping[str, Callable[[Ints, Ints, Ints], Ints]] = dict(zip(STRATEGIES, (_avg, _by_circle), strict=True))


def _lengths(lists: Any) -> Ints:
    lengths: Ints = lists.value_lengths().fill_null(0).to_numpy().astype("int64")
    return lengths
