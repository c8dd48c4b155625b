"""`rmqlb pipeline sweep`."""

from rmqlb.cli.common.options import OutputOptions, StrategyOptions, command
from rmqlb.cli.pipeline.options import IncludeRetry, LossOptions, StageOptions, StrategiesOptions


@command
def sweep(
    *,
    which: StrategiesOptions,
    include_retry: IncludeRetry = False,
    losses: LossOptions,
    strategy_options: StrategyOptions,
    stage: StageOptions,
    output: OutputOptions,
) -> None:
    """Lose every consumer, broker, master and host alone, as sweep-failures does, and hold limits against each group.

    Reads what ingest, allocate and score wrote; writes the tables worst_losses and broken_limits. Groups that consume
    by POP, and others whose queues are not their consumers' to share, have the reason there.

    Examples:
      rmqlb pipeline sweep -w warehouse

      rmqlb pipeline sweep -w warehouse --limit imbalance=1.5 --limit minConsumers=2

    Exit codes: 0 done, 2 usage, 4 a table is not there or data is contradictory, 5 master or storage cannot be reached.
    """
    from rmqlb.cli.pipeline.run_stages import run_stages

    run_stages(["sweep"], which, stage, output, strategies=strategy_options, include_retry=include_retry, losses=losses)
