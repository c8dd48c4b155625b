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
    *("订单-orders", "café", "имя", "a b", "x" * 180, "=1+1", "#1", "a@b", "a,b", "a=b", "a:b", "-x", "<b>|_`", "5"),
    "%s",
)
_TAKEN_MS = 1_795_226_527_000
"""The time of every snapshot, 2026-11-21T02:02:07Z."""
_AGES_MS = (0, 40, 900, 900, 5_000, 12_000, 31_000, 65_000, 130_000, 3_600_000)
_OFFSETS = (-2, -1, 0, 1, 2**31, 2**53, 2**62)
_CLIENT_IDS: tuple[Callable[[int], str], ...] = (
    *(lambda n: f"192.0.2.{n % 7 + 1}@inst{n}",) * 4,
    *(lambda n: f"192.0.2.{n + 1}@{4000 + n}",) * 4,
    *(lambda n: f"host-{n}@{n}#70000000{n:05}",) * 4,
    *(lambda n: f"客户端-{n}",) * 2,
    lambda n: f"host@{n}@0@abc",
    lambda n: f"{'c' * 120}{n}",
    *(lambda n: f"room{n % 3}-consumer{n}",) * 3,
)


class Cluster(Struct, frozen=True):
    """A cluster, and what a command line can name of it."""

    files: dict[str, bytes]  # name → content
    file: str  # the one that holds the cluster, for `-s`
    topics: tuple[str, ...]  # those with a route
    brokers: tuple[str, ...]
    groups: dict[str, tuple[str, ...]]  # name → client IDs, duplicates kept; other tools' dumps have none
    document: Json  # the snapshot
    is_snapshot: bool  # it is in rmqlb's own format


def make_cluster(dice: Random) -> Cluster:
    """A cluster of any shape, mostly as a snapshot."""
    return _Maker(dice).cluster()


def earlier(dice: Random, document: Json) -> bytes:
    """The same cluster some time before, for rates."""
    before = json.loads(json.dumps(document))
    before["source"]["takenAt"] = dice.choice(("2026-11-20T02:02:07Z", "2026-11-21T02:01:07Z", "2026-11-22T00:00:00Z"))
    for group in before["data"]["groups"]:
        for queue in group["queues"]:
            if queue["brokerOffset"]:
                queue["brokerOffset"] -= dice.randrange(5000)
            if queue["consumerOffset"]:
                queue["consumerOffset"] -= min(dice.choice((0, 0, 9, 4_000)), queue["consumerOffset"])
        for queue in (each for report in group["reports"] for each in report.get("evidence", {}).get("queues", ())):
            queue["lastConsume"] -= dice.choice((0, 0, 60_000))
            queue["lastPull"] -= dice.choice((0, 60_000, 60_000))
    return json.dumps(before).encode()


class _Maker:
    def __init__(self, dice: Random) -> None:
        self.dice, self.one, self.brokers, self.topics = dice, dice.choice, [""], [""]
        self.routes: dict[str, Json] = {}

    def maybe(self, share: float) -> bool:
        return self.dice.random() < share

    def cluster(self) -> Cluster:
        self.brokers = self.names("broker-", self.one((0, *(1, 1, 2, 2, 2, 3, 3, 4, 6) * 3)))
        self.topics = self.names("Topic", self.one((0, *(1, 1, 1, 2, 2, 3, 4) * 3)))
        self.routes = {topic: self.route() for topic in self.topics}
        groups = [self.group(name) for name in self.names("group-", self.one((0, 1, 1, 1, 1, 2, 3)))]
        document = self.snapshot(groups)
        form = self.one(("json",) * 12 + ("yaml", "yaml", "route", "dashboard", "mapping", "loose", "table"))
        is_own = form in ("json", "yaml") or not self.topics
        name, text, known, members = "dump.txt", "", self.topics, {}
        if is_own:
            members = {group["group"]: _largest_list(group) for group in groups}
            name = "cluster.yaml" if form == "yaml" else "cluster.json"
            text = json.dumps(document, ensure_ascii=self.maybe(0.5))
            text = yaml.dump(json.loads(text), allow_unicode=True, sort_keys=False) if form == "yaml" else text
        else:
            text = self.dump(form)
            known = self.topics if form == "mapping" else self.topics[:1]
        return Cluster(
            {name: text.encode()}, name, tuple(known), tuple(self.brokers), members, document, is_snapshot=is_own
        )

    def names(self, stem: str, number: int) -> list[str]:
        """Different names, most of them as people give them."""
        plain = [f"{stem}{letter}" for letter in "abcdefgh"][:number]
        odd = self.dice.sample(_ODD_NAMES, number)
        return [self.one(pair) for pair in zip(plain, odd, strict=True)] if self.maybe(0.25) else plain

    def route(self) -> Json:
        owning = [broker for broker in self.brokers if self.maybe(0.85)]
        self.dice.shuffle(owning)
        usual, uneven, lost = self.one(_QUEUE_NUMBERS[1:]), self.maybe(0.3), self.maybe(0.08)
        order = ";".join(f"{broker}:{self.one(_QUEUE_NUMBERS)}" for broker in owning)
        route: Json = {
            "orderTopicConf": self.one((order, order, "", "broker-a:x")) if self.maybe(0.1) else None,
            "queueDatas": [],
            "brokerDatas": [],
        }
        for broker in owning:
            number = self.one(_QUEUE_NUMBERS) if uneven else usual
            counts = {"readQueueNums": number, "writeQueueNums": self.one((*(number,) * 4, self.one(_QUEUE_NUMBERS)))}
            route["queueDatas"].append({"brokerName": broker, **counts, "perm": self.one(_PERMS), "topicSysFlag": 0})
            if not lost or self.maybe(0.5):
                ids = self.one(([0],) * 8 + ([0, 1], [0, 1], [1], [1, 2], []))
                route["brokerDatas"].append(
                    {
                        "cluster": self.one(("DefaultCluster", "DefaultCluster", "Other", None)),
                        "brokerName": broker,
                        "brokerAddrs": {str(each): f"192.0.2.{each + 1}:10911" for each in ids},
                        "enableActingMaster": self.maybe(0.1),
                        "zoneName": self.one((None, None, "z1")),
                    }
                )
        if owning and self.maybe(0.1):
            route["topicQueueMappingByBroker"] = self.static_queues(owning)
        return route

    def static_queues(self, brokers: Sequence[str]) -> Json:
        total = self.one((1, 4, 8))
        ids: dict[str, dict[str, int]] = {broker: {} for broker in brokers}
        for number in range(total):
            if self.maybe(0.9):
                mine = ids[self.one(brokers)]
                mine[str(number)] = len(mine)
        usual = {"topic": "T", "scope": "__global__", "totalQueues": total, "epoch": self.one((1, 1, 2))}
        return {broker: {**usual, "bname": broker, "currIdMap": ids[broker]} for broker in brokers}

    def group(self, name: str) -> Json:
        make = self.one(_CLIENT_IDS)
        ids = [make(n) for n in range(self.one((0, 1, 1, 2, 2, 3, 3, 4, 5, 8, 13, 40)))]
        if ids and self.maybe(0.2):
            ids += [self.one(ids) for _ in range(self.dice.randrange(1, 4))]
        subscribed = [topic for topic in self.topics if self.maybe(0.9)]
        subscribed += ["TopicWithoutRoute"] if self.maybe(0.15) else []
        subscribed += [f"%RETRY%{name}"] if self.maybe(0.4) else []
        queues = self.queues(subscribed, ids) if self.maybe(0.8) else []
        froms = ("CONSUME_FROM_LAST_OFFSET", "CONSUME_FROM_FIRST_OFFSET", "CONSUME_FROM_TIMESTAMP", None)
        listed = {"clientIds": ids} if self.maybe(0.15) else {"views": self.views(ids)}
        return {
            "group": name,
            "seen": {"where": "somewhere", "at": None},
            "consumeType": self.one(("CONSUME_PASSIVELY",) * 8 + ("CONSUME_ACTIVELY", "CONSUME_POP", None)),
            "messageModel": self.one(("CLUSTERING",) * 8 + ("BROADCASTING", None)),
            "consumeFromWhere": self.one(froms),
            "topics": None if self.maybe(0.05) else subscribed,
            "queues": queues,
            "reports": self.reports(ids, subscribed, queues) if self.maybe(0.6) else [],
            **listed,
        }

    def views(self, ids: Sequence[str]) -> list[Json] | None:
        if self.maybe(0.05):
            return None
        usual, language = self.one(_VERSIONS), self.one(("JAVA",) * 6 + ("CPP", None))
        views = []
        for broker in self.brokers[: self.one((1, 1, 2, 3))] or ["nobody"]:
            split, connections = self.maybe(0.08), []
            for client_id in ids:
                if not split or self.maybe(0.7):
                    version = self.one(_VERSIONS) if self.maybe(0.05) else usual
                    client = {"clientId": client_id, "clientAddr": "192.0.2.9:5000"}
                    connections.append({**client, "language": language, "version": version})
            views.append({"connections": connections, "seen": {"where": broker}, "brokerAddr": f"{broker}:10911"})
        return views

    def queues(self, topics: Sequence[str], ids: Sequence[str]) -> list[Json]:
        usual = self.maybe(0.7)
        found: list[Json] = [
            {"topic": topic, "brokerName": data["brokerName"], "queueId": number}
            for topic in topics
            for data in self.routes.get(topic, {}).get("queueDatas", ())
            for number in range(data["readQueueNums"])
            if self.maybe(0.95)
        ]
        for place, queue in enumerate(found):
            owner = [ids[place * len(ids) // len(found)]] if ids else []
            queue["owners"] = owner if usual else self.one((owner, [], None, sorted({*owner, *ids[:1]})))
            stored = self.dice.randrange(1000) if usual else self.one((*_OFFSETS, self.dice.randrange(1000), None))
            behind = 0 if usual else self.one((0, 0, 7, 2**40))
            queue["consumerOffset"] = stored
            queue["brokerOffset"] = None if stored is None else min(max(stored, 0) + behind, 2**63 - 1)
            queue["lastTimestamp"] = self.one((None, 0, 1_790_000_000_000))
        return found

    def reports(self, ids: Sequence[str], topics: Sequence[str], queues: Sequence[Json]) -> list[Json]:
        usual, odd, tells, orderly = self.one(_CLASSES), self.maybe(0.2), self.maybe(0.7), self.maybe(0.3)
        calm = self.maybe(0.4)
        return [
            {
                **({"evidence": self.evidence(client_id, topics, queues, orderly, calm)} if tells else {}),
                "clientId": client_id,
                "topics": list(topics) if not odd or self.maybe(0.8) else list(topics)[:1],
                "strategyClass": self.one((*_CLASSES, None)) if odd else usual,
                "clientRebalance": self.one((None, True, False)) if odd else None,
            }
            for client_id in dict.fromkeys(ids)
        ]

    def evidence(
        self, client_id: str, topics: Sequence[str], queues: Sequence[Json], orderly: bool, calm: bool
    ) -> Json:
        """The report of a consumer that works, or of one with queues that stand still, are full or lost their locks."""

        def ago() -> int:
            return _TAKEN_MS - self.one(_AGES_MS[: 4 if calm else None])

        found = []
        for queue in queues:
            if client_id in (queue["owners"] or ()):
                commit, cached = max(queue["consumerOffset"] or 0, 0), self.one((0, 0, 1, 30, 900, 1_001, 2_500))
                last = commit + cached + self.one((0, 0, 3_000)) if cached else 0
                key = {name: queue[name] for name in ("topic", "brokerName", "queueId")}
                offsets = {"minOffset": commit if cached else 0, "maxOffset": last, "commitOffset": commit}
                times = {"lastPull": ago(), "lastConsume": ago(), "lastLock": ago()}
                flags = {"dropped": not calm and self.maybe(0.05), "locked": calm or self.maybe(0.9)}
                size = {"cached": cached, "cachedMib": self.one((0, 0, 3, 120)), "consuming": min(cached, int(orderly))}
                found.append({"queue": key, **size, **offsets, **times, **flags, "unlockTries": 0})
        rates = (0, 0.5, 30, 500)
        statuses = {
            topic: {
                **{name: self.one(rates) for name in ("consumedPerS", "pulledPerS")},
                "consumeMs": self.one((0, 0.4, 20, 1_500)),
                "failedPerS": 0 if calm else self.one((0, 0, 0.3, 12)),
                "failedLastHour": 0 if calm else self.one((0, 0, 7)),
            }
            for topic in topics
        }
        more = {"threads": self.one((1, 4, 20, 20, 64)), "batch": self.one((1, 1, 32)), "orderly": orderly}
        filters = {topic: self.one(("*", "*", "*", "blue || red")) for topic in topics}
        return {"readAt": _TAKEN_MS, "queues": found, "statuses": statuses, "filters": filters, **more}

    def snapshot(self, groups: list[Json]) -> Json:
        topics = []
        for name, route in self.routes.items():
            other = {"route": {**route, "queueDatas": route["queueDatas"][:1]}, "seen": {"where": "another NameServer"}}
            seen = {"where": "somewhere", "at": None}
            others = [other] if self.maybe(0.05) else []
            topics.append({"topic": name, "route": route, "seen": seen, "others": others})
        data: Json = {"topics": topics, "groups": groups}
        if self.maybe(0.1):
            name = groups[0]["group"] if groups else "g"
            data["unread"] = [{"kind": "members", "name": name, "detail": "broker-a", "reason": "timeout"}]
        source = {"kind": "nameserver", "endpoint": "rocketmq://192.0.2.1:9876", "takenAt": "2026-11-21T02:02:07Z"}
        return {"schema": "rmqlb/snapshot", "formatVersion": "2.0", "source": source, "data": data}

    def dump(self, form: str) -> str:
        """One route, or all of them, as another tool writes them."""
        route = {key: value for key, value in self.routes[self.topics[0]].items() if value is not None}
        if form == "dashboard":
            return json.dumps({"status": 0, "data": route, "errMsg": None})
        if form == "mapping":
            return json.dumps(self.routes)
        if form == "table":
            return self.table(route)
        text = json.dumps(route)
        for number in range(3) if form == "loose" else ():
            text = text.replace(f'"{number}": "192', f'{number}: "192')
        return text

    def table(self, route: Json) -> str:
        """`mqadmin topicRoute -l`."""
        rows = [["#ClusterName", "#BrokerName", "#BrokerAddrs", "#ReadQueue", "#WriteQueue", "#Perm"]]
        for data, broker in zip(route["queueDatas"], route["brokerDatas"], strict=False):
            addresses = ", ".join(f"{number}={address}" for number, address in broker["brokerAddrs"].items())
            numbers = [str(data[key]) for key in ("readQueueNums", "writeQueueNums", "perm")]
            rows.append([str(broker["cluster"] or "DefaultCluster"), data["brokerName"], f"{{{addresses}}}", *numbers])
        widths = (45, 32, 50, 10, 11, 5)
        lines = [" ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
        lines += ["-" * 158, f"Total: {len(rows) - 1}"] if self.maybe(0.8) else []
        return "\n".join(lines) + "\n"


def _largest_list(group: Json) -> tuple[str, ...]:
    """The client IDs that the largest list of consumers names."""
    lists = [[each["clientId"] for each in view["connections"]] for view in group.get("views") or ()]
    return tuple(group.get("clientIds") or max(lists, key=len, default=()))
