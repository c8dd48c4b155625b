"""The client's side of one connection: which requests are out, and which response belongs to which.

Rules of this file:
- No socket: `send` gives the bytes to write, `receive` takes the bytes that were read. Deadlines are the caller's; a
  4.9 name server does not answer a request code it does not know.
- Only requests of `codes.READ_ONLY` that want a response leave this file.
- Responses may come in any order. What belongs to no pending request is dropped, never an error: a server
  may send requests of its own (40, NOTIFY_CONSUMER_IDS_CHANGED), and a late answer must not be taken for another.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from rmqlb.remoting.codes import READ_ONLY
from rmqlb.remoting.command import INT32_MIN, RemotingCommand
from rmqlb.remoting.frame import MAX_FRAME, FrameDecoder, encode_frame

_INT32_SIZE: Final = 2**32


class RequestNotAllowedError(ValueError):
    """A command was to be sent that is not on the read-only allow-list; a mistake in rmqlb, not in its input."""


class Exchange:
    """Matches responses to requests as `NettyRemotingAbstract` does with its `responseTable`."""

    def __init__(self, *, first_opaque: int = 0, max_frame: int = MAX_FRAME) -> None:
        self.unknown_answers = 0  # responses with an opaque that was never sent
        self._decoder = FrameDecoder(max_frame=max_frame)
        self._first_opaque = first_opaque
        self._sent = 0
        self._pending: dict[int, RemotingCommand] = {}

    @property
    def broken(self) -> bool:
        """Whether the far side broke the protocol, so that no response can come any more and `receive` raises."""
        return self._decoder.broken

    def send(self, command: RemotingCommand) -> bytes:
        """The frame of a request, which is pending from now on under a new opaque (raises RequestNotAllowedError)."""
        if command.code not in READ_ONLY:
            raise RequestNotAllowedError(f"request code {command.code} is not on the read-only list")
        if command.flag != 0:
            raise RequestNotAllowedError(f"request code {command.code} has flag {command.flag}, not 0")
        request = replace(command, opaque=_int32(self._first_opaque + self._sent))
        frame = encode_frame(request)
        self._pending[request.opaque] = request
        self._sent += 1
        return frame

    def receive(self, data: bytes | bytearray | memoryview) -> list[tuple[RemotingCommand, RemotingCommand]]:
        """Request and response, pair by pair (raises ProtocolError; after good responses the next call does)."""
        pairs = []
        for command in self._decoder.feed(data):
            request = self._pending.pop(command.opaque, None) if command.is_response else None
            if request is not None:
                pairs.append((request, command))
            elif command.is_response and (command.opaque - self._first_opaque) % _INT32_SIZE >= self._sent:
                self.unknown_answers += 1
        return pairs


def _int32(number: int) -> int:
    """Java's int of a number that does not fit it."""
    return (number - INT32_MIN) % _INT32_SIZE + INT32_MIN
