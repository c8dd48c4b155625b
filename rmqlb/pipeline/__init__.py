"""The data pipeline: a whole fleet on Spark, from snapshots to a report.

- Only this folder imports pyspark and pyarrow, and only the `rmqlb pipeline` commands import this folder.
- The engine's rules decide who owns a queue; workers call them (`spark.in_workers`).
"""
