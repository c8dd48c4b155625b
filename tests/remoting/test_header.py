"""A header in its two forms: what is read, what is refused, and the bytes that Java writes."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmqlb.errors import ProtocolError
from rmqlb.remoting.command import LanguageCode, RemotingCommand, SerializeType
from rmqlb.remoting.frame import FrameDecoder, encode_frame
from rmqlb.remoting.header import decode_binary_header, decode_json_header, encode_binary_header, encode_json_header
from tests.support.mismatches import every_case

from .strategies import BINARY_COMMANDS
from .vectors import BINARY_FRAMES

LEAST = '"code":1,"flag":1,"opaque":7'


def decode(*members: str) -> RemotingCommand:
    return decode_json_header(("{" + ",".join(members) + "}").encode(), None)


def refusal(header: bytes | str) -> str:
    with pytest.raises(ProtocolError) as caught:
        decode_json_header(header if isinstance(header, bytes) else header.encode(), None)
    assert "\n" not in caught.value.message
    return caught.value.message


PLAIN = RemotingCommand(code=1, flag=1, opaque=7, language=LanguageCode.JAVA, version=0)


def field(text: str) -> dict[str, object]:
    return {"ext_fields": {"k": text}}


# The texts of extFields are what RemotingCommand.decode of 4.9.7 and 5.5.0 gave.
@every_case(
    ("member", "expected"),
    [
        ('"remark":null,"extFields":null,"version":null', {}),
        ('"suspended":false,"extra":{"y":[1,{"z":null}]}', {}),
        ('"language":"NODE_JS"', {"language": LanguageCode.NODE_JS}),
        ('"language":"KLINGON"', {"language": LanguageCode.OTHER}),
        ('"language":null', {"language": LanguageCode.OTHER}),
        ('"remark":"\\ud83d\\ude00"', {"remark": "\U0001f600"}),
        ('"extFields":{"k":"31","l":null}', field("31")),
        ('"extFields":{"k":""}', field("")),
        ('"extFields":{"k":31}', field("31")),
        ('"extFields":{"k":true}', field("true")),
        ('"extFields":{"k":false}', field("false")),
        ('"extFields":{"k":1.50}', field("1.50")),
        ('"extFields":{"k":123456789012345678901234567890}', field("123456789012345678901234567890")),
    ],
)
def test_what_a_json_header_says(member: str, expected: dict[str, Any]) -> None:
    assert decode(LEAST, member) == replace(PLAIN, **expected)


@every_case("value", ["{}", '{"x":1}', "[]", '[1,"z"]'])
def test_an_ext_field_that_is_no_scalar_is_refused(value: str) -> None:
    assert refusal(f'{{{LEAST},"extFields":{{"k":{value}}}}}') == "header's value in extFields is not text"


@every_case("name", ["code", "flag", "opaque"])
def test_a_missing_number_is_refused(name: str) -> None:
    members = {"code": 0, "flag": 1, "opaque": 1}
    assert refusal(json.dumps(members | {name: None})) == f"header's {name} is missing"
    del members[name]
    assert refusal(json.dumps(members)) == f"header's {name} is missing"


@every_case("value", ["2147483648", "-2147483649", "1.0", "1e0", '"1"', "true", "[1]", "{}", "9" * 5000])
@every_case("name", ["code", "flag", "opaque", "version"])
def test_a_number_that_is_no_java_int_is_refused(name: str, value: str) -> None:
    members = {"code": "0", "flag": "1", "opaque": "1"} | {name: value}
    header = ",".join(f'"{key}":{text}' for key, text in members.items())
    assert refusal(f"{{{header}}}") == f"header's {name} is not an integer of 32 bits"


def test_the_bounds_of_javas_int_are_read() -> None:
    assert decode('"code":-2147483648', '"flag":2147483647', '"opaque":-0').code == -(2**31)


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
        (f'{{{LEAST},"remark":7}}', "header's remark is not text"),
        (f'{{{LEAST},"remark":"\\ud800"}}', "header's remark holds a lone surrogate"),
        (f'{{{LEAST},"extFields":{{"\\udfff":"1"}}}}', "header's name in extFields holds a lone surrogate"),
        (f'{{{LEAST},"extFields":{{"k":"\\udfff"}}}}', "header's value in extFields holds a lone surrogate"),
        (f'{{{LEAST},"language":3}}', "header's language is not text"),
        (b'{"code":1,"remark":"\xff"}', "header is not UTF-8 at byte 20"),
        (b'\xef\xbb\xbf{"code":1}', "header is not JSON: Expecting value at character 0"),
        (f"{{{LEAST}}}{{", f"header is not JSON: Extra data at character {len(LEAST) + 2}"),
        (f'{{{LEAST},0:"bare"}}', None),
        ("[" * 100_000, "header is nested too deep"),
        ('{"a":' * 100_000, "header is nested too deep"),
    ],
)
def test_what_is_no_command_is_refused(header: bytes | str, message: str | None) -> None:
    assert message in {refusal(header), None}


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
        pass
    else:
        assert all(type(value) is str for value in command.ext_fields.values())
        assert decode_json_header(encode_json_header(command), None) == command


FIXED = bytes.fromhex("0001 63 0005 00000007 00000001")
NONE = bytes(4)


def int32(number: int) -> bytes:
    return number.to_bytes(4, "big", signed=True)


def fields(*parts: bytes) -> bytes:
    data = b"".join(parts)
    return FIXED + NONE + int32(len(data)) + data


@every_case("name", BINARY_FRAMES)
def test_frames_are_those_that_java_writes(name: str) -> None:
    command, expected = BINARY_FRAMES[name]
    binary = replace(command, serialize_type=SerializeType.ROCKETMQ)
    assert encode_frame(binary) == expected
    assert FrameDecoder().feed(expected) == [replace(binary, remark=binary.remark or None)]


@given(BINARY_COMMANDS)
def test_a_header_survives_encoding_and_decoding(command: RemotingCommand) -> None:
    assert decode_binary_header(encode_binary_header(command), command.body) == command


def test_texts_of_length_0_are_no_remark_and_empty_fields() -> None:
    command = decode_binary_header(fields(b"\0\x01k", NONE, b"\0\0", NONE), None)
    assert command.remark is None
    assert command.ext_fields == {"k": "", "": ""}


@every_case("name", BINARY_FRAMES)
def test_a_header_cut_anywhere_is_refused(name: str) -> None:
    header = BINARY_FRAMES[name][1][8:]
    header = header[: len(header) - len(BINARY_FRAMES[name][0].body or b"")]
    for cut in range(len(header)):
        with pytest.raises(ProtocolError, match="bytes left where"):
            decode_binary_header(header[:cut], None)


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


@every_case(
    "command",
    [
        RemotingCommand(code=2**15),
        RemotingCommand(code=200050),
        RemotingCommand(code=0, version=2**15),
        RemotingCommand(code=0, ext_fields={"k" * 2**15: ""}),
    ],
)
def test_what_does_not_fit_16_bits_is_not_encoded(command: RemotingCommand) -> None:
    with pytest.raises(ValueError, match="does not fit the 16 bits of a binary header"):
        encode_binary_header(command)
