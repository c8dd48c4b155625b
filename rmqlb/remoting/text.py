"""Text on the wire is UTF-8; Python's str also holds lone surrogates, which are not text.

Rules of this file:
- What we send and cannot be encoded came from the user (a topic or group typed in another encoding): a usage error.
- What we receive and cannot be decoded is the far side's fault: a protocol error. Java would put U+FFFD or `?` there,
  and the name would silently become another name.
- Neither message repeats the text: it may be a secret.
"""

from __future__ import annotations

from rmqlb.errors import ProtocolError, UsageError


def encode_text(text: str, what: str) -> bytes:
    """`text` in UTF-8; UsageError when the text holds a lone surrogate."""
    if not is_text(text):
        raise UsageError(f"{what} is not valid text: it cannot be written in UTF-8")
    return text.encode()


def is_text(text: str) -> bool:
    """Whether `text` is free of lone surrogates.

    The codec's own error does not leave this function: it would carry the text along as the new error's context.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def decode_text(data: bytes, what: str) -> str:
    """The text of UTF-8 bytes."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise ProtocolError(f"{what} is not UTF-8 at byte {error.start}") from None
