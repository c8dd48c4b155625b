"""The data pipeline: a whole fleet on Spark, from snapshots to a report.

Rules of this folder:
- It is the only importer of pyspark, pyarrow, pandas and matplotlib, and only the `rmqlb pipeline` commands import it.
- A step is a function DataFrame → DataFrame; both schemas have names, in `schemas.py`. No step runs a job: jobs run
  where a table is written (`warehouse.py`).
- The DataFrame API alone is used outside `session.py`, so that Spark Connect runs the same code.
- What decides who owns a queue is the engine's or the kernels' rule, called in `mapInArrow`, never restated here.
"""
