"""Every command has what a command has: a new one that lacks a part makes a test red.

Here is what is recorded and written down. That examples run, that help has its form and that shells complete is held by
`cli/test_command_tree.py` and `cli/test_completion.py`, which walk the same tree, and bad input by `cli/test_bad_options.py`.
"""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path

from rmqlb.cli.results import result_of
from rmqlb.version import __version__
from tests.support.mismatches import every_case
from tests.test_golden import BASIC, GOLDEN, HELD_BY_TESTS
from tools.manual.roff import escaped
from tools.manual.tree import CommandPage, command_tree

ROOT = Path(__file__).parent.parent
TREE = command_tree()
SINGLE = [command for command in TREE.all() if not command.commands and command.name != "completion"]
"""Those with a result to print."""

each_single_command = every_case("command", SINGLE, ids=lambda command: command.typed)


def recorded() -> dict[str, set[str]]:
    """Command → the formats of its transcripts, by their first lines."""
    found: dict[str, set[str]] = {command.typed: set() for command in SINGLE}
    for path in GOLDEN.rglob("*.txt"):
        first, _, rest = path.read_text(encoding="utf-8").partition("\n")
        words = shlex.split(first.removeprefix("$ "))
        name = next((name for name in found if words[: len(name.split())] == name.split()), None)
        if name is not None and "-o" in words and rest.split("\n--- stderr")[0].strip():
            found[name].add(words[words.index("-o") + 1])
    return found


RECORDED = recorded()


@each_single_command
def test_there_are_transcripts(command: CommandPage) -> None:
    if (command.path[0] == "pipeline" and command.name != "run") or "-".join(command.path) in HELD_BY_TESTS:
        return  # the other stages print the same result
    formats = {"table", "plain", "json"} if command.typed.removeprefix("rmqlb ") in BASIC else {"json"}
    assert formats - RECORDED[command.typed] == set(), (
        "add them to tests/test_golden.py, those of the pipeline to tests/test_golden_pipeline.py"
    )


@each_single_command
def test_there_are_a_page_and_a_schema(command: CommandPage) -> None:
    path = ROOT / "man" / "man1" / f"{command.page}.1"
    assert path.exists(), "run python -m tools.manual"
    page = path.read_text(encoding="utf-8")
    for option in command.options:
        assert all(escaped(name) in page for name in option.names)
    assert all(escaped(example.split()[-1]) in page for example in command.help.examples)
    assert result_of(" ".join(command.path)) is not None, "give it a line in rmqlb/cli/results.py"


def test_the_changelog_begins_with_the_version() -> None:
    versions = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert versions[0] in (__version__, "Unreleased")
    assert __version__ in versions[:2]
    assert len(versions) == len(set(versions))
    assert tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dynamic"] == ["version"]
