"""Arrow batches → the bytes of a Parquet file, in a worker of Spark: neither it nor the driver shares a disk."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping

import pyarrow as pa
import pyarrow.parquet as pq

from rmqlb.pipeline.arrow import Batches, arrow_schema

COLUMNS = {"name": "string", "isFirst": "boolean", "parquet": "binary"}
"""A piece of a table's file; `isFirst`: a file begins with it."""
_ROWS = 1 << 17
"""Of a row group."""
_PIECE = 4 << 20
"""Bytes of a piece."""


def parquet_bytes(batches: Batches, *, name: str, columns: Mapping[str, str]) -> Batches:
    """One file of all rows, in pieces."""
    schema = arrow_schema(columns)
    sink = io.BytesIO()
    with pq.ParquetWriter(sink, schema) as writer:
        for group in _groups(batches, schema):
            writer.write_table(group, _ROWS)
    whole = sink.getbuffer()
    for at in range(0, len(whole), _PIECE):
        piece = {"name": [name], "isFirst": [at == 0], "parquet": [whole[at : at + _PIECE].tobytes()]}
        yield pa.RecordBatch.from_pydict(piece, schema=arrow_schema(COLUMNS))


def _groups(batches: Batches, schema: pa.Schema) -> Iterator[pa.Table]:
    """The rows in tables of a row group's size, however they came."""
    held: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        held.append(batch)
        rows += batch.num_rows
        if rows >= _ROWS:
            yield pa.Table.from_batches(held).cast(schema)
            held, rows = [], 0
    if held:
        yield pa.Table.from_batches(held).cast(schema)
