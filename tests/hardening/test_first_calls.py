"""Whatever is made on its first use may be first used by many threads at once.

A process can be first only once, so each of these is one of its own. `python -m tests.hardening.first_calls calls 1`
is one of them; the seed changes who comes when.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

import rmqlb
from tests.cli.run import ROOT, environment
from tests.hardening import first_calls, stress
from tests.support.figures import FIGURES

RUNS = {"route": 1, "calls": 1, "names": 1}
"""`.ci/full` goes on with further seeds."""


@pytest.mark.parametrize(("how", "seed"), [(how, seed) for how in first_calls.HOW for seed in range(RUNS[how])])
def test_threads_that_use_the_api_first_all_get_the_same_answers(how: str, seed: int) -> None:
    line = [sys.executable, "-X", "faulthandler", "-m", "tests.hardening.first_calls", how, str(seed)]
    done = subprocess.run(line, capture_output=True, cwd=ROOT, env=environment(), timeout=60, check=False)
    assert (done.returncode, done.stderr.decode()) == (0, "")
    FIGURES["processes whose threads used the Python API first"] += 1


def test_threads_that_read_a_live_source_first_find_what_they_need() -> None:
    with ExitStack() as servers:
        lines = [line for line in stress.replayed(servers) if line.words[0] in ("show-owners", "fetch-routes")]
        assert stress.stress(lines, len(lines), loops=2, interval=first_calls.INTERVAL) == []
    FIGURES["processes whose threads read a live source first"] += len(lines)


def test_the_stress_sees_what_it_looks_for() -> None:
    wrong, right = stress.Line(("explain", "no-master"), code=3), stress.Line(("show-route", "-s", "/nowhere"), code=4)
    (failed,) = stress.stress((wrong, right), 2, loops=2)
    assert (failed.line, failed.code) == (wrong, 0)
    assert stress.is_bad("Traceback (most recent call last):\n", 0, 0)
    assert stress.is_bad("", -11, 0)
    assert not stress.is_bad("warning: x [y]\n", 4, 4)


READS_A_TYPE = re.compile(r"msgspec\.(\w+\.)?(convert|decode|Decoder)")


def test_only_one_file_has_msgspec_read_types() -> None:
    """It makes them ready under a lock; see `rmqlb/decoding.py`."""
    found = {
        path.name
        for path in Path(rmqlb.__file__).parent.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        for name in _named(node)
        if READS_A_TYPE.fullmatch(name)
    }
    assert found == {"decoding.py"}


def _named(node: ast.AST) -> list[str]:
    """What the node takes from a module, with the module."""
    if isinstance(node, ast.ImportFrom):
        return [f"{node.module}.{alias.name}" for alias in node.names]
    return [ast.unparse(node)] if isinstance(node, ast.Attribute) else []
