"""`rmqlb context use`."""

from typing import Annotated

from typer import Argument, Option

from rmqlb.cli.common.options import OutputOptions, command
from rmqlb.cli.common.terminal import Terminal
from rmqlb.cli.context.contexts import change_contexts
from rmqlb.cli.settings import context_named
from rmqlb.errors import UsageError
from rmqlb.model.configuration import ConfigFile


@command
def use(
    *,
    name: Annotated[str | None, Argument(metavar="NAME", help="The context.", show_default=False)] = None,
    none: Annotated[bool, Option("--none", help="No context is active any more.")] = False,
    output: OutputOptions,
) -> None:
    """Make a context the active one: it is read by every command that is given no source.

    --context and RMQLB_CONTEXT go before it.

    Examples:
      rmqlb context use --none

      rmqlb context use staging

    Exit codes: 0 done, 2 usage.
    """
    from rmqlb.sources.user_files.config_file import with_value

    terminal = Terminal("context use", output)
    if none == (name is not None):
        raise UsageError("which context?", hint="name one, or give --none", code="which-context")

    def chosen(config: ConfigFile) -> ConfigFile:
        return with_value(config, "context", None if name is None else context_named(name, config).name)

    done = "no context is active in {}" if name is None else f"context {name} is active in {{}}"
    change_contexts(terminal, chosen, done)
