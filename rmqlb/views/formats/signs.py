"""How grave something is, as a sign and a colour; either says it alone."""

from __future__ import annotations

SIGNS = {"error": "✗", "warning": "!", "info": "i", "unknown": "i", "offline": "i", "inOrder": "✓"}
"""Severity of a finding, or status of a group → its sign."""
STYLES = {"error": "bold red", "warning": "yellow", "inOrder": "green"}
_ASCII = {"✗ ": "x ", "✓ ": "ok", "→": "->", "·": "|"}


def encodable(text: str, encoding: str | None) -> str:
    """The text with signs that the encoding has.

    >>> encodable("✗ a", "ascii"), encodable("✗ a", "utf-8"), encodable("✓  b · 3 → 4", "ascii")
    ('x a', '✗ a', 'ok b | 3 -> 4')
    """
    try:
        "✗✓".encode(encoding or "utf-8")
    except (UnicodeEncodeError, LookupError):
        for sign, fallback in _ASCII.items():
            text = text.replace(sign, fallback)
    return text
