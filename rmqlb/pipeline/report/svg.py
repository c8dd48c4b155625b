"""A matplotlib figure → the SVG that stands inside the page, in its font and colours.

Equal figures give equal bytes: no date, no random id, none of the user's own matplotlib settings. The result is XML and
HTML at once, without namespaces, links or scripts; its ids begin with the picture's name.
"""

from __future__ import annotations

import io
import logging
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INK, PAPER = "#010203", "#fdfcfb"
"""In a figure, the page's own text and background colours."""
_SETTINGS: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "rmqlb",
    "text.parse_math": False,
    "font.family": ["DejaVu Sans"],
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.formatter.use_mathtext": False,
    "axes.unicode_minus": True,
    "axes.titlesize": 9,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "hatch.linewidth": 1.2,
    "date.converter": "concise",
    **dict.fromkeys(("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color"), INK),
}
_NAMESPACE = re.compile(r"\{[^}]*\}")
_REFERENCE = re.compile(r"#([\w.-]+)")
_FONT = re.compile(r"font-family:[^;]*;?\s*")


@contextmanager
def drawing() -> Iterator[None]:
    """Draw with our settings alone; glyphs that the measuring font lacks are no one's concern."""
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    import matplotlib as mpl

    with mpl.rc_context(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mpl.rcdefaults()
        mpl.rcParams.update(_SETTINGS)
        yield


def inline_svg(figure: Figure, name: str, title: str, description: str) -> str:
    """A figure as an `<svg>` element, to be called within `drawing`; `name` is unlike any other's on the page."""
    out = io.BytesIO()
    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    figure.savefig(out, format="svg", transparent=True, metadata=nothing)
    drawn = ET.fromstring(out.getvalue())  # noqa: S314 - matplotlib wrote it
    svg = _plain(drawn, _referenced(drawn), name)
    box = drawn.get("viewBox", "")
    svg.attrib = {"viewBox": box, "role": "img", "aria-labelledby": f"{name}-title {name}-desc"}
    for place, (tag, text) in enumerate((("title", title), ("desc", description))):
        element = ET.Element(tag, {"id": f"{name}-{tag}"})
        element.text = text
        svg.insert(place, element)
    return ET.tostring(svg, encoding="unicode")


def _referenced(drawn: ET.Element) -> set[str]:
    return {
        found
        for element in drawn.iter()
        for key, value in element.attrib.items()
        if key != "id"
        for found in _REFERENCE.findall(value)
    }


def _plain(element: ET.Element, referenced: set[str], name: str) -> ET.Element:
    """The element without what only a file of its own needs."""
    made = ET.Element(_NAMESPACE.sub("", element.tag))
    for full_key, value in element.attrib.items():
        key = _NAMESPACE.sub("", full_key)
        if key == "id":
            if value in referenced:
                made.set(key, f"{name}-{value}")
        elif key == "style":
            made.set(key, _styled(value, name))
        elif key in ("href", "clip-path"):
            made.set(key, value.replace("#", f"#{name}-"))
        elif not value.startswith("rotate(-0 "):
            made.set(key, " ".join(value.split()))
    made.text = element.text if element.tag.endswith("}text") else None
    for child in element:
        tag = _NAMESPACE.sub("", child.tag)
        if tag in ("metadata", "style"):
            continue
        kept = _plain(child, referenced, name)
        if len(kept) or kept.text or tag not in ("g", "defs"):
            made.append(kept)
    return made


def _styled(style: str, name: str) -> str:
    style = _FONT.sub("", style).replace("url(#", f"url(#{name}-")
    return style.replace(INK, "currentColor").replace(PAPER, "var(--paper)").strip("; ")
