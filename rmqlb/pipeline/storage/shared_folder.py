"""Whether the machines of a cluster see a folder of this machine, asked before a stage counts on it.

A folder of the same name that is another one on each machine takes all rows without an error: each executor writes into
its own, and nobody finds them again.
"""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING
from uuid import uuid4

from rmqlb.errors import UsageError
from rmqlb.pipeline.spark.settings import is_local

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_FILES = 16
"""As many tasks, so that they meet more than one machine."""


def must_be_shared(spark: SparkSession, folder: str) -> None:
    """Executors write some small files, which are then here; a UsageError when one is not. One job.

    Executors that come later, or had none of the tasks, are not asked.
    """
    if is_local(spark.conf.get("spark.master", "") or ""):
        return
    path = os.path.join(folder, f"_shared-{uuid4().hex}")
    try:
        spark.range(0, _FILES, 1, _FILES).write.csv(f"file://{path}")
        found = sum(name.startswith("part-") for name in os.listdir(path)) if os.path.isdir(path) else 0
    finally:
        shutil.rmtree(path, ignore_errors=True)
    if found < _FILES:
        raise UsageError(
            f"--warehouse {folder}: of {_FILES} files that Spark's machines wrote there, this machine sees {found}",
            hint="mount one folder under this name on all of them, or name a URI such as hdfs://namenode/rmqlb",
            code="folder-not-shared",
        )
