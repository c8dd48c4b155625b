from typing import Annotated

import typer
from typer import Argument

from rmqlb.cli import click
from rmqlb.errors import UsageError
from rmqlb.model.snapshot import suggestion

SHELLS = ("bash", "zsh", "fish")
_VARIABLE = "_RMQLB_COMPLETE"
"""The scripts set it to what they want to know."""


def completion(
    *, shell: Annotated[str, Argument(metavar="bash|zsh|fish", help="Shell to complete in.", show_default=False)]
) -> None:
    """Print the completion script of a shell.

    Examples:
      rmqlb completion bash

    Exit codes: 0 done, 2 usage.
    """
    if shell not in SHELLS:
        raise UsageError(f"no completion for {shell}", hint=suggestion("shells", shell, SHELLS))
    typer.echo(script(shell))


def script(shell: str) -> str:
    return click.completion_script("rmqlb", _VARIABLE, shell)
