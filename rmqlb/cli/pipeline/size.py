"""`rmqlb pipeline size`."""

from rmqlb.cli.common.options import OutputOptions, StrategyOptions, command
from rmqlb.cli.pipeline.options import IncludeRetry, SizeOptions, StageOptions, StrategiesOptions


@command
def size(
    *,
    which: StrategiesOptions,
    include_retry: IncludeRetry = False,
    sizes: SizeOptions,
    strategy_options: StrategyOptions,
    stage: StageOptions,
    output: OutputOptions,
) -> None:
    """Find the fewest consumers for every group, as size-group does, under the strategy that it runs.

    Reads what ingest, allocate and score wrote; writes the table sizes. Groups that consume by POP, and others whose
    queues are not their consumers' to share, have the reason there.

    Examples:
      rmqlb pipeline size -w warehouse

      rmqlb pipeline size -w warehouse --max-imbalance 1.25 --survive 1 --survive-broker

    Exit codes: 0 done, 2 usage, 4 a table is not there or data is contradictory, 5 master or storage cannot be reached.
    """
    from rmqlb.cli.pipeline.run_stages import run_stages

    run_stages(["size"], which, stage, output, strategies=strategy_options, include_retry=include_retry, sizes=sizes)
