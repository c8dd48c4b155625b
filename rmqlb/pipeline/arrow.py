"""Arrow batches of the warehouse's tables: what `mapInArrow` takes and gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from rmqlb.engine.arrays.lanes import Bools, Ints
from rmqlb.pipeline.arrow_types import arrow_schema
from rmqlb.pipeline.schemas import Table


def batch_of(columns: Mapping[str, Any], table: Table) -> pa.RecordBatch:
    """Columns as a batch of the table.

    Args:
        columns: column → Arrow or numpy array, all of one length.
        table: without nested columns.
    """
    schema = arrow_schema(table.columns)
    return pa.RecordBatch.from_arrays([_typed(columns[field.name], field.type) for field in schema], schema=schema)


def taken(batch: pa.RecordBatch, columns: Sequence[str], rows: Ints) -> dict[str, Any]:
    """Columns of the batch, with these of its rows, each as often as named.

    Args:
        batch: the rows.
        columns: which columns.
        rows: shape (n,).
    """
    at = pa.array(rows)
    return {name: batch.column(name).take(at) for name in columns}


def named(names: Sequence[str], numbers: Ints) -> Any:
    """Numbers as their names, −1 as null.

    Args:
        names: number → name.
        numbers: shape (n,).
    """
    if not len(names):
        return pa.nulls(len(numbers), pa.string())
    return pa.array(names, pa.string()).take(pa.array(numbers, mask=numbers < 0))


def known(values: Any, where: Bools) -> Any:
    """Values where they are known, null elsewhere.

    Args:
        values: numpy array; shape (n,).
        where: shape (n,).
    """
    return pa.array(values, mask=~where)


def all_of(value: str, number: int) -> Any:
    """One text, so many times."""
    return pa.array([value], pa.string()).take(pa.array(np.zeros(number, np.int64)))


def _typed(values: Any, kind: pa.DataType) -> Any:
    array = values if isinstance(values, pa.Array) else pa.array(values)
    return array if array.type == kind else array.cast(kind)
