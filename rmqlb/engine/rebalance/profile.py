"""Rebalance rules of consumers: a `ConsumerProfile` for each range of Java versions, and each other library.

A group's version and its consumers' types are those that were given, or that brokers and consumers report.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from rmqlb.errors import UsageError
from rmqlb.model.client_versions import Version, parse_version
from rmqlb.model.group import CONSUME_ACTIVELY, ConsumerGroup, ConsumerType
from rmqlb.model.group_scenario import SECOND_US, GroupScenario, Timers
from rmqlb.model.result import Finding


class Clocks(Struct, frozen=True):
    """A consumer's own clocks, those of `Timers` that are its client's, in microseconds."""

    rebalance_wait_us: int = 20 * SECOND_US  # between two rebalances
    rebalance_min_us: int = SECOND_US  # at least between two, and after an unbalanced one
    route_poll_us: int = 30 * SECOND_US  # between two route polls
    heartbeat_us: int = 30 * SECOND_US  # between two heartbeats
    persist_us: int = 5 * SECOND_US  # between two times that it stores its offsets
    lock_renewal_us: int = 20 * SECOND_US  # orderly, between two renewals of its locks
    first_poll_us: int = 10_000  # the first of each, from the making of its instance on
    first_heartbeat_us: int = SECOND_US  # likewise
    first_persist_us: int = 10 * SECOND_US  # likewise
    first_lock_us: int = SECOND_US  # likewise


def java_clocks(timers: Timers) -> Clocks:
    """The clocks of a Java consumer, which can be set (`MQClientInstance.startScheduledTask`, `RebalanceService`)."""
    return Clocks(**{name: getattr(timers, name) for name in Clocks.__struct_fields__ if hasattr(timers, name)})


class ConsumerProfile(Struct, frozen=True):
    since: Version | tuple[()]  # the first version of the stretch
    name: str
    # rebalances are `minInterval` apart, also after an unbalanced one (`RebalanceService.run`, 5.2.0); otherwise each
    # wake-up leads to a rebalance at once
    min_interval: bool = True
    hears_channels: bool = True  # a new connection leads to a heartbeat and a rebalance (`onChannelActive`, 5.2.0)
    # after a freeze a client may open two connections to a broker and forget one (`NettyRemotingClient.closeChannel`
    # removes the new one while it closes the old one, 5.2.0)
    loses_connections: bool = True
    pull_delay_us: int = 500_000  # from taking a queue to the first pull (`RebalancePushImpl.dispatchPullRequest`).
    retries_locks: bool = True  # a failed lock is tried again after 500 ms (`RebalanceImpl.rebalanceLater`, 5.0.0)
    # an orderly queue is given up (`RebalancePushImpl.removeUnnecessaryMessageQueue`): `write-lock` unlocks at once
    # when the listener lets go in time, by force after the unlock delay; `try-lock` leaves the table when the listener
    # lets go in time, and unlocks later when messages are still cached.
    release: Literal["write-lock", "try-lock"] = "write-lock"
    release_wait_us: int = 500_000
    renews_dropped: bool = False  # `RebalanceImpl.lockAll` also renews locks of dropped queues (until 4.9.8)
    # an orderly listener's queues are locked with BROADCASTING too before they are taken, by a lock that nobody renews
    # or gives back (`RebalanceImpl.rebalanceByTopic`, until 5.3.1).
    locks_broadcast: bool = False
    empty_ends_early: bool = False  # no queues, no consumer query (5.5.0, CLUSTERING); otherwise the strategy throws

    # The rest is the same in all Java versions, and differs in other libraries.
    clocks: Clocks | None = None  # constants of the library; None where they can be set, as Java's can.
    # a timer rebalances at fixed times, and each notice rebalances once, one after the other; otherwise notices wake up
    # a loop, which then waits again
    ticks: bool = False
    first_tick_us: int | None = None  # the first time, since its instance exists; None: after its first rebalance
    beats_on_change: bool = True  # a heartbeat follows when a rebalance has changed its queues.
    ends_at_failure: bool = False  # a topic without queues or list of consumers ends the rebalance of all others.
    error_is_nobody: bool = False  # the error of a broker that knows no consumer is an empty list to it.
    unregisters: bool = True  # it unregisters when it ends; otherwise brokers find its connections closed
    unlocks: bool = True  # it unlocks a lost orderly queue; otherwise the lock expires
    # it first pulls an orderly queue after the renewal of its lock, which it checks at this interval; 0: at once
    pull_retry_us: int = 0


PROFILES = (
    ConsumerProfile((5, 5, 0), "5.5.0 and newer", empty_ends_early=True),
    ConsumerProfile((5, 3, 2), "5.3.2 to 5.4.0"),
    ConsumerProfile((5, 2, 0), "5.2.0 to 5.3.1", locks_broadcast=True),
    ConsumerProfile(
        (5, 0, 0), "5.0.0 to 5.1.4", min_interval=False, hears_channels=False, loses_connections=False,
        release="try-lock", release_wait_us=1_000_000, locks_broadcast=True,
    ),
    ConsumerProfile(
        (4, 0, 0), "4.9.8 and older", min_interval=False, hears_channels=False, loses_connections=False,
        pull_delay_us=0, retries_locks=False, release="try-lock", release_wait_us=1_000_000, renews_dropped=True,
        locks_broadcast=True,
    ),
)  # fmt: skip
"""5.5.1 was neither run nor read: its release notes name no change to rebalances, allocation or locks."""


def consumer_profile_of(version: str) -> ConsumerProfile:
    wanted = parse_version(version)
    return next(profile for profile in PROFILES if wanted >= profile.since)


_OTHER = ConsumerProfile(
    (), "", min_interval=False, hears_channels=False, loses_connections=False, pull_delay_us=0, retries_locks=False
)
SDK_PROFILES: Mapping[str, ConsumerProfile] = {
    # `internal/client.go` (Start, RebalanceIfNotPaused, UnregisterConsumer), `consumer/consumer.go` (doBalance,
    # removeUnnecessaryMessageQueue) and `consumer/push_consumer.go` (Start, Shutdown, pullMessage) of 2.1.2, whose
    # constants are those of 2.0.0.
    # `findConsumerList` looks at no code, and strategies give nothing without consumers (`error_is_nobody`).
    "go": replace(
        _OTHER, since=(2, 0, 0), name="Go 2.1.2", clocks=Clocks(), ticks=True, first_tick_us=20 * SECOND_US,
        error_is_nobody=True, unregisters=False, unlocks=False, pull_retry_us=3 * SECOND_US,
    ),
    # `MQClientFactory.cpp` (startScheduledTask, rebalanceImmediately, consumer_timerOperation), `Rebalance.cpp`
    # (doRebalance, RebalancePush) of 2.2.0, whose constants are those of 1.2.0.
    "cpp": replace(
        _OTHER, since=(1, 2, 0), name="C++ 2.2.0", ticks=True, beats_on_change=False, ends_at_failure=True,
        clocks=Clocks(
            rebalance_wait_us=10 * SECOND_US, first_poll_us=3 * SECOND_US, first_heartbeat_us=10_000,
            first_persist_us=5 * SECOND_US, first_lock_us=20 * SECOND_US,
        ),
    ),
}  # fmt: skip
"""By the library's name (`engine/allocate/rules.py`); Java's are by version."""


def client_version(group: ConsumerGroup | None, given: str | None = None) -> tuple[str, tuple[Finding, ...]]:
    """The version whose rules Java follows: as given, or most reported (the older of equals), or the newest."""
    if given is not None:
        return given, ()
    connections = [connection for view in (group.lists if group else ()) for connection in view.connections]
    versions, rules = Counter[str](), set[str]()
    for version in (c.version for c in connections if c.language in (None, "JAVA")):  # others report none of theirs
        try:
            rules.add(consumer_profile_of(version or "").name)
        except UsageError:
            continue
        versions[".".join(map(str, parse_version(version or "")))] += 1
    if not versions:
        return GroupScenario().client_version, ()
    usual = min(versions, key=lambda version: (-versions[version], parse_version(version)))
    if len(rules) == 1:
        return usual, ()
    text = ", ".join(f"{version} ({number})" for version, number in versions.most_common())
    return usual, (Finding("mixed-versions", f"consumers report the versions {text}: all simulated as {usual}"),)


def orderly_findings(sdks: Iterable[str]) -> Iterator[Finding]:
    if "cpp" in sdks:
        text = "C++ consumers take an orderly queue first and lock it later; the simulation locks first, as Java does"
        yield Finding("other-language", text)


def consumer_types(
    group: ConsumerGroup | None, given: ConsumerType | None = None, given_of: Mapping[str, ConsumerType] | None = None
) -> tuple[ConsumerType, dict[str, ConsumerType], tuple[Finding, ...]]:
    """The type of most consumers, the type of each known consumer, and the findings about them.

    Brokers report only push or pull (`consumeType`), for the whole group by its last heartbeat. A consumer reports its
    own type.
    """
    if group is None:
        return given or "push", dict(given_of or {}), ()
    reported = {client_id: report.consumer_type for client_id, report in group.reports.items() if given is None}
    known = {client_id: kind for client_id, kind in {**reported, **(given_of or {})}.items() if kind is not None}
    usual: ConsumerType = given or ("lite-pull" if group.consume_type == CONSUME_ACTIVELY else "push")
    ids, findings = list(dict.fromkeys(group.client_ids or ())), []
    silent = [client_id for client_id in ids if client_id not in known]
    if group.consume_type == CONSUME_ACTIVELY and silent and given is None:
        text = "pulls, but does not report whether as DefaultMQPullConsumer or DefaultLitePullConsumer"
        how = "simulated as the latter; change this with --set consumer-type=ID=pull"
        findings.append(Finding("consumer-type-unknown", f"{silent[0]}{_more(silent)} {text}: {how}"))
    assigned = [client_id for client_id in ids if known.get(client_id, usual) == "assign"]
    if assigned:
        text = f"{assigned[0]}{_more(assigned)} assigns queues to itself (assign) and does not rebalance"
        effect = "brokers still list it, so the others leave it a share, which stays unread"
        findings.append(Finding("assigns-itself", f"{text}: {effect}"))
    return usual, known, tuple(findings)


def _more(ids: list[str]) -> str:
    return f" and {len(ids) - 1} more" if len(ids) > 1 else ""
