"""`tests.hardening.first_calls` in a process of its own, because a process can be first only once."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import rmqlb
from tests.cli.run import ROOT, environment
from tests.hardening import first_calls
from tests.support.figures import FIGURES
from tests.support.mismatches import first_by_default


@pytest.mark.parametrize("how", first_by_default(first_calls.HOW))
def test_threads_that_use_the_api_first_all_get_the_same_answers(how: str) -> None:
    """`.ci/full` tries further seeds."""
    line = [sys.executable, "-X", "faulthandler", "-m", "tests.hardening.first_calls", how, "0"]
    done = subprocess.run(line, capture_output=True, cwd=ROOT, env=environment(), timeout=60, check=False)
    assert (done.returncode, done.stderr.decode()) == (0, "")
    FIGURES["processes whose threads used the Python API first"] += 1


READS_A_TYPE = re.compile(
    r"msgspec\.(\w+\.)?(convert|decode|Decoder)\(|from msgspec[.\w]* import .*\b(convert|decode|Decoder)\b"
)


def test_only_one_file_has_msgspec_read_types() -> None:
    """It makes them ready under a lock; see `rmqlb/decoding.py`. The pipeline's processes each read in one thread."""
    package = Path(rmqlb.__file__).parent
    files = (path for path in package.rglob("*.py") if not path.is_relative_to(package / "pipeline"))
    found = {path.name for path in files if READS_A_TYPE.search(path.read_text(encoding="utf-8"))}
    assert found == {"decoding.py"}
