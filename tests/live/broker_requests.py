"""What tests ask of brokers that rmqlb never does, as it changes something; and answers as they stand on the wire."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Mapping
from typing import Any

from rmqlb import MessageQueue
from rmqlb.remoting import requests
from rmqlb.remoting.codes import ResponseCode
from rmqlb.remoting.command import RemotingCommand
from rmqlb.remoting.frame import FrameDecoder, encode_frame

from .cluster import RocketMQCluster

SEND_MESSAGE, SET_MESSAGE_REQUEST_MODE, GET_CONSUMER_LIST_BY_GROUP = 10, 401, 38


def ask(cluster: RocketMQCluster, broker_name: str, request: RemotingCommand) -> dict[str, Any]:
    """The body of a broker's answer, over a connection of its own: rmqlb's client lets no change through."""
    host, _, port = cluster.broker_addresses[broker_name].rpartition(":")
    decoder = FrameDecoder()
    answers: list[RemotingCommand] = []
    with socket.create_connection((host, int(port)), timeout=10) as line:
        line.sendall(encode_frame(request))
        while not answers:
            answers += decoder.feed(line.recv(1 << 16))
    if answers[0].code != ResponseCode.SUCCESS:
        raise RuntimeError(f"{broker_name}: {answers[0].code} {answers[0].remark}")
    body: dict[str, Any] = json.loads(answers[0].body or b"{}")
    return body


def send(cluster: RocketMQCluster, queue: MessageQueue, text: str) -> None:
    """One message of this text to this queue."""
    header = {
        "producerGroup": "producer-of-tests",
        "topic": queue.topic,
        "defaultTopic": "TBW102",
        "defaultTopicQueueNums": "4",
        "queueId": str(queue.queue_id),
        "sysFlag": "0",
        "bornTimestamp": str(time.time_ns() // 1_000_000),
        "flag": "0",
        "reconsumeTimes": "0",
        "unitMode": "false",
    }
    ask(cluster, queue.broker_name, RemotingCommand(SEND_MESSAGE, ext_fields=header, body=text.encode()))


def set_request_mode(cluster: RocketMQCluster, broker_name: str, group: str, topic: str, mode: str, share: int) -> None:
    """`setConsumeMode` of mqadmin."""
    body = {"topic": topic, "consumerGroup": group, "mode": mode, "popShareQueueNum": share}
    ask(cluster, broker_name, RemotingCommand(SET_MESSAGE_REQUEST_MODE, body=json.dumps(body).encode()))


def consumer_ids(cluster: RocketMQCluster, broker_name: str, group: str) -> list[str]:
    """The group's consumers as a broker lists them; none when it does not know the group."""
    request = RemotingCommand(GET_CONSUMER_LIST_BY_GROUP, ext_fields={"consumerGroup": group})
    try:
        return list(ask(cluster, broker_name, request)["consumerIdList"])
    except RuntimeError:
        return []


def assignment(
    cluster: RocketMQCluster, broker_name: str, group: str, topic: str, client_id: str, strategy: str = "AVG"
) -> Mapping[MessageQueue, str] | None:
    """What a broker answers a consumer that asks for its queues: each with its mode; None where it answers nothing."""
    answer = ask(cluster, broker_name, requests.query_assignment(group, topic, client_id, strategy))
    rows = answer.get("messageQueueAssignments")
    if rows is None:
        return None
    queues = ((row["messageQueue"], row["mode"]) for row in rows)
    return {MessageQueue(q["topic"], q["brokerName"], q["queueId"]): mode for q, mode in queues}
