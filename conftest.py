"""Which tests are collected, on how many cores they run, and that CI skips none.

A test file that needs more than Python says so by `pytestmark`: it is of the tier spark, live or browser, and is not
even imported unless `-m` asks for that tier, as what it imports may not be installed.
"""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

Report = pytest.TestReport | pytest.CollectReport
ROOT = Path(__file__).parent
TIERS = ("spark", "live", "browser")
MARKED = re.compile(r"^pytestmark = \[?pytest\.mark\.(\w+)", re.MULTILINE)
"""How a file names its tier."""
LONGEST = ("test_recorded_clusters", "test_secrets", "test_answers", "test_dashboard", "test_opening", "test_record")
"""Begun late, one of these would still run on one core when the others have nothing left."""
ON_SPARK = ROOT / "rmqlb" / "pipeline"
"""Whose doctests are of the tier spark, because most modules there import pyspark."""


def tier_of(path: Path) -> str | None:
    """The tier of a test file, or of a file or folder with doctests; None is the default one."""
    if path.is_relative_to(ON_SPARK):
        return "spark"
    if path.suffix != ".py" or not path.name.startswith("test_"):
        return None
    found = MARKED.search(path.read_text(encoding="utf-8"))
    return found[1] if found and found[1] in TIERS else None


def is_asked_for(tier: str | None, config: pytest.Config) -> bool:
    """`-m` names the tier without `not`; the default one where it names none. An empty one is everything."""
    expression = config.getoption("markexpr")
    named: set[str | None] = {each for each in TIERS if re.search(rf"(?<!not )\b{each}\b", expression)}
    return not expression or tier in (named or {None})


def pytest_configure(config: pytest.Config) -> None:
    """Have no program of a test ignore Ctrl-C, or compile again what another has compiled.

    A pytest that a shell put in the background would make them ignore it.

    Raises:
        pytest.UsageError: a file is named whose tier is not asked for.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # Hundreds of tests start rmqlb: compiled anew, each of these starts takes twice to four times as long.
    sys.dont_write_bytecode = False
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    for argument in config.args:
        name = argument.partition("::")[0]
        file = config.invocation_params.dir / name
        tier = tier_of(file) if file.is_file() else None
        if tier is not None and not is_asked_for(tier, config):
            raise pytest.UsageError(f"{name} is of the tier {tier}: add -m {tier}")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """One more than cores for the default tests, as some wait for programs; what is chosen runs in this process."""
    chosen = config.args_source is not pytest.Config.ArgsSource.TESTPATHS
    asked = not is_asked_for(None, config) or config.getoption("--figures", default=False)
    return 0 if chosen or asked else len(os.sched_getaffinity(0)) + 1


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out files of tiers that are not asked for, and what tests share, which has no tests."""
    tier = tier_of(collection_path)
    if (tier is not None or collection_path.is_file()) and not is_asked_for(tier, config):
        return True
    is_shared = collection_path.suffix == ".py" and collection_path.is_relative_to(ROOT / "tests")
    return True if is_shared and not collection_path.name.startswith("test_") else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Doctests of the pipeline cannot bear a mark themselves, and the longest tests begin first."""
    items.sort(key=lambda item: item.path.stem not in LONGEST)
    for item in items:
        if item.path.is_relative_to(ON_SPARK):
            item.add_marker(pytest.mark.spark)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, Report, Report]:
    """Fail in CI where a test, or a whole file, would be skipped."""
    report = yield
    if os.environ.get("CI") and report.outcome == "skipped" and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"CI skips nothing. {reason}"
    return report


pytest_make_collect_report = pytest_runtest_makereport
