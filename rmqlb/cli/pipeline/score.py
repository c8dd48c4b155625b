"""`rmqlb pipeline score`."""

from rmqlb.cli.common.options import OutputOptions, command
from rmqlb.cli.pipeline.options import OnlyOptions, StageOptions


@command
def score(*, which: OnlyOptions, stage: StageOptions, output: OutputOptions) -> None:
    """Judge each group under each strategy: queues and lag per consumer, imbalance, idle, unassigned, mismatches.

    Reads what allocate wrote; writes the tables loads and scores.

    Examples:
      rmqlb pipeline score -w warehouse

    Exit codes: 0 done, 2 usage, 4 a table is not there or data is contradictory, 5 master or storage cannot be reached.
    """
    from rmqlb.cli.pipeline.run_stages import run_stages

    run_stages(["score"], which, stage, output)
