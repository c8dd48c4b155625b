"""Pictures of screens for the pages: what a command shows on a terminal of 100 columns, in colour.

`python -m tools.screens` writes `docs/screens/`.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

from rich.text import Text

from rmqlb.views.pictures import as_svg, recording_console

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


def screen(command: str) -> str:
    """What the command writes to a terminal, with the codes of its colours."""
    line = [sys.executable, "-m", "rmqlb", *shlex.split(command), "-o", "table", "--color", "always"]
    environment = {**os.environ, "COLUMNS": str(_COLUMNS), "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1"}
    done = subprocess.run(line, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)  # noqa: S603
    return done.stdout


def picture(name: str) -> str:
    """The screen of a command as SVG, below the command as typed."""
    console = recording_console(_COLUMNS)
    console.print(Text(f"$ rmqlb {SCREENS[name]}", style="bold"), highlight=False)
    console.print(Text.from_ansi(screen(SCREENS[name]).rstrip("\n")), highlight=False)
    return as_svg(console, f"screen-{name}")


if __name__ == "__main__":
    for each in SCREENS:
        (FOLDER / f"{each}.svg").write_text(picture(each), encoding="utf-8")
