"""Reading without trusting sizes: nothing here takes more memory than its limit and one chunk."""

from __future__ import annotations

import zlib
from collections.abc import Iterable

from rmqlb.errors import DocumentError

DEFAULT_LIMIT = 64 * 1024 * 1024
_GZIP_OR_ZLIB = 32 + zlib.MAX_WBITS
_RAW_DEFLATE = -zlib.MAX_WBITS


def collect(chunks: Iterable[bytes], limit: int, where: str) -> bytes:
    """The chunks in one piece.

    Raises:
        DocumentError: together they are larger than the limit, in bytes.
    """
    parts: list[bytes] = []
    size = 0
    for chunk in chunks:
        size += len(chunk)
        if size > limit:
            raise too_large(where, limit)
        parts.append(chunk)
    return b"".join(parts)


def inflate(body: bytes, limit: int, where: str) -> bytes:
    """A gzip, zlib or raw deflate body, unpacked.

    Raises:
        DocumentError: it is damaged or cut short, or unpacks to more bytes than the limit.
    """
    raw = body[:1] not in (b"\x1f", b"\x78")
    stream = zlib.decompressobj(_RAW_DEFLATE if raw else _GZIP_OR_ZLIB)
    try:
        unpacked = stream.decompress(body, limit + 1)
    except zlib.error:
        raise DocumentError(f"{where}: the compressed data is damaged") from None
    if len(unpacked) > limit:
        raise too_large(where, limit)
    if not stream.eof:
        raise DocumentError(f"{where}: the compressed data is cut short")
    return unpacked


def too_large(where: str, limit: int) -> DocumentError:
    """The error for a body above the limit, in bytes."""
    return DocumentError(
        f"{where}: larger than {limit / 1024 / 1024:g} MB", hint="if that is right, raise the limit with --max-size"
    )
