"""`rmqlb pipeline report`."""

from rmqlb.cli.common.options import OutputOptions, command
from rmqlb.cli.pipeline.options import OnlyOptions, ReportFolder, StageOptions, Top


@command
def report(
    *,
    to: ReportFolder = None,
    top: Top = 20,
    stage: StageOptions,
    output: OutputOptions,
) -> None:
    """Write the tables as CSV and Parquet, and one page with plots that needs nothing else.

    Examples:
      rmqlb pipeline report -w warehouse --to report

    Exit codes: 0 done, 2 usage, 4 a table is not there or data is contradictory, 5 master or storage cannot be reached.
    """
    from rmqlb.cli.pipeline.run_stages import run_stages

    run_stages(["report"], OnlyOptions(), stage, output, report_to=to, top=top)
