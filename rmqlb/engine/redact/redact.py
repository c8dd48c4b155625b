"""A snapshot under new names."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, get_args

from msgspec import Struct
from msgspec.structs import replace

from rmqlb.engine.allocate.rules import HASHING, JAVA_CLASSES, NAMES
from rmqlb.engine.redact.renaming import Kind, Renaming, rename
from rmqlb.model.snapshot import ClusterSnapshot, Unread, UnreadKind, through, unread_link

_SAME = [name for name in NAMES if name not in HASHING]
NOTE = (
    f"the names are redacted and sort as the real ones do: {', '.join(_SAME[:-1])} and {_SAME[-1]} assign every "
    f"queue to the same consumer; {' and '.join(HASHING)} hashes names and does not"
)
_WORD = re.compile(r"[A-Z][A-Z0-9_]*")
_DIGITS = re.compile(r"[0-9]{1,14}")
_COUNT = re.compile(r"[-+0-9:]{0,24}")


Name = Callable[[Kind, str], str]  # what stands for a name of a kind


def redact(snapshot: ClusterSnapshot) -> tuple[ClusterSnapshot, Renaming]:
    """The snapshot under new names, and which they are.

    It is gone through twice in the same way, so that no name is renamed that was not found: the first time every name
    stands for itself and is only noted.
    """
    found: dict[Kind, set[str]] = {kind: set() for kind in get_args(Kind)}

    def noted(kind: Kind, name: str) -> str:
        found[kind].add(name)
        return name

    _renamed(snapshot, noted)
    names = rename(found)
    return _renamed(snapshot, lambda kind, name: names.of(kind)[name]), names


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
    """Which consumer or broker did not tell stays known, as it decides what can be said of its group."""
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
    """What a field holds, whatever it is made of, under new names; a text that no table below has is an error."""
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
    """`broker:count;broker:count` under new names; what else stands there is as malformed afterwards."""
    return ";".join(_order_part(part, name) if part else "" for part in conf.split(";"))


def _order_part(part: str, name: Name) -> str:
    broker_name, colon, count = part.partition(":")
    return name("broker_names", broker_name) + colon + (count if _COUNT.fullmatch(count) else "?")


def _time(text: str, _: Name) -> str | None:
    """Digits, as yyyyMMddHHmmss is; any other text is not known afterwards."""
    return text if _DIGITS.fullmatch(text) else None


def _word(text: str, _: Name) -> str | None:
    """One of RocketMQ's constants, which are words in capitals; any other text is not known afterwards."""
    return text if _WORD.fullmatch(text) else None


NAMED: Mapping[str, Kind] = {
    **dict.fromkeys(("topic", "topics", "pop_topics"), "topics"),
    **dict.fromkeys(("client_id", "owners"), "client_ids"),
    **dict.fromkeys(("broker_name", "bname"), "broker_names"),
    **dict.fromkeys(("where", "broker_addr", "broker_addrs", "client_addr", "proxy_addr"), "addresses"),
    "group": "groups",
    "scope": "scopes",
    "zone_name": "zones",
}
"""Field of the model → the kind of names in it, one or several."""
KEYS: Mapping[str, Kind] = {
    "routes": "topics",
    "request_modes": "topics",
    "pop_share_queue_nums": "topics",
    "groups": "groups",
    "reports": "client_ids",
    "statuses": "topics",
    "filters": "topics",
    "topic_queue_mapping_by_broker": "broker_names",
}
"""Field of the model that is a mapping → the kind of names that its keys are."""
UNREAD_OF: Mapping[UnreadKind, Kind] = {"member": "client_ids", "members": "broker_names"}
"""Kind of what could not be read of a group → the kind of the name in its detail."""
DROPPED = frozenset({"stacks"})
"""Fields of the model of which nothing is left: full of names that only their own program knows."""
TEXTS: Mapping[str, Callable[[str, Name], str | None]] = {
    **dict.fromkeys(("consume_type", "message_model", "consume_from_where", "request_modes"), _word),
    **dict.fromkeys(("language", "version"), _word),
    "consumer_type": lambda text, _: text,
    "consume_timestamp": _time,
    "order_topic_conf": _order,
    "cluster": lambda text, name: text and name("clusters", text),
    "filters": lambda text, name: text if text == "*" else name("filters", text),
    "strategy_class": lambda text, name: text if text in JAVA_CLASSES else name("strategy_classes", text),
}
"""Field of the model → what is left of its other texts; None is nothing."""
