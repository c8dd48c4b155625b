"""What gives tables their names, for DuckDB and for Spark SQL: the page's queries are over these.

Beside the page lies a copy of the tables that people read. Other scripts name those of the warehouse itself, which has
each queue; tables that only the report makes are those beside the page there too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rmqlb.pipeline.schemas import ALL, DERIVED, FLEET
from rmqlb.pipeline.warehouse import Warehouse

DUCKDB, SPARK = "duckdb.sql", "spark.sql"
_TABLES = (*ALL, FLEET)


def view_scripts(tables: Sequence[str], warehouse: Warehouse) -> dict[str, str]:
    """File → its text; all are run in the report's folder."""
    made = [name for name in tables if name in {table.name for table in DERIVED}]
    found = {DUCKDB: "".join(map(_in_duckdb, tables)), SPARK: "".join(map(_in_spark, tables))}
    for file, text in warehouse.reader_scripts(_TABLES).items():
        if file.endswith(".py"):
            found[file] = text + "".join(f"duckdb.sql({_in_duckdb(name).strip()!r})\n" for name in made)
        else:
            found[file] = text + "".join(map(_in_spark if "spark" in file else _in_duckdb, made))
    return found


def _in_duckdb(name: str) -> str:
    return f"CREATE VIEW {name} AS SELECT * FROM read_parquet('parquet/{name}/*.parquet');\n"  # noqa: S608 - our own


def _in_spark(name: str) -> str:
    return f"CREATE TEMPORARY VIEW {name} USING parquet OPTIONS (path 'parquet/{name}');\n"


def reader_commands(scripts: Mapping[str, str]) -> tuple[str, ...]:
    """How the scripts of the warehouse are run.

    >>> reader_commands({"duckdb.sql": "", "warehouse-spark.sql": "", "warehouse-duckdb.sql": ""})
    ('duckdb -init warehouse-duckdb.sql', 'spark-sql -i warehouse-spark.sql')
    """
    of_warehouse = sorted(name for name in scripts if name.startswith("warehouse-"))
    return tuple(_command(name) for name in of_warehouse)


def _command(name: str) -> str:
    if name.endswith(".py"):
        return f"python -i {name}"
    return f"spark-sql -i {name}" if "spark" in name else f"duckdb -init {name}"
