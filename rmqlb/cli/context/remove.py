"""`rmqlb context remove`."""

from typing import Annotated

from typer import Argument

from rmqlb.cli.common.options import OutputOptions, command
from rmqlb.cli.common.terminal import Terminal
from rmqlb.cli.context.contexts import change_contexts
from rmqlb.cli.settings import context_named
from rmqlb.model.configuration import ConfigFile


@command
def remove(
    *, name: Annotated[str, Argument(metavar="NAME", help="The context.", show_default=False)], output: OutputOptions
) -> None:
    """Remove a context; its secret stays where it is.

    Examples:
      rmqlb context remove staging

    Exit codes: 0 done, 2 usage.
    """
    from rmqlb.sources.user_files.config_file import with_context, with_value

    terminal = Terminal("context remove", output)

    def removed(config: ConfigFile) -> ConfigFile:
        context = context_named(name, config)
        chosen = config.values.get("context")
        if chosen is not None and chosen.value == context.name:
            config = with_value(config, "context", None)
        return with_context(config, context.name, None)

    change_contexts(terminal, removed, f"context {name} is no longer in {{}}")
