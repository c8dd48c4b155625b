from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rmqlb.cli.exit_codes import ExitCode
from rmqlb.remoting.codes import RequestCode
from tests.cli.run import changed_example, run
from tests.support.replay_remoting import Replay, at, cluster, success


def test_a_group_without_a_consumer_online_comes_too_late_to_new_queues(tmp_path: Path) -> None:
    def offline(document: Any) -> None:
        (group,) = (each for each in document["data"]["groups"] if each["group"] == "audit-svc")
        group |= {"views": [view | {"connections": []} for view in group["views"]], "consumeFromWhere": None}
        group["queues"] = [queue | {"lastTimestamp": 0} for queue in group["queues"]]

    line = ("plan-topic", "-s", changed_example(tmp_path, offline), "-t", "OrderEvents", "--queues")
    late = "no consumer of 1 group is online (audit-svc): one that starts after producers have written"
    assert late in run(*line, "16").stderr
    assert "starts-later" not in run(*line, "4").stderr


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
