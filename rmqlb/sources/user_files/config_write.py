"""The user's configuration file, changed: one writer at a time, and a reader sees the file of before or of after."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from msgspec.structs import replace

from rmqlb.errors import UsageError
from rmqlb.model.configuration import ENDPOINT, SETTINGS, ConfigFile, Context, Place, Value, Written
from rmqlb.sources.atomic_file import make_private_folder, replace_file
from rmqlb.sources.user_files.config_file import read_user_file

_PATIENCE_S = 10.0
_PAUSE_S = 0.02
_HEAD = "# Contexts and settings of rmqlb. `rmqlb context` rewrites it; comments do not last.\n"


def change_user_file(path: str, change: Callable[[ConfigFile], ConfigFile]) -> ConfigFile:
    """Read the file, change it, and put the new one in its place (raises UsageError, and what `change` raises)."""
    folder = os.path.dirname(path)
    try:
        _make_folder(folder)
        with _alone_in(folder, path):
            changed = change(read_user_file(path))
            replace_file(os.path.realpath(path), _HEAD + _text(changed), mode=0o600)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror or error}", code="cannot-write") from None
    return changed


def with_value(config: ConfigFile, key: str, value: Value | None) -> ConfigFile:
    """The file with a setting changed; None takes it out."""
    values = {name: written for name, written in config.values.items() if name != key}
    if value is not None:
        values[key] = Written(value, Place(config.path or "", 0, key))
    return replace(config, values=values)


def with_context(config: ConfigFile, name: str, values: Mapping[str, Value] | None) -> ConfigFile:
    """The file with a context set, in its old place or as the last one; None takes it out."""
    contexts = dict(config.contexts)
    if values is None:
        contexts.pop(name, None)
    else:
        place = Place(config.path or "", 0, f"contexts.{name}")
        contexts[name] = Context(name, place, {key: Written(value, place) for key, value in values.items()})
    return replace(config, contexts=contexts)


def _text(config: ConfigFile) -> str:
    import yaml

    document: dict[str, object] = {
        key.name: config.values[key.name].value for key in SETTINGS if key.name in config.values
    }
    document["contexts"] = {
        name: {key.name: _plain(context.values[key.name].value) for key in ENDPOINT if key.name in context.values}
        for name, context in config.contexts.items()
    }
    if not config.contexts:
        del document["contexts"]
    text: str = yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=1_000_000)
    return text if document else ""


def _plain(value: Value) -> object:
    return list(value) if isinstance(value, tuple) else value


def _make_folder(folder: str) -> None:
    make_private_folder(folder)
    if os.stat(folder).st_mode & 0o077:
        os.chmod(folder, 0o700)


@contextmanager
def _alone_in(folder: str, path: str) -> Iterator[None]:
    """The lock of the folder itself: no file to leave behind."""
    import fcntl

    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        deadline = time.monotonic() + _PATIENCE_S
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise UsageError(
                        f"{path}: another rmqlb has been changing it for {_PATIENCE_S:.0f} s",
                        hint="end that one, or try again",
                    ) from None
                time.sleep(_PAUSE_S)
        yield
    finally:
        os.close(descriptor)
