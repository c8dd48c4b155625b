"""`tests.hardening.first_calls` in a process of its own, because a process can be first only once."""

import os
import re
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import msgspec
import pytest

import rmqlb
from rmqlb import decoding
from rmqlb.cli.exit_codes import ExitCode
from tests.cli.run import EXAMPLE, ROOT, environment, run
from tests.hardening import first_calls
from tests.hardening.torture import CALLING, MARK, OLD, WRITING, Outcome
from tests.support.mismatches import FIGURES, every_case, first_by_default


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


def tortured(folder: Path, what: str, name: str) -> list[Outcome]:
    """The torture's runs of one command; none of them tears the file, or ends in a trace."""
    line = [sys.executable, "-m", "tests.hardening.torture", str(folder), what, name]
    done = subprocess.run(line, capture_output=True, cwd=ROOT, env=environment(), timeout=300, check=False)
    assert done.stderr == b""
    outcomes = [msgspec.json.decode(line, type=Outcome) for line in done.stdout.splitlines()]
    assert {outcome.content for outcome in outcomes} == {"old", "new"}
    assert [outcome for outcome in outcomes if "Traceback" in outcome.stderr] == []
    return outcomes


ON_THE_DISK = {"full disk": "No space left on device", "failing disk": "Input/output error"}


@pytest.mark.parametrize("name", first_by_default(WRITING))
def test_a_step_that_fails_leaves_the_old_file(name: str, tmp_path: Path) -> None:
    outcomes = tortured(tmp_path, "writes", name)
    assert {outcome.fault for outcome in outcomes} == {"kill -9", "Ctrl-C", *ON_THE_DISK}
    for fault in ("kill -9", "Ctrl-C", *ON_THE_DISK):
        *failed, whole = [outcome for outcome in outcomes if outcome.fault == fault]
        assert (whole.code, whole.content, whole.left) == (MARK, "new", ())
        assert len(failed) >= 4, fault  # opening, writing, flushing, renaming
        code = {"kill -9": -9, "Ctrl-C": ExitCode.INTERRUPTED}.get(fault, ExitCode.USAGE)
        assert {(outcome.code, outcome.content) for outcome in failed} == {(code, "old")}, fault
        if fault != "kill -9":
            assert {outcome.left for outcome in failed} == {()}, fault
        FIGURES[f"steps of writing a file that ended in: {fault}"] += len(failed)
        if fault in ON_THE_DISK:
            lines = {outcome.stderr.splitlines()[-1] for outcome in failed}
            assert {line.rpartition(": ")[2] for line in lines} == {f"{ON_THE_DISK[fault]} [cannot-write]"}


@pytest.mark.parametrize("name", first_by_default(CALLING))
def test_an_interrupt_at_any_point_ends_with_130(name: str, tmp_path: Path) -> None:
    outcomes = tortured(tmp_path, "calls", name)
    assert {outcome.code for outcome in outcomes} == {ExitCode.INTERRUPTED, MARK}
    assert {outcome.left for outcome in outcomes} == {()}
    assert Counter(outcome.content for outcome in outcomes)["old"] >= 5


def test_ctrl_c_while_msgspec_looks_up_a_type_is_not_lost() -> None:
    read = msgspec.defstruct("Read", [("field", Annotated[int, "has a hash"])])

    def interrupt(frame: Any, *_: object) -> None:
        if frame.f_code.co_name == "__hash__":
            sys.setprofile(None)
            signal.raise_signal(signal.SIGINT)

    sys.setprofile(interrupt)
    with pytest.raises(KeyboardInterrupt):
        decoding.decode(b'{"field": 1}', read)


WHERE_IT_IS_TOLD = [name for name, line in WRITING.items() if "FILE" in line]


def writing(name: str, target: str) -> list[str]:
    return [word.replace("FILE", target) for word in WRITING[name]]


BAD_TARGETS = {
    "no folder": "{}/no/where", "a folder": "{}", "no name": "", "a long name": "{}/" + "x" * 300,
    "a file as a folder": f"{EXAMPLE}/x", "NUL": "{}/a\0b",
}  # fmt: skip


@every_case("what", BAD_TARGETS)
@every_case("name", WHERE_IT_IS_TOLD)
def test_a_target_that_cannot_be_is_one_line(name: str, what: str, tmp_path: Path) -> None:
    done = run(*writing(name, BAD_TARGETS[what].format(tmp_path)))
    assert done.code == ExitCode.USAGE
    assert done.stderr.splitlines()[-1].startswith("error: ")
    assert list(tmp_path.iterdir()) == []


@every_case("name", WHERE_IT_IS_TOLD)
def test_a_device_is_written_to_and_stays_one(name: str) -> None:
    assert run(*writing(name, "/dev/null")).code == 0
    assert not os.path.isfile("/dev/null")
    if os.path.exists("/dev/full"):
        done = run(*writing(name, "/dev/full"))
        assert done.code == ExitCode.USAGE
        assert done.stderr.splitlines()[-1].endswith(": No space left on device [cannot-write]")


def test_a_link_is_replaced_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "real").write_text(OLD)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert run(*writing("fetch-routes --to", str(tmp_path / "link"))).code == 0
    assert (tmp_path / "real").read_text() == OLD
    assert not (tmp_path / "link").is_symlink()


def test_leftovers_of_killed_runs_do_not_block_the_file_and_go_after_an_hour(tmp_path: Path) -> None:
    """In a container every run has the process ID 1."""
    young = f".target.{os.getpid()}.part"
    for leftover in (young, ".target.1.part", ".targets.1.part"):
        (tmp_path / leftover).write_text("half")
        if leftover != young:
            os.utime(tmp_path / leftover, (0, 0))
    assert run(*writing("fetch-routes --to", str(tmp_path / "target"))).code == 0
    assert {*os.listdir(tmp_path)} == {"target", young, ".targets.1.part"}
