"""The tables of strategies and of client libraries, with the facts that other code needs about each.

A consumer computes its share by its own library's rules, so a group of several libraries is computed consumer by
consumer. gRPC clients own no queue and are not here.
"""

import re
from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from importlib import import_module
from typing import Literal

from msgspec import Struct, field

from rmqlb.engine.allocate.strategy import Settings, Strategy
from rmqlb.errors import UsageError
from rmqlb.model.message_queue import sort_key as utf16_order


class Needs(Struct, frozen=True):
    """Required settings: their options, and their values in `Settings`, None when not given."""

    options: str
    given: Callable[[Settings], object]


class StrategyRule(Struct, frozen=True):
    # the fact of a consumer that decides its share: its place in the sorted list (a plan with placeholders tries each),
    # its ID or zone, the machine, or a hash of the ID (which redacted names change)
    decides: Literal["place", "name", "machine", "hash"]
    java_class: str | None  # the reported simple name; None where RocketMQ has no such class
    needs: Needs | None  # None when it needs nothing; every comparison then has it
    place: str  # MODULE.NAME in this folder, imported when needed
    wraps: bool = False  # its constructor takes an inner class first


_ZONES = Needs(
    "--strategy-option broker-zone=… and --strategy-option client-zone=…",
    lambda given: None if given.client_zones is None else given.broker_zones,
)
_LISTS = Needs("--strategy-option queues=FILE", lambda given: given.config)
_ROOMS = Needs("--strategy-option idc=ROOM", lambda given: given.consumer_idcs)
_MACHINES = Needs("--strategy-option host=IP or pin=TOPIC=IP", lambda given: given.pins or given.hosts)

RULES: Mapping[str, StrategyRule] = {
    "AVG": StrategyRule("place", "AllocateMessageQueueAveragely", None, "avg.Averagely"),
    "AVG_BY_CIRCLE": StrategyRule("place", "AllocateMessageQueueAveragelyByCircle", None, "avg.AveragelyByCircle"),
    "CONFIG": StrategyRule("name", "AllocateMessageQueueByConfig", _LISTS, "avg.ByConfig"),
    "MACHINE_ROOM": StrategyRule("place", "AllocateMessageQueueByMachineRoom", _ROOMS, "machines.ByMachineRoom"),
    "CONSISTENT_HASH": StrategyRule(
        "hash", "AllocateMessageQueueConsistentHash", None, "consistent_hash.ConsistentHash"
    ),
    "MACHINE_ROOM_NEARBY": StrategyRule(
        "name", "AllocateMachineRoomNearby", _ZONES, "machines.MachineRoomNearby", wraps=True
    ),
    "PIN": StrategyRule("machine", None, _MACHINES, "machines.Pinned", wraps=True),
    "PIN_OVER_ALL": StrategyRule("machine", None, _MACHINES, "machines.PinnedOverAll", wraps=True),
}  # by RocketMQ's names, in the order of all lists of strategies

NAMES = tuple(RULES)
SIMPLE = tuple(name for name, rule in RULES.items() if not rule.wraps)
WRAPPERS = tuple(name for name, rule in RULES.items() if rule.wraps)
WITHOUT_SETTINGS = tuple(name for name, rule in RULES.items() if rule.needs is None)
PINNED = tuple(name for name, rule in RULES.items() if rule.decides == "machine")
BY_PLACE = tuple(name for name, rule in RULES.items() if rule.decides == "place")
HASHING = tuple(name for name, rule in RULES.items() if rule.decides == "hash")
JAVA_CLASSES = {rule.java_class: name for name, rule in RULES.items() if rule.java_class is not None}


@cache
def class_at(place: str) -> Callable[..., Strategy]:
    module, _, found = place.partition(".")
    made: Callable[..., Strategy] = getattr(import_module(f"rmqlb.engine.allocate.{module}"), found)
    return made


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
    name="java", library="apache/rocketmq", oldest="4.7.1", newest="5.5.0", vectors=1500, live=True,
    order=utf16_order, languages=("JAVA",),
)  # fmt: skip
# consumer/strategy.go and the sort in consumer.go are the same in all versions of Go's library.
GO = Sdk(
    name="go", library="apache/rocketmq-client-go", oldest="2.0.0", newest="2.1.2", vectors=600, live=True,
    order=byte_order, languages=("GO",), reports=("V4_5_2",),
    classes={
        "AVG": "go.GoAveragely", "AVG_BY_CIRCLE": "go.GoAveragelyByCircle", "MACHINE_ROOM": "go.GoMachineRoom",
        "CONSISTENT_HASH": "go.GoConsistentHash", "MACHINE_ROOM_NEARBY": "go.GoAveragely",
    },
)  # fmt: skip
CPP = Sdk(
    name="cpp", library="apache/rocketmq-client-cpp", oldest="1.2.0", newest="2.2.0", vectors=320, live=False,
    order=byte_order, languages=("CPP",), shells=("PYTHON", "NODE_JS"), reports=("V3_1_8", "V4_6_0"),
    classes={"AVG": "avg.CppAveragely"}, only="AVG",
)  # fmt: skip
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
        hint = "gRPC clients own no queues; " if name.endswith("-grpc") else ""
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
        hint = "write a version such as 2.1.2, or none: --sdk go"
        raise UsageError(f"{version[:40]}: not a version of an SDK", hint=hint)
    return tuple(int(part or 0) for part in match.groups())
