"""Sizes are never trusted."""

from __future__ import annotations

import gzip
import itertools
import tracemalloc
import zlib
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmqlb.errors import DocumentError
from rmqlb.sources.formats.limits import collect, inflate
from tests.support.mismatches import every_case

LIMIT = 1024 * 1024


def raw_deflate(body: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(body) + packer.flush()


def problem(body: bytes) -> str:
    with pytest.raises(DocumentError) as caught:
        inflate(body, LIMIT, "dump.gz")
    return caught.value.message


def test_chunks_beyond_the_limit_are_not_even_asked_for() -> None:
    asked = itertools.count()

    def endless() -> Iterator[bytes]:
        while True:
            next(asked)
            yield b"x" * 1000

    with pytest.raises(DocumentError) as caught:
        collect(endless(), 3 * 1024, "dump")
    assert next(asked) == 4
    assert caught.value.message == "dump: larger than 3 KB"
    assert caught.value.hint == "if that is right, raise the limit with --max-size"


@given(st.binary(max_size=2000))
def test_every_packing_is_unpacked(body: bytes) -> None:
    for packed in (gzip.compress(body), zlib.compress(body), raw_deflate(body)):
        assert inflate(packed, 2000, "dump.gz") == body


def test_what_unpacks_to_the_limit_is_read_and_a_byte_more_is_not() -> None:
    assert len(inflate(gzip.compress(bytes(LIMIT)), LIMIT, "dump.gz")) == LIMIT
    assert problem(gzip.compress(bytes(LIMIT + 1))) == "dump.gz: larger than 1 MB"


def test_a_bomb_is_never_unpacked() -> None:
    bomb = gzip.compress(bytes(100 * LIMIT))
    assert len(bomb) < 110_000
    tracemalloc.start()
    try:
        assert problem(bomb) == "dump.gz: larger than 1 MB"
        assert tracemalloc.get_traced_memory()[1] < 4 * LIMIT
    finally:
        tracemalloc.stop()


@every_case("cut", [1, 5, 12, -9, -1])
def test_a_packed_body_cut_short_says_so(cut: int) -> None:
    assert problem(gzip.compress(b"hello " * 50)[:cut]) == "dump.gz: the compressed data is cut short"


def test_joined_packed_bodies_are_not_read_in_part() -> None:
    assert problem(gzip.compress(b"a") + gzip.compress(b"b")) == "dump.gz: more data follows the compressed data"


@given(st.binary(max_size=200))
def test_any_bytes_are_unpacked_or_are_a_document_error(body: bytes) -> None:
    for start in (b"", b"\x1f\x8b", b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03", b"\x78\x9c"):
        try:
            inflate(start + body, LIMIT, "dump.gz")
        except DocumentError as error:
            assert error.message.startswith("dump.gz: ")
