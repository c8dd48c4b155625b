"""Sends by producers of other SDKs: client-go's loop of attempts, and that of the gRPC SDKs.

What differs between SDKs is in `profile.py`. Rules of this file:
- A message's time-out is that of one attempt; several follow one another.
- A gRPC producer isolates the endpoint of a failed attempt. A Proxy in a broker (local mode) is that broker's endpoint;
  a Proxy by itself (cluster mode) is the endpoint of all of them.
- The Proxy decides the queue: in local mode any of its broker, since each request makes a new `MessageQueueView`, which
  begins at random; in cluster mode the next of all.
"""

from __future__ import annotations

from collections import defaultdict

from rmqlb.engine.send.clock import Thread
from rmqlb.engine.send.cluster_state import NEVER
from rmqlb.engine.send.exceptions import NO_ROUTE
from rmqlb.engine.send.outcome import SEND_OK, Outcome
from rmqlb.engine.send.sdks.balancers import CppMessage
from rmqlb.engine.send.sdks.profile import sdk
from rmqlb.engine.send.sdks.targets import Targets
from rmqlb.engine.send.sender import Sender
from rmqlb.engine.send.simulation import SendSimulation
from rmqlb.errors import UsageError
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.send_report import LostMessage, MessageException
from rmqlb.model.send_scenario import Reaction, SendScenario

NO_CANDIDATE = "every endpoint is isolated"
HEARTBEAT_US = 10_000_000
"""How often gRPC producers ask each endpoint; a good answer ends its isolation."""
_BACKOFF_US, _MOST_BACKOFF_US = 10_000, 1_000_000
"""What a Proxy sets for producers (`grpcClientProducerBackoff…`): the delay of attempt 1; each later one doubles it."""
_SYSTEM_BUSY = 2
_GO_TIMEOUT_MS = 3000
"""How long client-go 2.1.2 waits for each answer, whatever timeout is set."""
_GO_RETRIED = frozenset({1, 14, 16, 17})
_REFUSED = {"": "connection refused", "local": "UNAVAILABLE", "cluster": "INTERNAL_SERVER_ERROR"}
"""What the SDK sees of a broker that refuses, by the mode of the Proxy; "" is without one."""
_SILENT = defaultdict(lambda: "DEADLINE_EXCEEDED", go="ErrRequestTimeout", cpp="no response")
"""What the SDK makes of silence, by how it goes round; the others are gRPC's."""
_DEAD = ("refused", "timeout")
"""The Proxy in a broker answers no more than the broker does: no queue is picked, and the SDK's own counts as tried."""
_FORBIDDEN = Outcome("FORBIDDEN", "code", retry=True, isolation=True)


def check_sdk(scenario: SendScenario) -> None:
    """Refuse what is not simulated of an SDK; raises UsageError."""
    profile = sdk(scenario.sdk).profile
    if profile.name == "java":
        raise UsageError(
            f"sdk {scenario.sdk}: Java's producers are sdk java, their version is client_version",
        )
    if profile.retries is None:
        raise UsageError(
            f"sends of {profile.name} are not simulated", hint="select-queue says where its producers send keys"
        )
    for wrong, what in (
        (scenario.mode == "oneway" or (scenario.mode == "async" and profile.name == "cpp"), f"mode {scenario.mode}"),
        (scenario.chosen_by is not None, "a selector"),
        (scenario.latency_fault, "latency fault"),
    ):
        if wrong:
            raise UsageError(f"{what} is simulated for Java's producers, not for those of {profile.name}")
    statuses = [failure.reaction.name for failure in scenario.failures if failure.reaction.kind == "status"]
    if profile.name != "go" and statuses:
        raise UsageError(f"{statuses[0]}: store statuses are not simulated for {profile.name}")


class SdkSender(Sender):
    """What threads do that wait for each message, or with ASYNC hand it over: its attempts are then a request's."""

    def __init__(self, simulation: SendSimulation) -> None:
        super().__init__(simulation)
        self._sdk = sdk(self.scenario.sdk).profile
        self._is_async = self.scenario.mode == "async"
        # Go's `sendAsync` makes one attempt; the others retry as they do when they wait.
        once = self._sdk.retries == 0 or (self._is_async and not self._sdk.grpc)
        self._attempts = 1 if once else 1 + self.scenario.retries
        self._requests = 0
        self._isolated: set[str] = set()
        self._pausing: set[int] = set()  # threads that wait before their next attempt
        self._candidates: dict[int, list[MessageQueue]] = {}
        self._messages: dict[int, CppMessage] = {}  # of C++, by thread
        self._ahead: dict[int, MessageQueue] = {}  # where its next attempt goes
        self._targets = Targets(simulation, self._sdk)
        self._local = self.scenario.proxy_mode == "local"
        simulation.cluster.keeps_list = self._local and not self._sdk.polls
        self._beat = self._sdk.beats_after_s * 1_000_000 * self._ticks_per_us
        self._period = HEARTBEAT_US * self._ticks_per_us
        if self._sdk.grpc and self._sdk.rejoins:
            simulation.outside = self._beats

    def go_on(self, thread: Thread, now: int) -> None:
        if thread.number in self._pausing:
            self._pausing.discard(thread.number)
            self._try(thread, now)
            return
        if thread.busy:
            thread.busy = False
            self._done(thread, now)
            return
        self.begin(thread, now)
        self._targets.look(thread)
        if not self._targets.listed:
            self.fail_at_once(thread, now, NO_ROUTE)
            return
        found: list[MessageQueue] = []
        if self._sdk.grpc:
            found = self._targets.candidates(thread, self._isolated, self._attempts)
            if not found:
                self.fail_at_once(thread, now, NO_CANDIDATE)
                return
        sending = self._request(thread) if self._is_async else thread
        self._candidates[sending.number] = found
        self._try(sending, now)
        if self._is_async:
            self.clock.next_message(thread, now)

    def _request(self, thread: Thread) -> Thread:
        """What stands for the message while its thread goes on."""
        self._requests += 1
        number = self._requests - (1 << 40)
        return Thread(number, key=0, handed_over_by=thread, message=thread.message, began=thread.began)

    def _try(self, thread: Thread, now: int) -> None:
        """The next attempt."""
        queue, takes = self._queue(thread)
        self.recorder.pick(queue)
        reaction = self.start(thread, queue, now)
        outcome, took = self._ends(thread, reaction) if takes else (_FORBIDDEN, self.answer_time(thread, None))
        self.under_way(thread, outcome, took, now)

    def _queue(self, thread: Thread) -> tuple[MessageQueue, bool]:
        """The queue of an attempt, and whether its broker is one that stores."""
        targets = self._targets
        if self._sdk.rotation == "cpp":
            return self._of_cpp(thread), True
        if not self._sdk.grpc:
            targets.look(thread)
            return targets.go.select(), True
        if self._sdk.picks_anew and thread.attempt:
            self._candidates[thread.number] = targets.candidates(thread, self._isolated, 1)
        candidates = self._candidates[thread.number]
        place = 0 if self._sdk.picks_anew else thread.attempt % len(candidates)
        if not self._local:
            return targets.of_proxy(), True
        candidate = candidates[place]
        _, reaction = self.simulation.reaction_of(candidate.broker_name)
        if reaction is not None and reaction.kind in _DEAD and targets.knows(candidate):
            return candidate, True
        return targets.of_broker(thread, candidate)

    def _of_cpp(self, thread: Thread) -> MessageQueue:
        """Where the attempt goes; the first is always somewhere."""
        if not thread.attempt:
            self._messages[thread.number] = CppMessage(self._attempts)
            self._looks_ahead(thread)
        return self._ahead[thread.number]

    def _looks_ahead(self, thread: Thread) -> bool:
        """Whether C++ finds a queue for the message's next attempt, for which it looks at once."""
        self._targets.look(thread)
        queue = self._messages[thread.number].next(self._targets.cpp)
        if queue is not None:
            self._ahead[thread.number] = queue
        return queue is not None

    def _was_last(self, thread: Thread) -> bool:
        """No attempt follows the one that has failed."""
        return not self._looks_ahead(thread) if self._sdk.rotation == "cpp" else thread.attempt >= self._attempts

    def _ends(self, thread: Thread, reaction: Reaction | None) -> tuple[Outcome, int]:
        grpc = self._sdk.grpc
        if reaction is not None and reaction.kind == "refused":
            seen = _REFUSED[self.scenario.proxy_mode if grpc else ""]
            return Outcome(seen, "remoting", retry=True, isolation=True), self.refusal_time(reaction)
        most = (_GO_TIMEOUT_MS if self._sdk.rotation == "go" else self.scenario.timeout_ms) * self.per_ms
        if reaction is None or reaction.kind != "timeout":
            took = self.answer_time(thread, reaction)
            if took <= most:
                return self._answer(reaction), took
        return Outcome(_SILENT[self._sdk.rotation or ""], "remoting", retry=True, isolation=True), most

    def _answer(self, reaction: Reaction | None) -> Outcome:
        if reaction is None or reaction.kind == "slow":
            return SEND_OK
        if reaction.kind == "status":
            return Outcome(reaction.name, "status")
        busy = reaction.code == _SYSTEM_BUSY
        go, gives_up = self._sdk.rotation == "go", busy and self._sdk.gives_up_busy
        retry = reaction.code in _GO_RETRIED if go else not gives_up
        return Outcome(reaction.name, "code", retry=retry, isolation=True, code=reaction.code)

    def _done(self, thread: Thread, now: int) -> None:
        outcome = thread.outcome
        last = outcome.failed and self._was_last(thread)
        self.recorder.attempt_done(thread, now, outcome)
        if outcome.isolation and self._sdk.isolates and not (last and self._sdk.isolates == "before-retry"):
            self._isolate(thread.queue.broker_name, now)
        if outcome.fate == "status":
            self.not_store_ok()
        if not outcome.failed or last or not outcome.retry:
            self._candidates.pop(thread.number, None)
            self.finish(thread, now, outcome.lost_by)
            if not self._is_async:
                self.clock.next_message(thread, now)
        elif self._sdk.grpc and outcome.code == _SYSTEM_BUSY and self._sdk.backs_off:
            pause = min(
                _BACKOFF_US << (thread.attempt if self._sdk.backs_off == "next" else thread.attempt - 1),
                _MOST_BACKOFF_US,
            )
            thread.busy = True
            self._pausing.add(thread.number)
            self.clock.wake(thread, now + pause * self._ticks_per_us)
        else:
            self._try(thread, now)

    def finish(self, thread: Thread, now: int, lost_by: str | None) -> None:
        """The message is over; the application gets an error of its language, whose text is not simulated."""
        if lost_by is None:
            self.recorder.finish(thread, now, None)
            return
        code = thread.outcome.code if thread.attempt else None
        told = MessageException(lost_by, response_code=code)
        sent = tuple(thread.sent)
        at = now / self.per_ms
        self.recorder.finish(thread, now, LostMessage(thread.message, thread.sender.number, at, lost_by, sent, told))

    # -- isolation -----------------------------------------------------------------------------------------------------

    def _isolate(self, broker_name: str, now: int) -> None:
        """The endpoint of an attempt that failed."""
        if not self._sdk.grpc:
            return
        self.simulation.surprises += 1
        if not self._local:
            self._isolated.update(self._targets.names)
        elif broker_name not in self._isolated:
            self._isolated.add(broker_name)
            self.recorder.isolate(broker_name, now, NEVER)

    def _beats(self, until: int) -> None:
        """The heartbeats up to a tick, while nothing outside changes: who answers is isolated no more."""
        while self._beat <= until:
            for name in sorted(self._isolated):
                _, reaction = self.simulation.reaction_of(name)
                if self._local and reaction is not None and reaction.kind in _DEAD:
                    continue
                self._isolated.discard(name)
                if self._local:
                    self.recorder.isolation.isolate(name, self._beat, self._beat)
            self._beat += self._period
