"""Frames and commands that the tests of this folder share.

`CAPTURES` are answers of real servers (`tests/data/remoting`). `JSON_FRAMES` and `BINARY_FRAMES` are what
`RemotingCommand.encode` of the released 4.9.7 and 5.5.0 classes wrote, both the same, for the commands beside them,
sent by Java, Python and OMS.
"""

from typing import NamedTuple

from rmqlb.remoting.command import RemotingCommand
from tests.support.vectors import captured_frames


class Capture(NamedTuple):
    name: str
    server: str
    serialize_type: int
    frame: bytes
    request_code: int
    ext_fields: dict[str, str]
    response_code: int
    body_bytes: int


CAPTURES = tuple(
    Capture(f"{folder}/{name}".strip("/"), *(e["server"], form, e["frame"], e["code"]), e["extFields"], e["responseCode"], e["bodyBytes"])
    for folder, form in (("", 0), ("binary", 1))
    for name, e in captured_frames(folder).items()
)  # fmt: skip


def capture(name: str) -> Capture:
    return next(one for one in CAPTURES if one.name == name)


ROUTE = RemotingCommand(code=105, version=453, ext_fields={"topic": "T"})
RICH = RemotingCommand(
    code=17,
    version=513,
    opaque=-(2**31),
    flag=1,
    remark="kein \u00dc \u20ac \U0001f600\n",
    ext_fields={"a": "\u4e2d", "k": ""},
    body=b"\x00\xff\x01",
)
BARE = RemotingCommand(code=-1000, version=32767, opaque=2**31 - 1, flag=3, remark="")

_JSON_ROUTE = (
    b'{"code":105,"extFields":{"topic":"T"},"flag":0,"language":"JAVA","opaque":0,'
    b'"serializeTypeCurrentRPC":"JSON","version":453}'
)
_JSON_RICH = (
    '{"code":17,"extFields":{"a":"\u4e2d","k":""},"flag":1,"language":"PYTHON","opaque":-2147483648,'
    '"remark":"kein \u00dc \u20ac \U0001f600\\n","serializeTypeCurrentRPC":"JSON","version":513}'
).encode()
_JSON_BARE = (
    b'{"code":-1000,"flag":3,"language":"OMS","opaque":2147483647,"remark":"",'
    b'"serializeTypeCurrentRPC":"JSON","version":32767}'
)

JSON_FRAMES = {
    "route": (ROUTE, bytes.fromhex("0000007f 0000007b") + _JSON_ROUTE),
    "rich": (RICH, bytes.fromhex("000000b0 000000a9") + _JSON_RICH + b"\x00\xff\x01"),
    "bare": (BARE, bytes.fromhex("0000007d 00000079") + _JSON_BARE),
}
BINARY_FRAMES = {
    name: (command, bytes.fromhex(written))
    for name, command, written in (
        ("route", ROUTE, "00000025 01000021 0069 00 01c5 00000000 00000000 00000000 0000000c 0005 746f706963 00000001 54"),
        ("rich", RICH, ("0000003e 01000037 0011 03 0201 80000000 00000001 00000011 6b65696e20c39c20e282ac20f09f98800a 00000011"
                       "0001 61 00000003 e4b8ad 0001 6b 00000000 00ff01")),
        ("bare", BARE, "00000019 01000015 fc18 0b 7fff 7fffffff 00000003 00000000 00000000"),
    )
}  # fmt: skip


def frame(header: bytes, body: bytes = b"", serialize_type: int = 0) -> bytes:
    meta = serialize_type << 24 | len(header)
    return (4 + len(header) + len(body)).to_bytes(4, "big") + meta.to_bytes(4, "big") + header + body
