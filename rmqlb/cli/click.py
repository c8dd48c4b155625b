"""The parts of click that Typer has within it and does not hand out: imported here, and nowhere else.

Typer 0.28 brings a copy of click as its private `typer._click`. What Typer itself offers of it is for
functions that are commands. rmqlb also needs the tree of commands (each is loaded when it is called), the errors of the
command line (ours are one line, with an exit code), the origin of each value (line, environment or default), and the
parser (an option that is given twice is refused). So pyproject.toml allows one minor version of Typer;
a newer Typer that changes one of them fails the tests of command lines.
"""

from typer._click.core import Command, Context, Parameter, ParameterSource
from typer._click.exceptions import ClickException, NoArgsIsHelpError, NoSuchOption
from typer._click.formatting import HelpFormatter
from typer._click.globals import get_current_context
from typer._click.parser import _OptionParser as OptionParser
from typer._click.shell_completion import CompletionItem
from typer._click.types import STRING

__all__ = [
    "STRING",
    "ClickException",
    "Command",
    "CompletionItem",
    "Context",
    "HelpFormatter",
    "NoArgsIsHelpError",
    "NoSuchOption",
    "OptionParser",
    "Parameter",
    "ParameterSource",
    "completion_script",
    "get_current_context",
    "offer_completion",
]


def completion_script(program: str, variable: str, shell: str) -> str:
    from typer._completion_shared import get_completion_script

    return get_completion_script(prog_name=program, complete_var=variable, shell=shell)


def offer_completion() -> None:
    from typer._completion_classes import completion_init

    completion_init()
