"""`rmqlb context add`."""

from typing import Annotated

from typer import Argument, Option

from rmqlb.cli.common.options import OutputOptions, command
from rmqlb.cli.common.terminal import Terminal
from rmqlb.cli.context.contexts import EndpointOptions, change_contexts, values_of
from rmqlb.errors import UsageError
from rmqlb.model.configuration import ConfigFile, check_context_name


@command
def add(
    *,
    name: Annotated[str, Argument(metavar="NAME", help="The context's name.", show_default=False)],
    endpoint: EndpointOptions,
    use: Annotated[bool, Option("--use", help="Make it the active context.")] = False,
    replace: Annotated[bool, Option("--replace", help="Replace a context of that name.")] = False,
    output: OutputOptions,
) -> None:
    """Name an endpoint: its source, who logs in, and where the secret is.

    Examples:
      rmqlb context add prod -s 'rocketmq://10.0.0.1:9876,10.0.0.2:9876' --access-key viewer --secret keyring:rmqlb/prod

      rmqlb context add staging -s https://mq.example:8082 --user admin --secret file:~/.mq-staging --use

    Exit codes: 0 done, 2 usage.
    """
    from rmqlb.sources.user_files.config_file import with_context, with_value

    terminal = Terminal("context add", output)
    check_context_name(name, "NAME")
    values = values_of(endpoint)

    def added(config: ConfigFile) -> ConfigFile:
        if name in config.contexts and not replace:
            raise UsageError(
                f"there is a context {name} already", hint="--replace overwrites it", code="context-exists"
            )
        config = with_context(config, name, values)
        return with_value(config, "context", name) if use else config

    change_contexts(terminal, added, f"context {name} is in {{}}")
