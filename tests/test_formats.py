"""What holds for every command and format: one meaning, clean streams, hostile names, wide and narrow, long and short."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner, Result

from rmqlb.cli.main import app
from rmqlb.views.report import FORMATS

EXAMPLE = str(Path(__file__).parent.parent / "examples" / "cluster.json")
COMMANDS = {
    "show-route": ["-s", EXAMPLE],
    "show-owners": ["-s", EXAMPLE, "-g", "order-svc"],
    "plan-rebalance": ["-s", EXAMPLE, "-g", "order-svc", "--add", "2", "--explain"],
}
EVIL = "e\x1b]0;x\x07\x1b[31m\u202evil|=[/red]"


def run(*arguments: str, columns: int | None = None, stdin: str | None = None) -> Result:
    env = {"COLUMNS": str(columns)} if columns else None
    return CliRunner().invoke(app, list(arguments), env=env, input=stdin)


def snapshot(topic: str, broker: str, group: str, client_ids: list[str], queues: int = 3) -> str:
    """A snapshot file's text."""
    data = {
        "topics": [
            {
                "topic": topic,
                "route": {
                    "queueDatas": [
                        {"brokerName": broker, "readQueueNums": queues, "writeQueueNums": queues, "perm": 6}
                    ],
                    "brokerDatas": [{"brokerName": broker, "cluster": broker, "brokerAddrs": {"0": broker}}],
                },
            }
        ],
        "groups": [{"group": group, "clientIds": client_ids, "topics": [topic], "messageModel": "CLUSTERING"}],
    }
    return json.dumps({"schema": "rmqlb/snapshot", "formatVersion": "1.0", "data": data})


@pytest.mark.parametrize("name", COMMANDS)
def test_json_and_yaml_hold_the_same(name: str) -> None:
    as_json, as_yaml = (run(name, *COMMANDS[name], "-o", fmt) for fmt in ("json", "yaml"))
    assert as_json.exit_code == as_yaml.exit_code == 0
    value = json.loads(as_json.stdout)
    assert yaml.safe_load(as_yaml.stdout) == value
    assert list(value) == ["schema", "formatVersion", "command", "source", "data", "findings"]
    assert value["command"] == name
    assert as_json.stderr == as_yaml.stderr == ""


@pytest.mark.parametrize("name", COMMANDS)
def test_csv_has_one_header_and_whole_rows(name: str) -> None:
    rows = list(csv.reader(io.StringIO(run(name, *COMMANDS[name], "-o", "csv", "-q").stdout, newline="")))
    assert len(rows) > 1
    assert len({len(row) for row in rows}) == 1
    assert "brokerName" in rows[0]


def test_csv_shows_the_section_asked_for() -> None:
    shown = run("plan-rebalance", *COMMANDS["plan-rebalance"], "-o", "csv", "--section", "consumers").stdout
    assert shown.startswith("index")
    assert "clientId" in shown.splitlines()[0]


def test_csv_columns_do_not_depend_on_what_is_known() -> None:
    known = run("plan-rebalance", "-s", EXAMPLE, "-g", "order-svc", "-o", "csv").stdout.splitlines()[0]
    unknown = run("plan-rebalance", "-s", "-", "-o", "csv", stdin=snapshot("T", "b", "g", ["a"])).stdout.splitlines()[0]
    assert known == unknown


@pytest.mark.parametrize("fmt", ["table", "plain", "markdown"])
def test_nothing_is_cut_or_wrapped_in_a_pipe(fmt: str) -> None:
    long = "10.0.0.1@" + "1234567890" * 15
    shown = run("plan-rebalance", "-s", "-", "-o", fmt, stdin=snapshot("T", "b", "g", [long])).stdout
    assert sum(line.count(long) for line in shown.splitlines()) >= (3 if fmt == "plain" else 1)


def test_a_narrow_table_names_members_by_number_and_explains_the_numbers() -> None:
    ids = [f"192.168.100.{i}@12345#98765432101234{i}" for i in range(3)]
    text = snapshot("T", "broker-a", "g", ids, 300)
    shown = run("plan-rebalance", "-s", "-", "-o", "table", "--add", "1", "--all", columns=60, stdin=text).stdout
    assert re.search(r"broker-a +299 +#2 +#3 +~ moved", shown)
    assert all(f"#{index}  {client_id}" in shown for index, client_id in enumerate(ids))


def test_colour_is_never_the_only_sign() -> None:
    shown = run("plan-rebalance", *COMMANDS["plan-rebalance"], "-o", "table", "--all", columns=100).stdout
    assert "\x1b" not in shown
    assert "~ moved" in shown
    assert "= same" in shown


@pytest.mark.parametrize("name", COMMANDS)
def test_equal_input_gives_equal_bytes(name: str) -> None:
    for fmt in FORMATS:
        once, again = (run(name, *COMMANDS[name], "-o", fmt).stdout for _ in range(2))
        assert once == again


def test_findings_are_part_of_json_and_elsewhere_on_stderr() -> None:
    arguments = ["plan-rebalance", "-s", "-", "--consumers", "a,a"]
    text = snapshot("T", "b", "g", ["a"])
    as_json, plain = (run(*arguments, "-o", fmt, stdin=text) for fmt in ("json", "plain"))
    codes = [finding["code"] for finding in json.loads(as_json.stdout)["findings"]]
    assert codes == ["duplicate-client-id", "assumed-strategy"]
    assert [line.rpartition("[")[2].rstrip("]") for line in plain.stderr.splitlines()] == codes
    assert run(*arguments, "-q", stdin=text).stderr == ""
