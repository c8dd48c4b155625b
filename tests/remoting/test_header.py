from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmqlb.errors import ProtocolError
from rmqlb.remoting.command import RemotingCommand
from rmqlb.remoting.frame import FrameDecoder
from rmqlb.remoting.header import decode_binary_header, decode_json_header, encode_json_header
from tests.support.mismatches import every_case

from .vectors import BINARY_FRAMES

LEAST = '"code":1,"flag":1,"opaque":7'
PLAIN = RemotingCommand(code=1, flag=1, opaque=7, version=0)


def refusal(header: bytes | str) -> str:
    with pytest.raises(ProtocolError) as caught:
        decode_json_header(header if isinstance(header, bytes) else header.encode(), None)
    assert "\n" not in caught.value.message
    return caught.value.message


# The texts of extFields are what RemotingCommand.decode of 4.9.7 and 5.5.0 gave.
@every_case(
    ("member", "expected"),
    [
        ('"remark":null,"extFields":null,"version":null', {}),
        ('"suspended":false,"extra":{"y":[1,{"z":null}]}', {}),
        *((f'"language":{language}', {}) for language in ('"JAVA"', '"KLINGON"', "null", "3")),
        ('"remark":"\\ud83d\\ude00"', {"remark": "\U0001f600"}),
        *(
            (f'"extFields":{{"k":{value},"l":null}}', {"ext_fields": {"k": value.strip('"')}})
            for value in ('"31"', '""', "31", "true", "false", "1.50", "123456789012345678901234567890")
        ),
    ],
)
def test_what_a_json_header_says(member: str, expected: dict[str, Any]) -> None:
    assert decode_json_header(f"{{{LEAST},{member}}}".encode(), None) == replace(PLAIN, **expected)


@every_case("value", ["2147483648", "-2147483649", "1.0", "1e0", '"1"', "true", "[1]", "{}", "9" * 5000, "null", ""])
@every_case("name", ["code", "flag", "opaque", "version"])
def test_a_number_that_is_no_java_int_is_refused(name: str, value: str) -> None:
    members = {"code": "0", "flag": "1", "opaque": "1"} | {name: value}
    header = ",".join(f'"{key}":{text}' for key, text in members.items() if text)
    if name == "version" and value in ("null", ""):
        assert decode_json_header(f"{{{header}}}".encode(), None).version == 0
        return
    wrong = "missing" if value in ("null", "") else "not an integer of 32 bits"
    assert refusal(f"{{{header}}}") == f"header's {name} is {wrong}"


def test_the_bounds_of_javas_int_are_read() -> None:
    found = decode_json_header(b'{"code":-2147483648,"flag":2147483647,"opaque":-0}', None)
    assert (found.code, found.flag, found.opaque) == (-(2**31), 2**31 - 1, 0)


@every_case(
    ("header", "message"),
    [
        (b"", "header is not JSON: Expecting value at character 0"),
        (b"null", "header is not a JSON object"),
        (b"[1]", "header is not a JSON object"),
        (b"NaN", "header holds NaN, which JSON does not have"),
        (f'{{{LEAST},"x":-Infinity}}', "header holds -Infinity, which JSON does not have"),
        (f'{{{LEAST},"code":2}}', "header names a key twice"),
        (f'{{{LEAST},"extFields":{{"k":"1","k":"1"}}}}', "header names a key twice"),
        (f'{{{LEAST},"extFields":[]}}', "header's extFields is not an object"),
        (f'{{{LEAST},"extFields":"k"}}', "header's extFields is not an object"),
        (f'{{{LEAST},"extFields":{{"k":{{"x":1}}}}}}', "header's value in extFields is not text"),
        (f'{{{LEAST},"extFields":{{"k":[]}}}}', "header's value in extFields is not text"),
        (f'{{{LEAST},"remark":7}}', "header's remark is not text"),
        (f'{{{LEAST},"remark":"\\ud800"}}', "header's remark holds a lone surrogate"),
        (f'{{{LEAST},"extFields":{{"\\udfff":"1"}}}}', "header's name in extFields holds a lone surrogate"),
        (f'{{{LEAST},"extFields":{{"k":"\\udfff"}}}}', "header's value in extFields holds a lone surrogate"),
        (b'{"code":1,"remark":"\xff"}', "header is not UTF-8 at byte 20"),
        (b'\xef\xbb\xbf{"code":1}', "header is not JSON: Expecting value at character 0"),
        (f"{{{LEAST}}}{{", f"header is not JSON: Extra data at character {len(LEAST) + 2}"),
        ("[" * 100_000, "header is nested too deep"),
        ('{"a":' * 100_000, "header is nested too deep"),
    ],
)
def test_what_is_no_command_is_refused(header: bytes | str, message: str) -> None:
    assert refusal(header) == message


def test_no_ext_fields_are_left_out_of_the_header() -> None:
    assert b"extFields" not in encode_json_header(RemotingCommand(code=21))
    assert b'"extFields":{"k":""}' in encode_json_header(RemotingCommand(code=21, ext_fields={"k": ""}))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
NAMES = ("code", "flag", "opaque", "version", "language", "remark", "extFields", "x")


@given(st.dictionaries(st.sampled_from(NAMES), JSON))
def test_any_json_object_gives_a_command_or_a_protocol_error(members: dict[str, object]) -> None:
    try:
        command = decode_json_header(json.dumps(members).encode(), None)
    except ProtocolError:
        return
    assert all(type(value) is str for value in command.ext_fields.values())
    assert decode_json_header(encode_json_header(command), None) == command


@every_case("name", BINARY_FRAMES)
def test_a_binary_header_is_read_whole_or_not_at_all(name: str) -> None:
    command, written = BINARY_FRAMES[name]
    expected = replace(command, remark=command.remark or None)
    assert FrameDecoder().feed(written) == [expected]
    header = written[8 : len(written) - len(command.body or b"")]
    for cut in range(len(header)):
        with pytest.raises(ProtocolError, match="bytes left where"):
            decode_binary_header(header[:cut], None)


FIXED, NONE = bytes.fromhex("0001 63 0005 00000007 00000001"), bytes(4)


def int32(number: int) -> bytes:
    return number.to_bytes(4, "big", signed=True)


def fields(*parts: bytes) -> bytes:
    data = b"".join(parts)
    return FIXED + NONE + int32(len(data)) + data


def test_texts_of_length_0_are_no_remark_and_empty_fields() -> None:
    command = decode_binary_header(fields(b"\0\x01k", NONE, b"\0\0", NONE), None)
    assert (command.remark, command.ext_fields) == (None, {"k": "", "": ""})


@every_case(
    ("header", "message"),
    [
        (FIXED + int32(-1) + NONE, "header has 4 bytes left where -1 are announced"),
        (FIXED + int32(5) + NONE, "header has 4 bytes left where 5 are announced"),
        (FIXED + int32(2**31 - 1) + NONE, "header has 4 bytes left where 2147483647 are announced"),
        (FIXED + NONE + int32(-(2**31)), "header has 0 bytes left where -2147483648 are announced"),
        (FIXED + NONE + int32(1), "header has 0 bytes left where 1 are announced"),
        (FIXED + NONE + NONE + b"{}", "header has 2 bytes after its last field"),
        (FIXED + int32(1) + b"\xff" + NONE, "header's remark is not UTF-8 at byte 0"),
        (fields(b"\0"), "header has 1 bytes left where 2 are announced"),
        (fields(b"\xff\xff"), "header has 0 bytes left where -1 are announced"),
        (fields(b"\0\x02k"), "header has 1 bytes left where 2 are announced"),
        (fields(b"\0\x01k"), "header has 0 bytes left where 4 are announced"),
        (fields(b"\0\x01k", int32(9), b"v"), "header has 1 bytes left where 9 are announced"),
        (fields(b"\0\x01k", NONE, b"\0\x01k", NONE), "header names a key twice"),
        (fields(b"\0\x01\xc3", NONE), "header's name in extFields is not UTF-8 at byte 0"),
        (fields(b"\0\x01k", int32(3), b"\xed\xa0\x80"), "header's value in extFields is not UTF-8 at byte 0"),
    ],
)
def test_a_length_that_leads_astray_is_refused(header: bytes, message: str) -> None:
    with pytest.raises(ProtocolError) as caught:
        decode_binary_header(header, None)
    assert caught.value.message == message
