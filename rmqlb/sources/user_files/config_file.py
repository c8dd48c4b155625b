"""The user's configuration file, read: known keys, right types, each value with its line; values are never repeated."""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from msgspec.structs import replace

from rmqlb.errors import DocumentError, UsageError
from rmqlb.model.configuration import (
    ENDPOINT,
    PLACES,
    SETTINGS,
    ConfigFile,
    Context,
    Key,
    Place,
    Value,
    Written,
    check_context_name,
)
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.snapshot import suggestion
from rmqlb.sources.atomic_file import make_private_folder, replace_file
from rmqlb.sources.formats.yaml_text import lines_of, read_yaml

_LONGEST = 256 * 1024
_CONTEXTS = "contexts"
_SECRETS = ("password", "secret-key", "secretkey", "passwd", "token", "password-file", "secret-key-file")
_WORDS = {bool: "true or false", int: "a number", float: "a number", str: "a text", list: "a list", dict: "a mapping"}
_EXPECTED: dict[str, tuple[str, tuple[type, ...]]] = {
    "text": ("a text", (str,)),
    "path": ("a path", (str,)),
    "count": ("a whole number", (int,)),
    "amount": ("a text or a number", (str, int, float)),
}

Lines = Mapping[tuple[str | int, ...], int]


def of_configuration(error: UsageError) -> UsageError:
    """The error with the code of a wrong file, unless it has one of its own."""
    return error if error.code != UsageError.code else UsageError(error.message, hint=error.hint, code="config-invalid")


@contextmanager
def _errors_of_configuration() -> Iterator[None]:
    try:
        yield
    except UsageError as error:
        raise of_configuration(error) from None


@_errors_of_configuration()
def read_user_file(path: str) -> ConfigFile:
    """What the user's file says; nothing when it is not there (raises UsageError)."""
    text, mode = _read(path)
    if text is None:
        return ConfigFile()
    if mode & 0o022:
        raise UsageError(f"{path}: other users can change it", hint=f"chmod 600 {path}", code="config-not-private")
    document, lines = _parse(text, path)
    values = _values(document, SETTINGS, (), lines, path, extra=(_CONTEXTS,))
    contexts = _contexts(document.get(_CONTEXTS), lines, path)
    secret = next((context.values["secret"] for context in contexts.values() if "secret" in context.values), None)
    if secret is not None and mode & 0o077:
        raise UsageError(
            f"{secret.place}: it says where a secret is, and other users can open the file",
            hint=f"chmod 600 {path}",
            code="config-not-private",
        )
    return ConfigFile(path, values, contexts)


def require_text(text: str, where: str) -> str:
    """The text, if it may stand in a file; UsageError when it is empty, or has a character that cannot be printed."""
    if not text.strip():
        raise UsageError(f"{where}: it is empty")
    if not text.isprintable():
        raise UsageError(f"{where}: it has a character that cannot be printed")
    return text


def _read(path: str) -> tuple[str | None, int]:
    """The text, or None when there is no such file, and the file's mode."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None, 0
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}") from None
    try:
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            raise UsageError(f"{path}: it is not a file")
        with open(descriptor, "rb", closefd=False) as file:
            body = file.read(_LONGEST + 1)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}") from None
    finally:
        os.close(descriptor)
    if len(body) > _LONGEST:
        raise UsageError(f"{path}: larger than 256 KB")
    try:
        return body.decode(), mode
    except UnicodeDecodeError:
        raise UsageError(f"{path}: it is not UTF-8 text") from None


def _parse(text: str, path: str) -> tuple[dict[str, Any], Lines]:
    try:
        document = read_yaml(text, path)
    except DocumentError as error:
        raise UsageError(error.message, hint=error.hint) from None
    if document is None:
        return {}, {}
    if not isinstance(document, dict):
        raise UsageError(f"{path}, line 1: expected keys and values, as in 'output: json'")
    return document, lines_of(text)


def _contexts(value: object, lines: Lines, path: str) -> dict[str, Context]:
    if value is None:
        return {}
    top = Place(path, _line(lines, _CONTEXTS), _CONTEXTS)
    if not isinstance(value, dict):
        raise UsageError(f"{top}: expected a mapping of names to contexts, not {_word(value)}")
    return {str(name): _context(name, content, lines, path) for name, content in value.items()}


def _context(name: object, content: object, lines: Lines, path: str) -> Context:
    place = Place(path, _line(lines, _CONTEXTS, str(name)), f"{_CONTEXTS}.{str(name)[:80]}")
    if not isinstance(name, str):
        raise UsageError(f"{place}: expected a text as the name, not {_word(name)}", hint="write it in quotes")
    check_context_name(name, str(place))
    if not isinstance(content, dict):
        raise UsageError(f"{place}: expected keys and values, not {_word(content)}", hint="it needs a source at least")
    values = _values(content, ENDPOINT, (_CONTEXTS, str(name)), lines, path)
    if "source" not in values:
        raise UsageError(f"{place}: it has no source", hint="source: rocketmq://HOST:9876, or a Dashboard's URL")
    return Context(str(name), place, values)


def _values(
    document: Mapping[Any, object],
    keys: tuple[Key, ...],
    above: tuple[str, ...],
    lines: Lines,
    path: str,
    *,
    extra: tuple[str, ...] = (),
) -> dict[str, Written]:
    known = {key.name: key for key in keys}
    values: dict[str, Written] = {}
    for name, value in document.items():
        place = Place(path, _line(lines, *above, str(name)), ".".join((*above, str(name)[:80])))
        if name in extra:
            continue
        if not isinstance(name, str) or name not in known:
            raise UsageError(f"{place}: there is no such key", hint=_unknown_hint(str(name), (*known, *extra)))
        values[name] = Written(_typed(value, known[name], place), place)
    return values


def _unknown_hint(name: str, known: tuple[str, ...]) -> str:
    if name.lower().replace("_", "-") in _SECRETS:
        return f"a configuration never holds a secret; a context's secret {PLACES}"
    return suggestion("keys", name.replace("_", "-"), known)


def _typed(value: object, key: Key, place: Place) -> Value:
    if key.kind == "texts":
        if not isinstance(value, list) or not all(isinstance(item, str) and item for item in value):
            raise UsageError(f"{place}: expected a list of texts, not {_word(value)}")
        return tuple(require_text(item, str(place)) for item in value)
    expected, types = _EXPECTED[key.kind]
    if not isinstance(value, types) or isinstance(value, bool):
        hint = "write it in quotes" if expected == "a text" and isinstance(value, int | float) else None
        raise UsageError(f"{place}: expected {expected}, not {_word(value)}", hint=hint)
    if key.kind == "count":
        return value  # type: ignore[return-value]
    text = require_text(str(value), str(place))
    if key.kind == "path" and not (os.path.isabs(text) or text.startswith("~/")):
        raise UsageError(f"{place}: expected an absolute path, or one that begins with ~/")
    return text


def _line(lines: Lines, *path: str) -> int:
    """The key's line; what is no text in YAML (null as a key) is found by the mapping that it stands in."""
    return lines.get(path) or lines.get(path[:-1], 1)


def _word(value: object) -> str:
    return "nothing" if value is None else _WORDS.get(type(value), "that")


_LONGEST_LIST = 16 * 1024 * 1024
_BROKER_QUEUE = re.compile(r"(?P<broker>.+):(?P<queue>[0-9]{1,9})", re.DOTALL)


def read_config_lists(path: str, topics: Iterable[str], option: str) -> dict[str, list[MessageQueue]]:
    """Client id → its configured queues; `option` names the file in messages (raises UsageError, DocumentError)."""
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read(_LONGEST_LIST + 1)
    except (OSError, ValueError) as error:
        raise UsageError(f"{option}: {getattr(error, 'strerror', None) or 'it is not UTF-8 text'}") from None
    if len(text) > _LONGEST_LIST:
        raise UsageError(f"{option}: larger than 16 MB")
    value = read_yaml(text, path)
    if not isinstance(value, dict) or not all(isinstance(entries, list) for entries in value.values()):
        raise DocumentError(f"{path}: expected a mapping of client ids to lists of BROKER:QUEUE")
    names = tuple(topics)
    return {
        str(client_id): [queue for entry in entries for queue in _queues(entry, names, f"{path}, {client_id}")]
        for client_id, entries in value.items()
    }


def _queues(entry: Any, topics: tuple[str, ...], where: str) -> list[MessageQueue]:
    if isinstance(entry, dict):
        topic, broker_name, queue_id = entry.get("topic"), entry.get("brokerName"), entry.get("queueId")
        if isinstance(topic, str) and isinstance(broker_name, str) and type(queue_id) is int:
            return [MessageQueue(topic, broker_name, queue_id)]
    match = _BROKER_QUEUE.fullmatch(entry) if isinstance(entry, str) else None
    if match is None:
        raise DocumentError(f"{where}: {repr(entry)[:80]} is not BROKER:QUEUE")
    return [MessageQueue(topic, match["broker"], int(match["queue"])) for topic in topics]


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
