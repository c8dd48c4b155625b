"""One queue of a topic on one broker, and the order in which clients sort queues and IDs.

Java's String and Integer decide where they differ from Python's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from itertools import groupby, islice
from typing import Annotated, TypeVar

from msgspec import Struct

_NOT_BREAKING = "\u00a0\u2007\u202f"
_CONTROLS = "\t\n\v\f\r\x1c\x1d\x1e\x1f"
_INTEGER = re.compile(r"[+-]?\d+")
_INT_MIN, _INT_MAX = -(2**31), 2**31 - 1


def sort_key(text: str) -> bytes:
    """`String.compareTo`: by UTF-16 code unit, then by length.

    Code points above U+FFFF sort before U+E000..U+FFFF, unlike in Python.

    >>> sorted(["10.0.0.9@1", "10.0.0.10@1", "10.0.0.1@2"], key=sort_key)
    ['10.0.0.10@1', '10.0.0.1@2', '10.0.0.9@1']
    """
    return text.encode("utf-16-be", "surrogatepass")


def split(text: str, separator: str) -> list[str]:
    """`String.split` by a plain separator: trailing empty parts are dropped.

    >>> split("a@b@", "@"), split("@b", "@"), split(";", ";"), split("", ";")
    (['a', 'b'], ['', 'b'], [], [''])
    """
    if not text:
        return [""]
    parts = text.split(separator)
    while parts and not parts[-1]:
        parts.pop()
    return parts


def parse_int(text: str) -> int:
    """`Integer.parseInt`: a sign or none, digits of any script below U+10000, within 32 bits (raises ValueError)."""
    if not _INTEGER.fullmatch(text) or max(text) > "\uffff":
        raise ValueError(f'For input string: "{text}"')
    value = int(text)
    if not _INT_MIN <= value <= _INT_MAX:
        raise ValueError(f'For input string: "{text}"')
    return value


def is_blank(text: str) -> bool:
    r"""`StringUtils.isBlank`: empty, or only `Character.isWhitespace`.

    >>> is_blank(""), is_blank(" \t"), is_blank("\u00a0"), is_blank(" x ")
    (True, True, False, False)
    """
    from unicodedata import category

    return all(
        unit in _CONTROLS or (category(unit) in ("Zs", "Zl", "Zp") and unit not in _NOT_BREAKING) for unit in text
    )


def runs(numbers: Iterable[int]) -> list[range]:
    """Ascending numbers as ranges without gaps.

    >>> runs([0, 1, 2, 5]), [span(run) for run in runs([0, 1, 2, 5])]
    ([range(0, 3), range(5, 6)], ['0-2', '5'])
    """
    found: list[range] = []
    for number in numbers:
        if found and number == found[-1].stop:
            found[-1] = range(found[-1].start, number + 1)
        else:
            found.append(range(number, number + 1))
    return found


def span(run: range) -> str:
    return str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}"


class MessageQueue(Struct, frozen=True, rename="camel"):
    """A queue (`org.apache.rocketmq.common.message.MessageQueue`); CONSISTENT_HASH hashes its `str()`."""

    topic: Annotated[str, "full topic name, namespace prefix included"]
    broker_name: Annotated[str, "name of the broker group, not an address"]
    queue_id: Annotated[int, "from 0; −1 only in POP assignments, where it means any queue of the broker"]

    def __str__(self) -> str:
        return f"MessageQueue [topic={self.topic}, brokerName={self.broker_name}, queueId={self.queue_id}]"

    def __lt__(self, other: MessageQueue) -> bool:
        return queue_order(self) < queue_order(other)


class QueueName(Struct, frozen=True, rename="camel"):
    """A queue of the topic at hand."""

    broker_name: Annotated[str, "its broker"]
    queue_id: Annotated[int, "its number there, from 0; -1 in an assignment by POP is any queue of the broker"]


def queue_order(queue: MessageQueue) -> tuple[bytes, bytes, int]:
    """Sort key of `MessageQueue.compareTo`: topic, broker name (both by UTF-16 unit), queue ID.

    Java subtracts queue IDs in 32 bits, which differs only for IDs more than 2^31 apart.
    """
    return sort_key(queue.topic), sort_key(queue.broker_name), queue.queue_id


def sort_queues(queues: Iterable[MessageQueue], order: Callable[[str], bytes] = sort_key) -> list[MessageQueue]:
    """The queues as a client sorts them before it allocates (`RebalanceImpl.rebalanceByTopic`)."""
    keys: dict[str, bytes] = {}

    def key(queue: MessageQueue) -> tuple[bytes, bytes, int]:
        for name in (queue.topic, queue.broker_name):
            if name not in keys:
                keys[name] = order(name)
        return keys[queue.topic], keys[queue.broker_name], queue.queue_id

    return sorted(queues, key=key)


def sort_client_ids(client_ids: Iterable[str], order: Callable[[str], bytes] = sort_key) -> list[str]:
    """The client IDs as a client sorts them before it allocates; duplicates are kept."""
    return sorted(client_ids, key=order)


Key = TypeVar("Key")
Value = TypeVar("Value")


def grouped(pairs: Iterable[tuple[Key, Value]]) -> dict[Key, list[Value]]:
    """Key → its values, both in the order of the pairs.

    >>> grouped([("a", 1), ("b", 2), ("a", 3)])
    {'a': [1, 3], 'b': [2]}
    """
    found: dict[Key, list[Value]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found


def queue_ranges(queues: Iterable[MessageQueue], most: int = 4) -> str:
    """Queues in short, with ranges of IDs and the number of further queues.

    >>> a, b = ([MessageQueue("T", name, number) for number in (0, 1, 2, 5)] for name in "ab")
    >>> queue_ranges(a), queue_ranges([*b, *a], most=3)
    ('T a 0-2,5', 'T a 0-2,5, b 0-2 and 1 more')
    """
    shown: dict[str, dict[str, list[str]]] = {}
    found = (
        (*where, run)
        for where, own in groupby(sort_queues(queues), key=lambda queue: (queue.topic, queue.broker_name))
        for run in runs(queue.queue_id for queue in own)
    )
    for topic, broker, run in islice(found, most):
        shown.setdefault(topic, {}).setdefault(broker, []).append(span(run))
    left = sum(len(run) for *_, run in found)
    texts = (
        f"{topic} " + ", ".join(f"{broker} {','.join(ids)}" for broker, ids in brokers.items())
        for topic, brokers in shown.items()
    )
    return "; ".join(texts) + (f" and {left} more" if left else "")
