"""The JSON header: what is read, what is read as Java reads it, and what is refused."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmqlb.errors import ProtocolError
from rmqlb.remoting.command import LanguageCode, RemotingCommand
from rmqlb.remoting.header import decode_json_header, encode_json_header
from tests.support.mismatches import every_case

LEAST = '"code":1,"flag":1,"opaque":7'


def decode(*members: str) -> RemotingCommand:
    return decode_json_header(("{" + ",".join(members) + "}").encode(), None)


def refusal(header: bytes | str) -> str:
    with pytest.raises(ProtocolError) as caught:
        decode_json_header(header if isinstance(header, bytes) else header.encode(), None)
    assert "\n" not in caught.value.message
    return caught.value.message


def test_code_flag_and_opaque_are_all_a_header_needs() -> None:
    assert decode(LEAST) == RemotingCommand(code=1, flag=1, opaque=7, language=LanguageCode.JAVA, version=0)


def test_null_is_the_same_as_absent() -> None:
    assert decode(LEAST, '"remark":null', '"extFields":null', '"version":null') == decode(LEAST)


def test_unknown_keys_are_skipped() -> None:
    assert decode(LEAST, '"suspended":false', '"extra":{"y":[1,{"z":null}]}') == decode(LEAST)


@every_case(
    ("member", "language"),
    [
        ('"language":"CPP"', LanguageCode.CPP),
        ('"language":"NODE_JS"', LanguageCode.NODE_JS),
        ('"language":"KLINGON"', LanguageCode.OTHER),
        ('"language":null', LanguageCode.OTHER),
        ('"x":0', LanguageCode.JAVA),
    ],
)
def test_an_unknown_language_is_other_and_a_missing_one_java(member: str, language: LanguageCode) -> None:
    assert decode(LEAST, member).language is language


# The texts on the right are what RemotingCommand.decode of 4.9.7 and 5.5.0 gave.
@every_case(
    ("value", "text"),
    [
        ('"31"', "31"),
        ('""', ""),
        ("31", "31"),
        ("true", "true"),
        ("false", "false"),
        ("1.50", "1.50"),
        ("123456789012345678901234567890", "123456789012345678901234567890"),
    ],
)
def test_ext_field_values_become_the_text_that_java_gives_them(value: str, text: str) -> None:
    fields = decode(LEAST, f'"extFields":{{"k":{value}}}').ext_fields
    assert fields == {"k": text}
    assert type(fields["k"]) is str


def test_an_ext_field_that_is_null_is_left_out() -> None:
    assert decode(LEAST, '"extFields":{"k":null,"l":"1"}').ext_fields == {"l": "1"}


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


def test_an_escaped_pair_of_surrogates_is_one_character() -> None:
    assert decode(LEAST, '"remark":"\\ud83d\\ude00"').remark == "\U0001f600"


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
