"""Severities as signs and colours, either of which is enough alone; and the colours of consumers."""

from collections.abc import Mapping

SIGNS = {"error": "✗", "warning": "!", "lagging": "!", "info": "i", "unknown": "?", "offline": "i", "inOrder": "✓"}
"""Severity of a finding, or status of a group → its sign."""
STYLES = {"error": "bold red", "warning": "yellow", "lagging": "yellow", "inOrder": "green"}
BAD = "bold white on red"
OUTAGE = "outage"
COLOURS = ("#77aadd", "#ee8866", "#eedd88", "#ffaabb", "#99ddff", "#44bb99", "#bbcc33", "#c9b3e6")
"""Light enough for dark letters; the colour-blind can distinguish them (Paul Tol's light scheme, except the last)."""
INK = "#20242a"
_OF_SIXTEEN = (
    *("bright_blue", "yellow", "bright_yellow", "bright_magenta"),
    *("bright_cyan", "green", "bright_green", "magenta"),
)
"""The nearest colours of a terminal with 16 colours; red is reserved for problems."""
_ASCII = {"✗ ": "x ", "✓ ": "ok", "→": "->", "·": "|", "–": "-"}


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


def owner_style(place: int) -> str:
    return f"owner{place % len(COLOURS)}"


def overlap_style(place: int) -> str:
    return f"overlap{place % len(COLOURS)}"


def owner_styles(color_system: str | None) -> Mapping[str, str]:
    of_sixteen = color_system in ("standard", "windows")
    colours, ink = (_OF_SIXTEEN, "black") if of_sixteen else (COLOURS, INK)
    styles = {owner_style(place): f"{ink} on {colour}" for place, colour in enumerate(colours)}
    styles |= {overlap_style(place): f"bold {ink} on {colour}" for place, colour in enumerate(colours)}
    return styles | {OUTAGE: "bold red"}


def owner_css() -> str:
    return "".join(
        f".{owner_style(place)},.{overlap_style(place)}{{color:{INK};background:{colour}}}"
        for place, colour in enumerate(COLOURS)
    )
