"""`rmqlb help`."""

from typing import Annotated

import typer

from rmqlb.cli.help_pages import commands, help_page
from rmqlb.errors import UsageError
from rmqlb.model.snapshot import suggestion


def help(  # noqa: A001 - the command's name
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="[COMMAND…]", help="Of which; without it the commands are listed.", show_default=False),
    ] = None,
) -> None:
    """Show the help of a command, as its --help does.

    Examples:
      rmqlb help plan-rebalance

      rmqlb help pipeline run

    Exit codes: 0 done, 2 there is no such command.
    """
    page = help_page(words or ())
    if page is None:
        name = " ".join(words or ())
        raise UsageError(f"no such command '{name}'", hint=suggestion("commands", name, commands()))
    typer.echo(page, nl=False)
