"""Names from a cluster are hostile: nothing may pass raw that steers a terminal, a spreadsheet or a reader."""

import re
from functools import cache

_UNSAFE = (
    "[\x00-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\u3164\ud800-\udfff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff]"
)
"""Controls, line and paragraph ends, halves of pairs, and all characters that are default ignorable in Unicode."""
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""The last four are the wide forms of the first four, which spreadsheets accept."""
_MARKDOWN = r"[\\|<\[`*]|(?<![^\W_])_|_(?![^\W_])|~(?=\S)|(?<=\S)~|&(?=[#\w])"
"""Underscores between letters or digits, tildes between blanks and a lone `&` mean nothing and stay readable."""
NOT_XML = {0xFFFE: "\\ufffe", 0xFFFF: "\\uffff"}


def visible(text: str) -> str:
    r"""The text with every control, direction, zero-width and half character shown as an escape.

    >>> visible("a\x1b[31mb\u202ec")
    'a\\x1b[31mb\\u202ec'
    """
    if text.isascii() and text.isprintable():
        return text
    return _unsafe().sub(_escape, text)


def safe_json(text: str) -> str:
    r"""JSON text with those characters as \u escapes; outside its strings JSON has none of them but line ends."""
    if text.isascii() and "\x7f" not in text:
        return text
    return _unsafe().sub(lambda match: match[0] if match[0] == "\n" else _json_escape(match[0]), text)


def safe_yaml(text: str) -> str:
    """YAML text with those characters as escapes; they occur only in double-quoted strings."""
    return _unsafe().sub(lambda match: match[0] if match[0] == "\n" else _escape(match), text)


def safe_cell(text: str) -> str:
    return "'" + text if text.lstrip(" ").startswith(_FORMULA) else text


def safe_markdown(text: str) -> str:
    r"""The text with what would begin a table's cell, an HTML tag or entity, a link, code or emphasis taken literally.

    >>> safe_markdown("a|b<script>"), safe_markdown("_a_ AVG_BY_CIRCLE")
    ('a\\|b\\<script>', '\\_a\\_ AVG_BY_CIRCLE')
    """
    return re.sub(_MARKDOWN, r"\\\g<0>", text)


def clip(text: str, longest: int) -> str:
    if len(text) <= longest:
        return text
    head = (longest - 1) * 2 // 3
    return f"{text[:head]}…{text[head + 1 - longest :]}"


def width(text: str) -> int:
    """The most terminal columns that the text needs: wide letters need two."""
    if text.isascii():
        return len(text)
    from unicodedata import east_asian_width

    return sum(2 if east_asian_width(char) in "WF" else 1 for char in text)


def cut_to_width(text: str, columns: int) -> str:
    """The longest beginning of the text within these terminal columns.

    >>> cut_to_width("订单-orders", 6)
    '订单-o'
    >>> cut_to_width("orders", -1)
    ''
    """
    columns = max(columns, 0)
    text = text[:columns]
    while width(text) > columns:
        text = text[:-1]
    return text


def fit_for_xml(text: str) -> str:
    r"""The text with nothing in it that steers a reader's eye or that XML refuses; markup is still to be escaped.

    >>> fit_for_xml("a\x1b[31m\u202e\uffff<")
    'a\\x1b[31m\\u202e\\uffff<'
    """
    return visible(text).translate(NOT_XML)


@cache
def _unsafe() -> re.Pattern[str]:
    """Compiled on the first text that is not ASCII, since it costs a millisecond."""
    return re.compile(_UNSAFE)


def _escape(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode()


def _json_escape(char: str) -> str:
    units = char.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
