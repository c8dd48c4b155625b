"""Frames: commands in a stream of bytes, on the client's side of one connection.

    int32 total, the number of bytes after it | int8 serialize type, int24 length of the header | header | body

- Both lengths are checked on arrival, so at most the start of one valid frame is kept between two calls.
- The pieces of the stream make no difference: the same bytes give the same commands, then the same error. An error
  after good commands in one piece is raised by the next call, and `broken` shows it at once. The next frame after a bad
  one cannot be found, so a broken decoder stays broken.
- Only requests of `codes.READ_ONLY` that want a response leave this file.
"""

from collections.abc import Callable
from dataclasses import replace
from struct import Struct
from typing import Final

from rmqlb.errors import ProtocolError
from rmqlb.remoting.codes import READ_ONLY
from rmqlb.remoting.command import INT32_MAX, INT32_MIN, RemotingCommand
from rmqlb.remoting.header import decode_binary_header, decode_json_header, encode_json_header

MAX_FRAME: Final = 16 * 1024 * 1024
"""Bytes of the longest accepted frame, its length field included (`NettyDecoder`,
`com.rocketmq.remoting.frameMaxLength`)."""
MAX_HEADER: Final = 1024 * 1024  # bytes; the format allows 16 MiB - 1, servers stay below a few KiB

_TOTAL: Final = Struct(">i")
_META: Final = Struct(">I")
_PREFIX: Final = _TOTAL.size + _META.size
_HEADER_LENGTH: Final = 0x00FFFFFF

# Serialize type → decoder (`org.apache.rocketmq.remoting.protocol.SerializeType`).
_DECODERS: Final[dict[int, Callable[[bytes, bytes | None], RemotingCommand]]] = {
    0: decode_json_header,
    1: decode_binary_header,
}


def encode_frame(command: RemotingCommand) -> bytes:
    """One whole frame with a JSON header (`RemotingCommand.encode`).

    ValueError when a number exceeds 32 bits or the header's length 24 bits, UsageError for a lone surrogate.
    """
    for number in (command.code, command.version, command.opaque, command.flag):
        if not INT32_MIN <= number <= INT32_MAX:
            raise ValueError(f"{number} does not fit the 32 bits of a header's number")
    header, body = encode_json_header(command), command.body or b""
    if len(header) > _HEADER_LENGTH:
        raise ValueError(f"a header of {len(header)} bytes does not fit the 24 bits of its length")
    return _TOTAL.pack(_META.size + len(header) + len(body)) + _META.pack(len(header)) + header + body


class FrameDecoder:
    """Turns received bytes into commands (`NettyDecoder`, `RemotingCommand.decode`)."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._error: str | None = None

    @property
    def broken(self) -> bool:
        return self._error is not None

    def feed(self, data: bytes | bytearray | memoryview) -> list[RemotingCommand]:
        """The commands completed by these bytes, in the order of the stream (raises ProtocolError)."""
        if self._error is not None:
            raise ProtocolError(self._error)
        self._buffer += data
        commands: list[RemotingCommand] = []
        start = 0
        try:
            while (found := self._whole_frame(start)) is not None:
                command, start = found
                commands.append(command)
            # One cut for all frames of this piece, so many small frames cost no more than one large one.
            del self._buffer[:start]
        except ProtocolError as error:
            self._error = error.message
            self._buffer.clear()
            if not commands:
                raise
        return commands

    def _whole_frame(self, start: int) -> tuple[RemotingCommand, int] | None:
        """The command at `start` and its end, None if it is incomplete; both lengths are checked."""
        if len(self._buffer) - start < _TOTAL.size:
            return None
        total: int = _TOTAL.unpack_from(self._buffer, start)[0]
        if not _META.size <= total <= MAX_FRAME - _TOTAL.size:
            raise ProtocolError(f"frame length {total} is not between {_META.size} and {MAX_FRAME - _TOTAL.size}")
        if len(self._buffer) - start < _PREFIX:
            return None
        meta: int = _META.unpack_from(self._buffer, start + _TOTAL.size)[0]
        if meta >> 24 not in _DECODERS:
            raise ProtocolError(f"serialize type {meta >> 24} is neither 0 (JSON) nor 1 (ROCKETMQ)")
        header_length, longest = meta & _HEADER_LENGTH, min(total - _META.size, MAX_HEADER)
        if header_length > longest:
            raise ProtocolError(f"header length {header_length} exceeds the maximum of {longest}")
        body_start, end = start + _PREFIX + header_length, start + _TOTAL.size + total
        if end > len(self._buffer):
            return None
        with memoryview(self._buffer) as view:
            header, body = bytes(view[start + _PREFIX : body_start]), bytes(view[body_start:end])
        return _DECODERS[meta >> 24](header, body or None), end


class RequestNotAllowedError(ValueError):
    """A command outside the read-only allow-list; a bug in rmqlb, not in its input."""


class Exchange:
    """Numbers the requests of one connection, and finds the response to the last one.

    All else is dropped without an error: a server may send its own requests (40, NOTIFY_CONSUMER_IDS_CHANGED), and a
    late answer must not count as another's.
    """

    def __init__(self) -> None:
        self.unknown_answers = 0  # responses to requests that were never sent
        self._decoder = FrameDecoder()
        self._last = 0  # opaque of the last request

    @property
    def broken(self) -> bool:
        return self._decoder.broken

    def send(self, command: RemotingCommand) -> bytes:
        """The frame of a request under a new opaque (raises RequestNotAllowedError)."""
        if command.code not in READ_ONLY:
            raise RequestNotAllowedError(f"request code {command.code} is not on the read-only list")
        if command.flag != 0:
            raise RequestNotAllowedError(f"request code {command.code} has flag {command.flag}, not 0")
        self._last += 1
        return encode_frame(replace(command, opaque=self._last))

    def receive(self, data: bytes | bytearray | memoryview) -> RemotingCommand | None:
        """The response to the last request, if complete (raises ProtocolError; after a good response later)."""
        found = None
        for command in self._decoder.feed(data):
            if command.is_response and command.opaque == self._last:
                found = found or command
            elif command.is_response and not 0 < command.opaque < self._last:
                self.unknown_answers += 1
        return found
