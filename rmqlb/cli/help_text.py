"""Help texts as Typer's panels show them: rich's markup escaped, lines joined, and the names that an option knows.

The form of a command's docstring is fixed: the first paragraph is the summary, `Examples:` opens indented commands, a
line above indented lines opens a list, and any other paragraph is wrapped.
"""

from __future__ import annotations

from copy import copy
from importlib import import_module
from inspect import cleandoc

from rmqlb.cli import click

_FIGURES = {
    "show-groups": "engine.show_groups.GROUPS_FIGURES",
    "diff": "verbs.diff.FIGURES",
    "plan-rebalance": "engine.plan.rebalance.PLAN_FIGURES",
    "simulate-rebalance": "engine.rebalance.figures.GROUP_FIGURES",
    "plan-rollout": "engine.rebalance.figures.ROLLOUT_FIGURES",
    "size-group": "engine.size_group.size_group.SIZE_FIGURES",
    "record": "engine.record.compare.FIGURES",
    "sweep-failures": "engine.sweep_failures.sweep.SWEEP_FIGURES",
    "simulate-send": "engine.send.findings.SEND_FIGURES",
    "simulate-receive": "engine.simulate_receive.simulate_receive.RECEIVE_FIGURES",
}
"""Command → where the figures of its `--fail-on` are, below `rmqlb`."""


_LAST_PANELS = ("What to look at", "What to show", "Replay", "Strategy", "Source", "Source: NameServers", "Output")
"""The panels that follow those of the command itself."""


class RichHelp(click.Command):
    """A command whose docstring and option texts may have brackets in them, which rich would read as markup."""

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Print Typer's help for a copy of the command with escaped texts."""
        shown = copy(self)
        shown.help = command_help(self.help or "")
        shown.params = sorted((_with_names(each, _path(ctx)) for each in self.params), key=_place)
        super(RichHelp, shown).format_help(ctx, formatter)


def command_help(text: str) -> str:
    """A docstring for rich, which breaks lines itself: those of a paragraph and of an example are joined."""
    return _escaped("\n\n".join(_paragraph(each.split("\n")) for each in cleandoc(text).split("\n\n")))


def _paragraph(lines: list[str]) -> str:
    if lines[0] == "Examples:":
        return f"{lines[0]}\n  {_joined(lines[1:])}"
    if lines[0].startswith("  "):
        return f"  {_joined(lines)}"
    is_listing = len(lines) > 1 and lines[1].startswith("  ")
    return "\n".join(lines) if is_listing else _joined(lines)


def _joined(lines: list[str]) -> str:
    return " ".join(line.strip() for line in lines)


def figures_of(command: str) -> tuple[str, ...]:
    """The figures that `--fail-on` of a command knows; one that takes a name in brackets ends in `[`."""
    if command not in _FIGURES:
        return ()
    module, _, name = _FIGURES[command].rpartition(".")
    figures = getattr(import_module(f"rmqlb.{module}"), name)
    return (*figures.names, *(f"{each}[" for each in figures.of_subject))


def known_names(command: str, option: str) -> tuple[str, ...]:
    """The names that an option's value begins with, where its help text does not list them."""
    if option == "--fail-on":
        return tuple(f"{name}…]" if name.endswith("[") else name for name in figures_of(command))
    if option == "--section":
        from rmqlb.cli.common.sections import sections_of

        return sections_of(command)
    if option == "--strategy-option":
        from rmqlb.verbs.strategies import KEYS

        return tuple(f"{name}={key.metavar}" for name, key in KEYS.items())
    return ()


def _with_names(parameter: click.Parameter, command: str) -> click.Parameter:
    shown = copy(parameter)
    text = getattr(parameter, "help", None) or ""
    names = known_names(command, max(parameter.opts, key=len))
    if names:
        text += f" One of: {', '.join(names)}."
    shown.help = _escaped(text)  # type: ignore[attr-defined]
    return shown


def _place(parameter: click.Parameter) -> int:
    panel = getattr(parameter, "rich_help_panel", None)
    return _LAST_PANELS.index(panel) + 1 if panel in _LAST_PANELS else 0


def _path(context: click.Context) -> str:
    return context.command_path.partition(" ")[2]


def _escaped(text: str) -> str:
    from rich.markup import escape

    return escape(text)
