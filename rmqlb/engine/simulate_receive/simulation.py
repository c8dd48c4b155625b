"""Consumers that receive, the way of their requests and answers, and what becomes of the messages.

Rules of this file:
- Every request takes half a round trip there and half back.
- A message is acknowledged when the application is done with it, unless its client has died or the message has become
  visible again before; the acknowledgement takes no time.
- At rates, messages go on arriving until those of the scenario, the measured ones, are received. Without further
  arrivals the last measured messages would meet receives that wait at idle brokers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from rmqlb.engine.simulate_receive.broker import Broker
from rmqlb.engine.simulate_receive.rules import (
    CLEARED_US,
    EXPIRY_SCAN_US,
    HEARTBEAT_US,
    MOST_DELIVERIES,
    cleared_at,
    invisible_us,
    longest_receive_us,
    silence_us,
)
from rmqlb.engine.simulate_receive.world import (
    CONSUMER,
    NEVER,
    PROXY,
    UNKNOWN,
    Consumer,
    Environment,
    Message,
    Outage,
    Receive,
    arrivals,
    consumer_of,
    draws,
)
from rmqlb.model.limits import LONGEST_US
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.simulate_receive import ReceiveScenario

MOST_FURTHER = 100_000
"""Messages that arrive after the measured ones, at the most."""
_TOLD_EVERY = 1000


class ReceiveSimulation:
    """One simulation."""

    def __init__(self, queues: Sequence[MessageQueue], scenario: ReceiveScenario, trial: int) -> None:
        self.queues = list(queues)
        self.environment = Environment(queues, scenario, trial)
        self.scenario = scenario
        self.clock, self.routes = self.environment.clock, self.environment.routes
        self.recorder = self.environment.recorder
        self._invisible_us = invisible_us(scenario)
        self._out_us = scenario.round_trip_us // 2
        self._back_us = scenario.round_trip_us - self._out_us
        counts = Counter(self.environment.queue_brokers)
        self.brokers = [
            Broker(place, counts[name], self.environment, self._answer, self._meets_outage)
            for place, name in enumerate(self.environment.brokers)
        ]
        self._by_name = {broker.name: broker for broker in self.brokers}
        self.crash_at = [crash.at_us for crash in scenario.crashes]
        self._crash_of = {crash.consumer: place for place, crash in enumerate(scenario.crashes)}
        numbers = range(1, scenario.consumers + 1)
        self.consumers = [consumer_of(number, self.environment, self._send) for number in numbers]
        self._all_measured = False  # those to be measured have arrived
        self._gone: set[int] = set()  # places of brokers that fail for good
        self._arrivals = arrivals(self.queues, scenario, trial, self._round_us())

    def run(self, progress: Callable[[int], None] | None = None, until_wait_us: int = NEVER) -> None:
        """All of it, or until a message has waited longer; `progress` gets the number of messages now and then."""
        for name, outages in self.routes.outages.items():
            for outage in outages:
                self.clock.call(outage.begin, self._outage_begins, self._by_name[name], outage)
                if outage.end < NEVER:
                    self.clock.call(outage.end, self._outage_ends, self._by_name[name])
        for at in self.crash_at:
            self.clock.call(at, self._crash)
        for consumer in self.consumers:
            self.clock.call(0, consumer.start)
        self._next_arrival()
        told = 0
        while self.recorder.longest_wait <= until_wait_us and not self._over() and self.clock.do_next(LONGEST_US):
            if progress is not None and len(self.recorder.messages) >= told:
                progress(told)
                told += _TOLD_EVERY

    # -- what clients ask ------------------------------------------------------------------------

    def _send(self, client: Consumer, loop: int, name: str | None) -> None:
        """A receive sets out for a broker; one for none fails."""
        broker = self.brokers[0] if name is None else self._by_name[name]
        receive = Receive(client, loop, broker.place, self.clock.now)
        self.recorder.brokers[broker.place].receives += 1
        if name is None:
            self.clock.call(max(self.scenario.round_trip_us, 1), self._fails, receive, None)
        else:
            self.clock.call(self._out_us, broker.arrive, receive)

    def _meets_outage(self, receive: Receive) -> None:
        """A receive comes to a broker that fails, or that fails while it waits there."""
        now = self.clock.now
        outage = self.routes.outage(self.brokers[receive.place].name, now)
        if outage is not None and outage.silent:
            delay_us = receive.started + silence_us(self.scenario) - now
        else:
            cost_us = 0 if outage is None else outage.failure.reaction.cost_us
            delay_us = cost_us + self._back_us
        self.clock.call(max(delay_us, 1), self._fails, receive, outage)

    def _answer(self, receive: Receive, messages: list[Message]) -> None:
        """A broker answers; without messages the time of the receive is over."""
        popped_at = self.clock.now
        if receive.client.dead(popped_at + self._back_us):
            if messages:
                self._not_written(receive, messages, popped_at)
            return
        self.clock.call(self._back_us, self._answered, receive, messages, popped_at)

    def _answered(self, receive: Receive, messages: list[Message], popped_at: int) -> None:
        now, client = self.clock.now, receive.client
        for message in messages:
            self.recorder.delivered(message, client.number, now, self.crash_at)
            self._note_return(message, now)
        if messages:
            self._settle(receive, messages, popped_at)
        client.goes_on(receive, len(messages))

    def _fails(self, receive: Receive, outage: Outage | None) -> None:
        now = self.clock.now
        if receive.client.dead(now):
            return
        self.recorder.brokers[receive.place].failed += 1
        if outage is not None:
            counts = self.recorder.outages[outage.place]
            counts.failed += 1
            counts.last_failed = now
        receive.client.failed(receive)

    # -- what becomes of messages ----------------------------------------------------------------

    def _settle(self, receive: Receive, messages: list[Message], popped_at: int) -> None:
        """Which messages are acknowledged, and when the others come back."""
        now, client, consume_us = self.clock.now, receive.client, self.scenario.consume_us
        renewed = self.scenario.client == "push"
        visible_at = NEVER if renewed else popped_at + self._invisible_us
        orphans: list[Message] = []
        late: list[Message] = []
        for place, message in enumerate(messages):
            done_at = now + consume_us * (place + 1 if client.one_by_one else 1)
            if client.dead(done_at):
                orphans.append(message)
                continue
            if renewed:
                done_at = self.routes.back_at(
                    self.brokers[receive.place].name, done_at
                )  # it is acknowledged again and again
            elif done_at > visible_at or self.routes.outage(self.brokers[receive.place].name, done_at) is not None:
                late.append(message)
                continue
            if done_at < NEVER:
                self._acknowledge(self.brokers[receive.place], message, done_at)
        broker = self.brokers[receive.place]
        if len(messages) > len(late) + len(orphans):
            broker.checkpoint(popped_at + self._invisible_us)
        if late:
            self._come_back(broker, late, visible_at)
        if orphans and renewed:
            cleared_at = self._cleared_at(client)
            self._orphaned(receive, orphans, cleared_at + CLEARED_US, known_at=cleared_at)
        elif orphans:
            self._orphaned(receive, orphans, visible_at)

    def _not_written(self, receive: Receive, messages: list[Message], popped_at: int) -> None:
        """Its client has died: the Proxy hands messages back at once (`processThrowableWhenWriteMessage`)."""
        visible_at = popped_at + (CLEARED_US if self.environment.proxied else self._invisible_us)
        self._orphaned(receive, messages, visible_at)

    def _orphaned(self, receive: Receive, messages: list[Message], visible_at: int, known_at: int = 0) -> None:
        crash = self._crash_of[receive.client.number]
        for message in messages:
            # One that is handed to several orphaned receives, one after the other, counts once.
            if message.number and message.crash == UNKNOWN:
                self.recorder.crashes[crash].unacknowledged += 1
                message.crash = crash
        delay_us = max(known_at - self.clock.now, 0)
        self.clock.call(delay_us, self._come_back, self.brokers[receive.place], messages, visible_at)

    def _acknowledge(self, broker: Broker, message: Message, done_at: int) -> None:
        self.recorder.done(message, done_at)
        if self.scenario.fifo:
            if done_at > self.clock.now:
                self.clock.call(done_at - self.clock.now, broker.acknowledged, message.queue)
            else:
                broker.acknowledged(message.queue)

    def _come_back(self, broker: Broker, messages: list[Message], visible_at: int) -> None:
        alive = [message for message in messages if message.deliveries < MOST_DELIVERIES]
        for message in messages:
            if message.deliveries >= MOST_DELIVERIES:
                self.recorder.dead_letter(message)
                if self.scenario.fifo:
                    broker.acknowledged(message.queue)
        if alive:
            broker.come_back(alive, visible_at)

    def _cleared_at(self, client: Consumer) -> int:
        heartbeats = draws(self.scenario.seed, self.environment.trial, CONSUMER, client.number + (1 << 20)).below(
            HEARTBEAT_US
        )
        scans = draws(self.scenario.seed, self.environment.trial, PROXY, 2).below(EXPIRY_SCAN_US)
        return cleared_at(client.crash_at or 0, heartbeats, scans)

    def _note_return(self, message: Message, now: int) -> None:
        for outage in self.routes.outages.get(self.brokers[message.place].name, ()):
            counts = self.recorder.outages[outage.place]
            if now >= outage.end and counts.received_again == UNKNOWN:
                counts.received_again = now

    # -- what happens by itself ------------------------------------------------------------------

    def _next_arrival(self) -> None:
        scenario, now = self.scenario, self.clock.now
        arrived = len(self.recorder.messages) + self.recorder.not_stored
        if scenario.messages is not None and arrived >= scenario.messages:
            self._all_measured = True
        at, place = next(self._arrivals)
        if not self._all_measured and scenario.duration_us is not None and at >= scenario.duration_us:
            self.clock.call(max(scenario.duration_us - now, 0), self._measures_no_more)
        self.clock.call(max(at - now, 0), self._arrives, place)

    def _measures_no_more(self) -> None:
        self._all_measured = True

    def _goes_on(self) -> bool:
        """Messages arrive that are not measured: a measured one is still to be received, and a consumer lives."""
        if self.scenario.rare or self.recorder.further >= MOST_FURTHER or not self.recorder.awaits_one(self._gone):
            return False
        return any(not consumer.dead(self.clock.now) for consumer in self.consumers)

    def _arrives(self, place: int) -> None:
        if self._all_measured and not self._goes_on():
            return
        queue = self.queues[place]
        broker, now, measured = self._by_name[queue.broker_name], self.clock.now, not self._all_measured
        if self.routes.outage(broker.name, now) is None:
            broker.store(self.recorder.store(broker.place, queue.queue_id, now, measured=measured))
        else:
            self.recorder.not_stored += measured
        self._next_arrival()

    def _outage_begins(self, broker: Broker, outage: Outage) -> None:
        now = self.clock.now
        for message in broker.waiting_messages():
            message.outage = outage.place
        for receive in broker.fail():
            self._meets_outage(receive)
        counts = self.recorder.brokers[broker.place]
        if counts.unpolled_since is not None:
            self.recorder.polled(broker.place, now)
        if self.routes.back_at(broker.name, now) >= NEVER:
            self._gone.add(broker.place)

    def _outage_ends(self, broker: Broker) -> None:
        if self.routes.outage(broker.name, self.clock.now) is None:
            self.recorder.brokers[broker.place].unpolled_since = self.clock.now

    def _crash(self) -> None:
        for broker in self.brokers:
            broker.orphaned()

    def _over(self) -> bool:
        if not self._all_measured:
            return False
        return not any(counts.open for place, counts in enumerate(self.recorder.brokers) if place not in self._gone)

    def _round_us(self) -> int:
        """How long all receives take to go round once when no message comes."""
        receive_us = longest_receive_us(self.scenario)
        if self.scenario.client != "simple":
            return receive_us
        return -(-len(self.queues) // (self.scenario.loops * self.scenario.consumers)) * receive_us
