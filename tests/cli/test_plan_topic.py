from __future__ import annotations

import json
from pathlib import Path

import pytest

from rmqlb.cli.exit_codes import ExitCode
from rmqlb.remoting.codes import RequestCode
from tests.cli.run import data_of, run
from tests.support.mismatches import every_case
from tests.support.replay_remoting import Replay, at, cluster, success

EXAMPLE = str(Path(__file__).parent.parent.parent / "examples" / "cluster.json")
ROUTE = str(Path(EXAMPLE).parent / "topicRoute-Skewed.txt")
PLAN = ("plan-topic", "-s", EXAMPLE, "-t", "OrderEvents")


@every_case(
    ("step", "first"),
    [
        ("1", "step 1 does not hold yet: consumers cannot read broker-a 8, broker-a 9, broker-a 10 and 13 more"),
        ("3", "step 3 does not hold yet: consumers cannot read broker-a 8"),
    ],
)
def test_a_step_that_does_not_hold_ends_with_3(step: str, first: str) -> None:
    ran = run(*PLAN, "--queues", "16", "--check-step", step)
    assert (ran.code, ran.stdout[: len(first)]) == (ExitCode.CONDITION, first)
    assert data_of(*PLAN, "--queues", "16", "--check-step", step, code=ExitCode.CONDITION)["checked"]["holds"] is False


def test_what_is_unknown_is_no_pass() -> None:
    ran = run("plan-topic", "-s", ROUTE, "-t", "Skewed", "--drain-broker", "broker-b", "--check-step", "2")
    assert (ran.code, ran.stdout) == (ExitCode.DATA, "")
    assert "--check-step 2: whether it holds is unknown: the source has no group of the topic" in ran.stderr


def test_group_names_choose_and_must_be_there() -> None:
    found = data_of(*PLAN, "--queues", "16", "-g", "order-*")
    assert [each["group"] for each in found["steps"][0]["groups"]] == ["order-svc"]
    assert run(*PLAN, "--queues", "16", "-g", "orders").code == ExitCode.DATA


def test_a_group_without_a_consumer_online_comes_too_late_to_new_queues(tmp_path: Path) -> None:
    cluster = json.loads(Path(EXAMPLE).read_text(encoding="utf-8"))
    (group,) = (each for each in cluster["data"]["groups"] if each["group"] == "audit-svc")
    group |= {"views": [view | {"connections": []} for view in group["views"]], "consumeFromWhere": None}
    group["queues"] = [queue | {"lastTimestamp": 0} for queue in group["queues"]]
    (tmp_path / "offline.json").write_text(json.dumps(cluster), encoding="utf-8")
    line = ("plan-topic", "-s", str(tmp_path / "offline.json"), "-t", "OrderEvents", "--queues")
    assert (
        "no consumer of 1 group is online (audit-svc): one that starts after producers have written"
        in run(*line, "16").stderr
    )
    assert "starts-later" not in run(*line, "4").stderr


def test_the_type_of_a_topic_goes_to_a_broker_that_gets_it() -> None:
    ran = run(*PLAN, "--add-broker", "broker-c", "-o", "plain", "--section", "commands", "--message-type", "FIFO")
    assert [
        line.count("-a +message.type=FIFO") for line in ran.stdout.splitlines() if "mqadmin updateTopic" in line
    ] == [1, 0]
    assert "message-type-unknown" not in ran.stderr
    assert "message-type-unknown" not in run(*PLAN, "--queues", "16").stderr
    ran = run(*PLAN, "--add-broker", "broker-c")
    assert "message.type of topic OrderEvents is unknown: updateTopic makes it NORMAL on broker-c" in ran.stderr
    assert run(*PLAN, "--add-broker", "broker-c", "--message-type", "ordered").code == ExitCode.USAGE


CONFIG = b'{"attributes":{%s},"order":false,"perm":6,"readQueueNums":8,"topicName":"OrderEvents","writeQueueNums":8}'


@pytest.mark.parametrize(
    ("attributes", "expected"), [(b'"message.type":"TRANSACTION"', " -a +message.type=TRANSACTION"), (b"", "")]
)
def test_a_running_broker_says_the_type(attributes: bytes, expected: str) -> None:
    """As `AdminBrokerProcessor.getTopicConfig` of 5.5.0 answers; without the attribute a topic is NORMAL."""
    one, other = Replay(), Replay(broker="b1")
    for each in (one, other):
        each.answers[RequestCode.GET_TOPIC_CONFIG, "topic=OrderEvents"] = success(CONFIG % attributes)
    with cluster(one, other):
        line = ("plan-topic", *at((one, other)), "-t", "OrderEvents", "--add-broker", "broker-c")
        ran = run(*line, "-o", "json")
    assert ran.code in (ExitCode.OK, ExitCode.DATA), ran.stderr
    (first,) = json.loads(ran.stdout)["data"]["steps"][0]["commands"]
    assert first["text"].endswith(f"-r 8 -w 8 -p 4{expected}")
    assert "message-type-unknown" not in ran.stderr
