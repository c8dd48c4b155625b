"""Long tables on a terminal go through the user's pager, and nothing else does."""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path

import pytest

from tests.cli.run import EXAMPLE, start
from tests.cli.terminals import OnTerminal
from tests.support.mismatches import every_case

LONG = ("show-owners", "-s", EXAMPLE, "-g", "order-svc", "--all")
SHORT = ("show-route", "-s", EXAMPLE, "--topic", "Skewed", "--section", "brokers")
LAST = "CONSISTENT_HASH"
EVIL = "e\x1b]0;x\x07\x1b[2J\u202evil"


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """Where `keeping` writes what it was given."""
    return tmp_path / "paged.txt"


def keeping(kept: Path) -> str:
    """A pager that shows nothing and keeps everything."""
    code = f"import sys; open({str(kept)!r}, 'wb').write(sys.stdin.buffer.read())"
    return shlex.join([sys.executable, "-c", code])


def test_a_long_table_is_given_to_the_pager_whole_and_in_colour(kept: Path) -> None:
    with OnTerminal(*LONG, "-q", env={"RMQLB_PAGER": keeping(kept)}, lines=20) as terminal:
        assert terminal.end() == 0
        assert terminal.lines == [""]
    paged = kept.read_text()
    assert LAST in paged.splitlines()[-1]
    assert "\x1b[1m" in paged


@pytest.mark.parametrize(
    ("arguments", "env", "lines"),
    [
        (SHORT, {}, 20),
        (LONG, {}, 200),
        ((*LONG, "--no-pager"), {}, 20),
        ((*LONG, "-o", "json"), {}, 20),
    ],
    ids=["short", "tall", "unwanted", "json"],
)
def test_everything_else_is_shown_at_once(
    arguments: tuple[str, ...], env: dict[str, str], lines: int, kept: Path
) -> None:
    with OnTerminal(*arguments, "-q", env={"RMQLB_PAGER": keeping(kept), **env}, lines=lines) as terminal:
        assert terminal.end() == 0
    assert terminal.raw
    assert not kept.exists()


def test_nothing_is_paged_in_a_pipe(kept: Path) -> None:
    done = start(*LONG, "-o", "table", env={"RMQLB_PAGER": keeping(kept), "LINES": "3"})
    assert (done.code, kept.exists()) == (0, False)
    assert LAST in done.stdout


def test_our_own_variable_goes_before_the_common_one(kept: Path) -> None:
    for env in ({"PAGER": keeping(kept)}, {"PAGER": "false", "RMQLB_PAGER": keeping(kept)}):
        with OnTerminal(*LONG, "-q", env=env, lines=20) as terminal:
            assert terminal.end() == 0
        assert LAST in kept.read_text()
        kept.unlink()


@every_case("none", ["", "cat", "no-such-program --wide"])
def test_no_pager_may_be_wanted(none: str) -> None:
    with OnTerminal(*LONG, "-q", env={"RMQLB_PAGER": none}, lines=20) as terminal:
        assert terminal.end() == 0
    assert LAST in terminal.lines[-1]


def test_findings_and_the_exit_code_come_after_the_pager(kept: Path) -> None:
    arguments = ("plan-rebalance", "-s", EXAMPLE, "-g", "order-svc", "--add", "1", "--fail-on", "moved>0")
    with OnTerminal(*arguments, env={"RMQLB_PAGER": keeping(kept)}) as terminal:
        assert terminal.end() == 3
    shown = "\n".join(terminal.lines)
    assert "placeholder-ids" in kept.read_text()
    assert "placeholder-ids" not in shown
    assert "condition met: moved>0" in shown


@pytest.mark.skipif(shutil.which("less") is None, reason="this machine has no less")
def test_less_is_the_pager_where_none_is_named() -> None:
    env = {"PATH": "/usr/bin:/bin", "LESSHISTFILE": "-"}
    with OnTerminal(*LONG, "-q", env=env, lines=20) as terminal:
        terminal.until(lambda: terminal.lines[-1] == ":")
        assert "order-svc, 3 consumers" in terminal.lines[0]
        terminal.press(b"G")
        terminal.until(lambda: terminal.lines[-1] == "(END)")
        assert LAST in terminal.lines[-2]
        terminal.press(b"q")
        assert terminal.end() == 0
    assert b"ESC" not in terminal.raw
