"""A command's header in its JSON form (serialize type 0).

Rules of this file:
- We write what RocketMQ's Java writes, byte for byte: keys in alphabetical order, no spaces, no null, no escapes above
  ASCII.
- We read standard JSON only, and stricter than fastjson: `code`, `opaque` and `flag` must be there (Java reads a
  missing code as 0, which means success), integers must be integers of 32 bits, a key may come once (fastjson takes the
  last), NaN and the infinities are refused, so is text with a lone surrogate (Java turns it into `?`).
- We are as lenient as fastjson where it costs nothing: unknown keys are skipped; an unknown language is OTHER, a
  missing one JAVA, a missing version 0; null is the same as absent.
- Values of extFields are text, but fastjson turns numbers and booleans into text while reading, so do we: `true`,
  `false`, and a number as it was written (its generations disagree only on exponents and on -0). A null value is left
  out. fastjson would keep an object or an array as its JSON text; no server sends one, and it is refused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from rmqlb.errors import ProtocolError
from rmqlb.remoting.command import INT32_MAX, INT32_MIN, LanguageCode, RemotingCommand, SerializeType
from rmqlb.remoting.text import decode_text, encode_text, is_text


class _NumberText(str):
    """A JSON number as it is written, so that no number in a header can be slow to read or lose digits."""

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
    """The header as `RemotingSerializable.encode` writes it; extFields are left out if there are none.

    Leaving empty extFields out is more than brevity: a 5.x broker that finds them logs an error for each paging field
    it misses in code 21 or 201, but says nothing if they are absent.

    UsageError when a text of the command holds a lone surrogate.
    """
    members: dict[str, object] = {
        "code": int(command.code),
        "flag": command.flag,
        "language": command.language.name,
        "opaque": command.opaque,
        "serializeTypeCurrentRPC": SerializeType.JSON.name,
        "version": command.version,
    }
    if command.remark is not None:
        members["remark"] = command.remark
    if command.ext_fields:
        members["extFields"] = dict(command.ext_fields)
    return encode_text(_ENCODER.encode(members), "the request")


def decode_json_header(header: bytes, body: bytes | None) -> RemotingCommand:
    """The command of a JSON header, strict as this file's rules say; mirrors `RemotingSerializable.decode`.

    ProtocolError when the header is not the JSON of a command.
    """
    members = _parse(header)
    return RemotingCommand(
        code=_int32(members, "code"),
        language=_language(members),
        version=0 if members.get("version") is None else _int32(members, "version"),
        opaque=_int32(members, "opaque"),
        flag=_int32(members, "flag"),
        remark=None if members.get("remark") is None else _text(members["remark"], "remark"),
        ext_fields=_ext_fields(members.get("extFields")),
        body=body,
        serialize_type=SerializeType.JSON,
    )


def _parse(header: bytes) -> Mapping[str, Any]:
    try:
        members = _DECODER.decode(decode_text(header, "header"))
    except json.JSONDecodeError as error:
        raise ProtocolError(f"header is not JSON: {error.msg} at character {error.pos}") from None
    except RecursionError:
        raise ProtocolError("header is nested too deep") from None
    if not isinstance(members, dict):
        raise ProtocolError("header is not a JSON object")
    return members


def _int32(members: Mapping[str, Any], name: str) -> int:
    value = members.get(name)
    if isinstance(value, _IntegerText) and len(value) <= _INT32_DIGITS and INT32_MIN <= int(value) <= INT32_MAX:
        return int(value)
    raise ProtocolError(f"header's {name} is {'missing' if value is None else 'not an integer of 32 bits'}")


def _language(members: Mapping[str, Any]) -> LanguageCode:
    if "language" not in members:
        return LanguageCode.JAVA
    name = members["language"]
    if name is not None:
        _text(name, "language")
    return LanguageCode.__members__.get(name, LanguageCode.OTHER)


def _ext_fields(members: object) -> dict[str, str]:
    if members is None:
        return {}
    if not isinstance(members, dict):
        raise ProtocolError("header's extFields is not an object")
    return {_text(key, "name in extFields"): _value_text(value) for key, value in members.items() if value is not None}


def _value_text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, _NumberText):
        return str(value)
    return _text(value, "value in extFields")


def _text(value: object, what: str) -> str:
    if not isinstance(value, str) or isinstance(value, _NumberText):
        raise ProtocolError(f"header's {what} is not text")
    if not is_text(value):
        raise ProtocolError(f"header's {what} holds a lone surrogate")
    return value
