"""Arrow batches of tables: what `mapInArrow` takes and gives; pyspark's own conversion of types is not public."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from rmqlb.engine.arrays.lanes import Bools, Ints
from rmqlb.pipeline.schemas import Table, parts

Batches = Iterator[pa.RecordBatch]
_SIMPLE = {
    "string": "string",
    "int": "int32",
    "bigint": "int64",
    "double": "float64",
    "boolean": "bool_",
    "date": "date32",
    "binary": "binary",
}
_OUTER = re.compile(r"(array|map|struct)<(.*)>", re.DOTALL)
_FIELD = re.compile(r"\s*`?(\w+)`?\s*:?\s*(.+)", re.DOTALL)


def arrow_schema(columns: Mapping[str, str]) -> pa.Schema:
    """Columns with Spark's types as an Arrow schema; all may be null."""
    return pa.schema([pa.field(name, arrow_type(kind)) for name, kind in columns.items()])


def arrow_type(kind: str) -> pa.DataType:
    """One of Spark's types as Arrow's.

    >>> str(arrow_type("array<struct<brokerName: string, queues: int>>"))
    'list<element: struct<brokerName: string, queues: int32>>'
    """
    kind = kind.strip()
    if kind == "timestamp":
        return pa.timestamp("us", tz="UTC")
    outer = _OUTER.fullmatch(kind)
    if outer is None:
        return getattr(pa, _SIMPLE[kind])()
    inner = parts(outer[2])
    if outer[1] == "array":
        return pa.list_(pa.field("element", arrow_type(outer[2])))
    if outer[1] == "map":
        return pa.map_(arrow_type(inner[0]), arrow_type(inner[1]))
    fields = [match for part in inner if (match := _FIELD.fullmatch(part))]
    return pa.struct([pa.field(match[1], arrow_type(match[2])) for match in fields])


def batch_of(columns: Mapping[str, Any], table: Table) -> pa.RecordBatch:
    """Arrow or numpy arrays, all of one length, by column, as a batch of a table without nested columns."""
    schema = arrow_schema(table.columns)
    arrays = (columns[field.name] for field in schema)
    typed = [one if isinstance(one, pa.Array) else pa.array(one) for one in arrays]
    return pa.RecordBatch.from_arrays(
        [one if one.type == field.type else one.cast(field.type) for one, field in zip(typed, schema, strict=True)],
        schema=schema,
    )


def take_rows(batch: pa.RecordBatch, columns: Sequence[str], rows: Ints) -> dict[str, Any]:
    """Columns of the batch, with the rows of these numbers, each as often as named."""
    at = pa.array(rows)
    return {name: batch.column(name).take(at) for name in columns}


def names_of(names: Sequence[str], numbers: Ints) -> Any:
    """Numbers (indexes among the names) as the names, −1 as null."""
    return pa.array(names, pa.string()).take(pa.array(numbers, mask=numbers < 0))


def null_unless(values: Any, where: Bools) -> Any:
    """Values where they are known, null elsewhere."""
    return pa.array(values, mask=~where)
