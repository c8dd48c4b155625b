"""The data pipeline: a whole fleet on Spark, from snapshots to a report.

Rules of this folder:
- It is the only importer of pyspark, pyarrow, pandas and matplotlib, and only the `rmqlb pipeline` commands import it.
- A step is a function DataFrame → DataFrame; both schemas have names, in `schemas.py` or, when no table of the
  warehouse has it, beside the step. No step runs a job: jobs run where rows are written (`warehouse.py`), where ingest
  counts them (`ingest/ingest_stage.py`), and where the report collects a bounded number (`report/frames.py`).
- The DataFrame API alone is used outside `spark/`, so that Spark Connect runs the same code.
- What decides who owns a queue is the engine's rule, vectorized or not, called in `mapInArrow` (by `in_workers`), never
  restated here.
"""
