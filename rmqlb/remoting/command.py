"""One message of the remoting protocol, request or response, as a value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from types import MappingProxyType
from typing import Final

from rmqlb.remoting.version import V5_5_0

RESPONSE_FLAG: Final = 1  # bit of `flag` that marks a response; a request has it off

INT32_MIN: Final = -(2**31)  # least number of Java's int, which code, version, opaque and flag are
INT32_MAX: Final = 2**31 - 1  # greatest number of Java's int

HIDDEN_FIELDS: Final = frozenset({"Signature", "SecurityToken"})  # extFields whose values are never printed


class LanguageCode(IntEnum):
    """Language of the sender, as `org.apache.rocketmq.remoting.protocol.LanguageCode`; the value is the binary code."""

    JAVA = 0
    CPP = 1
    DOTNET = 2
    PYTHON = 3
    DELPHI = 4
    ERLANG = 5
    RUBY = 6
    OTHER = 7
    HTTP = 8
    GO = 9
    PHP = 10
    OMS = 11
    RUST = 12
    NODE_JS = 13


class SerializeType(IntEnum):
    """Form of a header, as `org.apache.rocketmq.remoting.protocol.SerializeType`.

    Every server reads both. A 4.x server answers in the request's form, a 5.x server in its own (its property
    `rocketmq.serialize.type`, JSON unless set): the answer to a JSON request may be binary.
    """

    JSON = 0
    ROCKETMQ = 1


@dataclass(frozen=True, slots=True, repr=False)
class RemotingCommand:
    """A request or a response, as `org.apache.rocketmq.remoting.protocol.RemotingCommand`."""

    code: int  # request code, or in a response the response code (0 is success)
    language: LanguageCode = LanguageCode.PYTHON  # language of the sender; one unknown to us reads as OTHER
    version: int = V5_5_0  # MQVersion ordinal of the sender; see `rmqlb.remoting.version`.
    opaque: int = 0  # id that a response shares with its request, int32
    flag: int = 0  # bit 0 on in a response, bit 1 on in a one-way request
    remark: str | None = None  # the far side's text, mostly about an error; None if it sent none
    # the custom header, all values text; a read-only copy of what was given
    ext_fields: Mapping[str, str] = field(default_factory=dict, hash=False)
    body: bytes | None = None  # the bytes after the header; None if there are none
    serialize_type: SerializeType = SerializeType.JSON

    def __post_init__(self) -> None:
        object.__setattr__(self, "ext_fields", MappingProxyType(dict(self.ext_fields)))
        object.__setattr__(self, "body", self.body or None)

    @property
    def is_response(self) -> bool:
        return bool(self.flag & RESPONSE_FLAG)

    def __repr__(self) -> str:
        """What `RemotingCommand.toString` prints, with the body's length; signature and token are masked."""
        fields = {key: "***" if key in HIDDEN_FIELDS else value for key, value in self.ext_fields.items()}
        return (
            f"RemotingCommand(code={self.code}, language={self.language.name}, version={self.version}, "
            f"opaque={self.opaque}, flag={self.flag}, remark={self.remark!r}, ext_fields={fields!r}, "
            f"body={len(self.body or b'')} bytes, serialize_type={self.serialize_type.name})"
        )
