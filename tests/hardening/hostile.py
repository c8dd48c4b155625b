"""Names that attack whoever reads them, in every field of a snapshot that holds a text."""

import json
from typing import Any

from msgspec import Struct

CONTROLS = "".join(map(chr, [*range(0x20), *range(0x7F, 0xA0)]))
TERMINAL = "\x1b[2J\x1b]0;title\x07\x1b]52;c;QQ==\x07\x1b]8;;file:///etc/passwd\x1b\\x\x1bP1$r\x1b\\\x9b31m\r\b"
DIRECTIONS = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
INVISIBLE = "\u00ad\u034f\u115f\u17b4\u180e\u200b\u200c\u200d\u2028\u2029\u2060\u2064\u3164\ufe0f\ufeff\uffa0\ufff9\U0001d173\U000e0041\U000e0100"
MARKUP = (
    "<script>alert(1)</script>]]>--></title></style>\"'&amp;<svg onload=x><a href='javascript:x'>"
    "[/red][bold][link=file:///etc/passwd]x[/link]:smile:|`$(touch canary)`\\{{x}}%s${x}"
)
FORMULAS = ("=1+1", "+1", "-1", "@SUM(1)", "\t=1", "\r=1", "\n=1", "=cmd|' /C calc'!A0")
LONG = "x" * 9_990


class Names(Struct, frozen=True):
    """The names of one snapshot; `text` is in every field that is neither a name nor of a fixed form."""

    text: str
    topics: tuple[str, ...]
    brokers: tuple[str, ...]
    group: str
    client_ids: tuple[str, ...]


def named(text: str) -> Names:
    """The same text as every name, with a letter before it where names must differ."""
    return Names(text, (text, f"u{text}"), (text, f"b{text}"), text, (text, f"c{text}", f"d{text}"))


SNAPSHOTS = {
    "controls": named(CONTROLS + TERMINAL),
    "invisible": named(DIRECTIONS + INVISIBLE),
    "markup": named(MARKUP),
    "formulas": Names("=1+1", ("=1+1", "+2"), FORMULAS[:3], "=1+1", FORMULAS),
    "long": named(f"\x1b[31m{LONG}"),
}


def _route(names: Names, order: str | None) -> dict[str, Any]:
    queues = {"readQueueNums": 2, "writeQueueNums": 2, "perm": 6}
    addresses = {"cluster": names.text, "brokerAddrs": {"0": names.text}, "zoneName": names.text}
    return {
        "orderTopicConf": order,
        "queueDatas": [{"brokerName": name, **queues} for name in names.brokers],
        "brokerDatas": [{"brokerName": name, **addresses} for name in names.brokers],
    }


def _evidence(names: Names) -> dict[str, Any]:
    queue = {"topic": names.topics[0], "brokerName": names.brokers[0], "queueId": 0}
    return {
        "queues": [{"queue": queue, "cached": 3, "lastConsume": 1}],
        "statuses": {f"lost {names.text}": {"consumeMs": 1.5}},
        "filters": {f"lost {names.text}": f"lost {names.text}"},
        "stacks": [f"lost {names.text}"],
    }


def _group(names: Names) -> dict[str, Any]:
    text, seen = names.text, {"where": names.text, "at": None}
    clients = [{"clientId": i, "clientAddr": text, "language": text, "version": text} for i in names.client_ids]
    owned = zip(names.brokers, names.client_ids, strict=False)
    queues = [{"brokerName": b, "queueId": 0, "owners": [i], "consumerOffset": 1, "brokerOffset": 9} for b, i in owned]
    report = {"topics": [names.topics[0]], "strategyClass": text, "evidence": _evidence(names)}
    return {
        "group": names.group,
        "seen": seen,
        "topics": [*names.topics, f"lost {text}"],
        "consumeType": text,
        "messageModel": "CLUSTERING",
        "consumeFromWhere": text,
        "views": [
            {"connections": clients, "seen": seen, "brokerAddr": text},
            {"connections": clients[:1], "seen": seen, "brokerAddr": f"v{text}"},
        ],
        "queues": [{"topic": topic, **queue} for topic in names.topics for queue in queues],
        "reports": [{"clientId": client_id, **report} for client_id in names.client_ids],
    }


def snapshot(
    names: Names, *, order: str | None = None, unread: bool = True, differ: bool = False, **group: Any
) -> dict[str, Any]:
    """A snapshot whose every text is hostile.

    Args:
        unread: one part could not be read, and a hostile line says so.
        differ: NameServers give different routes, so no command can plan.
        group: fields of the group that differ from the usual ones.
    """
    route, seen = _route(names, order), {"where": names.text, "at": None}
    other = {"route": {"queueDatas": route["queueDatas"][:1]} if differ else route, "seen": {"where": f"o{names.text}"}}
    return {
        "schema": "rmqlb/snapshot",
        "formatVersion": "1.0",
        "data": {
            "topics": [{"topic": topic, "route": route, "seen": seen, "others": [other]} for topic in names.topics],
            "groups": [_group(names) | group],
            "unread": [{"what": f"part {names.text}", "reason": names.text}] if unread else [],
        },
    }


def as_text(value: object) -> str:
    return json.dumps(value)
