"""A group of commands, each in a module of its own.

A command's module is imported when the command is called, or when all of them are listed: building the options of
every command would cost each of them its start-up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
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
    """A group of commands, loaded when they are called, in the order of the help."""

    found: ClassVar[Mapping[str, str | Callable[..., None]]]

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(self.found)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - likewise
        if cmd_name in self.found and cmd_name not in self.commands:
            self.add_command(_load(cmd_name, self.found[cmd_name]), cmd_name)
        return self.commands.get(cmd_name)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """The command to run; all of them are loaded when the name is wrong, so that one can be suggested."""
        if args[0] not in self.found:
            for name in self.found:
                self.get_command(ctx, name)
        return super().resolve_command(ctx, args)


def grouped(name: str, commands: Mapping[str, str | Callable[..., None]]) -> typer.Typer:
    """An app with these commands; it still needs a callback.

    Args:
        name: what is typed.
        commands: name → the function, or the module that has a function of that name or an `app`.
    """
    return typer.Typer(
        name=name,
        cls=type("_Commands", (CommandTree,), {"found": commands}),
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
        context_settings=CONTEXT,
    )


def in_package(home: str, names: Iterable[str]) -> dict[str, str | Callable[..., None]]:
    return {name: f"{home}.{name.replace('-', '_')}" for name in names}


@cache
def _load(name: str, place: str | Callable[..., None]) -> click.Command:
    """A command with its options; made once, however many command lines a process runs."""
    if isinstance(place, str):
        module = import_module(place)
        if hasattr(module, "app"):
            return typer.main.get_command(module.app)
        function: Callable[..., None] = getattr(module, name.replace("-", "_"))
    else:
        function = place
    single = typer.Typer(add_completion=False, context_settings=CONTEXT, rich_markup_mode="rich")
    single.command(name, cls=SingleCommand)(function)
    command = typer.main.get_command(single)
    for parameter in command.params:
        parameter._custom_shell_complete = _values  # noqa: SLF001 - Typer's own way in does not name the parameter
    return command


def _values(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[click.CompletionItem]:
    from rmqlb.cli.offered_values import values

    return values(ctx, param, incomplete)
