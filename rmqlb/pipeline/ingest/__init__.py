"""Stage 1: documents become rows of the tables that all other stages read.

`documents.py` and `rows.py` are Python alone; `in_arrow.py` runs them in Spark's Python processes; `steps.py` are the
steps around that; `ingest.py` is one run, from the paths to the tables.
"""
