"""The built-in rules and times of brokers, Proxies and clients: RocketMQ 5.5.0, rocketmq-client-java 5.2.0.

Each constant names its class. Settings are at their defaults. `BROKERS` lists how other broker versions differ; the
Proxy and the clients follow the same rules from 5.1.0 on.
"""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from rmqlb.model.client_versions import Version, parse_version
from rmqlb.model.simulate_receive import MOST_LOOPS, SECOND_US, ReceiveScenario

MS_US = 1000

# A receive at its broker

EARLY_US = 50 * MS_US  # a waiting request ends so long before its time (`PopRequest.isTimeout`)
SCAN_US = 20 * MS_US  # the broker's interval between searches for requests to end (`PopLongPollingService.run`)
RETRY_FIRST_PERCENT = 20
"""Percentage of requests in which the retry topic comes before the queues (`BrokerConfig.popFromRetryProbability`)."""
RANDOM_QUEUES = 100  # A request draws one of a hundred numbers (`PopMessageProcessor.processRequest`)


class BrokerRules(Struct, frozen=True):
    since: Version
    name: str
    counts_down: bool = False  # requests visit queues downward (`priorityOrderAsc`, RIP-80, 5.4.0)
    every_fifth: bool = False  # the retry topic comes first for numbers that 5 divides (until 5.3.0)
    # A message that comes back wakes a waiting request: `PopReviveService` until 5.1.4, from 5.3.4 on
    # `PopLongPollingService.notifyMessageArrivingFromRetry`. Otherwise the request finds it when its time is over.
    retry_wakes: bool = True

    def order(self, number: int, queues: int, scenario: ReceiveScenario) -> tuple[bool, Iterator[int]]:
        """Whether a request with this number visits the retry topic first, and its order of a broker's queues.

        A request by priority begins at the last queue, which has the highest priority.

        >>> scenario = ReceiveScenario(priority_factor=50)
        >>> [list(BROKERS[0].order(number, 4, scenario)[1]) for number in (49, 50)]
        [[3, 2, 1, 0], [1, 0, 3, 2]]
        """
        steps = range(queues - 1, -1, -1) if self.counts_down else range(queues)
        if number < (scenario.priority_factor or 0):
            return number < scenario.priority_retry_percent, iter(steps)
        retry_first = number % 5 == 0 if self.every_fifth else number < RETRY_FIRST_PERCENT
        return retry_first, ((number + step) % queues for step in steps)


BROKERS = (
    BrokerRules((5, 4, 0), "5.4.0 and newer", counts_down=True),
    BrokerRules((5, 3, 4), "5.3.4"),
    BrokerRules((5, 3, 1), "5.3.1 to 5.3.3", retry_wakes=False),
    BrokerRules((5, 2, 0), "5.2.0 to 5.3.0", every_fifth=True, retry_wakes=False),
    BrokerRules((5, 1, 0), "5.1.0 to 5.1.4", every_fifth=True),
)


def broker_rules(version: str) -> BrokerRules:
    wanted = parse_version(version, "broker", BROKERS[-1].since)
    return next(rules for rules in BROKERS if wanted >= rules.since)


def rules_followed(scenario: ReceiveScenario) -> str:
    client = "remoting client 5.5.0" if scenario.client == "pop" else "Proxy 5.5.0, rocketmq-client-java 5.2.0"
    return f"broker {scenario.broker_version} (rules of {broker_rules(scenario.broker_version).name}), {client}"


# The Proxy

SHORTEST_AWAIT_US = 5 * SECOND_US
LONGEST_AWAIT_US = 20 * SECOND_US
"""`ReceiveMessageActivity.receiveMessage` replaces an await duration outside by the nearer of the two, unless the
client's deadline comes before the shorter one; then it refuses (`ProxyConfig
.grpcClientConsumerMinLongPollingTimeoutMillis` and `…Max…`, which is also a PushConsumer's await duration)."""
SHORTEST_INVISIBLE_US = 10 * SECOND_US
LONGEST_INVISIBLE_US = 12 * 3600 * SECOND_US
"""The Proxy refuses an invisible duration outside (`AbstractMessingActivity.validateInvisibleTime`)."""
RENEWED_US = 60 * SECOND_US
"""Invisible duration of a PushConsumer's messages, renewed while it lives (`ProxyConfig.defaultInvisibleTimeMills`)."""
CLEARED_US = SECOND_US
"""The same when the Proxy knows that it is dead (`DefaultReceiptHandleManager.clearGroup`), and for a message that
cannot be written to its client (`ReceiveMessageResponseStreamWriter.NACK_INVISIBLE_TIME`)."""
EXPIRED_US = 120 * SECOND_US
HEARTBEAT_US = 10 * SECOND_US
EXPIRY_SCAN_US = 10 * SECOND_US
"""A gRPC client counts as dead after the first time without a heartbeat, which the Proxy checks at the last interval
(`ConsumerManager.scanNotActiveChannel`, `ClusterServiceManager`); its heartbeats are `ClientManagerImpl`'s."""
PROXY_ROUTE_US = 20 * SECOND_US
"""How old the Proxy's view of a route gets (`TopicRouteService`, `topicRouteServiceCacheRefreshSeconds`)."""

# Clients

FIRST_ROUTE_US = 10 * SECOND_US
ROUTE_US = 30 * SECOND_US
"""When a gRPC client requests the route again (`ClientImpl.startUp`)."""
FIRST_ASSIGNMENT_US = SECOND_US
ASSIGNMENT_US = 5 * SECOND_US
"""When a PushConsumer requests its assignments (`PushConsumerImpl.startUp`)."""
REQUEST_TIMEOUT_US = 3 * SECOND_US
"""How long after its await duration a gRPC receive's deadline is (`ConsumerImpl.receiveMessage`)."""
PUSH_PAUSE_US = SECOND_US
"""The pause of a PushConsumer after an error (`ProcessQueueImpl.RECEIVING_FAILURE_BACKOFF_DELAY`)."""
POP_AWAIT_US = 15 * SECOND_US  # `DefaultMQPushConsumerImpl.BROKER_SUSPEND_MAX_TIME_MILLIS`
POP_TIMEOUT_US = 10 * SECOND_US  # from it to a POP request's time-out (`PullAPIWrapper.popAsync`)
POP_PAUSE_US = 3 * SECOND_US  # the pause of a POP client after an error (`pullTimeDelayMillsWhenException`)
POP_SHORTEST_INVISIBLE_US = 5 * SECOND_US
POP_LONGEST_INVISIBLE_US = 300 * SECOND_US
"""`popMessage` uses 60 s for a `popInvisibleTime` outside (`MIN_POP_INVISIBLE_TIME`, `MAX_POP_INVISIBLE_TIME`)."""
REBALANCE_US = 20 * SECOND_US  # interval of a POP client's requests for its queues (`RebalanceService`)
FIRST_POP_ROUTE_US = 10 * MS_US
"""`MQClientInstance.startScheduledTask`; then every `ROUTE_US` (`pollNameServerInterval`)."""

# Messages that come back

REVIVE_QUEUES = 8
"""Services per broker, each with a queue of its own; requests use them in turn (`BrokerConfig.reviveQueueNum`)."""
REVIVE_EARLY_US = SECOND_US
"""How long before its messages are visible again a checkpoint is due (`PopMessageProcessor.buildCkMsg`)."""
TIMER_SECOND_US = SECOND_US
TIMER_CHECK_US = 100 * MS_US
"""The timer wheel has full seconds (`timerPrecisionMs`); the second time is how often it checks which have passed
(`HookUtils.transformTimerMessage`, `TimerDequeueGetService`)."""
REVIVE_LAG_US = 2 * SECOND_US
"""How far the entries that a service has read must reach beyond the time at which a message is visible again: one
second for acknowledgements on their way, and one more (`PopReviveService.mergeAndRevive`)."""
REVIVE_STALE_US = 3 * SECOND_US
"""When its last entry is older, its entries reach until now (`PopReviveService.consumeReviveMessage`)."""
REVIVE_STEP_US = 100 * MS_US
REVIVE_QUIET_US = 4 * SECOND_US
REVIVE_SCAN_US = 10 * SECOND_US
"""The steps of a scan; after how long without an entry it ends, and how long it lasts at most (`reviveScanTime`)."""
REVIVE_INTERVAL_US = SECOND_US
REVIVE_MOST_SLOW = 3
"""The pause of a service before each scan (`reviveInterval`). After scans without checkpoints it waits that time once
more for each of them, up to three times (`reviveMaxSlow`)."""
LOCK_TICK_US = 100 * MS_US  # in order, a queue is free at the next tick after its time (`ConsumerOrderInfoLockManager`)
MOST_DELIVERIES = 17
"""One delivery and 16 more, then a message is a dead letter (`SubscriptionGroupConfig.retryMaxTimes`)."""


def awaited_us(scenario: ReceiveScenario) -> int:
    """The time for which a broker lets a receive wait, by the client's kind and the Proxy's limits."""
    if scenario.client == "simple":
        return min(max(scenario.await_us, SHORTEST_AWAIT_US), LONGEST_AWAIT_US)
    return LONGEST_AWAIT_US if scenario.client == "push" else POP_AWAIT_US


def is_refused(scenario: ReceiveScenario) -> bool:
    """Whether the Proxy refuses each receive, because its deadline comes before the shortest await.

    The Proxy counts the remaining time in whole milliseconds, after the way there (`ILLEGAL_POLLING_TIME`).

    >>> [is_refused(ReceiveScenario(await_us=seconds * SECOND_US)) for seconds in (1, 2, 3)]
    [True, True, False]
    """
    left_us = scenario.await_us + REQUEST_TIMEOUT_US - scenario.round_trip_us // 2
    return scenario.client == "simple" and left_us // MS_US * MS_US < SHORTEST_AWAIT_US


def invisible_us(scenario: ReceiveScenario) -> int:
    """The time for which a received message is invisible to others, unless its client acknowledges it.

    >>> invisible_us(ReceiveScenario("pop", invisible_us=1)), invisible_us(ReceiveScenario(invisible_us=12_000_000))
    (60000000, 12000000)
    """
    allowed = POP_SHORTEST_INVISIBLE_US <= scenario.invisible_us <= POP_LONGEST_INVISIBLE_US
    as_asked = scenario.client == "simple" or (scenario.client == "pop" and allowed)
    return scenario.invisible_us if as_asked else RENEWED_US


def may_come_back(scenario: ReceiveScenario) -> bool:
    busy_us = scenario.batch * scenario.consume_us + scenario.round_trip_us
    late = scenario.client != "push" and busy_us > invisible_us(scenario)
    return bool(scenario.crashes or scenario.failures) or late


def silence_us(scenario: ReceiveScenario) -> int:
    return awaited_us(scenario) + (POP_TIMEOUT_US if scenario.client == "pop" else REQUEST_TIMEOUT_US)


def error_pause_us(scenario: ReceiveScenario) -> int:
    return {"simple": scenario.error_pause_us, "push": PUSH_PAUSE_US, "pop": POP_PAUSE_US}[scenario.client]


def over_at(born: int, awaited: int, phase: int) -> int:
    """The end of a waiting request: the first check that is later than its time less 50 ms.

    >>> over_at(0, 20_000_000, 7), over_at(10_000, 20_000_000, 0)
    (19960007, 19980000)
    """
    limit = born + awaited - EARLY_US
    return limit + SCAN_US - (limit - phase) % SCAN_US


def free_at(visible_at: int, phase: int) -> int:
    """The time of the next check of a blocked queue: the next tick of a wheel that began at `phase`.

    >>> free_at(10_000_000, phase=0), free_at(10_000_001, phase=0)
    (10000000, 10100000)
    """
    return visible_at + (phase - visible_at) % LOCK_TICK_US


def cleared_at(crash_us: int, heartbeat_phase: int, scan_phase: int) -> int:
    """The time at which a Proxy drops a dead PushConsumer: its first check after two minutes without a heartbeat.

    >>> cleared_at(60_000_000, heartbeat_phase=0, scan_phase=5_000_000)
    185000000
    """
    due = crash_us - (crash_us - heartbeat_phase) % HEARTBEAT_US + EXPIRED_US
    return due + EXPIRY_SCAN_US - (due - scan_phase) % EXPIRY_SCAN_US


# Closed forms: what needs no simulation.
#
# A SimpleConsumer's receives share one counter over all queues, broker by broker (`SubscriptionLoadBalancer
# .takeMessageQueue`), and each waits at its queue's broker only. Let L receives go round; an empty one takes P; the
# others' queues in a row, seen from a broker, are g = all queues − its own.
#
# - One loop: a message that comes when the broker's last receive has just ended waits g·P. With b brokers of q queues
#   each that is q·(b−1)·P.
# - L loops, when messages are rare: receive n+L begins P after receive n. The row of g queues holds at most ⌊g/L⌋ whole
#   steps, so the wait is ⌊g/L⌋·P, and L > g leaves no gap.
# - At any rates: receives that end early let the loops bunch up at other brokers. In each P every loop takes at least
#   one more queue, and the loop that left the broker takes its next queue after its batch. With P as a receive and the
#   work W on its batch, the gap is at most ⌈g/L⌉·P + W.
#
# A PushConsumer and a POP client wait at every broker at all times.
# `queues` has the readable queues of each broker.


def longest_receive_us(scenario: ReceiveScenario) -> int:
    """The longest that an empty receive takes, with its way there and back."""
    return awaited_us(scenario) - EARLY_US + SCAN_US + scenario.round_trip_us


def longest_row(queues: Sequence[int]) -> int:
    """The most queues of other brokers in a row: g of the worst broker."""
    return sum(queues) - min(queues)


def rare_wait_us(queues: Sequence[int], loops: int, receive_us: int) -> int:
    return longest_row(queues) // loops * receive_us


def unpolled_us(queues: Sequence[int], loops: int, receive_us: int, work_us: int) -> int:
    """The longest time without a receive at a broker, at any rates; each receive is followed by work on its batch.

    >>> unpolled_us([8, 8], 3, 20, 0), unpolled_us([8, 8], 9, 20, 0), unpolled_us([8, 8], 9, 20, 5)
    (60, 20, 30)
    """
    return -(-longest_row(queues) // loops) * (receive_us + work_us) + work_us


def rare_receives(queues: Sequence[int], target_us: int, receive_us: int) -> int | None:
    """The number of parallel receives that keep waits of rare messages within a time; None if there is none.

    >>> rare_receives([8, 8], 1, 20), rare_receives([8, 8], 40, 20), rare_receives([8, 8], 160, 20)
    (9, 3, 1)
    """
    whole = target_us // receive_us if receive_us else longest_row(queues)
    wanted = longest_row(queues) // (whole + 1) + 1
    return wanted if wanted <= MOST_LOOPS else None


def again_after_us(scenario: ReceiveScenario) -> tuple[int, int]:
    """The earliest and the latest time after a consumer's death at which its message can be received again.

    The consumer received the message at its death, or earlier by the time that the application takes for a receive.
    The Proxy must first learn that a PushConsumer is dead.

    >>> again_after_us(ReceiveScenario(invisible_us=30_000_000)), again_after_us(ReceiveScenario("push"))
    ((32000000, 35200000), (113000000, 136200000))
    """
    late = invisible_us(scenario)
    early = max(late - scenario.consume_us * (scenario.batch if scenario.client == "simple" else 1), 0)
    if scenario.client == "push":
        early, late = EXPIRED_US - HEARTBEAT_US + CLEARED_US, EXPIRED_US + EXPIRY_SCAN_US + CLEARED_US
    if scenario.fifo:
        return early, late + LOCK_TICK_US
    # The last entry read may be due two seconds after the message is visible, and then nothing comes for three more.
    return early + REVIVE_LAG_US, late + REVIVE_LAG_US + REVIVE_STALE_US + 2 * REVIVE_STEP_US
