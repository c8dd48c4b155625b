"""`simulate-send` on a route that a NameServer gives, and on a topic that it does not know."""

from __future__ import annotations

import json

from rmqlb.remoting.codes import RequestCode
from tests.cli.run import Ran, run
from tests.support.replay_remoting import Answer, Replay, remoting, success

TEMPLATE = json.dumps(
    {
        "queueDatas": [
            {"brokerName": "broker-a", "readQueueNums": 8, "writeQueueNums": 8, "perm": 7, "topicSysFlag": 0}
        ],
        "brokerDatas": [{"brokerName": "broker-a", "cluster": "c", "brokerAddrs": {"0": "127.0.0.1:10911"}}],
    }
).encode()


def simulate(replay: Replay, topic: str) -> Ran:
    return run(
        "simulate-send", "-s", f"rocketmq://{replay.address}", "--topic", topic, "-o", "json", "--messages", "20"
    )


def test_the_route_comes_from_the_name_server_and_nothing_else_is_asked() -> None:
    with remoting() as replay:
        ran = simulate(replay, "OrderEvents")
    value = json.loads(ran.stdout)
    assert value["source"]["kind"] == "nameserver"
    assert sum(queue["stored"] for queue in value["data"]["queues"]) == 20
    assert {code for code, _ in replay.asked} == {RequestCode.GET_ROUTEINFO_BY_TOPIC}
    assert replay.forbidden == []


def test_a_new_topic_takes_the_templates_queues_and_says_so() -> None:
    answers: dict[tuple[int, str], Answer] = {
        (int(RequestCode.GET_ROUTEINFO_BY_TOPIC), "topic=TBW102"): success(TEMPLATE)
    }
    with remoting(Replay(answers=answers)) as replay:
        ran = simulate(replay, "OrderEvent")
    value = json.loads(ran.stdout)
    assert [(queue["brokerName"], queue["queueId"]) for queue in value["data"]["queues"]] == [
        ("broker-a", i) for i in range(4)
    ]
    (finding,) = [finding["message"] for finding in value["findings"] if finding["code"] == "new-topic"]
    assert "topic OrderEvent does not exist (did you mean OrderEvents?)" in finding


def test_without_the_template_the_topic_is_missing() -> None:
    with remoting() as replay:
        ran = simulate(replay, "OrderEvent")
    assert (ran.code, ran.stdout) == (4, "")
    error = json.loads(ran.stderr)["error"]
    assert "OrderEvent" in error["message"]
    assert error["hint"] == "did you mean OrderEvents?"
