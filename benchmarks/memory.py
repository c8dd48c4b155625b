"""Peak memory and time on a snapshot of 10,000 topics and 1,000 groups: `python -m benchmarks.memory`.

Peaks are the operating system's, of the whole process (`wait4`). Times are in units of two peers: the bare interpreter,
and the bare interpreter that loads the same file with `json`.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.installation import ROOT, Installation, installation
from benchmarks.measuring import MEGABYTE, Usage, in_turns, machine, markdown, peak_megabytes, ratio, seconds

HOLD = 300
"""No command takes more of memory, in MB."""

BARE = "python -c pass"
JSON = "python, json.load of the file"
GROUP, TOPIC = "order-svc-0500", "PaymentEvents-00501"


def commands(installed: Installation, file: str) -> dict[str, Sequence[str]]:
    """The peers, and rmqlb on the large file."""
    load = "import json, sys\nwith open(sys.argv[1], encoding='utf-8') as file: json.load(file)"
    return {
        BARE: [installed.python, "-c", "pass"],
        JSON: [installed.python, "-c", load, file],
        f"rmqlb plan-rebalance -g {GROUP} --add 1 -o json": [
            *(installed.rmqlb, "plan-rebalance", "-s", file, "-g", GROUP, "--add", "1", "-o", "json")
        ],
        f"rmqlb show-route -t {TOPIC} -o json": [
            *(installed.rmqlb, "show-route", "-s", file, "-t", TOPIC, "-o", "json")
        ],
    }


def table(usages: Mapping[str, Sequence[Usage]]) -> str:
    """A row a command."""
    bare, load = seconds(usages[BARE]), seconds(usages[JSON])
    rows = [
        (
            f"`{name}`" if name != JSON else name,
            peak_megabytes(own),
            ratio(seconds(own), bare),
            ratio(seconds(own), load),
        )
        for name, own in usages.items()
    ]
    return markdown(("process", "peak, MB", f"time / `{BARE}`", "time / `json.load`"), rows)


def broken(usages: Mapping[str, Sequence[Usage]]) -> list[str]:
    """A line for each command whose largest peak is above the hold."""
    peaks = {name: peak_megabytes(own).most for name, own in usages.items() if name.startswith("rmqlb")}
    return [f"{name}: {peak:.0f} MB, and at most {HOLD} are allowed" for name, peak in peaks.items() if peak > HOLD]


def main() -> None:
    """Measure, print the table, and with `--check` end with 1 when the hold is broken."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory", description=__doc__)
    parser.add_argument("--rounds", type=int, default=10, metavar="N", help="turns that count (default: %(default)s)")
    parser.add_argument("--venv", type=Path, metavar="DIR", help="measure the rmqlb installed there, not a fresh one")
    parser.add_argument("--check", action="store_true", help="exit code 1 when the hold is broken")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch, installation(options.venv) as installed:
        file = Path(scratch, "cluster.json")
        # In a process of its own: what this one once took would be every child's least peak.
        make = [sys.executable, "-m", "benchmarks.cluster", str(file)]
        subprocess.run(make, check=True, cwd=ROOT, stdout=subprocess.DEVNULL)  # noqa: S603 - our own module
        size = file.stat().st_size / MEGABYTE
        sys.stdout.write(f"{machine()}, {options.rounds} turns, a file of {size:.1f} MB\n\n")
        usages = in_turns(commands(installed, str(file)), options.rounds)
    sys.stdout.write(table(usages) + "\n")
    complaints = broken(usages)
    sys.stdout.writelines(f"\nhold broken: {line}\n" for line in complaints)
    sys.exit(1 if options.check and complaints else 0)


if __name__ == "__main__":
    main()
