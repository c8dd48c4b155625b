"""The Java consumer from version to version: one `ConsumerProfile` for each stretch of equal behaviour."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

from msgspec import Struct
from msgspec.structs import fields

from rmqlb.model.client_versions import Version, parse_version
from rmqlb.model.group_scenario import SECOND_US, Timers


class ConsumerProfile(Struct, frozen=True):
    """How a stretch of client versions rebalances."""

    since: Version  # the first version of the stretch
    name: str
    # two rebalances are `minInterval` apart at least, and an unbalanced one is followed by the next after that time
    # (`RebalanceService.run`, 5.2.0); else each wake-up leads to one at once.
    min_interval: bool = True
    # a new connection to a broker leads to a heartbeat and a rebalance (`ChannelEventListener.onChannelActive` of
    # `MQClientInstance`, 5.2.0).
    hears_channels: bool = True
    # a client that goes on after a freeze may open two connections to a broker, of which it then forgets one
    # (`NettyRemotingClient.closeChannel` removes the new one while it closes the old one, 5.2.0).
    loses_connections: bool = True
    pull_delay_us: int = 500_000  # from taking a queue to the first pull (`RebalancePushImpl.dispatchPullRequest`).
    # a lock that was not got is tried again after 500 ms (`RebalanceImpl.rebalanceLater`, 5.0.0).
    retries_locks: bool = True
    # how an orderly queue is given up (`RebalancePushImpl.removeUnnecessaryMessageQueue`): `write-lock` unlocks at once
    # when the listener lets go in time, by force after the unlock delay; `try-lock` leaves the table when the listener
    # lets go in time, and unlocks later when messages are still cached.
    release: Literal["write-lock", "try-lock"] = "write-lock"
    release_wait_us: int = 500_000
    # `RebalanceImpl.lockAll` renews the locks of queues that are being given up, too (until 4.9.8).
    renews_dropped: bool = False
    # an orderly listener's queues are locked with BROADCASTING too before they are taken, by a lock that nobody renews
    # or gives back (`RebalanceImpl.rebalanceByTopic`, until 5.3.1).
    locks_broadcast: bool = False
    # without queues of the topic a client does not ask for the members (5.5.0, CLUSTERING only); else an empty list
    # lets the strategy throw.
    empty_ends_early: bool = False


PROFILES = (
    ConsumerProfile((5, 5, 0), "5.5.0 and newer", empty_ends_early=True),
    ConsumerProfile((5, 3, 2), "5.3.2 to 5.4.0"),
    ConsumerProfile((5, 2, 0), "5.2.0 to 5.3.1", locks_broadcast=True),
    ConsumerProfile(
        (5, 0, 0),
        "5.0.0 to 5.1.4",
        min_interval=False,
        hears_channels=False,
        loses_connections=False,
        release="try-lock",
        release_wait_us=1_000_000,
        locks_broadcast=True,
    ),
    ConsumerProfile(
        (4, 0, 0),
        "4.9.8 and older",
        min_interval=False,
        hears_channels=False,
        loses_connections=False,
        pull_delay_us=0,
        retries_locks=False,
        release="try-lock",
        release_wait_us=1_000_000,
        renews_dropped=True,
        locks_broadcast=True,
    ),
)
"""All stretches, the newest first."""


def consumer_profile_of(version: str) -> ConsumerProfile:
    """The rules of a client version; UsageError when it is no version, or older than 4.0.0."""
    wanted = parse_version(version)
    return next(profile for profile in PROFILES if wanted >= profile.since)


class SdkTimers(Struct, frozen=True):
    """The clocks of another client library's consumers, named as in `Timers`; None is a clock that it does not have.

    Read in the sources of rocketmq-client-go 2.1.2 (`internal/client.go`, `consumer/option.go`) and of
    rocketmq-client-cpp 2.2.0 (`MQClientFactory.cpp`, `PullRequest.cpp`). Simulations have Java's clocks all the same.
    """

    rebalance_wait_us: int
    rebalance_min_us: int | None  # after an unbalanced rebalance: both libraries wait for the next regular one
    route_poll_us: int
    heartbeat_us: int
    persist_us: int
    lock_renewal_us: int


SDK_TIMERS: Mapping[str, SdkTimers] = {
    "go": SdkTimers(20 * SECOND_US, None, 30 * SECOND_US, 30 * SECOND_US, 5 * SECOND_US, 20 * SECOND_US),
    "cpp": SdkTimers(10 * SECOND_US, None, 30 * SECOND_US, 30 * SECOND_US, 5 * SECOND_US, 20 * SECOND_US),
}
"""By the library's name (`engine/allocate/sdks.py`)."""


def other_clocks(sdk: str) -> Iterator[str]:
    """The timers of a library that are not Java's, as `--timer` names them.

    >>> list(other_clocks("cpp")), list(other_clocks("java"))
    (['rebalance-wait 10 s', 'no rebalance-min'], [])
    """
    java, own = Timers(), SDK_TIMERS.get(sdk)
    for field in fields(SdkTimers) if own is not None else ():
        time_us = getattr(own, field.name)
        name = field.name.removesuffix("_us").replace("_", "-")
        if time_us is None:
            yield f"no {name}"
        elif time_us != getattr(java, field.name):
            yield f"{name} {time_us // SECOND_US} s"
