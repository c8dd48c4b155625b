"""A screen as an SVG picture, which stands alone: no font, no script, no link and no network."""

from __future__ import annotations

import re
from io import StringIO
from typing import TYPE_CHECKING

from rmqlb.views.formats.palette import COLOURS
from rmqlb.views.formats.people import print_tables
from rmqlb.views.formats.text import NOT_XML

if TYPE_CHECKING:
    from rich.console import Console

    from rmqlb.views.report import Report

_COLUMNS = 132
_FORMAT = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img"
aria-label="a screen of rmqlb">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, DejaVu Sans Mono, Liberation Mono, Menlo, Consolas, monospace;
font-size: {char_height}px; line-height: {line_height}px }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal"><rect width="{terminal_width}" height="{terminal_height}"/></clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


def svg_picture(report: Report) -> str:
    """What a wide terminal shows of a report, with the timeline of its group."""
    console = recording_console(_COLUMNS)
    print_tables(report.only((), screen=True), console)
    return as_svg(console, "rmqlb")


def recording_console(columns: int) -> Console:
    from rich.console import Console

    file = StringIO()
    return Console(record=True, width=columns, file=file, force_terminal=True, color_system="truecolor", _environ={})


def as_svg(console: Console, name: str) -> str:
    from rich.terminal_theme import TerminalTheme

    def rgb(colour: str) -> tuple[int, int, int]:
        return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)

    blue, orange, yellow, pink, cyan, green, lime, lilac = map(rgb, COLOURS)
    black, grey, red, ink, white = map(rgb, ("#000000", "#78808a", "#ff6b6b", "#e3e6ea", "#ffffff"))
    # The 16 colours of a terminal are those of consumers where a screen uses them (`palette.py`).
    dark = [black, red, green, orange, blue, lilac, cyan, ink]
    bright = [grey, red, lime, yellow, blue, pink, cyan, white]
    theme = TerminalTheme(rgb("#15181c"), ink, dark, bright)
    drawn = console.export_svg(title="", theme=theme, code_format=_FORMAT, unique_id=name)
    shorter = re.sub(r"\d+\.\d{2,}(?=\")", lambda found: f"{float(found[0]):.1f}", drawn)
    return shorter.translate(NOT_XML)
