"""What holds for every command and format: one meaning, clean streams, equal bytes, nothing cut in a pipe."""

from __future__ import annotations

import csv
import io
import json
import re

import yaml

from rmqlb.views.report import FORMATS
from tests.cli.run import EXAMPLE, run
from tests.support.mismatches import every_case

COMMANDS = [
    ("show-route", "-s", EXAMPLE),
    ("show-owners", "-s", EXAMPLE, "-g", "order-svc"),
    ("plan-rebalance", "-s", EXAMPLE, "-g", "order-svc", "--add", "2", "--explain"),
]
PLAN = COMMANDS[-1]


def snapshot(client_ids: list[str], queues: int = 3) -> str:
    queue = {"brokerName": "b", "readQueueNums": queues, "writeQueueNums": queues, "perm": 6}
    broker = {"brokerName": "b", "cluster": "b", "brokerAddrs": {"0": "b"}}
    data = {
        "topics": [{"topic": "T", "route": {"queueDatas": [queue], "brokerDatas": [broker]}}],
        "groups": [{"group": "g", "clientIds": client_ids, "topics": ["T"], "messageModel": "CLUSTERING"}],
    }
    return json.dumps({"schema": "rmqlb/snapshot", "formatVersion": "1.0", "data": data})


@every_case("line", COMMANDS, ids=lambda line: line[0])
def test_every_format_is_the_same_result_each_time(line: tuple[str, ...]) -> None:
    shown = {fmt: run(*line, "-o", fmt) for fmt in FORMATS}
    assert {fmt: run(*line, "-o", fmt) for fmt in FORMATS} == shown
    value = json.loads(shown["json"].stdout)
    assert yaml.safe_load(shown["yaml"].stdout) == value
    assert list(value) == ["schema", "formatVersion", "command", "source", "data", "findings"]
    assert (value["command"], shown["json"].stderr, shown["yaml"].stderr) == (line[0], "", "")
    rows = list(csv.reader(io.StringIO(shown["csv"].stdout, newline="")))
    assert len(rows) > 1
    assert len({len(row) for row in rows}) == 1
    assert "brokerName" in rows[0]


@every_case("fmt", ["table", "plain", "markdown"])
def test_nothing_is_cut_or_wrapped_in_a_pipe(fmt: str) -> None:
    long = "10.0.0.1@" + "1234567890" * 15
    shown = run("plan-rebalance", "-s", "-", "-o", fmt, stdin=snapshot([long])).stdout
    assert sum(line.count(long) for line in shown.splitlines()) >= (3 if fmt == "plain" else 1)


def test_a_narrow_table_names_consumers_by_number_and_explains_the_numbers() -> None:
    ids = [f"192.168.100.{i}@12345#98765432101234{i}" for i in range(3)]
    line = ("plan-rebalance", "-s", "-", "-o", "table", "--add", "1", "--all")
    shown = run(*line, env={"COLUMNS": "60"}, stdin=snapshot(ids, 300)).stdout
    assert re.search(r"b +299 +#2 +#3 +~ moved", shown)
    assert all(f"#{index}  {client_id}" in shown for index, client_id in enumerate(ids))
