"""The command tree and its entry point."""

from __future__ import annotations

from typing import Annotated

import typer

from rmqlb.cli.boundary import BoundedGroup
from rmqlb.cli.plan_rebalance import plan_rebalance
from rmqlb.cli.show_owners import show_owners
from rmqlb.cli.show_route import show_route
from rmqlb.version import __version__

app = typer.Typer(
    name="rmqlb",
    cls=BoundedGroup,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("show-route")(show_route)
app.command("show-owners")(show_owners)
app.command("plan-rebalance")(plan_rebalance)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"rmqlb {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Know, before it happens, what a RocketMQ cluster's clients will do with their queues.

    A source (-s) is a Dashboard's URL, a dump file, or - for stdin. rmqlb only reads; it changes nothing.
    """


def run() -> None:
    """What the installed command and `python -m rmqlb` start."""
    app(prog_name="rmqlb")
