"""`rmqlb pipeline history`."""

from rmqlb.cli.common.options import OutputOptions, command
from rmqlb.cli.pipeline.options import OnlyOptions, StageOptions


@command
def history(*, which: OnlyOptions, stage: StageOptions, output: OutputOptions) -> None:
    """Follow ownership over all snapshots: sessions, queues moved per day, flapping groups, churn, imbalance.

    Reads what ingest wrote; writes the tables sessions, moves, flapping, churn and trend. Goes on from the last run;
    clusters in which a snapshot came late or was replaced are computed from the start.

    Examples:
      rmqlb pipeline history -w warehouse --only cluster=east

    Exit codes: 0 done, 2 usage, 4 a table is not there or data is contradictory, 5 master or storage cannot be reached.
    """
    from rmqlb.cli.pipeline.run_stages import run_stages

    run_stages(["history"], which, stage, output)
