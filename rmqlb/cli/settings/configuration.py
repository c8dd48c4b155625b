"""The configuration files, found, read and checked. Nothing is read where there is no file."""

from __future__ import annotations

import os

from rmqlb.cli.common import amounts
from rmqlb.errors import RmqlbError, UsageError
from rmqlb.model.configuration import (
    COLORS,
    ConfigFile,
    Configuration,
    Context,
    Value,
    check_context_name,
    secret_place,
)
from rmqlb.model.snapshot import suggestion
from rmqlb.sources.user_files.config_places import project_file, user_file
from rmqlb.views.report import FORMATS

MOST_RETRIES = 20
"""Of a read, after passing faults."""


def user_file_path() -> str:
    """Where the user's file is, or would be."""
    path = user_file(os.environ)
    if path is None:
        raise UsageError(
            "there is no place for a configuration: neither XDG_CONFIG_HOME nor HOME is an absolute path",
            hint="set HOME, or XDG_CONFIG_HOME to the folder that holds rmqlb/config.yaml",
            code="no-home",
        )
    return path


def read_configuration() -> Configuration:
    """What the user's and the project's file say; there need be neither."""
    user, project = user_file(os.environ), project_file(os.environ)
    user = user if user is not None and os.path.lexists(user) else None
    if user is None and project is None:
        return Configuration()
    from rmqlb.sources.user_files.config_file import read_project_file, read_user_file

    found = Configuration(
        user=ConfigFile() if user is None else read_user_file(user),
        project=ConfigFile() if project is None else read_project_file(project),
    )
    check_file(found.user)
    check_file(found.project)
    return found


def check_file(config: ConfigFile) -> None:
    """Every value of a file makes sense."""
    try:
        for values in (config.values, *(context.values for context in config.contexts.values())):
            for key, written in values.items():
                check_value(key, written.value, str(written.place))
    except UsageError as error:
        from rmqlb.sources.user_files.config_file import of_configuration

        raise of_configuration(error) from None


def check_value(key: str, value: Value, where: str) -> None:
    """The value of a key makes sense; `where` says for messages who has it: an option, or a place in a file."""
    match key:
        case "context":
            check_context_name(str(value), where)
        case "output" if value not in FORMATS:
            raise UsageError(f"{where}: unknown format {value}", hint=suggestion("formats", str(value), FORMATS))
        case "color" if value not in COLORS:
            raise UsageError(f"{where} {value}: neither auto, always nor never")
        case "source-timeout" | "deadline":
            amounts.seconds(str(value), where)
        case "max-size":
            amounts.byte_count(str(value), where)
        case "source-retries" if not isinstance(value, int) or not 0 <= value <= MOST_RETRIES:
            raise UsageError(f"{where} {value}: not a number from 0 to {MOST_RETRIES}")
        case "secret":
            _check_secret(str(value), where)
        case "source":
            from rmqlb.sources.source_text import check_source

            check_source(str(value), where)
        case "proxy" | "map-address":
            _check_addresses(key, value if isinstance(value, tuple) else (), where)


def _check_secret(value: str, where: str) -> None:
    place = secret_place(value, where)
    if place.kind == "file" and not (os.path.isabs(place.name) or place.name.startswith("~/")):
        raise UsageError(f"{where}: a secret's file has an absolute path, or one that begins with ~/")


def _check_addresses(key: str, texts: tuple[str, ...], where: str) -> None:
    if key == "proxy":
        from rmqlb.sources.native.proxies import proxy_address

        for text in texts:
            proxy_address(text, where)
        return
    from rmqlb.sources.native.address_map import parse_address_map

    try:
        parse_address_map(texts)
    except UsageError as error:
        raise UsageError(f"{where}: {error.problem}", hint=error.hint) from None


def context_named(name: str, config: ConfigFile, where: str | None = None) -> Context:
    """The context of a name."""
    if name not in config.contexts:
        problem = f"there is no context {name[:80]!r}"
        hint = suggestion("contexts", name, config.contexts) if config.contexts else "rmqlb context add makes one"
        raise UsageError(f"{where}: {problem}" if where else problem, hint=hint, code="context-not-found")
    return config.contexts[name]


def configured_output() -> str | None:
    """The format that the files ask for, for errors that are older than any option; None when they cannot be read."""
    try:
        found = read_configuration()
    except (RmqlbError, OSError):
        return None
    written = found.project.values.get("output") or found.user.values.get("output")
    return None if written is None else str(written.value)
