"""What decides how a result is shown: flags, the environment, what the streams are."""

from __future__ import annotations

import json

import pytest

from rmqlb.cli.common.progress import Progress
from rmqlb.views.formats.text import width
from tests.cli.run import EXAMPLE, run
from tests.support.mismatches import every_case

SHOW = ("show-route", "--topic", "Skewed")


def test_the_format_may_come_from_the_environment_and_the_flag_goes_before() -> None:
    env = {"RMQLB_OUTPUT": "json"}
    assert json.loads(run(*SHOW, "-s", EXAMPLE, env=env).stdout)["schema"] == "rmqlb/route"
    assert run(*SHOW, "-s", EXAMPLE, "-o", "csv", env=env).stdout.startswith("topic,")
    assert json.loads(run(*SHOW, "-s", "no-such-file", env=env).stderr)["schema"] == "rmqlb/error"


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


@every_case("name", ["x" * 300, "\u8a02\u55ae" * 100, "\x1b" * 100])
def test_a_line_of_progress_fits_the_terminal_with_its_count(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with Progress("live") as progress:
        progress(name, 3, 9)
    line, blank, end = capsys.readouterr().err.removeprefix("\r").split("\r")
    assert line.endswith(": 4 of 9")
    assert 78 <= width(line) == len(blank) <= 79
    assert (blank.strip(), end) == ("", "")
