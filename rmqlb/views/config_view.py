"""Contexts and settings, as reports. A secret's place is shown, never a secret."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rmqlb.model.configuration import ENDPOINT, ConfigFile, Configuration, Context, Setting, Value
from rmqlb.views.report import Cell, Column, Report, Section

if TYPE_CHECKING:
    from rmqlb.views.shapes.configuration import ConfigData, ContextData, ContextsData, OneContextData, SettingData

_LIST = (
    Column("", "active"),
    Column("context", "context"),
    Column("source", "source"),
    Column("account", "account"),
    Column("secret", "secret"),
    Column("line", "line", "number"),
)
_ONE = (Column("key", "key"), Column("value", "value"), Column("line", "line", "number"))
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
    data: ContextsData = {
        "path": path,
        "active": active,
        "contexts": [_data(context, active) for context in contexts],
    }
    return Report(
        schema="rmqlb/contexts",
        data=data,
        facts=() if done is None else (done,),
        sections=(Section("contexts", "contexts", _LIST, rows, heads=2),),
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
    data: OneContextData = {"path": context.place.path, "context": _data(context, active)}
    return Report(
        schema="rmqlb/context",
        data=data,
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
        Column("setting", "key"),
        Column("value", "value"),
        Column("layer", "layer", shown=origin),
        Column("set by", "origin", shown=origin),
    )
    rows = tuple((setting.key, _cell(setting.value), setting.layer, _origin(setting)) for setting in settings)
    data: ConfigData = {
        "userFile": configuration.user.path,
        "projectFile": configuration.project.path,
        "settings": [_setting(setting) for setting in settings],
    }
    return Report(
        schema="rmqlb/config",
        data=data,
        facts=(
            f"user file: {configuration.user.path or 'none'}",
            f"project file: {configuration.project.path or 'none'}",
        ),
        sections=(Section("settings", "settings", columns, rows),),
        labels={},
    )


def _data(context: Context, active: str | None) -> ContextData:
    addresses, retries = (
        context.values[key].value if key in context.values else None for key in ("map-address", "retries")
    )
    return {
        "name": context.name,
        "active": context.name == active,
        "source": context.text("source"),
        "user": context.text("user"),
        "accessKey": context.text("access-key"),
        "secret": context.text("secret"),
        "caFile": context.text("ca-file"),
        "clientCert": context.text("client-cert"),
        "clientKey": context.text("client-key"),
        "tlsName": context.text("tls-name"),
        "mapAddress": list(addresses) if isinstance(addresses, tuple) else None,
        "timeout": context.text("timeout"),
        "retries": retries if isinstance(retries, int) else None,
        "line": context.place.line,
    }


def _setting(setting: Setting) -> SettingData:
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


def _plain(value: Value) -> str | int | bool | list[str]:
    return list(value) if isinstance(value, tuple) else value


def _cell(value: Value | None) -> Cell:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value
