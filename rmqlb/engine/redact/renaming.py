"""New names for those of a snapshot: equal snapshots give equal names, and new names sort as the old ones do.

Rules of this file:
- Consumers deal queues out by the places of sorted client ids and sorted queues, so order is what must stay. Numbers
  are counted in Java's string order and padded to one width.
- What strategies read out of a name stays readable: two members of one machine keep one text before the `@` (PIN, zones
  by host), two brokers of one room keep one before theirs (MACHINE_ROOM), and a gRPC client's id keeps its form.
- RocketMQ's own names stay, with the group, broker or cluster inside them renamed.
- CONSISTENT_HASH hashes the names themselves. No renaming keeps its owners.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from typing import Literal

from msgspec import Struct

from rmqlb.engine.allocate.machine_room import room
from rmqlb.model.group import DLQ_PREFIX, RETRY_PREFIX, is_grpc
from rmqlb.model.java import sort_key
from rmqlb.model.route import GLOBAL_SCOPE, LOGICAL_PREFIX, logical_broker_name
from rmqlb.model.system_names import REPLY_SUFFIX, SYSTEM_PREFIXES, is_fixed_name

_GLOBAL = logical_broker_name(GLOBAL_SCOPE)

Kind = Literal[
    "topics",
    "groups",
    "client_ids",
    "broker_names",
    "scopes",
    "clusters",
    "zones",
    "addresses",
    "strategy_classes",
    "filters",
]
"""Of names: broker names are those of queues and routes, logical ones of static topics too; addresses those of brokers,
members and sources, and files; strategy classes those that are not RocketMQ's; filters are what consumers take of
topics, but for `*`, which is all. Groups inside `%RETRY%` and `%DLQ%`
topics are found by the renaming."""


class Renaming(Struct, frozen=True, rename="camel"):
    """Old name → new name, by `Kind`; what stays as it is stands there too."""

    topics: Mapping[str, str]
    groups: Mapping[str, str]
    client_ids: Mapping[str, str]
    hosts: Mapping[str, str]  # what stands before the first `@` of client ids
    broker_names: Mapping[str, str]
    rooms: Mapping[str, str]  # what stands before the `@` of broker names
    scopes: Mapping[str, str]
    clusters: Mapping[str, str]
    zones: Mapping[str, str]
    addresses: Mapping[str, str]
    strategy_classes: Mapping[str, str]
    filters: Mapping[str, str]

    def of(self, kind: Kind) -> Mapping[str, str]:
        return getattr(self, kind)  # type: ignore[no-any-return]


def rename(found: Mapping[Kind, Set[str]]) -> Renaming:
    """New names for all that were found."""
    inner = [_inner(topic) for topic in found["topics"]]
    groups = _groups(found["groups"] | {name for kind, name in inner if kind in (RETRY_PREFIX, DLQ_PREFIX)})
    clusters = _numbered(
        (found["clusters"] | {name for kind, name in inner if kind == REPLY_SUFFIX}) - {""}, "cluster"
    ) | {"": ""}
    named = {name for name in found["broker_names"] if name.startswith(LOGICAL_PREFIX)}
    logical = _logical(named | {logical_broker_name(scope) for scope in found["scopes"]})
    client_ids = _client_ids(found["client_ids"])
    brokers = _broker_names(found["broker_names"] - logical.keys())
    return Renaming(
        topics=_topics(found["topics"], groups, clusters),
        groups=groups,
        client_ids=client_ids,
        hosts={_head(old): _head(new) for old, new in client_ids.items()},
        broker_names={**brokers, **logical},
        rooms={_head(old): _head(new) for old, new in brokers.items() if room(old) is not None},
        scopes={
            scope: scope if scope == GLOBAL_SCOPE else logical[logical_broker_name(scope)].removeprefix(LOGICAL_PREFIX)
            for scope in sorted(found["scopes"])
        },
        clusters={old: new for old, new in clusters.items() if old},
        zones=_numbered(found["zones"], "zone"),
        addresses=_numbered(found["addresses"], "address"),
        strategy_classes=_numbered(found["strategy_classes"], "Strategy"),
        filters=_numbered(found["filters"], "filter"),
    )


def _numbered(names: Iterable[str], word: str) -> dict[str, str]:
    ordered = sorted(set(names), key=sort_key)
    width = len(str(len(ordered)))
    return {name: f"{word}-{place:0{width}d}" for place, name in enumerate(ordered, 1)}


def _inner(topic: str) -> tuple[str, str]:
    """The kind of one of RocketMQ's own topics and the name inside it; two empty texts for others."""
    for prefix in (RETRY_PREFIX, DLQ_PREFIX):
        if topic.startswith(prefix):
            return prefix, topic.removeprefix(prefix)
    return (REPLY_SUFFIX, topic.removesuffix(REPLY_SUFFIX)) if topic.endswith(REPLY_SUFFIX) else ("", "")


def _system_prefix(name: str) -> str:
    return next((prefix for prefix in SYSTEM_PREFIXES if name.startswith(prefix)), "")


def _groups(names: Iterable[str]) -> dict[str, str]:
    numbered = _numbered(names, "group")
    return {old: old if is_fixed_name(old) else _system_prefix(old) + new for old, new in numbered.items()}


def _topics(names: Iterable[str], groups: Mapping[str, str], clusters: Mapping[str, str]) -> dict[str, str]:
    numbered = _numbered(names, "topic")
    return {old: _topic(old, new, groups, clusters) for old, new in numbered.items()}


def _topic(old: str, new: str, groups: Mapping[str, str], clusters: Mapping[str, str]) -> str:
    kind, name = _inner(old)
    if is_fixed_name(old):
        return old
    if kind == REPLY_SUFFIX:
        return clusters[name] + REPLY_SUFFIX
    return kind + groups[name] if kind else _system_prefix(old) + new


def _client_ids(names: Iterable[str]) -> dict[str, str]:
    def tail(old: str, number: str) -> str:
        return f"@{number}@0@0" if is_grpc(old) else f"@{number}" if "@" in old else f"-{number}"

    return _in_blocks(names, "host", tail)


def _broker_names(names: Iterable[str]) -> dict[str, str]:
    def tail(old: str, number: str) -> str:
        if room(old) is not None:
            return f"@broker-{number}"
        return f"@broker-{number}@0" if "@" in old else f"-broker-{number}"

    names = set(names)
    if all(room(name) is None for name in names):
        return _numbered(names, "broker")
    return _in_blocks(names, "room", tail)


def _in_blocks(names: Iterable[str], word: str, tail: Callable[[str, str], str]) -> dict[str, str]:
    """Names with one head before the `@` stand together in the order, so that a head (`word` and a number) is one too.

    Whatever sorts between two of them begins as they do. A name without `@` has a number of its own. The tail is made
    from the old name and the number of the new one.
    """
    ordered = sorted(set(names), key=sort_key)
    width = len(str(len(ordered)))
    renamed: dict[str, str] = {}
    block, before = 0, None
    for place, name in enumerate(ordered, 1):
        head = _head(name) if "@" in name else None
        if head is None or head != before:
            block += 1
        before = head
        renamed[name] = f"{word}-{block:0{width}d}" + tail(name, f"{place:0{width}d}")
    return renamed


def _head(name: str) -> str:
    return name.partition("@")[0]


def _logical(names: set[str]) -> dict[str, str]:
    """The one of the global scope stays, so those before it must stay before it."""
    before = {name for name in names if sort_key(name) < sort_key(_GLOBAL)}
    renamed = _numbered(before, f"{LOGICAL_PREFIX}a-scope") | _numbered(
        names - before - {_GLOBAL}, f"{LOGICAL_PREFIX}scope"
    )
    return renamed | ({_GLOBAL: _GLOBAL} if _GLOBAL in names else {})
