"""Statements of Spark SQL; the rows of the last one, as JSON: `in_spark_sql.py SPARK_SETTINGS STATEMENTS`."""

from __future__ import annotations

import json
import sys

from rmqlb.pipeline.spark.session import spark_session
from rmqlb.pipeline.spark.settings import SessionSettings


def main() -> None:
    """Run them one after the other."""
    settings = SessionSettings("local[2]", json.loads(sys.argv[1]), "spark.log", delta=True)
    with spark_session(settings) as spark:
        *before, last = (text for text in sys.argv[2].split(";\n") if text.strip())
        for statement in before:
            spark.sql(statement)
        rows = [list(row) for row in spark.sql(last).collect()]
    sys.stdout.write(json.dumps(rows) + "\n")


if __name__ == "__main__":
    main()
