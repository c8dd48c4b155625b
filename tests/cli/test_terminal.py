"""What decides how a result is shown: flags, the environment, what the streams are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rmqlb.cli.terminal import Progress
from rmqlb.model.snapshot import Wanted
from rmqlb.sources.dump import DumpSource
from tests.cli.run import EXAMPLE, run

SHOW = ("show-route", "--topic", "Skewed")


def test_the_source_may_come_from_the_environment_and_the_flag_goes_before() -> None:
    assert run(*SHOW, env={"RMQLB_SOURCE": EXAMPLE}).code == 0
    assert run(*SHOW, "-s", EXAMPLE, env={"RMQLB_SOURCE": "no-such-file"}).code == 0


def test_the_format_may_come_from_the_environment_and_the_flag_goes_before() -> None:
    env = {"RMQLB_OUTPUT": "json"}
    assert json.loads(run(*SHOW, "-s", EXAMPLE, env=env).stdout)["schema"] == "rmqlb/route"
    assert run(*SHOW, "-s", EXAMPLE, "-o", "csv", env=env).stdout.startswith("topic,")
    assert json.loads(run(*SHOW, "-s", "no-such-file", env=env).stderr)["schema"] == "rmqlb/error"


def test_off_a_terminal_plain_is_the_default() -> None:
    assert run(*SHOW, "-s", EXAMPLE).stdout == run(*SHOW, "-s", EXAMPLE, "-o", "plain").stdout


def test_on_a_terminal_progress_is_one_line_that_goes_away(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress("live") as progress:
        progress("routes", 0, 12)
        progress("routes", 9, 12)
    assert capsys.readouterr().err.startswith("\rreading routes: 1 of 12\rreading routes: 10 of 12")


def test_names_in_progress_are_shown_harmless(capsys: pytest.CaptureFixture[str]) -> None:
    for manner in ("live", "stages"):
        with Progress(manner) as progress:
            progress("\x1b[2J", 0, 1)
        assert "\x1b" not in capsys.readouterr().err


def test_silence_is_silence(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress("silent") as progress:
        progress("routes", 0, 12)
    assert capsys.readouterr().err == ""


def test_a_group_that_is_not_there_is_told_even_where_its_members_are_given() -> None:
    done = run("show-owners", "-s", EXAMPLE, "-g", "order-scv", "-t", "Skewed", "--consumers", "a,b", "-o", "csv")
    assert done.code == 0
    assert done.stderr == f"warning: group order-scv is not in {EXAMPLE}; did you mean order-svc? [group-not-seen]\n"


def test_a_large_dump_says_that_it_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "large.json"
    file.write_text('{"schema":"rmqlb/snapshot","formatVersion":"1.0","data":{}' + " " * (5 << 20) + "}")
    with Progress("live") as progress:
        DumpSource(str(file)).fetch(Wanted(), progress)
    assert "reading large.json" in capsys.readouterr().err.replace(f"{tmp_path}/", "")
