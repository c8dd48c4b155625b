"""Producers while brokers fail as a group's events say."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmqlb.engine.send.scenarios import failures_of, producers_of
from rmqlb.model.group_scenario import Event, EventKind
from rmqlb.model.send_scenario import HOST_LOSS_US, SendScenario
from rmqlb.model.simulate_send import SendReport
from tests.support.builders import route

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
