"""Help texts as Typer's panels show them, and the names and values that options know.

The form of a command's docstring is fixed: the first paragraph is the summary, `Examples:` opens indented commands, a
line above indented lines opens a list, and any other paragraph is wrapped.
"""

import re
from copy import copy
from inspect import cleandoc

from rmqlb.cli import click

_LAST_PANELS = ("What to look at", "What to show", "Replay", "Strategy", "Source", "Source: NameServers", "Output")
"""The panels that follow those of the command itself."""


class RichHelp(click.Command):
    """A command whose docstring and option texts may have brackets in them, which rich would read as markup."""

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Print Typer's help for a copy of the command with escaped texts."""
        shown = copy(self)
        shown.help = command_help(self.help or "")
        shown.params = [_with_names(each, _path(ctx)) for each in self.params]
        super(RichHelp, shown).format_help(ctx, formatter)


def command_help(text: str) -> str:
    """A docstring for rich, which wraps lines itself: those of a paragraph and of an example are joined."""
    return _escaped("\n\n".join(_paragraph(each.split("\n")) for each in cleandoc(text).split("\n\n")))


def _paragraph(lines: list[str]) -> str:
    if lines[0] == "Examples:":
        return "Examples:\n  " + "\n\n  ".join(examples_in(lines[1:]))
    is_listing = len(lines) > 1 and lines[1].startswith("  ")
    return "\n".join(lines) if is_listing else _joined(lines)


def examples_in(lines: list[str]) -> list[str]:
    """The command lines of examples: one begins where a line begins with the program."""
    found: list[str] = []
    for line in map(str.strip, lines):
        if line.startswith("rmqlb ") or not found:
            found.append(line)
        else:
            found[-1] += f" {line}"
    return found


def _joined(lines: list[str]) -> str:
    return " ".join(line.strip() for line in lines)


def _with_names(parameter: click.Parameter, command: str) -> click.Parameter:
    shown = copy(parameter)
    text = getattr(parameter, "help", None) or ""
    names = known_names(command, max(parameter.opts, key=len))
    shown.help = _escaped(f"{text} One of: {', '.join(names)}." if names else text)  # type: ignore[attr-defined]
    return shown


def panel_rank(parameter: click.Parameter) -> int:
    """The place of its panel: the options of a command itself come first."""
    panel = getattr(parameter, "rich_help_panel", None)
    return _LAST_PANELS.index(panel) + 1 if panel in _LAST_PANELS else 0


def _path(context: click.Context) -> str:
    return context.command_path.partition(" ")[2]


def _escaped(text: str) -> str:
    from rich.markup import escape

    return escape(text)


def known_names(command: str, option: str) -> tuple[str, ...]:
    """The names that an option's value begins with, where its help text does not list them."""
    from rmqlb.cli.results import figures_of, sections_of

    match option:
        case "--fail-on":
            return tuple(f"{name}…]" if name.endswith("[") else name for name in figures_of(command))
        case "--section":
            return sections_of(command)
        case "--set":
            from rmqlb.cli.common.set_option import names_for

            return tuple(f"{name}=" for name in names_for(command))
        case "--strategy-option":
            from rmqlb.verbs.strategies import KEYS

            return tuple(f"{name}={key.metavar}" for name, key in KEYS.items())
    return ()


def offered(context: click.Context, parameter: click.Parameter, begun: str) -> list[click.CompletionItem]:
    """The values that a shell offers."""
    text, option = getattr(parameter, "help", None) or "", max(parameter.opts, key=len)
    found = known_values(_path(context), option, parameter.metavar or "", text)
    return [click.CompletionItem(each) for each in found if each.startswith(begun)]


def known_values(command: str, option: str, metavar: str, text: str) -> tuple[str, ...]:
    """The known values of an option: words, and names of figures, tables and contexts; the help text lists formats."""
    from rmqlb.views.report import FORMATS

    if names := known_names(command, option):
        return names
    if option == "--output":
        known = (*FORMATS, "jsonl", "prometheus", "junit", "sarif")
        return tuple(word for word in re.findall(r"[a-z]+", text.partition("default")[0]) if word in known)
    if option == "--context" or (metavar == "NAME" and command in ("context use", "context show", "context remove")):
        from rmqlb.cli.settings import read_configuration

        return tuple(read_configuration().contexts)
    match metavar.strip("[]"):
        case "STRATEGY" | "STRATEGY|all":
            from rmqlb.engine.allocate.rules import NAMES

            return (*NAMES, *(("all",) if metavar.endswith("all") else ()))
        case "SEVERITY":
            from rmqlb.model.result import SEVERITIES

            return SEVERITIES
        case "CODE":
            from rmqlb.views.explanations import explanations

            return tuple(explanations())
        case "COMMAND":
            from rmqlb.cli.results import result_names

            return tuple(name for name in result_names() if " " not in name)
    # Small letters stand for themselves.
    return tuple(word for word in metavar.split("|") if re.fullmatch(r"[a-z][a-z0-9.-]*", word))
