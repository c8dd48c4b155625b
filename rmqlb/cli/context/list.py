"""`rmqlb context list`."""

from rmqlb.cli.common.options import OutputOptions, command
from rmqlb.cli.common.terminal import Terminal
from rmqlb.cli.context.contexts import show_contexts


@command
def list(output: OutputOptions) -> None:  # noqa: A001 - the command's name
    """List the contexts; a star marks the one that commands use here.

    Examples:
      rmqlb context list

      rmqlb context list -o json

    Exit codes: 0 done, 2 usage.
    """
    show_contexts(Terminal("context list", output))
