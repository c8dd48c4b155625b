"""One message of the remoting protocol as a value, and RocketMQ's versions."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from rmqlb.errors import ProtocolError

RESPONSE_FLAG: Final = 1  # bit of `flag` in responses

V5_0_0: Final = 413  # ordinals of `MQVersion.Version`
V5_5_0: Final = 513  # the version of our requests
HIGHER_VERSION: Final = 612  # the last ordinal, for every later version

INT32_MIN: Final = -(2**31)  # of code, version, opaque and flag
INT32_MAX: Final = 2**31 - 1

HIDDEN_FIELDS: Final = frozenset({"Signature", "SecurityToken"})  # extFields whose values are never printed


@dataclass(frozen=True, slots=True, repr=False)
class RemotingCommand:
    """A request or a response, as `org.apache.rocketmq.remoting.protocol.RemotingCommand`."""

    code: int  # request code, or response code (0 is success)
    version: int = V5_5_0  # MQVersion ordinal of the sender
    opaque: int = 0  # ID of a request and its response, int32
    flag: int = 0  # bit 0 on in a response, bit 1 on in a one-way request
    remark: str | None = None  # the server's text, mostly about an error
    ext_fields: Mapping[str, str] = field(default_factory=dict, hash=False)  # the custom header, read-only
    body: bytes | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "ext_fields", MappingProxyType(dict(self.ext_fields)))
        object.__setattr__(self, "body", self.body or None)

    @property
    def is_response(self) -> bool:
        return bool(self.flag & RESPONSE_FLAG)

    def __repr__(self) -> str:
        """As `RemotingCommand.toString`, with the body's length, without signature and token."""
        fields = {key: "***" if key in HIDDEN_FIELDS else value for key, value in self.ext_fields.items()}
        return (
            f"RemotingCommand(code={self.code}, version={self.version}, "
            f"opaque={self.opaque}, flag={self.flag}, remark={self.remark!r}, ext_fields={fields!r}, "
            f"body={len(self.body or b'')} bytes)"
        )


def request(code: int, **ext_fields: str | bool | int) -> RemotingCommand:
    """A request of version 513 (V5_5_0) with fields in Java's `toString` form.

    NameServers since 4.9.4 answer that version's code 105 in standard JSON, as with `acceptStandardJsonOnly` (older
    ones, and other codes, use fastjson's dialect). Since 5.2 a server that is shutting down answers GO_AWAY (1500).
    """
    fields = {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in ext_fields.items()}
    return RemotingCommand(code=code, ext_fields=fields)


# The enum has 613 constants, V3_0_0_SNAPSHOT = 0 to HIGHER_VERSION = 612; the same in 4.9.7 and 5.5.0. After 16
# irregular names there are runs of releases, each after its snapshot. From 4.0.0 on the ordinal is
# 212 + 200*(major - 4) + 20*minor + 2*patch, and 1 more unless it is a snapshot. 4.10 and 5.10 have no ordinal.
_FIRST_NAMES: Final = (
    *("V3_0_0_SNAPSHOT", "V3_0_0_ALPHA1", "V3_0_0_BETA1", "V3_0_0_BETA2", "V3_0_0_BETA3", "V3_0_0_BETA4"),
    *("V3_0_0_BETA5", "V3_0_0_BETA6_SNAPSHOT", "V3_0_0_BETA6", "V3_0_0_BETA7_SNAPSHOT", "V3_0_0_BETA7"),
    *("V3_0_0_BETA8_SNAPSHOT", "V3_0_0_BETA8", "V3_0_0_BETA9_SNAPSHOT", "V3_0_0_BETA9", "V3_0_0_FINAL"),
)
_RUNS: Final = (
    (3, range(1), range(1, 16)),
    (3, range(1, 3), range(10)),
    (3, range(3, 10), range(1, 10)),
    (4, range(10), range(10)),
    (5, range(10), range(10)),
)  # major, minors and patches of releases, two ordinals each
_RELEASES: Final = [
    f"V{major}_{minor}_{patch}" for major, minors, patches in _RUNS for minor in minors for patch in patches
]
_NAMES: Final = (*_FIRST_NAMES, *(name for each in _RELEASES for name in (f"{each}_SNAPSHOT", each)), "HIGHER_VERSION")


def version_text(ordinal: int) -> str:
    """`V5_5_0` or `V5_5_0_SNAPSHOT` (`MQVersion.getVersionDesc`), `HIGHER_VERSION` from 612 on."""
    if ordinal < 0:
        raise ProtocolError(f"version {ordinal} is not one of RocketMQ's")
    return _NAMES[min(ordinal, HIGHER_VERSION)]
