"""Where a warehouse's tables are: a folder of this machine, or Delta Lake tables at any URI that Spark reaches.

Stages do not know which. `storage.py` says what a storage can do; `docs/explanation/warehouse.md` says why these two.
"""
