"""The help pages of `rmqlb/cli/help_pages/`: what `--help` and `--help-all` show, 80 columns wide."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from textwrap import wrap

from rmqlb.cli.help_pages import PARTS
from rmqlb.verbs.strategy_options import KEYS
from tools.manual.help_text import Listing
from tools.manual.tree import OPTIONS, CommandPage, OptionPage
from tools.manual.values import known_words

_WIDTH = 80
_WIDEST_TERM = 26
COMMON = {
    "--source": "-s SOURCE",
    "--group": "-g {}",
    "--topic": "-t {}",
    "--output": "-o FORMAT",
    "--all": "--all",
    "--fail-on": "--fail-on CONDITION",
}
"""Options that many commands have → how the last line of `--help` names them; {} is the metavar."""
SHARED_PANELS = ("Source", "Source: NameServers", "Strategy", "Output", "Spark")
"""What `--help` leaves to `--help-all`."""
_LAST_PANELS = ("What to look at", "What to show", "Replay")
"""What comes behind what a command is for."""
_HELP = ("--help", "--help-all", "--version")
Item = tuple[str, str]
"""A term and what it means."""


def help_page_file(command: CommandPage) -> str:
    """The page: what `--help` shows first, what it ends with, and what `--help-all` has instead of that."""
    options = [option for option in command.options if option.names[-1] not in _HELP]
    common = [option for option in options if _is_common(option)]
    own = [option for option in options if not _is_common(option) and option.panel not in SHARED_PANELS]
    shared = [option for option in options if not _is_common(option) and option.panel in SHARED_PANELS]
    first = [*_wrapped(command.help.summary, ""), *_examples(command), *_commands(command)]
    first += _items("Arguments", [(argument.metavar or "", argument.help) for argument in command.arguments])
    first += _panels(own, variables=False)
    rest = [*_items("Common", [_item(option) for option in common]), *_panels(shared, variables=True)]
    rest += _items("Help", [_item(option) for option in command.options if option.names[-1] in _HELP])
    rest += _known(command, options)
    rest += [line for block in command.help.details for line in _block(block)]
    rest += _items("Exit codes", [(str(code), meaning) for code, meaning in command.help.exit_codes])
    return PARTS.join("".join(f"{line}\n" for line in part) for part in (first, _last(command, common), rest))


def _is_common(option: OptionPage) -> bool:
    return option.names[-1] in COMMON and (option.names[-1] != "--source" or option.panel == "Source")


def _last(command: CommandPage, common: Iterable[OptionPage]) -> list[str]:
    """The lines that end `--help`."""
    named = {option.names[-1]: option.metavar or "" for option in common}
    shown = [text.format(named[name]) for name, text in COMMON.items() if name in named]
    lines = ["", *_wrapped("Common: " + "  ".join(shown), "        ")] if shown else [""]
    if command.commands:
        lines.append(f"Of a command: {command.typed} COMMAND --help")
    return [*lines, f"All options: {command.typed} --help-all"]


def _examples(command: CommandPage) -> Iterator[str]:
    if command.help.examples:
        yield from ("", "Examples")
    for example in command.help.examples:
        yield from _continued(example)


def _continued(line: str) -> Iterator[str]:
    """A command line, broken before an option where it is longer than the page."""
    rest = f"  {line}"
    while len(rest) > _WIDTH:
        places = [found.start() for found in re.finditer(r" (?=-|\| )", rest[: _WIDTH - 1]) if found.start() > 6]
        if not places:
            break
        yield rest[: places[-1]] + " \\"
        rest = "     " + rest[places[-1] :]
    yield rest


def _commands(command: CommandPage) -> list[str]:
    return _items("Commands", [(below.name, below.help.summary) for below in command.commands])


def _panels(options: Iterable[OptionPage], *, variables: bool) -> Iterator[str]:
    options = list(options)
    panels = [option.panel for option in options if option.panel not in _LAST_PANELS]
    column = _column(_item(each, variable=variables) for each in options)
    for panel in dict.fromkeys((OPTIONS, *panels, *_LAST_PANELS)):
        yield from _items(panel, [_item(each, variable=variables) for each in options if each.panel == panel], column)


def _item(option: OptionPage, *, variable: bool = True) -> Item:
    names = ", ".join((*option.names, *option.negations))
    term = names if option.metavar is None else f"{names} {option.metavar}"
    more = [f"Default: {option.default}."] if option.default is not None else []
    more += [f"[{option.variable}]"] if option.variable is not None and variable else []
    return term, " ".join([option.help, *more])


def _known(command: CommandPage, options: Iterable[OptionPage]) -> Iterator[str]:
    """What the values of options may be, where completion knows more words than the help of the option names."""
    for option in options:
        words = known_words(command, option)
        if option.names[-1] == "--strategy-option":
            keys = KEYS.items()
            yield from _items(
                "Keys of --strategy-option",
                [(f"{name}={key.metavar}", f"{', '.join(key.strategies)}: {key.help}") for name, key in keys],
            )
        elif words:
            yield from ("", f"What {option.names[-1]} knows", *_wrapped(", ".join(words), "  ", first="  "))


def _block(block: str | Listing) -> Iterator[str]:
    yield ""
    if isinstance(block, Listing):
        yield block.heading
        yield from (f"  {line}" for line in block.lines)
    else:
        yield from _wrapped(block, "")


def _column(items: Iterable[Item]) -> int:
    """Where the second column begins: behind the longest of the terms that are not too long."""
    return 4 + max((len(term) for term, _ in items if len(term) <= _WIDEST_TERM), default=_WIDEST_TERM)


def _items(heading: str, items: list[Item], column: int | None = None) -> list[str]:
    """A heading with its items in two columns; a long term has a line of its own."""
    if not items:
        return []
    column = _column(items) if column is None else column
    lines = ["", heading]
    for term, text in items:
        first = f"  {term}".ljust(column)
        if len(term) > column - 4:
            lines.append(first.rstrip())
            first = " " * column
        lines += _wrapped(text, " " * column, first=first)
    return lines


def _wrapped(text: str, indent: str, first: str = "") -> list[str]:
    return wrap(
        text,
        _WIDTH,
        initial_indent=first,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
