"""`rmqlb pipeline run`.

Typer reads the annotations when the program starts, so they are values here, not text.
"""

from typing import Annotated

from typer import Argument, Option

from rmqlb.cli.common.options import OutputOptions, StrategyOptions, command
from rmqlb.cli.pipeline.options import (
    WHICH,
    AsOfOptions,
    OnlyOptions,
    ScheduleOptions,
    SparkOptions,
    StrategiesOptions,
    WarehouseOptions,
)


@command
def run(
    *,
    paths: Annotated[
        list[str] | None,
        Argument(metavar="PATH…", help="What to ingest first: files, folders, patterns or URLs.", show_default=False),
    ] = None,
    cluster: Annotated[str | None, Option(metavar="NAME", help="The cluster that they are of.")] = None,
    to: Annotated[
        str | None, Option(metavar="DIR", help="The report's folder; default: report in the warehouse.")
    ] = None,
    top: Annotated[int, Option(min=1, max=1000, help="How many rows a list of the page has.")] = 20,
    only: OnlyOptions,
    as_of: AsOfOptions,
    strategies: StrategiesOptions,
    include_retry: Annotated[
        bool, Option("--include-retry", help="The groups' %RETRY% topics too.", rich_help_panel=WHICH)
    ] = False,
    members: Annotated[
        int,
        Option(min=0, max=64, help="What-if: how many members more and fewer.", rich_help_panel=WHICH),
    ] = 2,
    strategy_options: StrategyOptions,
    schedule: ScheduleOptions,
    where: WarehouseOptions,
    spark: SparkOptions,
    output: OutputOptions,
) -> None:
    """Do all stages, those that have something to do.

    Without a path, what was ingested before is taken as it is.

    Examples:
      rmqlb pipeline run -w warehouse dumps/

      rmqlb pipeline run -w warehouse --only cluster=east --members 3 -o json

    Exit codes: 0 done, 2 usage, 4 a table is not there or data is contradictory, 5 the master cannot be reached.
    """
    from rmqlb.cli.pipeline.plan import plan_for
    from rmqlb.cli.pipeline.run_stages import run_stages
    from rmqlb.pipeline.stages import STAGES

    inputs = tuple(paths or ())
    chosen = {"inputs": inputs, "cluster": cluster, "report_to": to, "top": top}
    chosen |= {"include_retry": include_retry, "members": members}
    plan = plan_for(where, only, as_of, strategies, strategy_options, schedule, **chosen)
    stages = [name for name in STAGES if inputs or name != "ingest"]
    run_stages("pipeline run", stages, plan, where, spark, output)
