"""`--help`: Typer's panels, which say what the command tree says."""

from __future__ import annotations

import re

from rmqlb.cli.help_text import command_help, known_names
from tests.support.mismatches import every_case
from tools.manual.tree import CommandPage, command_tree

from .run import run, start

WIDE = {"COLUMNS": "1000"}
"""So wide that no text is broken."""
ALL = list(command_tree().all())


def flat(text: str) -> str:
    return " ".join(re.sub(r"[│╭╮╰╯─]", " ", text).split())


@every_case("command", ALL, ids=lambda command: command.typed)
def test_help_has_every_text_of_the_command(command: CommandPage) -> None:
    shown = flat(run(*command.path, "--help", env=WIDE).stdout)
    texts = [command.help.summary, *command.help.examples, *(below.help.summary for below in command.commands)]
    texts += [meaning for _, meaning in command.help.exit_codes]
    for option in (*command.options, *command.arguments):
        texts += [*option.names, option.help]
        texts += known_names(" ".join(command.path), option.names[-1]) if option.names else ()
    for text in texts:
        assert " ".join(text.split()) in shown, text


def test_brackets_are_not_markup() -> None:
    assert command_help("Take [red]a[/red] or [ID=]b.") == r"Take \[red]a\[/red] or [ID=]b."


def test_the_options_of_the_command_come_before_the_shared_ones() -> None:
    shown = run("plan-rebalance", "--help").stdout
    panels = re.findall(r"^╭─ ([^─]+) ─", shown, re.MULTILINE)
    assert panels[0] == "Options"
    assert panels[-3:] == ["Source", "Source: NameServers", "Output"]


def test_colour_is_asked_for() -> None:
    assert "\x1b" not in start("show-route", "--help").stdout
    assert "\x1b" in start("show-route", "--help", env={"FORCE_COLOR": "1"}).stdout
