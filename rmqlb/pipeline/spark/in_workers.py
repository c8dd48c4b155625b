"""Steps that run in Spark's Python processes, and the code that is sent there.

Of what is raised there, Spark carries nothing but the text of the traceback. So an error of ours has its code and hint
noted in it, and `spark_errors.py` reads them from there.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import ZipFile

import rmqlb
from rmqlb.errors import RmqlbError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from rmqlb.pipeline.spark.progress import Count

Batches = Iterator[Any]
"""Of Arrow."""


def in_workers(
    frame: DataFrame, step: Callable[[Batches], Batches], schema: str, count: Count | None = None
) -> DataFrame:
    """`mapInArrow`, but errors of ours keep their code and hint; `count` counts the rows that the step is done with."""
    return frame.mapInArrow(_Noting(step if count is None else partial(_counted, step, count)), schema)


def _counted(step: Callable[[Batches], Batches], count: Count, batches: Batches) -> Batches:
    def each() -> Batches:
        for batch in batches:
            yield batch
            count.add(batch.num_rows)

    return step(each())


class _Noting:
    """The step. It is unpickled where errors are noted, because that runs a user's file, which may raise as well."""

    def __init__(self, step: Callable[[Batches], Batches]) -> None:
        from pyspark import cloudpickle

        self._pickled: bytes = cloudpickle.dumps(step)  # type: ignore[no-untyped-call]

    def __call__(self, batches: Batches) -> Batches:
        try:
            yield from pickle.loads(self._pickled)(batches)  # noqa: S301 - pickled above
        except RmqlbError as error:
            error.add_note(f"code: {error.code}")
            if error.hint is not None:
                error.add_note(f"hint: {error.hint}")
            raise


def package_zip(folder: str) -> str | None:
    """Write a file that Python can import from; None when rmqlb is itself in one: whoever made that sends it too."""
    package = Path(rmqlb.__file__).parent
    if not package.is_dir():
        return None
    path = os.path.join(folder, "rmqlb.zip")
    with ZipFile(path, "w") as archive:
        for source in sorted(package.rglob("*.py")):
            archive.write(source, source.relative_to(package.parent))
    return path
