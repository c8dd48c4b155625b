from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.cli.run import EXAMPLE, ROOT, command, data_of, environment, run
from tests.support.mismatches import every_case

OWNERS = ("show-owners", "-s", EXAMPLE, "-g", "order-svc", "--explain")
PLAN = ("plan-rebalance", "-s", EXAMPLE, "-g", "order-svc", "--add", "192.0.2.2@inst3")


def lines(*arguments: str, stdin: str | None = None) -> list[dict[str, Any]]:
    done = run(*arguments, "-o", "jsonl", "-q", stdin=stdin)
    assert done.code == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_the_lines_of_a_result_are_the_rows_of_its_json() -> None:
    assert lines(*OWNERS) == data_of(*OWNERS)["queues"]
    assert lines("show-route", "-s", EXAMPLE) == data_of("show-route", "-s", EXAMPLE)["topics"]
    queues = [{"topic": topic["topic"], **queue} for topic in data_of(*PLAN)["topics"] for queue in topic["queues"]]
    assert lines(*PLAN) == queues
    assert lines(*PLAN, "--changed") == [queue for queue in queues if queue["change"] != "same"]


def test_a_snapshot_has_a_line_for_the_whole_and_for_each_topic_and_group() -> None:
    parts = lines("fetch-routes", "-s", EXAMPLE)
    whole = data_of("fetch-routes", "-s", EXAMPLE)
    assert [part["schema"] for part in parts] == ["rmqlb/snapshot"] * 6
    assert [topic for part in parts for topic in part["data"]["topics"]] == whole["topics"]
    assert [group for part in parts for group in part["data"]["groups"]] == whole["groups"]
    assert all(len(part["data"]["topics"]) + len(part["data"]["groups"]) == 1 for part in parts[1:])


@every_case("group", ["order-svc", "bill-svc", "audit-svc"])
def test_a_snapshot_by_lines_plans_as_the_snapshot_does(group: str) -> None:
    piped = run("fetch-routes", "-s", EXAMPLE, "-o", "jsonl").stdout
    arguments = ("--group", group, "--remove-broker", "broker-b", "-o", "csv")
    assert run("plan-rebalance", "-s", "-", *arguments, stdin=piped) == run("plan-rebalance", "-s", EXAMPLE, *arguments)


def peak(messages: int, folder: Path) -> int:
    line = command(
        "simulate-send", "-s", EXAMPLE, "--topic", "Skewed", "--messages", f"{messages}", "-o", "jsonl", "-q"
    )
    measured = [sys.executable, str(ROOT / "tests" / "hardening" / "measured.py"), str(folder / "kb"), *line]
    done = subprocess.run(measured, cwd=ROOT, env=environment(), capture_output=True, check=True)
    assert done.stdout.count(b"\n") == messages
    return int((folder / "kb").read_text())


def test_rows_are_written_as_they_come_and_not_kept(tmp_path: Path) -> None:
    assert peak(30_000, tmp_path) < peak(300, tmp_path) + 4_000
