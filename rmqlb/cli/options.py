"""`rmqlb options`: the options that commands share, as `kubectl options` lists them."""

from typing import cast

from rmqlb.cli import click
from rmqlb.cli.command_tree import SingleCommand, single_command
from rmqlb.cli.common.declare import command
from rmqlb.cli.common.options import OutputOptions, SourceOptions
from rmqlb.cli.common.show_or_watch import WatchOptions


@command
def _shared(source: SourceOptions, output: OutputOptions, watching: WatchOptions) -> None:
    """Connection, login and TLS of commands that read a cluster, and output of all commands."""


def options() -> None:
    """List the options that commands share: connection, login, TLS and output.

    Examples:
      rmqlb options

    Exit codes: 0 done, 2 usage.
    """
    shared = cast("SingleCommand", single_command("COMMAND", _shared))
    context = click.Context(shared, info_name="rmqlb COMMAND")
    shared.format_whole_help(context, context.make_formatter())
