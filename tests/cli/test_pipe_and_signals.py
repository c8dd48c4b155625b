"""rmqlb between other programs: closed pipes, closed and full streams, interrupts, odd environments."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from rmqlb.cli.exit_codes import ExitCode
from rmqlb.views.formats.palette import encodable
from tests.cli.run import EXAMPLE, ROOT, command, environment, start
from tests.support.mismatches import every_case
from tests.support.replay_dashboard import Replay, dashboard, silent

PLAN = ("plan-rebalance", "-s", EXAMPLE, "-g", "order-svc", "--add", "1")
MANY = ("plan-rebalance", "-s", "-", "--topic", "T", "--consumers", "2000", "-o", "json")
WIDE_ROUTE = b'{"queueDatas":[{"brokerName":"a","readQueueNums":5000,"perm":6}],"brokerDatas":[]}'


def shell(line: str, **env: str) -> subprocess.CompletedProcess[str]:
    """A line of bash, with `rmqlb` in it."""
    words = " ".join(f'"{word}"' for word in map(os.fsdecode, command()))
    script = f'rmqlb() {{ {words} "$@"; }}\n{line}'
    return subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, cwd=ROOT, env=environment(env), timeout=60, check=False
    )


@every_case("fmt", ["json", "table"])
def test_a_reader_that_has_seen_enough_ends_it_quietly(fmt: str, tmp_path: Path) -> None:
    (tmp_path / "wide.json").write_bytes(WIDE_ROUTE)
    done = shell(
        f"rmqlb {' '.join(MANY[:2])} {tmp_path}/wide.json {' '.join(MANY[3:-1])} {fmt} -q | head -1; echo ${{PIPESTATUS[0]}}"
    )
    assert done.stderr == ""
    assert done.stdout.splitlines()[-1] == "0"


def test_rows_that_would_take_hours_end_with_their_reader() -> None:
    lines = f"simulate-send -s {EXAMPLE} --topic OrderEvents --messages 1000000000 -o jsonl"
    done = shell(f"rmqlb {lines} -q | head -1; echo ${{PIPESTATUS[0]}}")
    first, code = done.stdout.splitlines()
    assert (json.loads(first)["message"], code, done.stderr) == (1, "0", "")


@every_case("fmt", ["json", "jsonl"])
def test_what_one_command_fetches_the_next_one_plans_with(fmt: str) -> None:
    changes = "--group order-svc --remove-broker broker-b -o json"
    piped = shell(f"rmqlb fetch-routes -s {EXAMPLE} -o {fmt} | rmqlb plan-rebalance -s - {changes}")
    alone = shell(f"rmqlb plan-rebalance -s {EXAMPLE} {changes}")
    assert (piped.returncode, piped.stderr) == (0, "")
    assert json.loads(piped.stdout)["data"] == json.loads(alone.stdout)["data"]


def test_a_closed_stdin_is_an_unreadable_source() -> None:
    done = shell("rmqlb show-route -s - <&-")
    assert done.returncode == ExitCode.DATA
    assert done.stderr.startswith("error: cannot read stdin: ")


def test_a_closed_stdout_is_an_error_and_not_a_lost_result() -> None:
    done = shell(f"rmqlb {' '.join(PLAN)} >&-")
    assert (done.returncode, done.stderr) == (ExitCode.UNEXPECTED, "error: stdout is closed [output-lost]\n")


def test_a_closed_stderr_loses_only_what_is_said_there() -> None:
    done = shell(f"rmqlb {' '.join(PLAN)} -o json 2>&-")
    assert (done.returncode, done.stdout[:1]) == (0, "{")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no device that is always full")
@pytest.mark.parametrize("line", [f"{' '.join(PLAN)} -o json", f"{' '.join(PLAN)} -o table", "--version", "--help"])
def test_a_full_disk_is_told_whatever_was_to_be_shown(line: str) -> None:
    done = shell(f"rmqlb {line} > /dev/full")
    assert done.returncode == ExitCode.UNEXPECTED
    assert "the output's disk is full" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no device that is always full")
def test_nobody_who_hears_the_error_does_not_change_the_exit_code() -> None:
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


@pytest.mark.parametrize(
    "env", [{"LC_ALL": "C"}, {"HOME": "/nonexistent"}, {"TERM": "dumb"}, {"PYTHONIOENCODING": "ascii"}]
)
def test_odd_environments_change_nothing_but_letters(env: dict[str, str]) -> None:
    usual, odd = start(*PLAN, "-o", "plain"), start(*PLAN, "-o", "plain", env=env)
    assert odd.code == 0
    assert odd.stdout in (usual.stdout, encodable(usual.stdout, "ascii"))


@pytest.mark.parametrize(
    ("option", "env", "coloured"),
    [
        (None, {"FORCE_COLOR": "1"}, True),
        (None, {"FORCE_COLOR": "1", "TERM": "dumb"}, True),
        (None, {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        (None, {"RMQLB_COLOR": "always", "NO_COLOR": "1"}, True),
        ("always", {}, True),
        ("always", {"NO_COLOR": "1", "TERM": "dumb", "FORCE_COLOR": "0"}, True),
        ("never", {"FORCE_COLOR": "1", "RMQLB_COLOR": "always"}, False),
        ("auto", {"FORCE_COLOR": "1", "RMQLB_COLOR": "never"}, True),
    ],
)
def test_the_option_decides_on_colour_before_the_environment(
    option: str | None, env: dict[str, str], coloured: bool
) -> None:
    said = () if option is None else ("--color", option)
    assert ("\x1b[" in start(*PLAN, "-o", "table", *said, env=env).stdout) == coloured


def test_python_m_rmqlb_and_the_version() -> None:
    from rmqlb import __version__

    assert start("--version") == (f"rmqlb {__version__}\n", "", 0)
