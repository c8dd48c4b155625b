"""What a simulated producer costs: picks beside RocketMQ's own, traces, totals and trials. `sending` runs it."""

from __future__ import annotations

import os
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING

from benchmarks.measuring import Spread, ratio
from benchmarks.sections import LONG, RUNS, Section, least, loop
from rmqlb.engine.send.fault import FaultStrategy, TopicPublishInfo
from rmqlb.engine.send.profile import profile_of
from rmqlb.engine.send.scenarios import lognormal
from rmqlb.engine.send.simulate import simulate_send
from rmqlb.engine.send.trials import simulate_trials
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.route import BrokerData, QueueData, TopicRouteData
from rmqlb.model.send_scenario import NEWEST, Failure, Latency, Moment, Reaction, SendScenario
from rmqlb.model.simulate_send import Attempt

if TYPE_CHECKING:
    from benchmarks.rocketmq import Selections

OFF, ON = "latency fault off", "latency fault on"
ISOLATED = f"{ON}, one broker isolated"
WINDOWS_OF_TIME, WINDOWS_OF_MESSAGES = "60 s", "a twentieth of all"

BROKERS = tuple(f"broker-{letter}" for letter in "abcd")
QUEUES_EACH = 8
FAILING = BROKERS[1]
REFUSED = Reaction("refused", "refused", cost_us=1000)
FOR_EVER = (Failure(FAILING, REFUSED),)

WARM_UP = 1.5
ONE_RUN = 0.1
CHECKED_PICKS = 1000
FAST = 10**5
SIZES = (10**4, 10**5, 10**6)
TRIAL_MESSAGES = 1000
COUNTED_TRIALS = 3
FEWEST_TRIALS = 1024
ROUNDS = 10**6


def made_route() -> TopicRouteData:
    """A topic of four brokers with eight queues each."""
    return TopicRouteData(
        "OrderEvents",
        tuple(QueueData(name, QUEUES_EACH, QUEUES_EACH, perm=6) for name in BROKERS),
        tuple(BrokerData("c", name, {0: f"{name}:10911"}) for name in BROKERS),
    )


# Picks


@dataclass(frozen=True)
class Pick:
    """A state of the fault strategy to pick in."""

    name: str
    latency_fault: bool
    isolated: str | None = None

    def scenario(self, messages: int) -> SendScenario:
        """The same state kept up by sends, all broker latencies being equal."""
        failures = FOR_EVER if self.isolated else ()
        return SendScenario(NEWEST, latency_fault=self.latency_fault, messages=messages, failures=failures)

    def state(self, queues: Sequence[MessageQueue]) -> tuple[FaultStrategy, TopicPublishInfo]:
        """The same state at time 0, the round robin at 0 too."""
        strategy = FaultStrategy(profile_of(NEWEST), enabled=self.latency_fault)
        if self.isolated:
            strategy.update(self.isolated, 20_000, 0, isolation=False, reachable=True)
        return strategy, TopicPublishInfo(queues, 0)


PICKS = (
    Pick(OFF, latency_fault=False),
    Pick(ON, latency_fault=True),
    Pick(ISOLATED, latency_fault=True, isolated=FAILING),
)


def checksum(picks: Sequence[MessageQueue]) -> int:
    """Over what was picked, as `Selections.java` computes it."""
    return zlib.crc32("".join(f"{queue.broker_name} {queue.queue_id}\n" for queue in picks).encode())


def picks_a_second(case: Pick, queues: Sequence[MessageQueue], run: float) -> float:
    """Ours, the mean over so many seconds."""
    strategy, info = case.state(queues)
    select = strategy.select
    worst = TopicPublishInfo(())
    picked, start = 0, perf_counter()
    while True:
        for _ in range(1000):
            select(info, worst, None, 0)
        picked += 1000
        elapsed = perf_counter() - start
        if elapsed >= run:
            return picked / elapsed


def picks(java: Selections | None, turns: int, run: float = ONE_RUN, messages: int = FAST) -> Section:
    """Picks a second of RocketMQ's classes and of ours, and messages a second where totals alone are asked for.

    Raises:
        RuntimeError: the two sides pick different queues.
    """
    route = made_route()
    queues = route.publish_queues()
    section = Section(
        (
            "first attempts",
            *("RocketMQ, picks/s", "rmqlb, picks/s", "rmqlb / RocketMQ"),
            *("totals, messages/s", "totals / RocketMQ"),
        )
    )
    if java is None:
        section.missing.append("RocketMQ's own picks")
        section.remark = "RocketMQ's own picks are missing."
    else:
        java.load(queues)
    for case in PICKS:
        theirs: list[float] = []
        ours: list[float] = []
        totals: list[float] = []
        if java is not None:
            _agree(java, case, queues)
        scenario = case.scenario(messages)
        for _ in range(turns):
            if java is not None:
                theirs.append(max(java.rate(run) for _ in range(RUNS)))
            ours.append(max(picks_a_second(case, queues, run) for _ in range(RUNS)))
            totals.append(messages / least(lambda: simulate_send(route, scenario, trace=False)))  # noqa: B023
        row: list[object] = [case.name, "–", _thousands(ours), "–", _thousands(totals), "–"]
        if theirs:
            section.ratios["picks", case.name] = row[3] = ratio(ours, theirs)
            section.ratios["totals beside picks", case.name] = row[5] = ratio(totals, theirs)
            row[1] = _thousands(theirs)
        section.rows.append(row)
    return section


def _agree(java: Selections, case: Pick, queues: Sequence[MessageQueue]) -> None:
    strategy, info = case.state(queues)
    ours = [strategy.select(info, TopicPublishInfo(()), None, 0) for _ in range(CHECKED_PICKS)]
    java.start(case.latency_fault, case.isolated)
    if java.checksum(CHECKED_PICKS) != checksum(ours):
        raise RuntimeError(f"{case.name}: the picks differ from RocketMQ's")
    java.rate(WARM_UP)


def _thousands(values: Sequence[float]) -> str:
    return f"{float(f'{Spread.of(values).median:.3g}'):,.0f}"


# Traces


def trace(attempts: int, latency_fault: bool) -> None:
    """So many attempts as JSON lines into nowhere; with latency fault one broker fails all the time.

    Raises:
        RuntimeError: there were fewer.
    """
    import msgspec

    encode = msgspec.json.Encoder().encode
    failures = FOR_EVER if latency_fault else ()
    scenario = SendScenario(NEWEST, latency_fault=latency_fault, messages=attempts, failures=failures)
    with open(os.devnull, "wb") as lines:
        write = lines.write

        def sink(attempt: Attempt) -> None:
            write(encode(attempt) + b"\n")

        traced = simulate_send(made_route(), scenario, sink=sink).totals.attempts
    if traced < attempts:
        raise RuntimeError(f"{traced} attempts, and {attempts} are asked for")


# Totals


def windows(kind: str, messages: int, *, latency_fault: bool) -> SendScenario:
    """Ten windows, one broker after another, that begin with the first message and after each tenth of all.

    In those of a minute a message takes 100 ms, so that even a tenth of 10^4 messages lasts longer.
    """
    latency_us = 100_000 if kind == WINDOWS_OF_TIME else 1000
    failures = []
    for i in range(10):
        start = messages * i // 10
        if kind == WINDOWS_OF_TIME:
            span = Moment(us=start * latency_us), Moment(us=start * latency_us + 60_000_000)
        else:
            span = Moment(message=start + 1), Moment(message=start + 1 + max(messages // 20, 1))
        failures.append(Failure(BROKERS[i % len(BROKERS)], REFUSED, *span))
    latency = Latency(f"{latency_us // 1000}ms", (latency_us,))
    return SendScenario(
        NEWEST, latency_fault=latency_fault, messages=messages, failures=tuple(failures), latency=latency
    )


def totals(turns: int, sizes: Sequence[int] = SIZES) -> Section:
    """Seconds by the number of messages, in units of the fewest.

    10^9 messages of 100 ms outlast the 366 days in which a window may begin.
    """
    section = Section(("ten failures, each for", "", "messages", "seconds", f"time / {_power(sizes[0])} messages"))
    for kind in (WINDOWS_OF_TIME, WINDOWS_OF_MESSAGES):
        for fault in (OFF, ON):
            taken: dict[int, list[float]] = {size: [] for size in sizes if kind == WINDOWS_OF_MESSAGES or size < 10**9}
            began = perf_counter()
            for _ in range(turns):
                for size, times in taken.items():
                    times.append(least(_sends(kind, size, latency_fault=fault == ON)))
                if perf_counter() - began > LONG:
                    break
            for size, times in taken.items():
                grows = ratio(times, taken[sizes[0]])
                section.rows.append((kind, fault, _power(size), f"{min(times):.2g}", grows))
                section.ratios["totals", kind, fault] = grows
    return section


def _sends(kind: str, size: int, *, latency_fault: bool) -> Callable[[], None]:
    route, scenario = made_route(), windows(kind, size, latency_fault=latency_fault)

    def call() -> None:
        report = simulate_send(route, scenario, trace=False)
        if report.totals.messages != size:
            raise RuntimeError(f"{report.totals.messages} messages, and {size} are asked for")

    return call


def _power(number: int) -> str:
    digits = len(str(number)) - 1
    return f"10^{digits}" if number == 10**digits else f"{number:,}"


# Trials


def trials(turns: int, messages: int = TRIAL_MESSAGES, at_least: float = 0.5, fewest: int = FEWEST_TRIALS) -> Section:
    """Attempts a second of many trials at once, on one core: `simulate_trials(route, scenario, trials)`.

    How many attempts a trial has is asked of `simulate_send`, which the trials repeat draw by draw.
    """
    section = Section(("", "latency", "threads", "attempts/s", "attempts / loop rounds"))
    route = made_route()
    latencies = Latency("1ms", (1000,)), lognormal(1000, 0.5, "lognormal, 1 ms, 0.5")
    spreads: list[Spread] = []
    with one_core():
        for fault in (OFF, ON):
            for latency in latencies:
                for threads in (1, 4):
                    scenario = trial_scenario(latency, messages, threads, latency_fault=fault == ON)
                    rates, spread = _trial_rates(route, scenario, turns, at_least, fewest)
                    spreads.append(spread)
                    section.rows.append((fault, latency.text, threads, _thousands(rates), spread))
    section.ratios["trials",] = min(spreads, key=lambda spread: spread.median)
    return section


def trial_scenario(latency: Latency, messages: int, threads: int, *, latency_fault: bool) -> SendScenario:
    """So many messages a thread; one broker fails from a fifth of the time to three fifths of it."""
    failure = Failure(FAILING, REFUSED, Moment(us=messages * 200), Moment(us=messages * 600))
    return SendScenario(
        NEWEST,
        latency_fault=latency_fault,
        threads=threads,
        messages=messages * threads,
        failures=(failure,),
        latency=latency,
    )


def _trial_rates(
    route: TopicRouteData,
    scenario: SendScenario,
    turns: int,
    at_least: float,
    fewest: int,
) -> tuple[list[float], Spread]:
    reports = [simulate_send(route, scenario, trace=False, trial=trial) for trial in range(COUNTED_TRIALS)]
    attempts = sum(report.totals.attempts for report in reports) / COUNTED_TRIALS

    def run(number: int) -> float:
        return least(lambda: simulate_trials(route, scenario, number))

    number = fewest
    simulate_trials(route, scenario, 2)
    while run(number) < at_least:
        number *= 2
    rates: list[float] = []
    bare: list[float] = []
    for _ in range(turns):
        rates.append(number * attempts / run(number))
        bare.append(ROUNDS / least(lambda: loop(ROUNDS)))
    return rates, ratio(rates, bare)


@contextmanager
def one_core() -> Iterator[None]:
    """This process and those that it starts stay on one core, where the system can do that."""
    if sys.platform != "linux":
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
