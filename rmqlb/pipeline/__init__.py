"""The data pipeline: a whole fleet on Spark, from snapshots to a report.

- It is the only importer of pyspark and pyarrow, and only the `rmqlb pipeline` commands import it.
- A step is a function DataFrame → DataFrame; it runs no job. Jobs run where rows are written (`warehouse.py`), where
  ingest counts them (`ingest/ingest_stage.py`), and where the report collects a bounded number (`report/frames.py`).
- The DataFrame API alone is used outside `spark/`, so that Spark Connect runs the same code.
- Who owns a queue is decided by the engine's rules, called in `mapInArrow` (`in_workers`), never restated here.
"""
