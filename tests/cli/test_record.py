import json
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

from rmqlb.cli.exit_codes import ExitCode
from tests.support.moving_group import GROUP, Moment, moving
from tests.support.replay_remoting import refusing_address
from tests.support.schemas import must_fit

from .run import RECORDING, command, environment, error_of, run

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
        assert group.looks == 5  # the last confirms what the fourth shows
    assert (ran.code, ran.stderr) == (0, "")
    document = json.loads(ran.stdout)
    must_fit(document)
    data = document["data"]
    assert (data["ended"], data["convergedBy"], data["strategy"]) == ("converged", "prediction", "AVG")
    assert (data["figures"]["changed"], data["figures"]["moved"], data["samples"]) == (8, 8, 5)
    moved = [queue for queue in data["queues"] if queue["changes"]]
    assert {queue["brokerName"] for queue in moved} == {"broker-b"}
    for queue in moved:
        assert [(each["change"], each["clientId"]) for each in queue["changes"]] == [("lost", X), ("gained", Y)]
        assert 1900 < queue["changes"][0]["fromMs"] < 3000 < queue["changes"][0]["toMs"] < 6000


def test_json_lines_come_as_the_changes_do() -> None:
    with moving(ALONE, Moment({X: "a0-7", Y: ""}), SHARED) as group:
        line = command("record", *group.source, *UNTIL, "-o", "jsonl")
        with subprocess.Popen(line, stdout=subprocess.PIPE, env=environment(), text=True) as process:
            assert process.stdout is not None
            first = [json.loads(process.stdout.readline()) for _ in range(16)]
            assert {line["change"] for line in first} == {"owners"}
            assert group.looks < 3  # the others have not been asked for yet
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
            while group.looks < 3 and time.monotonic() < until:
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
        assert group.looks == json.loads(ran.stdout)["data"]["samples"] <= 4
        asked = [request.code for server in group.servers for request in server.requests].count(307)
        assert asked == 2 * group.looks
    with moving(ALONE, SHARED) as group:
        ran = run("record", *group.source, "-g", GROUP, "--every", "1m", "--for", "1500ms", "-o", "json")
    data = json.loads(ran.stdout)["data"]
    assert (data["samples"], data["figures"]["changed"], data["ended"]) == (2, 8, "time")


def test_a_recording_is_shown_again_as_it_was() -> None:
    text = Path(RECORDING).read_text()
    assert run("record", "--replay", RECORDING, "-o", "json").stdout == text
    assert run("record", "--replay", "-", "-o", "json", stdin=text).stdout == text
