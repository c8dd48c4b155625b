"""`rmqlb pipeline producers`."""

from rmqlb.cli.common.options import OutputOptions, command
from rmqlb.cli.pipeline.options import AsOfOptions, ScheduleOptions, StageOptions


@command
def producers(*, which: AsOfOptions, schedule: ScheduleOptions, stage: StageOptions, output: OutputOptions) -> None:
    """Simulate what the producers of every topic send while brokers fail, many trials each.

    Reads what ingest wrote; writes the tables sends and send_shares.

    Examples:
      rmqlb pipeline producers -w warehouse

      rmqlb pipeline producers -w warehouse --fail 'broker-b@30s-' --rate 100 --for 2m --trials 1000

    Exit codes: 0 done, 2 usage, 4 a table is not there or data is contradictory, 5 master or storage cannot be reached.
    """
    from rmqlb.cli.pipeline.run_stages import run_stages

    run_stages(["producers"], which, stage, output, schedule=schedule)
