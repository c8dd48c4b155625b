"""The rules and times that brokers, Proxies and clients have built in: RocketMQ 5.5.0, rocketmq-client-java 5.2.0.

Each constant names its class. Settings are at their defaults. `BROKERS` has what other broker versions do differently;
their other classes of this simulation have the same rules from 5.1.0 on.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from rmqlb.model.client_versions import Version, parse_version
from rmqlb.model.simulate_receive import SECOND_US, ReceiveScenario

MS_US = 1000

# -- a receive at its broker ---------------------------------------------------------------------

EARLY_US = 50 * MS_US
"""How long before its time a waiting request is over (`PopRequest.isTimeout`)."""
SCAN_US = 20 * MS_US
"""How often that is looked at (`PopLongPollingService.run`)."""
RETRY_FIRST_PERCENT = 20
"""Percentage of requests in which the retry topic comes before the queues (`BrokerConfig.popFromRetryProbability`)."""
RANDOM_QUEUES = 100
"""A request draws one of a hundred numbers (`PopMessageProcessor.processRequest`)."""


class BrokerRules(Struct, frozen=True):
    """How a stretch of broker versions answers receives.

    Attributes:
        since: the first version of the stretch.
        name: the stretch in words.
        counts_down: a request goes from queue to queue downward (`popMsgFromTopic` and `BrokerConfig.priorityOrderAsc`,
            RIP-80, 5.4.0).
        every_fifth: the numbers that let the retry topic come first are those that 5 divides (until 5.3.0).
        retry_wakes: a message that comes back wakes a request that waits; otherwise the request finds the message when
            its time is over. `PopReviveService` woke requests until 5.1.4, `PopLongPollingService
            .notifyMessageArrivingFromRetry` does so from 5.3.4 on.
    """

    since: Version
    name: str
    counts_down: bool = False
    every_fifth: bool = False
    retry_wakes: bool = True

    def walk(self, number: int, queues: int) -> Iterator[int]:
        """The queues of a broker in the order in which a request looks at them that drew this number.

        >>> [list(broker_rules(version).walk(2, 4)) for version in ("5.3.4", "5.4.0")]
        [[2, 3, 0, 1], [1, 0, 3, 2]]
        """
        steps = range(queues - 1, -1, -1) if self.counts_down else range(queues)
        return ((number + step) % queues for step in steps)

    def retry_first(self, number: int) -> bool:
        """A request that drew this number looks at the retry topic before the queues."""
        return number % 5 == 0 if self.every_fifth else number < RETRY_FIRST_PERCENT


BROKERS = (
    BrokerRules((5, 4, 0), "5.4.0 and newer", counts_down=True),
    BrokerRules((5, 3, 4), "5.3.4"),
    BrokerRules((5, 3, 1), "5.3.1 to 5.3.3", retry_wakes=False),
    BrokerRules((5, 2, 0), "5.2.0 to 5.3.0", every_fifth=True, retry_wakes=False),
    BrokerRules((5, 1, 0), "5.1.0 to 5.1.4", every_fifth=True),
)
"""All stretches, the newest first."""


def broker_rules(version: str) -> BrokerRules:
    """The rules of a broker version (raises UsageError)."""
    wanted = parse_version(version, "broker", BROKERS[-1].since)
    return next(rules for rules in BROKERS if wanted >= rules.since)


def rules_followed(scenario: ReceiveScenario) -> str:
    """The versions of broker, Proxy and client whose rules a simulation follows.

    >>> rules_followed(ReceiveScenario("pop", broker_version="5.3.2"))
    'broker 5.3.2 (rules of 5.3.1 to 5.3.3), remoting client 5.5.0'
    """
    broker = f"broker {scenario.broker_version} (rules of {broker_rules(scenario.broker_version).name})"
    grpc = "Proxy 5.5.0, rocketmq-client-java 5.2.0"
    return f"{broker}, {'remoting client 5.5.0' if scenario.client == 'pop' else grpc}"


# -- the Proxy -----------------------------------------------------------------------------------

SHORTEST_AWAIT_US = 5 * SECOND_US
LONGEST_AWAIT_US = 20 * SECOND_US
"""`ReceiveMessageActivity.receiveMessage` takes what is outside for the nearer of the two, unless the client's deadline
comes before the shorter one; then it refuses (`ProxyConfig
.grpcClientConsumerMinLongPollingTimeoutMillis` and `…MaxLongPollingTimeoutMillis`,
which is also the await duration that a PushConsumer gets)."""
SHORTEST_INVISIBLE_US = 10 * SECOND_US
LONGEST_INVISIBLE_US = 12 * 3600 * SECOND_US
"""It refuses what is outside (`AbstractMessingActivity.validateInvisibleTime`)."""
RENEWED_US = 60 * SECOND_US
"""What a PushConsumer's messages get, again and again while it lives (`ProxyConfig.defaultInvisibleTimeMills`)."""
CLEARED_US = SECOND_US
"""What they get when it is known to be dead (`DefaultReceiptHandleManager.clearGroup`), and what a message gets that
cannot be written to its client (`ReceiveMessageResponseStreamWriter.NACK_INVISIBLE_TIME`)."""
EXPIRED_US = 120 * SECOND_US
HEARTBEAT_US = 10 * SECOND_US
EXPIRY_SCAN_US = 10 * SECOND_US
"""A gRPC client is taken for dead after the first time without a heartbeat, which the Proxy checks at the last interval
(`ConsumerManager.scanNotActiveChannel`, `ClusterServiceManager`); its heartbeats are `ClientManagerImpl`'s."""
PROXY_ROUTE_US = 20 * SECOND_US
"""How old the Proxy's view of a route gets (`TopicRouteService`, `topicRouteServiceCacheRefreshSeconds`)."""

# -- clients -------------------------------------------------------------------------------------

FIRST_ROUTE_US = 10 * SECOND_US
ROUTE_US = 30 * SECOND_US
"""When a gRPC client asks for the route again (`ClientImpl.startUp`)."""
FIRST_ASSIGNMENT_US = SECOND_US
ASSIGNMENT_US = 5 * SECOND_US
"""When a PushConsumer asks for its assignments (`PushConsumerImpl.startUp`)."""
REQUEST_TIMEOUT_US = 3 * SECOND_US
"""How long after its await duration a gRPC receive's deadline is (`ConsumerImpl.receiveMessage`)."""
PUSH_PAUSE_US = SECOND_US
"""What a PushConsumer waits after an error (`ProcessQueueImpl.RECEIVING_FAILURE_BACKOFF_DELAY`)."""
POP_AWAIT_US = 15 * SECOND_US
"""`DefaultMQPushConsumerImpl.BROKER_SUSPEND_MAX_TIME_MILLIS`."""
POP_TIMEOUT_US = 10 * SECOND_US
"""How long after it a POP request's time-out is (`PullAPIWrapper.popAsync`)."""
POP_PAUSE_US = 3 * SECOND_US
"""What a POP client waits after an error (`pullTimeDelayMillsWhenException`)."""
POP_SHORTEST_INVISIBLE_US = 5 * SECOND_US
POP_LONGEST_INVISIBLE_US = 300 * SECOND_US
"""`popMessage` takes 60 s for a `popInvisibleTime` outside (`MIN_POP_INVISIBLE_TIME`, `MAX_POP_INVISIBLE_TIME`)."""
REBALANCE_US = 20 * SECOND_US
"""How often a POP client asks which queues it has (`RebalanceService`)."""
FIRST_POP_ROUTE_US = 10 * MS_US
"""`MQClientInstance.startScheduledTask`; then every `ROUTE_US` (`pollNameServerInterval`)."""

# -- what comes back -----------------------------------------------------------------------------

REVIVE_QUEUES = 8
"""Services per broker, each with a queue of its own; requests take them in turn (`BrokerConfig.reviveQueueNum`)."""
REVIVE_EARLY_US = SECOND_US
"""How long before its messages are visible again a checkpoint is due (`PopMessageProcessor.buildCkMsg`)."""
TIMER_SECOND_US = SECOND_US
TIMER_LOOK_US = 100 * MS_US
"""The timer wheel has full seconds (`timerPrecisionMs`); the second time is how often it looks which have passed
(`HookUtils.transformTimerMessage`, `TimerDequeueGetService`)."""
REVIVE_LAG_US = 2 * SECOND_US
"""How far what a service has read must reach beyond the time at which a message is visible again: one second is the
acknowledgements' way, one more is waited (`PopReviveService.mergeAndRevive`)."""
REVIVE_STALE_US = 3 * SECOND_US
"""When its last entry is older, what it has read reaches until now (`PopReviveService.consumeReviveMessage`)."""
REVIVE_STEP_US = 100 * MS_US
REVIVE_QUIET_US = 4 * SECOND_US
REVIVE_SCAN_US = 10 * SECOND_US
"""The steps of a look; how long nothing has come when it ends, or how long it lasts at most (`reviveScanTime`)."""
REVIVE_INTERVAL_US = SECOND_US
REVIVE_MOST_SLOW = 3
"""What a service waits before each look (`reviveInterval`). After looks that have found nothing it waits that time once
more for each of them, up to three times (`reviveMaxSlow`)."""
LOCK_TICK_US = 100 * MS_US
"""In order, a queue is free at the next tick after its time (`ConsumerOrderInfoLockManager`)."""
MOST_DELIVERIES = 17
"""One delivery and 16 more, then a message is a dead letter (`SubscriptionGroupConfig.retryMaxTimes`)."""


def awaited_us(scenario: ReceiveScenario) -> int:
    """How long a broker lets a receive wait, by the client's kind and the Proxy's limits.

    >>> awaited_us(ReceiveScenario(await_us=30 * SECOND_US)), awaited_us(ReceiveScenario("pop"))
    (20000000, 15000000)
    """
    if scenario.client == "simple":
        return min(max(scenario.await_us, SHORTEST_AWAIT_US), LONGEST_AWAIT_US)
    return LONGEST_AWAIT_US if scenario.client == "push" else POP_AWAIT_US


def is_refused(scenario: ReceiveScenario) -> bool:
    """The Proxy refuses each receive, since its deadline comes before the shortest await (`ILLEGAL_POLLING_TIME`).

    The time that is left is counted in whole milliseconds, and some has passed on the way.

    >>> [is_refused(ReceiveScenario(await_us=seconds * SECOND_US)) for seconds in (1, 2, 3)]
    [True, True, False]
    """
    left_us = scenario.await_us + REQUEST_TIMEOUT_US - scenario.round_trip_us // 2
    return scenario.client == "simple" and left_us // MS_US * MS_US < SHORTEST_AWAIT_US


def invisible_us(scenario: ReceiveScenario) -> int:
    """How long a received message is invisible to others, unless its client acknowledges it.

    >>> invisible_us(ReceiveScenario("pop", invisible_us=1)), invisible_us(ReceiveScenario(invisible_us=12_000_000))
    (60000000, 12000000)
    """
    if scenario.client == "push":
        return RENEWED_US
    taken = POP_SHORTEST_INVISIBLE_US <= scenario.invisible_us <= POP_LONGEST_INVISIBLE_US
    return scenario.invisible_us if taken or scenario.client == "simple" else RENEWED_US


def may_come_back(scenario: ReceiveScenario) -> bool:
    """Some message may not be acknowledged in time."""
    busy_us = scenario.batch * scenario.consume_us + scenario.round_trip_us
    kept = scenario.client == "push" or busy_us <= invisible_us(scenario)
    return bool(scenario.crashes or scenario.failures) or not kept


def longest_receive_us(scenario: ReceiveScenario) -> int:
    """The longest that an empty receive takes, with its way there and back.

    >>> longest_receive_us(ReceiveScenario(round_trip_us=0))
    19970000
    """
    return awaited_us(scenario) - EARLY_US + SCAN_US + scenario.round_trip_us


def silence_us(scenario: ReceiveScenario) -> int:
    """When a receive fails whose broker is silent."""
    return awaited_us(scenario) + (POP_TIMEOUT_US if scenario.client == "pop" else REQUEST_TIMEOUT_US)


def error_pause_us(scenario: ReceiveScenario) -> int:
    """How long a client waits after a receive that failed."""
    if scenario.client == "simple":
        return scenario.error_pause_us
    return PUSH_PAUSE_US if scenario.client == "push" else POP_PAUSE_US


def over_at(born: int, awaited: int, phase: int) -> int:
    """When a waiting request is over: at the first look that is later than its time less 50 ms.

    >>> over_at(0, 20_000_000, 7), over_at(10_000, 20_000_000, 0)
    (19960007, 19980000)
    """
    limit = born + awaited - EARLY_US
    return limit + SCAN_US - (limit - phase) % SCAN_US


def free_at(visible_at: int, phase: int) -> int:
    """When a blocked queue is looked at again: the next tick of a wheel that began at `phase`.

    >>> free_at(10_000_000, phase=0), free_at(10_000_001, phase=0)
    (10000000, 10100000)
    """
    return visible_at + (phase - visible_at) % LOCK_TICK_US


def cleared_at(crash_us: int, heartbeat_phase: int, scan_phase: int) -> int:
    """When a Proxy drops a PushConsumer that died: at its first look after two minutes without a heartbeat.

    >>> cleared_at(60_000_000, heartbeat_phase=0, scan_phase=5_000_000)
    185000000
    """
    last = crash_us - (crash_us - heartbeat_phase) % HEARTBEAT_US
    due = last + EXPIRED_US
    return due + EXPIRY_SCAN_US - (due - scan_phase) % EXPIRY_SCAN_US


def again_after_us(scenario: ReceiveScenario) -> tuple[int, int]:
    """How long after its consumer's death a message can be received again, at the earliest and at the latest.

    It was received at the death, or before by as long as the application takes for a receive; but of a PushConsumer the
    Proxy must first know that it is dead.

    >>> again_after_us(ReceiveScenario(invisible_us=30_000_000)), again_after_us(ReceiveScenario("push"))
    ((32000000, 35200000), (113000000, 136200000))
    """
    late = invisible_us(scenario)
    held_us = scenario.consume_us * (scenario.batch if scenario.client == "simple" else 1)
    early = max(late - held_us, 0)
    if scenario.client == "push":
        early = EXPIRED_US - HEARTBEAT_US + CLEARED_US
        late = EXPIRED_US + EXPIRY_SCAN_US + CLEARED_US
    if scenario.fifo:
        return early, late + LOCK_TICK_US
    # What is read last may be due two seconds after the message is visible, and then nothing comes for three more.
    return early + REVIVE_LAG_US, late + REVIVE_LAG_US + REVIVE_STALE_US + 2 * REVIVE_STEP_US
