from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from rmqlb.cli.exit_codes import ExitCode
from tests.cli.run import EXAMPLE, Failed, error_of, run
from tests.support.mismatches import every_case

CODE = """\
print("loaded")
half = lambda group, client_id, queues, client_ids: queues[client_ids.index(client_id) :: 2 * len(client_ids)]
throws = lambda group, client_id, queues, client_ids: queues[len(queues)]
nothing = lambda group, client_id, queues, client_ids: None
by_key = lambda queues, key: queues[int(key) % len(queues)]
none = lambda queues, key: None
number = lambda queues, key: 5
one = lambda group: []
SOMETHING = 5

def circle(group, client_id, queues, client_ids):
    print("asked", group)
    return queues[client_ids.index(client_id) :: len(client_ids)]

def generates(group, client_id, queues, client_ids):
    yield from queues

def javas(queues, key):
    if key < 0:
        raise IndexError(key)
    return queues[key % len(queues)]

def refuses(queues, key):
    raise LookupError("no queue\\x1b[31m for " + str(key)) if key == 3 else TypeError
"""
ON = ("-s", EXAMPLE, "-g", "bill-svc")
SEND = ("simulate-send", "-s", EXAMPLE, "--topic", "OrderEvents", "--latency", "1ms")


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "my-rules.py"
    path.write_text(CODE, encoding="utf-8")
    return str(path)


def test_its_results_have_its_name_and_stdout_has_the_result_alone(file: str) -> None:
    ran = run("show-owners", *ON, "--strategy", f"{file}:circle", "--strategy", "AVG_BY_CIRCLE", "-o", "json")
    assert ran.stderr.startswith("loaded\nasked bill-svc\n")
    ours, javas = json.loads(ran.stdout)["data"]["strategies"]
    assert (ours.pop("strategy"), javas.pop("strategy"), ours) == ("circle (my-rules.py)", "AVG_BY_CIRCLE", javas)
    ran = run("plan-rebalance", *ON, "--strategy", f"{file}:circle", "--to-strategy", f"{file}:half", "-o", "json")
    data = json.loads(ran.stdout)["data"]
    assert (data["strategy"], data["strategyAfter"]) == ("circle (my-rules.py)", "half (my-rules.py)")
    assert data["summary"]["newlyUnassigned"] == 4
    findings = {each["code"]: each["message"] for each in json.loads(ran.stdout)["findings"]}
    assert findings["custom-unassigned"].startswith("strategy half (my-rules.py) leaves 4 queues (first broker-a:4 of")
    assert "custom-order" in findings


@every_case(
    "words",
    [
        "simulate-rebalance --strategy AVG --event 'strategy-change {file}:half@5s, every 5s, down 2s'",
        "simulate-rebalance --strategy {file}:circle --event 'join x@5s, strategy {file}:half'",
        "plan-rollout --to-strategy {file}:half --pause 5s --trials 2",
        "show-owners --strategy PIN --strategy-option host=192.0.2.2 --strategy-option inner={file}:half",
        "show-owners --strategy pin-{file}:half --strategy-option host=192.0.2.2",
    ],
)
def test_it_is_taken_wherever_a_strategy_is(words: str, file: str) -> None:
    ran = run(*shlex.split(words.format(file=file)), *ON, "-o", "json")
    assert ran.code == ExitCode.OK, ran.stderr
    assert "strategy half (my-rules.py) leaves 4 queues" in ran.stdout


def failed(*args: str) -> Failed:
    ran = run(*args, "-q")
    assert ran.stdout == ""
    return error_of(
        "".join(line for line in ran.stderr.splitlines(keepends=True) if not line.startswith(("loaded", "asked")))
    )


def test_what_it_raises_or_returns_wrongly_is_a_line_and_the_trace_is_kept(file: str) -> None:
    throws = failed("show-owners", *ON, "--strategy", f"{file}:throws")
    assert throws == Failed(
        "topic Skewed: IndexError: list index out of range (my-rules.py:3)",
        "custom-raised",
        "real clients would log this and keep their queues; --debug shows where it comes from",
    )
    for line in (("show-owners", *ON), ("plan-rebalance", *ON, "--add", "1"), ("size-group", *ON)):
        assert run(*line, "--strategy", f"{file}:throws").code == ExitCode.UNEXPECTED, line
    nothing = failed("show-owners", *ON, "--strategy", f"{file}:nothing")
    assert (nothing.message, nothing.code) == ("strategy nothing (my-rules.py) returned None", "custom-answer")
    assert "Traceback" not in run("show-owners", *ON, "--strategy", f"{file}:throws").stderr
    traced = run("show-owners", *ON, "--strategy", f"{file}:throws", "--debug").stderr
    assert f'File "{file}", line 3, in <lambda>' in traced


def test_a_selector_of_ones_own_picks_the_queues(file: str, tmp_path: Path) -> None:
    ran = run(*SEND, "--selector", f"{file}:by_key", "--messages", "32", "-o", "json")
    data = json.loads(ran.stdout)["data"]
    assert data["scenario"]["selector"] == "by_key (my-rules.py)"
    assert [queue["stored"] for queue in data["queues"]] == [2] * 16
    keys = tmp_path / "keys"
    keys.write_text("16\n16\n3\n", encoding="utf-8")
    by_key = ("--selector", f"{file}:by_key", "--keys", str(keys), "--key-type", "long")
    keyed = json.loads(run(*SEND, *by_key, "-o", "json").stdout)["data"]
    assert [(hot["key"], hot["queueId"]) for hot in keyed["keys"]["hottest"]] == [("16", 0), ("3", 3)]
    assert [attempt["queueId"] for attempt in keyed["attempts"]] == [0, 0, 3]


def test_a_selector_that_throws_or_returns_null_loses_the_message_without_a_retry(file: str, tmp_path: Path) -> None:
    def sent(*args: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(run(*SEND, *args, "-o", "json").stdout)["data"]
        return found

    lost = sent("--selector", f"{file}:none", "--messages", "5")["totals"]
    assert (lost["lost"], lost["attempts"], lost["lostBy"]) == (5, 0, {"select message queue return null": 5})
    keys = tmp_path / "keys"
    keys.write_text("-1\n1\n", encoding="utf-8")
    args = ("--selector", f"{file}:javas", "--keys", str(keys), "--key-type", "int")
    half = sent(*args, "--messages", "10")
    assert (half["totals"]["lost"], half["totals"]["stored"], half["totals"]["retried"]) == (5, 5, 0)
    assert half["totals"]["lostBy"] == {"select message queue threw exception": 5}
    assert [(hot["key"], hot["queueId"]) for hot in half["keys"]["hottest"]] == [("-1", None), ("1", 1)]
    throws = "throws for 1 of 2 messages, which are lost without a retry; the first: IndexError: -1 "
    assert f"selector javas (my-rules.py) {throws}" in run(*SEND, *args).stderr
    raised = run(*SEND, "--selector", f"{file}:refuses", "--messages", "3").stderr
    assert "the first: TypeError (my-rules.py:24)" in raised
    assert "\x1b" not in raised
