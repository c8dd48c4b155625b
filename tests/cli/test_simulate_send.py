from __future__ import annotations

import json
from typing import Any

import pytest

from rmqlb.cli.exit_codes import ExitCode
from rmqlb.remoting.codes import RequestCode
from tests.cli.run import EXAMPLE, data_of, run
from tests.support.mismatches import every_case
from tests.support.replay_remoting import Replay, remoting, success

BASE = ("simulate-send", "-s", EXAMPLE, "--topic", "OrderEvents")


def data(*args: str, stdin: str = "") -> Any:
    return data_of(*BASE, *args, stdin=stdin)


@every_case(
    "args",
    [
        ("--fail", "broker-*@#3-#5", "--send-retries", "1", "--messages", "6"),
        ("--fail", "broker-*:read-only", "--route-poll", "1s", "--rate", "1", "--messages", "4"),
        ("--fail", "broker-a", "--mode", "async", "--rate", "10", "--send-retries", "0", "--messages", "40"),
        ("--fail", "broker-a", "--mode", "oneway", "--rate", "10", "--messages", "20"),
    ],
)
def test_traced_jsonl_says_what_the_application_gets_as_json_does(args: tuple[str, ...]) -> None:
    whole = data(*args, "--trace")
    lines = [json.loads(line) for line in run(*BASE, *args, "--trace", "-o", "jsonl", "-q").stdout.splitlines()]
    assert [line for line in lines if "reason" not in line] == whole["attempts"]
    assert [line for line in lines if "reason" in line] == whole["lostMessages"] != []
    for at, line in enumerate(lines):
        if "reason" in line:
            assert line["message"] not in [later["message"] for later in lines[at + 1 :]]


@pytest.mark.parametrize("fmt", ["json", "jsonl"])
def test_a_share_of_nothing_is_no_success(fmt: str) -> None:
    ran = run(*BASE, "--fail", "broker-*", "--messages", "3", "--fail-on", "share[broker-a]>60%", "-q", "-o", fmt)
    assert (ran.code, len(ran.stdout.splitlines())) == (ExitCode.DATA, 9 if fmt == "jsonl" else 0)
    assert "figure-not-seen" in ran.stderr
    assert "no message is stored" in ran.stderr


TEMPLATE = {
    "queueDatas": [{"brokerName": "broker-a", "readQueueNums": 8, "writeQueueNums": 8, "perm": 7}],
    "brokerDatas": [{"brokerName": "broker-a", "cluster": "c", "brokerAddrs": {"0": "10.0.0.1:10911"}}],
}


def test_a_new_topic_takes_the_templates_queues() -> None:
    args = ("simulate-send", "--topic", "OrderEvent", "-o", "json", "--messages", "20")
    template = (int(RequestCode.GET_ROUTEINFO_BY_TOPIC), "topic=TBW102")
    with remoting(Replay(answers={template: success(json.dumps(TEMPLATE).encode())})) as replay:
        asked = run(*args, "-s", f"rocketmq://{replay.address}")
    for ran in (asked, run(*args, "-s", "-", stdin=json.dumps({"TBW102": TEMPLATE}))):
        value = json.loads(ran.stdout)
        assert [queue["queueId"] for queue in value["data"]["queues"]] == [0, 1, 2, 3]
        (finding,) = [finding["message"] for finding in value["findings"] if finding["code"] == "new-topic"]
        assert "topic OrderEvent does not exist" in finding


def test_the_route_comes_from_the_nameserver_and_nothing_else_is_requested() -> None:
    with remoting() as replay:
        source = ("simulate-send", "-s", f"rocketmq://{replay.address}", "-o", "json", "--messages", "20", "--topic")
        ran = run(*source, "OrderEvents")
        asked = {code for code, _ in replay.asked}
        missing = run(*source, "OrderEvent")
    value = json.loads(ran.stdout)
    assert value["source"]["kind"] == "nameserver"
    assert sum(queue["stored"] for queue in value["data"]["queues"]) == 20
    assert asked == {RequestCode.GET_ROUTEINFO_BY_TOPIC}
    assert (replay.forbidden, missing.code, missing.stdout) == ([], 4, "")
    error = json.loads(missing.stderr)["error"]
    assert ("OrderEvent" in error["message"], error["hint"]) == (True, "did you mean OrderEvents?")
