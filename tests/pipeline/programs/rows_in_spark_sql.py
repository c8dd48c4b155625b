"""The rows of queries over a warehouse at a URI, as JSON: `rows_in_spark_sql.py SPARK_SETTINGS QUERIES REPORT`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from rmqlb.pipeline.spark.session import spark_session
from rmqlb.pipeline.spark.settings import SessionSettings


def main() -> None:
    """Name the tables by the script of the report, then ask."""
    queries, report = (Path(name) for name in sys.argv[2:])
    script = (report / "warehouse-spark.sql").read_text().replace("'parquet/", f"'file://{report}/parquet/")
    with spark_session(SessionSettings("local[2]", json.loads(sys.argv[1]), "spark.log", delta=True)) as spark:
        for statement in filter(str.strip, script.split(";\n")):
            spark.sql(statement)
        rows = [[row.asDict() for row in spark.sql(query).collect()] for query in json.loads(queries.read_text())]
    sys.stdout.write(json.dumps(rows, default=str) + "\n")


if __name__ == "__main__":
    main()
