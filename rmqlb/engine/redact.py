"""Give a snapshot new names, and keep what decides about queues, above all the order of names.

- Consumers allocate queues by the positions of sorted client IDs and sorted queues, so new names are numbers in Java's
  string order, padded to one width.
- Strategies still find what they read in names: consumers of one machine share the text before the `@` (PIN, zones by
  host), brokers of one room share theirs (MACHINE_ROOM), and a gRPC client's ID keeps its form.
- RocketMQ's own names stay, with the group, broker or cluster inside them renamed.
- CONSISTENT_HASH hashes the names, so no renaming keeps its owners.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Set
from typing import Any, Literal, get_args

from msgspec import Struct
from msgspec.structs import replace

from rmqlb.engine.allocate.machines import room
from rmqlb.engine.allocate.rules import HASHING, JAVA_CLASSES, NAMES
from rmqlb.model.group import DLQ_PREFIX, REPLY_SUFFIX, RETRY_PREFIX, SYSTEM_PREFIXES, is_fixed_name, is_grpc
from rmqlb.model.message_queue import sort_key
from rmqlb.model.route import GLOBAL_SCOPE, LOGICAL_PREFIX, logical_broker_name
from rmqlb.model.snapshot import ClusterSnapshot, Unread, UnreadKind, through, unread_link

_SAME = [name for name in NAMES if name not in HASHING]
NOTE = (
    f"the names are redacted and sort as the real ones do: {', '.join(_SAME[:-1])} and {_SAME[-1]} assign every "
    f"queue to the same consumer; {' and '.join(HASHING)} hashes names and does not"
)
_WORD = re.compile(r"[A-Z][A-Z0-9_]*")  # a constant of RocketMQ
_DIGITS = re.compile(r"[0-9]{1,14}")  # a time as yyyyMMddHHmmss
_COUNT = re.compile(r"[-+0-9:]{0,24}")
_GLOBAL = logical_broker_name(GLOBAL_SCOPE)

Kind = Literal[
    "topics", "groups", "client_ids", "broker_names", "scopes", "clusters", "zones", "addresses", "strategy_classes",
    "filters",
]  # fmt: skip
"""Kinds of names. Broker names include logical ones of static topics; addresses include files; strategy classes are
those of users; filters are tags without `*`. Groups inside `%RETRY%` and `%DLQ%` topics are found by the renaming."""


class Renaming(Struct, frozen=True, rename="camel"):
    """Old name → new name, by `Kind`; unchanged names are included."""

    topics: Mapping[str, str]
    groups: Mapping[str, str]
    client_ids: Mapping[str, str]
    hosts: Mapping[str, str]  # the part of client IDs before their first `@`
    broker_names: Mapping[str, str]
    rooms: Mapping[str, str]  # the part of broker names before their `@`
    scopes: Mapping[str, str]
    clusters: Mapping[str, str]
    zones: Mapping[str, str]
    addresses: Mapping[str, str]
    strategy_classes: Mapping[str, str]
    filters: Mapping[str, str]


def _rename(found: Mapping[Kind, Set[str]]) -> Renaming:
    inner = [_inner(topic) for topic in found["topics"]]
    of_topics = {name for kind, name in inner if kind in (RETRY_PREFIX, DLQ_PREFIX)}
    groups = {
        old: old if is_fixed_name(old) else _system_prefix(old) + new
        for old, new in _numbered(found["groups"] | of_topics, "group").items()
    }
    of_replies = {name for kind, name in inner if kind == REPLY_SUFFIX}
    clusters = _numbered((found["clusters"] | of_replies) - {""}, "cluster")
    named = {name for name in found["broker_names"] if name.startswith(LOGICAL_PREFIX)}
    logical = _logical(named | {logical_broker_name(scope) for scope in found["scopes"]})
    scopes = {scope: logical[logical_broker_name(scope)].removeprefix(LOGICAL_PREFIX) for scope in found["scopes"]}
    client_ids = _in_blocks(found["client_ids"], "host", _client_tail)
    physical = found["broker_names"] - logical.keys()
    in_rooms = any(room(name) is not None for name in physical)
    brokers = _in_blocks(physical, "room", _broker_tail) if in_rooms else _numbered(physical, "broker")
    return Renaming(
        topics={old: _topic(old, new, groups, clusters) for old, new in _numbered(found["topics"], "topic").items()},
        groups=groups,
        client_ids=client_ids,
        hosts={_head(old): _head(new) for old, new in client_ids.items()},
        broker_names={**brokers, **logical},
        rooms={_head(old): _head(new) for old, new in brokers.items() if room(old) is not None},
        scopes={old: old if old == GLOBAL_SCOPE else scopes[old] for old in sorted(scopes)},
        clusters=clusters,
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
    """The kind of one of RocketMQ's own topics and the inner name; two empty texts for others."""
    for prefix in (RETRY_PREFIX, DLQ_PREFIX):
        if topic.startswith(prefix):
            return prefix, topic.removeprefix(prefix)
    return (REPLY_SUFFIX, topic.removesuffix(REPLY_SUFFIX)) if topic.endswith(REPLY_SUFFIX) else ("", "")


def _system_prefix(name: str) -> str:
    return next((prefix for prefix in SYSTEM_PREFIXES if name.startswith(prefix)), "")


def _topic(old: str, new: str, groups: Mapping[str, str], clusters: Mapping[str, str]) -> str:
    kind, name = _inner(old)
    if is_fixed_name(old):
        return old
    if kind == REPLY_SUFFIX:
        return clusters.get(name, "") + REPLY_SUFFIX
    return kind + groups[name] if kind else _system_prefix(old) + new


def _client_tail(old: str, number: str) -> str:
    return f"@{number}@0@0" if is_grpc(old) else f"@{number}" if "@" in old else f"-{number}"


def _broker_tail(old: str, number: str) -> str:
    if room(old) is not None:
        return f"@broker-{number}"
    return f"@broker-{number}@0" if "@" in old else f"-broker-{number}"


def _in_blocks(names: Iterable[str], word: str, tail: Callable[[str, str], str]) -> dict[str, str]:
    """New names with the same head (`word` and a number) exactly where the old text before the `@` is the same.

    Names with one head are neighbours, because any name between them has that head too. A name without `@` has its own
    number. `tail` makes the rest from the old name and the new number.
    """
    ordered = sorted(set(names), key=sort_key)
    width = len(str(len(ordered)))
    renamed: dict[str, str] = {}
    block, before = 0, None
    for place, name in enumerate(ordered, 1):
        head = _head(name) if "@" in name else None
        block += head is None or head != before
        before = head
        renamed[name] = f"{word}-{block:0{width}d}" + tail(name, f"{place:0{width}d}")
    return renamed


def _head(name: str) -> str:
    return name.partition("@")[0]


def _logical(names: set[str]) -> dict[str, str]:
    """New names of logical brokers, sorted around the global scope's, which stays."""
    before = {name for name in names if sort_key(name) < sort_key(_GLOBAL)}
    after = names - before - {_GLOBAL}
    kept = {_GLOBAL: _GLOBAL} if _GLOBAL in names else {}
    return _numbered(before, f"{LOGICAL_PREFIX}a-scope") | _numbered(after, f"{LOGICAL_PREFIX}scope") | kept


Name = Callable[[Kind, str], str]  # the new name


def redact(snapshot: ClusterSnapshot) -> tuple[ClusterSnapshot, Renaming]:
    """The snapshot under new names, and the names.

    The same pass runs twice, first to collect the names, so every renamed name was found.
    """
    found: dict[Kind, set[str]] = {kind: set() for kind in get_args(Kind)}

    def noted(kind: Kind, name: str) -> str:
        found[kind].add(name)
        return name

    _renamed(snapshot, noted)
    names = _rename(found)
    return _renamed(snapshot, lambda kind, name: getattr(names, kind)[name]), names


def _renamed(snapshot: ClusterSnapshot, name: Name) -> ClusterSnapshot:
    return replace(
        snapshot,
        endpoint="redacted",
        context=None,
        routes=_under("routes", snapshot.routes, name),
        groups=_under("groups", snapshot.groups, name),
        unread=tuple(_unread(part, number, name) for number, part in enumerate(snapshot.unread, 1)),
        notes=(NOTE,),
    )


def _unread(part: Unread, number: int, name: Name) -> Unread:
    """The unread part; its consumer or broker stays known, because that decides what is unknown."""
    if part.kind == "proxy":
        return Unread(part.kind, name("addresses", part.name), "redacted", no_answer=part.no_answer)
    if part.kind == "link":
        client_id, address = through(part)
        ids = name("client_ids", client_id), name("addresses", address)
        return replace(unread_link(name("groups", part.name), "redacted", *ids), no_answer=part.no_answer)
    if part.kind not in UNREAD_OF or part.detail is None:
        return Unread("part", str(number), "redacted", no_answer=part.no_answer)
    detail = name(UNREAD_OF[part.kind], part.detail)
    return Unread(part.kind, name("groups", part.name), "redacted", detail, part.no_answer)


def _under(field: str, value: Any, name: Name) -> Any:
    """The value of a field under new names; a text in no table below is an error."""
    if isinstance(value, str):
        return name(NAMED[field], value) if field in NAMED else TEXTS[field](value, name)
    if field in DROPPED:
        return None
    if isinstance(value, Struct):
        return replace(value, **{each: _under(each, getattr(value, each), name) for each in value.__struct_fields__})
    if isinstance(value, Mapping):
        return {
            name(KEYS[field], key) if isinstance(key, str) else _under(field, key, name): _under(field, each, name)
            for key, each in value.items()
        }
    if isinstance(value, tuple | frozenset):
        return type(value)(new for each in value if (new := _under(field, each, name)) is not None)
    return value


def _order(conf: str, name: Name) -> str:
    def renamed(part: str) -> str:
        broker_name, colon, count = part.partition(":")
        return part and name("broker_names", broker_name) + colon + (count if _COUNT.fullmatch(count) else "?")

    return ";".join(map(renamed, conf.split(";")))


def _only(pattern: re.Pattern[str]) -> Callable[[str, Name], str | None]:
    """Keep a text of this form; other texts become unknown."""
    return lambda text, _: text if pattern.fullmatch(text) else None


NAMED: Mapping[str, Kind] = {
    **dict.fromkeys(("topic", "topics", "pop_topics"), "topics"),
    **dict.fromkeys(("client_id", "owners"), "client_ids"),
    **dict.fromkeys(("broker_name", "bname"), "broker_names"),
    **dict.fromkeys(("where", "broker_addr", "broker_addrs", "client_addr", "proxy_addr"), "addresses"),
    "group": "groups",
    "scope": "scopes",
    "zone_name": "zones",
}  # field of the model → the kind of its names
KEYS: Mapping[str, Kind] = {
    **dict.fromkeys(("routes", "request_modes", "pop_share_queue_nums", "statuses", "filters"), "topics"),
    "groups": "groups",
    "reports": "client_ids",
    "topic_queue_mapping_by_broker": "broker_names",
}  # field of the model that is a mapping → the kind of its keys
UNREAD_OF: Mapping[UnreadKind, Kind] = {"member": "client_ids", "members": "broker_names"}
"""Kind of an unread part of a group → the kind of the name in its detail."""
DROPPED = frozenset({"stacks"})  # fields full of names that only their own program knows
TEXTS: Mapping[str, Callable[[str, Name], str | None]] = {
    **dict.fromkeys(("consume_type", "message_model", "consume_from_where", "request_modes"), _only(_WORD)),
    **dict.fromkeys(("language", "version"), _only(_WORD)),
    "consumer_type": lambda text, _: text,
    "consume_timestamp": _only(_DIGITS),
    "order_topic_conf": _order,
    "cluster": lambda text, name: text and name("clusters", text),
    "filters": lambda text, name: text if text == "*" else name("filters", text),
    "strategy_class": lambda text, name: text if text in JAVA_CLASSES else name("strategy_classes", text),
}  # field of the model → its redacted text; None is nothing
