"""`rmqlb context show`."""

from typing import Annotated

from typer import Argument

from rmqlb.cli.common.options import OutputOptions, command
from rmqlb.cli.common.terminal import Terminal
from rmqlb.cli.context.contexts import active_context
from rmqlb.cli.settings import context_named, read_configuration, user_file_path
from rmqlb.errors import UsageError
from rmqlb.model.snapshot import ClusterSnapshot


@command
def show(
    *,
    name: Annotated[
        str | None, Argument(metavar="NAME", help="The context; default: the active one.", show_default=False)
    ] = None,
    output: OutputOptions,
) -> None:
    """Show what a context holds; of its secret, where it is.

    Examples:
      rmqlb context show

      rmqlb context show prod -o yaml

    Exit codes: 0 done, 2 usage.
    """
    from rmqlb.views.config_view import context_report

    terminal = Terminal("context show", output)
    path = user_file_path()
    config = read_configuration()
    active, findings = active_context(config)
    if name is None and active is None:
        raise UsageError(
            "no context is active", hint="name one, or choose it with rmqlb context use", code="which-context"
        )
    context = context_named(name or active or "", config)
    terminal.show(context_report(context, active), ClusterSnapshot("configuration", path), findings)
