"""A command's header in its binary form (serialize type 1, ROCKETMQ).

All integers are big endian and signed:

    int16 code | int8 language | int16 version | int32 opaque | int32 flag
    int32 length, remark in UTF-8
    int32 length of what follows, then for each extField: int16 length, key in UTF-8, int32 length, value in UTF-8

Rules of this file:
- A length is checked against the bytes that are left before anything is taken; the header must end where its last field
  does (Java would take the rest for the body).
- A remark of length 0 is None. An extField of length 0 is the empty text, so that both forms carry the same fields;
  Java reads null there, but writes it from an empty text.
- A key may come once; an unknown language is OTHER.
- Code and version have 16 bits: what does not fit is refused when writing, where Java cuts it off.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from rmqlb.errors import ProtocolError
from rmqlb.remoting.command import LanguageCode, RemotingCommand, SerializeType
from rmqlb.remoting.text import decode_text, encode_text

_FIXED: Final = Struct(">hbhii")
_INT16: Final = Struct(">h")
_INT32: Final = Struct(">i")
_INT16_MIN: Final = -(2**15)
_INT16_MAX: Final = 2**15 - 1
_LANGUAGES: Final = {int(language): language for language in LanguageCode}


def encode_binary_header(command: RemotingCommand) -> bytes:
    """The header as `RocketMQSerializable.rocketMQProtocolEncode` writes it; extFields keep their order.

    ValueError when code, version or the length of a key does not fit 16 bits; send such a command as JSON. UsageError
    when a text of the command holds a lone surrogate.
    """
    _check_int16(command.code, "code")
    _check_int16(command.version, "version")
    fixed = _FIXED.pack(command.code, command.language, command.version, command.opaque, command.flag)
    fields = b"".join(
        _field(key, "extFields key", _INT16) + _field(value, key, _INT32) for key, value in command.ext_fields.items()
    )
    return fixed + _field(command.remark or "", "remark", _INT32) + _INT32.pack(len(fields)) + fields


def _check_int16(value: int, what: str) -> None:
    if not _INT16_MIN <= value <= _INT16_MAX:
        raise ValueError(f"{what} {value} does not fit the 16 bits of a binary header")


def _field(text: str, what: str, length: Struct) -> bytes:
    data = encode_text(text, what)
    if length is _INT16:
        _check_int16(len(data), f"length of {what}")
    return length.pack(len(data)) + data


def decode_binary_header(header: bytes, body: bytes | None) -> RemotingCommand:
    """The command of a binary header, strict as the rules say; see `RocketMQSerializable.rocketMQProtocolDecode`.

    ProtocolError when a length leads outside the header, a text is not UTF-8, a key comes twice or bytes are left over.
    """
    reader = _Reader(header)
    code, language, version, opaque, flag = _FIXED.unpack(reader.take(_FIXED.size))
    remark = reader.text(_INT32, "remark") or None
    fields = _Reader(reader.take(reader.length(_INT32)))
    reader.expect_end()
    return RemotingCommand(
        code=code,
        language=_LANGUAGES.get(language, LanguageCode.OTHER),
        version=version,
        opaque=opaque,
        flag=flag,
        remark=remark,
        ext_fields=_ext_fields(fields),
        body=body,
        serialize_type=SerializeType.ROCKETMQ,
    )


def _ext_fields(reader: _Reader) -> dict[str, str]:
    fields: dict[str, str] = {}
    while not reader.at_end:
        key = reader.text(_INT16, "name in extFields")
        if key in fields:
            raise ProtocolError("header names a key twice")
        fields[key] = reader.text(_INT32, "value in extFields")
    return fields


class _Reader:
    """Takes bytes off the front of a header, never more than there are."""

    __slots__ = ("_at", "_data")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def at_end(self) -> bool:
        return self._at == len(self._data)

    def expect_end(self) -> None:
        if not self.at_end:
            raise ProtocolError(f"header has {len(self._data) - self._at} bytes after its last field")

    def take(self, size: int) -> bytes:
        if not 0 <= size <= len(self._data) - self._at:
            raise ProtocolError(f"header has {len(self._data) - self._at} bytes left where {size} are announced")
        self._at += size
        return self._data[self._at - size : self._at]

    def length(self, form: Struct) -> int:
        size: int = form.unpack(self.take(form.size))[0]
        return size

    def text(self, form: Struct, what: str) -> str:
        return decode_text(self.take(self.length(form)), f"header's {what}")
