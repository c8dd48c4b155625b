import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from rmqlb import __version__
from rmqlb.cli.error_boundary import heard_interrupts
from rmqlb.cli.exit_codes import ExitCode
from rmqlb.views.formats.palette import encodable
from tests.cli.run import EXAMPLE, ROOT, command, environment, start
from tests.support.mismatches import every_case
from tests.support.replay_dashboard import Replay, dashboard, silent

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
