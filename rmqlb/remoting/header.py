"""A command's header in its two forms: JSON (serialize type 0) and binary (serialize type 1, ROCKETMQ).

rmqlb writes JSON, which every server reads, byte for byte as RocketMQ's Java does: sorted keys, no spaces, no null, no
escapes above ASCII. A 4.x server answers in the request's form, a 5.x server in its own (`rocketmq.serialize.type`,
JSON unless set), so the answer to a JSON request may be binary.

JSON is read more strictly than by fastjson: `code`, `opaque` and `flag` are required (Java reads a missing code as 0,
which is success), integers have 32 bits, keys are unique (fastjson takes the last), NaN, infinities and lone surrogates
(`?` in Java) are refused. Unknown keys and the sender's language are skipped, a missing version is 0, null is absence.
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

from __future__ import annotations

import json
from collections.abc import Mapping
from struct import Struct
from typing import Any, Final

from rmqlb.errors import ProtocolError, UsageError
from rmqlb.remoting.command import INT32_MAX, INT32_MIN, RemotingCommand


class _NumberText(str):
    """A JSON number as written, so that no number is slow to read or loses digits."""

    __slots__ = ()


class _IntegerText(_NumberText):
    __slots__ = ()


def _refuse_constant(name: str) -> None:
    raise ProtocolError(f"header holds {name}, which JSON does not have")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ProtocolError("header names a key twice")
    return members


_INT32_DIGITS: Final = len(str(INT32_MIN))
_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_unique, parse_int=_IntegerText, parse_float=_NumberText, parse_constant=_refuse_constant
)
_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), sort_keys=True, allow_nan=False)


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
    return encode_text(_ENCODER.encode(members), "the request")


def decode_json_header(header: bytes, body: bytes | None) -> RemotingCommand:
    """Mirrors `RemotingSerializable.decode` (raises ProtocolError)."""
    try:
        members = _DECODER.decode(decode_text(header, "header"))
    except json.JSONDecodeError as error:
        raise ProtocolError(f"header is not JSON: {error.msg} at character {error.pos}") from None
    except RecursionError:
        raise ProtocolError("header is nested too deep") from None
    if not isinstance(members, dict):
        raise ProtocolError("header is not a JSON object")
    fields = members.get("extFields")
    if not isinstance(fields, dict | None):
        raise ProtocolError("header's extFields is not an object")
    return RemotingCommand(
        code=_int32(members, "code"),
        version=0 if members.get("version") is None else _int32(members, "version"),
        opaque=_int32(members, "opaque"),
        flag=_int32(members, "flag"),
        remark=None if members.get("remark") is None else _text(members["remark"], "remark"),
        ext_fields={
            _text(key, "name in extFields"): _value_text(value)
            for key, value in (fields or {}).items()
            if value is not None
        },
        body=body,
    )


def _int32(members: Mapping[str, Any], name: str) -> int:
    value = members.get(name)
    if isinstance(value, _IntegerText) and len(value) <= _INT32_DIGITS and INT32_MIN <= int(value) <= INT32_MAX:
        return int(value)
    raise ProtocolError(f"header's {name} is {'missing' if value is None else 'not an integer of 32 bits'}")


def _value_text(value: object) -> str:
    if isinstance(value, bool | _NumberText):
        return str(value).lower() if isinstance(value, bool) else str(value)
    return _text(value, "value in extFields")


def _text(value: object, what: str) -> str:
    if not isinstance(value, str) or isinstance(value, _NumberText):
        raise ProtocolError(f"header's {what} is not text")
    if not _is_text(value):
        raise ProtocolError(f"header's {what} holds a lone surrogate")
    return value


_FIXED: Final = Struct(">hbhii")
_INT16: Final = Struct(">h")
_INT32: Final = Struct(">i")


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
            raise ProtocolError(f"header has {self.left} bytes left where {size} are announced")
        self._at += size
        return self._data[self._at - size : self._at]

    def length(self, form: Struct) -> int:
        size: int = form.unpack(self.take(form.size))[0]
        return size

    def text(self, form: Struct, what: str) -> str:
        return decode_text(self.take(self.length(form)), f"header's {what}")


def encode_text(text: str, what: str) -> bytes:
    """UTF-8 (raises UsageError)."""
    if not _is_text(text):
        raise UsageError(f"{what} is not valid text: it cannot be written in UTF-8")
    return text.encode()


def _is_text(text: str) -> bool:
    """The text has no lone surrogate. The codec's own error, which has the text, stays in here."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def decode_text(data: bytes, what: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise ProtocolError(f"{what} is not UTF-8 at byte {error.start}") from None
