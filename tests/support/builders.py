import json

from rmqlb import BrokerData, Members, MessageQueue, QueueData, TopicRouteData
from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.plan.rebalance import Side
from rmqlb.model.group import Connection, ConsumerGroup, MemberReport, MemberView, QueueState, Seen

HERE = Seen("a test")


def queues(number: int, broker: str = "broker-a", topic: str = "T") -> list[MessageQueue]:
    return [MessageQueue(topic, broker, i) for i in range(number)]


def route(topic: str = "T", perm: int = 6, masters: bool = True, **brokers: int) -> TopicRouteData:
    """A topic with so many read and write queues a broker: `route(a=4, b=4)`."""
    return TopicRouteData(
        topic,
        tuple(QueueData(name, number, number, perm) for name, number in brokers.items()),
        tuple(BrokerData("c", name, {0 if masters else 1: f"{name}:10911"}) for name in brokers),
    )


def side(client_ids: str, *routes: TopicRouteData, strategy: str = "AVG", **settings: object) -> Side:
    """Members, named in one text, on some topics."""
    return Side(Members(tuple(client_ids.split()), strategy, Settings(**settings)), routes)  # type: ignore[arg-type]


def group(
    *views: str,
    name: str = "g",
    message_model: str | None = "CLUSTERING",
    consume_type: str | None = "CONSUME_PASSIVELY",
    owners: dict[MessageQueue, str] | None = None,
    reports: dict[str, str] | None = None,
) -> ConsumerGroup:
    """A group whose members each broker lists in one text, with owners and reported strategy classes."""
    seen = enumerate(views)
    return ConsumerGroup(
        name, HERE, consume_type=consume_type, message_model=message_model,
        views=tuple(MemberView(tuple(Connection(i) for i in view.split()), Seen(f"broker {n}")) for n, view in seen),
        queues={queue: QueueState(frozenset(ids.split())) for queue, ids in (owners or {}).items()},
        reports={i: MemberReport(i, strategy_class=java_class) for i, java_class in (reports or {}).items()},
    )  # fmt: skip


def snapshot_text(*topics: str, number: int = 2, **group: object) -> str:
    """A snapshot file of group g on topics with so many queues of broker a; its keys are those of the file."""
    route_ = {
        "queueDatas": [{"brokerName": "a", "readQueueNums": number, "writeQueueNums": number, "perm": 6}],
        "brokerDatas": [{"cluster": "c", "brokerName": "a", "brokerAddrs": {"0": "10.0.0.9:10911"}}],
    }
    data = {"topics": [{"topic": name, "route": route_} for name in topics], "groups": [{"group": "g", **group}]}
    return json.dumps({"schema": "rmqlb/snapshot", "formatVersion": "1.0", "data": data})


def short(queues_: object) -> list[str]:
    """`a0 a1` for readable expectations: broker name and queue id."""
    assert isinstance(queues_, list | tuple)
    return [f"{queue.broker_name}{queue.queue_id}" for queue in queues_]
