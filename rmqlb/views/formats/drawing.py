"""The elements of SVG pictures.

Text from the data enters through `add_text` alone, which removes whatever misleads a reader or is not XML. A picture
stands alone: no script, no link, no network. Equal input gives equal bytes.
"""

from collections.abc import Mapping
from xml.etree import ElementTree as ET

from rmqlb.views.formats.palette import INK
from rmqlb.views.formats.text import fit_for_xml

PAPER, QUIET = "#ffffff", "#5b6470"
_STYLE = (
    "@media (prefers-color-scheme:dark){"
    ".paper{fill:#15181c}.ink{fill:#e3e6ea}.quiet{fill:#9aa4b0}.line{stroke:#3a424c}.event{stroke:#e3e6ea}.bad{stroke:#ff6b6b}}"
)


def svg_file(root: ET.Element) -> str:
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def paper(width: float, height: float, label: str) -> ET.Element:
    """An empty picture; the namespace is a plain attribute, because HTML accepts that too."""
    root = ET.Element(
        "svg",
        {
            "xmlns": "http://www.w3.org/2000/svg",
            "viewBox": f"0 0 {coordinate(width)} {coordinate(height)}",
            "width": coordinate(width),
            "height": coordinate(height),
            "role": "img",
            "aria-label": label,
            "font-family": "system-ui, -apple-system, Segoe UI, Roboto, Liberation Sans, Arial, sans-serif",
            "font-size": "11",
        },
    )
    ET.SubElement(root, "style").text = _STYLE
    return root


def add_text(
    parent: ET.Element, x: float, y: float, words: str, *, cls: str = "ink", anchor: str = "start", **more: str
) -> None:
    """A text without hostile characters; without a class it stands on a light bar and is always dark."""
    attributes = {"x": coordinate(x), "y": coordinate(y), "fill": QUIET if cls == "quiet" else INK, **more}
    attributes |= {"class": cls, "text-anchor": anchor if anchor != "start" else ""}
    _add(parent, "text", attributes).text = fit_for_xml(words)


def add_rect(
    parent: ET.Element, x: float, y: float, width: float, height: float, *, fill: str, cls: str = "", stroke: str = ""
) -> None:
    places = {"x": x, "y": y, "width": width, "height": height}
    attributes = {name: coordinate(value) for name, value in places.items()}
    _add(parent, "rect", {**attributes, "fill": fill, "class": cls, "stroke": stroke})


def add_line(
    parent: ET.Element, x: float, top: float, bottom: float, stroke: str, *, cls: str, dashes: str = ""
) -> None:
    add_path(parent, f"M{coordinate(x)} {coordinate(top)}V{coordinate(bottom)}", stroke, cls=cls, dashes=dashes)


def add_path(parent: ET.Element, way: str, stroke: str, *, cls: str, dashes: str = "") -> None:
    _add(parent, "path", {"d": way, "stroke": stroke, "class": cls, "stroke-dasharray": dashes})


def _add(parent: ET.Element, name: str, attributes: Mapping[str, str]) -> ET.Element:
    return ET.SubElement(parent, name, {key: value for key, value in attributes.items() if value})


def coordinate(number: float) -> str:
    """A number as an attribute.

    >>> coordinate(12.0), coordinate(3.14159)
    ('12', '3.1')
    """
    return f"{number:.1f}".removesuffix(".0")
