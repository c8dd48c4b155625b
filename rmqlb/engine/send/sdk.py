"""The SDKs with known producers: the version that was read, its rules, and their proof.

A version or an SDK that is not here gets the rules of the nearest one that is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from rmqlb.errors import UsageError
from rmqlb.model.client_versions import Version
from rmqlb.model.snapshot import suggestion

Hash = Literal[
    "java", "fnv-1a", "siphash", "siphash-zero", "siphash-reversed", "sha-256", "libstdc++", "random", "proxy"
]
Rotation = Literal["java", "go", "cpp", "every-broker", "one-queue", "one-queue-ahead", "no-fallback", "first-queues"]
Counter = Literal["int32", "uint32", "uint64", "unbounded"]


class SdkProfile(Struct, frozen=True):
    name: str  # as on the command line: `go`, `java-grpc` …
    mirrors: str  # the version whose rules these are
    vectors: int  # number of questions that the SDK itself answered; 0 where only its source was read
    hash: Hash  # of a message group or sharding key
    rotation: Rotation | None  # its rotation through the queues
    counter: Counter = "int32"  # the number that it counts by
    counts_first: bool = False  # the counter goes up before it is used
    since: Version | tuple[()] = ()  # the first version that has these rules; () is the oldest there is
    grpc: bool = True  # it sends to a Proxy
    retries: int | None = 2  # attempts beyond the first by default; None when sends are not simulated
    # its counter starts anywhere below this number; 0 is at 0, 1000 from 1 to 1000, None below the number of queues
    starts: int | None = 2**31 - 1
    counts_by_thread: bool = False  # each thread has a counter of its own
    picks_anew: bool = False  # each attempt picks by itself; otherwise a message's attempts go round its candidates
    isolates: Literal["always", "before-retry", ""] = "always"  # the failed attempts that isolate an endpoint
    rejoins: bool = True  # a good heartbeat ends the isolation
    polls: bool = True  # it requests the route again
    polls_after_s: int = 10  # from its start until it first does so
    beats_after_s: int = 1  # from its start until its first heartbeat
    # it waits when a Proxy is too busy: as before the `next` attempt or as before `this` one
    backs_off: Literal["next", "this", ""] = "next"
    gives_up_busy: bool = False  # it makes no other attempt then
    live: bool = False  # it was compared with a producer, or a Proxy, that really ran
    note: str | None = None


_UNRELEASED = (5, 1, 5)

SDKS = (
    SdkProfile("java", "5.5.0", 2126, "java", None, grpc=False, live=True),
    SdkProfile(
        "go", "2.1.2", 1079, "fnv-1a", "go", "uint32", counts_first=True, grpc=False, retries=3, starts=0,
        isolates="", polls_after_s=30, note="one producer in each client instance",
    ),
    SdkProfile(
        "cpp", "2.2.0", 320, "libstdc++", "cpp", grpc=False, retries=4, starts=0, isolates="", polls_after_s=30,
        note="SendMessageOrderlyByShardingKey; std::hash of 64-bit libstdc++",
    ),
    SdkProfile("java-grpc", "5.2.0", 784, "siphash", "every-broker", live=True),
    SdkProfile(
        "go-grpc", "master", 0, "siphash", "every-broker", counts_first=True, since=_UNRELEASED, starts=0,
        polls_after_s=30, beats_after_s=11, note="not released: the commit that corrects the round robin of 5.1.4",
    ),
    SdkProfile(
        "go-grpc", "5.1.4", 760, "siphash", "one-queue-ahead", counts_first=True, starts=0,
        isolates="", polls_after_s=30, note="it isolates endpoints, but still picks them",
    ),
    SdkProfile(
        "rust-grpc", "5.0.0", 760, "siphash-zero", "one-queue", "uint64", retries=0, starts=0, isolates="",
        polls=False,
    ),
    SdkProfile(
        "python-grpc", "5.1.2", 784, "sha-256", "one-queue", "unbounded", starts=1000, picks_anew=True,
        isolates="", gives_up_busy=True,
    ),
    SdkProfile(
        "nodejs-grpc", "1.0.8", 784, "siphash-reversed", "first-queues", "unbounded", starts=None, rejoins=False,
        backs_off="", polls_after_s=30,
        note="only queue 0 of a broker; an endpoint stays isolated for as long as the process runs",
    ),
    SdkProfile(
        "cpp-grpc", "5.1.1", 760, "libstdc++", "no-fallback", "uint32", counts_first=True, starts=100,
        counts_by_thread=True, isolates="before-retry", backs_off="this",
        note="std::hash of 64-bit libstdc++",
    ),
    SdkProfile(
        "csharp-grpc", "5.2.1", 0, "random", "every-broker", counts_first=True,
        note="string.GetHashCode differs from process to process",
    ),
    SdkProfile("proxy", "5.5.0", 386, "proxy", None, retries=None, live=True, note="a Proxy, whatever SDK sends"),
)  # fmt: skip
"""All that is known; of an SDK with several stretches the newest first."""

NAMES = tuple(dict.fromkeys(profile.name for profile in SDKS))
CLIENTS = tuple(name for name in NAMES if name != "proxy")
_NEAREST = {
    **dict.fromkeys(("python", "nodejs"), "cpp"),  # shells around the C++ client
    **dict.fromkeys(("php", "ruby", "dotnet", "erlang", "delphi", "http", "oms", "other"), "java"),
    **dict.fromkeys(("php-grpc", "ruby-grpc", "objc-grpc", "other-grpc"), "java-grpc"),
}
"""SDKs that were not read, by languages that clients report (`LanguageCode`), each with the nearest that was."""
_VERSION = re.compile(r"v?(\d{1,4})\.(\d{1,4})(?:\.(\d{1,4}))?")


class ChosenSdk(Struct, frozen=True):
    profile: SdkProfile
    text: str  # as the user wrote it
    assumed: bool = False  # the SDK or version was not read; the profile's rules are assumed

    @property
    def mirrors(self) -> str:
        """The version whose rules these are, with its SDK if that is another one."""
        own = self.text.partition("@")[0] == self.profile.name
        return self.profile.mirrors if own else f"{self.profile.name} {self.profile.mirrors}"


def simulated() -> list[str]:
    return [
        "java",
        *(
            profile.name if profile.since == () else f"{profile.name}@{profile.mirrors}"
            for profile in sorted(SDKS, key=lambda profile: (NAMES.index(profile.name), profile.since))
            if profile.retries is not None and profile.rotation
        ),
    ]


def sdks_of(texts: Sequence[str]) -> list[ChosenSdk]:
    return [sdk(text) for text in dict.fromkeys(texts or CLIENTS)]


def sdk(text: str) -> ChosenSdk:
    """The rules of an SDK, `go-grpc`, or of one of its versions, `go-grpc@5.1.4` (raises UsageError).

    Without a version: the newest released one. For another language: the nearest SDK.
    """
    text = text.lower()
    name, at, version = text.partition("@")
    if name in _NEAREST:
        return ChosenSdk(sdk(_NEAREST[name]).profile, text, assumed=True)
    stretches = [profile for profile in SDKS if profile.name == name]
    if not stretches:
        raise UsageError(f"{text[:40]}: not an SDK", hint=suggestion("SDKs", name, NAMES))
    if not at:
        return ChosenSdk(next(profile for profile in stretches if profile.since == ()), text)
    named = next((profile for profile in stretches if profile.mirrors == version), None)
    if named is not None:
        return ChosenSdk(named, text)
    match = _VERSION.fullmatch(version)
    if match is None:
        known = ", ".join(f"{name}@{profile.mirrors}" for profile in stretches)
        raise UsageError(f"{text[:60]}: not a version of {name}", hint=f"known versions: {known}")
    wanted = int(match[1]), int(match[2]), int(match[3] or 0)
    return ChosenSdk(next(profile for profile in stretches if wanted >= profile.since), text, assumed=True)
