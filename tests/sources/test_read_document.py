import gzip
import itertools
import json
import re
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar

import pytest
import yaml
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from rmqlb.cli.settings import check_value
from rmqlb.engine.allocate.rules import NAMES
from rmqlb.errors import DataError, DocumentError, RmqlbError
from rmqlb.remoting.header import decode_json_header
from rmqlb.sources.dump import merge, read_document, split_documents
from rmqlb.sources.formats import yaml_text
from rmqlb.sources.formats.documents import decode, parse_route
from rmqlb.sources.formats.limits import MAX_DEPTH, collect, inflate
from rmqlb.sources.formats.loose_json import MAX_DIGITS, ObjectKey, read_loose
from rmqlb.sources.formats.yaml_text import lines_of, read_yaml
from rmqlb.sources.user_files.config_file import read_user_file
from rmqlb.sources.user_files.policy_file import parse_policy
from tests.support.mismatches import every_case, refusal

from .captures import DATA


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
        assert f"larger than {bound} bytes" in refusal(DataError, read_document, body, "x.json", limit=limit).message


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
    whole = merge(read, "a folder")
    assert (whole.snapshots, whole.taken_at, whole.snapshot.endpoint) == (0, None, "a folder")
    brokers = {topic: [q.broker_name for q in s.route.queue_datas] for topic, s in whole.snapshot.routes.items()}
    assert brokers == {"T": ["b"], "U": ["a"]}


def test_a_name_that_is_given_is_that_of_what_does_not_name_itself_alone() -> None:
    named = read_document(pieces("T", "a"), "x", topic="U", group="g").snapshot
    assert (list(named.routes), list(named.groups)) == (["T"], [])
    body = b'{"queueDatas": [], "brokerDatas": []}'
    assert list(read_document(body, "x", topic="U").snapshot.routes) == ["U"]
    assert refusal(DataError, read_document, body, "x", group="g").code == "topic-not-named"


LIMIT = 1024 * 1024


def raw_deflate(body: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(body) + packer.flush()


def problem(body: bytes) -> str:
    return refusal(DocumentError, inflate, body, LIMIT, "dump.gz").message


def test_chunks_beyond_the_limit_are_not_even_asked_for() -> None:
    asked = itertools.count()

    def endless() -> Iterator[bytes]:
        while True:
            next(asked)
            yield b"x" * 1000

    assert collect([b"x" * 1024] * 3, 3 * 1024, "dump") == b"x" * 3 * 1024
    caught = refusal(DocumentError, collect, endless(), 3 * 1024, "dump")
    assert next(asked) == 4
    assert caught.message == "dump: larger than 3 KB"
    assert caught.hint == "if the size is right, raise the limit with --max-size"


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
    joined = refusal(DocumentError, inflate, gzip.compress(b"a") + gzip.compress(b"b"), LIMIT, "dump.gz")
    assert (joined.message, joined.hint_names_options) == ("dump.gz: more data follows the compressed data", True)


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
def test_readers_give_the_same_but_where_yaml_is_another_language(text: str, in_json: object, in_yaml: object) -> None:
    assert results(text) == [in_json, in_json, in_yaml]
    assert results("[1, ]") == [REFUSED, [1], [1]], "a comma too many"


@every_case("depth", [10, 256, 257, 900, 100_000, 1_000_000])
def test_every_reader_goes_256_deep_and_no_deeper(depth: int) -> None:
    for text in ("[" * depth + "]" * depth, '{"a":' * depth + "1" + "}" * depth):
        if depth <= 256:
            assert REFUSED not in results(text)
            continue
        for read in READERS:
            with pytest.raises(DocumentError, match=r"nested deeper than 256 levels|more than 500000 values in text"):
                read(text)


TEXT = st.text(st.characters(exclude_categories=["Cs"]))
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda values: st.lists(values) | st.dictionaries(TEXT, values),
    max_leaves=20,
)


def read_one(text: str) -> object:
    documents, _ = read_loose(text, "dump")
    assert len(documents) == 1
    return documents[0]


def json_problem(text: str) -> str:
    return refusal(DocumentError, read_loose, text, "dump").message


@given(JSON_VALUES, st.booleans(), st.sampled_from([None, 1]))
def test_what_strict_json_accepts_is_read_to_equal_values(value: object, escaped: bool, indent: int | None) -> None:
    text = json.dumps(value, ensure_ascii=escaped, indent=indent)
    assert read_loose(text, "dump") == ([json.loads(text)], [])


ALPHABET = "{}[]:,\"'\\ \n\t019-+.eELDFBSnulltrueSet$@_aÃ©\U0001f600\ud800\x00²٣ab?&*!<>|%#~é"


@settings(max_examples=500)
@given(st.text(st.sampled_from(ALPHABET)) | st.text())
@example("{" * 5000)
@example("[" * 100_000)
@example('{"a":' * 5000)
@example("Set[" * 5000)
@example("!!map [1]")
@example("!<tag:yaml.org,2002:int> x")
@example("9" * 5000)
def test_any_text_is_read_or_is_a_document_error(text: str) -> None:
    for read, begins in ((read_loose, "dump, line "), (read_yaml, "dump")):
        try:
            read(text, "dump")
        except DocumentError as error:
            assert error.message.startswith(begins)
            assert "\n" not in error.message


FASTJSON: dict[str, object] = {
    '{brokerName:"a",$ref:1,@type:2}': {"brokerName": "a", "$ref": 1, "@type": 2},
    '{{"queueId":0,"topic":"T"}:{"brokerOffset":1}}': {ObjectKey((("queueId", 0), ("topic", "T"))): {"brokerOffset": 1}},
    "1L": 1, "-7S": -7, "3B": 3, "1.5D": 1.5, "2F": 2.0,
    "Set[1,2]": [1, 2], "TreeSet[]": [], "[1,]": [1], '{"a":1,}': {"a": 1},
    r"'it\'s \"x\"'": 'it\'s "x"',
    '{"@type":"java.lang.Runtime","x":1}': {"@type": "java.lang.Runtime", "x": 1},
    "9" * MAX_DIGITS: int("9" * MAX_DIGITS),
}  # fmt: skip


@every_case(("text", "value"), FASTJSON.items())
def test_fastjson_forms_are_read(text: str, value: object) -> None:
    assert read_one(text) == value
    assert type(read_one(text)) is type(value)


def test_each_leniency_is_named_once() -> None:
    _, notes = read_loose("{0:'a',1:'b',{\"c\":1}:2L,d:Set[1,],}", "dump")
    assert sorted(notes) == [
        "a key without quotes",
        "a list written Set[…]",
        "a number with a type suffix",
        "a string in single quotes",
        "a trailing comma",
        "an object as a key",
    ]


def test_a_document_cut_anywhere_is_refused_and_two_bare_values_need_a_space_between_them() -> None:
    document = '{"a":{0:["x\\u00e9",true,1.5e3,"y"]}}'
    assert read_one(document) == {"a": {"0": ["xé", True, 1500.0, "y"]}}
    for cut in range(1, len(document)):
        assert json_problem(document[:cut]).startswith("dump, line 1, column ")
    assert read_loose('{"a":1}{"b":2}\n\n[][]{} 1 2', "x")[0] == [{"a": 1}, {"b": 2}, [], [], {}, 1, 2]
    for text in ("01", "truefalse", "1[]", "null{}"):
        assert json_problem(text)


@every_case(
    ("start", "inner", "end"),
    [("[", "1", "]"), ('{"a":', "1", "}"), ("{0:[", "1", "]}"), ("Set[", "", "]"), ('[{"a":', "{}", "}]")],
)
def test_the_depth_is_bounded_in_every_form(start: str, inner: str, end: str) -> None:
    a_step = sum(char in "[{" for char in start)
    room = MAX_DEPTH - (inner == "{}")
    read_one(start * (room // a_step) + inner + end * (room // a_step))
    too_deep = room // a_step + 1
    assert json_problem(start * too_deep + inner + end * too_deep).endswith("nested deeper than 256 levels")


BOMB = "a0: &a0 [x, x]\n" + "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 10))


def yaml_problem(text: str) -> str:
    return refusal(DocumentError, read_yaml, text, "dump.yaml").message


@every_case("number", [2**61 - 1, 1 - 2**61, 10**40])
def test_a_number_that_shares_its_hash_with_others_is_no_key(number: int) -> None:
    assert yaml_problem(f"{number}: 1") == "dump.yaml, line 1, column 1: a number too large for a key"
    assert read_yaml(f"a: {number}", "dump.yaml") == {"a": number}
    assert read_yaml(f"{2**61 - 2}: 1", "dump.yaml") == {2**61 - 2: 1}


TEXTS = (
    *("no", "Yes", "on", "010", "0x1F", "0o17", "1_000", "1:30", "2026-01-01", "2026-11-21T02:02:07Z", "1e5", ".5"),
    *(".nan", "=", "V5_5_0", "127.0.0.1:10911"),
)


@every_case(("text", "value"), [
    *((text, text) for text in TEXTS),
    *[("-7", -7), ("+7", 7), ("0", 0), ("1.5", 1.5), ("1.0e+3", 1000.0)],
    *[("true", True), ("FALSE", False), ("null", None), ("~", None), ("", None), ("''", "")],
])  # fmt: skip
def test_only_plain_kinds_of_values_are_recognised(text: str, value: object) -> None:
    read: Any = read_yaml(f"a: {text}", "dump.yaml")
    assert read == {"a": value}
    assert type(read["a"]) is type(value)


def test_more_than_the_memory_should_hold_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert issubclass(yaml_text._BASE, yaml.CSafeLoader)
    assert yaml_problem(BOMB) == "dump.yaml, line 2: YAML aliases are not supported"
    size = yaml_text._MAX_CHARACTERS
    assert read_yaml("#" * size, "dump.yaml") is None
    assert yaml_problem("#" * (size + 1)) == "dump.yaml: not JSON, and larger than the 12 MB for YAML"
    monkeypatch.setattr(yaml_text, "_MAX_NODES", 9)
    assert yaml_problem("[1, 2, 3, 4, 5, 6]") == "dump.yaml, line 1: more than 9 YAML nodes"
    assert read_yaml("[1, 2]", "dump.yaml") == [1, 2]


class _Plain(yaml.CSafeLoader):
    """PyYAML's own loader with the few kinds of values that are recognised."""

    yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {}  # type: ignore[misc]


for tag, pattern, first in (
    ("null", r"~|null|Null|NULL|", "~nN"),
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?(?:0|[1-9][0-9]*)", "-+0123456789"),
    ("float", r"[-+]?[0-9]+\.[0-9]*(?:[eE][-+][0-9]+)?", "-+0123456789"),
):
    _Plain.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(f"^(?:{pattern})$"), [*first, ""])
YAML_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text() | st.integers(-(2**60), 2**60), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(YAML_VALUES, st.booleans(), st.sampled_from([None, "'", '"', "|"]))
def test_what_the_library_writes_is_read_as_the_library_reads_it(value: object, flow: bool, style: str | None) -> None:
    text = yaml.safe_dump(value, default_flow_style=flow, default_style=style, allow_unicode=True)
    assume("!" not in text)
    assert read_yaml(text, "dump.yaml") == yaml.load(text, Loader=_Plain)


def test_each_key_and_each_item_of_a_list_has_its_line() -> None:
    items = {("b", 0): 3, ("b", 1): 4, ("b", 1, "d"): 4, ("b", 1, "c"): 5}
    lines = {(): 1, ("a",): 1, ("b",): 2, **items, ("0",): 6}
    assert lines_of("a: 1\nb:\n  - x\n  - d: 1\n    c: 2\n0: []\n") == lines


SECRETS = ("c4nary-secret", "4711")
CODES = {"policy": "policy-invalid", "configuration": "config-invalid"}
READERS_OF: dict[str, tuple[str, Callable[[str, str], object]]] = {
    "policy": ("FILE", lambda text, path: parse_policy(text, path, NAMES)),
    "configuration": ("FILE", lambda _, path: read_user_file(path, check_value)),
    "YAML": ("FILE", read_yaml),
    "JSON": ("FILE", read_loose),
    "route": ("route of T", lambda text, _: parse_route(text, "T")),
    "file": ("stdin", lambda text, _: read_document(text.encode(), "stdin")),
    "header": ("", lambda text, _: decode_json_header(text.encode(), None)),
}
"""Where an error begins, and what reads a text, which is also at a path."""


def cases() -> Iterator[tuple[str, str, str, str | None]]:
    reader = ""
    for block in (DATA / "wrong_texts.txt").read_text(encoding="utf-8").strip().split("\n\n")[1:]:
        if block.startswith("## "):
            reader = block[3:]
            continue
        spelled = re.sub(r"<([^<>]+?)\*(\d+)>", lambda found: found[1] * int(found[2]), block)
        text, _, error = f"\n{spelled}".rpartition("\n! ")
        problem, _, hint = error.partition("\nhint: ")
        yield reader, text[1:], problem, hint or None


@every_case(("reader", "text", "problem", "hint"), cases(), ids=lambda value: repr(value)[:60])
def test_a_wrong_text_says_where(reader: str, text: str, problem: str, hint: str | None, tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text(text, encoding="utf-8")
    path.chmod(0o600)
    begins, read = READERS_OF[reader]
    caught = refusal(RmqlbError, read, text, str(path))
    assert caught.message == begins.replace("FILE", str(path)) + problem
    assert caught.hint == hint
    assert reader not in CODES or caught.code == CODES[reader]
    assert not [secret for secret in SECRETS if secret in f"{caught.message}{hint}"]
