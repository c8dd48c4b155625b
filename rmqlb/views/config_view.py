"""Contexts and settings as reports, which show the place of a secret but never a secret."""

from collections.abc import Sequence
from typing import Annotated, Any

from msgspec import Struct

from rmqlb.model.configuration import ENDPOINT, ConfigFile, Context, Layer, Setting, Value
from rmqlb.model.result import counted
from rmqlb.views.columns import columns_from
from rmqlb.views.report import Report, Section, section_of


class ContextEntry(Struct, frozen=True, rename="camel"):
    """A context; a key is null where the file does not have it."""

    name: Annotated[str, "its name"]
    active: Annotated[bool, "commands use it here if you name no source"]
    source: Annotated[str | None, "where the cluster is"]
    user: Annotated[str | None, "Dashboard user"]
    access_key: Annotated[str | None, "the account of a cluster with ACL"]
    secret: Annotated[str | None, "location of the password or the secret key"]
    ca_file: Annotated[str | None, "PEM file of the CAs that are trusted"]
    client_cert: Annotated[str | None, "PEM file of the client certificate"]
    client_key: Annotated[str | None, "PEM file of the key of the client certificate"]
    tls_name: Annotated[str | None, "the name in every server's certificate"]
    proxy: Annotated[tuple[str, ...] | None, "remoting ports of Proxies whose consumers to list"]
    map_address: Annotated[tuple[str, ...] | None, "addresses to replace by others, FROM=TO"]
    source_timeout: Annotated[str | None, "timeout of one request, as written"]
    source_retries: Annotated[int | None, "retries of a read on transient errors"]
    line: Annotated[int, "line in the file, from 1"]


class Contexts(Struct, frozen=True):
    """The contexts of the user."""

    path: Annotated[str, "the user's file, there or not"]
    active: Annotated[str | None, "the context that commands use here; null is none"]
    contexts: Annotated[tuple[ContextEntry, ...], "in the file's order"]


class OneContext(Struct, frozen=True):
    """One context."""

    path: Annotated[str, "the file that it is in"]
    context: Annotated[ContextEntry, "its value"]


class SettingEntry(Struct, frozen=True):
    """A setting as a command would use it."""

    key: Annotated[str, "as in the file"]
    value: Annotated[Value | None, "null is nothing; for a secret, only that it is set, or its location"]
    layer: Annotated[Layer, "what set it"]
    origin: Annotated[str | None, "the option, the variable or the place in the file; null for a default"]


class ConfiguredSettings(Struct, frozen=True, rename="camel"):
    """The settings as a command would use them."""

    user_file: Annotated[str | None, "the user's file; null when there is none"]
    settings: Annotated[tuple[SettingEntry, ...], "one by one"]


def contexts_report(path: str, config: ConfigFile, active: str | None, done: str | None = None) -> Report:
    entries = tuple(_entry(context, active) for context in config.contexts.values())
    which = "no contexts; rmqlb context add NAME -s SOURCE creates one"
    if entries:
        which = f"{counted(len(entries), 'context')}; active here: {active or 'none'}"
    section = section_of("contexts", "contexts", _LIST, entries, heads=2)
    return Report("rmqlb/contexts", Contexts(path, active, entries), (*filter(None, [done]), which), (section,))


def context_report(context: Context, active: str | None) -> Report:
    written = {key.name: context.values[key.name] for key in ENDPOINT if key.name in context.values}
    rows = tuple((name, each.value, each.line) for name, each in written.items())
    is_active = ", active here" if context.name == active else ""
    fact = f"context {context.name}{is_active}: {context.text('source') or 'no source'}"
    facts = (fact, f"  {context.path}, line {context.line}")
    data = OneContext(context.path, _entry(context, active))
    return Report("rmqlb/context", data, facts, (Section("context", "context", _ONE, rows),))


def config_report(settings: Sequence[Setting], config: ConfigFile) -> Report:
    entries = tuple(SettingEntry(each.key, each.value, each.layer, each.origin or None) for each in settings)
    source = next((each for each in settings if each.key == "source" and each.value is not None), None)
    fact = "no source is set: name one with -s, RMQLB_SOURCE or a context"
    if source is not None:
        fact = f"source {source.value}" + (f", set by {_origin(source)}" if source.origin else "")
    section = section_of("settings", "settings", _SETTINGS, settings)
    facts = (fact, f"  user file: {config.path or 'none'}")
    return Report("rmqlb/config", ConfiguredSettings(config.path, entries), facts, (section,))


def _entry(context: Context, active: str | None) -> ContextEntry:
    written = {key.name: context.values.get(key.name) for key in ENDPOINT}
    fields: dict[str, Any] = {name.replace("-", "_"): each and each.value for name, each in written.items()}
    return ContextEntry(name=context.name, active=context.name == active, line=context.line, **fields)


def _origin(setting: Setting) -> str | None:
    return f"option {setting.origin}" if setting.layer == "flag" else setting.origin or None


_LIST = columns_from(
    "active= context source account secret line:number",
    active=lambda entry: "*" if entry.active else "",
    context=lambda entry: entry.name,
    account=lambda entry: entry.user or entry.access_key,
)
_ONE = columns_from("key value line:number")
_SETTINGS = columns_from("key=setting value layer origin=set_by", origin=_origin)
