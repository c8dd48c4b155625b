"""The lines above and below the tables of simulated sends."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from msgspec.structs import replace

from rmqlb.engine.send.simulate import simulate_send
from rmqlb.engine.send.trials import simulate_trials
from rmqlb.model.send_scenario import Failure, Moment, Reaction, Selector, SendScenario
from rmqlb.model.simulate_send import SendReport
from rmqlb.views.simulate_send import last_failed_ms, send_facts, send_gravity, send_settings
from tests.support.builders import route
from tests.support.mismatches import every_case

S = 1_000_000
REFUSED, TIMEOUT = Reaction("refused", "refused", 0, 1000), Reaction("timeout", "timeout")
SLOW, READ_ONLY = Reaction("slow", "slow", 0, 800_000), Reaction("read-only", "read-only")
BUSY, NOT_FLUSHED = Reaction("code", "SYSTEM_BUSY", 2), Reaction("status", "FLUSH_DISK_TIMEOUT", 10)
TWO, ONE = route(a=1, b=1), route(b=1)


def fails(reaction: Reaction, start: int = 0, end: int | None = None, notices: int | None = None) -> Failure:
    ends = None if end is None else Moment(end * S)
    return Failure("b", reaction, Moment(start * S), ends, None if notices is None else notices * S)


def sent(*failures: Failure, topic: Any = TWO, **changes: Any) -> SendReport:
    """A message per second, the first of them to a; what b fails of is retried at a, so that b is next again."""
    fields: dict[str, Any] = {"messages": 4, "rate": Fraction(1), "start_at": 0, **changes}
    return simulate_send(topic, SendScenario(failures=failures, **fields))


def first(*failures: Failure, **changes: Any) -> str:
    return send_facts(sent(*failures, **changes))[0]


@every_case(
    ("line", "grave", "failures", "changes"),
    [
        ("T, no broker fails: no message of 4 lost; longest send 1 ms", "inOrder", (), {}),
        ("T, b is excluded: no message of 4 lost; longest send 1 ms", "inOrder", (), {"exclude": frozenset("b")}),
        (
            "T, b refused from 0s on: no message of 4 lost; 3 retried (75.0%), the last at 3.0 s; longest send 2 ms",
            "warning",
            (fails(REFUSED),),
            {},
        ),
        (
            (
                "T, b refused from 0s on: 2 of 4 messages lost (50.0%); 2 of 4 attempts fail, the last at 3.0 s; longest "
                "send 1 ms"
            ),
            "error",
            (fails(REFUSED),),
            {"retries": 0},
        ),
        (
            "T, b refused from 0s on: all 2 messages lost; 2 of 2 attempts fail, the last at 1.0 s; longest send 1 ms",
            "error",
            (fails(REFUSED),),
            {"topic": ONE, "retries": 0, "messages": 2},
        ),
        (
            "T, b refused from 0s on: the message is lost; 1 of 1 attempts fail, the last at 0 ms; longest send 1 ms",
            "error",
            (fails(REFUSED),),
            {"topic": ONE, "retries": 0, "messages": 1},
        ),
        (
            "T, b slow (800ms) from 0s on: no message of 4 lost; no attempt fails; longest send 800 ms",
            "inOrder",
            (fails(SLOW),),
            {},
        ),
        (
            (
                "T, b FLUSH_DISK_TIMEOUT from 0s on: no message of 4 lost; 2 stored, not SEND_OK; no attempt fails; longest "
                "send 1 ms"
            ),
            "warning",
            (fails(NOT_FLUSHED),),
            {},
        ),
        (
            (
                "T, b FLUSH_DISK_TIMEOUT from 0s on: no message of 4 lost; 3 stored more than once; 3 retried (75.0%); "
                "longest send 2 ms"
            ),
            "warning",
            (fails(NOT_FLUSHED),),
            {"retry_not_store_ok": True},
        ),
    ],
)
def test_the_first_line_says_what_is_lost_and_retried_and_how_long_it_takes(
    line: str, grave: str, failures: tuple[Failure, ...], changes: dict[str, Any]
) -> None:
    report = sent(*failures, **changes)
    assert send_facts(report)[0] == line
    assert send_gravity(report.totals) == grave


@every_case(
    ("line", "failure", "changes"),
    [
        ("b: 29 attempts failed; not in the producer's list from 30.0 s on (route poll)", (REFUSED, 0, None, 0), {}),
        ("b: 3 attempts failed; it stays in the producer's list", (REFUSED, 0, None, None), {"messages": 4}),
        ("b: 0 attempts failed", (SLOW, 0, None, None), {}),
        ("b: 1 attempt failed; isolated from 1.0 s on (latency fault)", (REFUSED, 0, None, None), {"messages": 4, "latency_fault": True}),
        ("b: 1 attempt failed; it stays in the producer's list; used again 0 ms after it is back", (REFUSED, 0, 2, None), {"messages": 6}),
        ("b: 1 attempt failed; isolated from 1.0 s on (latency fault); not used again by the end", (REFUSED, 0, 2, None), {"messages": 5, "latency_fault": True}),
        ("b: the simulation ends before it fails", (REFUSED, 50, None, None), {"messages": 4}),
    ],
)  # fmt: skip
def test_each_failure_has_a_line_on_how_it_was_taken(
    line: str, failure: tuple[Any, ...], changes: dict[str, Any]
) -> None:
    report = sent(fails(*failure), **{"messages": 40, **changes})
    assert send_facts(report)[1:] == (f"  {line}",)


def test_trials_have_a_line_of_their_own() -> None:
    scenario = SendScenario(messages=4, rate=Fraction(1), failures=(fails(REFUSED),), retries=0)
    trials = simulate_trials(TWO, scenario, 8)
    lines = send_facts(replace(simulate_send(TWO, scenario), trials=trials))
    assert lines[1].startswith("  over 8 trials: 50.0% of messages lost (")
    assert lines[1].endswith("; longest send p95 1 ms, max 1 ms; this is the first of them")


def test_the_last_failure_of_any_broker_counts() -> None:
    assert last_failed_ms(sent()) is None
    early = Failure("a", REFUSED, Moment(0), Moment(1), None)
    assert last_failed_ms(sent(fails(REFUSED), early)) == 3000


def settings(*failures: Failure, **changes: Any) -> tuple[str, ...]:
    return send_settings(sent(*failures, **changes))


def test_how_the_producer_is_configured_stands_last() -> None:
    assert settings() == (
        (
            "2 queues on 2 brokers; SYNC, 1 thread, 1 messages per second; up to 3 attempts within 3000ms; "
            "route polls every 30s from 30s on; seed 1"
        ),
        (
            "client 5.5.0 (rules of 5.3.3 and newer); latency fault off, its table: 550ms→2s 1800ms→5s 3000ms→6s "
            "5000ms→10s 15000ms→30s, a failure→10s"
        ),
    )
    assert "; latency fault on, its table: " in settings(latency_fault=True)[1]
    own = settings(latency_max=(50, 100), not_available_duration=(0, 7000))[1]
    assert own.endswith("its table (thresholds given): 100ms→7s, a failure→7s")
    assert ", 2 threads, back to back; one attempt within " in settings(threads=2, rate=None, retries=0)[0]
    assert "; ONEWAY, 1 thread, 1 messages per second; one attempt " in settings(mode="oneway")[0]
    by_hand = settings(selector=Selector("hash", key_hashes=(1,)))
    assert "; selector hash, 1 thread, " in by_hand[0]
    assert "; one attempt within " in by_hand[0]
    assert by_hand[1].endswith("; selectors know no latency fault")
