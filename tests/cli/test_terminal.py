import os
import re
import shlex
import shutil
import socket
import sys
from pathlib import Path

import pytest

from rmqlb.cli.common.terminal import Progress
from rmqlb.views.formats.text import width
from tests.cli.run import EXAMPLE, run, start
from tests.cli.terminals import OnTerminal
from tests.support.mismatches import every_case
from tests.test_golden import BASIC

SHOW = ("show-route", "--topic", "Skewed")
LONG = ("show-owners", "-s", EXAMPLE, "-g", "order-svc", "--all")
SHORT = (*SHOW, "-s", EXAMPLE, "--section", "brokers")
LAST = "CONSISTENT_HASH"


@every_case("name", ["routes", "x" * 300, "\u8a02\u55ae" * 100, "\x1b" * 100])
def test_progress_is_one_line_that_fits_and_goes_away(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    with Progress("live") as progress:
        progress(name, 0, 12)
        progress(name, 9, 12)
    begun, first, second, blank, end = capfd.readouterr().err.removeprefix("\r").split("\r")
    assert (first[-9:], second.rstrip()[-10:]) == (": 1 of 12", ": 10 of 12")
    assert begun == "reading"
    assert first.startswith("reading ")
    assert width(second.rstrip()) == len(blank) <= width(second) <= 79
    assert (blank.strip(), end) == ("", "")
    with Progress("stages") as progress:
        progress(name, 0, 12)
    assert "\x1b" not in first + second + capfd.readouterr().err


def test_a_source_that_does_not_answer_is_shown_as_being_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with OnTerminal(*SHORT[:3], "-s", str(tmp_path / "fifo"), "--no-pager", columns=200) as terminal:
        terminal.until(lambda: terminal.lines == [f"reading {tmp_path}/fifo"])
        (tmp_path / "fifo").write_bytes(Path(EXAMPLE).read_bytes())
        assert terminal.end() == 0
    assert "reading" not in "\n".join(terminal.lines)
    with socket.create_server(("127.0.0.1", 0)) as server:
        where = f"rocketmq://127.0.0.1:{server.getsockname()[1]}"
        with OnTerminal(*SHOW, "-s", where, "--source-retries", "0") as terminal:
            caller, _ = server.accept()
            terminal.until(lambda: any(line.startswith("reading ") for line in terminal.lines))
            caller.close()
            assert terminal.end() == 5
    assert terminal.lines[0].startswith("error: ")


def test_the_line_of_work_makes_room_for_its_parts_and_comes_back(capfd: pytest.CaptureFixture[str]) -> None:
    with Progress("live", "planning") as around, Progress("live", "reading", around.open()) as progress:
        progress("a file", 0, 0)
    lines = [line.strip() for line in capfd.readouterr().err.split("\r")]
    assert [*filter(None, lines)] == ["planning", "reading", "reading a file", "planning"]
    assert lines[-1] == ""


def test_rows_in_a_file_leave_the_terminal_to_the_progress(tmp_path: Path) -> None:
    file = tmp_path / "attempts.jsonl"
    send = (
        "simulate-send", "-s", EXAMPLE, "-t", "OrderEvents", "--messages", "5", "--round-trip", "1ms", "-o", "jsonl",
    )  # fmt: skip
    with OnTerminal(*send, stdout=file) as terminal:
        assert terminal.end() == 0
    assert b"simulating messages: 1 of 5" in terminal.raw
    assert terminal.lines == [""]
    assert len(file.read_text().splitlines()) == 5
    with OnTerminal(*send, columns=1000) as terminal:
        assert terminal.end() == 0
    assert b"simulating" not in terminal.raw


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    return tmp_path / "paged.txt"


def keeping(kept: Path) -> str:
    """A pager that shows nothing and keeps everything."""
    code = f"import sys; open({str(kept)!r}, 'wb').write(sys.stdin.buffer.read())"
    return shlex.join([sys.executable, "-c", code])


def test_a_long_table_goes_through_the_pager_whole_and_in_colour(kept: Path) -> None:
    ours, common = {"RMQLB_PAGER": keeping(kept)}, {"PAGER": keeping(kept)}
    for env in (ours, common, {"PAGER": "false", **ours}):
        with OnTerminal(*LONG, "-q", env=env, lines=20) as terminal:
            assert terminal.end() == 0
            assert terminal.lines == [""]
        paged = kept.read_text()
        kept.unlink()
        assert LAST in paged.splitlines()[-1]
        assert "\x1b[1m" in paged


@every_case(
    ("arguments", "lines"), [(SHORT, 20), (LONG, 200), ((*LONG, "--no-pager"), 20), ((*LONG, "-o", "json"), 20)]
)
def test_everything_else_is_shown_at_once(arguments: tuple[str, ...], lines: int, tmp_path: Path) -> None:
    with OnTerminal(*arguments, "-q", env={"RMQLB_PAGER": keeping(tmp_path / "kept")}, lines=lines) as terminal:
        assert terminal.end() == 0
    assert terminal.raw
    assert not (tmp_path / "kept").exists()


def test_nothing_is_paged_in_a_pipe_and_findings_and_the_exit_code_come_after_the_pager(kept: Path) -> None:
    done = start(*LONG, "-o", "table", env={"RMQLB_PAGER": keeping(kept), "LINES": "3"})
    assert (done.code, kept.exists(), LAST in done.stdout) == (0, False, True)
    for none in ("", "cat", "no-such-program --wide"):
        with OnTerminal(*LONG, "-q", env={"RMQLB_PAGER": none}, lines=20) as terminal:
            assert terminal.end() == 0
        assert LAST in terminal.lines[-1]
    arguments = ("plan-rebalance", "-s", EXAMPLE, "-g", "order-svc", "--add", "1", "--fail-on", "moved>0")
    with OnTerminal(*arguments, env={"RMQLB_PAGER": keeping(kept)}) as terminal:
        assert terminal.end() == 3
    shown = "\n".join(terminal.lines)
    assert "placeholder-ids" in kept.read_text()
    assert ("placeholder-ids" in shown, "condition met: moved>0" in shown) == (False, True)


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


WIDTHS = (1, 3, 8, 20, 40)
MORE = ("context list", "config show", "schema show-groups", "explain unassigned-queues")
COMMANDS = [shlex.split(line) for line in (*BASIC.values(), *MORE)]


@every_case("arguments", COMMANDS, ids=lambda arguments: arguments[0])
def test_a_command_ends_at_every_narrow_width(arguments: list[str]) -> None:
    for columns in WIDTHS:
        ran = run(*arguments, "-o", "table", env={"COLUMNS": str(columns)})
        assert (ran.code, bool(ran.stdout)) == (3 if arguments[0] == "check" else 0, True), (columns, ran.stderr)
        if arguments[0] == "show-groups":  # with every group and its lag
            assert re.search(r"audit-svc\s.*0.*bill-svc\s.*0.*order-svc\s.*0", ran.stdout, re.DOTALL), columns


def test_columns_of_0_count_as_not_set() -> None:
    arguments = ("show-groups", "-s", EXAMPLE, "-o", "table")
    shown = {columns: run(*arguments, env={"COLUMNS": columns}).stdout for columns in ("0", "", "-5", "wide", "1000")}
    assert "order-svc" in shown["0"]
    assert len(set(shown.values())) == 1
    with OnTerminal(*arguments, "--no-pager", env={"COLUMNS": "0"}) as terminal:
        assert terminal.end() == 0
    assert any(re.search(r"✓ +order-svc +2 +3 +25 ", line) for line in terminal.lines)
