"""A push consumer's process: how it starts and ends, and the timers that it runs.

Mirrors `DefaultMQPushConsumerImpl` (start, shutdown), `MQClientInstance` (route polls, heartbeats, asking for the
members) and `RebalanceService` (the loop). Requests are made one after the other, as the client's threads make them; a
request that runs into a silent broker holds its thread up until the timeout.
"""

from __future__ import annotations

from collections.abc import Generator

from rmqlb.engine.consume.broker import Broker
from rmqlb.engine.consume.clock import Bell, Process, Steps
from rmqlb.engine.consume.process_queues import ProcessQueues
from rmqlb.engine.consume.record import Hold
from rmqlb.engine.consume.shares import TopicView
from rmqlb.engine.consume.world import World
from rmqlb.engine.randomness import Draws
from rmqlb.model.consuming import SECOND_US
from rmqlb.model.message_queue import MessageQueue

_FIRST_POLL_US = 10_000
_FIRST_HEARTBEAT_US = SECOND_US
_FIRST_PERSIST_US = 10 * SECOND_US
_FIRST_LOCK_US = SECOND_US
_PULL_RETRY_US = SECOND_US
_ROUNDS_US = 3600 * SECOND_US
"""All default timers are in the same place again after it, so that an age drawn from it has every phase as likely."""


class Client:
    """One member.

    Attributes:
        client_id: its id, which another process may share.
        strategy: the strategy it runs.
        topics: those it subscribes to, among the ones simulated.
        views: topic → the route as it knows it.
        queues: its process-queue table.
        created_us: when its `MQClientInstance` was made.
        settled: its queues are those that it will end with; None while it is in the middle of a rebalance.
    """

    def __init__(
        self, client_id: str, *, number: int, strategy: str, topics: tuple[str, ...], world: World, created_us: int
    ) -> None:
        self.client_id = client_id
        self.strategy = strategy
        self.topics = topics
        self.views: dict[str, TopicView] = {}
        self.alive = True
        self.settled: bool | None = False
        self.draws = world.draws(number)
        self.world = world
        self.queues = ProcessQueues(self)
        self.created_us = created_us
        self._bell = Bell()
        self._last_us = created_us
        self._processes: list[Process] = []
        self._addresses: tuple[Broker, ...] = ()
        self._connected: dict[Broker, None] = {}
        self._beating = False

    def start(self) -> None:
        """The process starts now (`DefaultMQPushConsumerImpl.start`)."""
        self._run_timers()
        self._do(self._begin())

    def have_run(self) -> None:
        """It started long ago, and everything is as it should be at time 0."""
        clock, timers = self.world.clock, self.world.timers
        for topic in self.topics:
            if topic in self.world.name_server.views:
                self._learn(self.world.name_server.views[topic])
        self._connected.update(dict.fromkeys(self._addresses))
        beat = _last_tick(self.created_us + _FIRST_HEARTBEAT_US, timers.heartbeat_us, 0)
        for broker in self._addresses:
            broker.beat(self, at_us=beat)
        self._last_us = -self.draws.below(timers.rebalance_wait_us)
        self._run_timers(clock.now)

    def leave(self) -> None:
        """`DefaultMQPushConsumerImpl.shutdown`: it stops to consume first, and says good-bye at the end."""
        self._die()
        held = self.queues.drop_all(persisted=True)
        self._do(self._good_bye([queue for queue in held if self.world.locks]))

    def crash(self) -> None:
        """Its process is killed: the system closes its connections."""
        self._die()
        self.queues.drop_all(persisted=False)
        for broker in self._connected:
            self.world.clock.call(self.world.one_way(self.draws), _Closed(broker, self))

    def lose_host(self) -> None:
        """Its machine falls silent: nobody is told."""
        now, timers = self.world.clock.now, self.world.timers
        self._die()
        idle = {broker: self._last_traffic(broker) for broker in self._connected}
        self.queues.drop_all(persisted=False)
        for broker, last in idle.items():
            self.world.clock.call(max(last + timers.socket_idle_us - now, 0), _Closed(broker, self))

    def lose_broker(self, broker: Broker) -> None:
        """The connection to a broker is gone."""
        self._connected.pop(broker, None)

    def notice(self, broker: Broker) -> None:
        """`ClientRemotingProcessor.notifyConsumerIdsChanged`."""
        if self.alive:
            if self.world.record.explain:
                self.world.say(self.client_id, "wake", f"is told by {broker} that the members have changed")
            self.rebalance_immediately()

    def rebalance_immediately(self, _: int = 0) -> None:
        """`MQClientInstance.rebalanceImmediately`: wake the rebalance loop up."""
        self._bell.ring()

    def pulls_again(self, broker: Broker) -> None:
        """A broker is back whose queues it still pulls; its retries are a second apart."""
        self._do(self._pull_again(broker), self.draws.below(_PULL_RETRY_US))

    def calls(self, broker: Broker) -> bool:
        """It sends heartbeats to this broker."""
        return broker in self._addresses

    def touch(self, broker: Broker) -> None:
        """A request goes to a broker that is up; a new connection has consequences of its own in newer clients."""
        if broker in self._connected:
            return
        self._connected[broker] = None
        if self.alive and self.world.profile.hears_channels and not self._beating:
            self._do(self._greet(broker))

    def persisted_before(self, at_us: int) -> int | None:
        """When its timer last stored all offsets, at or before a time (`MQClientInstance.persistAllConsumerOffset`)."""
        first = self.created_us + _FIRST_PERSIST_US
        return None if first > at_us else _last_tick(first, self.world.timers.persist_us, at_us)

    def hold(self, queue: MessageQueue, from_us: int) -> Hold:
        """A note that it owns the queue from then on."""
        return Hold(queue, self.client_id, from_us, self.persisted_before)

    def request(self, broker: Broker) -> Generator[int, None, bool]:
        """The way of a request to a broker; True when it arrives, False when it has failed."""
        world = self.world
        if broker.up:
            self.touch(broker)
            yield world.one_way(self.draws)
            if broker.up:
                return True
        yield world.timers.rpc_timeout_us if broker.silent else world.one_way(self.draws)
        return False

    def answer(self) -> int:
        """How long the answer's way back takes."""
        return self.world.one_way(self.draws)

    def heartbeats(self) -> Generator[int, None, bool]:
        """`MQClientInstance.sendHeartbeatToAllBrokerWithLock`: one broker after the other; True when it was tried."""
        if self._beating or not self._addresses:
            return False
        self._beating = True
        for broker in self._addresses:
            if (yield from self.request(broker)):
                broker.beat(self)
                yield self.answer()
        self._beating = False
        return True

    def member_ids(self, view: TopicView) -> Generator[int, None, tuple[Broker | None, tuple[str, ...] | None]]:
        """`MQClientInstance.findConsumerIdList`: one broker of the route at random, its master if it has one.

        Returns:
            The broker asked, and the ids; None when it does not answer, or knows nobody of the group.
        """
        name = view.brokers[self.draws.below(len(view.brokers))]
        broker = self.world.master(name) or self.world.any_slave(name, self.draws)
        if broker is None or not (yield from self.request(broker)):
            return broker, None
        ids = broker.client_ids
        yield self.answer()
        return broker, ids

    def _do(self, steps: Steps, delay_us: int = 0) -> None:
        self._processes.append(self.world.clock.start(steps, delay_us))

    def _die(self) -> None:
        for process in self._processes:
            process.end()
        self._processes.clear()
        self.alive = False
        self._beating = False

    def _run_timers(self, now: int | None = None) -> None:
        """`MQClientInstance.startScheduledTask` and the loop, which in a client that has run goes on where it is."""
        world, timers = self.world, self.world.timers
        born = self.created_us
        begin = world.clock.now
        loop = world.clock.start(self._loop(begin if now is None else self._last_us))
        self._bell.belongs_to(loop)
        self._processes.append(loop)
        self._do(self._polls(), _first_tick(born + _FIRST_POLL_US, timers.route_poll_us, begin) - begin)
        self._do(self._beats(), _first_tick(born + _FIRST_HEARTBEAT_US, timers.heartbeat_us, begin) - begin)
        if world.locks:
            self._do(
                self.queues.renew_locks(), _first_tick(born + _FIRST_LOCK_US, timers.lock_renewal_us, begin) - begin
            )

    def last_lock_tick(self) -> int:
        """When a client that has run last renewed its locks."""
        return _last_tick(self.created_us + _FIRST_LOCK_US, self.world.timers.lock_renewal_us, 0)

    def _loop(self, last_us: int) -> Steps:
        """`RebalanceService.run`."""
        clock, timers, profile = self.world.clock, self.world.timers, self.world.profile
        wait = max(last_us + timers.rebalance_wait_us - clock.now, 0)
        while True:
            yield from self._bell.wait(wait)
            since = clock.now - self._last_us
            if profile.min_interval and since < timers.rebalance_min_us:
                wait = timers.rebalance_min_us - since
                continue
            balanced = yield from self._rebalance()
            wait = timers.rebalance_wait_us
            if profile.min_interval and not balanced:
                wait = timers.rebalance_min_us
            self._last_us = clock.now

    def _rebalance(self) -> Generator[int, None, bool]:
        """`RebalanceImpl.doRebalance`."""
        world = self.world
        world.record.rebalances += 1
        self.settled = None
        balanced = True
        for topic in self.topics:
            if not (yield from self.queues.rebalance_by_topic(topic)):
                balanced = False
        world.check(self)
        return balanced

    def _begin(self) -> Steps:
        world = self.world
        for topic in self.topics:
            yield 2 * world.one_way(self.draws)
            self._poll(topic)
        tried = yield from self.heartbeats()
        if tried or not world.profile.min_interval:
            self.rebalance_immediately()

    def _polls(self) -> Steps:
        """`MQClientInstance.updateTopicRouteInfoFromNameServer` for each topic, at a fixed rate."""
        clock, every = self.world.clock, self.world.timers.route_poll_us
        begin = clock.now
        while True:
            for topic in self.topics:
                yield 2 * self.world.one_way(self.draws)
                self._poll(topic)
            yield max(every - (clock.now - begin) % every, 0)

    def _poll(self, topic: str) -> None:
        """A topic without a route any more keeps the one that is known."""
        view = self.world.name_server.views.get(topic)
        if view is not None and self.views.get(topic) is not view:
            if self.world.record.explain and topic in self.views:
                text = f"learns the new route of {topic}: {len(view.queues)} queues on {', '.join(view.brokers)}"
                self.world.say(self.client_id, "route", text)
            self._learn(view)

    def _learn(self, view: TopicView) -> None:
        self.views[view.topic] = view
        self.settled = False
        names = dict.fromkeys(name for known in self.views.values() for name in known.brokers)
        self._addresses = self.world.addresses(names)

    def _beats(self) -> Steps:
        clock, every = self.world.clock, self.world.timers.heartbeat_us
        begin = clock.now
        while True:
            yield from self.heartbeats()
            yield max(every - (clock.now - begin) % every, 0)

    def _pull_again(self, broker: Broker) -> Steps:
        yield from self.request(broker)

    def _greet(self, broker: Broker) -> Steps:
        """`MQClientInstance`'s `ChannelEventListener.onChannelActive`: not while another heartbeat is under way."""
        if broker not in self._addresses:
            return
        self._beating = True
        arrived = yield from self.request(broker)
        if arrived:
            broker.beat(self)
            yield self.answer()
        self._beating = False
        if arrived:
            self.rebalance_immediately()

    def _good_bye(self, locked: list[MessageQueue]) -> Steps:
        """Unlock all (orderly), then unregister from one broker after the other."""
        for broker in dict.fromkeys(self.world.master(queue.broker_name) for queue in locked):
            if broker is not None and (yield from self.request(broker)):
                for queue in locked:
                    if queue.broker_name == broker.name:
                        broker.unlock(queue, self.client_id)
                yield self.answer()
        for broker in self._addresses:
            if (yield from self.request(broker)):
                broker.forget(self, f"is told that {self.client_id} goes")
                yield self.answer()

    def _last_traffic(self, broker: Broker) -> int:
        """When the broker last reads from or writes to the connection; a pull that it holds is still answered."""
        now = self.world.clock.now
        last = broker.last_beat_us(self) if broker.knows(self) else now
        held = [queue for queue in self.queues.working() if queue.broker_name == broker.name]
        if held and broker.broker_id == 0:
            hold_us = self.world.timers.pull_hold_us
            last = max(last, self.persisted_before(now) or last)
            rates = self.world.rates
            for queue in held:
                rate = rates.get(queue)
                until_message = hold_us if not rate else min(hold_us, int(SECOND_US / rate))
                last = max(last, now + self.draws.below(until_message))
        return last


def age_us(draws: Draws) -> int:
    """How long a member has been running that was there before the start."""
    return _ROUNDS_US + draws.below(_ROUNDS_US)


def _first_tick(first: int, every: int, since: int) -> int:
    """The first time of a timer at or after a moment."""
    return first if first >= since else first + -(-(since - first) // every) * every


def _last_tick(first: int, every: int, until: int) -> int:
    """The last time of a timer at or before a moment; it has begun by then."""
    return first + (until - first) // every * every


class _Closed:
    """A broker finds a connection closed."""

    __slots__ = ("_broker", "_client")

    def __init__(self, broker: Broker, client: Client) -> None:
        self._broker = broker
        self._client = client

    def __call__(self, _: int) -> None:
        if self._broker.up:
            self._broker.forget(self._client, f"finds the connection of {self._client.client_id} closed")
