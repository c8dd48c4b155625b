"""Which layer sets which option: flag > environment > context in force > project file > user file > default.

Click knows the first two and the last (`Context.get_parameter_source`); what came from neither the line nor the
environment is looked up here. An option and its key in a file are one by the environment variable: `RMQLB_MAX_SIZE` is
`max-size`.

Rules of a context:
- A source of the line or of the environment puts it aside, whole: nothing of it is sent anywhere else.
- Its secret belongs to its account: another account on the line or in the environment goes without it.
- A user in the source's URL is of the source's layer: the stronger one of it and of `user` logs in.
- When a project file chose it, the environment's credentials do not count.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, cast, get_args

from msgspec import Struct

from rmqlb.cli import click
from rmqlb.cli.settings.configuration import check_value, context_named, read_configuration
from rmqlb.errors import UsageError
from rmqlb.model.configuration import ActiveContext, Configuration, Context, Layer, Setting, Value, Written
from rmqlb.views.report import FORMATS

_PREFIX = "RMQLB_"
_CREDENTIALS = ("user", "password-file", "access-key", "secret-key-file", "client-cert", "client-key")
_PATHS = ("ca-file", "client-cert", "client-key")
_ACCOUNTS = ("user", "access-key")
_LAYERS: tuple[Layer, ...] = get_args(Layer)
_TEXTS = ("color", "source-timeout", "deadline", "max-size", "proxy", "map-address")
"""Those whose texts only commands read, and then take for an option's."""
_GIVEN: tuple[Layer, ...] = ("flag", "environment")


class ResolvedOptions(Struct, frozen=True):
    """The options of a command line, each with the layer that set it."""

    # parameter of the command → what it is; only those that have an environment variable
    settings: Mapping[str, Setting]
    active_context: ActiveContext | None
    # the line to say when a source replaces a context that was chosen on the command line or in the environment; or
    # None
    ignored_context_note: str | None
    configuration: Configuration

    def values(self, line: click.Context) -> dict[str, Any]:
        """Parameter → value, of those that are not what click takes them for."""
        return {
            name: list(setting.value) if isinstance(setting.value, tuple) else setting.value
            for name, setting in self.settings.items()
            if setting.value != _value(line, name)
        }


def resolve_options(
    line: click.Context, formats: tuple[str, ...] | None = None, chosen: Setting | None = None
) -> ResolvedOptions:
    """What the options are, after all layers.

    Args:
        formats: the only ones that the command can write: a file or a variable, which are for all commands, may ask
            for another, a flag may not.
        chosen: the context, where it is named otherwise than with an option.
    """
    configuration = read_configuration()
    names = {key: name for parameter in line.command.params if (key := _key(parameter)) and (name := parameter.name)}
    given = {key: _given(line, key, name) for key, name in names.items()}
    if chosen is None and "context" in names:
        chosen = given["context"] or _of_files("context", None, configuration)
    source = given.get("source")
    context = _context(chosen, source, configuration)
    by_project = context is not None and chosen is not None and chosen.layer == "project file"
    if by_project:
        given = {
            key: setting
            for key, setting in given.items()
            if setting is None or setting.layer != "environment" or key not in _CREDENTIALS
        }
    for key in _TEXTS:
        setting = given.get(key)
        if setting is not None and setting.layer == "environment" and setting.value is not None:
            check_value(key, setting.value, setting.origin)
    settings = {}
    for key, name in names.items():
        layers = (given.get(key), _of_files(key, context, configuration), Setting(key, _default(line, name)))
        settings[name] = next(setting for setting in layers if setting is not None and _is_for(formats, setting))
    if {"source", "user"} <= names.keys():
        settings |= _one_user(names["source"], names["user"], settings)
    active_context = None if context is None else _active_context(context, given, by_project=by_project)
    return ResolvedOptions(settings, active_context, _ignored_context_note(chosen, source), configuration)


def _is_for(formats: tuple[str, ...] | None, setting: Setting) -> bool:
    """Whether the setting is for this command; a format that others have and it has not is for them, unless typed."""
    other = setting.key == "output" and setting.layer != "flag" and setting.value in FORMATS
    return formats is None or not other or setting.value in formats


def _one_user(source: str, user: str, settings: Mapping[str, Setting]) -> dict[str, Setting]:
    """The source and the user, of whom the URL may name another one: the stronger layer's counts."""
    url, other = settings[source], settings[user]
    if "@" not in str(url.value or ""):
        return {}
    from rmqlb.sources.source_text import user_in, without_user

    named = user_in(str(url.value or ""))
    if named is None:
        return {}
    in_url = Setting("user", named, url.layer, url.origin, url.place)
    if other.value in (None, named) or _LAYERS.index(url.layer) < _LAYERS.index(other.layer):
        return {user: in_url}
    if url.layer == other.layer:
        raise UsageError(f"{other.origin}: {url.origin} names another user", hint="name one of them only")
    return {source: Setting("source", without_user(str(url.value)), url.layer, url.origin, url.place)}


def chosen_context(configuration: Configuration) -> Setting | None:
    """The context that a command without `--context` uses here, by the environment or a file; None is none."""
    variable = _PREFIX + "CONTEXT"
    if os.environ.get(variable):
        return Setting("context", os.environ[variable], "environment", variable)
    return _of_files("context", None, configuration)


def _context(chosen: Setting | None, source: Setting | None, configuration: Configuration) -> Context | None:
    """The context to read; a name on the line is looked up even when a source goes before it."""
    if chosen is None or (source is not None and chosen.layer != "flag"):
        return None
    context = context_named(str(chosen.value), configuration.user, chosen.origin)
    return context if source is None else None


def _ignored_context_note(chosen: Setting | None, source: Setting | None) -> str | None:
    """Nothing is said of a context that stands in a file, or in the environment while the line names a source."""
    if chosen is None or source is None or chosen.layer not in _GIVEN:
        return None
    if _GIVEN.index(chosen.layer) > _GIVEN.index(source.layer):
        return None
    return f"context {chosen.value} is not used: {source.origin} names the source"


def _active_context(context: Context, given: Mapping[str, Setting | None], *, by_project: bool) -> ActiveContext:
    from rmqlb.sources.source_text import user_in

    own_user = context.text("user") or user_in(context.text("source") or "")
    own = {"user": own_user, "access-key": context.text("access-key")}
    accounts = [(setting.value, own[key]) for key in _ACCOUNTS if (setting := given.get(key)) is not None]
    is_other = any(name is not None and given_name != name for given_name, name in accounts)
    secret = None if is_other else context.values.get("secret")
    return ActiveContext(context.name, context.text("source") or "", secret, by_project)


def _key(parameter: click.Parameter) -> str | None:
    variable = parameter.envvar
    if not isinstance(variable, str) or not variable.startswith(_PREFIX):
        return None
    return variable.removeprefix(_PREFIX).lower().replace("_", "-")


def _given(line: click.Context, key: str, name: str) -> Setting | None:
    match line.get_parameter_source(name):
        case click.ParameterSource.COMMANDLINE:
            return Setting(key, _value(line, name), "flag", max(_parameter(line, name).opts, key=len))
        case click.ParameterSource.ENVIRONMENT:
            return Setting(key, _value(line, name), "environment", _PREFIX + key.upper().replace("-", "_"))
    return None


def _default(line: click.Context, name: str) -> Value | None:
    """Of what the environment says and must not count, the default is not that."""
    if line.get_parameter_source(name) is click.ParameterSource.DEFAULT:
        return _value(line, name)
    return cast("Value | None", _parameter(line, name).get_default(line))


def _parameter(line: click.Context, name: str) -> click.Parameter:
    return next(parameter for parameter in line.command.params if parameter.name == name)


def _value(line: click.Context, name: str) -> Value | None:
    value = line.params.get(name)
    return tuple(value) or None if isinstance(value, list | tuple) else value


def _of_files(key: str, context: Context | None, configuration: Configuration) -> Setting | None:
    """The first of the context, the project file and the user file that has the key."""
    layers: tuple[tuple[Layer, Mapping[str, Written]], ...] = (
        ("context", {} if context is None else context.values),
        ("project file", configuration.project.values),
        ("user file", configuration.user.values),
    )
    for layer, values in layers:
        if key in values:
            value = values[key].value
            if key in _PATHS:
                value = os.path.expanduser(str(value))
            return Setting(key, value, layer, str(values[key].place), values[key].place)
    return None
