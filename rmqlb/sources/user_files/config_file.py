"""The user's configuration file, read: known keys, right types, each value with its line; values are never repeated."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

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
from rmqlb.model.snapshot import suggestion
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
