import json
import re
import tracemalloc
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rmqlb.errors import ProtocolError, UsageError
from rmqlb.remoting.codes import RequestCode
from rmqlb.remoting.command import RemotingCommand, request
from rmqlb.remoting.frame import MAX_FRAME, MAX_HEADER, Exchange, FrameDecoder, encode_frame
from tests.support.figures import FIGURES
from tests.support.mismatches import every_case

from .vectors import CAPTURES, JSON_FRAMES, Capture, capture, frame

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


def events(stream: list[bytes], max_frame: int = MAX_FRAME) -> list[RemotingCommand | str]:
    decoder = FrameDecoder(max_frame=max_frame)
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


def test_captures_follow_one_another_and_each_has_a_name_of_its_own() -> None:
    assert FrameDecoder().feed(b"".join(one.frame for one in CAPTURES)) == [decoded(one) for one in CAPTURES]
    assert len({one.name for one in CAPTURES}) == len(CAPTURES) == 54


def test_binary_answers_say_what_the_json_answers_say() -> None:
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


@every_case(
    ("stream", "message"),
    [
        (int32(4), None),
        (int32(MAX_FRAME - 4), None),
        (int32(10) + int32(7), "header length 7 is more than the 6 that can be"),
        (int32(MAX_FRAME - 4) + int32(MAX_HEADER + 1), f"header length {MAX_HEADER + 1} is more than the {MAX_HEADER} that can be"),
        *((frame(HEADER, serialize_type=form), f"serialize type {form} is neither 0 (JSON) nor 1 (ROCKETMQ)") for form in (2, 127, 128, 255)),
    ],
)  # fmt: skip
def test_lengths_are_checked_as_soon_as_they_are_there(stream: bytes, message: str | None) -> None:
    assert events([stream]) == [message or "the stream ended inside a frame"]


def test_an_error_behind_good_frames_comes_after_them_and_stays() -> None:
    decoder = FrameDecoder()
    assert len(decoder.feed(GOOD + GOOD + int32(-1) + GOOD)) == 2
    assert decoder.broken
    for _ in range(2):
        with pytest.raises(ProtocolError, match="frame length -1"):
            decoder.feed(b"")


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


ROUTE = request(RequestCode.GET_ROUTEINFO_BY_TOPIC, topic="OrderEvents")


def answer(opaque: int, body: bytes | None = None) -> bytes:
    return encode_frame(RemotingCommand(code=0, flag=1, opaque=opaque, body=body))


def test_requests_are_numbered_and_only_the_response_to_the_last_one_is_taken() -> None:
    exchange = Exchange()
    for opaque in (1, 2, 3):
        assert FrameDecoder().feed(exchange.send(ROUTE)) == [replace(ROUTE, opaque=opaque)]
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
    exchange.send(ROUTE)
    assert exchange.receive(answer(1) + b"HTTP/1.1 400 Bad Request") is not None
    assert exchange.broken
    for _ in range(2):
        with pytest.raises(ProtocolError, match="frame length 1213486160"):
            exchange.receive(b"")
