"""`rmqlb context`: named endpoints, kept in the user's configuration file.

Only the user's file is changed, and only here. A secret is never stored, only the place of one.
"""

import os
from collections.abc import Callable
from typing import Annotated

from typer import Argument

from rmqlb.cli import settings
from rmqlb.cli.command_tree import grouped
from rmqlb.cli.common.declare import Options, Panel, Text, Texts, command, own
from rmqlb.cli.common.options import OutputOptions
from rmqlb.cli.common.terminal import Terminal
from rmqlb.cli.settings import MOST_RETRIES
from rmqlb.errors import UsageError
from rmqlb.model.configuration import ENDPOINT, ConfigFile, Key, Value, check_context_name
from rmqlb.model.result import Finding, info
from rmqlb.model.snapshot import ClusterSnapshot
from rmqlb.sources.source_text import as_url, name_servers, user_in
from rmqlb.sources.user_files.config_file import change_user_file, require_text, with_context, with_value
from rmqlb.views.config_view import context_report, contexts_report

_endpoint = Panel("Endpoint")


class EndpointOptions(Options):
    """What a context holds; unlike those of other commands, none of them comes from the environment."""

    source: Text = _endpoint("-s URL|FILE", "Source to read: HOST:9876, a Dashboard URL, or a file.")
    namesrv_addr: Text = _endpoint("-n HOST:9876;…", "NameServers, in mqadmin's format.")
    user: Text = _endpoint("USER", "Dashboard user to log in as.")
    access_key: Text = _endpoint("KEY", "Access key of a cluster with ACL.")
    secret: Text = _endpoint(
        "file:PATH|env:NAME|keyring:SERVICE/USER",
        "Location of the password or the secret key. Never pass the secret itself.",
    )
    ca_file: Text = _endpoint("FILE", "Trust only the CA certificates in this PEM file.")
    client_cert: Text = _endpoint("FILE", "Client certificate (PEM) for rocketmqs:// servers.")
    client_key: Text = _endpoint("FILE", "Private key (PEM), if not in the certificate file.")
    tls_name: Text = _endpoint("NAME", "Name expected in server certificates, if not the host name.")
    proxy: Texts = _endpoint("HOST[:8080]", "Remoting port of a Proxy, to list its consumers; repeatable.")
    map_address: Texts = _endpoint("FROM=TO", "Reach address FROM at TO, for example through a tunnel; repeatable.")
    source_timeout: Text = _endpoint("TIME", "Timeout per request.")
    source_retries: int | None = _endpoint("N", "Retries per read after a transient error.", min=0, max=MOST_RETRIES)
    use: bool = own.flag("Make this the active context.")
    overwrite: bool = own.flag("Overwrite a context of the same name.")


class NoneOptions(Options):
    none: bool = own.flag("Deactivate the active context.")


@command
def add_context(
    *,
    name: Annotated[str, Argument(metavar="NAME", help="Name of the context.", show_default=False)],
    endpoint: EndpointOptions,
    output: OutputOptions,
) -> None:
    """Add a named endpoint: its source, its user, and the location of its secret.

    Examples:
      rmqlb context add prod -s 'rocketmq://10.0.0.1:9876,10.0.0.2:9876' --access-key viewer --secret keyring:rmqlb/prod
      rmqlb context add staging -s https://mq.example:8082 --user admin --secret file:~/.mq-staging --use

    Exit codes: 0 done, 2 usage.
    """
    terminal = Terminal("context add", output)
    check_context_name(name, "NAME")
    values = values_of(endpoint)

    def added(config: ConfigFile) -> ConfigFile:
        if name in config.contexts and not endpoint.overwrite:
            problem = f"context {name} already exists"
            raise UsageError(problem, hint="pass --overwrite to replace it", code="context-exists")
        config = with_context(config, name, values)
        return with_value(config, "context", name) if endpoint.use else config

    change_contexts(terminal, added, f"context {name} is in {{}}")


@command
def list_contexts(output: OutputOptions) -> None:
    """List the contexts; a star marks the one in use.

    Examples:
      rmqlb context list
      rmqlb context list -o json

    Exit codes: 0 done, 2 usage.
    """
    show_contexts(Terminal("context list", output))


@command
def use_context(
    *,
    name: Annotated[str | None, Argument(metavar="NAME", help="Name of the context.", show_default=False)] = None,
    which: NoneOptions,
    output: OutputOptions,
) -> None:
    """Make a context active: commands without a source read it.

    --context and RMQLB_CONTEXT override the active context.

    Examples:
      rmqlb context use --none
      rmqlb context use staging

    Exit codes: 0 done, 2 usage, 4 there is no such context.
    """
    terminal = Terminal("context use", output)
    if which.none == (name is not None):
        raise UsageError("no context is named", hint="name a context, or pass --none", code="which-context")

    def chosen(config: ConfigFile) -> ConfigFile:
        return with_value(config, "context", None if name is None else settings.context_named(name, config).name)

    done = "no context is active in {}" if name is None else f"context {name} is active in {{}}"
    change_contexts(terminal, chosen, done)


@command
def show_context(
    *,
    name: Annotated[
        str | None, Argument(metavar="NAME", help="Name of the context; default: the active one.", show_default=False)
    ] = None,
    output: OutputOptions,
) -> None:
    """Show the settings of a context, with the location of its secret.

    Examples:
      rmqlb context show
      rmqlb context show prod -o yaml

    Exit codes: 0 done, 2 usage, 4 there is no such context.
    """
    terminal = Terminal("context show", output)
    path, config = settings.user_file_path(), settings.read_configuration()
    active, findings = active_context(config)
    if name is None and active is None:
        hint = "name a context, or activate one with rmqlb context use"
        raise UsageError("no context is active", hint=hint, code="which-context")
    context = settings.context_named(name or active or "", config)
    terminal.show(context_report(context, active), ClusterSnapshot("configuration", path), findings)


@command
def remove_context(
    name: Annotated[str, Argument(metavar="NAME", help="Name of the context.", show_default=False)],
    output: OutputOptions,
) -> None:
    """Remove a context, but not its secret.

    Examples:
      rmqlb context remove staging

    Exit codes: 0 done, 2 usage, 4 there is no such context.
    """
    terminal = Terminal("context remove", output)

    def removed(config: ConfigFile) -> ConfigFile:
        context = settings.context_named(name, config)
        chosen = config.values.get("context")
        if chosen is not None and chosen.value == context.name:
            config = with_value(config, "context", None)
        return with_context(config, context.name, None)

    change_contexts(terminal, removed, f"context {name} is no longer in {{}}")


def values_of(options: EndpointOptions) -> dict[str, Value]:
    """The values to keep: checked, with paths that mean the same in every folder (raises UsageError)."""
    values: dict[str, Value] = {}
    if options.namesrv_addr is not None and options.source is not None:
        raise settings.named_twice()
    if options.namesrv_addr is not None:
        options = options.but(source=name_servers(options.namesrv_addr, "--namesrv-addr"))
    elif options.source is not None:
        options = options.but(source=as_url(options.source))
    for key in ENDPOINT:
        value = getattr(options, key.name.replace("-", "_"))
        if value is None or value == []:
            continue
        values[key.name] = _kept(key, tuple(value) if isinstance(value, list) else value)
        settings.check_value(key.name, values[key.name], f"--{key.name}")
    if "source" not in values:
        hint = "pass -n HOST:9876 (NameServers), -s http://HOST (Dashboard) or -s FILE"
        raise UsageError("the context needs a source", hint=hint, code="no-source")
    named = user_in(str(values["source"]))
    if named is not None and values.get("user", named) != named:
        raise UsageError("--user: --source names another user", hint="pass only one of them")
    return values


def _kept(key: Key, value: Value) -> Value:
    for text in value if isinstance(value, tuple) else (value,):
        if isinstance(text, str):
            require_text(text, f"--{key.name}")
    if not isinstance(value, str):
        return value
    if key.kind == "path" or (key.name == "source" and os.path.exists(value)):
        return os.path.abspath(os.path.expanduser(value))
    kind, _, path = value.partition(":")
    if key.name == "secret" and kind == "file" and path and not path.startswith("~/"):
        return f"file:{os.path.abspath(path)}"
    return value


def change_contexts(terminal: Terminal, change: Callable[[ConfigFile], ConfigFile], done: str) -> None:
    """Change the user's file, and show the contexts as they are now; `{}` in `done` is the file."""
    path = settings.user_file_path()
    change_user_file(path, change, settings.check_value)
    show_contexts(terminal, done.format(path))


def show_contexts(terminal: Terminal, done: str | None = None) -> None:
    path, config = settings.user_file_path(), settings.read_configuration()
    active, findings = active_context(config)
    terminal.show(contexts_report(path, config, active, done), ClusterSnapshot("configuration", path), findings)


def active_context(config: ConfigFile) -> tuple[str | None, list[Finding]]:
    """The context that commands use here, and a finding where the file does not choose it."""
    chosen = settings.chosen_context(config)
    if chosen is None:
        return None, []
    name = str(chosen.value)
    if name not in config.contexts:
        return None, [Finding("no-such-context", f"{chosen.origin}: there is no context {name[:80]!r}")]
    own = config.values.get("context")
    if chosen.layer == "user file" or (own is not None and own.value == name):
        return name, []
    return name, [info(f"here {chosen.origin} chooses context {name}")]


app = grouped(
    "context",
    {"add": add_context, "list": list_contexts, "use": use_context, "show": show_context, "remove": remove_context},
)


@app.callback()
def context() -> None:
    """Manage named endpoints: a source, its user, and the location of its secret.

    Commands without a source read the active context. Contexts are in $XDG_CONFIG_HOME/rmqlb/config.yaml, otherwise in
    ~/.config/rmqlb/config.yaml. The file never contains a secret.
    """
