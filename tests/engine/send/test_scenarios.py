"""How long sends are simulated when no length is given, and producers while a group's events happen."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from rmqlb.engine.send.scenarios import failures_of, long_enough, producers_of
from rmqlb.engine.send.simulate import simulate_send
from rmqlb.model.group_scenario import Event, EventKind
from rmqlb.model.send_scenario import HOST_LOSS_US, Failure, Moment, Reaction, SendScenario
from rmqlb.model.simulate_send import SendReport
from tests.support.builders import route
from tests.support.mismatches import every_case

S = 1_000_000
REFUSED, TIMEOUT = Reaction("refused", "refused", 0, 1000), Reaction("timeout", "timeout")
SLOW, READ_ONLY = Reaction("slow", "slow", 0, 800_000), Reaction("read-only", "read-only")


def failing(reaction: Reaction, start: float, end: float | None = None, notices: float | None = None) -> Failure:
    notices_us = None if notices is None else int(notices * S)
    return Failure("b", reaction, Moment(int(start * S)), None if end is None else Moment(int(end * S)), notices_us)


def lasts(failure: Failure, **changes: Any) -> float:
    scenario = SendScenario(rate=Fraction(10), failures=(failure,), **changes)
    return (long_enough(scenario).duration_us or 0) / S


@every_case(
    ("failure", "seconds"),
    [
        (failing(REFUSED, 0, notices=0), 30 + 30),  # the poll at 30 s, and another one
        (failing(REFUSED, 45, notices=0), 60 + 30),
        (failing(REFUSED, 30, 90, notices=0), 120 + 30),  # a poll at the very moment comes too early
        (failing(REFUSED, 29, 31, notices=0), 60 + 30),
        (failing(TIMEOUT, 0, notices=120), 150 + 30),
        (failing(TIMEOUT, 0, 100, notices=120), 100 + 30),  # back before the NameServer noticed
        (failing(REFUSED, 10), 10 + 30),  # which it never does
        (failing(SLOW, 10), 10 + 30),
        (failing(SLOW, 10, 50), 50 + 30),
        (failing(READ_ONLY, 10), 30 + 30),
        (Failure("b", REFUSED, Moment(message=301), None, 0), 60 + 30),  # that starts at 30 s
        (Failure("b", REFUSED, Moment(message=300), None, 0), 30 + 30),  # that starts 0.1 s before it
        (Failure("b", SLOW, Moment(message=1), Moment(message=51), None), 5 + 30),
    ],
)
def test_it_lasts_until_the_producer_knows_and_a_poll_more(failure: Failure, seconds: float) -> None:
    assert lasts(failure) == seconds


def test_an_isolation_is_waited_for() -> None:
    slow = failing(SLOW, 10, 50)
    assert lasts(slow, latency_fault=True) == 50 + 10 + 30  # 5.3.3 isolates a failed broker for 10 s
    assert lasts(slow, latency_fault=True, client_version="4.9.7") == 50 + 600 + 30


def test_more_than_a_million_messages_are_for_those_who_ask() -> None:
    scenario = SendScenario(rate=Fraction(100_000), failures=(failing(REFUSED, 0, notices=0),))
    assert (long_enough(scenario).messages, long_enough(scenario).duration_us) == (1_000_000, 60 * S)
    assert long_enough(replace(scenario, rate=None)).messages == 600


@given(
    start=st.integers(0, 100),
    length=st.none() | st.integers(1, 100),
    poll=st.sampled_from([5, 30, 60]),
    fault=st.booleans(),
    reaction=st.sampled_from([REFUSED, READ_ONLY]),
)
def test_the_producer_knows_by_then(start: int, length: int | None, poll: int, fault: bool, reaction: Reaction) -> None:
    """Longer simulations end with the same retries, and the list of queues that the producer then has is the last."""
    failure = failing(reaction, start, None if length is None else start + length, 0)
    fields: dict[str, Any] = {"first_poll_us": poll * S, "poll_us": poll * S, "latency_fault": fault}
    scenario = SendScenario(messages=None, rate=Fraction(10), failures=(failure,), **fields)
    lasting_us = long_enough(scenario).duration_us or 0
    short, longer = (
        simulate_send(route(a=2, b=2), replace(scenario, duration_us=us), trace=False)
        for us in (lasting_us, lasting_us + 300 * S)
    )
    (of_short,), (of_longer,) = short.failures, longer.failures
    assert of_short == of_longer
    assert short.totals.failed_attempts == longer.totals.failed_attempts


S = 1_000_000
ORDERS, BILLS = route("Orders", a=2, b=2), route("Bills", b=2)


def at(kind: EventKind, broker: str, second: int) -> Event:
    return Event(kind, second * S, broker)


def windows(*events: Event) -> list[tuple[str, str, int, int | None]]:
    return [
        (
            each.broker_name,
            each.reaction.kind,
            (each.start.us or 0) // S,
            None if each.end is None else (each.end.us or 0) // S,
        )
        for each in failures_of(events)
    ]


def test_a_broker_fails_from_down_to_up() -> None:
    down, up = at("broker-down", "b", 30), at("broker-up", "b", 90)
    assert windows(up, at("leave", "c", 5), down) == [("b", "refused", 30, 90)]
    assert windows(down) == [("b", "refused", 30, None)]
    assert windows(down, up, at("broker-loss", "b", 200)) == [("b", "refused", 30, 90), ("b", "timeout", 200, None)]
    assert windows(at("broker-up", "new", 5)) == []


def test_a_process_that_ends_is_dropped_at_once_and_a_silent_machine_is_not() -> None:
    process, machine = failures_of([at("broker-down", "a", 1), at("broker-loss", "b", 2)])
    assert (process.notices_us, machine.notices_us) == (0, HOST_LOSS_US)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["broker-down", "broker-loss", "broker-up"]), st.sampled_from("ab"), st.integers(0, 9)
        )
    )
)
def test_failures_of_a_broker_never_overlap(drawn: list[tuple[EventKind, str, int]]) -> None:
    found = failures_of([at(*each) for each in drawn])
    for name in "ab":
        own = sorted(((each.start.us or 0, each.end) for each in found if each.broker_name == name), key=lambda e: e[0])
        ends = [end.us if end is not None else None for _, end in own]
        assert None not in ends[:-1]
        assert all((end or 0) <= start for end, (start, _) in zip(ends, own[1:], strict=False))


def told(*routes: object, **rates: float) -> tuple[SendReport, ...]:
    failures = failures_of([at("broker-down", "b", 30), at("broker-up", "b", 90)])
    found = producers_of(routes, failures, SendScenario(), rates)  # type: ignore[arg-type]
    assert not found.findings
    return found.reports


def test_only_topics_on_the_broker_have_producers() -> None:
    elsewhere = route("Elsewhere", a=2)
    assert [report.topic for report in told(ORDERS, elsewhere, BILLS)] == ["Orders", "Bills"]


def test_rates_are_of_topics_and_otherwise_assumed() -> None:
    orders, bills = told(ORDERS, BILLS, Orders=2.5)
    assert (orders.scenario.rate, bills.scenario.rate) == (Fraction(5, 2), 10)
    assert orders.totals.messages == 150 * 2.5


def test_a_topic_of_one_broker_loses_what_is_sent_meanwhile() -> None:
    """A client keeps the last route that it had, and finds no broker there until the broker is back."""
    (bills,) = told(BILLS)
    assert bills.totals.lost == pytest.approx(600, abs=1)
    (orders,) = told(ORDERS)
    assert orders.totals.lost == 0


def test_what_cannot_be_simulated_is_said() -> None:
    failures = failures_of([at("broker-down", "b", 30)])
    found = producers_of([ORDERS], failures, SendScenario(client_version="1.0.0"), {})
    assert found.reports == ()
    assert [(each.code, "topic Orders" in each.message) for each in found.findings] == [("producers-left-out", True)]
