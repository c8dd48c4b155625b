"""`rmqlb pipeline what-if`."""

from typing import Annotated

from rmqlb.cli.common.options import OutputOptions, StrategyOptions, command
from rmqlb.cli.pipeline.options import IncludeRetry, StageOptions, StrategiesOptions, which_option


@command
def what_if(
    *,
    which: StrategiesOptions,
    include_retry: IncludeRetry = False,
    consumers: Annotated[int, which_option(min=0, max=64, help="How many consumers more and fewer.")] = 2,
    strategy_options: StrategyOptions,
    stage: StageOptions,
    output: OutputOptions,
) -> None:
    """Change every group: more or fewer consumers, each broker lost, each other strategy.

    Reads what ingest wrote; writes the tables what_if and broker_losses.

    Examples:
      rmqlb pipeline what-if -w warehouse --consumers 3

    Exit codes: 0 done, 2 usage, 4 a table is not there or data is contradictory, 5 master or storage cannot be reached.
    """
    from rmqlb.cli.pipeline.run_stages import run_stages

    run_stages(
        ["what-if"],
        which,
        stage,
        output,
        strategies=strategy_options,
        include_retry=include_retry,
        consumers=consumers,
    )
