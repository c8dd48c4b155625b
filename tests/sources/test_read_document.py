from __future__ import annotations

import gzip
import itertools
import json
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmqlb.errors import DataError, DocumentError
from rmqlb.sources.dump import merge, read_document, split_documents
from rmqlb.sources.formats.documents import decode
from rmqlb.sources.formats.limits import collect, inflate
from rmqlb.sources.formats.loose_json import read_loose
from rmqlb.sources.formats.yaml_text import read_yaml
from tests.support.mismatches import every_case


def snapshot(taken_at: str | None = "2026-11-21T02:02:07Z", **data: Any) -> bytes:
    value = {"schema": "rmqlb/snapshot", "formatVersion": "1.0", "source": {"takenAt": taken_at}, "data": data}
    return json.dumps(value).encode()


DOCUMENTS = {
    b"": [b""],
    b" \n\t\n": [b""],
    b'{\n"a":\n{"b": 1}\n}': [b'{\n"a":\n{"b": 1}\n}'],
    b'[\n{"a": 1},\n{"b": 2}\n]': [b'[\n{"a": 1},\n{"b": 2}\n]'],
    b'{"a": 1}\n\n{"b": 2}': [b'{"a": 1}', b'{"b": 2}'],
    b'{"a": 1}\r\n{"b": 2}\r\n': [b'{"a": 1}', b'{"b": 2}'],
    b'{"a": 1}\n{"b": 2}\n{"c": ': [b'{"a": 1}', b'{"b": 2}', b'{"c":'],
    b'{"a": 1\n{"b": 2}': [b'{"a": 1', b'{"b": 2}'],
    b'garbage\n{"b": 2}\nmore': [b"garbage", b'{"b": 2}', b"more"],
    b'{"a": 1}\n\xff\xfe\n{"b": 2}': [b'{"a": 1}', b"\xff\xfe", b'{"b": 2}'],
    b'{\n  "a": 1\n}\n{\n  "b": 2\n}\n': [b'{\n  "a": 1\n}', b'{\n  "b": 2\n}'],
    b'{\n  "a": 1,\n{\n  "b": 2\n}\n': [b'{\n  "a": 1,', b'{\n  "b": 2\n}'],
    b"schema: rmqlb/snapshot\ndata: {}\n": [b"schema: rmqlb/snapshot\ndata: {}"],
    b"RocketMQLog:WARN No appenders\n{0:1}\n": [b"{0:1}"],
    b"\xef\xbb\xbf" + b'{"a": 1}\n{"b": 2}': [b'{"a": 1}', b'{"b": 2}'],
}


@every_case(("body", "documents"), DOCUMENTS.items())
def test_a_file_falls_into_its_documents(body: bytes, documents: list[bytes]) -> None:
    assert split_documents(body, "x") == documents


@given(st.lists(st.dictionaries(st.text(), st.integers() | st.text(), min_size=1), min_size=1), st.data())
def test_a_bad_line_loses_no_other(values: list[dict[str, Any]], data: st.DataObject) -> None:
    lines = [json.dumps(value, ensure_ascii=data.draw(st.booleans())).encode() for value in values]
    bad = data.draw(st.integers(0, len(lines)))
    short = lines[0][: data.draw(st.integers(1, len(lines[0]) - 1))]
    cut = [*lines[:bad], short, *lines[bad:]]
    found = split_documents(b"\n".join(cut), "x")
    assert [line for line in lines if line not in found] == []
    assert len(found) == len(lines) + 1


def test_a_document_beyond_the_bound_is_refused_and_what_is_no_snapshot_has_half_of_it() -> None:
    for body, limit, bound in ((snapshot(), 10, 10), (b"[         ]", 11, 5)):
        with pytest.raises(DataError, match=f"larger than {bound} bytes"):
            read_document(body, "x.json", limit=limit)


def test_when_a_snapshot_was_taken() -> None:
    def taken_at(at: str | None, *seen: str) -> datetime | None:
        groups = [{"group": when, "seen": {"where": "w", "at": f"2026-11-21T{when}Z"}} for when in seen]
        return read_document(snapshot(at, groups=groups), "x").taken_at

    for text in ("2026-11-21T02:02:07Z", "2026-11-21T10:02:07+08:00", "2026-11-21T02:02:07"):
        assert taken_at(text) == datetime(2026, 11, 21, 2, 2, 7, tzinfo=UTC)
    assert taken_at(None) is None
    assert taken_at(None, "02:00:00", "02:05:00") == datetime(2026, 11, 21, 2, 5, tzinfo=UTC)


def test_the_cluster_is_that_of_the_brokers() -> None:
    brokers = {"T": ("b", "a"), "U": ("b", "")}
    routes = {topic: {"brokerDatas": [{"brokerName": c, "cluster": c} for c in its]} for topic, its in brokers.items()}
    two = snapshot(topics=[{"topic": topic, "route": route} for topic, route in routes.items()])
    assert (read_document(two, "x").cluster, read_document(snapshot(), "x").cluster) == ("a,b", None)


def pieces(topic: str, broker: str) -> bytes:
    queues = [{"brokerName": broker, "readQueueNums": 1, "writeQueueNums": 1, "perm": 6}]
    return json.dumps({topic: {"queueDatas": queues, "brokerDatas": []}}).encode()


def test_pieces_are_merged_the_later_over_the_earlier_and_have_no_time() -> None:
    read = [read_document(pieces(*each), "x") for each in (("T", "a"), ("U", "a"), ("T", "b"))]
    assert {document.kind for document in read} == {"pieces"}
    whole = merge(read, "a folder")
    assert (whole.kind, whole.taken_at, whole.snapshot.endpoint) == ("pieces", None, "a folder")
    brokers = {topic: [q.broker_name for q in s.route.queue_datas] for topic, s in whole.snapshot.routes.items()}
    assert brokers == {"T": ["b"], "U": ["a"]}


def test_a_name_that_is_given_is_that_of_what_does_not_name_itself_alone() -> None:
    named = read_document(pieces("T", "a"), "x", topic="U", group="g").snapshot
    assert (list(named.routes), list(named.groups)) == (["T"], [])
    body = b'{"queueDatas": [], "brokerDatas": []}'
    assert list(read_document(body, "x", topic="U").snapshot.routes) == ["U"]
    with pytest.raises(DataError) as caught:
        read_document(body, "x", group="g")
    assert caught.value.code == "topic-not-named"


LIMIT = 1024 * 1024


def raw_deflate(body: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(body) + packer.flush()


def problem(body: bytes) -> str:
    with pytest.raises(DocumentError) as caught:
        inflate(body, LIMIT, "dump.gz")
    return caught.value.message


def test_chunks_beyond_the_limit_are_not_even_asked_for() -> None:
    asked = itertools.count()

    def endless() -> Iterator[bytes]:
        while True:
            next(asked)
            yield b"x" * 1000

    with pytest.raises(DocumentError) as caught:
        collect(endless(), 3 * 1024, "dump")
    assert next(asked) == 4
    assert caught.value.message == "dump: larger than 3 KB"
    assert caught.value.hint == "if that is right, raise the limit with --max-size"


def test_what_unpacks_to_the_limit_is_read_and_a_bomb_is_never_unpacked() -> None:
    assert len(inflate(gzip.compress(bytes(LIMIT)), LIMIT, "dump.gz")) == LIMIT
    assert problem(gzip.compress(bytes(LIMIT + 1))) == "dump.gz: larger than 1 MB"
    bomb = gzip.compress(bytes(100 * LIMIT))
    tracemalloc.start()
    try:
        assert problem(bomb) == "dump.gz: larger than 1 MB"
        assert tracemalloc.get_traced_memory()[1] < LIMIT
    finally:
        tracemalloc.stop()


def test_a_packed_body_cut_short_or_joined_is_not_read_in_part() -> None:
    for cut in (1, 5, 12, -9, -1):
        assert problem(gzip.compress(b"hello " * 50)[:cut]) == "dump.gz: the compressed data is cut short"
    assert problem(gzip.compress(b"a") + gzip.compress(b"b")) == "dump.gz: more data follows the compressed data"


@given(st.binary(max_size=200))
def test_every_packing_is_unpacked_and_other_bytes_are_a_document_error(body: bytes) -> None:
    for packed in (gzip.compress(body), zlib.compress(body), raw_deflate(body)):
        assert inflate(packed, 200, "dump.gz") == body
    for start in (b"", b"\x1f\x8b", b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03", b"\x78\x9c"):
        try:
            inflate(start + body, LIMIT, "dump.gz")
        except DocumentError as error:
            assert error.message.startswith("dump.gz: ")


REFUSED = object()
READERS: tuple[Callable[[str], object], ...] = (
    lambda text: decode(text.encode("utf-8", "surrogatepass"), object, "x"),
    lambda text: read_loose(text, "x")[0][0],
    lambda text: read_yaml(text, "x"),
)
"""Strict JSON, RocketMQ's JSON, YAML."""


def results(text: str) -> list[object]:
    found = []
    for read in READERS:
        try:
            found.append(read(text))
        except DocumentError as error:
            assert error.message.startswith("x")
            found.append(REFUSED)
    return found


SAME: list[tuple[str, object]] = [
    ("[9223372036854775808]", [2**63]),
    ("[18446744073709551616, -9223372036854775809]", [2**64, -(2**63) - 1]),
    ("[9007199254740993]", [9007199254740993]),
    (f"[{'7' * 4300}]", [int("7" * 4300)]),
    ("[-0]", [0]),
    ("[0.5]", [0.5]),
    ("[0." + "0" * 400 + "1]", [0.0]),
    (r'["\u0000"]', ["\0"]),
    ('["\u2028"]', ["\u2028"]),
    ('["\U0001f600"]', ["\U0001f600"]),
    ('{"": 1}', {"": 1}),
    ('{"__class__": "x"}', {"__class__": "x"}),
    ('["010", "1e5"]', ["010", "1e5"]),
]
NOWHERE = ('["\0"]', r'["\ud800"]', r'["\udc00"]', '["\ud800"]', f"[{'7' * 5000}]", '{"a": [1', "[1.0e+400]", "[-1.0e+400]")  # fmt: skip
DIFFERENT: list[tuple[str, object, object]] = [
    ("[NaN]", REFUSED, ["NaN"]),
    ("[-Infinity]", REFUSED, ["-Infinity"]),
    ("[1e5, 1.0e5]", [1e5, 1e5], ["1e5", "1.0e5"]),
    ("[1e400]", REFUSED, ["1e400"]),
    ('{"a": 1, "a": 2}', {"a": 2}, REFUSED),
    (r'["\ud83d\ude00"]', ["\U0001f600"], REFUSED),
    ('["\x7f"]', ["\x7f"], REFUSED),
]
"""Text, JSON's value and YAML's."""


@every_case(
    ("text", "in_json", "in_yaml"),
    [*((*one, one[1]) for one in SAME), *((text, REFUSED, REFUSED) for text in NOWHERE), *DIFFERENT],
)
def test_every_reader_gives_the_same_but_where_yaml_is_another_language(
    text: str, in_json: object, in_yaml: object
) -> None:
    assert results(text) == [in_json, in_json, in_yaml]
    assert results("[1, ]") == [REFUSED, [1], [1]], "a comma too many"


@every_case("depth", [10, 256, 257, 900, 100_000, 1_000_000])
def test_every_reader_goes_256_deep_and_no_deeper(depth: int) -> None:
    for text in ("[" * depth + "]" * depth, '{"a":' * depth + "1" + "}" * depth):
        if depth <= 256:
            assert REFUSED not in results(text)
            continue
        for read in READERS:
            with pytest.raises(DocumentError, match=r"nested deeper than 256|more than 500000 values in what"):
                read(text)
