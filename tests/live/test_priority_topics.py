"""Where a broker stores messages with a priority, and how it serves receives from a topic of type PRIORITY.

`--update-golden` records the broker's answers in `tests/data/vectors/priority.json`, which the default tests read.
"""

import json
import struct
import time
from collections import Counter
from collections.abc import Iterator

import pytest

from rmqlb import MessageQueue
from rmqlb.remoting.codes import RequestCode
from rmqlb.remoting.command import RemotingCommand
from rmqlb.remoting.command import request as request_of
from tests.support.priority import (
    PICKED,
    PRIORITY_VECTORS,
    QUEUES,
    RECEIVES,
    RETRY,
    STRAYS,
    WRITE_QUEUES,
    ReceiveCase,
    SendCase,
    receive_cases,
    recorded,
    send_cases,
)

from .broker_requests import answer, ask, pop, send
from .cluster import RocketMQCluster
from .jvm import wait_until

pytestmark = [pytest.mark.live, pytest.mark.slow]

VERSION = "5.5.0"
BROKER, SENT, PLAIN, RECEIVED = "broker-a", "Sent", "Plain", "Received"
UPDATE_AND_CREATE_TOPIC, UPDATE_BROKER_CONFIG, UPDATE_AND_CREATE_GROUP = 17, 25, 200
SEND_MESSAGE_V2, SEND_BATCH = 310, 320
RETURNED = 80
INVISIBLE_MS, LONG_MS = 5000, 600_000
RETURN_DEADLINE = 60
PROPERTIES = {"priority": "_SYS_MSG_PRIORITY_", "key": "__SHARDINGKEY", "delay": "DELAY"}


@pytest.fixture(scope="module")
def prioritising() -> Iterator[RocketMQCluster]:
    with RocketMQCluster(VERSION, brokers=[BROKER], config={"timerWheelEnable": "true"}) as running:
        for topic, write, kind in (
            (SENT, WRITE_QUEUES, "PRIORITY"),
            (PLAIN, WRITE_QUEUES, "NORMAL"),
            (RECEIVED, QUEUES, "PRIORITY"),
        ):
            header = {
                "topic": topic, "readQueueNums": str(QUEUES), "writeQueueNums": str(write), "perm": "6",
                "attributes": f"+message.type={kind}",
                "defaultTopic": "TBW102", "topicFilterType": "SINGLE_TAG", "topicSysFlag": "0", "order": "false",
            }  # fmt: skip
            ask(running, BROKER, RemotingCommand(UPDATE_AND_CREATE_TOPIC, ext_fields=header))
        yield running


def stored_in(cluster: RocketMQCluster, topic: str, case: SendCase) -> int:
    """The queue that the broker answers for a message that a producer sends to queue `PICKED`."""
    given = "".join(f"{PROPERTIES[name]}\x01{value}\x02" for name, value in case.properties.items())
    header = {
        "a": "producer-of-tests", "b": topic, "c": "TBW102", "d": "4", "e": str(PICKED), "f": "0",
        "g": str(time.time_ns() // 1_000_000), "h": "0", "i": given, "j": "0", "k": "false", "m": str(case.batch).lower(),
    }  # fmt: skip
    body = b"message"
    if case.batch:
        own = given.encode()
        start = struct.pack(">iiiii", 22 + len(body) + len(own), 0, 0, 0, len(body))
        body = start + body + struct.pack(">h", len(own)) + own
    code = SEND_BATCH if case.batch else SEND_MESSAGE_V2
    found = answer(cluster, BROKER, RemotingCommand(code, ext_fields=header, body=body))
    assert found.code == 0, (found.code, found.remark)
    return int(found.ext_fields["queueId"])


def record(kind: str, found: object) -> None:
    written = recorded() if PRIORITY_VECTORS.exists() else {}
    text = json.dumps({**written, "version": VERSION, kind: found}, indent=1, sort_keys=True)
    PRIORITY_VECTORS.write_text(f"{text}\n", encoding="utf-8")


def test_a_message_with_a_priority_is_stored_as_predicted(
    prioritising: RocketMQCluster, request: pytest.FixtureRequest
) -> None:
    cases = list(send_cases())
    found = [stored_in(prioritising, SENT, case) for case in cases]
    assert found == [case.predicted for case in cases]
    # The broker does not read the topic's type.
    assert [stored_in(prioritising, PLAIN, case) for case in cases] == found
    if request.config.getoption("--update-golden"):
        record("queues", found)


def test_receives_are_served_as_simulated(prioritising: RocketMQCluster, request: pytest.FixtureRequest) -> None:
    cases = list(receive_cases())
    for queue in range(QUEUES):
        for number in range(RETURNED + RECEIVES):
            send(prioritising, MessageQueue(RECEIVED, BROKER, queue), str(number))
    for case in cases:
        group = {"groupName": group_of(case), "attributes": {"+priority.factor": str(case.factor)}}
        ask(prioritising, BROKER, RemotingCommand(UPDATE_AND_CREATE_GROUP, body=json.dumps(group).encode()))
        for _ in range(RETURNED):
            pop(prioritising, BROKER, group_of(case), RECEIVED, invisible_ms=INVISIBLE_MS)
    wait_until(
        lambda: all(returned(prioritising, group_of(case)) == RETURNED for case in cases),
        RETURN_DEADLINE,
        lambda: f"returned: {[returned(prioritising, group_of(case)) for case in cases]}",
    )
    found = [received(prioritising, case) for case in cases]
    for case, places in zip(cases, found, strict=True):
        case.assert_fits(places, strays=STRAYS)
    if request.config.getoption("--update-golden"):
        record("receives", found)


def received(cluster: RocketMQCluster, case: ReceiveCase) -> Counter[str]:
    setting = f"popFromRetryProbabilityForPriority={case.retry_percent}\n"
    ask(cluster, BROKER, RemotingCommand(UPDATE_BROKER_CONFIG, body=setting.encode()))
    popped = [pop(cluster, BROKER, group_of(case), RECEIVED, invisible_ms=LONG_MS) for _ in range(RECEIVES)]
    return Counter(RETRY if each == (RETRY, 0) else str(each and each[1]) for each in popped)


def returned(cluster: RocketMQCluster, group: str) -> int:
    asked = request_of(RequestCode.GET_MAX_OFFSET, topic=f"%RETRY%{group}_{RECEIVED}", queueId=0)
    found = answer(cluster, BROKER, asked)
    return int(found.ext_fields["offset"]) if found.code == 0 else 0


def group_of(case: ReceiveCase) -> str:
    return f"factor-{case.factor}-retry-{case.retry_percent}-svc"
