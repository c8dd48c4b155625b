"""Trying a case: its command line is run and judged; what fails is made smaller and kept."""

from __future__ import annotations

import json
import shlex
import tempfile
import traceback
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from random import Random

from msgspec import Struct
from msgspec.structs import replace

from fuzz.command_lines.alone import ALONE, result
from fuzz.command_lines.lines import Case, Piece
from fuzz.command_lines.running import Ran, run_apart, run_here, run_on_a_terminal
from fuzz.command_lines.sums import SUMS, adds_up
from fuzz.command_lines.together import TOGETHER, Runs, Where

_SHOWN = 5
"""Sentences of one check; the others say the same of other queues."""


class Failed(Struct, frozen=True):
    """A check that a case fails.

    Attributes:
        case: the case.
        check: the name of the check.
        said: what is not so.
    """

    case: Case
    check: str
    said: tuple[str, ...]


def try_case(case: Case, runs: Runs, only: str | None = None) -> Iterator[Failed]:
    """Run the case and judge what comes of it.

    Args:
        case: the case.
        runs: runs command lines in a folder with the case's files.
        only: the one check that is of interest.
    """
    ran = runs(case.words)
    for check in ALONE:
        if only in (None, check.__name__):
            yield from _failed(case, check.__name__, lambda check=check: check(case, ran))  # type: ignore[misc]
    value = result(case, ran)
    if value is not None and case.command in SUMS:
        yield from _failed(case, SUMS[case.command].__name__, lambda: adds_up(case.command, value["data"]))
    if ran.escaped:
        return
    dice = Random(case.name)
    for together in TOGETHER:
        if only == together.__name__ or (only is None and dice.random() < together.often):
            yield from _failed(case, together.__name__, lambda t=together: t.check(case, ran, runs))  # type: ignore[misc]


def _failed(case: Case, name: str, sentences: Callable[[], Iterator[str]]) -> Iterator[Failed]:
    try:
        said = tuple(islice(sentences(), _SHOWN))
    except Exception:  # noqa: BLE001 - a result that the check cannot read is not as it should be either
        said = (f"the check cannot read it: {traceback.format_exc()[-1500:]}",)
    if said:
        yield Failed(case, name, said)


def try_afresh(case: Case, only: str | None = None) -> tuple[list[Failed], int]:
    """Run the case in a new folder; what fails, and how many command lines were run."""
    with tempfile.TemporaryDirectory() as folder:
        runs = _runs(case, Path(folder))
        return list(try_case(case, runs, only)), runs.count


def smaller(failed: Failed) -> Failed:
    """The same failure without the options that it does not need."""
    at = 0
    while at < len(failed.case.pieces):
        pieces = (*failed.case.pieces[:at], *failed.case.pieces[at + 1 :])
        found, _ = try_afresh(replace(failed.case, pieces=pieces), failed.check)
        same = [each for each in found if each.check == failed.check]
        if same:
            failed = same[0]
        else:
            at += 1
    return failed


def keep(failed: Failed, folder: Path) -> Path:
    """Write a failure down: the files, the command line, what was not as it should be, and how to see it again."""
    case = failed.case
    place = folder / f"{case.name.replace('/', '-')}-{failed.check}"
    _write(case, place)
    line = f"COLUMNS={case.columns} rmqlb {shlex.join(case.words)}" + (f" < {case.made.cluster}" if case.stdin else "")
    text = [f"case {case.name}", line, f"check {failed.check}", *failed.said]
    (place / "failure.txt").write_text("\n".join(text) + "\n", encoding="utf-8", errors="backslashreplace")
    pieces: tuple[Piece, ...] = case.pieces
    (place / "pieces.json").write_text(json.dumps(pieces), encoding="utf-8")
    return place


def _runs(case: Case, folder: Path) -> Runs:
    _write(case, folder)

    def run(words: tuple[str, ...], *, columns: int, where: Where) -> Ran:
        stdin = case.stdin if "-" in words else b""
        if where == "terminal":
            return run_on_a_terminal(words, folder, columns)
        return (run_apart if where == "apart" else run_here)(words, folder, columns, stdin)

    return Runs(run, case.columns)


def _write(case: Case, folder: Path) -> None:
    for name, content in case.made.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
