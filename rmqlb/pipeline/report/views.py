"""What gives the tables beside a page their names, for DuckDB and for Spark SQL: the page's queries are over these."""

from __future__ import annotations

from collections.abc import Sequence

DUCKDB, SPARK = "duckdb.sql", "spark.sql"


def view_scripts(tables: Sequence[str]) -> dict[str, str]:
    r"""File → its text; both are run in the report's folder.

    >>> view_scripts(["scores"])["duckdb.sql"]
    "CREATE VIEW scores AS SELECT * FROM read_parquet('parquet/scores/*.parquet');\\n"
    """
    duckdb = (f"CREATE VIEW {name} AS SELECT * FROM read_parquet('parquet/{name}/*.parquet');\n" for name in tables)  # noqa: S608
    spark = (f"CREATE TEMPORARY VIEW {name} USING parquet OPTIONS (path 'parquet/{name}');\n" for name in tables)
    return {DUCKDB: "".join(duckdb), SPARK: "".join(spark)}
