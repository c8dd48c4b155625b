"""Consumers: what each asks next, and which messages it acknowledges.

Rules of this file:
- Everything that a client asks takes half a round trip there and half back.
- A message is acknowledged when the application is done with it, unless its client has died or the message has become
  visible again before; the acknowledgement takes no time.
"""

from __future__ import annotations

from collections.abc import Callable

from rmqlb.engine.receive.environment import Client, Environment, Receive
from rmqlb.engine.receive.randomness import CONSUMER, draws
from rmqlb.engine.receive.rules import ASSIGNMENT_US, REBALANCE_US, error_pause_us

Send = Callable[[Client, int, str | None], None]
"""What sends a receive of a client's loop to a broker; to none where the Proxy knows none."""
_JAVA_INT = (1 << 31) - 1


class Consumer:
    """A process of the group; `one_by_one`: its application takes the messages of a receive one after the other."""

    one_by_one = True

    def __init__(self, number: int, environment: Environment, send: Send) -> None:
        self.number = number
        self.environment, self.send = environment, send
        own = [crash.at_us for crash in environment.scenario.crashes if crash.consumer == number]
        self.crash_at: int | None = min(own, default=None)
        self.pause_us = error_pause_us(environment.scenario)

    def dead(self, at: int) -> bool:
        """The process has died by then."""
        return self.crash_at is not None and self.crash_at <= at

    def start(self) -> None:
        """Send the first receives."""
        raise NotImplementedError

    def goes_on(self, receive: Receive, messages: int) -> None:
        """A receive has ended well, with this number of messages."""
        raise NotImplementedError

    def failed(self, receive: Receive) -> None:
        """A receive has ended with an error."""
        self.environment.clock.call(self.pause_us, self.receive, receive.loop)

    def receive(self, loop: int) -> None:
        """Send the next receive of a loop."""
        raise NotImplementedError


class SimpleConsumer(Consumer):
    """A gRPC SimpleConsumer, whose application receives in loops (`SimpleConsumerImpl.receive0`).

    Which queue a receive is for, one counter of the client decides (`SubscriptionLoadBalancer.takeMessageQueue`); it
    begins at random and survives route changes.
    """

    def __init__(self, number: int, environment: Environment, send: Send) -> None:
        super().__init__(number, environment, send)
        self._index = draws(environment.scenario.seed, environment.trial, CONSUMER, number).below(_JAVA_INT)
        self._queues = environment.queue_brokers

    def start(self) -> None:
        for loop in range(self.environment.scenario.loops):
            self.receive(loop)

    def receive(self, loop: int) -> None:
        environment = self.environment
        if self.dead(environment.clock.now):
            return
        self._queues = environment.routes.known(environment.queue_brokers, environment.clock.now) or self._queues
        name = self._queues[self._index % len(self._queues)]
        self._index += 1
        self.send(self, loop, environment.routes.through_proxy(name, environment.clock.now))

    def goes_on(self, receive: Receive, messages: int) -> None:
        busy_us = messages * self.environment.scenario.consume_us
        if busy_us:
            self.environment.clock.call(busy_us, self.receive, receive.loop)
        else:
            self.receive(receive.loop)


class BrokerConsumer(Consumer):
    """A client that waits at every broker at all times: a gRPC PushConsumer or a remoting client in POP mode.

    The next receive follows as soon as one is answered; the application works beside it (`ProcessQueueImpl
    .onReceiveMessageResult`, `DefaultMQPushConsumerImpl.popMessage`). That caches fill up is not simulated. A loop
    stands for one assignment: a broker, or in order one of its queues (`RouteActivity.queryAssignment`).
    """

    def __init__(self, number: int, environment: Environment, send: Send) -> None:
        super().__init__(number, environment, send)
        fifo = environment.scenario.fifo
        self.one_by_one = fifo
        self._loops = environment.queue_brokers if fifo else environment.brokers
        self._look_us = ASSIGNMENT_US if environment.proxied else REBALANCE_US

    def start(self) -> None:
        for loop in range(len(self._loops)):
            self.receive(loop)

    def receive(self, loop: int) -> None:
        environment, name = self.environment, self._loops[loop]
        now = environment.clock.now
        if self.dead(now):
            return
        if not environment.routes.client_knows(name, now):
            # It has been dropped; it begins again when an assignment has it again.
            environment.clock.call(self._look_us, self.receive, loop)
            return
        self.send(
            self, loop, environment.routes.through_proxy(name, environment.clock.now) if environment.proxied else name
        )

    def goes_on(self, receive: Receive, messages: int) -> None:  # noqa: ARG002 - it does not wait for its application
        self.receive(receive.loop)


def consumer_of(number: int, environment: Environment, send: Send) -> Consumer:
    """A consumer of the scenario's kind."""
    kind = SimpleConsumer if environment.scenario.client == "simple" else BrokerConsumer
    return kind(number, environment, send)
