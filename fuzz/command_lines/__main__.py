"""Run random command lines, and keep those that fail a check.

python -m fuzz.command_lines --seconds 60
python -m fuzz.command_lines --seed 7 --count 5000 --keep failures
python -m fuzz.command_lines --seed 7 --case 1234
"""

from __future__ import annotations

import argparse
import shlex
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import count, islice
from pathlib import Path
from random import Random
from time import monotonic

from msgspec import Struct
from msgspec.structs import replace

from fuzz.command_lines.alone import ALONE, result
from fuzz.command_lines.lines import Case, make_case
from fuzz.command_lines.running import Runs
from fuzz.command_lines.sums import SUMS, adds_up
from fuzz.command_lines.together import TOGETHER

_MOST_KEPT = 3
"""Failures of one check that are made smaller and kept; the others are counted."""
_SHOWN = 5
"""Sentences of one check; the others say the same of other queues."""


class Failed(Struct, frozen=True):
    """A check that a case fails."""

    case: Case
    check: str
    said: tuple[str, ...]


def try_case(case: Case, only: str | None = None) -> tuple[list[Failed], int]:
    """Run the case in a new folder: the checks that fail, all or only this one, and how many command lines were run."""
    with tempfile.TemporaryDirectory() as folder:
        runs = Runs(case, Path(folder))
        return [failed for failed in _judged(case, runs, only) if failed.said], runs.count


def _judged(case: Case, runs: Runs, only: str | None) -> Iterator[Failed]:
    def judged(name: str, sentences: Callable[[], Iterator[str]]) -> Failed:
        try:
            return Failed(case, name, tuple(islice(sentences(), _SHOWN)))
        except Exception:  # noqa: BLE001 - a result that the check cannot read is a failure too
            return Failed(case, name, (f"the check cannot read it: {traceback.format_exc()[-1500:]}",))

    ran = runs(*case.words)
    for check in ALONE:
        if only in (None, check.__name__):
            yield judged(check.__name__, lambda check=check: check(case, ran))  # type: ignore[misc]
    value = result(case, ran)
    if value is not None and case.command in SUMS:
        yield judged("sums", lambda: adds_up(case.command, value["data"]))
    dice = Random(case.name)
    for together, often in TOGETHER.items():
        name = together.__name__
        if not ran.escaped and (only == name or (only is None and dice.random() < often)):
            yield judged(name, lambda together=together: together(case, ran, runs))  # type: ignore[misc]


def smaller(failed: Failed) -> Failed:
    """The same failure without the options that it does not need."""
    at = 0
    while at < len(failed.case.pieces):
        pieces = (*failed.case.pieces[:at], *failed.case.pieces[at + 1 :])
        found, _ = try_case(replace(failed.case, pieces=pieces), failed.check)
        same = next((each for each in found if each.check == failed.check), None)
        failed, at = (failed, at + 1) if same is None else (same, at)
    return failed


def keep(failed: Failed, folder: Path) -> str:
    """Write a failure down with its files, and say how to see it again."""
    case = failed.case
    place = folder / f"{case.name.replace('/', '-')}-{failed.check}"
    Runs(case, place)
    line = f"COLUMNS={case.columns} rmqlb {shlex.join(case.words)}" + (f" < {case.made.file}" if case.stdin else "")
    seed, number = case.name.split("/")
    again = f"again: python -m fuzz.command_lines --seed {seed} --case {number}"
    said = [sentence.strip() for sentence in failed.said]
    text = "\n".join([f"case {case.name}, check {failed.check}, kept in {place}", line, *said, again])
    (place / "failure.txt").write_text(f"{text}\n", encoding="utf-8", errors="backslashreplace")
    return text


def main() -> int:
    """The exit code: 1 when a check failed."""
    parser = argparse.ArgumentParser("fuzz.command_lines", description=__doc__, allow_abbrev=False)
    parser.add_argument("--seed", type=int, default=1, help="of all cases (1)")
    parser.add_argument("--count", type=int, help="how many cases")
    parser.add_argument("--seconds", type=float, help="for how long; without it and --count, for ever")
    parser.add_argument("--case", type=int, help="only the case of this number")
    parser.add_argument("--keep", default="fuzz-failures", help="where failures are kept (./fuzz-failures)")
    options = parser.parse_args()
    end = monotonic() + options.seconds if options.seconds else None
    failures: Counter[str] = Counter()
    lines = cases = 0
    for number in [options.case] if options.case is not None else count():
        if (end is not None and monotonic() > end) or (options.count is not None and cases >= options.count):
            break
        found, run = try_case(make_case(options.seed, number))
        lines, cases = lines + run, cases + 1
        for failed in found:
            failures[failed.check] += 1
            if failures[failed.check] <= _MOST_KEPT:
                print(keep(smaller(failed), Path(options.keep)), flush=True)
    print(f"seed {options.seed}: {cases} cases, {lines} command lines, {failures.total()} failures")
    for check, number in failures.most_common():
        print(f"  {number} of {check}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
