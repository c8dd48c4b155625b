from typing import Annotated

import typer

from rmqlb.cli.command_tree import grouped
from rmqlb.cli.results import COMMANDS, module_of
from rmqlb.version import __version__

app = grouped("rmqlb", {name: f"rmqlb.{module_of(name)}" for name in COMMANDS})


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"rmqlb {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("-V", "--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Predict, explain and simulate which RocketMQ consumers get which queues.

    A source (-s) is the URL of NameServers or of a Dashboard, a file, or - for stdin. rmqlb only reads the cluster and
    never changes it.

    Examples:
      rmqlb show-groups -s examples/cluster.json
      rmqlb plan-rebalance -s examples/cluster.json --group order-svc --add 1

    rmqlb COMMAND --help shows help, rmqlb options lists shared options, -V prints the version.

    Exit codes: 0 done, 1 unexpected failure, 2 usage, 3 a --fail-on condition is met or a limit of a policy failed,
    4 data is missing or contradictory, 5 endpoint unreachable, 130 interrupted.
    """
