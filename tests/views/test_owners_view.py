"""Who owns what under each strategy, for people and for machines."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.run import EXAMPLE, run


def test_a_queue_that_only_a_config_list_names_is_nobodys_under_the_other_strategies(tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"a": [{"topic": "Skewed", "brokerName": "broker-z", "queueId": 0}]}))
    asked = ("--topic", "Skewed", "--consumers", "a,b", "--strategy", "AVG", "--strategy", "CONFIG")
    line = ("show-owners", "-s", EXAMPLE, *asked, "--strategy-option", f"queues={config}", "--section", "queues")
    *_, last = run(*line, "-o", "plain").stdout.splitlines()
    assert last.split() == ["broker-z", "0", "(nobody)", "a"]
    queue = json.loads(run(*line, "-o", "json").stdout)["data"]["queues"][-1]
    assert queue["owners"] == {"AVG": [], "CONFIG": ["a"]}


def snapshot(*owners: str) -> str:
    route = {
        "queueDatas": [{"brokerName": "x", "readQueueNums": 4, "writeQueueNums": 4, "perm": 6}],
        "brokerDatas": [{"brokerName": "x", "brokerAddrs": {"0": "10.0.0.1:10911"}}],
    }
    states = [
        {"topic": "T", "brokerName": "x", "queueId": queue_id, "owners": ids.split()}
        for queue_id, ids in enumerate(owners)
    ]
    group = {"group": "g", "clientIds": ["a", "b"], "topics": ["T"], "queues": states}
    data = {"topics": [{"topic": "T", "route": route}], "groups": [group]}
    return json.dumps({"schema": "rmqlb/snapshot", "formatVersion": "1.0", "data": data})


def first_line(text: str, *more: str) -> str:
    return run("show-owners", "-s", "-", "-o", "plain", *more, stdin=text).stdout.splitlines()[0]


def test_the_first_line_says_what_the_cluster_reports_the_bad_first() -> None:
    head = "group g, 2 consumers, 4 queues of T"
    assert first_line(snapshot("a", "a", "b", "b")) == f"{head}: observed owners are those of AVG"
    assert first_line(snapshot("a", "", "b", "a b"), "--strategy", "AVG") == (
        f"{head}: 1 observed to be unassigned; 1 observed to have duplicate owners; observed owners of 2 differ from AVG"
    )
    assert first_line(snapshot()) == head


def test_the_first_line_says_what_a_strategy_leaves_unassigned() -> None:
    ran = first_line(
        snapshot(),
        "--consumers",
        "a,b",
        "--strategy",
        "PIN",
        "--strategy",
        "AVG",
        "--strategy-option",
        "host=elsewhere",
    )
    assert ran.endswith(": predicted to be unassigned: 4 under PIN-AVG")
    shared = first_line(snapshot(), "--consumers", "a,a,b", "--strategy", "AVG")
    assert "predicted to be unassigned: 1 under AVG" in shared
    assert "read by several processes of one client ID: 2 under AVG" in shared
