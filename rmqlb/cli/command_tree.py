"""A group of commands, each in a module of its own.

A command's module is imported when the command is called, or when all of them are listed: building the options of
every command would cost each of them its start-up.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any, ClassVar

import typer

from rmqlb.cli import click
from rmqlb.cli.error_boundary import BoundedGroup
from rmqlb.cli.given_once import SingleCommand
from rmqlb.cli.help_text import RichHelp

CONTEXT = {"help_option_names": ["-h", "--help"]}


class CommandTree(RichHelp, BoundedGroup):
    """The commands of a package, loaded when they are asked for, in the order of the help.

    Each is a function of its own name in a module of its own name, or of the `command` of a package of that name, or a
    package with an `app` of its own.
    """

    home: ClassVar[str]
    names: ClassVar[tuple[str, ...]]

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(self.names)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - likewise
        if cmd_name in self.names and cmd_name not in self.commands:
            self.add_command(_load(self.home, cmd_name), cmd_name)
        return self.commands.get(cmd_name)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """The command to run; all of them are loaded when the name is wrong, so that one can be suggested."""
        if args[0] not in self.names:
            for name in self.names:
                self.get_command(ctx, name)
        return super().resolve_command(ctx, args)


class PlainCommands(RichHelp, BoundedGroup):
    """The commands of one file, in their order there."""


def grouped(name: str, home: str, names: tuple[str, ...]) -> typer.Typer:
    """An app with these commands of a package; it still needs a callback."""
    return typer.Typer(
        name=name,
        cls=type("_Commands", (CommandTree,), {"home": home, "names": names}),
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
        context_settings=CONTEXT,
    )


@cache
def _load(home: str, name: str) -> click.Command:
    """A command with its options; made once, however many command lines a process runs."""
    function = name.replace("-", "_")
    module = import_module(f"{home}.{function}")
    if hasattr(module, "app"):
        return typer.main.get_command(module.app)
    if not hasattr(module, function):
        module = import_module(f"{home}.{function}.command")
    single = typer.Typer(add_completion=False, context_settings=CONTEXT, rich_markup_mode="rich")
    single.command(name, cls=SingleCommand)(getattr(module, function))
    return typer.main.get_command(single)
