"""Every file that is written from the command tree: the manual and completions, and the site's reference."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from rmqlb.cli.completion import script
from tools.manual.command_page import command_page
from tools.manual.config_page import config_page
from tools.manual.reference import reference
from tools.manual.roff import Page
from tools.manual.snapshot_page import snapshot_page
from tools.manual.strategies_page import strategies_page
from tools.manual.tree import CommandPage, command_tree


@cache
def all_files() -> Mapping[str, str]:
    """The files that are kept: path below the root of the repository → text."""
    program = command_tree()
    names = {"bash": "rmqlb.bash", "zsh": "_rmqlb", "fish": "rmqlb.fish"}
    scripts = {f"completions/{name}": f"{script(shell)}\n" for shell, name in names.items()}
    return {f"man/{page.path}": page.text() for page in _manual(program)} | scripts


def reference_pages() -> dict[str, str]:
    """The reference's pages, which mkdocs makes with the site: path below `docs/` → text."""
    program = command_tree()
    return reference(program, _manual(program))


def _manual(program: CommandPage) -> list[Page]:
    commands = [command_page(command, program) for command in program.all()]
    return [*commands, config_page(program), snapshot_page(), strategies_page()]
