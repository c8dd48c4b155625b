"""A consumer's connections to brokers: what `MQClientInstance` and `MQClientAPIImpl` request from them."""

from collections.abc import Callable, Collection, Generator, Mapping

from rmqlb.engine.kernel import Draws, Steps
from rmqlb.engine.rebalance.environment import Broker, Channel, GroupEnvironment, MemberList, TopicView
from rmqlb.model.message_queue import MessageQueue, grouped
from rmqlb.model.route import MASTER_ID


class Connections:
    """A consumer's connections: requests run one after the other, and a silent broker blocks until the timeout."""

    def __init__(
        self,
        channel: Channel,
        env: GroupEnvironment,
        draws: Draws,
        views: Mapping[str, TopicView],
        opened: Callable[[Broker], None],
        nobody: MemberList | None = None,
    ) -> None:
        """Keep `nobody`, the client's reading of the error of a broker that knows no consumer of the group."""
        self._addresses: dict[Broker, None] | None = None
        self._ids: dict[str, tuple[int, ...]] = {}
        self._views = views
        self.connected: dict[Broker, None] = {}
        self.beating = False  # a heartbeat is under way (`lockHeartbeat`)
        # the broker to which a client that continues after a freeze opens a connection and loses track of it
        self.twice: Broker | None = None
        self.lost: list[LostConnection] = []
        self._channel, self._env, self._draws = channel, env, draws
        self._opened, self._nobody = opened, nobody

    @property
    def addresses(self) -> Collection[Broker]:
        """The brokers of its routes (`brokerAddrTable`)."""
        if self._addresses is None:
            names = dict.fromkeys(name for view in self._views.values() for name in view.brokers)
            self._addresses = dict.fromkeys(self._env.addresses({name: self._ids[name] for name in names}))
        return self._addresses.keys()

    def learn(self, view: TopicView) -> list[str]:
        """Take the addresses of a route; returns the brokers whose processes differ."""
        changed = [name for name, ids in view.addresses.items() if self._ids.get(name) != ids]
        self._ids |= view.addresses
        self._addresses = None
        return changed

    def have_stood(self) -> None:
        self.connected.update(dict.fromkeys(self.addresses))

    def stores_offsets(self, name: str) -> Broker | None:
        """The process that serves the offsets of a broker's queues; None without an address."""
        return self._env.first_of(name, self._ids.get(name))

    def pulled_from(self, name: str) -> Broker | None:
        """The process to pull from; only a master where queues need its lock."""
        broker = self.stores_offsets(name)
        return None if broker is None or (self._env.locks and broker.broker_id != MASTER_ID) else broker

    def request(self, broker: Broker) -> Generator[int, None, bool]:
        env = self._env
        if broker.up and broker not in self.connected:
            yield env.timers.connect_us
        if broker.up:
            if broker not in self.connected:
                self.connected[broker] = None
                self._opened(broker)
            yield env.one_way(self._draws)
            if broker.up:
                return True
        yield env.timers.rpc_timeout_us if broker.silent else env.one_way(self._draws)
        return False

    def answer(self) -> int:
        return self._env.one_way(self._draws)

    def heartbeats(self) -> Generator[int, None, bool]:
        """`MQClientInstance.sendHeartbeatToAllBrokerWithLock`: one broker after the other; returns whether it tried."""
        if self.beating or not self.addresses:
            return False
        self.beating = True
        for broker in tuple(self.addresses):
            if broker is self.twice:
                yield from self._lose(broker)
            yield from self._heartbeat(broker)
        self.beating = False
        return True

    def greet(self, broker: Broker, then: Callable[[], None]) -> Steps:
        """`ChannelEventListener.onChannelActive`: a heartbeat, then a rebalance; not while another one is under way."""
        if broker not in self.addresses:
            return
        self.beating = True
        arrived = yield from self._heartbeat(broker)
        self.beating = False
        if arrived:
            then()

    def member_ids(self, view: TopicView) -> Generator[int, None, tuple[Broker | None, MemberList | None]]:
        """`MQClientInstance.findConsumerIdList`: a random broker of the route and its list, None without an answer."""
        name = view.brokers[self._draws.below(len(view.brokers))]
        broker = self._env.any_of(name, view.addresses[name], self._draws)
        if broker is None or not (yield from self.request(broker)):
            return broker, None
        members = broker.members
        yield self.answer()
        return broker, self._nobody if members is None else members

    def good_bye(self, client_id: str, locked: list[MessageQueue], *, unregisters: bool = True) -> Steps:
        """Unlock all (`ConsumeMessageOrderlyService`), then unregister from each broker, or hang up."""
        for broker, queues in grouped((self._env.master(queue), queue) for queue in locked).items():
            if broker is not None and (yield from self.request(broker)):
                for queue in queues:
                    broker.unlock(queue, client_id)
                yield self.answer()
        if not unregisters:
            self.hang_up()
            return
        for broker in tuple(self.addresses):
            if (yield from self.request(broker)):
                broker.forget(self._channel, f"is told that {client_id} goes")
                yield self.answer()

    def hang_up(self) -> None:
        """Close all connections, which each broker notices by itself."""
        for broker in self.connected:
            late = self._draws.below(self._env.timers.close_us + 1)
            self._env.clock.call(late + self._env.one_way(self._draws), self.found_closed, broker)

    def found_closed(self, broker: Broker) -> None:
        if broker.up:
            broker.forget(self._channel, f"finds the connection of {self._channel.client_id} closed")

    def _lose(self, broker: Broker) -> Steps:
        """Send a heartbeat over a connection and forget the connection; the broker counts another process."""
        self.twice = None
        if (yield from self.request(broker)):
            lost = LostConnection(self._channel, broker, self._env)
            self.lost.append(lost)
            broker.beat(lost)
            yield self.answer()
            self.connected.pop(broker, None)

    def _heartbeat(self, broker: Broker) -> Generator[int, None, bool]:
        arrived = yield from self.request(broker)
        if arrived:
            broker.beat(self._channel)
            yield self.answer()
        return arrived


class LostConnection:
    """A connection that its client has forgotten; the broker lists the client twice until the connection is idle."""

    def __init__(self, channel: Channel, broker: Broker, env: GroupEnvironment) -> None:
        self.client_id = channel.client_id
        self._channel, self._broker, self._env = channel, broker, env
        self._heard_us = env.clock.now
        self._wait()

    def notice(self, broker: Broker) -> None:
        self._heard_us = self._env.clock.now
        self._channel.notice(broker)

    def closed(self, _: Broker) -> bool:
        return False

    def end(self) -> None:
        if self._broker.up:
            self._broker.forget(self, f"finds a connection of {self.client_id} closed that was of no use")

    def _wait(self) -> None:
        left = self._heard_us + self._env.timers.socket_idle_us - self._env.clock.now
        if left <= 0:
            self.end()
        else:
            self._env.clock.call(left, self._wait)
