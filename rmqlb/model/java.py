"""The behaviours of Java's String and Integer that decide who owns a queue, where Python differs."""

from __future__ import annotations

import re

_NOT_BREAKING = "\u00a0\u2007\u202f"
_CONTROLS = "\t\n\v\f\r\x1c\x1d\x1e\x1f"
_INTEGER = re.compile(r"[+-]?\d+")
_INT_MIN, _INT_MAX = -(2**31), 2**31 - 1


def sort_key(text: str) -> bytes:
    """`String.compareTo`: by UTF-16 code unit, then by length.

    Code points above U+FFFF sort before U+E000..U+FFFF, unlike in Python.

    >>> sorted(["10.0.0.9@1", "10.0.0.10@1", "10.0.0.1@2"], key=sort_key)
    ['10.0.0.10@1', '10.0.0.1@2', '10.0.0.9@1']
    """
    return text.encode("utf-16-be", "surrogatepass")


def split(text: str, separator: str) -> list[str]:
    """`String.split` by a plain separator: trailing empty parts are dropped.

    >>> split("a@b@", "@"), split("@b", "@"), split(";", ";"), split("", ";")
    (['a', 'b'], ['', 'b'], [], [''])
    """
    if not text:
        return [""]
    parts = text.split(separator)
    while parts and not parts[-1]:
        parts.pop()
    return parts


def parse_int(text: str) -> int:
    """`Integer.parseInt`: a sign or none, digits of any script below U+10000, within 32 bits (raises ValueError)."""
    if not _INTEGER.fullmatch(text) or max(text) > "\uffff":
        raise ValueError(f'For input string: "{text}"')
    value = int(text)
    if not _INT_MIN <= value <= _INT_MAX:
        raise ValueError(f'For input string: "{text}"')
    return value


def is_blank(text: str) -> bool:
    r"""`StringUtils.isBlank`: empty, or only `Character.isWhitespace`.

    >>> is_blank(""), is_blank(" \t"), is_blank("\u00a0"), is_blank(" x ")
    (True, True, False, False)
    """
    from unicodedata import category

    return all(
        unit in _CONTROLS or (category(unit) in ("Zs", "Zl", "Zp") and unit not in _NOT_BREAKING) for unit in text
    )
