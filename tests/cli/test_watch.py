import json
import shlex
import signal
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

from rmqlb.cli.common.options import OutputOptions
from rmqlb.cli.common.terminal import SnapshotView, Terminal
from rmqlb.cli.common.watch import watch
from rmqlb.errors import DataError, EndpointError, RmqlbError
from rmqlb.model.result import Finding, TriedCondition
from rmqlb.model.snapshot import ClusterSnapshot
from rmqlb.views.report import Report, Rows
from tests.cli.run import EXAMPLE, command, run
from tests.cli.terminals import CTRL_C, OnTerminal
from tests.cli.test_pipe_and_signals import shell
from tests.support.builders import snapshot_text
from tests.support.mismatches import every_case
from tests.support.replay_dashboard import Replay, dashboard
from tests.support.schemas import must_fit

GONE = EndpointError("mq1:9876 is gone", hint="is it up?")
ENTER, LEAVE = b"\x1b[?1049h\x1b[?25l", b"\x1b[?25h\x1b[?1049l"
QUICK = ("--watch", "--every", "100ms")


class Number(Struct, frozen=True):
    number: int


def seen(*rows: tuple[str, int], findings: tuple[Finding, ...] = (), met: bool = False) -> SnapshotView:
    items = [({"name": name}, Number(number)) for name, number in rows]
    report = Report("rmqlb/x", {}, (), (), {}, Rows(("name",), items))
    return SnapshotView(report, ClusterSnapshot("dump", "x"), findings, (TriedCondition("n>0", 1, met),))


def watched(*looks: SnapshotView | RmqlbError, rounds: int | None = None) -> SnapshotView:
    """Watch these, one after another; the clock counts the looks and the waits between them."""
    coming = iter(looks)
    ticks = count(1)

    def look() -> SnapshotView:
        found = next(coming)
        if isinstance(found, RmqlbError):
            raise found
        return found

    terminal = Terminal("x", OutputOptions(output="jsonl"), more_formats=("jsonl",))
    return watch(look, terminal, 5, rounds or len(looks), wait=lambda _: None, clock=lambda: f"t{next(ticks)}")


def changes(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    for line in lines:
        must_fit(line, "rmqlb/change")
    return lines


def brief(lines: list[dict[str, Any]]) -> list[tuple[object, ...]]:
    return [(line["at"], line["change"], *((line["row"] or line["was"] or {}).values())) for line in lines]


def test_the_first_look_tells_all_rows_and_each_other_what_has_changed(capsys: pytest.CaptureFixture[str]) -> None:
    watched(seen(("a", 1), ("b", 1)), seen(("a", 1), ("b", 1)), seen(("b", 2), ("c", 1)))
    lines = changes(capsys)
    assert brief(lines) == [
        ("t1", "first", "a", 1),
        ("t1", "first", "b", 1),
        ("t3", "changed", "b", 2),
        ("t3", "added", "c", 1),
        ("t3", "removed", "a", 1),
    ]
    assert lines[2]["was"] == {"name": "b", "number": 1}
    assert lines[4]["row"] is None
    assert all(list(line) == ["at", "change", "row", "was", "error"] for line in lines)


def test_a_look_that_fails_is_stale_until_the_next_that_does_not(capsys: pytest.CaptureFixture[str]) -> None:
    watched(seen(("a", 1)), GONE, GONE, DataError("no group"), seen(("a", 1)), seen(("a", 2)))
    lines = changes(capsys)
    assert brief(lines) == [
        ("t1", "first", "a", 1),
        ("t2", "stale"),
        ("t4", "stale"),
        ("t5", "fresh"),
        ("t6", "changed", "a", 2),
    ]
    assert lines[1]["error"] == {"code": "endpoint", "message": "mq1:9876 is gone", "hint": "is it up?", "exitCode": 5}
    assert lines[2]["error"] == {"code": "data", "message": "no group", "hint": None, "exitCode": 4}
    assert lines[3]["error"] is None


def test_an_error_of_the_first_look_and_a_met_condition_end_it(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(EndpointError):
        watched(GONE, seen(("a", 1)))
    assert capsys.readouterr().out == ""
    last = watched(seen(("a", 1)), seen(("a", 2), met=True), seen(("a", 3)))
    assert last.tried[0].met
    assert [line["row"]["number"] for line in changes(capsys)] == [1, 2]


LINES = ("show-route --topic Skewed", "show-owners -g bill-svc", "plan-rebalance -g bill-svc --add 192.0.2.2@inst9")


@every_case("line", LINES)
def test_in_a_pipe_the_rows_of_a_look_are_those_of_json_lines(line: str) -> None:
    arguments = [*line.split(), "-s", EXAMPLE]
    once, watching = run(*arguments, "-o", "jsonl"), run(*arguments, "--watch", "--every", "1h", "--samples", "1")
    assert (once.code, watching.code, once.stderr) == (0, 0, watching.stderr)
    rows = [json.loads(row) for row in once.stdout.splitlines()]
    assert rows == [json.loads(each)["row"] for each in watching.stdout.splitlines()]
    as_json = run(*arguments, "--watch", "--every", "1h", "--samples", "1", env={"RMQLB_OUTPUT": "json"})
    assert as_json.stdout.count("\n") == len(rows)


def test_a_reader_that_has_seen_enough_ends_it_quietly() -> None:
    done = shell(f"rmqlb show-route -s {EXAMPLE} --watch --every 1h -q | head -1; echo ${{PIPESTATUS[0]}}")
    assert (done.stdout.splitlines()[-1], done.stderr) == ("0", "")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    file = tmp_path / "source.json"
    file.write_text(snapshot_text("T", number=3, clientIds=["first-one"]))
    return file


def replaced(file: Path, text: str) -> None:
    """Whole or not at all, as a program that is read meanwhile must write."""
    part = file.with_suffix(".part")
    part.write_text(text)
    part.replace(file)


def watching(source: Path, *more: str) -> OnTerminal:
    return OnTerminal("show-owners", "-s", str(source), "--strategy", "AVG", "--section", "queues", *QUICK, *more)


def shows(terminal: OnTerminal, *texts: str, without: str = "\0") -> Callable[[], bool]:
    return lambda: all(text in "\n".join(terminal.lines) for text in texts) and without not in "\n".join(terminal.lines)


def test_on_a_terminal_the_screen_is_redrawn_and_put_back(source: Path) -> None:
    with watching(source) as terminal:
        terminal.until(shows(terminal, "first-one", "every 0.1s"))
        replaced(source, "{")
        terminal.until(shows(terminal, "STALE: not read at ", "first-one"))
        replaced(source, snapshot_text("T", number=3, clientIds=["other"]))
        terminal.until(shows(terminal, "other", without="STALE"))
        assert "first-one" not in "\n".join(terminal.lines)
        assert terminal.lines[0].endswith("Z, every 0.1s; Ctrl-C ends")
        terminal.press(CTRL_C)
        assert terminal.end() == 130
    assert ENTER in terminal.raw
    assert terminal.raw.rstrip().endswith(LEAVE)
    assert b"Traceback" not in terminal.raw
    with watching(source) as terminal:
        terminal.until(shows(terminal, "other"))
        terminal.signal(signal.SIGTERM)
        assert terminal.end() == 128 + signal.SIGTERM
    assert terminal.raw.endswith(LEAVE)


def test_a_terminal_of_another_size_is_drawn_anew_at_once() -> None:
    tables = ("--section", "queues", "--section", "summary", "--watch", "--every", "1h")
    with OnTerminal("show-owners", "-s", EXAMPLE, "-g", "order-svc", *tables, columns=120) as terminal:
        terminal.until(shows(terminal, "observed owner", "more lines"))
        terminal.resize(columns=70, lines=18)
        terminal.until(shows(terminal, "#0", "more lines", without="192.0.2.2@inst0"))
        assert len(terminal.lines) == 18
        terminal.resize(columns=120, lines=100)
        terminal.until(shows(terminal, "mismatches", "192.0.2.2@inst0", without="more lines"))
        terminal.press(CTRL_C)
        assert terminal.end() == 130


def test_while_it_is_stopped_the_first_screen_is_back() -> None:
    with OnTerminal(program=("/bin/bash", "--norc", "--noprofile", "-i"), env={"PS1": "ready> "}) as terminal:
        terminal.until(shows(terminal, "ready>"))
        line = [*map(str, command("show-route", "-s", EXAMPLE, "--topic", "Skewed", "--watch", "--every", "1h"))]
        terminal.press(shlex.join(line).encode() + b"\n")
        terminal.until(shows(terminal, "every 3600s"))
        terminal.press(b"\x1a")
        terminal.until(shows(terminal, "Stopped"))
        assert terminal.raw.count(ENTER) == terminal.raw.count(LEAVE) == 1
        terminal.press(b"fg\n")
        terminal.until(lambda: terminal.raw.count(b"every 3600s") == 2)
        assert terminal.raw.count(ENTER) == 2
        terminal.press(CTRL_C)
        terminal.until(lambda: terminal.raw.count(LEAVE) == 2)


def test_a_dumb_terminal_gets_no_escapes() -> None:
    with OnTerminal("show-route", "-s", EXAMPLE, *QUICK, "--samples", "2", env={"TERM": "dumb"}) as terminal:
        assert terminal.end() == 0
    assert b"\x1b" not in terminal.raw
    assert terminal.raw.count(b"Ctrl-C ends") == 2


def test_a_password_is_asked_for_once() -> None:
    with dashboard(Replay(login=("admin", "open sesame"))) as replay:
        line = ("show-route", "-s", replay.url, "--topic", "Skewed", "--user", "admin", *QUICK, "--samples", "3")
        with OnTerminal(*line) as terminal:
            terminal.until(shows(terminal, "Password for admin:"))
            terminal.press(b"open sesame\n")
            assert terminal.end() == 0
    assert terminal.raw.count(b"Password") == 1
    assert b"sesame" not in terminal.raw
    assert sum("csrf" in asked for asked in replay.asked) == 3
