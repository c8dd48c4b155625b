"""`rmqlb pipeline allocate`.

Typer reads the annotations when the program starts, so they are values here, not text.
"""

from typing import Annotated

from typer import Option

from rmqlb.cli.common.options import OutputOptions, StrategyOptions, command
from rmqlb.cli.pipeline.options import (
    WHICH,
    AsOfOptions,
    OnlyOptions,
    SparkOptions,
    StrategiesOptions,
    WarehouseOptions,
)


@command
def allocate(
    *,
    only: OnlyOptions,
    as_of: AsOfOptions,
    strategies: StrategiesOptions,
    include_retry: Annotated[
        bool, Option("--include-retry", help="The groups' %RETRY% topics too.", rich_help_panel=WHICH)
    ] = False,
    strategy_options: StrategyOptions,
    where: WarehouseOptions,
    spark: SparkOptions,
    output: OutputOptions,
) -> None:
    """Deal out every queue of every group under every strategy.

    Reads what ingest wrote; writes the tables fleet, assignments and refusals.

    Examples:
      rmqlb pipeline allocate -w warehouse

      rmqlb pipeline allocate -w warehouse --strategy AVG --strategy CONSISTENT_HASH --only cluster=east

    Exit codes: 0 done, 2 usage, 4 a table is not there or data is contradictory, 5 the master cannot be reached.
    """
    from rmqlb.cli.pipeline.plan import plan_for
    from rmqlb.cli.pipeline.run_stages import run_stages

    plan = plan_for(where, only, as_of, strategies, strategy_options, include_retry=include_retry)
    run_stages("pipeline allocate", ("allocate",), plan, where, spark, output)
