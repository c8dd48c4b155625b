"""Stages 2 to 4: who owns which queue of which group, how evenly, and what if.

`fleet.py` puts a group into one row; `group_batch.py` reads such rows as flat arrays; `dealing.py` deals them out by
the kernels, `by_engine.py` by the engine; `allocate.py`, `score.py` and `what_if.py` (with `sweep.py`) are the stages.
"""
