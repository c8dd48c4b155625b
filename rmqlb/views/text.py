"""Names from a cluster are hostile: nothing that steers a terminal, a spreadsheet or the reader's eye passes raw."""

from __future__ import annotations

import re

_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff"
    "\U000e0000-\U000e007f]"
)
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def visible(text: str) -> str:
    r"""The text with every control, direction, zero-width and half character shown as an escape.

    >>> visible("a\x1b[31mb\u202ec")
    'a\\x1b[31mb\\u202ec'
    """
    return _UNSAFE.sub(lambda match: _SHORT.get(match[0]) or _escape(match[0]), text)


def safe_json(text: str) -> str:
    r"""JSON text with those characters as \\u escapes; outside its strings JSON has none of them but line ends."""
    return re.sub(r"[\ud800-\udfff]", _json_escape, _UNSAFE.sub(_json_escape_but_layout, text))


def safe_cell(text: str) -> str:
    """A CSV cell that no spreadsheet runs as a formula."""
    return "'" + text if text.startswith(_FORMULA) else text


def clip(text: str, longest: int) -> str:
    """The text, or its two ends when it is longer than so many characters."""
    if len(text) <= longest:
        return text
    head = (longest - 1) * 2 // 3
    return f"{text[:head]}…{text[head + 1 - longest :]}"


def _escape(char: str) -> str:
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _json_escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x10000:
        return f"\\u{code:04x}"
    code -= 0x10000
    return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"


def _json_escape_but_layout(match: re.Match[str]) -> str:
    return match[0] if match[0] == "\n" else _json_escape(match)
