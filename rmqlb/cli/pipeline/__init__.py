"""`rmqlb pipeline`: a whole fleet on Spark, stage by stage.

A command's module imports nothing of Spark before the command runs.
"""

from __future__ import annotations

from rmqlb.cli.command_tree import grouped, in_package

COMMANDS = (
    "generate",
    "ingest",
    "allocate",
    "score",
    "what-if",
    "size",
    "sweep",
    "producers",
    "history",
    "report",
    "run",
    "compact",
)

app = grouped("pipeline", in_package("rmqlb.cli.pipeline", COMMANDS))


@app.callback()
def pipeline() -> None:
    """Judge a whole fleet of groups and topics on Spark, stage by stage.

    Every group under every strategy, after every change, with every loss, and of every size; every topic's producers;
    and how ownership moved from snapshot to snapshot. Each stage reads and writes tables in a warehouse, a folder of
    Parquet files or Delta Lake tables at a URI; run does them all. It needs the extra packages of rmqlb[pipeline].
    """
