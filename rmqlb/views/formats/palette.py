"""The colours of consumers, in pictures and on terminals, where a letter always says the same."""

from __future__ import annotations

from collections.abc import Mapping

COLOURS = ("#77aadd", "#ee8866", "#eedd88", "#ffaabb", "#99ddff", "#44bb99", "#bbcc33", "#c9b3e6")
"""Light enough for dark letters; the colour-blind tell them apart (Paul Tol's light scheme, but for the last)."""
INK = "#20242a"
_OF_SIXTEEN = (
    *("bright_blue", "yellow", "bright_yellow", "bright_magenta"),
    *("bright_cyan", "green", "bright_green", "magenta"),
)
"""What comes near them where a terminal has 16 colours; red is for what is bad."""
BAD = "bold white on red"
WARN = "bold red"


def owner_style(place: int) -> str:
    """The name of the style of the consumer at a place; after eight they begin again.

    >>> owner_style(0), owner_style(9)
    ('owner0', 'owner1')
    """
    return f"owner{place % len(COLOURS)}"


def owner_styles(color_system: str | None) -> Mapping[str, str]:
    """The styles of those names on a terminal that rich calls so: dark letters on colours, whatever the page is."""
    if color_system in ("standard", "windows"):
        colours, ink = _OF_SIXTEEN, "black"
    else:
        colours, ink = COLOURS, INK
    return {owner_style(place): f"{ink} on {colour}" for place, colour in enumerate(colours)}
