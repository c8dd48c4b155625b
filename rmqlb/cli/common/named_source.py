"""A source that is named alone, without `-s` and `--context`: a URL, a file, `-`, or a context."""

from __future__ import annotations

import os

from msgspec.structs import replace

from rmqlb.cli.click import get_current_context
from rmqlb.cli.common.options import SourceOptions
from rmqlb.cli.settings import context_named, read_configuration, resolve_options
from rmqlb.errors import DataError
from rmqlb.model.configuration import Setting
from rmqlb.model.snapshot import suggestion


def named_source(text: str, options: SourceOptions) -> SourceOptions:
    """The options with which to read the source: a context's own, where no file has its name.

    Raises:
        DataError: it is neither a URL nor a file nor a context.
    """
    if ":" in text or text in ("", "-") or os.path.exists(text):
        return replace(options, source=text)
    contexts = read_configuration().contexts
    if text not in contexts:
        hint = suggestion("contexts", text, contexts) if contexts else "a source is a URL, a file, or - for stdin"
        raise DataError(f"{text}: there is no such file, and no context of this name", hint=hint, code="cannot-read")
    return source_of_context(text, options)


def source_of_context(name: str, options: SourceOptions) -> SourceOptions:
    """The options with which to read a context's source (raises UsageError)."""
    line = get_current_context()
    settled = resolve_options(line, chosen=Setting("context", name, "flag", name))
    own = {key: each.value for key, each in settled.settings.items() if key in SourceOptions.__struct_fields__}
    lists = {key: own.pop(key) for key in ("proxy", "map_address")}
    own["source"] = context_named(name, settled.config).text("source")
    return replace(
        options,
        **own,
        **{key: list(value) if isinstance(value, tuple) else None for key, value in lists.items()},
        active_context=settled.active_context,
    )
