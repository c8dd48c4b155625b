"""Help texts as Typer's panels show them, one screen a command, and the names and values that options know.

The form of a command's docstring is fixed: the first paragraph is the summary, `Examples:` opens indented commands, a
line above indented lines opens a list, and any other paragraph is wrapped.
"""

import re
from collections import Counter
from collections.abc import Sequence
from copy import copy
from inspect import cleandoc

from rmqlb.cli import click

_NUMBERS = {"int": "N", "int range": "N", "float": "X", "float range": "X"}
SHARED_PANELS = ("Connection", "Login", "TLS", "Output")
_LAST_PANELS = ("Input", "Filters", "Replay", *SHARED_PANELS)
"""The panels that follow those of the command itself."""

SAME_AS = "Same as "
"""Beginning of the text of an argument that repeats an option; only the usage line shows the argument."""

_COMMON = (
    *("--source", "--namesrv-addr", "--context", "--output", "--section", "--all", "--quiet", "--watch", "--fail-on"),
    *("--explain", "--trace", "--changed", "--timeline", "--svg", "--html"),
)
"""The options of shared panels that each command's help shows; `rmqlb options` has all of them."""

_LINE, _METAVAR, _MANY = 48, 20, 22
"""Characters of an option's text and of its metavar that fit a line of 100 columns, and options that fill a screen."""


class RichHelp(click.Command):
    """A command whose `--help` is one screen; its manual page has what that leaves out.

    Texts may have brackets in them, which rich would read as markup.
    """

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Print Typer's help for a copy of the command with its summary, two examples and its own options."""
        shown = copy(self)
        shown.add_help_option = False
        shown.help = command_help(self.help or "")
        is_group = hasattr(self, "commands")
        shown.params = [] if is_group else _in_few_panels(self.params)
        if not is_group:
            shared = any(_panel(each) in SHARED_PANELS for each in self.params)
            more = "`rmqlb options` lists connection, TLS, login and output options · " if shared else ""
            page = ctx.command_path.replace(" ", "-")
            shown.epilog = _escaped(f"{more}man {page}")
        super(RichHelp, shown).format_help(ctx, formatter)

    def format_whole_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Print all options, with whole texts, defaults and variables."""
        shown = copy(self)
        shown.add_help_option = False
        shown.params = [_with_names(each, _path(ctx)) for each in self.params]
        super(RichHelp, shown).format_help(ctx, formatter)


def command_help(text: str) -> str:
    """The summary and the first two examples of a docstring, for rich, which wraps lines itself."""
    shown = []
    for number, paragraph in enumerate(cleandoc(text).split("\n\n")):
        lines = paragraph.split("\n")
        if lines[0] == "Examples:":
            # Typer takes away the indentation of lines that begin with spaces.
            examples = (f"[default]  {_escaped(each)}[/default]" for each in examples_in(lines[1:])[:2])
            shown.append("\n".join(["Examples:", *examples]))
        elif number == 0:
            shown.append(_escaped(_joined(lines)))
        elif lines[0].startswith("rmqlb COMMAND"):
            shown[-1] += f"\n{_escaped(lines[0])}"
    return "\n\n".join(shown)


def headline(text: str) -> str:
    """A command's line in the list of commands: its summary as far as the first colon."""
    return _joined(cleandoc(text).partition("\n\n")[0].split("\n")).partition(":")[0].removesuffix(".")


def _in_few_panels(parameters: Sequence[click.Parameter]) -> list[click.Parameter]:
    """The options of a command itself, and common ones; a small panel is not worth its frame."""
    shown = (each for each in parameters if _panel(each) not in SHARED_PANELS or max(each.opts, key=len) in _COMMON)
    found = [*map(brief, shown)]
    sizes = Counter(map(_panel, found))
    least = 4 if len(found) <= _MANY else 7
    for each in found:
        if sizes[panel := _panel(each)] < least and panel not in SHARED_PANELS:
            each.rich_help_panel = None  # type: ignore[attr-defined]
    return found


def brief(parameter: click.Parameter) -> click.Parameter:
    """A copy of an option that fits a line: its first sentence, without what the manual page has besides."""
    shown = copy(parameter)
    text, default = getattr(parameter, "help", None) or "", parameter.default
    is_told = not (parameter.required or callable(default) or isinstance(default, bool | list | tuple | None))
    text = brief_text(f"{_first_sentence(text)}; default: {default}." if is_told else text)
    shown.hidden = text.startswith(SAME_AS)  # type: ignore[attr-defined]
    shown.help, shown.show_envvar, shown.show_default = _escaped(text), False, False  # type: ignore[attr-defined]
    shown.metavar = _brief_metavar(parameter.metavar) if parameter.metavar else _NUMBERS.get(parameter.type.name)
    shown.type = click.STRING if shown.metavar else parameter.type
    return shown


def brief_text(text: str) -> str:
    """The first sentence; of its clauses, as many as fit a line."""
    first, *more = _first_sentence(text).split("; ")
    for clause in more:
        first = f"{first}; {clause}" if len(first) + len(clause) + 3 <= _LINE else first
    return f"{first}."


def _first_sentence(text: str) -> str:
    return re.split(r"\.(?=\s+\W?[A-Z0-9])", text)[0].removesuffix(".")


def _brief_metavar(metavar: str) -> str:
    shown, *more = metavar.split("|")
    for word in more:
        if len(shown) + len(word) + 3 > _METAVAR:
            return f"{shown}|…"
        shown += f"|{word}"
    return shown


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


def panel_rank(parameter: click.Parameter) -> tuple[int, bool]:
    """The place of its panel, and in the panel: the options of a command itself come first, settings last."""
    panel = _panel(parameter)
    rank = _LAST_PANELS.index(panel) + 1 if panel in _LAST_PANELS else 0
    return rank, parameter.name == "strategy_options"


def _panel(parameter: click.Parameter) -> str | None:
    return getattr(parameter, "rich_help_panel", None)


def _path(context: click.Context) -> str:
    return context.command_path.partition(" ")[2]


def _escaped(text: str) -> str:
    from rich.markup import escape

    return escape(text)


def known_names(command: str, option: str) -> tuple[str, ...]:
    """The names that an option's value begins with, where its help text does not list them."""
    from rmqlb.cli.results import figures_of, module_of, sections_of
    from rmqlb.views.envelope import imported

    match option:
        case "--fail-on":
            return tuple(f"{name}…]" if name.endswith("[") else name for name in figures_of(command))
        case "--section":
            return sections_of(command)
        case "--event":
            from rmqlb.verbs.rebalance_events import VERBS

            return tuple(VERBS)
        case "--set":
            from rmqlb.cli.common.set_option import names_in

            function = imported(f"{module_of(command)}.{command.replace('-', '_')}")
            return tuple(f"{name}=" for name in names_in(function.groups))
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
