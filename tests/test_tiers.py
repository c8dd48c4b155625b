import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import conftest
from tests.support.mismatches import every_case

ROOT = Path(__file__).parent.parent
TEST_FILES = sorted((ROOT / "tests").rglob("test_*.py"))


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


def test_a_small_project_has_the_same_tiers(tmp_path: Path) -> None:
    for name in ("conftest.py", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    files = {
        "default": "def test_a(): pass\ndef test_b(): pass\n",
        "spark": "import pytest\nimport nothing\npytestmark = pytest.mark.spark\ndef test_c(): pass\n",
        "live": "import pytest\npytestmark = [pytest.mark.live, pytest.mark.slow]\ndef test_d(): pytest.skip('no Java')\n",
    }
    (tmp_path / "tests").mkdir()
    for name, text in files.items():
        (tmp_path / f"tests/test_{name}.py").write_text(text)

    def said(*arguments: str, ci: str = "") -> str:
        line = [sys.executable, "-m", "pytest", "-q", "-n0", "--color=no", *arguments]
        env = {**os.environ, "CI": ci}
        done = subprocess.run(line, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
        return done.stdout + done.stderr

    assert "2 passed in" in said(), "the files of other tiers are not even imported"
    assert "1 deselected" in said("-m", "live and not slow")
    assert "2 passed, 1 skipped, 1 error in" in said("-m", "", "--continue-on-collection-errors")
    assert "ERROR: tests/test_spark.py is of the tier spark: add -m spark" in said("tests/test_spark.py::test_c")
    in_ci = said("-m", "live", ci="1")
    assert ("1 failed" in in_ci, "CI skips nothing. Skipped: no Java" in in_ci) == (True, True)
    (tmp_path / "tests/test_default.py").write_text("import pytest\n@pytest.mark.sparc\ndef test_a(): pass\n")
    assert "'sparc' not found in `markers`" in said()


def test_every_case_is_run_and_every_mismatch_is_listed_by_name() -> None:
    seen = []

    @every_case(("number", "word"), [(1, "a"), pytest.param(2, "b", id="two"), (3, "c"), (4, "d"), (5, "e")])
    def check(number: int, word: str) -> None:
        seen.append((number, word))
        assert number % 2, "even"
        if number == 3:
            pytest.fail("three")
        if number == 5:
            pytest.skip("not today")

    with pytest.raises(AssertionError) as caught:
        check()
    assert seen == [(1, "a"), (2, "b"), (3, "c"), (4, "d"), (5, "e")]
    first, *lines = str(caught.value).splitlines()
    assert first == "4 of 5 cases do not match:"
    assert [line.partition(" (line")[0] for line in lines if " (line" in line] == ["two", "3-'c'", "4-'d'", "5-'e'"]
    assert "three" in str(caught.value)
    assert isinstance(caught.value.__cause__, AssertionError)


def test_a_test_without_cases_and_a_case_with_a_mark_are_refused() -> None:
    for cases, match in (([], "there is no case"), ([pytest.param(1, marks=pytest.mark.slow)], "a case with a mark")):
        with pytest.raises(ValueError, match=match):
            every_case("number", cases)
