"""The user's configuration file, read strictly and rewritten whole; no error repeats a value, which may be a secret."""

import os
import re
import stat
from collections.abc import Callable, Iterable, Mapping
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
    Value,
    Written,
    check_context_name,
)
from rmqlb.model.message_queue import MessageQueue
from rmqlb.sources.atomic_file import make_private_folder, replace_file
from rmqlb.sources.formats.yaml_text import lines_of, read_yaml
from rmqlb.sources.user_files.strict_yaml import Path, StrictReader
from rmqlb.sources.user_files.text_file import read_text

_LONGEST = 256 * 1024
_CONTEXTS = "contexts"
_SECRETS = ("password", "secret-key", "secretkey", "passwd", "token", "password-file", "secret-key-file")
_WORDS = {bool: "true or false", int: "a number", float: "a number", str: "a text", list: "a list", dict: "a mapping"}


Check = Callable[[str, Value, str], None]
"""Refuses a value of a key that makes no sense; the text says where it is (raises UsageError)."""


def read_user_file(path: str, check: Check) -> ConfigFile:
    """The user's file, empty when it is missing (raises UsageError)."""
    try:
        text, mode = _read(path)
        if text is None:
            return ConfigFile()
        if mode & 0o022:
            raise UsageError(f"{path}: other users can change it", hint=f"chmod 600 {path}", code="config-not-private")
        config = _ConfigReader(text, path, check).config()
    except UsageError as error:
        if error.code != UsageError.code:
            raise
        raise UsageError(error.message, hint=error.hint, code="config-invalid") from None
    for context in config.contexts.values():
        if "secret" in context.values and mode & 0o077:
            where = context.values["secret"].origin
            problem = f"{where}: other users can read this file, which contains the location of a secret"
            raise UsageError(problem, hint=f"chmod 600 {path}", code="config-not-private")
    return config


def require_text(text: str, where: str) -> str:
    if not text.strip():
        raise UsageError(f"{where}: it is empty")
    if not text.isprintable():
        raise UsageError(f"{where}: it has a character that cannot be printed")
    return text


def _read(path: str) -> tuple[str | None, int]:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            mode = os.fstat(descriptor).st_mode
            if not stat.S_ISREG(mode):
                raise UsageError(f"{path}: it is not a file")
            body = file.read(_LONGEST + 1)
    except FileNotFoundError:
        return None, 0
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}") from None
    if len(body) > _LONGEST:
        raise UsageError(f"{path}: larger than 256 KB")
    try:
        return body.decode(), mode
    except UnicodeDecodeError:
        raise UsageError(f"{path}: it is not UTF-8 text") from None


class _ConfigReader(StrictReader):
    def __init__(self, text: str, path: str, check: Check) -> None:
        super().__init__(text, path, "write output: json")
        self._check = check
        self._found = self.document()
        self._lines = lines_of(text) if isinstance(self._found, dict) else {}

    def shown(self, value: object) -> str:
        return "nothing" if value is None else _WORDS.get(type(value), "that")

    def config(self) -> ConfigFile:
        if self._found is None:
            return ConfigFile(self.where)
        values = self._values(self._found, (), SETTINGS, (_CONTEXTS,))
        contexts = self._found.get(_CONTEXTS) if isinstance(self._found, dict) else None
        named = {} if contexts is None else self.mapping(contexts, (_CONTEXTS,), contexts)
        return ConfigFile(self.where, values, {name: self._context(name, each) for name, each in named.items()})

    def _context(self, name: Any, value: object) -> Context:
        path = (_CONTEXTS, str(name))
        if not isinstance(name, str):
            self.refuse(path, "its name is not a text", "write it in quotes")
        check_context_name(name, self._place(path))
        values = self._values(value, path, ENDPOINT)
        if "source" not in values:
            self.refuse(path, "it has no source", "write source: rocketmq://HOST:9876, or a Dashboard's URL")
        return Context(name, values, self.where, self._lines.get(path, 1))

    def _values(
        self, value: object, path: Path, keys: tuple[Key, ...], others: tuple[str, ...] = ()
    ) -> dict[str, Written]:
        for name in value if isinstance(value, dict) else ():
            if str(name).lower().replace("_", "-") in _SECRETS:
                hint = f"a configuration never contains a secret; write where the context's secret {PLACES}"
                self.refuse((*path, str(name)), "there is no such key", hint)
        known = {key.name: key for key in keys}
        written = {}
        for name, each in self.mapping(value, path, (*known, *others)).items():
            if name in known:
                at = (*path, name)
                written[name] = Written(self._typed(each, known[name], at), self._place(at), self._lines.get(at, 1))
                self._check(name, written[name].value, written[name].origin)
        return written

    def _typed(self, value: object, key: Key, path: Path) -> Value:
        if key.kind == "texts":
            items = enumerate(self.items(value, path, least=0))
            return tuple(require_text(self.name(item, (*path, at)), self._place(path)) for at, item in items)
        if key.kind == "count":
            if not isinstance(value, int) or isinstance(value, bool):
                self.refuse(path, f"{self.shown(value)} is not a whole number")
            return value
        if key.kind == "amount" and (not isinstance(value, str | int | float) or isinstance(value, bool)):
            self.refuse(path, f"{self.shown(value)} is not a text or a number")
        text = require_text(str(value) if key.kind == "amount" else self.name(value, path), self._place(path))
        if key.kind == "path" and not (os.path.isabs(text) or text.startswith("~/")):
            self.refuse(path, "expected an absolute path, or one that begins with ~/")
        return text

    def _place(self, path: Path) -> str:
        return f"{self.where}, line {self._lines.get(path, 1)}, {'.'.join(map(str, path))}"


_LONGEST_LIST = 16 * 1024 * 1024
_BROKER_QUEUE = re.compile(r"(?P<broker>.+):(?P<queue>[0-9]{1,9})", re.DOTALL)


def read_config_lists(path: str, topics: Iterable[str], option: str) -> dict[str, list[MessageQueue]]:
    """Client ID → its configured queues (raises DataError, UsageError)."""
    text = read_text(path, option, _LONGEST_LIST, "the limit is 16 MB")
    value = read_yaml(text, path)
    if not isinstance(value, dict) or not all(isinstance(entries, list) for entries in value.values()):
        raise DocumentError(f"{path}: expected a mapping of client IDs to lists of BROKER:QUEUE")
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


_HEAD = "# Contexts and settings of rmqlb. `rmqlb context` rewrites it; comments do not last.\n"


def change_user_file(path: str, change: Callable[[ConfigFile], ConfigFile], check: Check) -> ConfigFile:
    import fcntl

    folder = os.path.dirname(path)
    try:
        make_private_folder(folder)
        if os.stat(folder).st_mode & 0o077:
            os.chmod(folder, 0o700)
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)  # of the folder itself, so no lock file remains
            changed = change(read_user_file(path, check))
            replace_file(os.path.realpath(path), _HEAD + _text(changed), mode=0o600)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror or error}", code="cannot-write") from None
    return changed


def with_value(config: ConfigFile, key: str, value: Value | None) -> ConfigFile:
    values = {name: written for name, written in config.values.items() if name != key}
    if value is not None:
        values[key] = Written(value)
    return replace(config, values=values)


def with_context(config: ConfigFile, name: str, values: Mapping[str, Value] | None) -> ConfigFile:
    """Set a context, in its old place or as the last one; None removes it."""
    contexts = dict(config.contexts)
    if values is None:
        contexts.pop(name, None)
    else:
        contexts[name] = Context(name, {key: Written(value) for key, value in values.items()})
    return replace(config, contexts=contexts)


def _text(config: ConfigFile) -> str:
    import yaml

    def plain(values: Mapping[str, Written], keys: Iterable[Key]) -> dict[str, object]:
        found = {key.name: values[key.name].value for key in keys if key.name in values}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in found.items()}

    document = plain(config.values, SETTINGS)
    if config.contexts:
        document[_CONTEXTS] = {name: plain(context.values, ENDPOINT) for name, context in config.contexts.items()}
    text: str = yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=1_000_000)
    return text if document else ""
