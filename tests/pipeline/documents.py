from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def route(cluster: str | None = "c1", **brokers: int) -> dict[str, Any]:
    return {
        "queueDatas": [
            {"brokerName": name, "readQueueNums": number, "writeQueueNums": number, "perm": 6}
            for name, number in brokers.items()
        ],
        "brokerDatas": [
            {"brokerName": name, "cluster": cluster, "brokerAddrs": {"0": f"{name}:10911"}} for name in brokers
        ],
    }


def snapshot(
    taken_at: str | None = "2026-11-21T02:00:00Z",
    topics: Mapping[str, Any] | None = None,
    group: Mapping[str, Any] | None = None,
) -> str:
    data: dict[str, Any] = {"topics": [{"topic": name, "route": value} for name, value in (topics or {}).items()]}
    if group:
        data["groups"] = [{"group": "g", **group}]
    value = {"schema": "rmqlb/snapshot", "formatVersion": "1.0", "source": {"takenAt": taken_at}, "data": data}
    return json.dumps(value)


def connections(group: str, *client_ids: str) -> str:
    data = {
        "connectionSet": [{"clientId": client_id, "language": "JAVA"} for client_id in client_ids],
        "subscriptionTable": {f"%RETRY%{group}": {}, "T": {}},
        "consumeType": "CONSUME_PASSIVELY",
        "messageModel": "CLUSTERING",
    }
    return json.dumps({"status": 0, "data": data})


def progress(group: str, **owners: str) -> str:
    """What the Dashboard says of a group's queues: broker name → owner of its queue 0."""
    queues = [
        {"brokerName": name, "queueId": 0, "brokerOffset": 9, "consumerOffset": 4, "clientInfo": owner}
        for name, owner in owners.items()
    ]
    return json.dumps({group: {"topic": "T", "queueStatInfoList": queues}})


def write(root: Path, files: Mapping[str, str | bytes]) -> str:
    """Files by path below a folder, whose name comes back."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(root)
