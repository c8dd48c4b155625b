"""Frames and commands that the tests of this folder share.

`CAPTURES` are answers of real servers (`tests/data/remoting`). `JSON_FRAMES` and `BINARY_FRAMES` are what
`RemotingCommand.encode` of the released 4.9.7 and 5.5.0 classes wrote, both the same, for the commands beside them,
sent by Java, Python and OMS.
"""

import json
import re
import traceback
import tracemalloc
from dataclasses import FrozenInstanceError, replace
from itertools import pairwise
from typing import Any, NamedTuple

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rmqlb.errors import ProtocolError, UsageError
from rmqlb.remoting.acl import Credentials, sign
from rmqlb.remoting.codes import READ_ONLY, RequestCode, ResponseCode
from rmqlb.remoting.command import RemotingCommand, request, version_text
from rmqlb.remoting.frame import MAX_FRAME, MAX_HEADER, Exchange, FrameDecoder, RequestNotAllowedError, encode_frame
from rmqlb.remoting.header import decode_binary_header, decode_json_header, encode_json_header
from rmqlb.sources.native.source import query_assignment
from tests.support.mismatches import FIGURES, captured_frames, every_case, refusal


class Capture(NamedTuple):
    name: str
    server: str
    serialize_type: int
    frame: bytes
    request_code: int
    ext_fields: dict[str, str]
    response_code: int
    body_bytes: int


CAPTURES = tuple(
    Capture(f"{folder}/{name}".strip("/"), *(e["server"], form, e["frame"], e["code"]), e["extFields"], e["responseCode"], e["bodyBytes"])
    for folder, form in (("", 0), ("binary", 1))
    for name, e in captured_frames(folder).items()
)  # fmt: skip


def capture(name: str) -> Capture:
    return next(one for one in CAPTURES if one.name == name)


ROUTE = RemotingCommand(code=105, version=453, ext_fields={"topic": "T"})
RICH = RemotingCommand(
    code=17, version=513, opaque=-(2**31), flag=1, remark="kein \u00dc \u20ac \U0001f600\n",
    ext_fields={"a": "\u4e2d", "k": ""}, body=b"\x00\xff\x01",
)  # fmt: skip
BARE = RemotingCommand(code=-1000, version=32767, opaque=2**31 - 1, flag=3, remark="")

_JSON_ROUTE = (
    b'{"code":105,"extFields":{"topic":"T"},"flag":0,"language":"JAVA","opaque":0,'
    b'"serializeTypeCurrentRPC":"JSON","version":453}'
)
_JSON_RICH = (
    '{"code":17,"extFields":{"a":"\u4e2d","k":""},"flag":1,"language":"PYTHON","opaque":-2147483648,'
    '"remark":"kein \u00dc \u20ac \U0001f600\\n","serializeTypeCurrentRPC":"JSON","version":513}'
).encode()
_JSON_BARE = (
    b'{"code":-1000,"flag":3,"language":"OMS","opaque":2147483647,"remark":"",'
    b'"serializeTypeCurrentRPC":"JSON","version":32767}'
)

JSON_FRAMES = {
    "route": (ROUTE, bytes.fromhex("0000007f 0000007b") + _JSON_ROUTE),
    "rich": (RICH, bytes.fromhex("000000b0 000000a9") + _JSON_RICH + b"\x00\xff\x01"),
    "bare": (BARE, bytes.fromhex("0000007d 00000079") + _JSON_BARE),
}
BINARY_FRAMES = {
    name: (command, bytes.fromhex(written))
    for name, command, written in (
        ("route", ROUTE, "00000025 01000021 0069 00 01c5 00000000 00000000 00000000 0000000c 0005 746f706963 00000001 54"),
        ("rich", RICH, ("0000003e 01000037 0011 03 0201 80000000 00000001 00000011 6b65696e20c39c20e282ac20f09f98800a 00000011"
                       "0001 61 00000003 e4b8ad 0001 6b 00000000 00ff01")),
        ("bare", BARE, "00000019 01000015 fc18 0b 7fff 7fffffff 00000003 00000000 00000000"),
    )
}  # fmt: skip


def frame(header: bytes, body: bytes = b"", serialize_type: int = 0) -> bytes:
    meta = serialize_type << 24 | len(header)
    return (4 + len(header) + len(body)).to_bytes(4, "big") + meta.to_bytes(4, "big") + header + body


HEADER = b'{"code":0,"flag":1,"opaque":1}'
GOOD = frame(HEADER)
LENGTHS = 8
"""Bytes of the two lengths before the header."""
INT32 = st.integers(-(2**31), 2**31 - 1)
TEXT = st.text(st.characters(codec="utf-8"), max_size=20)
COMMANDS = st.builds(
    RemotingCommand,
    *(INT32, INT32, INT32, INT32, st.none() | TEXT),
    *(st.dictionaries(TEXT, TEXT, max_size=5), st.none() | st.binary(min_size=1, max_size=50)),
)


def int32(number: int) -> bytes:
    return number.to_bytes(4, "big", signed=True)


@st.composite
def pieces(draw: st.DrawFn, stream: bytes) -> list[bytes]:
    cuts = sorted(draw(st.lists(st.integers(0, len(stream)), max_size=10)))
    return [stream[start:end] for start, end in pairwise([0, *cuts, len(stream)])]


def events(stream: list[bytes]) -> list[RemotingCommand | str]:
    decoder = FrameDecoder()
    seen: list[RemotingCommand | str] = []
    try:
        for piece in stream:
            seen += decoder.feed(piece)
        decoder.feed(b"")  # raises the error behind the last command
        if decoder._buffer:
            seen.append("the stream ended inside a frame")
    except ProtocolError as error:
        assert "\n" not in error.message
        seen.append(error.message)
    return seen


def decoded(one: Capture) -> RemotingCommand:
    (command,) = FrameDecoder().feed(one.frame)
    return command


@every_case("one", CAPTURES, ids=lambda one: one.name)
def test_a_capture_is_one_response_that_says_what_the_manifest_and_its_header_say(one: Capture) -> None:
    command = decoded(one)
    assert (command.is_response, command.code, command.opaque) == (True, one.response_code, 1)
    assert (command.body or b"") == one.frame[len(one.frame) - one.body_bytes :]
    assert command.version == {"5.5.0": 513, "4.9.7": 407}[one.server]
    if one.serialize_type == 0:
        header = json.loads(one.frame[LENGTHS : len(one.frame) - one.body_bytes])
        assert (command.remark, dict(command.ext_fields)) == (header.get("remark"), header.get("extFields", {}))
        assert FrameDecoder().feed(encode_frame(command)) == [command]
    for cut in range(1, len(one.frame)):
        assert FrameDecoder().feed(one.frame[:cut]) == []
        assert command not in events([one.frame[cut:]])
        FIGURES["places where captured frames were cut"] += 1


def test_captures_follow_one_another_and_binary_ones_say_what_the_json_ones_say() -> None:
    assert FrameDecoder().feed(b"".join(one.frame for one in CAPTURES)) == [decoded(one) for one in CAPTURES]
    assert len({one.name for one in CAPTURES}) == len(CAPTURES) == 54
    for name in ("route-missing", "order-conf", "b0-consumer-ids-missing"):
        binary, text = (decoded(capture(f"{folder}5.5.0-{name}")) for folder in ("binary/", ""))
        assert binary == text
    assert decoded(capture("binary/5.5.0-b0-subscription-groups")).ext_fields == {"totalGroupNum": "8"}
    assert json.loads(decoded(capture("binary/5.5.0-route")).body or b"")["queueDatas"]


@every_case("name", JSON_FRAMES)
def test_frames_are_those_that_java_writes(name: str) -> None:
    command, expected = JSON_FRAMES[name]
    assert FrameDecoder().feed(expected) == [command]
    written = re.sub(rb'"language":"[A-Z]+"', b'"language":"PYTHON"', expected)
    assert encode_frame(command)[LENGTHS:] == written[LENGTHS:]
    assert b"PYTHON" not in expected or encode_frame(command) == expected


@given(st.data(), st.lists(COMMANDS, max_size=3), st.just(b"") | st.binary(max_size=40))
def test_a_stream_may_be_cut_anywhere(data: st.DataObject, commands: list[RemotingCommand], garbage: bytes) -> None:
    stream = b"".join(map(encode_frame, commands)) + garbage
    whole = events([stream])
    assert whole[: len(commands)] == commands
    assert garbage or whole == commands
    assert events(data.draw(pieces(stream))) == events([stream[at : at + 1] for at in range(len(stream))]) == whole


@given(st.binary(max_size=200), st.binary(max_size=20), st.integers(0, 1))
@example(int32(4) + int32(0), b"", 0)
@example(int32(25) + bytes([1, 0, 0, 21]) + bytes(21), b"", 1)
def test_any_bytes_give_commands_or_a_protocol_error(data: bytes, body: bytes, serialize_type: int) -> None:
    events([data])
    assert len(events([frame(data, body, serialize_type)])) == 1
    exchange = Exchange()
    exchange.send(request(RequestCode.GET_BROKER_CLUSTER_INFO))
    try:
        exchange.receive(data)
    except ProtocolError:
        assert exchange.broken


@every_case("total", [-(2**31), -1, 0, 1, 3, MAX_FRAME - 3, 2**31 - 1])
def test_a_frame_length_out_of_bounds_is_refused_when_its_fourth_byte_arrives(total: int) -> None:
    decoder = FrameDecoder()
    assert decoder.feed(int32(total)[:3]) == []
    with pytest.raises(ProtocolError, match=f"frame length {total} is not between 4 and 16777212"):
        decoder.feed(int32(total)[3:])


@every_case(("stream", "message"), [
    (int32(4), None),
    (int32(MAX_FRAME - 4), None),
    (int32(10) + int32(7), "header length 7 exceeds the maximum of 6"),
    (int32(MAX_FRAME - 4) + int32(MAX_HEADER + 1), f"header length {MAX_HEADER + 1} exceeds the maximum of {MAX_HEADER}"),
    *((frame(HEADER, serialize_type=form), f"serialize type {form} is neither 0 (JSON) nor 1 (ROCKETMQ)") for form in (2, 127, 128, 255)),
])  # fmt: skip
def test_lengths_are_checked_as_soon_as_they_are_there(stream: bytes, message: str | None) -> None:
    assert events([stream]) == [message or "the stream ended inside a frame"]


def test_an_error_behind_good_frames_comes_after_them_and_stays() -> None:
    decoder = FrameDecoder()
    assert len(decoder.feed(GOOD + GOOD + int32(-1) + GOOD)) == 2
    assert decoder.broken
    for _ in range(2):
        assert "frame length -1" in refusal(ProtocolError, decoder.feed, b"").message


def peak(stream: list[bytes]) -> int:
    tracemalloc.start()
    try:
        events(stream)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_hostile_lengths_take_no_memory_and_a_large_frame_a_small_multiple_of_its_size() -> None:
    lengths = [int32(total) for total in (2**31 - 1, MAX_FRAME - 3, MAX_FRAME - 4, -1, 0, 4)]
    metas = [int32(meta) for meta in (0x00FFFFFF, 0x01FFFFFF, 0x7FFFFFFF, -1, 0)]
    long_field = frame(bytes(13) + int32(2**31 - 1) + bytes(4), serialize_type=1)
    streams = [length + meta for length in lengths for meta in metas] + [long_field]
    streams += [length + one.frame[4:] for length in lengths for one in CAPTURES]
    events(streams[:1])
    most = max(peak([stream]) - len(stream) for stream in streams)
    assert most <= 64 * 1024
    FIGURES["bytes at the most beside a frame whose length lies"] = most
    large = frame(HEADER, bytes(2**20))
    assert peak([large[at : at + 1000] for at in range(0, len(large), 1000)]) < 3 * len(large)


def test_a_number_beyond_32_bits_and_text_that_is_not_unicode_are_not_encoded() -> None:
    for name in ("code", "version", "opaque", "flag"):
        with pytest.raises(ValueError, match="does not fit"):
            encode_frame(RemotingCommand(**({"code": 0} | {name: 2**31})))  # type: ignore[arg-type]
    for fields in ({"topic": "caf\udce9"}, {"\udce9": "T"}):
        with pytest.raises(UsageError, match="not valid text") as caught:
            encode_frame(RemotingCommand(code=105, ext_fields=fields))
        assert "\udce9" not in caught.value.message


ASKED_ROUTE = request(RequestCode.GET_ROUTEINFO_BY_TOPIC, topic="OrderEvents")


def answer(opaque: int, body: bytes | None = None) -> bytes:
    return encode_frame(RemotingCommand(code=0, flag=1, opaque=opaque, body=body))


def test_requests_are_numbered_and_only_the_response_to_the_last_one_is_taken() -> None:
    exchange = Exchange()
    for opaque in (1, 2, 3):
        assert FrameDecoder().feed(exchange.send(ASKED_ROUTE)) == [replace(ASKED_ROUTE, opaque=opaque)]
    notice = RemotingCommand(code=40, flag=2, opaque=3, ext_fields={"consumerGroup": "order-svc"})
    stream = answer(1) + answer(2) + encode_frame(notice) + answer(3, b"x")
    for piece in (stream[at : at + 1] for at in range(len(stream) - 1)):
        assert exchange.receive(piece) is None
    response = exchange.receive(stream[-1:])
    assert response is not None
    assert (response.body, exchange.unknown_answers) == (b"x", 0)
    assert exchange.receive(answer(4) + answer(0) + answer(-5)) is None
    assert exchange.unknown_answers == 3


def test_garbage_behind_an_answer_breaks_the_connection_after_it() -> None:
    exchange = Exchange()
    exchange.send(ASKED_ROUTE)
    assert exchange.receive(answer(1) + b"HTTP/1.1 400 Bad Request") is not None
    assert exchange.broken
    for _ in range(2):
        assert "frame length 1213486160" in refusal(ProtocolError, exchange.receive, b"").message


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
    assert "version -1 is not one" in refusal(ProtocolError, version_text, -1).message


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
        assert "is empty" in refusal(UsageError, Credentials, *keys).message


def test_an_assignment_is_asked_for_in_the_body() -> None:
    made = query_assignment("g", "T", "id", "AVG")
    fields = {"clientId": "id", "consumerGroup": "g", "messageModel": "CLUSTERING", "strategyName": "AVG", "topic": "T"}
    assert (made.code, made.ext_fields, json.loads(made.body or b"")) == (400, {}, fields)


LEAST = '"code":1,"flag":1,"opaque":7'
PLAIN = RemotingCommand(code=1, flag=1, opaque=7, version=0)


def header_problem(header: bytes | str) -> str:
    body = header if isinstance(header, bytes) else header.encode()
    return refusal(ProtocolError, decode_json_header, body, None).message


# The texts of extFields are what RemotingCommand.decode of 4.9.7 and 5.5.0 gave.
@every_case(("member", "expected"), [
    ('"remark":null,"extFields":null,"version":null', {}),
    ('"suspended":false,"extra":{"y":[1,{"z":null}]}', {}),
    *((f'"language":{language}', {}) for language in ('"JAVA"', '"KLINGON"', "null", "3")),
    ('"remark":"\\ud83d\\ude00"', {"remark": "\U0001f600"}),
    *((f'"extFields":{{"k":{value},"l":null}}', {"ext_fields": {"k": value.strip('"')}}) for value in ('"31"', '""', "31", "true", "false", "1.50", "123456789012345678901234567890")),
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
    wrong = (
        f"missing required field {name}" if not value else "out of range at $." if "9" * 20 in value else f"$.{name}"
    )
    assert wrong in header_problem(f"{{{header}}}")
    assert header_problem(b'{"code":1,"remark":"\xff"}') == "header is not UTF-8 at byte 20"
    assert header_problem(b'\xef\xbb\xbf{"code":1}') == "header: JSON is malformed: invalid character (byte 0)"
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
        assert "but has only" in refusal(ProtocolError, decode_binary_header, header[:cut], None).message


FIXED, NONE = bytes.fromhex("0001 63 0005 00000007 00000001"), bytes(4)


def fields(*parts: bytes) -> bytes:
    data = b"".join(parts)
    return FIXED + NONE + int32(len(data)) + data


@every_case(("header", "message"), [
    (FIXED + int32(-1) + NONE, "header announces -1 bytes, but has only 4 left"),
    (FIXED + int32(5) + NONE, "header announces 5 bytes, but has only 4 left"),
    (FIXED + int32(2**31 - 1) + NONE, "header announces 2147483647 bytes, but has only 4 left"),
    (FIXED + NONE + int32(-(2**31)), "header announces -2147483648 bytes, but has only 0 left"),
    (FIXED + NONE + int32(1), "header announces 1 bytes, but has only 0 left"),
    (FIXED + NONE + NONE + b"{}", "header has 2 bytes after its last field"),
    (FIXED + int32(1) + b"\xff" + NONE, "header's remark is not UTF-8 at byte 0"),
    (fields(b"\0"), "header announces 2 bytes, but has only 1 left"),
    (fields(b"\xff\xff"), "header announces -1 bytes, but has only 0 left"),
    (fields(b"\0\x02k"), "header announces 2 bytes, but has only 1 left"),
    (fields(b"\0\x01k"), "header announces 4 bytes, but has only 0 left"),
    (fields(b"\0\x01k", int32(9), b"v"), "header announces 9 bytes, but has only 1 left"),
    (fields(b"\0\x01k", NONE, b"\0\x01k", NONE), "header names a key twice"),
    (fields(b"\0\x01\xc3", NONE), "header's name in extFields is not UTF-8 at byte 0"),
    (fields(b"\0\x01k", int32(3), b"\xed\xa0\x80"), "header's value in extFields is not UTF-8 at byte 0"),
])  # fmt: skip
def test_a_length_that_leads_astray_is_refused(header: bytes, message: str) -> None:
    assert refusal(ProtocolError, decode_binary_header, header, None).message == message
    command = decode_binary_header(fields(b"\0\x01k", NONE, b"\0\0", NONE), None)  # texts of length 0
    assert (command.remark, command.ext_fields) == (None, {"k": "", "": ""})
