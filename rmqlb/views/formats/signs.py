"""How grave something is, as a sign and a colour; either says it alone."""

from __future__ import annotations

SIGNS = {"error": "✗", "warning": "!", "info": "i", "unknown": "i", "offline": "i", "inOrder": "✓"}
"""Severity of a finding, or status of a group → its sign."""
STYLES = {"error": "bold red", "warning": "yellow", "inOrder": "green"}
_ASCII = {"✗ ": "x ", "✓ ": "ok", "→ ": "->", "→": ">", "·": "|"}
"""Some with the blank that follows, so that columns stay in place."""


def encodable(text: str, encoding: str | None) -> str:
    """The text with signs that the encoding has.

    >>> encodable("✗ a", "ascii"), encodable("✗ a", "utf-8"), encodable("✓  b · 3 → 4", "ascii")
    ('x a', '✗ a', 'ok b | 3 -> 4')
    >>> encodable("3 → 4   5", "ascii")
    '3 -> 4  5'
    """
    try:
        "✗✓".encode(encoding or "utf-8")
    except (UnicodeEncodeError, LookupError):
        text = "\n".join(map(_with_arrows, text.split("\n")))
        for sign, fallback in _ASCII.items():
            text = text.replace(sign, fallback)
    return text


def _with_arrows(line: str) -> str:
    """Make each arrow between blanks one of ASCII, and take a blank from a later gap, so that columns stay in place."""
    before, *parts = line.split(" → ")
    owed = 0
    for part in parts:
        owed += 1
        while owed and "  " in part:
            part = part.replace("  ", " ", 1)  # noqa: PLW2901 - the part as it is now
            owed -= 1
        before += f" -> {part}"
    return before
