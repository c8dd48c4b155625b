"""Fuzz target: any bytes give `FrameDecoder` commands or a `ProtocolError`, the same however they are cut.

Needs atheris (`pip install -e '.[fuzz]'`). For two minutes, with new inputs kept in a folder:

    mkdir -p build/fuzz-frame
    python fuzz/fuzz_frame.py -max_total_time=120 -max_len=4096 build/fuzz-frame

An input that fails is written to `crash-...`; run the target with that file as its
only argument to see it again, and keep it as a test in `tests/remoting/test_frame.py`.
"""

from __future__ import annotations

import sys

import atheris  # type: ignore[import-untyped, import-not-found, unused-ignore]

with atheris.instrument_imports(include=["rmqlb", "json"]):
    from rmqlb.errors import ProtocolError
    from rmqlb.remoting.command import RemotingCommand
    from rmqlb.remoting.frame import FrameDecoder, encode_frame


def events(pieces: list[bytes]) -> list[RemotingCommand | str]:
    """All that comes of a stream: its commands, then the message of its error if there is one."""
    decoder = FrameDecoder()
    seen: list[RemotingCommand | str] = []
    try:
        for piece in pieces:
            seen += decoder.feed(piece)
        decoder.feed(b"")  # raises the error behind the last command
    except ProtocolError as error:
        seen.append(error.message)
    return seen


def test_one_input(data: bytes) -> None:
    """Decodes `data` as a stream, and what follows its first 8 bytes as a header of either form in a right frame."""
    check(data)
    for serialize_type in (0, 1):
        header = data[8:]
        meta = serialize_type << 24 | len(header)
        check((4 + len(header)).to_bytes(4, "big") + meta.to_bytes(4, "big") + header)


def check(stream: bytes) -> None:
    """Decodes a stream whole and cut at a place that its last byte tells; encodes what came of it once more."""
    whole = events([stream])
    cut = len(stream) * stream[-1] // 256 if stream else 0
    assert events([stream[:cut], stream[cut:]]) == whole
    for command in whole:
        if isinstance(command, RemotingCommand):
            assert events([encode_frame(command)]) == [command]


if __name__ == "__main__":
    atheris.Setup(sys.argv, test_one_input)
    atheris.Fuzz()
