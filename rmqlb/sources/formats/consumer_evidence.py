"""The part of a consumer's report for a diagnosis, as model values.

A missing or malformed figure is unknown; only a table's key that is no queue is an error. Clients in other languages
report fewer fields, and some differently.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from math import isfinite

from rmqlb.model.message_queue import queue_order
from rmqlb.model.process_queue import ConsumerEvidence, ConsumeStatus, ProcessQueue, PullLimits
from rmqlb.sources.formats.documents import RunningInfoDocument, SubscriptionItem, queue_key, whole_number

_INT64 = range(-(2**63), 2**63)
_CONSUME_THREAD = "ConsumeMessageThread_"
_THREAD = rf"({_CONSUME_THREAD}\S*) *TID: [0-9]+ STATE: ([A-Z_]+)"
_FIGURES = {
    "cached": "cachedMsgCount",
    "cached_mib": "cachedMsgSizeInMiB",
    "min_offset": "cachedMsgMinOffset",
    "max_offset": "cachedMsgMaxOffset",
    "consuming": "transactionMsgCount",
    "consuming_min_offset": "transactionMsgMinOffset",
    "consuming_max_offset": "transactionMsgMaxOffset",
    "commit_offset": "commitOffset",
    "unlock_tries": "tryUnlockTimes",
    "last_lock": "lastLockTimestamp",
    "last_pull": "lastPullTimestamp",
    "last_consume": "lastConsumeTimestamp",
}  # field of `ProcessQueue` → key of RocketMQ's `ProcessQueueInfo`


def consumer_evidence(document: RunningInfoDocument, where: str, read_at: int | None = None) -> ConsumerEvidence:
    properties = document.properties
    table, statuses = document.mq_table, document.status_table
    reported = sorted((str(topic), item) for topic, item in statuses.items()) if isinstance(statuses, dict) else None
    queues = None if table is None else [_process_queue(key, state, where) for key, state in table.items()]
    return ConsumerEvidence(
        read_at=read_at,
        queues=None if queues is None else tuple(sorted(queues, key=lambda item: queue_order(item.queue))),
        statuses=None if reported is None else {topic: _status(item) for topic, item in reported},
        limits=PullLimits(
            messages=whole_number(properties.get("pullThresholdForQueue")),
            mib=whole_number(properties.get("pullThresholdSizeForQueue")),
            span=whole_number(properties.get("consumeConcurrentlyMaxSpan", properties.get("consumeMaxSpan"))),
        ),
        orderly={"true": True, "false": False}.get(properties.get("PROP_CONSUMEORDERLY") or ""),
        threads=whole_number(properties.get("PROP_THREADPOOL_CORE_SIZE")),
        batch=whole_number(properties.get("consumeMessageBatchMaxSize")),
        filters=_filters(document.subscription_set),
        stacks=consume_stacks(document, properties.get("consumerGroup") or ""),
    )


def _filters(items: list[SubscriptionItem] | None) -> dict[str, str] | None:
    """Topic → wanted tags, sorted (`FilterAPI`); None when one is not reported."""
    found: dict[str, str] = {}
    for item in sorted(items or (), key=lambda item: item.topic):
        kind, text = item.expression_type or "TAG", item.sub_string
        if not isinstance(text, str) or not isinstance(kind, str):
            return None
        tags = sorted({tag.strip() for tag in text.split("||")} - {""})
        found[item.topic] = f"{kind}: {text}" if kind != "TAG" else " || ".join(tags) or "*"
    return None if items is None else found


def consume_stacks(document: RunningInfoDocument, group: str) -> tuple[str, ...] | None:
    """The stack traces of the consume threads, by name (`UtilAll.jstack`); None when the report has none.

    Since 4.9 a thread has the group in its name, so threads of other groups are left out. Older names, and names with
    POP, have only numbers.
    """
    if not isinstance(document.jstack, str) or not document.jstack:
        return None
    stacks = dict(_stacks(document.jstack.splitlines()))
    own = re.compile(re.escape(_CONSUME_THREAD) + f"(?:{re.escape(group[:100])}_)?[0-9]+")
    names = [name for name in stacks if own.fullmatch(name)] or [*stacks]
    return tuple(stacks[name] for name in sorted(names, key=_by_number))


def _stacks(lines: list[str]) -> Iterator[tuple[str, str]]:
    """Name and stack trace of each consume thread; its lines begin with its name, an empty line ends it."""
    name, found = "", list[str]()
    for line in [*lines, ""]:
        begins = re.fullmatch(_THREAD, line)
        if begins is None and name and line.startswith(name):
            found.append(line[len(name) :].strip())
            continue
        if name:
            yield name, "\n".join(found)
        name, found = (begins[1], [f"{begins[1]} {begins[2]}"]) if begins is not None else ("", [])


def _by_number(name: str) -> tuple[str, int, str]:
    stem, _, number = name.rpartition("_")
    return stem, len(number), number


def _process_queue(key: object, state: Mapping[str, object], where: str) -> ProcessQueue:
    figures = {name: _integer(state.get(key_of)) for name, key_of in _FIGURES.items()}
    return ProcessQueue(
        queue_key(key, where), dropped=_flag(state.get("droped")), locked=_flag(state.get("locked")), **figures
    )


def _status(item: object) -> ConsumeStatus:
    figures = item if isinstance(item, dict) else {}
    return ConsumeStatus(
        consume_ms=_rate(figures.get("consumeRT")),
        consumed_per_s=_rate(figures.get("consumeOKTPS")),
        failed_per_s=_rate(figures.get("consumeFailedTPS")),
        failed_last_hour=_integer(figures.get("consumeFailedMsgs")),
        pulled_per_s=_rate(figures.get("pullTPS")),
    )


def _integer(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value in _INT64 else None


def _rate(value: object) -> float | None:
    with suppress(OverflowError):
        if isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value):
            return float(value)
    return None


def _flag(value: object) -> bool | None:
    return value if isinstance(value, bool) else None
