import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from rmqlb import __version__
from rmqlb.cli.common.terminal import Progress, StatusLine
from rmqlb.cli.error_boundary import heard_interrupts
from rmqlb.cli.exit_codes import ExitCode
from rmqlb.views.formats.palette import encodable
from rmqlb.views.formats.text import width
from tests.cli.run import EXAMPLE, ROOT, command, environment, run, start
from tests.cli.terminals import OnTerminal
from tests.support.mismatches import every_case
from tests.support.replay_dashboard import Replay, dashboard, silent
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
    status = StatusLine()
    with Progress("live", "planning", status), Progress("live", "reading", status) as progress:
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


PLAN = ("plan-rebalance", "-s", EXAMPLE, "-g", "order-svc", "--add", "1")
WIDE = "plan-rebalance -s wide.json --topic T --add 0 --consumers 2000"
WIDE_ROUTE = b'{"queueDatas":[{"brokerName":"a","readQueueNums":5000,"perm":6}],"brokerDatas":[]}'


def shell(line: str, **env: str) -> subprocess.CompletedProcess[str]:
    words = " ".join(f'"{word}"' for word in map(os.fsdecode, command()))
    script = f'rmqlb() {{ {words} "$@"; }}\n{line}'
    return subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, cwd=ROOT, env=environment(env), timeout=60, check=False
    )


MANY_ROWS = f"simulate-send -s {EXAMPLE} --topic OrderEvents --messages 1000000000 -o jsonl"
"""Would take hours."""


@every_case("line", [f"{WIDE} -o json", f"{WIDE} -o table", MANY_ROWS])
def test_a_command_ends_quietly_with_its_reader(line: str, tmp_path: Path) -> None:
    (tmp_path / "wide.json").write_bytes(WIDE_ROUTE)
    line = line.replace("wide.json", f"{tmp_path}/wide.json")
    done = shell(f"rmqlb {line} -q | head -1; echo ${{PIPESTATUS[0]}}")
    first, code = done.stdout.splitlines()
    assert (bool(first), code, done.stderr) == (True, "0", "")


def test_a_closed_stream_loses_only_what_goes_there() -> None:
    done = shell("rmqlb show-route -s - <&-")
    assert (done.returncode, done.stderr[:26]) == (ExitCode.DATA, "error: cannot read stdin: ")
    done = shell(f"rmqlb {' '.join(PLAN)} >&-")
    assert (done.returncode, done.stderr) == (ExitCode.UNEXPECTED, "error: stdout is closed [output-lost]\n")
    done = shell(f"rmqlb {' '.join(PLAN)} -o json 2>&-")
    assert (done.returncode, done.stdout[:1]) == (0, "{")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no device that is always full")
def test_a_full_disk_is_an_error_of_every_output() -> None:
    for line in (f"{' '.join(PLAN)} -o json", f"{' '.join(PLAN)} -o table", "--version", "--help"):
        done = shell(f"rmqlb {line} > /dev/full")
        assert done.returncode == ExitCode.UNEXPECTED
        assert ("the output's disk is full" in done.stderr, "Traceback" in done.stderr) == (True, False)
    for stderr in ("2>/dev/full", "2>&-"):
        assert shell(f"rmqlb show-route -s /nonexistent {stderr}").returncode == ExitCode.DATA


def test_an_interrupt_ends_it_at_once_with_130() -> None:
    with dashboard(Replay(faults={"*": silent})) as replay:
        line = command("show-route", "-s", replay.url, "--topic", "T", "--source-timeout", "60s")
        with subprocess.Popen(
            line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT, env=environment()
        ) as child:
            while not replay.asked:
                assert child.poll() is None
            child.send_signal(signal.SIGINT)
            out, err = child.communicate(timeout=30)
    assert (child.returncode, out) == (ExitCode.INTERRUPTED, b"")
    assert b"Traceback" not in err


def interrupted_at_its_end(error: BaseException) -> Iterator[None]:
    try:
        yield
    finally:
        raise error


def leave_one_behind() -> None:
    next(interrupted_at_its_end(KeyboardInterrupt()))  # nobody keeps it
    time.sleep(30)


def test_an_interrupt_of_a_generator_that_is_closed_is_raised_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(KeyboardInterrupt), heard_interrupts():
        leave_one_behind()
    others: list[str] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda dropped: others.append(str(dropped.exc_value)))
    with heard_interrupts():
        next(interrupted_at_its_end(ValueError("odd")))
    assert others == ["odd"]


@every_case("env", [{"LC_ALL": "C"}, {"HOME": "/nonexistent"}, {"TERM": "dumb"}, {"PYTHONIOENCODING": "ascii"}])
def test_odd_environments_change_nothing_but_letters(env: dict[str, str]) -> None:
    usual, odd = start(*PLAN, "-o", "plain"), start(*PLAN, "-o", "plain", env=env)
    assert odd.code == 0
    assert odd.stdout in (usual.stdout, encodable(usual.stdout, "ascii"))


@every_case(("option", "env", "coloured"), [
    ((), {"FORCE_COLOR": "1"}, True),
    ((), {"FORCE_COLOR": "1", "TERM": "dumb"}, True),
    ((), {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
    ((), {"RMQLB_COLOR": "always", "NO_COLOR": "1"}, True),
    (("--color", "always"), {}, True),
    (("--color", "always"), {"NO_COLOR": "1", "TERM": "dumb", "FORCE_COLOR": "0"}, True),
    (("--color", "never"), {"FORCE_COLOR": "1", "RMQLB_COLOR": "always"}, False),
    (("--color", "auto"), {"FORCE_COLOR": "1", "RMQLB_COLOR": "never"}, True),
])  # fmt: skip
def test_the_option_goes_before_the_environment(option: tuple[str, ...], env: dict[str, str], coloured: bool) -> None:
    assert ("\x1b[" in start(*PLAN, "-o", "table", *option, env=env).stdout) == coloured


def test_python_m_rmqlb_and_the_version() -> None:
    assert start("--version") == (f"rmqlb {__version__}\n", "", 0)
