import json
import traceback
from dataclasses import FrozenInstanceError, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmqlb.errors import ProtocolError, UsageError
from rmqlb.remoting.acl import Credentials, sign
from rmqlb.remoting.codes import READ_ONLY, RequestCode, ResponseCode
from rmqlb.remoting.command import RemotingCommand, request, version_text
from rmqlb.remoting.frame import Exchange, FrameDecoder, RequestNotAllowedError
from rmqlb.remoting.header import decode_binary_header, decode_json_header, encode_json_header
from rmqlb.sources.native.source import query_assignment
from tests.support.mismatches import every_case

from .vectors import BINARY_FRAMES

CLUSTER = request(RequestCode.GET_BROKER_CLUSTER_INFO)


def test_the_list_is_what_it_was_and_a_request_may_be_sent() -> None:
    assert sorted(READ_ONLY) == [14, 28, 29, 30, 31, 105, 106, 201, 203, 206, 208, 307, 351, 400, 402, 200055]
    made = request(RequestCode.GET_CONSUMER_RUNNING_INFO, consumerGroup="g", jstackEnable=False, queueId=-1)
    assert made.ext_fields == {"consumerGroup": "g", "jstackEnable": "false", "queueId": "-1"}
    assert (made.code, made.body, made.opaque, made.flag) == (307, None, 0, 0)
    assert made.version == 513
    assert FrameDecoder().feed(Exchange().send(made)) == [replace(made, opaque=1)]


@given(st.integers(-(2**31), 2**31 - 1) | st.sampled_from(sorted(READ_ONLY)), st.sampled_from([0, 0, 1, 2, 3, 4, -1]))
def test_nothing_is_sent_but_a_request_on_the_list_that_wants_a_response(code: int, flag: int) -> None:
    try:
        Exchange().send(RemotingCommand(code=code, flag=flag))
    except RequestNotAllowedError:
        assert code not in READ_ONLY or flag
    else:
        assert code in READ_ONLY
        assert flag == 0


CODES = """
    0 SUCCESS  1 SYSTEM_ERROR  3 REQUEST_CODE_NOT_SUPPORTED  16 NO_PERMISSION  17 TOPIC_NOT_EXIST  22 QUERY_NOT_FOUND
    26 SUBSCRIPTION_GROUP_NOT_EXIST  206 CONSUMER_NOT_ONLINE  1500 GO_AWAY  2018 LITE_SUBSCRIPTION_QUOTA_EXCEEDED
    -1006 RPC_TIME_OUT
"""
VERSIONS = """
    0 V3_0_0_SNAPSHOT  1 V3_0_0_ALPHA1  7 V3_0_0_BETA6_SNAPSHOT  15 V3_0_0_FINAL  16 V3_0_1_SNAPSHOT  45 V3_0_15
    46 V3_1_0_SNAPSHOT  65 V3_1_9  66 V3_2_0_SNAPSHOT  83 V3_2_8  85 V3_2_9  86 V3_3_1_SNAPSHOT  103 V3_3_9
    104 V3_4_1_SNAPSHOT  211 V3_9_9  212 V4_0_0_SNAPSHOT  213 V4_0_0  373 V4_8_0  399 V4_9_3  401 V4_9_4  407 V4_9_7
    409 V4_9_8  412 V5_0_0_SNAPSHOT  413 V5_0_0  441 V5_1_4  453 V5_2_0  479 V5_3_3  513 V5_5_0
    610 V5_9_9_SNAPSHOT  611 V5_9_9  612 HIGHER_VERSION  9999 HIGHER_VERSION
"""
"""What MQVersion.getVersionDesc of 4.9.7 and 5.5.0 printed, the edges of every run of releases among them."""


def numbered(text: str) -> dict[int, str]:
    words = iter(text.split())
    return {int(number): name for number, name in zip(words, words, strict=True)}


def test_codes_and_versions_have_the_names_that_rocketmq_gives_them() -> None:
    codes, versions = numbered(CODES), numbered(VERSIONS)
    assert {code: ResponseCode(code).name for code in codes} == codes
    assert {ordinal: version_text(ordinal) for ordinal in versions} == versions
    with pytest.raises(ProtocolError, match="version -1 is not one"):
        version_text(-1)


def test_a_command_is_not_changed_through_what_it_was_made_from() -> None:
    fields = {"topic": "T"}
    command = RemotingCommand(code=105, ext_fields=fields)
    fields["topic"] = "U"
    assert command.ext_fields == {"topic": "T"}
    with pytest.raises(TypeError):
        command.ext_fields["topic"] = "U"  # type: ignore[index]
    with pytest.raises(FrozenInstanceError):
        command.code = 17  # type: ignore[misc]


SECRET, TOKEN = "canary-secret-4711", "canary-token-4712"
# Signatures written by AclClientRPCHook of 4.9.7 and 5.5.0. U+1F600 sorts before U+FFEE in UTF-16, behind it otherwise.
ASKED = RemotingCommand(
    14, ext_fields={"bname": "broker-a", "consumerGroup": "g", "queueId": "3", "topic": "T"}, body=b"{}"
)
SORTED = RemotingCommand(300, ext_fields={"topic": "T", "\uffee": "1", "\U0001f600": "2"})
SIGNED = [
    (Credentials("rocketmq2", "12345678"), request(RequestCode.GET_ROUTEINFO_BY_TOPIC, topic="TopicTest"), "GeeGoP9mRvDhoVp4PD5omX0prgE="),
    (Credentials("ak", "sk", "tok"), ASKED, "oOAXCrBmZn4wPD8EFAJ+nPFx/Uk="),
    (Credentials("ak\u00fc", "s\u20ack"), CLUSTER, "u/tfg0RMSxcUCahDMS4aS6qUo2c="),
    (Credentials("ak", "sk"), SORTED, "mtVF54ybXsa3+Mwb3uZKq64C6xg="),
]  # fmt: skip


@every_case(("credentials", "command", "signature"), SIGNED)
def test_signatures_are_those_of_java(credentials: Credentials, command: RemotingCommand, signature: str) -> None:
    signed = sign(command, credentials)
    assert signed.ext_fields["Signature"] == signature
    added = {"AccessKey", "Signature"} | ({"SecurityToken"} if credentials.security_token else set())
    assert signed.ext_fields.keys() - command.ext_fields.keys() == added
    assert sign(signed, credentials) == signed


def test_no_secret_and_no_body_is_printed() -> None:
    credentials = Credentials("ak", SECRET, TOKEN)
    signed = sign(RemotingCommand(105, ext_fields={"topic": "T"}, body=b"secret body"), credentials)
    texts = [repr(credentials), f"{credentials}", repr(signed), f"{signed}", f"{[credentials, signed]}"]
    assert texts[0] == "Credentials(access_key='ak', secret_key='***', security_token='***')"
    assert repr(Credentials("ak", SECRET)) == "Credentials(access_key='ak', secret_key='***', security_token=None)"
    for text in texts:
        assert not [each for each in (SECRET, TOKEN, signed.ext_fields["Signature"], "secret body") if each in text]
    assert "'AccessKey': 'ak'" in texts[2]
    assert "body=11 bytes" in texts[2]


def test_a_secret_that_is_empty_or_not_text_is_refused_without_being_shown() -> None:
    for credentials in (Credentials("ak", SECRET + "\udce9"), Credentials("ak", "sk", SECRET + "\udce9")):
        with pytest.raises(UsageError, match="is not valid text") as caught:
            sign(CLUSTER, credentials)
        assert SECRET not in "".join(traceback.format_exception(caught.value))
        assert caught.value.__context__ is None
    for keys in (("", "sk"), ("ak", "")):
        with pytest.raises(UsageError, match="is empty"):
            Credentials(*keys)


def test_an_assignment_is_asked_for_in_the_body() -> None:
    made = query_assignment("g", "T", "id", "AVG")
    fields = {"clientId": "id", "consumerGroup": "g", "messageModel": "CLUSTERING", "strategyName": "AVG", "topic": "T"}
    assert (made.code, made.ext_fields, json.loads(made.body or b"")) == (400, {}, fields)


LEAST = '"code":1,"flag":1,"opaque":7'
PLAIN = RemotingCommand(code=1, flag=1, opaque=7, version=0)


def refusal(header: bytes | str) -> str:
    with pytest.raises(ProtocolError) as caught:
        decode_json_header(header if isinstance(header, bytes) else header.encode(), None)
    assert "\n" not in caught.value.message
    return caught.value.message


# The texts of extFields are what RemotingCommand.decode of 4.9.7 and 5.5.0 gave.
@every_case(("member", "expected"), [
    ('"remark":null,"extFields":null,"version":null', {}),
    ('"suspended":false,"extra":{"y":[1,{"z":null}]}', {}),
    *((f'"language":{language}', {}) for language in ('"JAVA"', '"KLINGON"', "null", "3")),
    ('"remark":"\\ud83d\\ude00"', {"remark": "\U0001f600"}),
    *(
        (f'"extFields":{{"k":{value},"l":null}}', {"ext_fields": {"k": value.strip('"')}})
        for value in ('"31"', '""', "31", "true", "false", "1.50", "123456789012345678901234567890")
    ),
])  # fmt: skip
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
    assert refusal(b'{"code":1,"remark":"\xff"}') == "header is not UTF-8 at byte 20"
    assert refusal(b'\xef\xbb\xbf{"code":1}') == "header is not JSON: Expecting value at character 0"
    found = decode_json_header(b'{"code":-2147483648,"flag":2147483647,"opaque":-0}', None)
    assert (found.code, found.flag, found.opaque) == (-(2**31), 2**31 - 1, 0)


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
    assert (b"extFields" in encode_json_header(command)) == bool(command.ext_fields)


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


@every_case(("header", "message"), [
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
])  # fmt: skip
def test_a_length_that_leads_astray_is_refused(header: bytes, message: str) -> None:
    with pytest.raises(ProtocolError) as caught:
        decode_binary_header(header, None)
    assert caught.value.message == message
    command = decode_binary_header(fields(b"\0\x01k", NONE, b"\0\0", NONE), None)  # texts of length 0
    assert (command.remark, command.ext_fields) == (None, {"k": "", "": ""})
