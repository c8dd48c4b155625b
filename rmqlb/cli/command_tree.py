"""Commands, by module, and how their command lines are read.

A command's module is imported when the command is called, or when all of them are listed: building the options of
every command would cost each of them its start-up.

An option that takes one value is given once; click itself keeps the last value and says nothing:
- Spellings are one option: `-g a`, `-ga`, `--group a` and `--group=a`.
- A flag may be given again.
- The environment and files give no second value: the command line goes before them.
"""

import re
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from itertools import pairwise
from typing import Any, ClassVar

import typer
from typer.core import TyperCommand, TyperOption

from rmqlb.cli import click
from rmqlb.cli.common.declare import Options
from rmqlb.cli.error_boundary import BoundedGroup
from rmqlb.cli.help_text import RichHelp, headline, offered, panel_rank
from rmqlb.cli.results import ALIASES, PANELS
from rmqlb.errors import UsageError

CONTEXT = {"help_option_names": ["-h", "--help"]}
Place = str | Callable[..., None]
"""A command's function, or the module that has a function of the command's name or an `app`."""


class CommandTree(RichHelp, BoundedGroup):
    """A group of commands, loaded when they are called, in the order of the help."""

    found: ClassVar[Mapping[str, Place]]

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(self.found)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in self.found and cmd_name not in self.commands:
            command = _load(cmd_name, self.found[cmd_name])
            if ctx.parent is None:
                _place(command, cmd_name)
            self.add_command(command, cmd_name)
        return self.commands.get(cmd_name)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """The command to run (raises UsageError with the name that may be meant)."""
        args = [ALIASES.get(args[0], args[0]) if ctx.parent is None else args[0], *args[1:]]
        if args[0] not in self.found and not ctx.resilient_parsing:
            from rmqlb.cli.meant import command_hint

            hint = command_hint(args[0], list(self.found), first=ctx.parent is None)
            raise UsageError(f"no such command '{args[0]}'", hint=hint or f"see {ctx.command_path} --help")
        return super().resolve_command(ctx, args)


def grouped(name: str, commands: Mapping[str, Place]) -> typer.Typer:
    """An app with these commands; it still needs a callback."""
    return typer.Typer(
        name=name,
        cls=type("_Commands", (CommandTree,), {"found": commands}),
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
        context_settings=CONTEXT,
    )


@cache
def _load(name: str, place: Place) -> click.Command:
    """A command with its options; made once, however many command lines a process runs."""
    function = place
    if isinstance(place, str):
        module = import_module(place)
        if hasattr(module, "app"):
            return typer.main.get_command(module.app)
        function = getattr(module, name.replace("-", "_"))
    return single_command(name, function)  # type: ignore[arg-type]


def _place(command: click.Command, name: str) -> None:
    """Put a command into its panel of the program's help, in one line, with its other name."""
    command.rich_help_panel = next((panel for panel, names in PANELS.items() if name in names), None)  # type: ignore[attr-defined]
    command.short_help = headline(command.help or "")
    command.name = ", ".join((name, *(alias for alias, known in ALIASES.items() if known == name)))
    command.hidden = name == "options"  # as kubectl's: the last line of each help names it


def single_command(name: str, function: Callable[..., None]) -> click.Command:
    """A command with its options, made of a function that `declare.command` spread."""
    single = typer.Typer(add_completion=False, context_settings=CONTEXT, rich_markup_mode="rich")
    single.command(name, cls=SingleCommand)(function)
    command = typer.main.get_command(single)
    command.groups = getattr(function, "groups", ())  # type: ignore[attr-defined]
    command.params.sort(key=panel_rank)
    for parameter in command.params:
        parameter._custom_shell_complete = offered  # noqa: SLF001 - Typer's own way in does not name the parameter
    return command


class SingleCommand(RichHelp, TyperCommand):
    """A command that refuses a second value where one is meant."""

    groups: tuple[type[Options], ...] = ()

    def make_parser(self, ctx: click.Context) -> click.OptionParser:
        parser = _OnceParser(ctx)
        for parameter in self.get_params(ctx):
            parameter.add_to_parser(parser, ctx)
        return parser


class _OnceParser(click.OptionParser):
    """Collects all values of each option, and passes on the only one of those that take one."""

    def add_option(self, *, action: str, **more: Any) -> None:  # type: ignore[override]
        """As of click; an option that would keep its last value keeps all of them until they are counted."""
        super().add_option(action=action.replace("store", "append"), **more)

    def parse_args(self, args: list[str]) -> tuple[dict[str, Any], list[str], list[Any]]:
        if "--set" in self._long_opt and self.ctx is not None:
            from rmqlb.cli.common.set_option import as_settings

            args = as_settings(self.ctx.command.groups, args, self._long_opt)  # type: ignore[attr-defined]
        given = [*args]  # the parser takes words away
        found, left, order = super().parse_args(args)
        for word, after in pairwise(given):
            if word == "--watch" and re.fullmatch(r"[\d.]+[a-z]*", after):
                raise UsageError(f"--watch {after}: --watch takes no value", hint=f"write --watch --every {after}")
        for option in dict.fromkeys(order):
            if isinstance(option, TyperOption) and not option.multiple:
                values = found[str(option.name)]
                if len(values) > 1 and not option.is_flag and self.ctx is not None and not self.ctx.resilient_parsing:
                    raise _given_twice(option, values)
                found[str(option.name)] = values[-1]
        return found, left, order


def _given_twice(option: TyperOption, values: list[str]) -> UsageError:
    from rmqlb.sources.source_text import shown_source

    name, shown = max(option.opts, key=len), " and ".join(map(shown_source, values))
    hint = "run the command once for each" if name in ("--group", "--topic") else f"pass {name} once"
    return UsageError(f"{name} takes one value, but got {len(values)}: {shown}", hint=hint, code="given-twice")
