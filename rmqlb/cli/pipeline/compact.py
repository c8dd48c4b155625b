"""`rmqlb pipeline compact`."""

from typing import Annotated

from rmqlb.cli.common.options import OutputOptions, command
from rmqlb.cli.pipeline.options import OnlyOptions, StageOptions, warehouse_option


@command
def compact(
    *,
    keep: Annotated[
        str | None,
        warehouse_option(metavar="TIME", help="Remove snapshots this much older than the newest; default: none."),
    ] = None,
    stage: StageOptions,
    output: OutputOptions,
) -> None:
    """Put the tables' rows in fewer files, and remove old snapshots.

    What is removed is not ingested again. Tables that were made from removed snapshots are rebuilt by the next run.

    Examples:
      rmqlb pipeline compact -w warehouse

      rmqlb pipeline compact -w warehouse --keep 90d

    Exit codes: 0 done, 2 usage, 4 data is contradictory, 5 master or storage cannot be reached.
    """
    from rmqlb.cli.pipeline.run_stages import run_stages
    from rmqlb.verbs import amounts

    days = None if keep is None else amounts.days(keep, "--keep")
    run_stages(["compact"], OnlyOptions(), stage, output, keep_days=days)
