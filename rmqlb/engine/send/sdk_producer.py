"""Producers of other SDKs: client-go's and C++'s loops of attempts, and that of the gRPC SDKs.

A message's time-out is that of one attempt; several follow one another. Differences between SDKs are in `profile.py`.
"""

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any

from rmqlb.engine.send.cluster import NEVER, NO_ROUTE, SEND_OK, Message, Outcome, Thread, broken
from rmqlb.engine.send.producer import Producer, Steps
from rmqlb.engine.send.profile import sdk
from rmqlb.engine.send.queues import (
    CppRoundRobin,
    GoRoundRobin,
    PublishingLoadBalancer,
    broker_list,
    cpp_attempts,
    publish_list,
    stored_list,
)
from rmqlb.errors import DataError, UsageError
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.send_scenario import Reaction, SendScenario

Pick = tuple[MessageQueue, bool]
"""The queue of an attempt, and whether its broker stores messages."""
_NO_CANDIDATE = "every endpoint is isolated"
_HEARTBEAT_US = 10_000_000
"""How often gRPC producers query each endpoint; a good answer ends its isolation."""
_BACKOFF_US, _MOST_BACKOFF_US = 10_000, 1_000_000
"""A Proxy's setting for producers (`grpcClientProducerBackoff…`): the delay of attempt 1, doubled by each later one."""
_SYSTEM_BUSY = 2
_GO_TIMEOUT_MS = 3000
"""How long client-go 2.1.2 waits for each answer, whatever timeout is set."""
_GO_RETRIED = frozenset({1, 14, 16, 17})
_FORBIDDEN = Outcome("FORBIDDEN", "code", retry=True, isolation=True)


def check_sdk(scenario: SendScenario) -> None:
    profile = sdk(scenario.sdk).profile
    if profile.name == "java":
        raise UsageError(f"sdk {scenario.sdk}: for Java producers, use sdk java and set client_version")
    if profile.retries is None:
        hint = "select-queue shows where its producers send keys"
        raise UsageError(f"sends of {profile.name} are not simulated", hint=hint)
    for wrong, what in (
        (scenario.mode == "oneway" or (scenario.mode == "async" and profile.name == "cpp"), f"mode {scenario.mode}"),
        (scenario.chosen_by is not None, "a selector"),
        (scenario.latency_fault, "latency fault"),
    ):
        if wrong:
            raise UsageError(f"{what} is not simulated for {profile.name}")
    statuses = [failure.reaction.name for failure in scenario.failures if failure.reaction.kind == "status"]
    if profile.name != "go" and statuses:
        raise UsageError(f"{statuses[0]}: store statuses are not simulated for {profile.name}")


class SdkProducer(Producer):
    refused = broken("connection refused")

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.sdk = sdk(self.scenario.sdk).profile
        self.listed: list[MessageQueue] = []  # the SDK's own list
        self.timeout_ms = self.scenario.timeout_ms
        self.attempts = 1 if self.sdk.retries == 0 else 1 + self.scenario.retries
        self.is_async = self.scenario.mode == "async"
        self._version = -1  # of the route of `listed`

    @abstractmethod
    def take_route(self, thread: Thread, *, is_first: bool) -> None: ...

    @abstractmethod
    def picks(self, message: Message) -> Iterator[Pick]: ...

    def follow_route(self, thread: Thread) -> None:
        version = self.cluster.version
        if version != self._version:
            is_first, self._version = self._version < 0, version
            if is_first or self.sdk.polls:
                self.take_route(thread, is_first=is_first)

    def attempt_failed(self, message: Message, *, last: bool) -> None:
        """React to a failed attempt."""

    def send(self, thread: Thread) -> Steps:
        message = self.begin(thread)
        self.follow_route(thread)
        picks = self.picks(message) if self.listed else iter(())
        first = next(picks, None)
        if first is None:
            self.fail_at_once(message, _NO_CANDIDATE if self.listed else NO_ROUTE)
            return iter(())
        steps = self._attempts(message, first, picks)
        if not self.is_async:
            return steps
        self.spawn(thread, steps)
        return iter(())

    def _attempts(self, message: Message, pick: Pick | None, picks: Iterator[Pick]) -> Steps:
        while pick is not None:
            queue, stores = pick
            reaction = self.start(message, queue)
            forbidden = None if stores else (_FORBIDDEN, self.answer_time(message, None))
            ends = forbidden or self.ends(message, reaction, self.timeout_ms * self.per_ms)
            yield from self.attempt(message, *ends)
            outcome, last = message.outcome, message.attempt >= self.attempts
            if outcome.isolation:
                self.attempt_failed(message, last=last)
            if not outcome.failed or last or not outcome.retry:
                break
            if outcome.code == _SYSTEM_BUSY and self.sdk.backs_off:
                doubled = message.attempt if self.sdk.backs_off == "next" else message.attempt - 1
                yield min(_BACKOFF_US << doubled, _MOST_BACKOFF_US) * self.per_us
            pick = next(picks, None)
        self.finish_stored(message)

    def answer(self, message: Message, reaction: Reaction | None) -> Outcome:  # noqa: ARG002 - for Java
        if reaction is None or reaction.kind == "slow":
            return SEND_OK
        if reaction.kind == "status":
            return Outcome(reaction.name, "status")
        is_busy = reaction.code == _SYSTEM_BUSY
        retry = reaction.code in _GO_RETRIED if self.sdk.name == "go" else not (is_busy and self.sdk.gives_up_busy)
        return Outcome(reaction.name, "code", retry=retry, isolation=True, code=reaction.code)

    def without_excluded(self, queues: list[MessageQueue]) -> list[MessageQueue]:
        return [queue for queue in queues if queue.broker_name not in self.scenario.exclude]

    def first_counter(self, thread: Thread) -> int:
        """The SDK's counter before its first message; with `start_at`, one that leads there."""
        wanted, listed, profile = self.scenario.start_at, self.listed, self.sdk
        if wanted is not None and thread.number == 1:
            queue = self.publish_queues[wanted]
            near = [place for place, each in enumerate(listed) if each.broker_name == queue.broker_name]
            place = listed.index(queue) if queue in listed else near[0] if near else 0
            steps = int(profile.counts_first) + int(profile.rotation == "one-queue-ahead")
            return (place - steps) % len(listed)
        if profile.starts == 0:
            return 0
        first, many = (1, 1000) if profile.starts == 1000 else (0, profile.starts or len(listed))
        return first + self.below(many, thread)


class GoProducer(SdkProducer):
    """`defaultProducer.sendSync` and `sendAsync` of client-go 2.1.2; `sendAsync` makes one attempt."""

    timeout = broken("ErrRequestTimeout")
    _robin: GoRoundRobin

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.timeout_ms = _GO_TIMEOUT_MS
        self.attempts = 1 if self.is_async else self.attempts

    def take_route(self, thread: Thread, *, is_first: bool) -> None:
        self.listed = self.without_excluded(publish_list(self.cluster.seen, self.sdk))
        if self.listed:
            self._robin = GoRoundRobin(self.listed, self.first_counter(thread) if is_first else self._robin.counter)

    def picks(self, message: Message) -> Iterator[Pick]:
        while True:
            self.follow_route(message.thread)
            yield self._robin.select(), True


class CppProducer(SdkProducer):
    """`DefaultMQProducerImpl.sendDefaultImpl` of rocketmq-client-cpp 2.2.0."""

    timeout = broken("no response")

    def take_route(self, thread: Thread, *, is_first: bool) -> None:
        self.listed = self.without_excluded(publish_list(self.cluster.seen, self.sdk))
        if self.listed:  # the counter of a new route begins at 0
            self._robin = CppRoundRobin(self.listed, self.first_counter(thread) if is_first else 0)

    def picks(self, message: Message) -> Iterator[Pick]:
        def newest() -> CppRoundRobin:
            self.follow_route(message.thread)
            return self._robin

        return ((queue, True) for queue in cpp_attempts(newest, self.attempts))


class GrpcProducer(SdkProducer):
    """The gRPC SDKs, which send to a Proxy.

    A producer isolates the endpoint of a failed attempt. A Proxy in a broker (local mode) is that broker's endpoint; a
    separate Proxy (cluster mode) is the endpoint of all brokers. The Proxy decides the queue: in local mode any of its
    broker, since each request makes a new `MessageQueueView`, which begins at random; in cluster mode the next of all.
    """

    timeout = broken("DEADLINE_EXCEEDED")

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._local = self.scenario.proxy_mode == "local"
        self.refused = broken("UNAVAILABLE" if self._local else "INTERNAL_SERVER_ERROR")
        self._isolated: set[str] = set()  # broker names
        self._balancers: dict[int, PublishingLoadBalancer] = {}  # by thread; 0 where all share one
        self._proxy_index: int | None = None  # of the round robin of a separate Proxy
        self._stored: list[MessageQueue] = []  # where a separate Proxy stores
        self._stored_in: dict[str, list[MessageQueue]] = {}  # broker name → where the Proxy in it stores
        self.cluster.keeps_list = self._local and not self.sdk.polls
        self._beat = self.sdk.beats_after_s * 1_000_000 * self.per_us
        slaves = [queue.broker_name for queue, takes in broker_list(self.route, self.sdk) if not takes]
        if self._local and slaves:
            text = f"producers of {self.sdk.name} also send to slaves, which {slaves[0]} has"
            hint = "pass --set proxy-mode=cluster, or another SDK"
            raise DataError(f"{text}: rmqlb does not simulate the answers of slaves", hint=hint)

    def follow_route(self, thread: Thread) -> None:
        """Use the newest route, which the Proxy always has, whatever the SDK requests."""
        if self._version != self.cluster.version:
            route = self.cluster.seen
            self._stored = self.without_excluded(stored_list(route))
            self._stored_in = {data.broker_name: stored_list(route, data.broker_name) for data in route.queue_datas}
        super().follow_route(thread)

    def take_route(self, thread: Thread, *, is_first: bool) -> None:  # noqa: ARG002 - for the others
        listed = self.without_excluded([queue for queue, _ in broker_list(self.cluster.seen, self.sdk)])
        if not listed and self.listed:
            return
        self.listed = listed
        for number, balancer in self._balancers.items():
            self._balancers[number] = PublishingLoadBalancer(listed, self.scenario.sdk, balancer.counter)

    def picks(self, message: Message) -> Iterator[Pick]:
        thread, anew = message.thread, self.sdk.picks_anew
        candidates = self._candidates(thread, self.attempts)
        while candidates:
            yield self._stored_at(thread, candidates[0 if anew else message.attempt % len(candidates)])
            if anew:
                candidates = self._candidates(thread, 1)

    def _candidates(self, thread: Thread, count: int) -> list[MessageQueue]:
        number = thread.number if self.sdk.counts_by_thread else 0
        if number not in self._balancers:
            start = self.first_counter(thread)
            self._balancers[number] = PublishingLoadBalancer(self.listed, self.scenario.sdk, start)
        return self._balancers[number].take_message_queues(self._isolated, count)

    def _stored_at(self, thread: Thread, candidate: MessageQueue) -> Pick:
        """The queue in which the Proxy stores; the SDK's own if the broker, and so the Proxy in it, is dead."""
        if not self._local and self._stored:
            index = self.below(len(self._stored), self.threads[0]) if self._proxy_index is None else self._proxy_index
            self._proxy_index = index + 1
            return self._stored[index % len(self._stored)], True
        if not self._local:
            return candidate, False
        stored = self._stored_in.get(candidate.broker_name, [])
        if self._is_dead(candidate.broker_name) and candidate in stored:
            return candidate, True
        return (stored[self.below(len(stored), thread)], True) if stored else (candidate, False)

    def _is_dead(self, broker_name: str) -> bool:
        reaction = self.reaction_of(broker_name)
        return reaction is not None and reaction.kind in ("refused", "timeout")

    def attempt_failed(self, message: Message, *, last: bool) -> None:
        if not self.sdk.isolates or (last and self.sdk.isolates == "before-retry"):
            return
        name = message.queue.broker_name
        if not self._local:
            self._isolated.update(queue.broker_name for queue in self.listed)
        elif name not in self._isolated:
            self._isolated.add(name)
            self.recorder.isolate(name, self.now, NEVER)

    def outside(self, until: int) -> None:
        """Send the heartbeats up to a tick: an endpoint that answers is no longer isolated."""
        while self.sdk.rejoins and self._beat <= until:
            for name in sorted(self._isolated):
                if self._local and self._is_dead(name):
                    continue
                self._isolated.discard(name)
                if self._local:
                    self.recorder.isolated_until(name, self._beat, self._beat)
            self._beat += _HEARTBEAT_US * self.per_us
