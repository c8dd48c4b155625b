"""The command tree as values, from which the manual is made, with each command's help taken apart.

The form of the docstrings: the first paragraph is the summary; `Examples:` opens indented commands; `Exit codes:` lists
the exit codes; a line that ends in a colon above indented lines opens a list. A test holds every command to it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from inspect import cleandoc

import typer
from msgspec import Struct
from typer.core import TyperGroup, TyperOption

from rmqlb.cli import click
from rmqlb.cli.help_text import examples_in
from rmqlb.cli.main import app

PROGRAM = "rmqlb"
OPTIONS = "Options"
_NUMBERS = {"int": "N", "int range": "N", "float": "X", "float range": "X"}


_EXIT_CODE = re.compile(r"(\d+) ([^,\d][^\d]*?)(?:,\s*(?=\d)|\.?$)", re.DOTALL)


class Listing(Struct, frozen=True):
    """Lines that stand below a heading, each by itself."""

    heading: str
    lines: tuple[str, ...]


class HelpText(Struct, frozen=True):
    """A command's help."""

    summary: str  # one sentence
    details: tuple[str | Listing, ...] = ()  # what follows it, paragraph by paragraph
    examples: tuple[str, ...] = ()  # command lines
    exit_codes: tuple[tuple[int, str], ...] = ()  # code → what it says


class OptionPage(Struct, frozen=True):
    """An option or an argument."""

    names: tuple[str, ...]  # as typed, the short one first; none for an argument
    metavar: str | None  # what stands for its value; None for a flag
    help: str  # what it does
    panel: str = OPTIONS  # the heading that it stands below
    default: str | None = None  # as typed, or None
    variable: str | None = None  # the environment variable that sets it too, or None
    repeatable: bool = False  # it may be given several times
    required: bool = False  # it must be given
    negations: tuple[str, ...] = ()  # its `--no-…` names, of a flag that has them


class CommandPage(Struct, frozen=True):
    """A command, or a group of commands."""

    path: tuple[str, ...]  # its name, word by word; none for the program itself
    help: HelpText  # its help, taken apart
    arguments: tuple[OptionPage, ...]  # what stands behind the options, in order
    options: tuple[OptionPage, ...]  # in the order of the help
    commands: tuple[CommandPage, ...] = ()  # those below it, in the order of the help

    @property
    def page(self) -> str:
        """The name of its manual page."""
        return "-".join((PROGRAM, *self.path))

    @property
    def typed(self) -> str:
        """The command as it is typed."""
        return " ".join((PROGRAM, *self.path))

    @property
    def name(self) -> str:
        """Its last word."""
        return (PROGRAM, *self.path)[-1]

    def all(self) -> Iterator[CommandPage]:
        """This command and all below it, in the order of the help."""
        yield self
        for command in self.commands:
            yield from command.all()


@cache
def command_tree() -> CommandPage:
    """The program with all its commands; made once, which takes a tenth of a second and more."""
    return _page(typer.main.get_command(app), ())


def _page(command: click.Command, path: tuple[str, ...]) -> CommandPage:
    context = click.Context(command, info_name=path[-1] if path else PROGRAM, help_option_names=["-h", "--help"])
    params = [_option(param) for param in command.get_params(context) if not getattr(param, "hidden", False)]
    below: tuple[CommandPage, ...] = ()
    if isinstance(command, TyperGroup):
        found = [(name, command.get_command(context, name)) for name in command.list_commands(context)]
        below = tuple(_page(each, (*path, name)) for name, each in found if each is not None and not each.hidden)
    return CommandPage(
        path=path,
        help=parse_help(cleandoc(command.help or "")),
        arguments=tuple(param for param in params if not param.names),
        options=tuple(param for param in params if param.names),
        commands=below,
    )


def _option(param: click.Parameter) -> OptionPage:
    is_option = isinstance(param, TyperOption)
    is_flag = is_option and bool(getattr(param, "is_flag", False))
    return OptionPage(
        names=tuple(sorted(param.opts, key=len)) if is_option else (),
        metavar=None if is_flag else _metavar(param),
        help=" ".join((getattr(param, "help", None) or "").split()),
        panel=getattr(param, "rich_help_panel", None) or OPTIONS,
        default=_default(param, is_flag),
        variable=param.envvar if isinstance(param.envvar, str) else None,
        repeatable=bool(getattr(param, "multiple", False)) or param.nargs == -1,
        required=param.required,
        negations=tuple(param.secondary_opts),
    )


def _metavar(param: click.Parameter) -> str:
    if param.metavar:
        # Of an argument that may be left out, where the help itself shows the brackets.
        return re.sub(r"^\[([^][]*)\]$", r"\1", param.metavar)
    return _NUMBERS.get(param.type.name) or (param.name or "value").rpartition("_")[2].upper()


def _default(param: click.Parameter, is_flag: bool) -> str | None:
    """What is worth telling: a default that does something."""
    value = param.default
    if is_flag or value is None or callable(value) or isinstance(value, (list, tuple)):
        return None
    return str(value)


def parse_help(text: str) -> HelpText:
    r"""A command's help, taken apart.

    >>> parse_help("Say it.\n\nExamples:\n  rmqlb say\n  --loud\n\nExit codes: 0 done, 2 usage.").examples
    ('rmqlb say --loud',)
    """
    first, *others = [block for block in re.split(r"\n[ \t]*\n", text.strip()) if block.strip()]
    details: list[str | Listing] = []
    examples: list[str] = []
    exit_codes: tuple[tuple[int, str], ...] = ()
    for block in others:
        lines = block.split("\n")
        if lines[0] == "Examples:":
            examples += examples_in(lines[1:])
        elif lines[0].startswith("Exit codes:"):
            exit_codes = _exit_codes(_joined(lines).removeprefix("Exit codes: "))
        else:
            details.append(_block(lines))
    return HelpText(_joined(first.split("\n")), tuple(details), tuple(examples), exit_codes)


def _block(lines: list[str]) -> str | Listing:
    if lines[0].endswith(":") and len(lines) > 1 and all(line.startswith("  ") for line in lines[1:]):
        return Listing(lines[0], tuple(line.strip() for line in lines[1:]))
    return _joined(lines)


def _joined(lines: list[str]) -> str:
    return " ".join(line.strip() for line in lines)


def _exit_codes(text: str) -> tuple[tuple[int, str], ...]:
    return tuple((int(code), " ".join(meaning.split())) for code, meaning in _EXIT_CODE.findall(text))
