"""Where values become types: the one place in which msgspec reads JSON, or what was parsed, as a type.

msgspec describes a struct when it first reads one. A thread that reads as the same struct meanwhile follows an empty
pointer, and the process dies of SIGSEGV; an exception of a signal's handler is lost. So each type, with all that it
holds, is made ready under one lock, with signals held back, before anybody reads as it.
"""

import signal
import threading
from typing import TypeVar

import msgspec

Value = TypeVar("Value")
_lock = threading.Lock()
_ready: set[object] = {object}  # types of which msgspec knows all; to be added to under the lock only


def convert(value: object, kind: type[Value]) -> Value:
    """A parsed value as a type (raises msgspec.ValidationError); keys of mappings may be texts for numbers."""
    _make_ready(kind)
    return msgspec.convert(value, kind, strict=True, str_keys=True)


def decode(body: bytes | str, kind: type[Value]) -> Value:
    """Strict JSON as a type (raises msgspec.DecodeError, RecursionError, UnicodeDecodeError)."""
    _make_ready(kind)
    return msgspec.json.decode(body, type=kind)


def decode_lines(body: bytes) -> list[object]:
    """Strict JSON with a document a line (raises as `decode`)."""
    return msgspec.json.Decoder(object).decode_lines(body)


def _make_ready(kind: object) -> None:
    if kind not in _ready:
        before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM))
        try:
            with _lock:
                msgspec.json.Decoder(kind)
                _ready.add(kind)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
