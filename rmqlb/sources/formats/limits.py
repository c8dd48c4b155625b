"""Bounded reading: each function needs at most its limit of memory plus one chunk."""

import re
import zlib
from collections.abc import Iterable, Iterator
from itertools import accumulate

from rmqlb.errors import DocumentError

MAX_DEPTH = 256  # of nested objects and lists in any document

DEFAULT_LIMIT = 64 * 1024 * 1024
_BYTES_A_VALUE = 32
"""Bytes of the limit per value: rmqlb's own indented files have 37. A value of three bytes takes a hundred in memory,
so a limit in bytes alone would bound nothing."""
_ALWAYS = 250_000  # values allowed under any limit
_LARGE = 16 * 1024 * 1024
_WIDE = re.compile(b"[\xf0-\xf4]")
_UNITS = (("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10))
_RAISE = "if the size is right, raise the limit with --max-size"
_GZIP_OR_ZLIB = 32 + zlib.MAX_WBITS
_MOST_TO_ONE = 1032  # deflate packs no better
_PIECE = 1 << 16
_RAW_DEFLATE = -zlib.MAX_WBITS


def collect(chunks: Iterable[bytes], limit: int, where: str) -> bytes:
    parts: list[bytes] = []
    size = 0
    for chunk in chunks:
        size += len(chunk)
        if size > limit:
            raise too_large(where, limit)
        parts.append(chunk)
    return b"".join(parts)


def inflate(body: bytes, limit: int, where: str) -> bytes:
    """A gzip, zlib or raw deflate body, unpacked (raises DocumentError)."""
    bits = _GZIP_OR_ZLIB if body[:1] in (b"\x1f", b"\x78") else _RAW_DEFLATE
    stream = zlib.decompressobj(bits)

    def pieces(stream: "zlib._Decompress") -> Iterator[bytes]:
        packed = body
        while piece := stream.decompress(packed, _PIECE):
            packed = stream.unconsumed_tail
            yield piece

    try:
        # A body that may be too large is first unpacked only to count it, so a bomb is never in memory.
        sizes = accumulate(map(len, pieces(zlib.decompressobj(bits)))) if len(body) * _MOST_TO_ONE > limit else ()
        if any(size > limit for size in sizes):
            raise too_large(where, limit)
        unpacked = b"".join(pieces(stream))
    except zlib.error:
        raise DocumentError(f"{where}: the compressed data is damaged") from None
    if not stream.eof:
        raise DocumentError(f"{where}: the compressed data is cut short")
    if stream.unused_data.strip(b"\0"):
        hint = "unpack joined files first: zcat FILE | rmqlb … -s -"
        raise DocumentError(f"{where}: more data follows the compressed data", hint=hint, hint_names_options=True)
    return unpacked


def text_of(body: bytes, where: str) -> str:
    if len(body) > _LARGE and _WIDE.search(body):
        raise DocumentError(f"{where}: characters beyond U+FFFF in a text of more than 16 MB that is not strict JSON")
    try:
        return body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DocumentError(f"{where}, byte {error.start}: it is not UTF-8 text") from None


def require_few_values(body: bytes, where: str, limit: int = DEFAULT_LIMIT) -> None:
    """Refuse a body with too many values, by its commas and opening brackets (raises DocumentError)."""
    most = max(limit // _BYTES_A_VALUE, _ALWAYS)
    if len(body) > most and sum(map(body.count, (b",", b"[", b"{"))) > most:
        raise DocumentError(f"{where}: more than {most} values", hint=_RAISE, hint_names_options=True)


def too_large(where: str, limit: int, detail: str = "") -> DocumentError:
    """The error for a body above the limit, in bytes; `detail` explains the limit."""
    size = next((f"{limit / size:.4g} {unit}" for unit, size in _UNITS if limit >= size), f"{limit} bytes")
    problem = f"{where}: larger than {size}" + (f", {detail}" if detail else "")
    return DocumentError(problem, hint=_RAISE, hint_names_options=True, code="too-large")
