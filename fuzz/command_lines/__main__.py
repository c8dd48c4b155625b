"""Run random command lines, and keep those that are not as they should be.

python -m fuzz.command_lines --seconds 60
python -m fuzz.command_lines --seed 7 --count 5000 --keep failures
python -m fuzz.command_lines --seed 7 --case 1234
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections import Counter
from itertools import count
from pathlib import Path
from time import monotonic

from fuzz.command_lines.lines import make_case
from fuzz.command_lines.trying import Failed, keep, smaller, try_afresh

_MOST_KEPT = 3
"""Failures of one check that are made smaller and kept; the others are counted."""


def main() -> int:
    """The exit code: 1 when a check failed."""
    asked = _asked()
    end = monotonic() + asked.seconds if asked.seconds else None
    failures: Counter[str] = Counter()
    lines = cases = 0
    for number in [asked.case] if asked.case is not None else count():
        if (end is not None and monotonic() > end) or (asked.count is not None and cases >= asked.count):
            break
        case = make_case(asked.seed, number)
        found, run = try_afresh(case)
        lines, cases = lines + run, cases + 1
        for failed in found:
            failures[failed.check] += 1
            if failures[failed.check] <= _MOST_KEPT:
                _tell(failed, Path(asked.keep))
    print(f"seed {asked.seed}: {cases} cases, {lines} command lines, {sum(failures.values())} failures")
    for check, number in failures.most_common():
        print(f"  {number} of {check}")
    return 1 if failures else 0


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser("fuzz.command_lines", description=__doc__, allow_abbrev=False)
    parser.add_argument("--seed", type=int, default=1, help="of all cases (1)")
    parser.add_argument("--count", type=int, help="how many cases")
    parser.add_argument("--seconds", type=float, help="for how long; without it and --count, for ever")
    parser.add_argument("--case", type=int, help="only the case of this number")
    parser.add_argument("--keep", default="fuzz-failures", help="where failures are kept (./fuzz-failures)")
    return parser.parse_args()


def _tell(failed: Failed, folder: Path) -> None:
    failed = smaller(failed)
    case = failed.case
    place = keep(failed, folder)
    seed, number = case.name.split("/")
    print(f"case {case.name}, check {failed.check}, kept in {place}")
    print(f"  COLUMNS={case.columns} rmqlb {shlex.join(case.words)}")
    for sentence in failed.said:
        print(f"  {sentence[:600]}")
    print(f"  again: python -m fuzz.command_lines --seed {seed} --case {number}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
