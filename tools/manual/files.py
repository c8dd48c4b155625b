"""Every file of the manual, help, completions and reference, by the path below the root of the repository."""

from __future__ import annotations

from rmqlb.cli.help_pages import page_file
from tools.manual.bash import bash_script
from tools.manual.command_page import command_page
from tools.manual.config_page import config_page
from tools.manual.fish import fish_script
from tools.manual.help_page import help_page_file
from tools.manual.reference import reference
from tools.manual.snapshot_page import snapshot_page
from tools.manual.strategies_page import strategies_page
from tools.manual.tree import command_tree
from tools.manual.zsh import zsh_script

HELP_PAGES = "rmqlb/cli/help_pages"


def all_files() -> dict[str, str]:
    """Path → text."""
    program = command_tree()
    pages = [command_page(command, program) for command in program.all()]
    pages += [config_page(program), snapshot_page(), strategies_page()]
    scripts = {
        "completions/rmqlb.bash": bash_script(program),
        "completions/_rmqlb": zsh_script(program),
        "completions/rmqlb.fish": fish_script(program),
    }
    helps = {f"{HELP_PAGES}/{page_file(command.path)}": help_page_file(command) for command in program.all()}
    return {f"man/{page.path}": page.text() for page in pages} | helps | scripts | reference(program, pages)
