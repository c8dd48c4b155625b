"""What a group was put through: part of `rmqlb/simulate-rebalance`."""

from __future__ import annotations

from typing import TypedDict

from rmqlb.model.group import ConsumerType
from rmqlb.model.group_scenario import EventKind


class TopicQueueData(TypedDict):
    """A queue.

    Attributes:
        topic: its topic.
        brokerName: its broker.
        queueId: its number there, from 0.
    """

    topic: str
    brokerName: str
    queueId: int


class RateData(TopicQueueData):
    """How much comes to a queue.

    Attributes:
        topic: its topic.
        brokerName: its broker.
        queueId: its number there, from 0.
        ratePerSecond: messages a second.
    """

    ratePerSecond: float


class TimersData(TypedDict):
    """Every clock of clients, brokers and NameServers; null is what the client version does.

    Attributes:
        rebalanceWaitMs: the longest wait of a client between two looks at its queues.
        rebalanceMinMs: the shortest.
        routePollMs: how often a client asks for routes.
        heartbeatMs: how often it sends heartbeats.
        persistMs: how often it stores offsets.
        pullDelayMs: its first pull of a queue comes so long after it took it.
        pullIdleMs: a queue without a pull for so long is given up and taken anew.
        pullHoldMs: a broker holds a pull that finds nothing for so long.
        lockRenewalMs: how often orderly consumers renew the broker's locks.
        lockLifeMs: a lock that is not renewed for so long goes to another client.
        lockRetryMs: a client that got no lock rebalances again after it.
        unlockDelayMs: delayed unlock, and giving a queue up by force.
        releaseWaitMs: how long a client waits for its listener before it gives a queue up.
        channelExpiryMs: a broker forgets a client without heartbeats after it.
        brokerScanMs: how often it looks for such clients.
        socketIdleMs: a broker closes a silent connection after it.
        notifyBatchMs: a broker collects notices of changed members for so long.
        rpcTimeoutMs: a client gives a silent broker up after it.
        nameserverExpiryMs: a NameServer drops a broker without registration after it.
        nameserverScanMs: how often it looks for such brokers.
        registrationMs: how often a broker registers.
        startMs: from the making of a client's instance until it turns to the brokers, at the least.
        connectMs: what the first request on a new connection takes longer.
        closeMs: until a broker finds the connection of a killed process closed, at the most.
    """

    rebalanceWaitMs: float | None
    rebalanceMinMs: float | None
    routePollMs: float | None
    heartbeatMs: float | None
    persistMs: float | None
    pullDelayMs: float | None
    pullIdleMs: float | None
    pullHoldMs: float | None
    lockRenewalMs: float | None
    lockLifeMs: float | None
    lockRetryMs: float | None
    unlockDelayMs: float | None
    releaseWaitMs: float | None
    channelExpiryMs: float | None
    brokerScanMs: float | None
    socketIdleMs: float | None
    notifyBatchMs: float | None
    rpcTimeoutMs: float | None
    nameserverExpiryMs: float | None
    nameserverScanMs: float | None
    registrationMs: float | None
    startMs: float | None
    connectMs: float | None
    closeMs: float | None


class GroupScenarioData(TypedDict):
    """What was simulated.

    Attributes:
        clientVersion: version of the client.
        profile: the stretch of versions whose rules were followed.
        orderly: the listener is orderly, so that queues are locked at the broker.
        broadcasting: BROADCASTING instead of CLUSTERING.
        consumeFromWhere: where a queue without an offset is begun.
        consumerType: which of RocketMQ's consumers the members are.
        consumerTypes: client id → which it is, of those that are known one by one.
        timers: every clock.
        latencyMs: a request's way to a server and back.
        consumeMs: how long the listener takes for a message.
        rates: queues whose rate is known.
        untilMs: where the simulation ends; null when the group is settled.
        patienceMs: how long after the last event it ends at the latest.
        allNew: the members start with the simulation.
        seed: of everything random.
    """

    clientVersion: str
    profile: str
    orderly: bool
    broadcasting: bool
    consumeFromWhere: str
    consumerType: ConsumerType
    consumerTypes: dict[str, ConsumerType]
    timers: TimersData
    latencyMs: float
    consumeMs: float
    rates: list[RateData]
    untilMs: float | None
    patienceMs: float
    allNew: bool
    seed: int


class EventData(TypedDict):
    """Something that happens to the group or its brokers.

    Attributes:
        atMs: when.
        kind: what.
        subject: client id, broker or topic that it is about.
        strategy: of a process that joins; null for the group's.
        brokerName: of a route change; null for all brokers of the topic.
        readQueueNums: new number; null for as before.
        writeQueueNums: likewise.
        withSlaves: the broker's slaves are meant as well.
        text: as typed.
    """

    atMs: float
    kind: EventKind
    subject: str
    strategy: str | None
    brokerName: str | None
    readQueueNums: int | None
    writeQueueNums: int | None
    withSlaves: bool
    text: str
