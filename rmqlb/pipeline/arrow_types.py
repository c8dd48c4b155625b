"""Spark's types, as `schemas.py` writes them, as Arrow's: pyspark's own conversion is not public and has changed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

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
    import pyarrow as pa

    return pa.schema([pa.field(name, arrow_type(kind)) for name, kind in columns.items()])


def arrow_type(kind: str) -> pa.DataType:
    """One of Spark's types as Arrow's.

    >>> str(arrow_type("array<struct<brokerName: string, queues: int>>"))
    'list<element: struct<brokerName: string, queues: int32>>'
    """
    import pyarrow as pa

    kind = kind.strip()
    if kind == "timestamp":
        return pa.timestamp("us", tz="UTC")
    outer = _OUTER.fullmatch(kind)
    if outer is None:
        return getattr(pa, _SIMPLE[kind])()
    parts = _parts(outer[2])
    if outer[1] == "array":
        return pa.list_(pa.field("element", arrow_type(outer[2])))
    if outer[1] == "map":
        return pa.map_(arrow_type(parts[0]), arrow_type(parts[1]))
    fields = [match for part in parts if (match := _FIELD.fullmatch(part))]
    return pa.struct([pa.field(match[1], arrow_type(match[2])) for match in fields])


def _parts(text: str) -> list[str]:
    """What stands between the commas that are in no `<…>`."""
    found, depth = [""], 0
    for char in text:
        depth += (char == "<") - (char == ">")
        if char == "," and depth == 0:
            found.append("")
        else:
            found[-1] += char
    return found
