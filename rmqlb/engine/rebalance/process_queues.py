"""A consumer's process-queue table, and how a rebalance changes the table: RocketMQ's `RebalanceImpl`.

Steps have the client's order: the client drops lost queues first, then locks (orderly) each new queue and requests its
offset, one after the other; all first pulls are sent together at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from typing import Any

from rmqlb.engine.kernel import Steps
from rmqlb.engine.rebalance.connections import Connections
from rmqlb.engine.rebalance.environment import Broker, Consumer, GroupEnvironment, Share
from rmqlb.engine.rebalance.timelines import Hold
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.result import counted


class ProcessQueues:
    """The table of one consumer, also by topic: a rebalance visits one of perhaps thousands of topics."""

    def __init__(self, client: Consumer, connections: Connections, env: GroupEnvironment) -> None:
        self._client, self._connections, self._env = client, connections, env
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

    def is_settled(self, shares: Mapping[str, Share | None]) -> bool:
        """Whether the table has these shares; an unknown topic, or one whose strategy throws, stays as it is."""
        known = ((self._of(topic), share) for topic, share in shares.items() if share is not None)
        return all(
            table.keys() == share.keys()
            and not any(hold.dropped or hold.stalled_us is not None for hold in table.values())
            for table, share in known
        )

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
        by_broker: dict[Broker, list[Hold]] = {}
        for hold in self._table.values():
            broker = self._env.master(hold.queue)
            if broker is not None and (self._client.profile.renews_dropped or not hold.dropped):
                by_broker.setdefault(broker, []).append(hold)
        for broker, holds in by_broker.items():
            if (yield from self._connections.request(broker)):
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
