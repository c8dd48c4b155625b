"""How long sends are simulated when no length is given: until the producer knows of everything that failed."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from rmqlb.engine.send.scenarios import long_enough
from rmqlb.engine.send.simulate import simulate_send
from rmqlb.model.send_scenario import Failure, Moment, Reaction, SendScenario
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
