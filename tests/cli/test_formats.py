"""What holds for every command and format: one meaning, equal bytes, nothing cut in a pipe, a line for each row."""

import csv
import io
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from rmqlb.views.report import FORMATS
from tests.support.builders import snapshot_text
from tests.support.mismatches import every_case

from .run import EXAMPLE, ROOT, SKEWED, command, data_of, environment, run

OWNERS = ("show-owners", "-s", EXAMPLE, "-g", "order-svc")
PLAN = ("plan-rebalance", "-s", EXAMPLE, "-g", "order-svc", "--add", "192.0.2.2@inst3")


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


@every_case("line", [("show-route", "-s", EXAMPLE), OWNERS, (*PLAN, "--explain")], ids=lambda line: line[0])
def test_every_format_is_the_same_result_each_time(line: tuple[str, ...]) -> None:
    shown = {fmt: run(*line, "-o", fmt) for fmt in FORMATS}
    assert {fmt: run(*line, "-o", fmt) for fmt in FORMATS} == shown
    value = json.loads(shown["json"].stdout)
    assert yaml.safe_load(shown["yaml"].stdout) == value
    assert list(value) == ["schema", "formatVersion", "command", "source", "data", "findings"]
    assert (value["command"], shown["json"].stderr, shown["yaml"].stderr) == (line[0], "", "")
    rows = rows_of(shown["csv"].stdout)
    assert rows
    assert all("brokerName" in row and None not in row and None not in row.values() for row in rows)


@every_case("fmt", ["table", "plain", "markdown"])
def test_nothing_is_cut_or_wrapped_in_a_pipe(fmt: str) -> None:
    long = "10.0.0.1@" + "1234567890" * 15
    shown = run(
        "plan-rebalance", "-s", "-", "--add", "0", "-o", fmt, stdin=snapshot_text("T", number=3, clientIds=[long])
    ).stdout
    assert long in shown


def cells(shown: str) -> list[list[str]]:
    """The words of each line but for the rules below the titles."""
    return [words for line in shown.splitlines() if (words := line.replace("─", "-").replace("-", " ").split())]


@every_case("line", ["plan-rebalance -g order-svc --scale-to 4", "show-owners -g bill-svc", "check"])
@every_case("more", [(), ("--all",)])
def test_a_pipe_gets_the_tables_of_the_screen_with_colour_if_asked(line: str, more: tuple[str, ...]) -> None:
    words = [*line.split(), "-s", EXAMPLE]
    screen = run(*words, *more, "-o", "table", "-q", env={"COLUMNS": "1000"}).stdout
    piped = run(*words, *more, "-q", env={"COLUMNS": "40"}).stdout
    assert cells(piped) == cells(screen)
    coloured = run(*words, *more, "-q", "--color", "always", env={"COLUMNS": "40"}).stdout
    assert "\x1b[" in coloured
    assert cells(re.sub(r"\x1b\[[0-9;]*m", "", coloured)) == cells(piped)


def test_a_narrow_table_names_consumers_by_number_and_explains_the_numbers() -> None:
    ids = [f"192.168.100.{i}@12345#98765432101234{i}" for i in range(3)]
    line = ("plan-rebalance", "-s", "-", "-o", "table", "--add", "1", "--all")
    shown = run(*line, env={"COLUMNS": "60"}, stdin=snapshot_text("T", number=300, clientIds=ids)).stdout
    assert re.search(r"a +299 +#2 +#3 +~ moved", shown)
    assert all(f"#{index}  {client_id}" in shown for index, client_id in enumerate(ids))


def lines(*arguments: str) -> list[dict[str, Any]]:
    done = run(*arguments, "-o", "jsonl", "-q")
    assert done.code == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_json_lines_are_the_rows_of_the_json() -> None:
    assert lines(*OWNERS, "--explain") == data_of(*OWNERS, "--explain")["queues"]
    assert lines("show-route", "-s", EXAMPLE) == data_of("show-route", "-s", EXAMPLE)["topics"]
    queues = [{"topic": topic["topic"], **queue} for topic in data_of(*PLAN)["topics"] for queue in topic["queues"]]
    assert lines(*PLAN) == queues
    assert lines(*PLAN, "--changed") == [queue for queue in queues if queue["change"] != "same"]


def test_a_snapshot_has_a_line_for_the_whole_and_for_each_topic_and_group() -> None:
    parts, whole = lines("fetch-routes", "-s", EXAMPLE), data_of("fetch-routes", "-s", EXAMPLE)
    assert [part["schema"] for part in parts] == ["rmqlb/snapshot"] * 6
    assert [topic for part in parts for topic in part["data"]["topics"]] == whole["topics"]
    assert [group for part in parts for group in part["data"]["groups"]] == whole["groups"]
    assert all(len(part["data"]["topics"]) + len(part["data"]["groups"]) == 1 for part in parts[1:])
    piped = run("fetch-routes", "-s", EXAMPLE, "-o", "jsonl").stdout
    for group in ("order-svc", "bill-svc", "audit-svc"):
        plan = ("plan-rebalance", "-g", group, "--remove-broker", "broker-b", "-o", "csv", "-s")
        assert run(*plan, "-", stdin=piped) == run(*plan, EXAMPLE)


SEND = ("simulate-send", "-s", EXAMPLE, "--topic", "OrderEvents")


@every_case("args", [
    ("--fail", "broker-*@#3-#5", "--send-retries", "1", "--messages", "6"),
    ("--fail", "broker-*:read-only", "--set", "route-poll=1s", "--rate", "1", "--messages", "4"),
    ("--fail", "broker-a", "--mode", "async", "--rate", "10", "--send-retries", "0", "--messages", "40"),
    ("--fail", "broker-a", "--mode", "oneway", "--rate", "10", "--messages", "20"),
])  # fmt: skip
def test_traced_jsonl_says_what_the_application_gets_as_json_does(args: tuple[str, ...]) -> None:
    whole = data_of(*SEND, *args, "--trace")
    lines = [json.loads(line) for line in run(*SEND, *args, "--trace", "-o", "jsonl", "-q").stdout.splitlines()]
    assert [line for line in lines if "reason" not in line] == whole["attempts"]
    assert [line for line in lines if "reason" in line] == whole["lostMessages"] != []
    for at, line in enumerate(lines):
        if "reason" in line:
            assert line["message"] not in [later["message"] for later in lines[at + 1 :]]


def peak(messages: int, folder: Path) -> int:
    send = ("simulate-send", "-s", EXAMPLE, "--topic", "Skewed", "--messages", str(messages), "-o", "jsonl", "-q")
    measured = [sys.executable, str(ROOT / "tests" / "hardening" / "measured.py"), str(folder / "kb"), *command(*send)]
    done = subprocess.run(measured, cwd=ROOT, env=environment(), capture_output=True, check=True)
    assert done.stdout.count(b"\n") == messages
    return int((folder / "kb").read_text())


def test_rows_are_written_as_they_come_and_not_kept(tmp_path: Path) -> None:
    assert peak(30_000, tmp_path) < peak(300, tmp_path) + 4_000


def test_explanations_have_one_shape_and_the_code_at_the_end_of_a_line_is_one() -> None:
    one, every = data_of("explain", "mismatch"), data_of("explain")
    assert one["explanations"][0] in every["explanations"]
    rows = rows_of(run("explain", "-o", "csv").stdout)
    assert [row["code"] for row in rows] == [entry["code"] for entry in every["explanations"]]
    assert list(rows[0]) == list(every["explanations"][0])
    said = run("plan-rebalance", "-s", SKEWED, "-t", "Skewed", "--consumers", "a,a", "--add", "0").stderr.splitlines()
    failed = run("show-route", "-s", EXAMPLE, "--topic", "Skewd").stderr.splitlines()[:1]
    codes = [line[line.rindex("[") :] for line in (*said, *failed) if line.endswith("]")]
    assert codes == ["[duplicate-client-id]", "[assumed-strategy]", "[topic-not-found]"]
    for code in codes:
        assert run("explain", code).stdout.splitlines()[1].startswith(f"  {code[1:-1]}, a")


@every_case(("typed", "meant"), [("yml", "yaml"), ("md", "markdown"), ("text", "plain"), ("YML", "yaml")])
def test_the_short_name_of_a_format_is_the_format(typed: str, meant: str) -> None:
    line = ("show-consumers", "-s", EXAMPLE, "-g", "order-svc")
    expected = run(*line, "-o", meant)
    assert expected.stdout
    assert run(*line, "-o", typed) == expected
    assert run(*line, env={"RMQLB_OUTPUT": typed}) == expected


def test_a_command_that_writes_few_formats_takes_their_short_names_too() -> None:
    line = ("fetch-routes", "-s", EXAMPLE, "-q")
    assert run(*line, "-o", "yml") == run(*line, "-o", "yaml")
    assert run(*line, env={"RMQLB_OUTPUT": "md"}) == run(*line, "-o", "json")
