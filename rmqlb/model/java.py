"""The few behaviours of Java's String and Integer that decide who owns a queue.

RocketMQ's clients compare, split and parse text with Java's own methods, and Python's differ in small ways
(UTF-16 order, dropped trailing parts, no underscores in numbers).
"""

from __future__ import annotations

import re

_NOT_BREAKING = "\u00a0\u2007\u202f"
_CONTROLS = "\t\n\v\f\r\x1c\x1d\x1e\x1f"
_INTEGER = re.compile(r"[+-]?\d+")
_INT_MIN, _INT_MAX = -(2**31), 2**31 - 1


def sort_key(text: str) -> bytes:
    """A key that sorts as Java's `String.compareTo` does: by UTF-16 code unit, then by length.

    Code points above U+FFFF therefore sort before U+E000..U+FFFF, unlike in Python.

    >>> sorted(["10.0.0.9@1", "10.0.0.10@1", "10.0.0.1@2"], key=sort_key)
    ['10.0.0.10@1', '10.0.0.1@2', '10.0.0.9@1']
    """
    return text.encode("utf-16-be", "surrogatepass")


def split(text: str, separator: str) -> list[str]:
    """`String.split` for a plain separator: trailing empty parts are dropped, and only those.

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
    """`Integer.parseInt`: an optional sign and digits, nothing around them, within 32 bits (raises ValueError).

    Digits of other scripts count too, but for those that Java writes as two characters.
    """
    if not _INTEGER.fullmatch(text) or max(text) > "\uffff":
        raise ValueError(f'For input string: "{text}"')
    value = int(text)
    if not _INT_MIN <= value <= _INT_MAX:
        raise ValueError(f'For input string: "{text}"')
    return value


def is_blank(text: str) -> bool:
    r"""`StringUtils.isBlank`: empty, or nothing but what `Character.isWhitespace` takes for white space.

    >>> is_blank(""), is_blank(" \t"), is_blank("\u00a0"), is_blank(" x ")
    (True, True, False, False)
    """
    from unicodedata import category

    return all(
        unit in _CONTROLS or (category(unit) in ("Zs", "Zl", "Zp") and unit not in _NOT_BREAKING) for unit in text
    )
