import json
import shlex
import signal
import subprocess
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

from rmqlb.cli.common.options import OutputOptions
from rmqlb.cli.common.terminal import SnapshotView, Terminal
from rmqlb.cli.common.watch import watch
from rmqlb.cli.exit_codes import ExitCode
from rmqlb.errors import DataError, EndpointError, RmqlbError
from rmqlb.model.result import Finding, TriedCondition
from rmqlb.model.snapshot import ClusterSnapshot
from rmqlb.views.report import Report, Rows
from tests.cli.run import EXAMPLE, RECORDING, command, environment, error_of, run
from tests.cli.terminals import CTRL_C, OnTerminal
from tests.cli.test_terminal import shell
from tests.support.builders import snapshot_text
from tests.support.mismatches import every_case, refusal
from tests.support.moving_group import GROUP, Moment, moving
from tests.support.replay_dashboard import Replay, dashboard
from tests.support.replay_remoting import refusing_address
from tests.support.schemas import must_fit

X, Y = "10.0.0.1@x", "10.0.0.2@y"
ALONE, SHARED = Moment({X: "a0-7 b0-7"}), Moment({X: "a0-7", Y: "b0-7"})
UNTIL = ("-g", GROUP, "--until", "converged", "--for", "20s")


def lines(text: str) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in text.splitlines()]
    for line in found:
        must_fit(line, "rmqlb/record-line")
    return found


def short(line: dict[str, Any]) -> str:
    """`+y b3 one`."""
    queue = "" if line["queueId"] is None else f" {line['brokerName'][-1]}{line['queueId']}"
    return f"{line['change']} {(line['clientId'] or '')[-1:]}{queue}".strip()


def test_it_ends_when_the_group_has_changed_and_is_as_its_strategy_predicts() -> None:
    with moving(ALONE, ALONE, Moment({X: "a0-7 b0-7", Y: ""}), SHARED) as group:
        ran = run("record", *group.source, *UNTIL, "-o", "json")
        assert len(group.begun_s) == 5  # the last confirms what the fourth shows
    assert (ran.code, ran.stderr) == (0, "")
    document = json.loads(ran.stdout)
    must_fit(document)
    data = document["data"]
    assert (data["ended"], data["convergedBy"], data["strategy"]) == ("converged", "prediction", "AVG")
    assert (data["figures"]["changed"], data["figures"]["moved"], data["samples"]) == (8, 8, 5)
    moved = [queue for queue in data["queues"] if queue["changes"]]
    assert {queue["brokerName"] for queue in moved} == {"broker-b"}
    begun_ms = [1000 * (each - group.begun_s[0]) for each in group.begun_s]
    for queue in moved:
        assert [(each["change"], each["clientId"]) for each in queue["changes"]] == [("lost", X), ("gained", Y)]
        assert 1900 < queue["changes"][0]["fromMs"] < begun_ms[3]
        assert 3000 < queue["changes"][0]["toMs"] < begun_ms[4]


def test_json_lines_come_as_the_changes_do() -> None:
    with moving(ALONE, Moment({X: "a0-7", Y: ""}), SHARED) as group:
        line = command("record", *group.source, *UNTIL, "-o", "jsonl")
        with subprocess.Popen(line, stdout=subprocess.PIPE, env=environment(), text=True) as process:
            assert process.stdout is not None
            first = [json.loads(process.stdout.readline()) for _ in range(16)]
            assert {line["change"] for line in first} == {"owners"}
            assert len(group.begun_s) < 3  # the others have not been asked for yet
            rest = process.stdout.read()
        assert process.returncode == 0
    found = lines(rest)
    told = [short(line) for line in found]
    assert told[:2] == ["joined y", "lost x b0"]
    assert told[-1] == "converged"
    assert found[-1]["reason"] == "as the strategy predicts"
    gap = next(line for line in found if short(line) == "lost x b0")
    assert (gap["state"], gap["owners"]) == ("unassigned", [])
    assert gap["notBefore"] < gap["notAfter"] == gap["at"]


def test_ctrl_c_ends_it_with_what_was_seen(tmp_path: Path) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        with moving(ALONE, SHARED) as group:
            process = subprocess.Popen(
                command("record", *group.source, "-g", GROUP, "-o", "json", "--svg", str(tmp_path / "p.svg")),
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(), text=True,
            )  # fmt: skip
            until = time.monotonic() + 60
            while len(group.begun_s) < 3 and time.monotonic() < until:
                time.sleep(0.05)
            process.send_signal(number)
            out, error = process.communicate(timeout=60)
        assert (process.returncode, error) == (0, f"written to {tmp_path / 'p.svg'}\n")
        data = json.loads(out)["data"]
        assert data["ended"] == "interrupted"
        assert data["figures"]["changed"] == 8
        assert "<svg" in (tmp_path / "p.svg").read_text()


def test_a_consumer_that_does_not_answer_and_a_cluster_that_is_away_are_unknown_not_lost() -> None:
    quiet, away = Moment({Y: "b0-7"}, silent=(X,)), Moment({X: "a0-7", Y: "b0-7"}, down=True)
    with moving(SHARED, quiet, away, SHARED) as group:
        ran = run("record", *group.source, "-g", GROUP, "--for", "5s", "--source-retries", "0", "-o", "jsonl")
    assert ran.code == 0
    told = [short(line) for line in lines(ran.stdout)][16:]
    assert told == ["silent x", "failed", "seen", "answers x", "ended"]


def test_a_frozen_consumer_does_not_hold_up_the_others_and_is_asked_ever_less_often() -> None:
    with moving(SHARED, Moment({Y: "b0-7"}, frozen=(X,))) as group:
        ran = run("record", *group.source, "-g", GROUP, "--for", "7s", "-o", "json")
        asked = [
            request.ext_fields["clientId"]
            for server in group.servers
            for request in server.requests
            if request.code == 307
        ]
    data = json.loads(ran.stdout)["data"]
    assert asked.count(Y) == data["samples"] >= 4
    assert asked.count(X) <= 3  # at once, and after 2 s and 4 s
    assert {queue["ownersAfter"] is None for queue in data["queues"] if queue["brokerName"] == "broker-a"} == {True}
    assert data["figures"]["changed"] == 0


def test_the_first_look_has_to_show_something() -> None:
    with refusing_address() as address:
        ran = run("record", "-s", f"rocketmq://{address}", "-g", "g", "--source-retries", "0")
    assert (ran.code, ran.stdout) == (ExitCode.ENDPOINT, "")
    error_of(ran.stderr)
    with moving(ALONE) as group:
        ran = run("record", *group.source, "-g", "order-sv", "--for", "2s")
    assert ran.code == ExitCode.DATA
    assert error_of(ran.stderr).code == "group-not-found"


def test_looks_are_a_second_apart_at_least_and_the_last_is_at_the_end() -> None:
    with moving(SHARED) as group:
        ran = run("record", *group.source, "-g", GROUP, "--for", "3500ms", "-o", "json")
        assert len(group.begun_s) == json.loads(ran.stdout)["data"]["samples"] <= 4
        asked = [request.code for server in group.servers for request in server.requests].count(307)
        assert asked == 2 * len(group.begun_s)
    with moving(ALONE, SHARED) as group:
        ran = run("record", *group.source, "-g", GROUP, "--every", "1m", "--for", "1500ms", "-o", "json")
    data = json.loads(ran.stdout)["data"]
    assert (data["samples"], data["figures"]["changed"], data["ended"]) == (2, 8, "time")


def test_a_recording_is_shown_again_as_it_was() -> None:
    text = Path(RECORDING).read_text()
    assert run("record", "--replay", RECORDING, "-o", "json").stdout == text
    assert run("record", "--replay", "-", "-o", "json", stdin=text).stdout == text


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
    refusal(EndpointError, watched, GONE, seen(("a", 1)))
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
