"""Contexts and settings, as reports. A secret's place is shown, never a secret."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rmqlb.model.configuration import ENDPOINT, ConfigFile, Configuration, Context, Setting, Value
from rmqlb.views.report import Cell, Column, Report, Section

_LIST = (
    Column("", "active"),
    Column("Context", "context"),
    Column("Source", "source"),
    Column("Account", "account"),
    Column("Secret", "secret"),
    Column("Line", "line", "number"),
)
_ONE = (Column("Key", "key"), Column("Value", "value"), Column("Line", "line", "number"))
_ACTIVE = "*"


def contexts_report(path: str, config: ConfigFile, active: str | None, done: str | None = None) -> Report:
    """All contexts.

    Args:
        path: the user's file, there or not.
        config: what it says.
        active: the context that commands use here, or None.
        done: what has just been done with them, or None.
    """
    contexts = config.contexts.values()
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (
            _ACTIVE if context.name == active else "",
            context.name,
            context.text("source"),
            context.text("user") or context.text("access-key"),
            context.text("secret"),
            context.place.line,
        )
        for context in contexts
    )
    return Report(
        schema="rmqlb/contexts",
        data={"path": path, "active": active, "contexts": [_data(context, active) for context in contexts]},
        facts=() if done is None else (done,),
        sections=(Section("contexts", "contexts", _LIST, rows),),
        labels={},
    )


def context_report(context: Context, active: str | None) -> Report:
    """One context, key by key."""
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (key.name, _cell(context.values[key.name].value), context.values[key.name].place.line)
        for key in ENDPOINT
        if key.name in context.values
    )
    is_active = ", the active one" if context.name == active else ""
    return Report(
        schema="rmqlb/context",
        data={"path": context.place.path, **_data(context, active)},
        facts=(f"context {context.name}{is_active}; {context.place.path}, line {context.place.line}",),
        sections=(Section("context", "context", _ONE, rows),),
        labels={},
    )


def config_report(settings: Sequence[Setting], configuration: Configuration, *, origin: bool) -> Report:
    """Every setting, and what set it.

    Args:
        settings: in the order to show.
        configuration: the files.
        origin: for people too; machines are always told.
    """
    columns = (
        Column("Setting", "key"),
        Column("Value", "value"),
        Column("Layer", "layer", shown=origin),
        Column("Set by", "origin", shown=origin),
    )
    rows = tuple((setting.key, _cell(setting.value), setting.layer, _origin(setting)) for setting in settings)
    files = {"userFile": configuration.user.path, "projectFile": configuration.project.path}
    return Report(
        schema="rmqlb/config",
        data={**files, "settings": [_setting(setting) for setting in settings]},
        facts=(
            f"user file: {configuration.user.path or 'none'}",
            f"project file: {configuration.project.path or 'none'}",
        ),
        sections=(Section("settings", "settings", columns, rows),),
        labels={},
    )


def _data(context: Context, active: str | None) -> dict[str, Any]:
    values = {
        _camel(key.name): _plain(context.values[key.name].value) if key.name in context.values else None
        for key in ENDPOINT
    }
    return {"name": context.name, "active": context.name == active, **values, "line": context.place.line}


def _setting(setting: Setting) -> dict[str, Any]:
    place = setting.place
    return {
        "key": setting.key,
        "value": None if setting.value is None else _plain(setting.value),
        "layer": setting.layer,
        "origin": setting.origin or None,
        "path": None if place is None else place.path,
        "line": None if place is None else place.line,
    }


def _origin(setting: Setting) -> str | None:
    """A lone --timeout would be a formula to a spreadsheet."""
    return f"option {setting.origin}" if setting.layer == "flag" else setting.origin or None


def _plain(value: Value) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _cell(value: Value | None) -> Cell:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value


def _camel(key: str) -> str:
    """A key as JSON spells it.

    >>> _camel("access-key")
    'accessKey'
    """
    first, *others = key.split("-")
    return first + "".join(word.capitalize() for word in others)
