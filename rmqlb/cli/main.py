"""The command tree.

A command's module is imported when the command is called, or when all of them are listed: building the options of
every command would cost each of them its start-up.
"""

from __future__ import annotations

from importlib import import_module
from typing import Annotated, Any

import typer
from typer import _click as click

from rmqlb.cli.boundary import BoundedGroup
from rmqlb.version import __version__

COMMANDS = ("fetch-routes", "show-route", "show-owners", "plan-rebalance", "simulate-send")
"""The verbs, each a function of its own name in a module of its own name."""


class CommandTree(BoundedGroup):
    """The commands, loaded when they are asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """The names, in the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - likewise
        """The command of that name, or None."""
        if cmd_name in COMMANDS and cmd_name not in self.commands:
            self.add_command(_load(cmd_name), cmd_name)
        return self.commands.get(cmd_name)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """The command to run; all of them are loaded when the name is wrong, so that one can be suggested."""
        if args[0] not in COMMANDS:
            for name in COMMANDS:
                self.get_command(ctx, name)
        return super().resolve_command(ctx, args)


def _load(name: str) -> click.Command:
    function = name.replace("-", "_")
    single = typer.Typer(add_completion=False, context_settings=_CONTEXT, rich_markup_mode="rich")
    single.command(name)(getattr(import_module(f"rmqlb.cli.{function}"), function))
    return typer.main.get_command(single)


_CONTEXT = {"help_option_names": ["-h", "--help"]}

app = typer.Typer(
    name="rmqlb",
    cls=CommandTree,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings=_CONTEXT,
)


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

    A source (-s) is the NameServers' or a Dashboard's URL, a dump file, or - for stdin. rmqlb only reads; it changes
    nothing.
    """
