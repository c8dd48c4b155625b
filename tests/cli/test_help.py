"""`--help` and `--help-all`: pages made ahead of time, which say what the command tree says."""

from __future__ import annotations

import os
import re

import pytest

from rmqlb.cli.help_pages import PARTS, help_page, quick_answer
from tools.manual.files import HELP_PAGES, all_files
from tools.manual.help_page import COMMON, SHARED_PANELS
from tools.manual.tree import CommandPage, command_tree
from tools.manual.values import known_words

from .run import ROOT, run, start

ALL = list(command_tree().all())
HELP = ("--help", "--help-all", "--version")

each_command = pytest.mark.parametrize("command", ALL, ids=lambda command: command.typed)


def shown(command: CommandPage, *, everything: bool = False) -> str:
    page = help_page(command.path, everything=everything)
    assert page is not None
    return page


def test_the_pages_are_what_the_command_tree_says() -> None:
    """`python -m tools.manual` writes them."""
    made = {path: text for path, text in all_files().items() if path.startswith(HELP_PAGES)}
    there = {f"{path.relative_to(ROOT)}": path.read_text("utf-8") for path in (ROOT / HELP_PAGES).glob("*.txt")}
    assert there == made


@each_command
def test_a_page_has_at_most_80_columns_and_no_end_of_blanks(command: CommandPage) -> None:
    for line in shown(command, everything=True).splitlines():
        assert line == line.rstrip()
        assert len(line) <= 80 or " " not in line.strip(), line


@each_command
def test_help_says_what_the_command_is_for_with_examples_before_its_own_options(command: CommandPage) -> None:
    page = shown(command)
    flat = " ".join(page.replace("\\\n", " ").split())
    wanted = [command.help.summary, *command.help.examples, *(below.help.summary for below in command.commands)]
    places = [flat.find(" ".join(text.split())) for text in wanted]
    assert -1 not in places
    assert places == sorted(places)
    for option in command.options:
        is_own = option.panel not in SHARED_PANELS and option.names[-1] not in (*HELP, *COMMON)
        assert (re.search(rf"^  (-\w, )?{option.names[-1]}\b(?!-)", page, re.MULTILINE) is not None) == (
            is_own or (option.names[-1] == "--source" and option.panel != "Source")
        ), option.names
    assert page.endswith(f"\nAll options: {command.typed} --help-all\n")


@each_command
def test_help_all_has_every_option_and_what_it_knows(command: CommandPage) -> None:
    page = shown(command, everything=True)
    flat = " ".join(page.split())
    for option in command.options:
        assert re.search(rf"^  (-\w, )?{option.names[-1]}\b(?!-)", page, re.MULTILINE), option.names
        assert option.help in flat
        assert option.variable is None or f"[{option.variable}]" in flat or option.panel not in SHARED_PANELS
        for word in known_words(command, option):
            assert re.search(rf"(?<![\w-]){re.escape(word)}(,| |$)", flat), word
    for _, meaning in command.help.exit_codes:
        assert " ".join(meaning.split()) in flat


@each_command
def test_every_way_to_ask_shows_the_same_page(command: CommandPage) -> None:
    """In a shell the page is shown before the command line is parsed; here it is parsed."""
    page, everything = shown(command), shown(command, everything=True)
    for line, text in (
        ((*command.path, "--help"), page),
        ((*command.path, "-h"), page),
        ((*command.path, "--help-all"), everything),
    ):
        assert quick_answer(line) == text
        assert run(*line) == (text, "", 0)


@pytest.mark.parametrize(
    "line",
    [
        ("plan-rebalance", "-s", "nowhere", "--help"),
        ("plan-rebalance", "--help", "--add", "1"),
        ("plan-rebalance", "--add", "1", "--help-all"),
        ("pipeline", "run", "-w", "x", "-h"),
    ],
)
def test_help_among_other_options_is_found_by_parsing(line: tuple[str, ...]) -> None:
    assert quick_answer(line) is None
    path = line[:2] if line[0] == "pipeline" else line[:1]
    assert run(*line) == (help_page(path, everything="--help-all" in line), "", 0)


@pytest.mark.parametrize("path", [("plan-rebalanc",), ("rmqlb",), ("../help",), ("context.add",), ("",)])
def test_a_path_that_is_no_command_has_no_page(path: tuple[str, ...]) -> None:
    assert help_page(path) is None


def test_nothing_but_help_and_version_is_answered_before_parsing() -> None:
    for line in ((), ("plan-rebalance",), ("frobnicate", "--help"), ("-h", "plan-rebalance"), ("--version", "x")):
        assert quick_answer(line) is None


@pytest.mark.parametrize("option", ["-V", "--version"])
def test_the_version_has_a_short_option(option: str) -> None:
    assert run(option) == start(option)
    assert run(option).stdout == quick_answer([option])


def test_headings_are_bold_in_colour() -> None:
    plain = start("show-route", "--help").stdout
    forced = start("show-route", "--help", env={"FORCE_COLOR": "1"}).stdout
    assert "\x1b" not in plain
    assert "\x1b[1mExamples\x1b[0m\n" in forced
    assert re.sub(r"\x1b\[[01]m", "", forced) == plain


def test_parts_of_a_page_stand_in_one_file() -> None:
    for name in os.listdir(ROOT / HELP_PAGES):
        if name.endswith(".txt"):
            assert (ROOT / HELP_PAGES / name).read_text("utf-8").count(PARTS) == 2, name
