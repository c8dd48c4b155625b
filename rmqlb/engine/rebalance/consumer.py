"""A consumer's process: how it starts and ends, and the timers that it runs.

Mirrors `DefaultMQPushConsumerImpl` (start, shutdown), `MQClientInstance` (route polls, heartbeats, requests) and
`RebalanceService` (the loop); where the consumer's profile says so, the Go and the C++ client (`profile.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Mapping

from rmqlb.engine.kernel import Bell, Process, Steps, first_tick, last_tick, until_next_tick
from rmqlb.engine.rebalance.connections import Connections
from rmqlb.engine.rebalance.environment import Broker, GroupEnvironment, TopicView
from rmqlb.engine.rebalance.process_queues import ProcessQueues
from rmqlb.engine.rebalance.timelines import Hold
from rmqlb.model.group_scenario import SECOND_US
from rmqlb.model.message_queue import MessageQueue

_PULL_RETRY_US = SECOND_US
_AUTO_COMMIT_US = 5 * SECOND_US  # `autoCommitIntervalMillis` of lite pull consumers
_WAKE_US = 5_000
"""When a frozen process continues, each of its threads waits at most that long for the others."""


class Client:
    def __init__(
        self,
        client_id: str,
        *,
        number: int,
        strategy: str,
        topics: tuple[str, ...],
        env: GroupEnvironment,
        created_us: int,  # time of its `MQClientInstance`
    ) -> None:
        self.client_id, self.strategy = client_id, strategy
        self.type = env.scenario.consumer_types.get(client_id, env.scenario.consumer_type)
        self.profile, self.clocks = env.profile_of(client_id)
        wait, delay = env.timers.release_wait_us, env.timers.pull_delay_us
        self.release_wait_us = self.profile.release_wait_us if wait is None else wait
        self.pull_delay_us = self.profile.pull_delay_us if delay is None else delay
        # it takes a queue only with the broker's lock: with locks, and in BROADCASTING groups of older clients
        self.locks_first = env.locks or (env.scenario.orderly and self.profile.locks_broadcast)
        self.topics = topics
        # the topics of which it takes its share; none if it assigns itself queues
        self.allocates = () if self.type == "assign" else topics
        self.views: dict[str, TopicView] = {}
        self.alive, self.frozen = True, False
        self.env, self.draws = env, env.draws(number)
        nobody = env.shares.list_of(()) if self.profile.error_is_nobody else None
        self.connections = Connections(self, env, self.draws, self.views, self._opened, nobody)
        self.queues = ProcessQueues(self, self.connections, env)
        self.created_us = self._last_us = created_us
        self._bell = Bell()
        self._wanted = 0  # rebalances that wait for each other
        self._freezes = 0
        self._processes: list[Process] = []
        self.settled = False

    @property
    def takes_part(self) -> bool:
        return self.alive and not self.frozen

    @property
    def settled(self) -> bool | None:
        """Whether its queues are final; None in the middle of a rebalance."""
        return self._settled

    @settled.setter
    def settled(self, settled: bool | None) -> None:
        self._settled = settled
        self.env.note_settled(self)

    def start(self) -> None:
        self._run_timers()
        self._do(self._begin())

    def have_run(self) -> None:
        clocks = self.clocks
        for topic in self.topics:
            if topic in self.env.name_server.views:
                self._learn(self.env.name_server.views[topic])
        self.connections.have_stood()
        beat = last_tick(self.created_us + clocks.first_heartbeat_us, clocks.heartbeat_us, 0)
        for broker in self.connections.addresses:
            broker.beat(self, at_us=beat)
        self._last_us = -self.draws.below(clocks.rebalance_wait_us)
        self._run_timers()

    def leave(self) -> None:
        """`DefaultMQPushConsumerImpl.shutdown`: stop consuming first, and unregister at the end."""
        self._die()
        had = self.queues.drop_all(persisted=True)
        locked = had if self.env.locks else []
        self._do(self.connections.good_bye(self.client_id, locked, unregisters=self.profile.unregisters))

    def crash(self) -> None:
        self._die()
        self.queues.drop_all(persisted=False)
        self.connections.hang_up()

    def lose_host(self) -> None:
        self._die()
        idle = self._idle_from()
        self.queues.drop_all(persisted=False)
        for broker, delay_us in idle.items():
            self.env.clock.call(delay_us, self.connections.found_closed, broker)

    def freeze(self) -> None:
        """Freeze the process (stopped, or in garbage collection): its connections stay open, and it sends nothing.

        Without heartbeats brokers forget the consumer (`ConsumerManager.scanNotActiveChannel`), or close the idle
        connection. It receives notices when it continues.
        """
        self.frozen = True
        self._freezes += 1
        for process in self._processes:
            process.freeze()
        self.queues.freeze()
        for broker, delay_us in self._idle_from().items():
            self.env.clock.call(delay_us, self._found_idle, broker, self._freezes)

    def unfreeze(self) -> None:
        """Continue: each timer that was missed runs once now, and requests that have arrived are read."""
        self.frozen = False
        closed = [broker for broker in self.connections.addresses if broker not in self.connections.connected]
        if closed and self.profile.loses_connections and self.draws.below(2):  # 2 of 4 recordings
            self.connections.twice = closed[self.draws.below(len(closed))]
        for process in self._processes:
            process.unfreeze(self.draws.below(_WAKE_US))
        self.queues.unfreeze()
        for name in dict.fromkeys(self.env.broker_name(queue) for queue in self.queues.working()):
            broker = self.connections.pulled_from(name)
            if broker is not None and broker not in self.connections.connected:
                self._do(self._pull_again(broker, []), _PULL_RETRY_US)

    def closed(self, broker: Broker) -> bool:
        self.connections.connected.pop(broker, None)
        return self.alive

    def _found_idle(self, broker: Broker, freeze: int) -> None:
        if self.frozen and freeze == self._freezes and broker in self.connections.connected:
            self.closed(broker)
            self.connections.found_closed(broker)

    def _idle_from(self) -> dict[Broker, int]:
        """The time until each broker closes the connection if nothing is sent from now on."""
        now, timers = self.env.clock.now, self.env.timers
        working: dict[str, list[MessageQueue]] = {}
        for queue in self.queues.working():
            working.setdefault(self.env.broker_name(queue), []).append(queue)
        last = {broker: self._last_traffic(broker, working) for broker in self.connections.connected}
        return {broker: max(at + timers.socket_idle_us - now, 0) for broker, at in last.items()}

    def lose_broker(self, broker: Broker) -> None:
        self.connections.connected.pop(broker, None)
        self.queues.pause(broker)

    def notice(self, broker: Broker) -> None:
        """`ClientRemotingProcessor.notifyConsumerIdsChanged`."""
        if self.alive:
            if self.env.log.explain and not self.frozen:
                self.env.say(self.client_id, "wake", f"is told by {broker} that the consumers have changed")
            self.rebalance_immediately()

    def rebalance_immediately(self) -> None:
        """`MQClientInstance.rebalanceImmediately`: wake the rebalance loop, or rebalance once for each call."""
        if self.profile.ticks:
            self._do(self._rebalance_in_turn())
        else:
            self._bell.ring()

    def pulls_again(self, name: str) -> None:
        """Retry the pulls, once a second, of a broker that is back or has another known process."""
        broker = self.connections.pulled_from(name)
        if broker is None or not broker.up:
            return
        paused = self.queues.paused(name)
        self.env.log.resuming.update(paused)
        self._do(self._pull_again(broker, paused), self.draws.below(_PULL_RETRY_US))

    def calls(self) -> Collection[Broker]:
        return self.connections.addresses

    def persisted_before(self, at_us: int) -> int | None:
        """When its timer last stored all offsets (`MQClientInstance.persistAllConsumerOffset`)."""
        first = self.created_us + self.clocks.first_persist_us
        return None if first > at_us else last_tick(first, self.clocks.persist_us, at_us)

    def hold(self, queue: MessageQueue, from_us: int) -> Hold:
        return Hold(queue, self.client_id, from_us, self.persisted_before, self._committed_before)

    def _committed_before(self, at_us: int) -> int:
        """A lite pull consumer commits every 5 s while it polls (`maybeAutoCommit`); others store all deliveries."""
        since_us = (at_us - self.created_us) % _AUTO_COMMIT_US if self.type == "lite-pull" else 0
        return at_us - since_us

    def _opened(self, broker: Broker) -> None:
        if self.alive and self.profile.hears_channels and not self.connections.beating:
            self._do(self.connections.greet(broker, self.rebalance_immediately))

    def _do(self, steps: Steps, delay_us: int = 0) -> Process:
        self._processes.append(self.env.clock.start(steps, delay_us))
        if self.frozen:
            self._processes[-1].freeze()
        return self._processes[-1]

    def _die(self) -> None:
        for process in self._processes:
            process.end()
        self._processes.clear()
        self.alive = self.frozen = False
        for lost in self.connections.lost:
            self.env.clock.call(self.env.timers.close_us, lost.end)
        self.env.note_settled(self)

    def _run_timers(self) -> None:
        """`MQClientInstance.startScheduledTask` and the loop; the timers of a client that has run are in the middle."""
        env, clocks, profile, born = self.env, self.clocks, self.profile, self.created_us
        begin = env.clock.now
        if not profile.ticks:
            loop = env.clock.start(self._loop())
            self._bell.belongs_to(loop)
            self._processes.append(loop)
        timers: list[tuple[Callable[[], Generator[int, None, object]], int, int]] = [
            (self._polls, clocks.first_poll_us, clocks.route_poll_us),
            (self.connections.heartbeats, clocks.first_heartbeat_us, clocks.heartbeat_us),
        ]
        if env.locks:
            timers.append((self.queues.renew_locks, clocks.first_lock_us, clocks.lock_renewal_us))
        first = profile.first_tick_us
        if first is None and begin > born:
            first = env.timers.start_us + clocks.rebalance_wait_us
        if profile.ticks and first is not None:
            timers.append((self._rebalance_in_turn, first, clocks.rebalance_wait_us))
        for work, first, every in timers:
            self._do(self._every(work, every), first_tick(born + first, every, begin) - begin)

    def last_lock_tick(self) -> int:
        return last_tick(self.created_us + self.clocks.first_lock_us, self.clocks.lock_renewal_us, 0)

    def _loop(self) -> Steps:
        """`RebalanceService.run`."""
        clock, timers, profile = self.env.clock, self.clocks, self.profile
        wait = max(self._last_us + timers.rebalance_wait_us - clock.now, 0)
        while True:
            yield from self._bell.wait(wait)
            since = clock.now - self._last_us
            if profile.min_interval and since < timers.rebalance_min_us:
                wait = timers.rebalance_min_us - since
                continue
            balanced = yield from self._rebalance()
            soon = profile.min_interval and not balanced
            wait = timers.rebalance_min_us if soon else timers.rebalance_wait_us
            self._last_us = clock.now

    def _rebalance(self) -> Generator[int, None, bool]:
        """`RebalanceImpl.doRebalance`."""
        self.env.log.rebalances += 1
        self.settled, balanced = None, True
        for topic in self.allocates:
            kept = yield from self.queues.rebalance_by_topic(topic)
            balanced = balanced and kept is not False
            is_empty = topic in self.views and not self.views[topic].queues
            if self.profile.ends_at_failure and (kept is None or is_empty):
                break
        self.env.check(self)
        return balanced

    def _rebalance_in_turn(self) -> Steps:
        """One rebalance after the other (`rbMutex`, `m_consumerTableMutex`)."""
        self._wanted += 1
        if self._wanted > 1:
            return
        while self._wanted:
            yield from self._rebalance()
            self._wanted -= 1

    def _begin(self) -> Steps:
        env = self.env
        yield from self._polls()
        if self.type != "push":  # DefaultLitePullConsumerImpl.start leaves the first heartbeat to the timer
            return
        yield max(self.created_us + env.timers.start_us - env.clock.now, 0)
        tried = yield from self.connections.heartbeats()
        if self.profile.ticks and self.profile.first_tick_us is None:
            yield from self._rebalance_in_turn()
            every = self.clocks.rebalance_wait_us
            self._do(self._every(self._rebalance_in_turn, every), every)
        elif tried or not self.profile.min_interval:
            self.rebalance_immediately()

    def _every(self, work: Callable[[], Generator[int, None, object]], every: int) -> Steps:
        """A timer of `MQClientInstance.startScheduledTask`: at a fixed rate."""
        clock, begin = self.env.clock, self.env.clock.now
        while True:
            yield from work()
            yield until_next_tick(begin, every, clock.now)

    def _polls(self) -> Steps:
        """`MQClientInstance.updateTopicRouteInfoFromNameServer` for each topic."""
        for topic in self.topics:
            yield 2 * self.env.one_way(self.draws)
            self._poll(topic)

    def _poll(self, topic: str) -> None:
        """Learn the route if it is new; a topic without a route keeps the known one."""
        view = self.env.name_server.views.get(topic)
        if view is not None and self.views.get(topic) is not view:
            if self.env.log.explain and topic in self.views:
                text = f"learns the new route of {topic}: {len(view.queues)} queues on {', '.join(view.brokers)}"
                self.env.say(self.client_id, "route", text)
            self._learn(view)

    def _learn(self, view: TopicView) -> None:
        changed = self.connections.learn(view)
        self.views[view.topic] = view
        self.settled = False
        self.env.note_change()
        for name in changed:
            if self.queues.paused(name):
                self.pulls_again(name)

    def _pull_again(self, broker: Broker, paused: list[Hold]) -> Steps:
        arrived = yield from self.connections.request(broker)
        self.env.log.resuming.difference_update(paused)
        if arrived:
            self.queues.resume(paused)

    def _last_traffic(self, broker: Broker, working: Mapping[str, list[MessageQueue]]) -> int:
        """The time at which the broker last uses the connection; a broker still answers the pulls that it holds."""
        now, beat, owned = self.env.clock.now, broker.last_beat_us(self), working.get(broker.name)
        last = now if beat is None else beat
        if owned and broker.broker_id == 0:
            hold_us, rates = self.env.timers.pull_hold_us, self.env.scenario.rates
            last = max(last, self.persisted_before(now) or last)
            for queue in owned:
                rate = rates.get(queue)
                until_message = hold_us if not rate else min(hold_us, int(SECOND_US / rate))
                last = max(last, now + self.draws.below(until_message))
        return last
