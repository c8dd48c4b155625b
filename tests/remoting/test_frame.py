"""Frames and the exchange over them: any bytes give commands or a protocol error, in bounded memory."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from itertools import islice

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rmqlb.errors import ProtocolError, UsageError
from rmqlb.remoting.command import RemotingCommand, SerializeType
from rmqlb.remoting.frame import MAX_FRAME, MAX_HEADER, Exchange, FrameDecoder, encode_frame
from rmqlb.remoting.requests import get_broker_cluster_info, get_route_info_by_topic
from tests.support.figures import FIGURES
from tests.support.mismatches import every_case

from .strategies import COMMANDS, pieces
from .vectors import CAPTURES, JSON_FRAMES, Capture, capture, frame

HEADER = b'{"code":0,"flag":1,"opaque":1}'
GOOD = frame(HEADER)
LENGTHS = 8
"""Bytes of the two lengths before the header."""


def int32(number: int) -> bytes:
    return number.to_bytes(4, "big", signed=True)


def events(stream: list[bytes], max_frame: int = MAX_FRAME) -> list[RemotingCommand | str]:
    """All that comes of a stream: its commands, then the message of its error if there is one."""
    decoder = FrameDecoder(max_frame=max_frame)
    seen: list[RemotingCommand | str] = []
    try:
        for piece in stream:
            seen += decoder.feed(piece)
        decoder.feed(b"")  # raises the error behind the last command
        if decoder._buffer:
            seen.append("the stream ended inside a frame")
    except ProtocolError as error:
        seen.append(error.message)
    return seen


@every_case("name", JSON_FRAMES)
def test_frames_are_those_that_java_writes(name: str) -> None:
    command, expected = JSON_FRAMES[name]
    assert encode_frame(command) == expected
    assert FrameDecoder().feed(expected) == [command]


@given(COMMANDS)
def test_a_command_survives_encoding_and_decoding(command: RemotingCommand) -> None:
    assert FrameDecoder().feed(encode_frame(command)) == [command]


@given(st.data(), st.lists(COMMANDS, max_size=4))
def test_a_stream_gives_the_same_commands_however_it_is_cut(
    data: st.DataObject, commands: list[RemotingCommand]
) -> None:
    stream = b"".join(encode_frame(command) for command in commands)
    assert events(data.draw(pieces(stream))) == events([stream]) == commands


@given(st.data(), st.lists(COMMANDS, max_size=2), st.binary(max_size=40))
def test_a_stream_gives_the_same_error_however_it_is_cut(
    data: st.DataObject, commands: list[RemotingCommand], garbage: bytes
) -> None:
    stream = b"".join(encode_frame(command) for command in commands) + garbage
    whole = events([stream])
    assert events(data.draw(pieces(stream))) == whole
    assert events([stream[at : at + 1] for at in range(len(stream))]) == whole
    assert whole[: len(commands)] == commands


@given(st.binary(max_size=200))
@example(int32(4) + int32(0))
@example(int32(25) + bytes([1, 0, 0, 21]) + bytes(21))
def test_any_bytes_give_commands_or_a_protocol_error(data: bytes) -> None:
    events([data])


@given(st.binary(max_size=100), st.binary(max_size=20), st.integers(0, 1))
def test_any_header_gives_a_command_or_a_protocol_error(header: bytes, body: bytes, serialize_type: int) -> None:
    assert len(events([frame(header, body, serialize_type)])) == 1


@every_case("total", [-(2**31), -1, 0, 1, 3, MAX_FRAME - 3, 2**31 - 1])
def test_a_frame_length_out_of_bounds_is_refused_when_its_fourth_byte_arrives(total: int) -> None:
    decoder = FrameDecoder()
    assert decoder.feed(int32(total)[:3]) == []
    with pytest.raises(ProtocolError, match=f"frame length {total} is not between 4 and 16777212"):
        decoder.feed(int32(total)[3:])


@pytest.mark.parametrize("total", [4, MAX_FRAME - 4])
def test_a_frame_length_at_its_bounds_is_waited_for(total: int) -> None:
    assert FrameDecoder().feed(int32(total)) == []


def test_a_header_longer_than_its_frame_is_refused_when_its_length_arrives() -> None:
    with pytest.raises(ProtocolError, match="header length 7 is more than the 6 that can be"):
        FrameDecoder().feed(int32(10) + int32(7))


def test_a_header_longer_than_ours_is_refused_when_its_length_arrives() -> None:
    with pytest.raises(ProtocolError, match=f"more than the {MAX_HEADER} "):
        FrameDecoder().feed(int32(MAX_FRAME - 4) + int32(MAX_HEADER + 1))


@every_case("serialize_type", [2, 3, 127, 128, 255])
def test_an_unknown_serialize_type_is_refused(serialize_type: int) -> None:
    with pytest.raises(ProtocolError, match=f"serialize type {serialize_type} is neither 0"):
        FrameDecoder().feed(frame(HEADER, serialize_type=serialize_type))


def test_an_error_behind_good_frames_comes_after_them_and_stays() -> None:
    decoder = FrameDecoder()
    assert len(decoder.feed(GOOD + GOOD + int32(-1) + GOOD)) == 2
    assert decoder.broken
    for _ in range(2):
        with pytest.raises(ProtocolError, match="frame length -1"):
            decoder.feed(b"")


def test_hostile_lengths_take_no_memory() -> None:
    lengths = [int32(total) for total in (2**31 - 1, MAX_FRAME - 3, MAX_FRAME - 4, -1, 0, 4)]
    metas = [int32(meta) for meta in (0x00FFFFFF, 0x01FFFFFF, 0x7FFFFFFF, -1, 0)]
    long_field = frame(bytes(13) + int32(2**31 - 1) + bytes(4), serialize_type=SerializeType.ROCKETMQ)
    streams = [length + meta for length in lengths for meta in metas] + [long_field]
    streams += [length + one.frame[4:] for length in lengths for one in CAPTURES]
    events(streams[:1])
    most = 0
    for stream in streams:
        tracemalloc.start()
        try:
            events([stream])
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak - len(stream) <= 64 * 1024, stream[:8]
        most = max(most, peak - len(stream))
    FIGURES["bytes at the most beside a frame whose length lies"] = most


def test_a_large_frame_in_small_pieces_takes_a_small_multiple_of_its_size() -> None:
    body = bytes(2**20)
    stream = frame(HEADER, body)
    decoder = FrameDecoder()
    tracemalloc.start()
    try:
        for at in range(0, len(stream), 1000):
            commands = decoder.feed(stream[at : at + 1000])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert commands[0].body == body
    assert peak < 3 * len(stream)


@every_case("name", ["code", "version", "opaque", "flag"])
@every_case("serialize_type", SerializeType)
def test_a_number_beyond_32_bits_is_not_encoded(name: str, serialize_type: SerializeType) -> None:
    numbers = {"code": 0} | {name: 2**31}
    with pytest.raises(ValueError, match="does not fit"):
        encode_frame(RemotingCommand(serialize_type=serialize_type, **numbers))  # type: ignore[arg-type]


@pytest.mark.parametrize("serialize_type", SerializeType)
def test_text_that_is_not_unicode_is_not_encoded(serialize_type: SerializeType) -> None:
    for fields in ({"topic": "caf\udce9"}, {"\udce9": "T"}):
        with pytest.raises(UsageError, match="not valid text") as caught:
            encode_frame(RemotingCommand(code=105, ext_fields=fields, serialize_type=serialize_type))
        assert "\udce9" not in caught.value.message


def check_what_comes_of(changed: bytes, one: Capture, at: int) -> None:
    """One command at most, then one error at most; a command can be sent on, and its body is the one that came."""
    found = events([changed])
    commands = [each for each in found if isinstance(each, RemotingCommand)]
    errors = [each for each in found if isinstance(each, str)]
    assert len(commands) <= 1
    assert len(errors) <= 1
    assert found == [*commands, *errors] != []
    assert all(error and "\n" not in error for error in errors)
    if changed == one.frame:
        assert errors == []
    for command in commands:
        assert FrameDecoder().feed(encode_frame(command)) == [command]
        if at >= LENGTHS:
            assert (command.body or b"") == changed[len(changed) - one.body_bytes :]


def test_every_byte_of_a_frame_may_be_changed() -> None:
    for one in islice(CAPTURES, 0, None, 6):
        header_end = len(one.frame) - one.body_bytes
        for at in range(min(header_end + 2, len(one.frame))):
            for value in (0, 1, 0x22, 0x5C, 0x7F, 0x80, 0xFF):
                changed = bytearray(one.frame)
                changed[at] = value
                check_what_comes_of(bytes(changed), one, at)


CLUSTER = get_broker_cluster_info()
ROUTE = get_route_info_by_topic("OrderEvents")


def sent(frame: bytes) -> RemotingCommand:
    (request,) = FrameDecoder().feed(frame)
    return request


def answer(opaque: int, **fields: object) -> bytes:
    """A server's response to the request with this opaque."""
    return encode_frame(replace(RemotingCommand(code=0, flag=1, opaque=opaque), **fields))  # type: ignore[arg-type]


def test_a_captured_answer_is_paired_with_its_request() -> None:
    exchange = Exchange(first_opaque=1)
    request = sent(exchange.send(ROUTE))
    assert request == replace(ROUTE, opaque=1)
    ((asked, response),) = exchange.receive(capture("5.5.0-route").frame)
    assert asked == request
    assert (response.code, len(response.body or b"")) == (0, 469)


def test_opaques_count_up_and_wrap_as_javas_int() -> None:
    exchange = Exchange(first_opaque=2**31 - 2)
    opaques = [sent(exchange.send(CLUSTER)).opaque for _ in range(4)]
    assert opaques == [2**31 - 2, 2**31 - 1, -(2**31), -(2**31) + 1]
    assert [request.opaque for request, _ in exchange.receive(b"".join(map(answer, opaques)))] == opaques
    assert exchange.unknown_answers == 0


@given(st.data(), st.permutations(range(5)))
def test_answers_in_any_order_and_any_pieces_find_their_requests(data: st.DataObject, order: list[int]) -> None:
    exchange = Exchange()
    requests = [sent(exchange.send(get_route_info_by_topic(f"k{number}"))) for number in range(5)]
    stream = b"".join(answer(opaque, body=f"k{opaque}".encode()) for opaque in order)
    pairs = [pair for piece in data.draw(pieces(stream)) for pair in exchange.receive(piece)]
    assert [request for request, _ in pairs] == [requests[opaque] for opaque in order]
    assert all((response.body or b"").decode() == request.ext_fields["topic"] for request, response in pairs)


def test_an_answer_to_nothing_is_dropped_and_counted() -> None:
    exchange = Exchange(first_opaque=5)
    exchange.send(CLUSTER)
    assert exchange.receive(answer(4) + answer(6) + answer(-5)) == []
    assert exchange.unknown_answers == 3


def test_a_request_of_the_server_is_dropped_even_with_a_pending_opaque() -> None:
    exchange = Exchange()
    exchange.send(CLUSTER)
    notice = RemotingCommand(code=40, flag=2, opaque=0, ext_fields={"consumerGroup": "order-svc"})
    assert exchange.receive(encode_frame(notice)) == []
    assert exchange.unknown_answers == 0
    assert len(exchange.receive(answer(0))) == 1


def test_garbage_behind_an_answer_breaks_the_connection_after_it() -> None:
    exchange = Exchange()
    exchange.send(CLUSTER)
    assert len(exchange.receive(answer(0) + b"HTTP/1.1 400 Bad Request")) == 1
    assert exchange.broken
    for _ in range(2):
        with pytest.raises(ProtocolError, match="frame length 1213486160"):
            exchange.receive(b"")


@given(st.binary(max_size=100))
def test_any_bytes_give_pairs_or_a_protocol_error(data: bytes) -> None:
    exchange = Exchange()
    exchange.send(CLUSTER)
    try:
        pairs = exchange.receive(data)
    except ProtocolError:
        assert exchange.broken
    else:
        assert len(pairs) <= 1
