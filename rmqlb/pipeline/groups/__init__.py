"""Stages 2 to 4: who owns which queue of which group, how evenly, and what if.

`fleet.py` puts a group into one row; `group_batch.py` reads such rows as flat arrays; `batch_allocator.py` allocates
their queues vectorized, `engine_fallback.py` by the engine; `assignment_rows.py`, `score_rows.py` and
`what_if_rows.py` (with `sweep.py`) are the stages.
"""
