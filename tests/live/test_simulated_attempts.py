"""The simulator against real producers: one of three brokers is killed, and every attempt is foretold.

A recording is cut into stretches; each is simulated from the index that the thread had before it, over the route that
rmqlb itself read from the NameServer. A stretch ends where no simulator can go on: with a new route the client draws a
new index, and when an isolation is over matters to the millisecond which message comes next.
"""

import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import pytest

from rmqlb import Attempt, Failure, Moment, Reaction, SendScenario, TopicRouteData, simulate_send

from .jvm import Java
from .producers import EVERY, KILLED, PAUSE_MS, Kill, RecordedAttempt, RecordedMessage, Recording
from .reactions import FAILING, SHORT_TIMEOUT_MS, Row, measured, read_facts, write_facts

pytestmark = [pytest.mark.live, pytest.mark.slow]

REFUSED, SILENT = Reaction("refused", "refused", 0, 1000), Reaction("timeout", "timeout")
RETRIES, TIMEOUT_MS = 2, 3000
MASK = 0x7FFFFFFF
# So many draws of a retry's place; one in eight leads to the recorded one.
SEEDS = 300

Made = tuple[int, int, str, int, str]
"""Message, counted from the stretch's first; attempt; broker; queue; outcome."""


@dataclass(frozen=True)
class Stretch:
    """Messages that can be foretold from what is known before the first one."""

    name: str
    recording: Recording
    messages: Sequence[RecordedMessage]
    route: TopicRouteData
    start_at: int
    is_dead: bool

    @property
    def recorded(self) -> list[Made]:
        return [
            (number, attempt.number, *attempt.queue, self._outcome(attempt))
            for number, message in enumerate(self.messages, 1)
            for attempt in message.attempts
        ]

    @property
    def failures(self) -> tuple[Failure, ...]:
        """Nobody listens any more; a request that was with the broker when it died is one that version 4 waits for."""
        if not self.is_dead:
            return ()
        was_there = self.messages[0].attempts[0].outcome == "RemotingTimeoutException"
        unanswered = (Failure(KILLED, SILENT, end=Moment(message=2)),) if was_there else ()
        return (Failure(KILLED, REFUSED), *unanswered)

    @property
    def seeds(self) -> range:
        """Those of the simulations that may be this one: version 5 draws where a retry begins, a time-out its phase."""
        draws = self.recording.version == "5.5.0" and self.recording.latency_fault and self.is_dead
        return range(SEEDS if draws or len(self.failures) > 1 else 1)

    def scenario(self, seed: int) -> SendScenario:
        return SendScenario(
            self.recording.version, latency_fault=self.recording.latency_fault, messages=len(self.messages),
            rate=Fraction(1000, PAUSE_MS), retries=RETRIES, timeout_ms=TIMEOUT_MS, failures=self.failures,
            start_at=self.start_at, seed=seed,
        )  # fmt: skip

    def simulated(self) -> Sequence[Attempt]:
        """What the simulator says; of several draws the first whose retries go where the recorded ones went."""
        retries = [made for made in self.recorded if made[1] > 1]
        for seed in self.seeds:
            attempts = simulate_send(self.route, self.scenario(seed), trace=True).attempts or ()
            if len(self.seeds) == 1 or [made for made in as_made(attempts) if made[1] > 1] == retries:
                return attempts
        raise AssertionError(f"{self.name}: no draw of {SEEDS} leads to the retries {retries}")

    def _outcome(self, attempt: RecordedAttempt) -> str:
        """The first failure may be of a connection that was just about to end."""
        if attempt == self.recording.to_the_dead[0] and attempt.outcome == "RemotingSendRequestException":
            return "RemotingConnectException"
        return attempt.outcome


def as_made(attempts: Sequence[Attempt]) -> list[Made]:
    return [(a.message, a.attempt, a.broker_name, a.queue_id, a.outcome) for a in attempts]


def stretches(kill: Kill, recording: Recording) -> Iterator[Stretch]:
    """All that was recorded: while all is well, with the broker dead and still in the route, and with the new route."""
    messages = recording.messages
    first_failure = recording.to_the_dead[0].message
    refresh = next(n for n in range(first_failure + 1, len(messages)) if is_drawn_anew(recording, n))
    dead = [first_failure, *isolation_ends(recording, first_failure, refresh), refresh]
    size = len(recording.queues_before)
    first = messages[0].attempts[0].queue
    yield Stretch(
        "before", recording, messages[:first_failure], kill.route, recording.queues_before.index(first), False
    )
    for begin, end in pairwise(dead):
        position = ((known(messages[begin - 1].index) + 1) & MASK) % size
        yield Stretch("dead", recording, messages[begin:end], kill.route, position, True)
    first = messages[refresh].attempts[0].queue
    position = recording.queues_after.index(first)
    yield Stretch("after", recording, messages[refresh:], kill.route_after, position, False)


def isolation_ends(recording: Recording, begin: int, end: int) -> Iterator[int]:
    for number in range(begin + 1, end):
        fault = recording.messages[number - 1].fault(KILLED)
        if fault is not None and fault.start_timestamp:
            before, now = recording.messages[number - 1].began_ms, recording.messages[number].attempts[0].began_ms
            if before < fault.start_timestamp <= now:
                yield number


def is_drawn_anew(recording: Recording, number: int) -> bool:
    """Whether the message's first index does not follow on the one before: it has a new route."""
    before, now = recording.messages[number - 1].index, recording.messages[number].attempts[0].index
    return before is None or now is None or not 0 < (now - before) & MASK <= len(recording.queues_before)


def known(index: int | None) -> int:
    assert index is not None
    return index


@pytest.fixture(params=EVERY, ids=lambda of: f"{of[0]}-{'latency-fault' if of[1] else 'plain'}")
def recording(kill: Kill, request: pytest.FixtureRequest) -> Recording:
    return kill.recordings[request.param]


def test_rmqlb_reads_the_routes_that_the_producers_have(kill: Kill, recording: Recording) -> None:
    for route, queues in ((kill.route, recording.queues_before), (kill.route_after, recording.queues_after)):
        assert tuple((queue.broker_name, queue.queue_id) for queue in route.publish_queues()) == queues


def test_attempts_equal_the_recorded_ones(kill: Kill, recording: Recording, capsys: pytest.CaptureFixture[str]) -> None:
    parts = list(stretches(kill, recording))
    assert sum(len(part.messages) for part in parts) == len(recording.messages)
    assert {part.name for part in parts} == {"before", "dead", "after"}
    told = []
    for part in parts:
        attempts = part.simulated()
        assert as_made(attempts) == part.recorded
        told.append(f"{part.name} {len(attempts)}")
    on = "on" if recording.latency_fault else "off"
    with capsys.disabled():
        sys.stdout.write(f"\n{recording.version}, latency fault {on}: attempts foretold: {', '.join(told)}\n")


OUT_OF_TIME = "RemotingTooMuchRequestException: sendDefaultImpl call timeout"
# What a loaded machine may add to a time.
PATIENCE_MS = 1500

Facts = tuple[list[Row], list[Row]]


@pytest.fixture(scope="module")
def facts(producer_javas: Mapping[str, Java], request: pytest.FixtureRequest) -> Facts:
    with ThreadPoolExecutor() as pool:
        by_version = list(pool.map(measured, producer_javas.values()))
    rows = [row for of_version, _ in by_version for row in of_version]
    timeouts = [row for _, of_version in by_version for row in of_version]
    if request.config.getoption("--update-golden"):
        write_facts(rows, timeouts)
    return rows, timeouts


def of_timeouts(facts: Facts, version: str, mode: str, reaction: str = "is silent") -> Row:
    (found,) = (row for row in facts[1] if (row["version"], row["mode"], row["reaction"]) == (version, mode, reaction))
    return found


def test_producers_do_what_is_written_down(facts: Facts) -> None:
    written, _ = read_facts()
    assert facts[0] == written


@pytest.mark.parametrize(
    ("version", "reaction"), [("5.5.0", "is silent"), ("4.9.7", "is silent"), ("4.9.7", "hangs up")]
)
def test_a_sync_message_whose_time_is_up_fails_for_good(facts: Facts, version: str, reaction: str) -> None:
    now = of_timeouts(facts, version, "sync", reaction)
    assert min(map(int, now["firstAttemptOverMs"])) in (-1, 0)
    assert max(map(int, now["firstAttemptOverMs"])) < PATIENCE_MS
    assert set(now["attempts"]) <= {"1", "2", "3"}
    assert all(end == OUT_OF_TIME or end.startswith("MQClientException: Send [3] times, ") for end in now["outcomes"])
    later = {outcome.split(": ")[0] for outcome in now["laterAttempts"]}
    assert later <= {"RemotingTimeoutException", "RemotingTooMuchRequestException"}
    if reaction == "is silent":  # it is isolated, and each broker that was tried with no time left
        assert now["isolatedMs"] == {"5.5.0": 10_000, "4.9.7": 600_000}[version]
        assert all(FAILING in brokers.split() for brokers in now["isolated"])
        sizes: Counter[str] = Counter()
        for brokers, times in now["isolated"].items():
            sizes[str(len(brokers.split()))] += times
        assert sizes == now["attempts"]
    if version == "5.5.0":  # nothing is written when no time is left
        assert now["received"] == {"a3": now["repetitions"]}


@pytest.mark.parametrize(
    ("version", "outcome"),
    [
        ("5.5.0", "MQClientException: wait response timeout, cost=N"),
        ("4.9.7", "RemotingTooMuchRequestException: invokeAsync call the addr[127.0.0.1:N] timeout"),
    ],
)
def test_an_async_timeout_is_told_late_and_nobody_else_gets_it(facts: Facts, version: str, outcome: str) -> None:
    measured_now = of_timeouts(facts, version, "async")
    least, _, greatest = measured_now["tookOverMs"]
    assert least >= 1000
    assert greatest <= 2000 + PATIENCE_MS
    assert measured_now["timeoutMs"] == SHORT_TIMEOUT_MS
    assert measured_now["outcomes"] == {outcome: measured_now["repetitions"]}
    assert measured_now["received"] == {"1": measured_now["repetitions"]}
