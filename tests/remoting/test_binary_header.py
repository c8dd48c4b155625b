"""The binary header: what Java wrote, and lengths that lead astray."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given

from rmqlb.errors import ProtocolError
from rmqlb.remoting.command import RemotingCommand, SerializeType
from rmqlb.remoting.frame import FrameDecoder, encode_frame
from rmqlb.remoting.header import decode_binary_header, encode_binary_header
from tests.support.mismatches import every_case

from .strategies import BINARY_COMMANDS
from .vectors import BINARY_FRAMES

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
