"""What pyspark and py4j log on the Python side goes to Spark's log file too, not to the terminal."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

# pyspark gives each of these a handler of its own that writes to the terminal, whatever the root logger has.
_OWN_HANDLER = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")


@contextmanager
def logged_to(log_file: str | None) -> Iterator[None]:
    """Python's log records go to the file, or nowhere, until the block ends.

    Args:
        log_file: is appended to; None when another program has the log.
    """
    from pyspark.logger import PySparkLogger

    handler: logging.Handler = logging.NullHandler()
    if log_file is not None:
        handler = logging.FileHandler(log_file, encoding="utf-8", delay=True)
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    own: list[logging.Logger] = [PySparkLogger.getLogger(name) for name in _OWN_HANDLER]
    before = [(logger, logger.handlers) for logger in own]
    for logger in own:
        logger.handlers = [handler]
        logger.propagate = False
    # With no handler at the root, py4j's records would install one that writes to the terminal, for good.
    logging.getLogger().addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)
        for logger, handlers in before:
            logger.handlers = handlers
        handler.close()
