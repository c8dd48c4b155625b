"""Changes of the Java producer between versions: one `ClientProfile` for each range of equal behaviour.

Facts only, read from the released classes of the versions named.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from rmqlb.model.client_versions import OLDEST, ClientVersions, Version, parse_version

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
    # a refused retry isolates the broker before it, and a retry without time left isolates no broker
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
