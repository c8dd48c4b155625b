"""How an application picks queues itself, from `--selector`, `--keys` and `--key-type` of `simulate-send`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from rmqlb.cli.common import producer_values as values
from rmqlb.cli.simulate_send.options import LoadOptions
from rmqlb.engine.send.java_hash import hash_code, long_hash_code
from rmqlb.engine.send.selectors import hash_position
from rmqlb.engine.user_functions import SELECTOR, quietly
from rmqlb.errors import DataError, UsageError
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.send_report import HotKey, KeySpread
from rmqlb.model.send_scenario import Selector, SelectorFunction
from rmqlb.model.snapshot import suggestion
from rmqlb.sources.user_files.send_inputs import read_text
from rmqlb.verbs.parse import lines_of
from rmqlb.verbs.strategies import from_file, is_file

_HOT_KEYS = 10
_KEY_TYPES = ("string", "int", "long")


def selector_of(
    text: str | None, load: LoadOptions, queues: Sequence[MessageQueue], max_bytes: int
) -> tuple[Selector | None, KeySpread | None]:
    """The selector, and how the keys that it is given lie on the queues; raises UsageError, DataError."""
    if load.key_type not in _KEY_TYPES:
        raise UsageError(f"--key-type {load.key_type}: write string, int or long")
    if text is not None and is_file(text):
        function = from_file(text, "--selector", SELECTOR)
        keys = None if load.keys is None else _Keys(load, max_bytes)
        spread = None if keys is None else keys.spread(queues, lambda value: _quiet(function, queues, value))
        return Selector("function", function=function, keys=keys.values if keys else (), text=function.title), spread
    if load.keys is not None and text != "hash":
        raise UsageError("--keys goes with --selector hash and FILE.py:NAME")
    if text is None:
        return None, None
    if text == "hash":
        if load.keys is None:
            raise UsageError("--selector hash needs keys", hint="name a file with one key per line: --keys FILE, or -")
        keys = _Keys(load, max_bytes)
        spread = keys.spread(queues, lambda value: queues[hash_position(_hash(value, load.key_type), len(queues))])
        return Selector("hash", tuple(_hash(value, load.key_type) for value in keys.values)), spread
    if text in ("random", "machine-room"):
        return Selector(text), None  # type: ignore[arg-type]
    if ":" not in text:
        hint = suggestion("selectors", text, ("hash", "random", "machine-room"))
        raise UsageError(f"--selector {text}: neither a selector nor BROKER:QUEUE", hint=hint)
    if not queues:
        return Selector("machine-room"), None
    return Selector("queue", queue=queues[values.queue_of(text, queues, "--selector")]), None


class _Keys:
    """The keys of a file, as what the application passes."""

    def __init__(self, load: LoadOptions, max_bytes: int) -> None:
        option = f"--keys {load.keys}"
        self._texts = lines_of(read_text(load.keys or "-", "--keys", max_bytes))
        if not self._texts:
            raise DataError(f"{option}: there is no key in it")
        self._known: dict[str, str | int] = {}
        for number, text in enumerate(self._texts, start=1):
            if text not in self._known:
                self._known[text] = _typed(text, load.key_type, f"{option}: line {number}")
        self.values = tuple(self._known[text] for text in self._texts)

    def spread(self, queues: Sequence[MessageQueue], select: Callable[[str | int], MessageQueue | None]) -> KeySpread:
        hottest: list[HotKey] = []
        for text, number in Counter(self._texts).most_common(_HOT_KEYS) if queues else ():
            queue = select(self._known[text])
            place = (None, None) if queue is None else (queue.broker_name, queue.queue_id)
            hottest.append(HotKey(text, number, *place))
        return KeySpread(len(self._known), len(self._texts), tuple(hottest))


def _quiet(function: SelectorFunction, queues: Sequence[MessageQueue], value: str | int) -> MessageQueue | None:
    """The queue, or None where the simulation is about to say what is wrong."""
    try:
        queue = quietly(function, list(queues), value)
    except (Exception, SystemExit):  # noqa: BLE001 - the user's code
        return None
    return queue if isinstance(queue, MessageQueue) else None


def _typed(text: str, kind: str, where: str) -> str | int:
    if kind == "string":
        return text
    try:
        value = int(text) if len(text) < 30 and "_" not in text else None
    except ValueError:
        value = None
    if value is None or not -(2**63) <= value < 2**63 or (kind == "int" and not -(2**31) <= value < 2**31):
        raise DataError(f"{where}: {text[:40]!r} is not {'an int' if kind == 'int' else 'a long'} of Java")
    return value


def _hash(value: str | int, kind: str) -> int:
    if isinstance(value, str):
        return hash_code(value)
    return value if kind == "int" else long_hash_code(value)
