"""Scripts that give readers the tables of a warehouse as one state of it: SQL for DuckDB and for Spark SQL.

A script is of the state of which it was written. In a folder each of its views refuses to answer once the warehouse has
another; at a URI the versions that it names stay readable, until `compact` has removed their files.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Callable, Iterable
from urllib.parse import unquote

from rmqlb.pipeline.schemas import Table, ddl
from rmqlb.pipeline.spark.reading import literal
from rmqlb.pipeline.storage.contents import Contents, Stored

DUCKDB, DUCKDB_IN_PYTHON, SPARK = "warehouse-duckdb.sql", "warehouse-duckdb.py", "warehouse-spark.sql"
_IN_DUCKDB = {"string": "VARCHAR", "int": "INTEGER", "bigint": "BIGINT", "double": "DOUBLE", "boolean": "BOOLEAN"}
_UNKNOWN_FOLDER = "__HIVE_DEFAULT_PARTITION__"
_CHANGED = "the warehouse has changed since this was written; write it again: rmqlb pipeline report --force"


def folder_scripts(folder: str, contents: Contents, tables: Iterable[Table]) -> dict[str, str]:
    """File → its text, for a folder of this machine."""
    there = [(table, contents.tables[table.name]) for table in tables if table.name in contents.tables]
    state = os.path.join(folder, "tables.json")
    same, is_number = f"last = {contents.last}", "columns = {last: 'BIGINT'}"
    checked = f"SELECT CASE WHEN {same} THEN true ELSE error({_text(_CHANGED)}) END"
    of_state = f"path {_spark_text(literal(f'file://{state}'))}, multiLine 'true'"
    duckdb = [
        f"CREATE MACRO is_as_written() AS ({checked} FROM read_json({_text(_literally(state))}, {is_number}));",
        *(_duckdb_view(folder, table, stored) for table, stored in there),
    ]
    spark = [
        f"CREATE TEMPORARY VIEW _state (last BIGINT) USING json OPTIONS ({of_state});",
        *(line for table, stored in there for line in _spark_views(folder, table, stored, same)),
    ]
    return {DUCKDB: "\n".join(duckdb) + "\n", SPARK: "\n".join(spark) + "\n"}


def delta_scripts(uri: str, contents: Contents, tables: Iterable[Table]) -> dict[str, str]:
    """File → its text, for tables of Delta Lake; DuckDB has them by Python's package deltalake."""
    versions = {
        table.name: contents.tables[table.name].table_version for table in tables if table.name in contents.tables
    }
    spark = [
        f"CREATE TEMPORARY VIEW `{name}` USING delta OPTIONS (path {_spark_text(posixpath.join(uri, name))}, "
        f"versionAsOf '{version}');"
        for name, version in versions.items()
    ]
    place = re.sub(r"^s3a:", "s3:", uri)
    python = [
        "import duckdb",
        "from deltalake import DeltaTable",
        "",
        f"for name, version in {versions!r}.items():",
        f"    table = DeltaTable({place!r} + '/' + name, version=version)",
        "    duckdb.register(name, table.to_pyarrow_dataset())",
    ]
    return {DUCKDB_IN_PYTHON: "\n".join(python) + "\n", SPARK: "\n".join(spark) + "\n"}


def _duckdb_view(folder: str, table: Table, stored: Stored) -> str:
    names = ", ".join(f'"{name}"' for name in stored.columns)
    paths = [os.path.join(folder, table.name, one) for one in stored.folders]
    globs = ", ".join(_text(f"{_literally(path)}/**/*.parquet") for path in paths if _has_rows(path))
    if not globs:
        nothing = ", ".join(
            f'CAST(NULL AS {_IN_DUCKDB.get(kind, kind if kind.isalpha() else "VARCHAR")}) AS "{name}"'
            for name, kind in stored.columns.items()
        )
        return f'CREATE VIEW "{table.name}" AS SELECT {nothing} WHERE false;'
    kinds = {"run": "int", **{name: stored.columns[name] for name in table.partitions}}
    typed = ", ".join(f"{name}: '{_IN_DUCKDB.get(kind, kind)}'" for name, kind in kinds.items())
    read = f"read_parquet([{globs}], hive_partitioning = true, union_by_name = true, hive_types = {{{typed}}})"
    where = " AND ".join(["is_as_written()", *_shown(stored, _text)])
    return f'CREATE VIEW "{table.name}" AS SELECT {names} FROM {read} WHERE {where};'  # noqa: S608 - our own names


def _spark_views(folder: str, table: Table, stored: Stored, same: str) -> list[str]:
    names = ", ".join(f"`{name}`" for name in stored.columns)
    if not stored.folders:
        nothing = ", ".join(f"CAST(NULL AS {kind}) AS `{name}`" for name, kind in stored.columns.items())
        return [f"CREATE TEMPORARY VIEW `{table.name}` AS SELECT {nothing} WHERE false;"]
    root = f"file://{os.path.join(folder, table.name)}"
    runs = "{" + ",".join(stored.folders) + "}" if len(stored.folders) > 1 else stored.folders[0]
    options = f"path {_spark_text(f'{literal(root)}/{runs}')}, basePath {_spark_text(root)}"
    guard = f"(SELECT if({same}, true, raise_error({_spark_text(_CHANGED)})) FROM _state)"  # noqa: S608
    where = " AND ".join([guard, *_shown(stored, _spark_text)])
    typed = ddl({**stored.columns, "run": "int"})
    return [
        f"CREATE TEMPORARY VIEW `_{table.name}` ({typed}) USING parquet OPTIONS ({options});",
        f"CREATE TEMPORARY VIEW `{table.name}` AS SELECT {names} FROM `_{table.name}` WHERE {where};",  # noqa: S608
    ]


def _shown(stored: Stored, quote: Callable[[str], str]) -> list[str]:
    """Conditions that leave out what is shown no more."""
    gone = [
        f"NOT (run = {_number(folder)} AND snapshot IN ({', '.join(map(quote, snapshots))}))"
        for folder, snapshots in stored.left_out.items()
    ]
    for folder, partitions in stored.dropped.items():
        for partition in partitions:
            its = (part.partition("=") for part in partition.split("/"))
            same = " AND ".join(_is(name, unquote(value), quote) for name, _, value in its)
            gone.append(f"NOT (run = {_number(folder)} AND {same})")
    return gone


def _is(name: str, value: str, quote: Callable[[str], str]) -> str:
    return (
        f"{name} IS NULL" if value == _UNKNOWN_FOLDER else f"coalesce(CAST({name} AS STRING) = {quote(value)}, false)"
    )


def _number(folder: str) -> int:
    return int(folder.partition("=")[2])


def _has_rows(folder: str) -> bool:
    return any(name.endswith(".parquet") for _, _, files in os.walk(folder) for name in files)


def _literally(path: str) -> str:
    """A path in which DuckDB finds no pattern."""
    return re.sub(r"([*?\[])", r"[\1]", path)


def _text(value: str) -> str:
    """A text as DuckDB has it."""
    return "'" + value.replace("'", "''") + "'"


def _spark_text(value: str) -> str:
    """A text as Spark SQL has it."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
