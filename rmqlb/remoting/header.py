"""A command's header in its two forms: JSON (serialize type 0) and binary (serialize type 1, ROCKETMQ).

rmqlb writes JSON, which every server reads, byte for byte as RocketMQ's Java does: sorted keys, no spaces, no null, no
escapes above ASCII. A 4.x server answers in the request's form, a 5.x server in its own (`rocketmq.serialize.type`,
JSON unless set), so the answer to a JSON request may be binary.

JSON is read more strictly than by fastjson: `code`, `opaque` and `flag` are required (Java reads a missing code as 0,
which is success), integers have 32 bits, NaN, infinities and lone surrogates (`?` in Java) are refused. Of two equal
keys the last one counts. Unknown keys and the sender's language are skipped, a missing version is 0, null is absence.
Values of extFields are text: numbers as written (fastjson's generations disagree only on exponents and on -0), `true`,
`false`.

Binary, all integers big endian and signed:

    int16 code | int8 language | int16 version | int32 opaque | int32 flag
    int32 length, remark in UTF-8
    int32 length of what follows, then for each extField: int16 length, key in UTF-8, int32 length, value in UTF-8

A length is checked against the remaining bytes first; the header must end with its last field (Java would take the rest
for the body). A remark of length 0 is None, an extField of length 0 the empty text.

A text of ours that cannot be encoded came from the user: a usage error. Bytes that cannot be decoded are the server's
fault: a protocol error. No message repeats the text, which may be a secret.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from struct import Struct as Layout
from typing import Annotated, Final

import msgspec
from msgspec import Meta, Raw, Struct

from rmqlb.decoding import decode
from rmqlb.errors import ProtocolError, UsageError
from rmqlb.remoting.command import INT32_MAX, INT32_MIN, RemotingCommand

_Int32 = Annotated[int, Meta(ge=INT32_MIN, le=INT32_MAX)]


class _JsonHeader(Struct, rename="camel"):
    code: _Int32
    opaque: _Int32
    flag: _Int32
    version: _Int32 | None = None
    remark: str | None = None
    ext_fields: dict[str, Raw] | None = None


def encode_json_header(command: RemotingCommand) -> bytes:
    """The header as `RemotingSerializable.encode` writes it (raises UsageError).

    extFields are left out if empty: for an empty object a 5.x broker logs an error per missing paging field in code 21
    or 201.
    """
    members: dict[str, object] = {
        "code": int(command.code),
        "flag": command.flag,
        "language": "PYTHON",
        "opaque": command.opaque,
        "serializeTypeCurrentRPC": "JSON",
        "version": command.version,
    }
    if command.remark is not None:
        members["remark"] = command.remark
    if command.ext_fields:
        members["extFields"] = dict(command.ext_fields)
    return _utf8(lambda: msgspec.json.encode(members, order="sorted"), "the request")


def decode_json_header(header: bytes, body: bytes | None) -> RemotingCommand:
    """Mirrors `RemotingSerializable.decode` (raises ProtocolError)."""
    try:
        found = decode(decode_text(header, "header"), _JsonHeader)
        fields = _texts(found.ext_fields or {})
    except RecursionError:
        raise ProtocolError("header is nested too deep") from None
    except msgspec.DecodeError as error:
        raise ProtocolError(f"header: {str(error).replace(' - at ', ' at ').replace('`', '')}") from None
    return RemotingCommand(found.code, found.version or 0, found.opaque, found.flag, found.remark, fields, body)


def _texts(fields: Mapping[str, Raw]) -> dict[str, str]:
    """The values as text, without null."""
    texts = {name: bytes(value).decode() for name, value in fields.items() if bytes(value) != b"null"}
    if any(text.startswith(("[", "{")) for text in texts.values()):
        raise ProtocolError("header's value in extFields is not text")
    return {name: decode(text, str) if text.startswith('"') else text for name, text in texts.items()}


_FIXED: Final = Layout(">hbhii")
_INT16: Final = Layout(">h")
_INT32: Final = Layout(">i")


def decode_binary_header(header: bytes, body: bytes | None) -> RemotingCommand:
    """Mirrors `RocketMQSerializable.rocketMQProtocolDecode` (raises ProtocolError)."""
    reader = _Reader(header)
    code, _language, version, opaque, flag = _FIXED.unpack(reader.take(_FIXED.size))
    remark = reader.text(_INT32, "remark") or None
    fields = _Reader(reader.take(reader.length(_INT32)))
    if reader.left:
        raise ProtocolError(f"header has {reader.left} bytes after its last field")
    ext_fields: dict[str, str] = {}
    while fields.left:
        key = fields.text(_INT16, "name in extFields")
        if key in ext_fields:
            raise ProtocolError("header names a key twice")
        ext_fields[key] = fields.text(_INT32, "value in extFields")
    return RemotingCommand(
        code=code, version=version, opaque=opaque, flag=flag, remark=remark, ext_fields=ext_fields, body=body
    )


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def left(self) -> int:
        return len(self._data) - self._at

    def take(self, size: int) -> bytes:
        if not 0 <= size <= self.left:
            raise ProtocolError(f"header announces {size} bytes, but has only {self.left} left")
        self._at += size
        return self._data[self._at - size : self._at]

    def length(self, form: Layout) -> int:
        size: int = form.unpack(self.take(form.size))[0]
        return size

    def text(self, form: Layout, what: str) -> str:
        return decode_text(self.take(self.length(form)), f"header's {what}")


def encode_text(text: str, what: str) -> bytes:
    """UTF-8 (raises UsageError)."""
    return _utf8(text.encode, what)


def _utf8(encode: Callable[[], bytes], what: str) -> bytes:
    with suppress(UnicodeEncodeError):  # which has the text, so that no error may come of it
        return encode()
    raise UsageError(f"{what} is not valid text: it cannot be written in UTF-8")


def decode_text(data: bytes, what: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise ProtocolError(f"{what} is not UTF-8 at byte {error.start}") from None
