"""Pictures of screens for the pages: what a command shows on a terminal of 100 columns, in colour.

`python -m tools.screens` writes `docs/screens/`. A picture stands alone: no font, no script and no network.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

from rmqlb.views.formats.palette import COLOURS

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "screens"
SCREENS = {
    "show-groups": "show-groups -s examples/four-groups.yaml",
    "diagnose": "diagnose -s examples/four-groups.yaml -g dup-svc",
    "plan-rebalance": "plan-rebalance -s examples/cluster.json -g order-svc --add 192.0.2.2@inst3",
    "scale": "plan-rebalance -s examples/cluster.json -g order-svc --scale-to 5",
    "simulate-rebalance": "simulate-rebalance -s examples/cluster.json -g order-svc --topic Skewed "
    "--event 'broker-up broker-c:3@10s' --rate 100",
    "restart-broker": "simulate-rebalance -s examples/cluster.json -g '*' "
    "--event 'restart-broker broker-b@30s, down 1m'",
    "diff": "diff examples/cluster.json examples/cluster-later.json",
}
"""Name of a picture → the command that it shows."""
_COLUMNS = 100
_PAPER, _INK = (21, 24, 28), (227, 230, 234)


def _rgb(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


_BLUE, _ORANGE, _YELLOW, _PINK, _CYAN, _GREEN, _LIME, _LILAC = map(_rgb, COLOURS)
_RED = (255, 107, 107)
_THEME = TerminalTheme(
    _PAPER,
    _INK,
    [(0, 0, 0), _RED, _GREEN, _ORANGE, _BLUE, _LILAC, _CYAN, _INK],
    [(120, 128, 138), _RED, _LIME, _YELLOW, _BLUE, _PINK, _CYAN, (255, 255, 255)],
)
"""The 16 colours of the terminal: those of consumers where a screen uses them (`palette.py`)."""
_FORMAT = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">
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


def screen(command: str) -> str:
    """What the command writes to a terminal, with the codes of its colours."""
    line = [sys.executable, "-m", "rmqlb", *shlex.split(command), "-o", "table", "--color", "always"]
    environment = {**os.environ, "COLUMNS": str(_COLUMNS), "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1"}
    done = subprocess.run(line, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)  # noqa: S603
    return done.stdout


def picture(name: str) -> str:
    """The screen of a command as SVG, below the command as typed."""
    console = Console(record=True, width=_COLUMNS, file=StringIO(), force_terminal=True, color_system="truecolor")
    console.print(Text(f"$ rmqlb {SCREENS[name]}", style="bold"), highlight=False)
    console.print(Text.from_ansi(screen(SCREENS[name]).rstrip("\n")), highlight=False)
    drawn = console.export_svg(title="", theme=_THEME, code_format=_FORMAT, unique_id=f"screen-{name}")
    return re.sub(r"\d+\.\d{2,}(?=\")", lambda number: f"{float(number[0]):.1f}", drawn)


if __name__ == "__main__":
    for each in SCREENS:
        (FOLDER / f"{each}.svg").write_text(picture(each), encoding="utf-8")
