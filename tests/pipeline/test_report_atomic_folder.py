"""A report is there as a whole or not at all."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rmqlb.errors import DataError, UsageError
from rmqlb.pipeline.report.atomic_folder import atomic_folder


def write(folder: Path, text: str) -> None:
    with atomic_folder(str(folder), "mark") as aside:
        Path(aside, "mark").write_text(text)


def test_nothing_shows_before_the_end(tmp_path: Path) -> None:
    with atomic_folder(str(tmp_path / "report"), "mark") as aside:
        Path(aside, "mark").write_text("new")
        assert not (tmp_path / "report").exists()
    assert (tmp_path / "report" / "mark").read_text() == "new"


def test_a_failure_leaves_the_report_of_before(tmp_path: Path) -> None:
    write(tmp_path / "report", "old")

    def fail() -> None:
        with atomic_folder(str(tmp_path / "report"), "mark") as aside:
            Path(aside, "mark").write_text("half")
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert (tmp_path / "report" / "mark").read_text() == "old"
    assert os.listdir(tmp_path) == ["report"]


def test_a_run_that_was_killed_blocks_nobody(tmp_path: Path) -> None:
    code = (
        "import os, sys, signal\n"
        "from rmqlb.pipeline.report.atomic_folder import atomic_folder\n"
        "with atomic_folder(sys.argv[1], 'mark') as aside:\n"
        "    os.mkdir(os.path.join(aside, 'csv'))\n"
        "    open(os.path.join(aside, 'left over'), 'w').close()\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "report")], check=False)
    assert done.returncode == -9
    assert os.listdir(tmp_path) == [".report.aside"]
    write(tmp_path / "report", "new")
    assert os.listdir(tmp_path) == ["report"]
    assert os.listdir(tmp_path / "report") == ["mark"]


def test_two_do_not_write_at_once(tmp_path: Path) -> None:
    with atomic_folder(str(tmp_path / "report"), "mark") as aside:
        Path(aside, "mark").write_text("first")
        with pytest.raises(UsageError, match="another process is writing a report"):
            write(tmp_path / "report", "second")
    assert (tmp_path / "report" / "mark").read_text() == "first"


def test_a_link_is_followed_and_stays(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "report").symlink_to(tmp_path / "real")
    write(tmp_path / "report", "new")
    assert (tmp_path / "report").is_symlink()
    assert (tmp_path / "real" / "mark").read_text() == "new"


def test_a_place_that_cannot_be_written_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match=r"cannot write to .*/file/report: File exists") as caught:
        write(tmp_path / "file" / "report", "new")
    assert caught.value.hint == "choose another folder for the report"
