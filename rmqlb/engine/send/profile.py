"""Profiles of producers: a `ClientProfile` for each range of equal Java versions, an `SdkProfile` for each SDK.

The Java facts were read from the released classes of the versions named. An SDK's profile has the version that was
read, its rules, and how they were proven; a version or an SDK that is not here gets the rules of the nearest one.
"""

import re
from collections.abc import Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from rmqlb.errors import UsageError
from rmqlb.model.client_versions import OLDEST, ClientVersions, Version, parse_version
from rmqlb.model.snapshot import suggestion

_OLD_LATENCY = (50, 100, 550, 1000, 2000, 3000, 15000)
_OLD_DURATION = (0, 0, 30000, 60000, 120000, 180000, 600000)
_NEW_LATENCY = (50, 100, 550, 1800, 3000, 5000, 15000)
_NEW_DURATION = (0, 0, 2000, 5000, 6000, 10000, 30000)
_RETRIED = frozenset({1, 14, 16, 17, 204, 205})


class ClientProfile(Struct, frozen=True):
    since: Version  # the first version of the stretch
    newest: str | None = None  # the last one that was released; None is the newest there is
    # `ThreadLocalIndex`: `mask` adds 1 in 32 bits and returns the lower 31, `wrap` adds 1 and returns the
    # magnitude, `fold` stores the magnitude too, `clamp` does that and turns −2^31 into 0
    index_step: Literal["mask", "wrap", "fold", "clamp"] = "mask"
    any_start: bool = True  # the index starts at any 32-bit number, else at a magnitude
    # the plain pick passes over the last broker by a `filter`, one index `step` per try, or one step and a `scan`
    skip: Literal["filter", "step", "scan"] = "filter"
    # `MQFaultStrategy` with latency fault on: `filter` (available, then reachable, then any), or `scan`
    # from one step of the index, then the better half of the broker list
    strategy: Literal["filter", "scan"] = "filter"
    # the scan ignores the last broker, avoids it, or insists on the same one
    scan_last: Literal["ignore", "avoid", "same"] = "ignore"
    plain_remainder: bool = False  # the scan fails at places past 2^31 − 1, which are negative Java remainders
    mutates: bool = False  # isolation of all brokers changes the queue list in place, for every thread
    worst_needs_write: bool = False  # then the route must call the broker writable
    latency_max: tuple[int, ...] = _NEW_LATENCY  # thresholds of the measured latency in ms
    not_available_duration: tuple[int, ...] = _NEW_DURATION  # isolation in ms from each threshold on
    isolation_latency: int = 10000  # the latency in ms that a failure counts as
    only_extends: bool = True  # updates never shorten an isolation and keep `reachable`; otherwise they replace it
    available_is_reachable: bool = False  # a broker that waits for the detector is not available either
    client_error_isolates: bool = False  # a failure on the client's own side (no address) isolates the broker too
    retry_codes: frozenset[int] = _RETRIED | {2, 1500}  # response codes after which SYNC tries another broker
    async_needs_time: bool = True  # an ASYNC retry is made only while time is left
    # an ASYNC retry without time left sends nothing and isolates its broker; then the client `retries` again or `stops`
    async_late: Literal["retries", "stops"] = "stops"
    # no retry follows an error before an ASYNC request is written: a first attempt that is refused ends the message,
    # and a retry without time left isolates no broker
    async_raises: bool = False
    async_connects_first: bool = False  # ASYNC connects before the hand-over, and so before the update after that
    resets_index: bool = True  # a SYNC retry starts the round robin anew at a random place (latency fault on)
    oneway_tells: bool = False  # a refused ONEWAY send raises and isolates; newer clients lose it unnoticed
    resends_go_away: bool = (
        True  # the transport resends to a broker that answers 1500, then reports a broken connection
    )
    overshoot_us: int = 500  # of a timed-out SYNC attempt beyond its budget (measured with 5.5.0 and 4.9.7 on loopback)
    empty_attempt_us: int = 100  # the length of an attempt without any time left (measured likewise)
    caps_request: bool = True  # `sendMsgMaxTimeoutPerRequest` exists
    async_tells_cost: bool = True  # the callback of a timed-out ASYNC send gets cost and cause, otherwise the budget
    late_names_address: bool = True  # the exception of an ASYNC retry without time left names the broker's address
    faq_url: str = "https://rocketmq.apache.org/docs/bestPractice/06FAQ"  # in the text of an MQClientException

    @property
    def versions(self) -> ClientVersions:
        return ClientVersions(None if self.since == OLDEST else ".".join(map(str, self.since)), self.newest)

    @property
    def name(self) -> str:
        return str(self.versions)

    def duration(self, latency_ms: float, *, isolation: bool) -> int:
        """The isolation of a broker after an attempt, in ms (`MQFaultStrategy.computeNotAvailableDuration`)."""
        counted = self.isolation_latency if isolation else latency_ms
        for threshold, duration in zip(reversed(self.latency_max), reversed(self.not_available_duration), strict=True):
            if counted >= threshold:
                return duration
        return 0


def _profiles() -> tuple[ClientProfile, ...]:
    """The profiles, newest first, each defined by its differences from the next newer one."""
    v533 = ClientProfile((5, 3, 3))
    v532 = replace(v533, since=(5, 3, 2), caps_request=False)
    v531 = replace(v532, since=(5, 3, 1), async_needs_time=False)
    v530 = replace(v531, since=(5, 3, 0), retry_codes=_RETRIED | {2})
    v520 = replace(
        v530, since=(5, 2, 0), retry_codes=_RETRIED, async_late="retries", async_connects_first=True, oneway_tells=True
    )
    v514 = replace(v520, since=(5, 1, 4), available_is_reachable=True, resends_go_away=False, async_tells_cost=False)
    v511 = replace(
        v514, since=(5, 1, 1), skip="step", strategy="scan", scan_last="avoid", plain_remainder=True,
        available_is_reachable=False, mutates=True, latency_max=_OLD_LATENCY, not_available_duration=_OLD_DURATION,
        isolation_latency=30000, only_extends=False, client_error_isolates=True, resets_index=False,
    )  # fmt: skip
    v510 = replace(v511, since=(5, 1, 0), scan_last="ignore")
    v500 = replace(v510, since=(5, 0, 0), plain_remainder=False, faq_url="http://rocketmq.apache.org/docs/faq/")
    v498 = replace(
        v500, since=(4, 9, 8), any_start=False, mutates=False, worst_needs_write=True, overshoot_us=750,
        empty_attempt_us=1000,
    )  # fmt: skip
    v494 = replace(v498, since=(4, 9, 4), mutates=True, worst_needs_write=False)
    v493 = replace(v494, since=(4, 9, 3), index_step="wrap")
    v490 = replace(v493, since=(4, 9, 0), async_raises=True, async_late="stops", late_names_address=False)
    v480 = replace(v490, since=(4, 8, 0), index_step="fold")
    v400 = replace(v480, since=OLDEST, index_step="clamp", skip="scan", scan_last="same")
    stretches = (v533, v532, v531, v530, v520, v514, v511, v510, v500, v498, v494, v493, v490, v480, v400)
    newest = (
        *(None, "5.3.2", "5.3.1", "5.3.0", "5.2.0", "5.1.4", "5.1.3", "5.1.0", "5.0.0"),
        *("4.9.8", "4.9.7", "4.9.3", "4.9.2", "4.8.0", "4.7.1"),
    )
    return tuple(replace(profile, newest=version) for profile, version in zip(stretches, newest, strict=True))


PROFILES = _profiles()
"""5.5.1 was neither run nor read: its release notes name no change to queue selection, isolation or retries."""


def profile_of(version: str) -> ClientProfile:
    wanted = parse_version(version)
    return next(profile for profile in PROFILES if wanted >= profile.since)


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
        isolates="", backs_off="", polls_after_s=30, note="one producer in each client instance",
    ),
    SdkProfile(
        "cpp", "2.2.0", 320, "libstdc++", "cpp", grpc=False, retries=4, starts=0, isolates="", backs_off="",
        polls_after_s=30, note="SendMessageOrderlyByShardingKey; std::hash of 64-bit libstdc++",
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
