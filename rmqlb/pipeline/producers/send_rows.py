"""What the producers of a topic are put through, and what comes of it: the part of the producers stage without Spark.

A topic is known by its shape alone: its producer's queues by broker, and what else of its route a failure can change.
Topics of one shape share one simulation (`simulate_trials`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from fractions import Fraction
from math import fsum
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from rmqlb.decoding import decode
from rmqlb.engine.send.simulate import check, rules
from rmqlb.engine.send.trials import simulate_trials
from rmqlb.errors import UsageError
from rmqlb.model.java import sort_key
from rmqlb.model.route import PERM_READ, PERM_WRITE, BrokerData, QueueData, TopicRouteData
from rmqlb.model.send_scenario import Failure, Moment, Reaction, SendScenario
from rmqlb.model.simulate_send import TrialsReport

_S = 1_000_000
LOAD = SendScenario(messages=None, rate=Fraction(10), duration_us=120 * _S)
"""Ten messages a second for two minutes, by a client with its own defaults."""
DIES = Failure("*", Reaction("refused", "refused", cost_us=1000), Moment(us=30 * _S), None, 0)
"""A broker's process dies after 30 s, just after the producer asked for the route: it hears of it 30 s later."""


class SendSchedule(Struct, frozen=True):
    """What the producers of every topic are put through; by default each of its brokers dies, one at a time.

    Attributes:
        scenario: load and client; SYNC. It has no failures of its own; its `latencies` go by broker name or pattern.
        failures: what fails; a broker name may be a pattern (`broker-*`), and a topic need not have such a broker.
        in_turn: the brokers fail one at a time, each in a scenario of its own; otherwise all failures are one, of this
            `name`.
    """

    scenario: SendScenario = LOAD
    failures: tuple[Failure, ...] = (DIES,)
    in_turn: bool = True
    name: str = "schedule"
    trials: int = 200


class QueueRun(Struct, frozen=True, rename="camel"):
    """Queues 0, 1, … of one broker that follow one another in the producer's list."""

    broker_name: str
    queues: int


class SendShape(Struct, frozen=True, rename="camel"):
    """All of a topic that decides what becomes of its messages.

    Attributes:
        publish: the producer's queues, in its order; empty when it has none, or cannot make them of the route.
        others: brokers of the route without a queue for producers. While one of them is left, the route of a topic
            that lost all others is empty; with none of them left, there is no route, and clients keep the old one.
        fixed: the list stays as it is whatever fails: order topics and static ones.
        is_static: the list has logical brokers; which real ones bear them is not known.
    """

    publish: tuple[QueueRun, ...] = ()
    others: tuple[str, ...] = ()
    fixed: bool = False
    is_static: bool = False


def check_schedule(schedule: SendSchedule) -> None:
    """Refuse what cannot be simulated for all topics.

    Raises:
        UsageError: the scenario contradicts itself or is about one topic only, or there are fewer than 2 trials.
    """
    scenario = schedule.scenario
    check(scenario)
    rules(scenario)
    if schedule.trials < 2:
        raise UsageError(f"{schedule.trials} trials: at least 2 are needed to tell how much they vary")
    if scenario.mode != "sync":
        raise UsageError(f"the pipeline simulates SYNC sends, not {scenario.mode.upper()}")
    if scenario.chosen_by is not None and scenario.chosen_by.queue is not None:
        raise UsageError("a selector of one queue is about one topic", hint="simulate that topic with simulate-send")
    if scenario.failures:
        raise UsageError("failures belong to the schedule, not to its scenario")


def shape_of(text: str) -> SendShape:
    """The shape that is written down in `producers.JOBS`, as JSON."""
    return decode(text, SendShape)


def scenarios_of(shape: SendShape, schedule: SendSchedule) -> tuple[str | None, ...]:
    """The names of the scenarios that topics of this shape go through: never none.

    In turn, that of the broker that fails; None when none of the topic's brokers is known to fail.
    """
    if not schedule.in_turn:
        return (schedule.name,)
    names = [name for name in _brokers(shape) if any(_fits(failure.broker_name, name) for failure in schedule.failures)]
    return tuple(names) or (None,)


def scenario_of(shape: SendShape, schedule: SendSchedule, name: str | None) -> SendScenario | None:
    """What is simulated under that name; None without a queue to send to, and of a static topic that may fail."""
    exclude = schedule.scenario.exclude
    if not any(run.queues > 0 and run.broker_name not in exclude for run in shape.publish):
        return None
    if shape.is_static and schedule.failures:
        return None
    names = (*_brokers(shape), *shape.others)
    failing = [broker for broker in names if broker == name] if schedule.in_turn else names
    return replace(
        schedule.scenario,
        failures=tuple(
            replace(failure, broker_name=broker)
            for failure in schedule.failures
            for broker in failing
            if _fits(failure.broker_name, broker)
        ),
        latencies={
            broker: latency
            for pattern, latency in schedule.scenario.latencies.items()
            for broker in names
            if _fits(pattern, broker)
        },
        exclude=exclude.intersection(names),
    )


def route_of(shape: SendShape, topic: str = "T") -> TopicRouteData:
    """A route with which a producer does what it does with the topic's own.

    Its brokers have as many write queues as the producer's list has of each run; only clients before 5.1.4 with latency
    fault on, and there only order topics whose config contradicts the brokers, could tell the difference.
    """
    writable = tuple(
        QueueData(run.broker_name, run.queues, run.queues, PERM_READ | PERM_WRITE) for run in shape.publish
    )
    others = tuple(QueueData(name, 1, 0, PERM_READ) for name in shape.others)
    return TopicRouteData(
        topic,
        (*writable, *others),
        tuple(BrokerData("", name, {0: name}) for name in (*_brokers(shape), *shape.others)),
        ";".join(f"{run.broker_name}:{run.queues}" for run in shape.publish) if shape.fixed else None,
    )


def jobs_of(text: str, schedule: SendSchedule) -> Iterator[dict[str, Any]]:
    """Rows of `producers.JOBS` for a shape in JSON."""
    for name in scenarios_of(shape_of(text), schedule):
        yield {"shape": text, "scenario": name}


def outcome_of(text: str, name: str | None, schedule: SendSchedule) -> dict[str, Any]:
    """A row of OUTCOMES: the trials of one scenario for one shape in JSON."""
    shape = shape_of(text)
    scenario = scenario_of(shape, schedule, name)
    row = {"shape": text, "scenario": name, "latencyFault": schedule.scenario.latency_fault, "trials": 0}
    if scenario is None:
        return row
    return {**row, **send_columns(simulate_trials(route_of(shape), scenario, schedule.trials))}


def send_columns(report: TrialsReport) -> Mapping[str, Any]:
    """What the tables SENDS and SEND_SHARES say of a report, by their columns' names; `shares` has a row a broker."""
    return {
        "trials": report.trials,
        "messages": report.messages.mean,
        "attempts": fsum(each.mean for each in report.attempts_at.values()),
        "attemptsPerMessage": report.attempts.mean,
        "retries": report.retries.mean,
        "lost": report.lost_messages.mean,
        "lostLow": report.lost_messages.low,
        "lostHigh": report.lost_messages.high,
        "lostShare": report.lost_share.mean,
        "losingTrials": report.losing_trials.mean,
        "longestSendMs": None if report.longest_send_ms is None else report.longest_send_ms.mean,
        "shares": [
            {
                "brokerName": name,
                "attempts": report.attempts_at[name].mean,
                "failures": report.failed_at[name].mean,
                "share": report.shares[name].mean if name in report.shares else None,
            }
            for name in sorted(report.isolations, key=sort_key)
        ],
    }


def _brokers(shape: SendShape) -> tuple[str, ...]:
    """The brokers that the producer sends to, in its order; of a static topic nobody knows them."""
    return () if shape.is_static else tuple(dict.fromkeys(run.broker_name for run in shape.publish))


def _fits(pattern: str, broker_name: str) -> bool:
    return broker_name == pattern or fnmatchcase(broker_name, pattern)
