"""A consumer's process: how it starts and ends, the timers that it runs, and how a rebalance changes its queues.

`Client` mirrors `DefaultMQPushConsumerImpl` (start, shutdown), `MQClientInstance` (route polls, heartbeats, requests)
and `RebalanceService` (the loop); `ProcessQueues` mirrors `RebalanceImpl`. Where the consumer's profile says so, they
mirror the Go or the C++ client (`profile.py`).
"""

from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from typing import Any

from rmqlb.engine.kernel import Bell, Process, Steps, first_tick, last_tick, until_next_tick
from rmqlb.engine.rebalance.connections import Connections
from rmqlb.engine.rebalance.environment import Broker, GroupEnvironment, Share, TopicView
from rmqlb.engine.rebalance.timelines import Hold
from rmqlb.model.group_scenario import SECOND_US
from rmqlb.model.message_queue import MessageQueue, grouped
from rmqlb.model.result import counted

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
        self.queues = ProcessQueues(self)
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
        working = grouped((self.env.broker_name(queue), queue) for queue in self.queues.working())
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

    def broker_is_back(self, name: str) -> None:
        if self.takes_part and any(self.env.broker_name(queue) == name for queue in self.queues.working()):
            self._pull_again_from(name)

    def _pull_again_from(self, name: str) -> None:
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
            self._bell.sleeper = self._do(self._loop())
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
        self.check()
        return balanced

    def own_shares(self) -> None:
        """Own, since its start, what its strategy gives it."""
        for topic in self.allocates:
            view = self.env.name_server.views.get(topic)
            if view is not None:
                self.queues.has_had(self._final_share(view) or (), self.created_us)

    def check(self) -> None:
        """Note whether its queues are final."""
        current = self.env.name_server.views
        is_current = all(self.views.get(topic) is current[topic] for topic in self.topics if topic in current)
        views = (current[topic] for topic in self.allocates if topic in current)
        self.settled = is_current and all(self.queues.has(view.topic, self._final_share(view)) for view in views)

    def _final_share(self, view: TopicView) -> Share | None:
        if self.env.broadcasting:
            return dict.fromkeys(view.queues)
        return self.env.shares.share(view, self.strategy, self.env.final_members(), self.client_id)

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
                self._pull_again_from(name)

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


class ProcessQueues:
    """The table of one consumer, also by topic: a rebalance visits one of perhaps thousands of topics.

    Steps have the client's order: the client drops lost queues first, then locks (orderly) each new queue and requests
    its offset, one after the other; all first pulls are sent together at the end.
    """

    def __init__(self, client: Client) -> None:
        self._client, self._connections, self._env = client, client.connections, client.env
        self._table: dict[MessageQueue, Hold] = {}
        self._late: list[tuple[Callable[[Any], None], Any]] = []
        self._by_topic: dict[str, dict[MessageQueue, Hold]] = {}

    def working(self) -> list[MessageQueue]:
        """The queues that it owns (`RebalanceImpl.getWorkingMessageQueue`)."""
        return [hold.queue for hold in self._owned()]

    def has_had(self, queues: Iterable[MessageQueue], since_us: int) -> None:
        renewed = self._client.last_lock_tick() if self._env.locks else 0
        for queue in queues:
            hold = self._client.hold(queue, since_us)
            hold.renewed_us, hold.reads_from_us = renewed, since_us
            self._put(hold)
            if self._env.locks and (broker := self._env.master(queue)) is not None:
                broker.try_lock(queue, self._client.client_id, at_us=renewed)

    def drop_all(self, *, persisted: bool) -> list[MessageQueue]:
        had = list(self._table)
        for hold in self._owned():
            self._env.log.drop(hold, self._env.clock.now, persisted=persisted)
        self._table.clear()
        self._by_topic.clear()
        return had

    def stall(self) -> None:
        for hold in self._table.values():
            if hold.stalled_us is None:
                hold.stalled_us = self._env.clock.now

    def pause(self, broker: Broker) -> None:
        for hold in self._owned():
            name = self._env.broker_name(hold.queue)
            if name == broker.name and self._connections.pulled_from(name) in (broker, None):
                hold.pause(self._env.clock.now)

    def paused(self, name: str) -> list[Hold]:
        return [hold for hold in self._owned() if hold.is_paused and self._env.broker_name(hold.queue) == name]

    def resume(self, holds: Iterable[Hold]) -> None:
        again = [hold for hold in holds if hold.is_paused and not hold.dropped]
        for hold in again:
            hold.resume(self._env.clock.now)
        self._say("pull", again, "pulls {} again")

    def freeze(self) -> None:
        self._env.log.freeze(self._owned(), self._env.clock.now)

    def unfreeze(self) -> None:
        self._env.log.unfreeze(self._owned(), self._env.clock.now)
        late, self._late = self._late, []
        for action, argument in late:
            action(argument)

    def _owned(self) -> list[Hold]:
        return [hold for hold in self._table.values() if not hold.dropped]

    def has(self, topic: str, share: Share | None) -> bool:
        """Whether the table has this share; where the strategy throws (None), the table stays as it is."""
        table = self._of(topic)
        is_read = not any(hold.dropped or hold.stalled_us is not None for hold in table.values())
        return share is None or (table.keys() == share.keys() and is_read)

    def rebalance_by_topic(self, topic: str) -> Generator[int, None, bool | None]:
        """`RebalanceImpl.rebalanceByTopic`: returns whether the table then has the share; None without a list."""
        client, env = self._client, self._env
        view = client.views.get(topic)
        if view is None:
            return True
        if env.broadcasting:
            return (yield from self._become(topic, dict.fromkeys(view.queues), "broadcasting: every queue"))
        if client.profile.empty_ends_early and not view.queues:
            return True
        broker, members = yield from self._connections.member_ids(view)
        if members is None:
            env.say(client.client_id, "keep", f"gets no list of consumers for {topic} from {broker}: keeps its queues")
            return None
        share = env.shares.share(view, client.strategy, members, client.client_id)
        why = f"{broker} names {counted(len(members.client_ids), 'consumer')}" if env.log.explain else ""
        if share is None:
            env.say(client.client_id, "keep", f"{client.strategy} throws for {topic} ({why}): keeps its queues")
            return False
        return (yield from self._become(topic, share, why))

    def _become(self, topic: str, share: Share, why: str) -> Generator[int, None, bool]:
        changed = yield from self._update(topic, share, why)
        # other listeners send none
        if changed and self._client.type == "push" and self._client.profile.beats_on_change:
            yield from self._connections.heartbeats()  # RebalancePushImpl.messageQueueChanged
        working = [queue for queue, hold in self._of(topic).items() if not hold.dropped]
        return len(working) == len(share) and all(queue in share for queue in working)

    def renew_locks(self) -> Steps:
        """`RebalanceImpl.lockAll` by `ConsumeMessageOrderlyService`'s timer: one request a broker."""
        renewed = (hold for hold in self._table.values() if self._client.profile.renews_dropped or not hold.dropped)
        for broker, holds in grouped((self._env.master(hold.queue), hold) for hold in renewed).items():
            if broker is not None and (yield from self._connections.request(broker)):
                for hold in holds:
                    if broker.try_lock(hold.queue, self._client.client_id):
                        hold.renewed_us, hold.locked = self._env.clock.now, True
                yield self._connections.answer()

    def _update(self, topic: str, share: Share, why: str) -> Generator[int, None, bool]:
        """`RebalanceImpl.updateProcessQueueTableInRebalance`."""
        env, clock = self._env, self._env.clock
        going = [hold for queue, hold in self._of(topic).items() if queue not in share or self._pull_expired(hold)]
        changed = yield from self._remove(going, why)
        new = [queue for queue in share if queue not in self._table]
        if not new:
            return changed
        taken, all_locked = list[Hold](), True
        for queue in new:
            if self._client.locks_first and not (yield from self._lock(queue)):
                all_locked = False
                continue
            if (yield from self._query_offset(queue)):
                hold = self._client.hold(queue, clock.now)
                hold.renewed_us, hold.locked = clock.now, not (env.locks and self._client.profile.pull_retry_us)
                self._put(hold)
                taken.append(hold)
        if env.log.explain:
            self._say("take", taken, f"takes {{}} of {topic}: {why}")
        if not all_locked and self._client.profile.retries_locks:
            clock.call(env.timers.lock_retry_us, self._client.rebalance_immediately)
        if taken:  # RebalancePushImpl.dispatchPullRequest; listeners of other consumers pull at once (updatePullTask)
            self._pull_after(self._client.pull_delay_us if self._client.type == "push" else 0, taken)
        return changed or bool(taken)

    def _of(self, topic: str) -> Mapping[MessageQueue, Hold]:
        return self._by_topic.get(topic, {})

    def _put(self, hold: Hold) -> None:
        self._env.log.take(hold)
        self._table[hold.queue] = self._by_topic.setdefault(hold.queue.topic, {})[hold.queue] = hold

    def _pull_expired(self, hold: Hold) -> bool:
        """`ProcessQueue.isPullExpired`, of push consumers; a dropped queue is not pulled either."""
        since = hold.to_us if hold.stalled_us is None else hold.stalled_us
        is_idle = since is not None and self._env.clock.now - since > self._env.timers.pull_idle_us
        return is_idle and self._client.type == "push"

    def _remove(self, going: list[Hold], why: str) -> Generator[int, None, bool]:
        env, changed = self._env, False
        dropped = [hold for hold in going if not hold.dropped]
        for hold in dropped:
            hold.busy_until_us = env.clock.now + self._listener_us(hold.queue)
            env.log.drop(hold, env.clock.now, persisted=True)
        self._say("drop", dropped, f"drops {{}}: {why}")
        for hold in going:
            if not env.locks or not self._client.profile.unlocks or (yield from self._release(hold)):
                del self._table[hold.queue], self._by_topic[hold.queue.topic][hold.queue]
                changed = True
        return changed

    def _release(self, hold: Hold) -> Generator[int, None, bool]:
        """`RebalancePushImpl.removeUnnecessaryMessageQueue` of an orderly queue: whether it leaves the table."""
        env, now = self._env, self._env.clock.now
        write_lock, longest = self._client.profile.release == "write-lock", self._client.release_wait_us
        is_late = write_lock and now > hold.renewed_us + env.timers.unlock_delay_us
        busy = 0 if is_late else max(hold.busy_until_us - now, 0)
        if busy > longest:
            yield longest
            self._say("unlock", [hold], "cannot give up {} yet: its listener holds it")
            return False
        if busy:
            yield busy
        cached = busy > 0 or hold.queue in env.lagging
        delay = env.timers.unlock_delay_us if cached and not write_lock else 0
        self._say("unlock", [hold], "unlocks {}" + (" in a while: messages are cached" if delay else ""))
        env.clock.call(delay + env.one_way(self._client.draws), self._unlock, hold.queue)
        return True

    def _unlock(self, queue: MessageQueue) -> None:
        """Deliver the unlock request to the broker; a late request frees a lock that was taken again meanwhile."""
        if self._client.frozen:
            self._late.append((self._unlock, queue))
            return
        if (broker := self._env.master(queue)) is not None and broker.up:
            broker.unlock(queue, self._client.client_id)

    def _lock(self, queue: MessageQueue) -> Generator[int, None, bool]:
        """`RebalanceImpl.lock`: from the master only."""
        broker = self._env.master(queue)
        if broker is None or not (yield from self._connections.request(broker)):
            return False
        got = broker.try_lock(queue, self._client.client_id)
        if not got:
            self._say("lock", [queue], f"cannot lock {{}}: {broker.lock_of(queue)} holds it")
        yield self._connections.answer()
        return got

    def _query_offset(self, queue: MessageQueue) -> Generator[int, None, bool]:
        """`computePullFromWhere`: without an answer the queue is not taken now; `RebalancePullImpl` uses 0 instead."""
        if self._client.type == "pull":
            return True
        broker = self._connections.stores_offsets(self._env.broker_name(queue))
        if broker is None:  # no address is known, as for a logical queue that no broker names
            yield 2 * self._env.one_way(self._client.draws)
            return True
        if not (yield from self._connections.request(broker)):
            self._say("keep", [queue], f"cannot take {{}}: no offset from {broker}")
            return False
        yield self._connections.answer()
        return True

    def _pull_after(self, delay_us: int, taken: list[Hold]) -> None:
        self._env.log.waiting_pulls += len(taken)
        self._env.clock.call(delay_us, self._pull_first, taken)

    def _pull_first(self, taken: list[Hold]) -> None:
        self._env.log.waiting_pulls -= len(taken)
        self._pull(taken)

    def _pull(self, taken: list[Hold]) -> None:
        env = self._env
        if self._client.frozen:
            self._late.append((self._pull, taken))
            return
        waiting = [hold for hold in taken if not hold.locked and not hold.dropped]
        # `pullMessage` of Go reads the lock, which `lock` does not note for a queue outside the table
        if waiting:
            self._pull_after(self._client.profile.pull_retry_us, waiting)
        pulled = [hold for hold in taken if hold.locked and not hold.dropped]
        for hold in pulled:
            hold.reads_from_us = env.clock.now
            broker = self._connections.pulled_from(env.broker_name(hold.queue))
            if broker is not None and not broker.up:
                hold.pause(env.clock.now)
        self._say("pull", pulled, "pulls {} for the first time")

    def _listener_us(self, queue: MessageQueue) -> int:
        """The time for which the listener still works on a dropped queue: the rest of one message's time."""
        env, draws = self._env, self._client.draws
        consume_us, rate = env.scenario.consume_us, env.scenario.rates.get(queue)
        if not env.locks or not consume_us:
            return 0
        busy = 1.0 if rate is None else min(rate * consume_us / 1e6, 1.0)
        return draws.below(consume_us) if draws.below(1_000_000) < busy * 1_000_000 else 0

    def _say(self, what: str, queues: Sequence[MessageQueue | Hold], text: str) -> None:
        if queues and self._env.log.explain:
            found = [each.queue if isinstance(each, Hold) else each for each in queues]
            shown = (f"{queue.broker_name}:{queue.queue_id}" for queue in found)
            names = f"{len(found)} queues" if len(found) > 8 else ", ".join(shown)
            self._env.say(self._client.client_id, what, text.replace("{}", names, 1), found)
