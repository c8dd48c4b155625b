"""Stage 1: documents become rows of the tables that all other stages read; `ingest_stage.py` is one run of it."""
