"""What a member is to everything around it: the brokers, the NameServer, and its own table of queues."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Protocol

from rmqlb.engine.kernel import Draws
from rmqlb.engine.rebalance.broker import Broker, Channel
from rmqlb.engine.rebalance.event_log import Hold
from rmqlb.engine.rebalance.profile import ConsumerProfile
from rmqlb.engine.rebalance.shares import Share, TopicView
from rmqlb.model.group import ConsumerType
from rmqlb.model.message_queue import MessageQueue


class Table(Protocol):
    """A member's process-queue table, seen from outside."""

    def working(self) -> list[MessageQueue]: ...  # the queues that it owns
    def is_settled(self, shares: Mapping[str, Share | None]) -> bool: ...  # its queues are these, by topic


class Member(Channel, Protocol):
    """A member of the group."""

    client_id: str  # its id, which another process may share
    strategy: str
    type: ConsumerType  # which of RocketMQ's consumers it is
    topics: tuple[str, ...]  # those it reads, among the ones simulated
    allocates: tuple[str, ...]  # those of which it takes its share
    views: dict[str, TopicView]  # topic → the route as it knows it
    alive: bool
    frozen: bool  # it is there, and does nothing
    settled: bool | None  # its queues are those that it will end with; None while it is in the middle of a rebalance
    draws: Draws
    profile: ConsumerProfile  # how its client rebalances
    locks_first: bool  # it takes a queue only with the broker's lock on it
    release_wait_us: int  # for how long an orderly queue's listener is waited for
    pull_delay_us: int  # from taking a queue to its first pull

    @property
    def takes_part(self) -> bool: ...  # it will be in the group in the end: its process is there, and is not frozen
    @property
    def queues(self) -> Table: ...  # its process-queue table
    def calls(self) -> Collection[Broker]: ...  # the brokers that it sends heartbeats to
    def lose_broker(self, broker: Broker) -> None: ...  # the connection to a broker is gone
    # a broker is back, or another process of it is known, whose queues it still pulls
    def pulls_again(self, name: str) -> None: ...
    def rebalance_immediately(self) -> None: ...  # wake the rebalance loop up
    def last_lock_tick(self) -> int: ...  # when a member that has run for a while last renewed its locks
    def hold(self, queue: MessageQueue, from_us: int) -> Hold: ...  # a note that it owns the queue from then on


def ids_of(members: Iterable[Member]) -> list[str]:
    """The client ids of those that take part."""
    return [member.client_id for member in members if member.takes_part]
