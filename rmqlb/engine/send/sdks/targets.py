"""Where a producer of another SDK sends: the queues that it goes round, and those that the Proxy before them does."""

from __future__ import annotations

from rmqlb.engine.send.clock import Thread
from rmqlb.engine.send.sdks.balancers import CppRoundRobin, GoRoundRobin, PublishingLoadBalancer
from rmqlb.engine.send.sdks.profile import SdkProfile
from rmqlb.engine.send.sdks.publish_list import broker_list, publish_list, stored_list
from rmqlb.engine.send.simulation import SendSimulation
from rmqlb.errors import DataError
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.route import TopicRouteData


class Targets:
    """The queues that the producer and the Proxy go round, as the route has them."""

    def __init__(self, simulation: SendSimulation, profile: SdkProfile) -> None:
        self._simulation, self._sdk, self._name = simulation, profile, simulation.scenario.sdk
        self._version = -1
        self.listed: list[MessageQueue] = []
        self.names: frozenset[str] = frozenset()
        self.go: GoRoundRobin
        self.cpp: CppRoundRobin
        self._balancers: dict[int, PublishingLoadBalancer] = {}
        self._of_broker: dict[str, list[MessageQueue]] = {}
        self._all: list[MessageQueue] = []
        self._index: int | None = None  # of the round robin of a Proxy by itself
        _no_slaves(simulation, profile)

    def look(self, thread: Thread) -> None:
        """Take the newest route, if there is a newer one that the SDK asks for."""
        cluster = self._simulation.cluster
        stale = cluster.version != self._version and (self._version < 0 or self._sdk.polls)
        route, exclude = cluster.seen, self._simulation.scenario.exclude
        if cluster.version != self._version:
            self._all = [queue for queue in stored_list(route) if queue.broker_name not in exclude]
            self._of_broker = {data.broker_name: stored_list(route, data.broker_name) for data in route.queue_datas}
        if stale:
            self._take(thread, route)
        self._version = cluster.version

    def _take(self, thread: Thread, route: TopicRouteData) -> None:
        exclude = self._simulation.scenario.exclude
        if not self._sdk.grpc:
            listed = [queue for queue in publish_list(route, self._sdk) if queue.broker_name not in exclude]
            if listed and self._sdk.rotation == "cpp":
                # The counter of a new route begins at 0.
                self.cpp = CppRoundRobin(listed, self._start(thread, listed) if self._version < 0 else 0)
            elif listed:
                start = self._start(thread, listed) if self._version < 0 else self.go.counter
                self.go = GoRoundRobin(listed, start)
            self.listed, self.names = listed, frozenset(queue.broker_name for queue in listed)
            return
        entries = [each for each in broker_list(route, self._sdk) if each.queue.broker_name not in exclude]
        if not entries and self.listed:
            return
        self.listed = [each.queue for each in entries]
        self.names = frozenset(queue.broker_name for queue in self.listed)
        for number, balancer in list(self._balancers.items()):
            self._balancers[number] = PublishingLoadBalancer(self.listed, self._name, balancer.counter)

    def candidates(self, thread: Thread, isolated: set[str], count: int) -> list[MessageQueue]:
        """The candidates of the thread's next message."""
        number = thread.sender.number if self._sdk.counts_by_thread else 0
        balancer = self._balancers.get(number)
        if balancer is None:
            start = self._start(thread, self.listed)
            balancer = self._balancers[number] = PublishingLoadBalancer(
                self.listed, self._simulation.scenario.sdk, start
            )
        return balancer.candidates(frozenset(isolated), count)

    def of_broker(self, thread: Thread, queue: MessageQueue) -> tuple[MessageQueue, bool]:
        """The queue that the Proxy in that broker picks, any of them; when the broker stores nothing, the SDK's own."""
        queues = self._of_broker.get(queue.broker_name)
        if not queues:
            return queue, False
        return queues[self._below(len(queues), thread)], True

    def knows(self, queue: MessageQueue) -> bool:
        """It is one that its broker stores in."""
        return queue in self._of_broker.get(queue.broker_name, ())

    def of_proxy(self) -> MessageQueue:
        """The queue that a Proxy by itself picks for the next attempt."""
        index = self._below(len(self._all), self._simulation.threads[0]) if self._index is None else self._index
        self._index = index + 1
        return self._all[index % len(self._all)]

    def _below(self, number: int, thread: Thread) -> int:
        """A random number below it."""
        return (self._simulation.draw(thread.sender) >> 32) * number >> 32

    def _start(self, thread: Thread, listed: list[MessageQueue]) -> int:
        """Where the SDK's counter begins, or so that the first message goes where the scenario says."""
        simulation, profile = self._simulation, self._sdk
        wanted = simulation.scenario.start_at
        if wanted is not None and thread.sender.number == 1:
            queue = simulation.publish_queues[wanted]
            name = queue.broker_name
            near = [place for place, each in enumerate(listed) if each.broker_name == name]
            place = listed.index(queue) if queue in listed else near[0] if near else 0
            steps = int(profile.counts_first) + int(profile.rotation == "one-queue-ahead")
            return (place - steps) % len(listed)
        if profile.starts == 0:
            return 0
        first, many = (1, 1000) if profile.starts == 1000 else (0, profile.starts or len(listed))
        return first + self._below(many, thread)


def _no_slaves(simulation: SendSimulation, profile: SdkProfile) -> None:
    """Refuse lists with slaves in them, of which it is not known what they answer; raises DataError."""
    if not profile.grpc or simulation.scenario.proxy_mode == "cluster":
        return
    slaves = [entry.queue.broker_name for entry in broker_list(simulation.route, profile) if not entry.takes]
    if slaves:
        raise DataError(
            f"producers of {profile.name} send to slaves too, as {slaves[0]} has: what these answer is not simulated",
            hint="--proxy-mode cluster, or another SDK",
        )
