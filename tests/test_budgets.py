"""What the house may weigh. A budget only falls; who raises one says why in the commit."""

import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import pytest

from tests.cli.run import EXAMPLE, ROOT, environment

_SLACK = 0.01
"""A budget that is so much larger than what it is about has to fall."""
_COUNT = """
import sys
from rmqlb.__main__ import run
try:
    run()
except SystemExit:
    pass
print(sum(name.partition(".")[0] == "rmqlb" for name in sys.modules), file=sys.stderr)
"""


def lines(paths: Iterable[Path]) -> int:
    return sum(path.read_bytes().count(b"\n") for path in paths)


def in_git() -> int:
    """The files in git; of an exported tree, those that are no build's and no tool's."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode == 0 and listed.stdout:
        return len(listed.stdout.splitlines())
    made = {"__pycache__", "dist", "build", "site", "reference", "fuzz-failures", "rmqlb-report"}
    return sum(
        path.is_file()
        for path in ROOT.rglob("*")
        if not any(
            part in made or (part[0] == "." and part not in (".ci", ".gitignore"))
            for part in path.parts[len(ROOT.parts) :]
        )
    )


def modules(*arguments: str) -> int:
    """The modules of rmqlb that a command loads on a dump."""
    line = [sys.executable, "-c", _COUNT, *arguments, "-s", EXAMPLE, "-g", "order-svc", "-o", "json", "-q"]
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, env=environment(), check=True)
    return int(done.stderr.splitlines()[-1])


BUDGETS: Mapping[str, tuple[int, Callable[[], int]]] = {
    "lines of the product": (51_854, lambda: lines((ROOT / "rmqlb").rglob("*.py"))),
    "files of the product": (263, lambda: len([*(ROOT / "rmqlb").rglob("*.py")])),
    "lines of tests": (35_976, lambda: lines((ROOT / "tests").rglob("*.py"))),
    "files in git": (1_000, in_git),
    "modules that show-owners loads": (90, lambda: modules("show-owners")),
    "modules that plan-rebalance loads": (110, lambda: modules("plan-rebalance", "--add", "1")),
}
"""What is counted → the most that it may be, and what counts it."""


@pytest.mark.parametrize("name", BUDGETS)
def test_a_budget_is_kept_and_falls_with_what_it_is_about(name: str) -> None:
    most, count = BUDGETS[name]
    found = count()
    assert found <= most, f"{name}: {found:,}, and the budget is {most:,}"
    assert found >= most * (1 - _SLACK) - 1, f"{name}: {found:,}; lower the budget of {most:,}"
