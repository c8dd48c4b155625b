"""`rmqlb pipeline report`."""

from typing import Annotated

from typer import Option

from rmqlb.cli.common.options import OutputOptions, command
from rmqlb.cli.pipeline.options import OnlyOptions, StageOptions


@command
def report(
    *,
    to: Annotated[
        str | None, Option(metavar="DIR", help="The report's folder; default: report in the warehouse.")
    ] = None,
    top: Annotated[int, Option(min=1, max=1000, help="How many rows a list of the page has.")] = 20,
    stage: StageOptions,
    output: OutputOptions,
) -> None:
    """Write the tables as CSV and Parquet, and one page with plots that needs nothing else.

    Examples:
      rmqlb pipeline report -w warehouse --to report

    Exit codes: 0 done, 2 usage, 4 a table is not there or data is contradictory, 5 the master cannot be reached.
    """
    from rmqlb.cli.pipeline.run_stages import run_stages

    run_stages(["report"], OnlyOptions(), stage, output, report_to=to, top=top)
