"""The shared parts of a simulation: clock, brokers, NameServers, rules and notes.

Brokers mirror `ConsumerManager`, `DefaultConsumerIdsChangeListener`, `ClientHousekeepingService` and
`RebalanceLockManager`: a broker has its own list of consumers, locks and notices.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from rmqlb.engine.allocate import PreparedStrategies
from rmqlb.engine.allocate.rules import JAVA
from rmqlb.engine.assignment.assign import Members
from rmqlb.engine.kernel import Clock, Draws, Steps, stream_key, stream_named
from rmqlb.engine.plan.changes import Edits, NewBroker, QueueCount, change_route
from rmqlb.engine.rebalance.profile import SDK_PROFILES, ConsumerProfile, consumer_profile_of, java_clocks
from rmqlb.engine.rebalance.timelines import EventLog
from rmqlb.errors import AllocationError
from rmqlb.model.group_scenario import Event, GroupScenario
from rmqlb.model.message_queue import MessageQueue, sort_client_ids, sort_queues
from rmqlb.model.result import milliseconds
from rmqlb.model.route import MASTER_ID, BrokerData, TopicRouteData
from rmqlb.model.simulate_rebalance import Step

Share = dict[MessageQueue, None]  # a set that keeps the clients' order
_MOST_KEPT = 5_000_000
"""IDs and queues kept in memory, some 100 bytes each: more than most groups need, and a bound for many trials."""


class TopicView(Struct, frozen=True, eq=False):
    """A client's view of a topic after a route poll (`topicSubscribeInfoTable` and `topicRouteTable`)."""

    topic: str
    queues: tuple[MessageQueue, ...]  # the read queues, sorted as clients sort them
    brokers: tuple[str, ...]  # names of all brokers of the route; one of them is queried for the consumers
    addresses: Mapping[str, tuple[int, ...]]  # broker name → the ids of its processes, sorted


def process_ids(broker: BrokerData) -> tuple[int, ...]:
    """The sorted IDs of a broker's processes; a broker without an address counts as a master."""
    return tuple(sorted(broker.broker_addrs)) or (MASTER_ID,)


class MemberList(Struct, frozen=True, eq=False):
    """The sorted IDs of a group from a broker, duplicates kept; equal lists are one remembered object."""

    client_ids: tuple[str, ...]


class Shares:
    """`AllocateMessageQueueStrategy.allocate` with a memory; equal views and lists are one object."""

    def __init__(self, members: Members) -> None:
        self._members = members
        self._prepared: dict[tuple[TopicView, MemberList], PreparedStrategies] = {}
        self._shares: dict[tuple[TopicView, str, MemberList, str], Share | None] = {}
        self._lists: dict[tuple[str, ...], MemberList] = {}
        self._views: dict[object, TopicView] = {}
        self._kept = 0

    def view_of(self, route: TopicRouteData) -> TopicView:
        addresses = {broker.broker_name: process_ids(broker) for broker in route.broker_datas}
        if not addresses:  # a dump that only knows the queues
            addresses = {data.broker_name: (MASTER_ID,) for data in route.queue_datas}
        queues = tuple(route.subscribe_queues())
        view = TopicView(route.topic, queues, tuple(addresses), addresses)
        return self._views.setdefault((route.topic, queues, tuple(addresses.items())), view)

    def list_of(self, client_ids: tuple[str, ...]) -> MemberList:
        if client_ids not in self._lists:
            self._keep(len(client_ids))
            self._lists[client_ids] = MemberList(client_ids)
        return self._lists[client_ids]

    def share(self, view: TopicView, strategy: str, members: MemberList, client_id: str) -> Share | None:
        """A consumer's queues; None when its strategy throws, or the queried broker answers nothing."""
        if not self._members.is_answered(client_id, strategy):
            return None
        key = view, strategy, members, client_id
        if key not in self._shares:
            self._keep(1)
            self._shares[key] = self._computed(*key)
        return self._shares[key]

    def _computed(self, view: TopicView, strategy: str, members: MemberList, client_id: str) -> Share | None:
        key = view, members
        if key not in self._prepared:
            self._keep(len(view.queues) + len(members.client_ids))
            lists = view.queues, members.client_ids
            self._prepared[key] = PreparedStrategies(*lists, self._members.settings, order=JAVA.order)
        try:
            prepared = self._prepared[key].strategy(strategy, self._members.sdk_for(client_id))
            return dict.fromkeys(queue for queue in prepared.share(client_id) if queue.topic == view.topic)
        except AllocationError:
            return None

    def _keep(self, size: int) -> None:
        """Make room for IDs and queues: before memory grows too large, forget everything, and compute again later."""
        self._kept += size
        if self._kept > _MOST_KEPT:
            self._kept = size
            for memory in (self._prepared, self._shares, self._lists):
                memory.clear()


_EARLY_CLOSE = 3
"""One in this many closes is noticed before the client is forgotten: 3 of 8 in recordings on a busy machine."""


class Channel(Protocol):
    client_id: str  # in its heartbeats

    def notice(self, broker: Broker) -> None: ...  # the broker reports changed members (request code 40)
    # the broker has closed the connection; whether the other end is there to hear it
    def closed(self, broker: Broker, /) -> bool: ...


class Broker:
    """One process of a broker, with its lists and locks; its streams of random numbers do not depend on others."""

    def __init__(self, env: GroupEnvironment, name: str, broker_id: int) -> None:
        self.name, self.broker_id = name, broker_id  # 0 is the master
        self._env, self._clock, self._timers = env, env.clock, env.timers
        self._draws = env.draws(stream_named(f"{name}:{broker_id}"))
        self._members: MemberList | None = None
        self.beats: dict[Channel, int] = {}  # → the time of its last heartbeat
        self.locks: dict[MessageQueue, tuple[str, int]] = {}  # → who has the lock, and since when
        self._unsent = False
        self.back()

    def __str__(self) -> str:
        name = self.name if self.broker_id == 0 else f"{self.name}:{self.broker_id}"
        return name if name.lower().startswith("broker") else f"broker {name}"

    def back(self) -> None:
        self.up = True  # its process runs
        self.silent = False  # its machine is lost: requests end in a timeout
        scan, batch = self._timers.broker_scan_us, self._timers.notify_batch_us
        self._processes = [self._clock.start(self._scan(), self._draws.below(scan))]
        if batch:
            self._processes.append(self._clock.start(self._batches(), self._draws.below(batch)))

    def stop(self, *, silent: bool = False) -> None:
        self.up, self.silent = False, silent
        for process in self._processes:
            process.end()
        self.beats.clear()
        self.locks.clear()
        self._news_of_ids()

    def beat(self, channel: Channel, *, at_us: int | None = None) -> None:
        new = channel not in self.beats  # `ConsumerManager.registerConsumer`: a new channel is news for the group
        self.beats[channel] = self._clock.now if at_us is None else at_us
        if new:
            self._news_of_ids()
            if at_us is None:
                self._news(f"hears {channel.client_id} for the first time")

    def forget(self, channel: Channel, why: str) -> None:
        if channel in self.beats:
            self._drop(channel)
            self._news(why)

    @property
    def members(self) -> MemberList | None:
        """The listed IDs, sorted, duplicates kept; None while the broker knows no consumer of the group."""
        if self._members is None and self.beats:
            listed = sort_client_ids([channel.client_id for channel in self.beats])
            self._members = self._env.shares.list_of(tuple(listed))
        return self._members

    def try_lock(self, queue: MessageQueue, client_id: str, *, at_us: int | None = None) -> bool:
        """`RebalanceLockManager.tryLockBatch` for one queue: taken, renewed, or taken over when it has expired."""
        now = self._clock.now if at_us is None else at_us
        holder, renewed = self.locks.get(queue, (client_id, now))
        if holder != client_id and now - renewed <= self._timers.lock_life_us:
            return False
        self.locks[queue] = client_id, now
        return True

    def unlock(self, queue: MessageQueue, client_id: str) -> None:
        """`RebalanceLockManager.unlockBatch`: only the holder's own lock."""
        if self.locks.get(queue, ("", 0))[0] == client_id:
            del self.locks[queue]

    def _drop(self, channel: Channel) -> None:
        del self.beats[channel]
        self._news_of_ids()

    def _news_of_ids(self) -> None:
        self._members = None
        self._env.note_change()

    def _news(self, what: str) -> None:
        """Notify the consumers of a change, except in a BROADCASTING group (brokers from 5.3.1 on)."""
        self._unsent = not self._env.broadcasting
        if self._unsent and not self._timers.notify_batch_us:
            self._tell(f"{what}: ")
        elif self._unsent:
            self._say("notice", f"{what}: will tell the group with the next batch")
        else:
            self._say("notice", f"{what}: tells no consumer of a BROADCASTING group")

    def _tell(self, why: str = "") -> None:
        """`Broker2Client.notifyConsumerIdsChanged` to every channel of the group, one way."""
        self._unsent = False
        if self._env.log.explain:
            names = ", ".join(self.members.client_ids) if self.members else "no consumer"
            self._say("notice", f"{why}tells {names}")
        for channel in self.beats:
            self._clock.call(self._env.one_way(self._draws), channel.notice, self)

    def _say(self, what: str, text: str) -> None:
        self._env.say(str(self), what, text)

    def _scan(self) -> Steps:
        """`ConsumerManager.scanNotActiveChannel`: close the connection, then forget the client, and notify nobody.

        If another thread notices the close before the client is forgotten, that thread notifies the others.
        """
        expiry, every = self._timers.channel_expiry_us, self._timers.broker_scan_us
        while True:
            for channel in [channel for channel, beat in self.beats.items() if self._clock.now - beat > expiry]:
                self._drop(channel)
                if channel.closed(self) and not self._draws.below(_EARLY_CLOSE):
                    self._news(f"has not heard {channel.client_id} for too long, and finds its connection closed")
                else:
                    self._say("expire", f"has not heard {channel.client_id} for too long, and tells no consumer")
            yield every

    def _batches(self) -> Steps:
        while True:
            if self._unsent:
                self._tell()
            yield self._timers.notify_batch_us


_SERVERS = 1 << 21
"""Consumers draw from the streams below, NameServers from this one, and each broker from the stream of its name."""


# fmt: off
_WAYS = (
    7, 19, 25, 29, 34, 38, 42, 45, 49, 53, 57, 60, 64, 67, 71, 75, 79, 83, 87, 91, 95, 99, 103,
    108, 112, 117, 122, 127, 132, 137, 143, 148, 154, 160, 167, 173, 180, 187, 195, 203, 212, 221, 230, 240, 251, 262,
    274, 287, 301, 317, 333, 352, 372, 395, 420, 449, 483, 522, 569, 628, 703, 806, 963, 1258, 3208,
)
# fmt: on
"""Quantiles of a log-normal curve with σ 1 and mean 1, in 1/256: how answers of real brokers varied under load on one
machine. Most messages are faster than the average, and a few take many times that."""
_DRAWN = (len(_WAYS) - 1) << 8


class Consumer(Channel, Protocol):
    settled: bool | None

    @property
    def takes_part(self) -> bool: ...
    @property
    def addresses(self) -> Collection[Broker]: ...
    def lose_broker(self, broker: Broker) -> None: ...
    def broker_is_back(self, name: str) -> None: ...


class GroupEnvironment:
    def __init__(
        self,
        routes: Sequence[TopicRouteData],
        members: Members,
        scenario: GroupScenario,
        *,
        shares: Shares,
        lagging: frozenset[MessageQueue],  # queues that had messages waiting at the start
        trial: int,
        explain: bool,
    ) -> None:
        self.clock, self.log = Clock(), EventLog(explain=explain)
        self.scenario, self.timers = scenario, scenario.timers
        self.shares, self.lagging = shares, lagging
        self.name_server = NameServer(routes, shares.view_of)
        self.clients: Sequence[Consumer] = ()  # all that ever existed, in the order of their start
        # queues are locked at the broker, and the locks renewed and given back (orderly and clustering)
        self.locks = scenario.orderly and not scenario.broadcasting
        self.broadcasting, self.events_left = scenario.broadcasting, 0
        self._members, self._trial = members, trial
        self._java = replace(consumer_profile_of(scenario.client_version), clocks=java_clocks(self.timers))
        self._server_draws = self.draws(_SERVERS)
        self._scan_us = self._server_draws.below(self.timers.nameserver_scan_us)
        self._brokers: dict[str, list[Broker]] = {}
        self._serving = {queue: name for route in routes for queue, name in route.serving_brokers().items()}
        self._unsettled: set[Consumer] = set()
        self._agree: bool | None = None
        self._final: MemberList | None = None
        for route in routes:
            for broker in route.broker_datas:
                self._add_broker(broker.broker_name, process_ids(broker))
            for data in route.queue_datas:
                self._add_broker(data.broker_name, [MASTER_ID])
        self.log.exist(self.name_server.queues(), 0, there=True)

    def draws(self, number: int) -> Draws:
        return Draws(stream_key(self.scenario.seed, self._trial, number))

    def profile_of(self, client_id: str) -> ConsumerProfile:
        return SDK_PROFILES.get(self._members.sdk_for(client_id).name, self._java)

    def one_way(self, draws: Draws) -> int:
        """The time of one message: half the latency on average."""
        number = draws.below(_DRAWN)
        low, high = _WAYS[number >> 8], _WAYS[(number >> 8) + 1]
        return self.scenario.latency_us * ((low << 8) + (high - low) * (number & 255)) >> 17

    def say(self, who: str, what: str, text: str, queues: Iterable[MessageQueue] = ()) -> None:
        if self.log.explain:
            self.log.steps.append(Step(milliseconds(self.clock.now), who, what, text, tuple(queues)))

    def processes(self, name: str, ids: Collection[int] | None = None) -> list[Broker]:
        """A broker's processes, up or not, by their IDs, so the master first; with `ids` only these."""
        return [each for each in self._brokers.get(name, ()) if ids is None or each.broker_id in ids]

    def broker_name(self, queue: MessageQueue) -> str:
        """`MQClientInstance.getBrokerNameFromMessageQueue`: of a static topic's queue the real broker."""
        return self._serving.get(queue, queue.broker_name)

    def master(self, queue: MessageQueue) -> Broker | None:
        """The process with ID 0 of a queue's broker, up or not; None if the route has none."""
        brokers = self.processes(self.broker_name(queue))
        return brokers[0] if brokers and brokers[0].broker_id == MASTER_ID else None

    def bring_up(self, event: Event) -> None:
        """A broker is back or new, with empty memory; the NameServers know it at once."""
        name, now = event.subject, self.clock.now
        for broker in self._brokers.get(name, ()):
            if not broker.up:
                broker.back()
        self._add_broker(name, [MASTER_ID])
        self.name_server.add(event)
        queues = self._queues_of(name)
        self.log.exist(queues, now, there=True)
        self.log.serve(queues, now, served=True)
        for client in self.clients:
            client.broker_is_back(name)

    def take_down(self, event: Event) -> None:
        """A broker's process ends, or its machine falls silent; its slaves continue unless the event includes them."""
        name, silent, now = event.subject, event.kind == "broker-loss", self.clock.now
        brokers = self._brokers[name]
        alone = brokers[0].broker_id == MASTER_ID and not event.with_slaves and not event.for_good
        for broker in brokers[:1] if alone else brokers:
            broker.stop(silent=silent)
            for client in self.clients:
                client.lose_broker(broker)
        if event.for_good:
            self.log.exist(self._queues_of(name), now, there=False)
        elif not self._runs(name):
            self.log.serve(self._queues_of(name), now, served=False)
        self.clock.call(self._until_dropped(silent), self._drop_from_routes, name)

    def change_route(self, event: Event) -> None:
        before, now = self.name_server.queues(), self.clock.now
        self.name_server.change(event)
        after = self.name_server.queues()
        self.log.exist(new := sort_queues(after - before), now, there=True)
        self.log.exist(sort_queues(before - after), now, there=False)
        for queue in new:
            self.log.serve([queue], now, served=self._runs(self.broker_name(queue)))

    def truth_changed(self) -> None:
        self.note_change()
        self._final = None
        for client in self.clients:
            if client.settled is not None:
                client.settled = False

    def note_change(self) -> None:
        self._agree = None

    def note_settled(self, client: Consumer) -> None:
        if client.takes_part and not client.settled:
            self._unsettled.add(client)
        else:
            self._unsettled.discard(client)

    def final_members(self) -> MemberList:
        """The consumers that take part, as each broker lists them once all is settled."""
        if self._final is None:
            ids = (client.client_id for client in self.clients if client.takes_part)
            self._final = self.shares.list_of(tuple(sort_client_ids(ids)))
        return self._final

    def has_settled(self) -> bool:
        """Whether no owner can change any more: no event is left, and each broker lists exactly its callers."""
        if self.events_left or self._unsettled or self.log.waiting_pulls or self.log.resuming:
            return False
        if self._agree is None:
            self._agree = all(self._agrees(broker) for brokers in self._brokers.values() for broker in brokers)
        return self._agree

    def _agrees(self, broker: Broker) -> bool:
        if not broker.up:
            return not broker.silent or all(broker.name not in view.brokers for view in self.name_server.views.values())
        callers = [client.client_id for client in self.clients if client.takes_part and broker in client.addresses]
        named = broker.members.client_ids if broker.members else ()
        return len(named) == len(callers) and named == tuple(sort_client_ids(callers))

    def _add_broker(self, name: str, ids: Sequence[int]) -> None:
        if name not in self._brokers:
            self._brokers[name] = [Broker(self, name, broker_id) for broker_id in ids]

    def _until_dropped(self, silent: bool) -> int:
        """The time until the NameServers drop a broker: at once if its connection closes, otherwise by a scan."""
        draws, timers = self._server_draws, self.timers
        if not silent:
            return self.one_way(draws)
        expiry = timers.nameserver_expiry_us - draws.below(timers.registration_us)
        return expiry + (self._scan_us - self.clock.now - expiry) % (timers.nameserver_scan_us or 1)

    def _drop_from_routes(self, name: str) -> None:
        lost = [broker for broker in self._brokers[name] if not broker.up]
        if lost:
            self.name_server.drop(name, {broker.broker_id for broker in lost})
            what = str(lost[0]) if self._runs(name) else f"broker {name}"
            self.say("NameServer", "route", f"drops {what} from its routes")
            self.truth_changed()

    def _runs(self, name: str) -> bool:
        return any(broker.up for broker in self._brokers.get(name, ()))

    def _queues_of(self, name: str) -> list[MessageQueue]:
        return sort_queues(queue for queue in self.name_server.queues() if self.broker_name(queue) == name)


class NameServer:
    """The routes that all NameServers report.

    They notice at once when a broker starts, ends or changes a topic, and drop a silent broker when its last
    registration is too old (`RouteInfoManager.scanNotActiveBroker`).
    """

    def __init__(self, routes: Sequence[TopicRouteData], view_of: Callable[[TopicRouteData], TopicView]) -> None:
        self._view_of = view_of
        self._whole = {route.topic: route for route in routes}
        self._gone: dict[str, set[int]] = {}  # broker name → the ids of its processes that are not in the routes
        # The views that clients learn now; a topic without any broker is absent, and clients keep the route they have.
        self.views: dict[str, TopicView] = {}
        self._tell(self._whole)

    def drop(self, broker_name: str, ids: set[int]) -> None:
        self._gone[broker_name] = ids
        self._tell(self._having(broker_name))

    def add(self, event: Event) -> None:
        name = event.subject
        self._gone.pop(name, None)
        if not self._having(name):
            new = Edits(add_brokers=(NewBroker(name, event.read_queues, event.write_queues),))
            for topic, route in self._whole.items():
                self._whole[topic] = route if route.is_static else change_route(route, new)
        self._tell(self._having(name))

    def change(self, event: Event) -> None:
        reads, writes = (
            () if number is None else (QueueCount(number, event.broker_name),)
            for number in (event.read_queues, event.write_queues)
        )
        changes = Edits(read_queues=reads, write_queues=writes)
        self._whole[event.subject] = change_route(self._whole[event.subject], changes)
        self._tell([event.subject])

    def queues(self) -> set[MessageQueue]:
        return {queue for route in self._whole.values() for queue in route.subscribe_queues()}

    def _having(self, broker_name: str) -> list[str]:
        names = ((topic, {data.broker_name for data in route.queue_datas}) for topic, route in self._whole.items())
        return [topic for topic, own in names if broker_name in own or self._whole[topic].broker(broker_name)]

    def _tell(self, topics: Iterable[str]) -> None:
        for topic in topics:
            view = self._view_of(self._now(self._whole[topic]))
            if view.brokers:
                self.views[topic] = view
            else:
                self.views.pop(topic, None)

    def _now(self, route: TopicRouteData) -> TopicRouteData:
        if not self._gone:  # a static topic loses its brokers likewise, but not its queues
            return route
        known = {data.broker_name: data.broker_addrs for data in route.broker_datas}
        left = {
            name: {number: address for number, address in known.get(name, {}).items() if number not in ids}
            for name, ids in self._gone.items()
        }
        gone = {name for name, addresses in left.items() if not addresses}
        return replace(
            route,
            queue_datas=tuple(data for data in route.queue_datas if data.broker_name not in gone),
            broker_datas=tuple(
                replace(data, broker_addrs=left.get(data.broker_name, data.broker_addrs))
                for data in route.broker_datas
                if data.broker_name not in gone
            ),
        )
