"""What pyspark and py4j log on the Python side goes to Spark's log file too, not to the terminal."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

# pyspark gives each of these a handler that writes to the terminal, unless it has one.
_OWN_HANDLER = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")


@contextmanager
def logged_to(log_file: str | None) -> Iterator[None]:
    """Python's log records go to the file until the block ends; None: nowhere, another program has the log."""
    from pyspark.logger import PySparkLogger

    handler: logging.Handler = logging.NullHandler()
    if log_file is not None:
        handler = logging.FileHandler(log_file, encoding="utf-8", delay=True)
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    for name in _OWN_HANDLER:
        logger: logging.Logger = PySparkLogger.getLogger(name)
        logger.handlers, logger.propagate = [logging.NullHandler()], True
    # With no handler at the root, py4j's records would install one that writes to the terminal, for good.
    logging.getLogger().addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)
        handler.close()
