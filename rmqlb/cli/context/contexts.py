"""What the commands on contexts share: the options of an endpoint, and the list that each of them shows."""

import os
from collections.abc import Callable
from typing import Annotated

from msgspec import Struct

from rmqlb.cli.common.options import panel
from rmqlb.cli.common.terminal import Terminal
from rmqlb.cli.settings import (
    MOST_RETRIES,
    check_file,
    check_value,
    chosen_context,
    read_configuration,
    user_file_path,
)
from rmqlb.errors import UsageError
from rmqlb.model.configuration import ENDPOINT, ConfigFile, Value
from rmqlb.model.finding import Finding, info
from rmqlb.model.snapshot import ClusterSnapshot

endpoint_option = panel("Endpoint")


class EndpointOptions(Struct, frozen=True):
    """What a context holds; unlike those of other commands, none of them comes from the environment."""

    source: Annotated[
        str | None,
        endpoint_option(
            "-s",
            "--source",
            metavar="URL|FILE",
            help="rocketmq://HOST:9876,… for NameServers, http(s)://… for a Dashboard, or a snapshot file.",
        ),
    ] = None
    user: Annotated[str | None, endpoint_option(help="Who logs in to the Dashboard.")] = None
    access_key: Annotated[str | None, endpoint_option(help="Account of a cluster with ACL.")] = None
    secret: Annotated[
        str | None,
        endpoint_option(
            metavar="file:PATH|env:NAME|keyring:SERVICE/USER",
            help="Where the user's password or the account's secret key is; never the secret itself.",
        ),
    ] = None
    ca_file: Annotated[
        str | None, endpoint_option(metavar="FILE", help="Trust only the CA certificates in this PEM file.")
    ] = None
    client_cert: Annotated[str | None, endpoint_option(metavar="FILE", help="PEM certificate to show.")] = None
    client_key: Annotated[
        str | None, endpoint_option(metavar="FILE", help="Its PEM key, when that is another file.")
    ] = None
    tls_name: Annotated[
        str | None, endpoint_option(metavar="NAME", help="The name that in every server's certificate.")
    ] = None
    proxy: Annotated[
        list[str] | None,
        endpoint_option(metavar="HOST[:8080]", help="A Proxy's remoting port, which tells its consumers; repeatable."),
    ] = None
    map_address: Annotated[
        list[str] | None, endpoint_option(metavar="FROM=TO", help="Reach this address at another; repeatable.")
    ] = None
    source_timeout: Annotated[str | None, endpoint_option(metavar="TIME", help="Timeout of one request.")] = None
    source_retries: Annotated[
        int | None, endpoint_option(min=0, max=MOST_RETRIES, help="Retries of a read on transient errors.")
    ] = None


def values_of(options: EndpointOptions) -> dict[str, Value]:
    """The values to keep: checked, and paths that mean the same from every folder."""
    values: dict[str, Value] = {}
    for key in ENDPOINT:
        value = getattr(options, key.name.replace("-", "_"))
        if value is None or value == []:
            continue
        values[key.name] = _kept(
            key.name, tuple(value) if isinstance(value, list) else value, is_path=key.kind == "path"
        )
        check_value(key.name, values[key.name], f"--{key.name}")
    if "source" not in values:
        raise UsageError(
            "no source",
            hint="name the NameServers, rocketmq://HOST:9876, or a Dashboard's URL with -s",
            code="no-source",
        )
    from rmqlb.sources.source_text import user_in

    named = user_in(str(values["source"]))
    if named is not None and values.get("user", named) != named:
        raise UsageError("--user: --source names another user", hint="name one of them only")
    return values


def _kept(name: str, value: Value, *, is_path: bool) -> Value:
    from rmqlb.sources.user_files.config_file import require_text

    for text in value if isinstance(value, tuple) else (value,):
        if isinstance(text, str):
            require_text(text, f"--{name}")
    if not isinstance(value, str):
        return value
    if is_path or (name == "source" and os.path.exists(value)):
        return os.path.abspath(os.path.expanduser(value))
    kind, _, path = value.partition(":")
    if name == "secret" and kind == "file" and path and not path.startswith("~/"):
        return f"file:{os.path.abspath(path)}"
    return value


def change_contexts(terminal: Terminal, change: Callable[[ConfigFile], ConfigFile], done: str) -> None:
    """Change the user's file, and show the contexts as they are now; `{}` in `done` is the file."""
    from rmqlb.sources.user_files.config_file import change_user_file

    path = user_file_path()

    def checked(config: ConfigFile) -> ConfigFile:
        check_file(config)
        return change(config)

    change_user_file(path, checked)
    show_contexts(terminal, done.format(path))


def show_contexts(terminal: Terminal, done: str | None = None) -> None:
    """The contexts, and which one commands use here."""
    from rmqlb.views.config_view import contexts_report

    path = user_file_path()
    config = read_configuration()
    active, findings = active_context(config)
    report = contexts_report(path, config, active, done)
    terminal.show(report, ClusterSnapshot("configuration", path), findings)


def active_context(config: ConfigFile) -> tuple[str | None, list[Finding]]:
    """The context that commands use here, and what is worth saying of the choice."""
    chosen = chosen_context(config)
    if chosen is None:
        return None, []
    name = str(chosen.value)
    if name not in config.contexts:
        return None, [Finding("no-such-context", f"{chosen.origin}: there is no context {name[:80]!r}")]
    own = config.values.get("context")
    if chosen.layer == "user file" or (own is not None and own.value == name):
        return name, []
    return name, [info(f"here {chosen.origin} chooses context {name}")]
