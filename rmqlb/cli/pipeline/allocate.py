"""`rmqlb pipeline allocate`."""

from rmqlb.cli.common.options import OutputOptions, StrategyOptions, command
from rmqlb.cli.pipeline.options import IncludeRetry, StageOptions, StrategiesOptions


@command
def allocate(
    *,
    which: StrategiesOptions,
    include_retry: IncludeRetry = False,
    strategy_options: StrategyOptions,
    stage: StageOptions,
    output: OutputOptions,
) -> None:
    """Predict the owner of every queue of every group under every strategy.

    Reads what ingest wrote; writes the tables assignments and refusals.

    Examples:
      rmqlb pipeline allocate -w warehouse

      rmqlb pipeline allocate -w warehouse --strategy AVG --strategy CONSISTENT_HASH --only cluster=east

    Exit codes: 0 done, 2 usage, 4 a table is not there or data is contradictory, 5 master or storage cannot be reached.
    """
    from rmqlb.cli.pipeline.run_stages import run_stages

    run_stages(["allocate"], which, stage, output, strategies=strategy_options, include_retry=include_retry)
