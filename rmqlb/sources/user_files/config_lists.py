"""The queues that members of a CONFIG group are configured with, from a file."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from rmqlb.errors import DocumentError, UsageError
from rmqlb.model.message_queue import MessageQueue
from rmqlb.sources.formats.yaml_text import read_yaml

_LONGEST = 16 * 1024 * 1024
_BROKER_QUEUE = re.compile(r"(?P<broker>.+):(?P<queue>[0-9]{1,9})", re.DOTALL)


def read_config_lists(path: str, topics: Iterable[str], option: str) -> dict[str, list[MessageQueue]]:
    """Client id → its configured queues; `option` names the file in messages (raises UsageError, DocumentError)."""
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read(_LONGEST + 1)
    except (OSError, ValueError) as error:
        raise UsageError(f"{option}: {getattr(error, 'strerror', None) or 'it is not UTF-8 text'}") from None
    if len(text) > _LONGEST:
        raise UsageError(f"{option}: larger than 16 MB")
    value = read_yaml(text, path)
    if not isinstance(value, dict) or not all(isinstance(entries, list) for entries in value.values()):
        raise DocumentError(f"{path}: expected a mapping of client ids to lists of BROKER:QUEUE")
    names = tuple(topics)
    return {
        str(client_id): [queue for entry in entries for queue in _queues(entry, names, f"{path}, {client_id}")]
        for client_id, entries in value.items()
    }


def _queues(entry: Any, topics: tuple[str, ...], where: str) -> list[MessageQueue]:
    if isinstance(entry, dict):
        topic, broker_name, queue_id = entry.get("topic"), entry.get("brokerName"), entry.get("queueId")
        if isinstance(topic, str) and isinstance(broker_name, str) and type(queue_id) is int:
            return [MessageQueue(topic, broker_name, queue_id)]
    match = _BROKER_QUEUE.fullmatch(entry) if isinstance(entry, str) else None
    if match is None:
        raise DocumentError(f"{where}: {repr(entry)[:80]} is not BROKER:QUEUE")
    return [MessageQueue(topic, match["broker"], int(match["queue"])) for topic in topics]
