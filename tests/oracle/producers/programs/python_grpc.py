"""Answers on stdout what the SDK picks for the questions on stdin; see `tests/oracle/producers/questions.py`."""

from __future__ import annotations

import sys
from typing import Any


def selector(queues: str) -> Any:
    """The producer's selector of queues that are written as broker:id,broker:id."""
    from rocketmq.grpc_protocol import definition_pb2
    from rocketmq.v5.client.balancer import QueueSelector
    from rocketmq.v5.model import TopicRouteData

    written = []
    for item in queues.split(","):
        broker, number = item.split(":")
        queue = definition_pb2.MessageQueue()
        queue.id, queue.broker.name = int(number), broker
        queue.permission = definition_pb2.Permission.READ_WRITE
        queue.broker.endpoints.scheme = definition_pb2.AddressScheme.DOMAIN_NAME
        address = queue.broker.endpoints.addresses.add()
        address.host, address.port = broker, 8081
        written.append(queue)
    return QueueSelector.producer_queue_selector(TopicRouteData(written))


def position(made: Any, picked: object) -> int:
    listed = made._QueueSelector__message_queues
    return next(i for i, queue in enumerate(listed) if queue is picked)


def answer(kind: str, first: str, queues: str, *steps: str) -> str:
    made = selector(queues)
    if kind == "hash":
        key = bytes.fromhex(first).decode("utf-16-be", "surrogatepass")
        try:
            return str(position(made, made.select_queue_by_hash_key(key)))
        except UnicodeEncodeError:
            return "!UnicodeEncodeError"
    made._QueueSelector__index.set(int(first))
    return ";".join(str(position(made, made.select_next_queue())) for _ in steps[0].split(";"))


if __name__ == "__main__":
    for line in sys.stdin:
        sys.stdout.write(answer(*line.rstrip("\n").split("\t")) + "\n")
