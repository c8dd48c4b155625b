"""Stage 1: documents become rows of the tables that all other stages read.

`rmqlb.sources.dump.read_document` reads; `document_ids.py` and `snapshot_rows.py` name the documents and make rows, in
Python alone; `arrow_udf.py` runs them in Spark's Python processes; `ingest_steps.py` are the steps around that;
`ingest_stage.py` is one run, from the paths to the tables.
"""
