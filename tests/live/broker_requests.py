"""What tests ask of brokers that rmqlb never does, as it changes something; and answers as they stand on the wire."""

import json
import socket
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

from rmqlb import MessageQueue
from rmqlb.remoting.codes import ResponseCode
from rmqlb.remoting.command import RemotingCommand
from rmqlb.remoting.frame import FrameDecoder, encode_frame
from rmqlb.sources.native.source import query_assignment

from .cluster import RocketMQCluster
from .jvm import wait_until

SEND_MESSAGE, HEART_BEAT, GET_CONSUMER_LIST_BY_GROUP, SET_MESSAGE_REQUEST_MODE, POP_MESSAGE = 10, 34, 38, 401, 200050
POLLING_TIMEOUT = 210
PopQueue = tuple[str, int]
"""`normal` or `retry`, and a queue's number there."""


def answer(cluster: RocketMQCluster, broker_name: str, request: RemotingCommand, wait_s: float = 10) -> RemotingCommand:
    """A broker's answer, over a connection of its own: rmqlb's client lets no change through."""
    host, _, port = cluster.broker_addresses[broker_name].rpartition(":")
    decoder = FrameDecoder()
    answers: list[RemotingCommand] = []
    with socket.create_connection((host, int(port)), timeout=wait_s) as line:
        line.sendall(encode_frame(request))
        while not answers:
            answers += decoder.feed(line.recv(1 << 16))
    return answers[0]


def ask(cluster: RocketMQCluster, broker_name: str, request: RemotingCommand) -> dict[str, Any]:
    found = answer(cluster, broker_name, request)
    if found.code != ResponseCode.SUCCESS:
        raise RuntimeError(f"{broker_name}: {found.code} {found.remark}")
    body: dict[str, Any] = json.loads(found.body or b"{}")
    return body


def pop(
    cluster: RocketMQCluster, broker_name: str, group: str, topic: str, *, invisible_ms: int, wait_ms: int = 0
) -> PopQueue | None:
    """Receive one message of any queue, as a POP client does: from where it came; None when the time was over."""
    header = {
        "consumerGroup": group, "topic": topic, "queueId": "-1", "maxMsgNums": "1", "invisibleTime": str(invisible_ms),
        "pollTime": str(wait_ms), "bornTime": str(time.time_ns() // 1_000_000), "initMode": "0",
    }  # fmt: skip
    found = answer(cluster, broker_name, RemotingCommand(POP_MESSAGE, ext_fields=header), 10 + wait_ms / 1000)
    if found.code == POLLING_TIMEOUT:
        return None
    if found.code != ResponseCode.SUCCESS:
        raise RuntimeError(f"{broker_name}: {found.code} {found.remark}")
    kind, queue, _ = found.ext_fields["startOffsetInfo"].split(" ")
    return "normal" if kind == "0" else "retry", int(queue)


def send(cluster: RocketMQCluster, queue: MessageQueue, text: str) -> None:
    header = {
        "producerGroup": "producer-of-tests", "topic": queue.topic, "defaultTopic": "TBW102",
        "defaultTopicQueueNums": "4", "queueId": str(queue.queue_id), "sysFlag": "0",
        "bornTimestamp": str(time.time_ns() // 1_000_000), "flag": "0", "reconsumeTimes": "0", "unitMode": "false",
    }  # fmt: skip
    ask(cluster, queue.broker_name, RemotingCommand(SEND_MESSAGE, ext_fields=header, body=text.encode()))


def set_pop_mode(
    cluster: RocketMQCluster, brokers: Iterable[str], group: str, topic: str, share: int, deadline: float
) -> None:
    """Let a group consume a topic by POP, as soon as each of these brokers knows the group."""
    body = {"topic": topic, "consumerGroup": group, "mode": "POP", "popShareQueueNum": share}

    def is_set() -> bool:
        try:
            for broker_name in brokers:
                ask(cluster, broker_name, RemotingCommand(SET_MESSAGE_REQUEST_MODE, body=json.dumps(body).encode()))
        except RuntimeError:
            return False
        return True

    wait_until(is_set, deadline, lambda: f"{group} is not known to all of {[*brokers]}")


def consumer_ids(cluster: RocketMQCluster, broker_name: str, group: str) -> list[str]:
    request = RemotingCommand(GET_CONSUMER_LIST_BY_GROUP, ext_fields={"consumerGroup": group})
    try:
        return list(ask(cluster, broker_name, request)["consumerIdList"])
    except RuntimeError:
        return []


def assignment(
    cluster: RocketMQCluster, broker_name: str, group: str, topic: str, client_id: str, strategy: str = "AVG"
) -> Mapping[MessageQueue, str] | None:
    """What a broker answers a consumer that asks for its queues: each with its mode; None where it answers nothing."""
    answer = ask(cluster, broker_name, query_assignment(group, topic, client_id, strategy))
    rows = answer.get("messageQueueAssignments")
    if rows is None:
        return None
    queues = ((row["messageQueue"], row["mode"]) for row in rows)
    return {MessageQueue(q["topic"], q["brokerName"], q["queueId"]): mode for q, mode in queues}


@contextmanager
def more_channels(
    cluster: RocketMQCluster, broker_name: str, group: str, client_id: str, topic: str, number: int
) -> Iterator[None]:
    """Connections that a client's broken ones leave at a broker: each has sent one heartbeat, and nothing after it."""
    host, _, port = cluster.broker_addresses[broker_name].rpartition(":")
    now = time.time_ns() // 1_000_000
    subscribed = [
        {"topic": each, "subString": "*", "tagsSet": [], "codeSet": [], "subVersion": now, "expressionType": "TAG"}
        for each in (topic, f"%RETRY%{group}")
    ]
    consumer = {
        "groupName": group, "consumeType": "CONSUME_PASSIVELY", "messageModel": "CLUSTERING",
        "consumeFromWhere": "CONSUME_FROM_LAST_OFFSET", "subscriptionDataSet": subscribed, "unitMode": False,
    }  # fmt: skip
    body = json.dumps({"clientID": client_id, "consumerDataSet": [consumer], "producerDataSet": []}).encode()
    with ExitStack() as stack:
        for _ in range(number):
            line = stack.enter_context(socket.create_connection((host, int(port)), timeout=10))
            line.sendall(encode_frame(RemotingCommand(HEART_BEAT, body=body)))
            decoder = FrameDecoder()
            while not decoder.feed(line.recv(1 << 16)):
                pass
        yield
