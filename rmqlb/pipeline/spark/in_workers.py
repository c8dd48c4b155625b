"""Steps that run in Spark's Python processes.

Of what is raised there, Spark carries nothing but the text of the traceback to the driver. So an error of ours has its
code and its hint noted in it, and `spark_errors.py` reads them from there.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from rmqlb.errors import RmqlbError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Batches = Iterator[Any]
"""Of Arrow."""


def in_workers(frame: DataFrame, step: Callable[[Batches], Batches], schema: str) -> DataFrame:
    """`mapInArrow`, but errors of ours keep their code and hint.

    Args:
        frame: the rows.
        step: record batches of them → record batches of the result.
        schema: the result's columns.
    """
    return frame.mapInArrow(_Noting(step), schema)


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
