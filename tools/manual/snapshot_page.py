"""rmqlb-snapshot(5): the format of `fetch-routes`, key by key, from the structs that read it."""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Annotated, Any, Union, get_args, get_origin

import msgspec

from rmqlb.model.result import FORMAT_VERSION
from rmqlb.sources.formats.snapshot_file import SnapshotDocument
from rmqlb.views.json_schema import field_meanings
from tools.manual.roff import Marked, Page, bold, escaped

EXAMPLE = """\
schema: rmqlb/snapshot
formatVersion: "2.0"
data:
  topics:
    - topic: Payments
      route:
        queueDatas:
          - {brokerName: broker-a, readQueueNums: 8, writeQueueNums: 8, perm: 6}
        brokerDatas:
          - {brokerName: broker-a, cluster: c1, brokerAddrs: {0: "10.0.0.5:10911"}}
  groups:
    - {group: pay-svc, topics: [Payments], clientIds: [10.0.1.7@4711, 10.0.1.8@4711]}
"""
_WORDS: dict[object, str] = {
    str: "text",
    int: "whole number",
    float: "number",
    bool: "true or false",
    datetime: "time, ISO 8601",
    type(None): "null",
}


def snapshot_page() -> Page:
    """The page."""
    page = Page("rmqlb-snapshot", 5, "saved state of a RocketMQ cluster")
    page.heading("Description")
    page.paragraph(
        "A snapshot contains routes, consumer groups, consumers, and the owner and offsets of each queue. `rmqlb "
        "fetch-routes` writes it as JSON or YAML, and `-s FILE` reads it, gzipped or not. With a snapshot, you can "
        "analyse a cluster later, on another machine, or before and after a change. You can also write a snapshot by "
        "hand."
    )
    page.paragraph(
        "For large clusters, use JSON: rmqlb reads files up to 64 MB, or more with `--max-size`. YAML is limited to "
        "12 MB and a million nodes, enough for about 50,000 queues with their offsets."
    )
    page.paragraph(
        f"The format's version is {FORMAT_VERSION}; rmqlb also reads 1.x. rmqlb ignores the keys that a newer minor "
        "version adds, and rejects a newer major version. Only schema, formatVersion, the name and route of each "
        "topic, and the name of each group are required. If another key is absent or null, its value is "
        "unknown. If two processes share a client ID, the list of consumers contains the ID twice."
    )
    page.heading("Examples")
    page.paragraph("A snapshot with the keys that a plan needs:")
    page.verbatim(EXAMPLE.splitlines())
    page.paragraph("Save a cluster to a file, then plan with the file:")
    page.verbatim(["rmqlb fetch-routes -s rocketmq://127.0.0.1:9876 --to cluster.json"])
    page.verbatim(["rmqlb plan-rebalance -s cluster.json --group order-svc --add 1"])
    page.heading("Keys")
    for path, kind, meaning in keys():
        page.item(Marked(f"{bold(path)} ({escaped(kind)})"), meaning or Marked("\\&"))
    page.see_also([("rmqlb", 1), ("rmqlb-fetch-routes", 1), ("rmqlb-config", 5), ("rmqlb-strategies", 7)])
    return page


def keys() -> Iterator[tuple[str, str, str]]:
    """Each key's path (`[]` is an item of a list, `*` any key), what kind of value it has, and what it means."""
    yield from _keys(SnapshotDocument, "", {})


def _keys(
    struct: type[msgspec.Struct], base: str, listed: dict[type[msgspec.Struct], str]
) -> Iterator[tuple[str, str, str]]:
    """Those of a struct; one that was listed before is named by where."""
    meanings = field_meanings(struct)
    for field in msgspec.structs.fields(struct):
        path = base + field.encode_name
        inner, suffix = _inside(field.type)
        meaning = meanings.get(field.name, "")
        meaning = f"{meaning[:1].upper()}{meaning[1:]}." if meaning and not meaning.endswith(".") else meaning
        before = listed.get(inner) if inner is not None else None
        yield path, _kind(field.type), f"{meaning} As `{before}`.".strip() if before else meaning
        if inner is not None and before is None:
            listed[inner] = path
            yield from _keys(inner, f"{path}{suffix}.", listed)


def _inside(kind: Any) -> tuple[type[msgspec.Struct] | None, str]:
    """The struct in a type, and how a path goes into it."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return kind, ""
    if get_origin(kind) is Annotated:
        return _inside(get_args(kind)[0])
    arguments = [each for each in get_args(kind) if each is not type(None)]
    if not arguments:
        return None, ""
    found, suffix = _inside(arguments[-1])
    own = "[]" if get_origin(kind) in (list, tuple) else ".*" if get_origin(kind) in (dict, Mapping) else ""
    return found, own + suffix


def _kind(kind: Any) -> str:
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _kind(arguments[0])
    if origin in (types.UnionType, Union):
        return " or ".join(_kind(each) for each in arguments)
    if origin in (list, tuple, frozenset):
        return f"list of {_kind(arguments[0])}" if _kind(arguments[0]) != "mapping" else "list"
    if origin in (dict, Mapping) or (isinstance(kind, type) and issubclass(kind, (dict, msgspec.Struct))):
        return "mapping"
    return _WORDS.get(kind, "value")
