"""A consumer's connections to brokers: what `MQClientInstance` and `MQClientAPIImpl` request from them."""

from collections.abc import Collection, Generator

from rmqlb.engine.kernel import Steps
from rmqlb.engine.rebalance.environment import Broker, Channel, GroupEnvironment, MemberList, TopicView
from rmqlb.model.message_queue import MessageQueue, grouped
from rmqlb.model.route import MASTER_ID


class Connections(Channel):
    """A consumer's connections: requests run one after the other, and a silent broker blocks until the timeout."""

    def __init__(self, client_id: str, env: GroupEnvironment, number: int) -> None:
        self.client_id, self.env, self.draws = client_id, env, env.draws(number)
        self.profile = env.profile_of(client_id)
        self.views: dict[str, TopicView] = {}  # topic → the route that it knows
        self.connected: dict[Broker, None] = {}
        self.beating = False  # a heartbeat is under way (`lockHeartbeat`)
        # the broker to which a client that continues after a freeze opens a connection and loses track of it
        self.twice: Broker | None = None
        self.lost: list[LostConnection] = []
        self._addresses: dict[Broker, None] | None = None
        self._ids: dict[str, tuple[int, ...]] = {}

    def opened(self, broker: Broker) -> None:
        """Note a new connection to a broker."""

    @property
    def addresses(self) -> Collection[Broker]:
        """The brokers of its routes (`brokerAddrTable`)."""
        if self._addresses is None:
            names = dict.fromkeys(name for view in self.views.values() for name in view.brokers)
            brokers = (broker for name in names for broker in self.env.processes(name, self._ids[name]))
            self._addresses = dict.fromkeys(brokers)
        return self._addresses.keys()

    def learn(self, view: TopicView) -> list[str]:
        """Take the addresses of a route; returns the brokers whose processes differ."""
        changed = [name for name, ids in view.addresses.items() if self._ids.get(name) != ids]
        self._ids |= view.addresses
        self.views[view.topic] = view
        self._addresses = None
        return changed

    def stores_offsets(self, name: str) -> Broker | None:
        """`findBrokerAddressInSubscribe`: the known process with the lowest ID, or any of an unknown broker."""
        return next(iter(self.env.processes(name, self._ids.get(name))), None)

    def pulled_from(self, name: str) -> Broker | None:
        """The process to pull from; only a master where queues need its lock."""
        broker = self.stores_offsets(name)
        return None if broker is None or (self.env.locks and broker.broker_id != MASTER_ID) else broker

    def request(self, broker: Broker) -> Generator[int, None, bool]:
        env = self.env
        if broker.up and broker not in self.connected:
            yield env.timers.connect_us
        if broker.up:
            if broker not in self.connected:
                self.connected[broker] = None
                self.opened(broker)
            yield env.one_way(self.draws)
            if broker.up:
                return True
        yield env.timers.rpc_timeout_us if broker.silent else env.one_way(self.draws)
        return False

    def answer(self) -> int:
        return self.env.one_way(self.draws)

    def heartbeats(self) -> Generator[int, None, bool]:
        """`MQClientInstance.sendHeartbeatToAllBrokerWithLock`: one broker after the other; returns whether it tried."""
        if self.beating or not self.addresses:
            return False
        self.beating = True
        for broker in tuple(self.addresses):
            if broker is self.twice:
                yield from self._lose(broker)
            yield from self.heartbeat(broker)
        self.beating = False
        return True

    def member_ids(self, view: TopicView) -> Generator[int, None, tuple[Broker | None, MemberList | None]]:
        """`MQClientInstance.findConsumerIdList`: a random broker of the route and its list, None without an answer.

        Its master is asked, up or not, or any slave of a route without a master (`BrokerData.selectBrokerAddr`).
        """
        name = view.brokers[self.draws.below(len(view.brokers))]
        brokers = self.env.processes(name, view.addresses[name])
        if not brokers:
            return None, None
        broker = brokers[0] if brokers[0].broker_id == MASTER_ID else brokers[self.draws.below(len(brokers))]
        if not (yield from self.request(broker)):
            return broker, None
        members = broker.members
        yield self.answer()
        if members is None and self.profile.error_is_nobody:
            members = self.env.shares.list_of(())
        return broker, members

    def good_bye(self, locked: list[MessageQueue]) -> Steps:
        """Unlock all (`ConsumeMessageOrderlyService`), then unregister from each broker, or hang up."""
        for broker, queues in grouped((self.env.master(queue), queue) for queue in locked).items():
            if broker is not None and (yield from self.request(broker)):
                for queue in queues:
                    broker.unlock(queue, self.client_id)
                yield self.answer()
        if not self.profile.unregisters:
            self.hang_up()
            return
        for broker in tuple(self.addresses):
            if (yield from self.request(broker)):
                broker.forget(self, f"is told that {self.client_id} goes")
                yield self.answer()

    def hang_up(self) -> None:
        """Close all connections, which each broker notices by itself."""
        for broker in self.connected:
            late = self.draws.below(self.env.timers.close_us + 1)
            self.env.clock.call(late + self.env.one_way(self.draws), self.found_closed, broker)

    def found_closed(self, broker: Broker) -> None:
        if broker.up:
            broker.forget(self, f"finds the connection of {self.client_id} closed")

    def _lose(self, broker: Broker) -> Steps:
        """Send a heartbeat over a connection and forget the connection; the broker counts another process."""
        self.twice = None
        if (yield from self.request(broker)):
            lost = LostConnection(self, broker, self.env)
            self.lost.append(lost)
            broker.beat(lost)
            yield self.answer()
            self.connected.pop(broker, None)

    def heartbeat(self, broker: Broker) -> Generator[int, None, bool]:
        arrived = yield from self.request(broker)
        if arrived:
            broker.beat(self)
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
