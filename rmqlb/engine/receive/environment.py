"""What brokers and consumers of a simulation share, and a request between them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from rmqlb.engine.kernel import Clock
from rmqlb.engine.receive.recorder import Recorder
from rmqlb.engine.receive.routes import Routes
from rmqlb.engine.receive.rules import awaited_us
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.receive_scenario import ReceiveScenario


class Client(Protocol):
    """Who receives."""

    number: int
    crash_at: int | None
    one_by_one: bool

    def dead(self, at: int) -> bool:
        """The process has died by then."""
        ...

    def goes_on(self, receive: Receive, messages: int) -> None:
        """A receive has ended well, with this number of messages."""
        ...

    def failed(self, receive: Receive) -> None:
        """A receive has ended with an error."""
        ...


class Receive:
    """One request for messages, at the broker of that place."""

    __slots__ = ("client", "loop", "orphan", "place", "started", "waiting")

    def __init__(self, client: Client, loop: int, place: int, started: int) -> None:
        self.client = client
        self.loop = loop
        self.place = place
        self.started = started
        self.waiting = False  # at its broker
        self.orphan = False  # its client has died meanwhile


class Environment:
    """One simulation's time, routes and counts.

    Attributes:
        queue_brokers: the broker of each queue, in the order in which a SimpleConsumer goes round.
        brokers: the names of all brokers, in that order; a broker's place is that in this list.
        proxied: the clients are behind a Proxy.
        awaited_us: how long a broker lets a receive wait.
    """

    def __init__(self, queues: Sequence[MessageQueue], scenario: ReceiveScenario, trial: int) -> None:
        self.scenario = scenario
        self.trial = trial
        self.clock = Clock()
        self.queue_brokers = [queue.broker_name for queue in queues]
        self.brokers = list(dict.fromkeys(self.queue_brokers))
        self.proxied = scenario.client != "pop"
        self.awaited_us = awaited_us(scenario)
        self.routes = Routes(self.brokers, scenario, trial)
        self.recorder = Recorder(len(self.brokers), scenario)
