"""Commands answer to the lines of `scenarios.txt` as `tests/data/random_clusters/` records.

A record proves no rule: it shows which answers a change alters. Each is a command line, its exit code, checksums of its
result as JSON and of its texts (all tables as Markdown, and what a terminal shows, with colours; of a live source JSON alone),
and its first line. `fuzz N` is `make_case(0, N)` of the fuzzer. `--update-golden` writes them.
"""

import os
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zlib import crc32

import pytest

from fuzz.command_lines.lines import make_case
from fuzz.command_lines.running import Runs
from tests.cli.recorded_lines import EXAMPLES, LIVE, run_live
from tests.cli.run import ROOT, with_documents
from tests.support.mismatches import DATA, assert_summaries_recorded

PARTS = 8
SCENARIOS = (DATA / "scenarios.txt").read_text(encoding="utf-8").splitlines()


def scenario(line: str) -> str:
    """EXAMPLE|/OLD/NEW|/OLD/NEW/2 is the example, on stdin, with each OLD replaced, or the first two."""
    if line.startswith("fuzz "):
        case = make_case(0, int(line.split()[1]))
        with TemporaryDirectory() as folder:
            run = Runs(case, Path(folder))
            return summary(f"{line} {shlex.join(case.words)[:60]}", lambda: run(*case.words, columns=100), 72)
    words = [os.path.relpath(EXAMPLES[word]) if word in EXAMPLES else word for word in shlex.split(line)]
    stdin: bytes | None = None
    for place, (name, *edits) in enumerate(word.split("|") for word in words):
        if edits and name in EXAMPLES:
            words[place], text = "-", Path(EXAMPLES[name]).read_text(encoding="utf-8")
            for _, old, new, *times in (edit.split("/") for edit in edits):
                assert old in text, line
                text = text.replace(old, new, *map(int, times))
            stdin = text.encode()
    number, forms = crc32(line.encode()), (("-o", "markdown", "--all"), ("-o", "table", "--color", "always"))
    form = () if " -o " in line else ("-o", "json", "--all") if LIVE.search(line) else forms[number & 1]
    width = None if form not in forms else 0 if number & 1 else (38, 72)[number >> 1 & 1]
    return summary(line, lambda: run_live([*words, *form], stdin), width)


def summary(name: str, run: Callable[[], Any], width: int | None) -> str:
    ran, documents = with_documents(run, width)
    printed = [*documents * (width is not None), f"{ran.stdout}{ran.stderr}"]
    sums = [f"{crc32(text.encode()):08x}" for text in printed]
    first = re.sub(r"\x1b\[[0-9;]*m", "", printed[-1]).partition("\n")[0]
    return f"{name}: {ran.code} {' '.join(sums)} {first[:80]}"


@pytest.mark.usefixtures("on_a_known_day")
@pytest.mark.parametrize("part", range(PARTS))
def test_commands_answer_for_random_clusters_as_recorded(
    part: int, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.chdir(ROOT / "examples")
    found = [scenario(line) for line in SCENARIOS[part::PARTS]]
    assert_summaries_recorded(DATA / "random_clusters" / f"{part}.json", found, request)
