"""`rmqlb pipeline run`."""

from typing import Annotated

from typer import Argument, Option

from rmqlb.cli.common.options import OutputOptions, StrategyOptions, command
from rmqlb.cli.pipeline.options import (
    IncludeRetry,
    LossOptions,
    ReportFolder,
    ScheduleOptions,
    SizeOptions,
    StageOptions,
    StrategiesOptions,
    Top,
    which_option,
)


@command
def run(
    *,
    paths: Annotated[
        list[str] | None,
        Argument(metavar="PATH…", help="What to ingest first: files, folders, patterns or URLs.", show_default=False),
    ] = None,
    cluster: Annotated[str | None, Option(metavar="NAME", help="The cluster that they are of.")] = None,
    to: ReportFolder = None,
    top: Top = 20,
    which: StrategiesOptions,
    include_retry: IncludeRetry = False,
    consumers: Annotated[int, which_option(min=0, max=64, help="What-if: how many consumers more and fewer.")] = 2,
    sizes: SizeOptions,
    losses: LossOptions,
    strategy_options: StrategyOptions,
    schedule: ScheduleOptions,
    stage: StageOptions,
    output: OutputOptions,
) -> None:
    """Do all stages, those that have something to do.

    Without a path, what was ingested before is taken as it is.

    Examples:
      rmqlb pipeline run -w warehouse dumps/

      rmqlb pipeline run -w warehouse --only cluster=east --consumers 3 -o json

    Exit codes: 0 done, 2 usage, 4 a table is not there or data is contradictory, 5 master or storage cannot be reached.
    """
    from rmqlb.cli.pipeline.run_stages import run_stages
    from rmqlb.pipeline.stages import STAGES

    run_stages(
        [name for name in STAGES if paths or name != "ingest"],
        which,
        stage,
        output,
        command="pipeline run",
        strategies=strategy_options,
        schedule=schedule,
        sizes=sizes,
        losses=losses,
        inputs=tuple(paths or ()),
        cluster=cluster,
        report_to=to,
        top=top,
        include_retry=include_retry,
        consumers=consumers,
    )
