"""The dialect that RocketMQ prints, and everything that strict JSON accepts: read or refused, never altered."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rmqlb.errors import DocumentError
from rmqlb.sources.formats.limits import MAX_DEPTH
from rmqlb.sources.formats.loose_json import MAX_DIGITS, ObjectKey, read_loose
from tests.support.mismatches import every_case

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda values: st.lists(values) | st.dictionaries(TEXT, values),
    max_leaves=20,
)


def read(text: str) -> object:
    documents, _ = read_loose(text, "dump")
    assert len(documents) == 1
    return documents[0]


def problem(text: str) -> str:
    with pytest.raises(DocumentError) as caught:
        read_loose(text, "dump")
    return caught.value.message


@given(JSON_VALUES, st.booleans(), st.sampled_from([None, 1]))
def test_what_strict_json_accepts_is_read_to_equal_values(value: object, escaped: bool, indent: int | None) -> None:
    text = json.dumps(value, ensure_ascii=escaped, indent=indent)
    assert read_loose(text, "dump") == ([json.loads(text)], [])


@settings(max_examples=500)
@given(st.text(st.sampled_from("{}[]:,\"'\\ \n019-+.eELDFBSnulltrueSet$@_aÃ©\U0001f600\ud800\x00²٣")) | st.text())
@example("{" * 5000)
@example("[" * 100_000)
@example('{"a":' * 5000)
@example("Set[" * 5000)
def test_any_text_is_read_or_is_a_document_error(text: str) -> None:
    try:
        read_loose(text, "dump")
    except DocumentError as error:
        assert error.message.startswith("dump, line ")
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
    assert read(text) == value
    assert type(read(text)) is type(value)


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
    assert read(document) == {"a": {"0": ["xé", True, 1500.0, "y"]}}
    for cut in range(1, len(document)):
        assert problem(document[:cut]).startswith("dump, line 1, column ")
    assert read_loose('{"a":1}{"b":2}\n\n[][]{} 1 2', "x")[0] == [{"a": 1}, {"b": 2}, [], [], {}, 1, 2]
    for text in ("01", "truefalse", "1[]", "null{}"):
        assert problem(text)


@every_case(
    ("start", "inner", "end"),
    [("[", "1", "]"), ('{"a":', "1", "}"), ("{0:[", "1", "]}"), ("Set[", "", "]"), ('[{"a":', "{}", "}]")],
)
def test_the_depth_is_bounded_in_every_form(start: str, inner: str, end: str) -> None:
    a_step = sum(char in "[{" for char in start)
    room = MAX_DEPTH - (inner == "{}")
    read(start * (room // a_step) + inner + end * (room // a_step))
    too_deep = room // a_step + 1
    assert problem(start * too_deep + inner + end * too_deep).endswith("nested deeper than 256")
