"""What sets an option: flag > environment > context in force > the user's file > default.

Click knows the first two and the last (`Context.get_parameter_source`); the others are looked up here. An option and
its key in the file are one by the environment variable: `RMQLB_MAX_SIZE` is `max-size`.

Rules of a context:
- A source on the line or in the environment replaces the whole context: nothing of the context is sent anywhere else.
- NAMESRV_ADDR, which other tools read too, gives way to RMQLB_SOURCE, --context and RMQLB_CONTEXT.
- A source that is no file and has the name of a context is that context.
- Its secret belongs to its account: another account on the line or in the environment goes without the secret.
- A user in the source's URL is of the source's layer: of that user and `user`, the one of the stronger layer logs in.
"""

import os
from collections.abc import Callable, Mapping
from typing import Any, get_args

from msgspec import Struct
from msgspec.structs import replace

from rmqlb.cli import click
from rmqlb.errors import DataError, RmqlbError, UsageError
from rmqlb.model.configuration import (
    COLORS,
    ConfigFile,
    Context,
    Layer,
    Setting,
    Value,
    check_context_name,
    secret_place,
)
from rmqlb.model.snapshot import suggestion
from rmqlb.verbs import amounts
from rmqlb.views.report import FORMATS, format_of

MOST_RETRIES = 20
"""Retries of a read, after passing faults."""
_PREFIX = "RMQLB_"
_NAME_SERVERS = "NAMESRV_ADDR"
_PATHS = ("ca-file", "client-cert", "client-key")
_ACCOUNTS = ("user", "access-key")
_LAYERS: tuple[Layer, ...] = get_args(Layer)
_OTHERWISE_CHECKED = ("context", "output", "source")
"""A context is looked up, some commands write more formats, and a source is checked when it is opened."""


class ResolvedOptions(Struct, frozen=True):
    settings: Mapping[str, Setting]  # parameter → its setting, of parameters that have an environment variable
    active_context: Context | None  # the one whose source is read
    # why a context that was chosen on the command line or in the environment is not used; or None
    ignored_context_note: str | None
    config: ConfigFile

    def values(self) -> dict[str, Any]:
        found = {name: setting.value for name, setting in self.settings.items()}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in found.items()}


def resolve_options(
    line: click.Context, formats: tuple[str, ...] | None = None, chosen: Setting | None = None
) -> ResolvedOptions:
    """Resolve each option through all layers.

    Args:
        formats: the only ones that the command can write. The file and a variable, which are for all commands, may ask
            for another one; a flag may not.
        chosen: the context, where no option names it.
    """
    config = read_configuration()
    options = {key: parameter for parameter in line.command.params if (key := _key(parameter))}
    given = {key: _given(line, key, parameter) for key, parameter in options.items()}
    if chosen is None and "context" in options:
        chosen = given["context"] or _of_file("context", None, config)
    if "source" in given:
        given["source"] = _source(line, given["source"], chosen)
        chosen = _context_as_source(given, config) or chosen
    source = given.get("source")
    context = _context(chosen, source, config)
    for setting in given.values():
        if setting is not None and setting.value is not None and setting.key not in _OTHERWISE_CHECKED:
            check_value(setting.key, setting.value, setting.origin)
    settings = {}
    for key, parameter in options.items():
        layers = (
            given[key],
            _of_file(key, context, config),
            Setting(key, None if given[key] else _value(line.params.get(str(parameter.name)))),
        )
        settings[key] = next(setting for setting in layers if setting is not None and _is_for(formats, setting))
    if (found := settings.get("source")) is not None and found.value is not None:
        from rmqlb.sources.source_text import as_url

        settings["source"] = replace(found, value=as_url(str(found.value)))
    if {"source", "user"} <= options.keys():
        settings |= _one_user(settings["source"], settings["user"])
    active_context = None if context is None else _active_context(context, given)
    by_name = {str(options[key].name): setting for key, setting in settings.items()}
    return ResolvedOptions(by_name, active_context, _ignored_context_note(chosen, source), config)


def _is_for(formats: tuple[str, ...] | None, setting: Setting) -> bool:
    """Whether the setting is for this command: only a flag may name a format that the command does not write."""
    other = setting.key == "output" and setting.layer != "flag" and format_of(str(setting.value)) in FORMATS
    return formats is None or not other or format_of(str(setting.value)) in formats


def _one_user(source: Setting, user: Setting) -> dict[str, Setting]:
    """The source or the user as the stronger layer has it, where the source's URL names a user too."""
    if "@" not in str(source.value or ""):
        return {}
    from rmqlb.sources.source_text import user_in, without_user

    named = user_in(str(source.value))
    if named is None:
        return {}
    if user.value in (None, named) or _LAYERS.index(source.layer) < _LAYERS.index(user.layer):
        return {"user": Setting("user", named, source.layer, source.origin)}
    if source.layer == user.layer:
        raise UsageError(f"{user.origin}: {source.origin} names another user", hint="pass only one of them")
    return {"source": Setting("source", without_user(str(source.value)), source.layer, source.origin)}


def _source(line: click.Context, source: Setting | None, chosen: Setting | None) -> Setting | None:
    """The source on the line or in the environment."""
    from rmqlb.sources.source_text import name_servers

    option = next((each for each in line.command.params if each.name == "namesrv_addr"), None)
    servers = None if option is None else _given(line, "source", option)
    if servers is not None and servers.layer == "flag" and source is not None and source.layer == "flag":
        raise named_twice()
    is_used = source is None and (chosen is None or chosen.layer == "user file")
    if servers is not None and (servers.layer == "flag" or is_used):
        return replace(servers, value=name_servers(str(servers.value), servers.origin))
    return source


def named_twice() -> UsageError:
    return UsageError(
        "--namesrv-addr and --source both name the source", hint="pass only one of them", code="given-twice"
    )


def _context_as_source(given: dict[str, Setting | None], config: ConfigFile) -> Setting | None:
    """The context that the source names, if it is no file; the source is then the context's own."""
    source, name = given["source"], str(given["source"].value if given["source"] else "")
    if source is None or name not in config.contexts or given.get("context") or os.path.lexists(name):
        return None
    given["source"] = None
    return replace(source, key="context")


def chosen_context(config: ConfigFile) -> Setting | None:
    """The context of commands without `--context`, by the environment or the file."""
    variable = _PREFIX + "CONTEXT"
    if os.environ.get(variable):
        return Setting("context", os.environ[variable], "environment", variable)
    return _of_file("context", None, config)


def _context(chosen: Setting | None, source: Setting | None, config: ConfigFile) -> Context | None:
    """The context to read; a name on the line is looked up even when a source replaces the context."""
    if chosen is None or (source is not None and chosen.layer != "flag"):
        return None
    context = context_named(str(chosen.value), config, chosen.origin)
    return context if source is None else None


def _ignored_context_note(chosen: Setting | None, source: Setting | None) -> str | None:
    """Nothing is said of a context in a file, unless NAMESRV_ADDR replaces it, or of RMQLB_CONTEXT next to -s."""
    if chosen is None or source is None:
        return None
    if chosen.layer not in ("flag", source.layer) and source.origin != _NAME_SERVERS:
        return None
    return f"context {chosen.value} is not used: {source.origin} names the source"


def _active_context(context: Context, given: Mapping[str, Setting | None]) -> Context:
    from rmqlb.sources.source_text import user_in

    own_user = context.text("user") or user_in(context.text("source") or "")
    own = {"user": own_user, "access-key": context.text("access-key")}
    accounts = [(setting.value, own[key]) for key in _ACCOUNTS if (setting := given.get(key)) is not None]
    is_other = any(name is not None and given_name != name for given_name, name in accounts)
    values = {key: written for key, written in context.values.items() if key != "secret" or not is_other}
    return replace(context, values=values)


def _key(parameter: click.Parameter) -> str | None:
    variable = parameter.envvar
    if not isinstance(variable, str) or not variable.startswith(_PREFIX):
        return None
    return variable.removeprefix(_PREFIX).lower().replace("_", "-")


def _given(line: click.Context, key: str, parameter: click.Parameter) -> Setting | None:
    name = str(parameter.name)
    value = _value(line.params.get(name))
    match line.get_parameter_source(name):
        case click.ParameterSource.COMMANDLINE:
            return Setting(key, value, "flag", max(parameter.opts, key=len))
        case click.ParameterSource.ENVIRONMENT:
            return Setting(key, value, "environment", str(parameter.envvar))
    return None


def _value(value: Any) -> Value | None:
    return tuple(value) or None if isinstance(value, list | tuple) else value


def _of_file(key: str, context: Context | None, config: ConfigFile) -> Setting | None:
    layer: Layer = "user file" if context is None or key not in context.values else "context"
    written = (config if context is None or layer == "user file" else context).values.get(key)
    if written is None:
        return None
    value = os.path.expanduser(str(written.value)) if key in _PATHS else written.value
    return Setting(key, value, layer, written.origin)


def user_file_path() -> str:
    """The path of the user's file, there or not (raises UsageError when nothing says where it would be)."""
    path = _user_file()
    if path is None:
        problem = "no folder for the configuration: neither XDG_CONFIG_HOME nor HOME is an absolute path"
        hint = "set HOME, or set XDG_CONFIG_HOME to the folder that contains rmqlb/config.yaml"
        raise UsageError(problem, hint=hint, code="no-home")
    return path


def _user_file() -> str | None:
    """As the XDG base directory specification has it: a variable that is no absolute path counts as not set."""
    for variable, below in (("XDG_CONFIG_HOME", ""), ("HOME", ".config")):
        folder = os.environ.get(variable, "")
        if os.path.isabs(folder):
            return os.path.join(folder, below, "rmqlb", "config.yaml")
    return None


def read_configuration() -> ConfigFile:
    """The user's file, read and checked; an empty one when there is none."""
    path = _user_file()
    if path is None or not os.path.lexists(path):
        return ConfigFile()
    from rmqlb.sources.user_files.config_file import read_user_file

    return read_user_file(path, check_value)


def _check_secret(text: str, where: str) -> None:
    kind, name = secret_place(text, where)
    if kind == "file" and not (os.path.isabs(name) or name.startswith("~/")):
        raise UsageError(f"{where}: the path of a secret's file must be absolute or begin with ~/")


_CHECKS: Mapping[str, Callable[[str, str], object]] = {
    "context": check_context_name,
    "color": lambda text, where: amounts.one_of(text, where, COLORS),
    "source-timeout": amounts.seconds,
    "deadline": amounts.seconds,
    "max-size": amounts.byte_count,
    "secret": _check_secret,
}
"""Key → the check of its text."""


def check_value(key: str, value: Value, where: str) -> None:
    """The value of a key makes sense; `where` says for messages who has it: an option, or a place in a file."""
    if key in _CHECKS:
        _CHECKS[key](str(value), where)
    match key, value:
        case "output", _ if format_of(str(value)) not in FORMATS:
            raise UsageError(f"{where}: unknown format {value}", hint=suggestion("formats", str(value), FORMATS))
        case "source-retries", _ if not isinstance(value, int) or not 0 <= value <= MOST_RETRIES:
            raise UsageError(f"{where} {value}: not a number from 0 to {MOST_RETRIES}")
        case "source", _:
            from rmqlb.sources.source_text import check_source

            check_source(str(value), where)
        case "proxy", tuple(texts):
            from rmqlb.sources.native.source import proxy_address

            for text in texts:
                proxy_address(text, where)
        case "map-address", tuple(texts):
            from rmqlb.sources.native.wire import parse_address_map

            parse_address_map(texts, where)


def context_named(name: str, config: ConfigFile, where: str | None = None) -> Context:
    if name not in config.contexts:
        problem = f"there is no context {name[:80]!r}"
        hint = suggestion("contexts", name, config.contexts) if config.contexts else "rmqlb context add creates one"
        raise DataError(f"{where}: {problem}" if where else problem, hint=hint, code="context-not-found")
    return config.contexts[name]


def configured_output() -> str | None:
    """The format that the file asks for, for errors that are older than any option; None when it cannot be read."""
    try:
        written = read_configuration().values.get("output")
    except (RmqlbError, OSError):
        return None
    return None if written is None else str(written.value)
