"""The client libraries whose consumers rebalance themselves, and their rules for owners.

A consumer computes its share by its own library's rules, so a group of several libraries is computed consumer by
consumer. gRPC clients own no queue and are not here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Literal

from msgspec import Struct, field

from rmqlb.errors import UsageError
from rmqlb.model.message_queue import sort_key as utf16_order

SdkName = Literal["java", "go", "cpp"]


class Sdk(Struct, frozen=True, kw_only=True, eq=False):
    name: SdkName  # as users name it
    library: str  # the repository of the library
    oldest: str  # the first version that was read and has these rules
    newest: str  # the last such version
    vectors: int  # answers of the library that test these rules (`tests/data/vectors/README.md`)
    live: bool  # running groups test them too (`tests/live`)
    order: Callable[[str], bytes]  # sort key of client IDs, topics and brokers
    languages: tuple[str, ...]  # of its connections (`LanguageCode`)
    shells: tuple[str, ...] = ()  # languages of libraries that wrap it
    # strategy → MODULE.NAME of this folder, where it is not Java's; a wrapper here has no inner strategy
    classes: Mapping[str, str] = field(default_factory=dict)
    only: str | None = None  # the only strategy of its consumers; None where any can be set
    reports: tuple[str, ...] = ()  # `version` of the connections of all its versions; () where it is the library's own

    def strategy(self, wanted: str) -> str:
        return wanted if self.only is None else self.only

    def __str__(self) -> str:
        return f"{self.name} ({self.library} {self.oldest} to {self.newest})"


def byte_order(text: str) -> bytes:
    """Sort key of languages with UTF-8 strings; unpaired surrogates arrive as `?`."""
    return text.encode("utf-8", "replace")


JAVA = Sdk(
    name="java",
    library="apache/rocketmq",
    oldest="4.7.1",
    newest="5.5.0",
    vectors=1500,
    live=True,
    order=utf16_order,
    languages=("JAVA",),
)
GO = Sdk(
    name="go",
    library="apache/rocketmq-client-go",
    oldest="2.0.0",
    newest="2.1.2",  # consumer/strategy.go and the sort in consumer.go are the same in all
    vectors=600,
    live=True,
    order=byte_order,
    languages=("GO",),
    classes={
        "AVG": "go.GoAveragely",
        "AVG_BY_CIRCLE": "go.GoAveragelyByCircle",
        "MACHINE_ROOM": "go.GoMachineRoom",
        "CONSISTENT_HASH": "go.GoConsistentHash",
        "MACHINE_ROOM_NEARBY": "go.GoAveragely",
    },
    reports=("V4_5_2",),
)
CPP = Sdk(
    name="cpp",
    library="apache/rocketmq-client-cpp",
    oldest="1.2.0",
    newest="2.2.0",
    vectors=320,
    live=False,
    order=byte_order,
    languages=("CPP",),
    shells=("PYTHON", "NODE_JS"),
    classes={"AVG": "avg.CppAveragely"},
    only="AVG",
    reports=("V3_1_8", "V4_6_0"),
)
SDKS: Mapping[str, Sdk] = {sdk.name: sdk for sdk in (JAVA, GO, CPP)}  # the most usual first

_OF_LANGUAGE = {language: sdk for sdk in SDKS.values() for language in (*sdk.languages, *sdk.shells)}


class SdkGuess(Struct, frozen=True):
    sdk: Sdk
    assumed: bool = False


@lru_cache(maxsize=64)
def sdk_named(text: str) -> SdkGuess:
    """The library named `go` or `go@2.1.2`; assumed for a version that was not read (raises UsageError)."""
    name, at, version = text.partition("@")
    sdk = SDKS.get(name)
    if sdk is None:
        hint = "those of gRPC clients own no queue; " if name.endswith("-grpc") else ""
        hint += f"SDKs whose consumers own queues: {', '.join(SDKS)}"
        raise UsageError(f"unknown SDK {text[:40]}", hint=hint, code="unknown-sdk")
    is_known = not at or _parsed(sdk.oldest) <= _parsed(version) <= _parsed(sdk.newest)
    return SdkGuess(sdk, assumed=not is_known)


def sdk_of_connection(language: str | None, version: str | None) -> SdkGuess:
    """The library of a connection in brokers' lists (`LanguageCode`, `MQVersion`), or the nearest one, assumed.

    All versions of the Go and C++ libraries report one or two fixed versions of RocketMQ, not their own.
    """
    sdk = _OF_LANGUAGE.get(language or "", JAVA)
    is_known = language in sdk.languages and not (version and sdk.reports and version not in sdk.reports)
    return SdkGuess(sdk, assumed=not is_known)


def _parsed(version: str) -> tuple[int, ...]:
    match = re.fullmatch(r"[vV]?(\d{1,3})\.(\d{1,3})(?:\.(\d{1,3}))?", version[:40])
    if match is None:
        hint = "write it as 2.1.2, or leave it out: --sdk go"
        raise UsageError(f"{version[:40]}: not a version of an SDK", hint=hint)
    return tuple(int(part or 0) for part in match.groups())
