"""Random clusters, as valid snapshots and as the dumps of other tools."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import yaml
from msgspec import Struct

Json = dict[str, Any]

_CLASSES = (
    *("AllocateMessageQueueAveragely",) * 6,
    *("AllocateMessageQueueAveragelyByCircle",) * 3,
    *("AllocateMessageQueueConsistentHash",) * 3,
    "com.example.OurOwnStrategy",
)
_VERSIONS = ("V5_5_0", "V5_3_1", "V5_1_4", "V4_9_7", "HIGHER_VERSION", None)
_PERMS = (*(6,) * 16, 7, 4, 2, 0, 1, 3, 5, -1, 255)
_QUEUE_NUMBERS = (0, 1, 2, 3, 4, 4, 4, 7, 8, 8, 16)
_ODD_NAMES = (
    "订单-orders",
    "café",
    "имя",
    "a b",
    "x" * 180,
    "=1+1",
    "#1",
    "a@b",
    "a,b",
    "a=b",
    "a:b",
    "-x",
    "<b>|_`",
    "5",
    "%s",
)
_OFFSETS = (-2, -1, 0, 1, 2**31, 2**53, 2**62)


class Made(Struct, frozen=True):
    """A cluster, and what a command line can name of it.

    Attributes:
        files: name → content; `cluster` names the one that holds the cluster.
        cluster: the file for `-s`.
        topics: names of the topics with a route.
        brokers: names of all brokers.
        known_groups: name → client ids of its members, duplicates kept; None in dumps that know of no group.
        document: the snapshot.
    """

    files: dict[str, bytes]
    cluster: str
    topics: tuple[str, ...]
    brokers: tuple[str, ...]
    known_groups: dict[str, tuple[str, ...]] | None
    document: Json

    @property
    def groups(self) -> dict[str, tuple[str, ...]]:
        """Likewise, and none where none is known."""
        return self.known_groups or {}

    @property
    def is_snapshot(self) -> bool:
        """It is rmqlb's own format, which knows groups and names its topics."""
        return self.known_groups is not None


def make_cluster(dice: Random) -> Made:
    """A cluster of any shape, mostly as a snapshot."""
    brokers = _names(dice, "broker-", dice.choice((0, *(1, 1, 2, 2, 2, 3, 3, 4, 6) * 3)))
    topics = _names(dice, "Topic", dice.choice((0, *(1, 1, 1, 2, 2, 3, 4) * 3)))
    routes = {topic: _route(dice, brokers) for topic in topics}
    groups = _names(dice, "group-", dice.choice((0, 1, 1, 1, 1, 2, 3)))
    entries = [_group(dice, name, topics, routes, brokers) for name in groups]
    document = _snapshot(dice, routes, entries)
    members = {entry["group"]: _ids_of(entry) for entry in entries}
    form = dice.choice(("json",) * 12 + ("yaml", "yaml", "route", "dashboard", "mapping", "loose", "table"))
    if form in ("json", "yaml") or not topics:
        name = "cluster.yaml" if form == "yaml" else "cluster.json"
        text = _yaml(document) if form == "yaml" else json.dumps(document, ensure_ascii=dice.random() < 0.5)
        return Made({name: text.encode()}, name, tuple(topics), tuple(brokers), members, document)
    text = _dump(dice, form, routes, topics)
    known = topics if form == "mapping" else topics[:1]
    return Made({"dump.txt": text.encode()}, "dump.txt", tuple(known), tuple(brokers), None, document)


def earlier(dice: Random, document: Json) -> bytes:
    """The same cluster some time before, for rates."""
    before = json.loads(json.dumps(document))
    before["source"]["takenAt"] = dice.choice(("2026-11-20T02:02:07Z", "2026-11-21T02:01:07Z", "2026-11-22T00:00:00Z"))
    for group in before["data"]["groups"]:
        for queue in group.get("queues", ()):
            if queue.get("brokerOffset"):
                queue["brokerOffset"] -= dice.randrange(5000)
    return json.dumps(before).encode()


def _names(dice: Random, stem: str, number: int) -> list[str]:
    """Different names, most of them as people give them."""
    plain = [f"{stem}{letter}" for letter in "abcdefgh"][:number]
    if dice.random() < 0.25:
        odd = dice.sample(_ODD_NAMES, number)
        return [dice.choice(pair) for pair in zip(plain, odd, strict=True)]
    return plain


def _route(dice: Random, brokers: Sequence[str]) -> Json:
    held = [broker for broker in brokers if dice.random() < 0.85]
    dice.shuffle(held)
    numbers = dice.choice(_QUEUE_NUMBERS[1:])
    uneven = dice.random() < 0.3
    queues = [_queue_data(dice, broker, dice.choice(_QUEUE_NUMBERS) if uneven else numbers) for broker in held]
    lost = dice.random() < 0.08
    route: Json = {
        "orderTopicConf": _order(dice, held) if dice.random() < 0.1 else None,
        "queueDatas": queues,
        "brokerDatas": [_broker_data(dice, broker) for broker in held if not lost or dice.random() < 0.5],
    }
    if held and dice.random() < 0.1:
        route["topicQueueMappingByBroker"] = _mapping(dice, held)
    return route


def _queue_data(dice: Random, broker: str, number: int) -> Json:
    same = dice.random() < 0.8
    return {
        "brokerName": broker,
        "readQueueNums": number,
        "writeQueueNums": number if same else dice.choice(_QUEUE_NUMBERS),
        "perm": dice.choice(_PERMS),
        "topicSysFlag": 0,
    }


def _broker_data(dice: Random, broker: str) -> Json:
    ids = dice.choice(([0],) * 8 + ([0, 1], [0, 1], [1], [1, 2], []))
    return {
        "cluster": dice.choice(("DefaultCluster", "DefaultCluster", "Other", None)),
        "brokerName": broker,
        "brokerAddrs": {str(each): f"192.0.2.{each + 1}:10911" for each in ids},
        "enableActingMaster": dice.random() < 0.1,
        "zoneName": dice.choice((None, None, "z1")),
    }


def _order(dice: Random, brokers: Sequence[str]) -> str:
    parts = [f"{broker}:{dice.choice(_QUEUE_NUMBERS)}" for broker in brokers]
    return dice.choice((";".join(parts), ";".join(parts), "", "broker-a:x"))


def _mapping(dice: Random, brokers: Sequence[str]) -> Json:
    total = dice.choice((1, 4, 8))
    queues: dict[str, dict[str, int]] = {broker: {} for broker in brokers}
    for number in range(total):
        if dice.random() < 0.9:
            held = queues[dice.choice(brokers)]
            held[str(number)] = len(held)
    return {
        broker: {
            "topic": "T",
            "scope": "__global__",
            "totalQueues": total,
            "bname": broker,
            "epoch": dice.choice((1, 1, 2)),
            "currIdMap": ids,
        }
        for broker, ids in queues.items()
    }


def _ids(dice: Random) -> list[str]:
    number = dice.choice((0, 1, 1, 2, 2, 3, 3, 4, 5, 8, 13, 40))
    makers: tuple[Callable[[int], str], ...] = (
        lambda n: f"192.0.2.{n % 7 + 1}@inst{n}",
        lambda n: f"192.0.2.{n + 1}@{4000 + n}",
        lambda n: f"host-{n}@{n}#70000000{n:05}",
        lambda n: f"客户端-{n}",
        lambda n: f"host@{n}@0@abc",
        lambda n: f"{'c' * 120}{n}",
        lambda n: f"room{n % 3}-consumer{n}",
    )
    made = dice.choices(makers, (4, 4, 4, 2, 1, 1, 3))[0]
    ids = [made(n) for n in range(number)]
    if ids and dice.random() < 0.2:
        ids += [dice.choice(ids) for _ in range(dice.randrange(1, 4))]
    return ids


def _group(dice: Random, name: str, topics: Sequence[str], routes: Json, brokers: Sequence[str]) -> Json:
    ids = _ids(dice)
    subscribed = [topic for topic in topics if dice.random() < 0.9]
    if dice.random() < 0.15:
        subscribed.append("TopicWithoutRoute")
    if dice.random() < 0.4:
        subscribed.append(f"%RETRY%{name}")
    group: Json = {
        "group": name,
        "seen": {"where": "somewhere", "at": None},
        "consumeType": dice.choice(("CONSUME_PASSIVELY",) * 8 + ("CONSUME_ACTIVELY", "CONSUME_POP", None)),
        "messageModel": dice.choice(("CLUSTERING",) * 8 + ("BROADCASTING", None)),
        "consumeFromWhere": dice.choice(
            ("CONSUME_FROM_LAST_OFFSET", "CONSUME_FROM_FIRST_OFFSET", "CONSUME_FROM_TIMESTAMP", None)
        ),
        "topics": None if dice.random() < 0.05 else subscribed,
        "queues": _queues(dice, subscribed, routes, ids) if dice.random() < 0.8 else [],
        "reports": _reports(dice, ids, subscribed) if dice.random() < 0.5 else [],
    }
    if dice.random() < 0.15:
        group["clientIds"] = ids
    else:
        group["views"] = _views(dice, ids, brokers)
    return group


def _views(dice: Random, ids: Sequence[str], brokers: Sequence[str]) -> list[Json] | None:
    if dice.random() < 0.05:
        return None
    version, language = dice.choice(_VERSIONS), dice.choice(("JAVA",) * 6 + ("CPP", None))

    def connection(client_id: str) -> Json:
        own = dice.choice(_VERSIONS) if dice.random() < 0.05 else version
        return {"clientId": client_id, "clientAddr": "192.0.2.9:5000", "language": language, "version": own}

    views = []
    for broker in brokers[: dice.choice((1, 1, 2, 3))] or ["nobody"]:
        split = dice.random() < 0.08
        listed = [connection(each) for each in ids if not split or dice.random() < 0.7]
        views.append({"connections": listed, "seen": {"where": broker}, "brokerAddr": f"{broker}:10911"})
    return views


def _ids_of(group: Json) -> tuple[str, ...]:
    """The members that the largest list of them names."""
    if "clientIds" in group:
        return tuple(group["clientIds"])
    lists: list[list[str]] = [[each["clientId"] for each in view["connections"]] for view in group["views"] or ()]
    longest: list[str] = max(lists, key=len) if lists else []
    return tuple(longest)


def _queues(dice: Random, topics: Sequence[str], routes: Json, ids: Sequence[str]) -> list[Json]:
    usual = dice.random() < 0.7
    found: list[Json] = []
    for topic in topics:
        for data in routes.get(topic, {}).get("queueDatas", ()):
            found += [
                {"topic": topic, "brokerName": data["brokerName"], "queueId": number}
                for number in range(data["readQueueNums"])
                if dice.random() < 0.95
            ]
    for place, queue in enumerate(found):
        owner = [ids[place * len(ids) // len(found)]] if ids else []
        queue["owners"] = owner if usual else dice.choice((owner, [], None, sorted({*owner, *ids[:1]})))
        stored = dice.randrange(1000) if usual else dice.choice((*_OFFSETS, dice.randrange(1000), None))
        behind = 0 if usual else dice.choice((0, 0, 7, 2**40))
        queue["consumerOffset"] = stored
        queue["brokerOffset"] = None if stored is None else min(max(stored, 0) + behind, 2**63 - 1)
        queue["lastTimestamp"] = dice.choice((None, 0, 1_790_000_000_000))
    return found


def _reports(dice: Random, ids: Sequence[str], topics: Sequence[str]) -> list[Json]:
    java_class, odd = dice.choice(_CLASSES), dice.random() < 0.2

    def report(client_id: str) -> Json:
        return {
            "clientId": client_id,
            "topics": list(topics) if not odd or dice.random() < 0.8 else list(topics)[:1],
            "strategyClass": java_class if not odd else dice.choice((*_CLASSES, None)),
            "clientRebalance": None if not odd else dice.choice((None, True, False)),
        }

    return [report(client_id) for client_id in dict.fromkeys(ids)]


def _snapshot(dice: Random, routes: Json, groups: list[Json]) -> Json:
    def topic(name: str, route: Json) -> Json:
        other = {"route": {**route, "queueDatas": route["queueDatas"][:1]}, "seen": {"where": "another NameServer"}}
        others = [other] if dice.random() < 0.05 else []
        return {"topic": name, "route": route, "seen": {"where": "somewhere", "at": None}, "others": others}

    data: Json = {"topics": [topic(name, route) for name, route in routes.items()], "groups": groups}
    if dice.random() < 0.1:
        data["unread"] = [{"what": "members of a group at broker broker-a", "reason": "timeout"}]
    if dice.random() < 0.05:
        data["notes"] = ["something that its reader should know"]
    source = {"kind": "nameserver", "endpoint": "rocketmq://192.0.2.1:9876", "takenAt": "2026-11-21T02:02:07Z"}
    return {"schema": "rmqlb/snapshot", "formatVersion": "1.0", "source": source, "data": data}


class _Plain(yaml.SafeDumper):
    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - the base class asks for each value
        return True


def _yaml(document: Json) -> str:
    text: str = yaml.dump(json.loads(json.dumps(document)), Dumper=_Plain, allow_unicode=True, sort_keys=False)
    return text


def _dump(dice: Random, form: str, routes: Json, topics: Sequence[str]) -> str:
    """One route, or all of them, as another tool writes them."""
    route = {key: value for key, value in routes[topics[0]].items() if value is not None}
    if form == "dashboard":
        return json.dumps({"status": 0, "data": route, "errMsg": None})
    if form == "mapping":
        return json.dumps({topic: routes[topic] for topic in topics})
    if form == "table":
        return _table(dice, route)
    text = json.dumps(route)
    if form == "loose":
        for number in range(3):
            text = text.replace(f'"{number}": "192', f'{number}: "192')
    return text


def _table(dice: Random, route: Json) -> str:
    """`mqadmin topicRoute -l`."""
    heads = ("#ClusterName", "#BrokerName", "#BrokerAddrs", "#ReadQueue", "#WriteQueue", "#Perm")
    widths = (45, 32, 50, 10, 11, 5)
    rows = [heads]
    for data, broker in zip(route["queueDatas"], route["brokerDatas"], strict=False):
        addresses = ", ".join(f"{number}={address}" for number, address in broker["brokerAddrs"].items())
        rows.append(
            (
                str(broker["cluster"] or "DefaultCluster"),
                data["brokerName"],
                f"{{{addresses}}}",
                str(data["readQueueNums"]),
                str(data["writeQueueNums"]),
                str(data["perm"]),
            )
        )
    lines = [" ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    total = ["-" * 158, f"Total: {len(rows) - 1}"] if dice.random() < 0.8 else []
    return "\n".join([*lines, *total]) + "\n"
