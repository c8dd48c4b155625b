"""ASYNC and ONEWAY sends: what is handed over, what is retried where, and what nobody notices."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from rmqlb import Failure, Reaction, SendReport, SendScenario, simulate_send
from tests.engine.send.scenarios import REFUSED, TIMEOUT
from tests.support.builders import route
from tests.support.mismatches import every_case

TOPIC = route(a=4, b=2, c=2)


def sent(reaction: Reaction, mode: str, **settings: Any) -> SendReport:
    """One message to queue 3 of a, which fails."""
    given = {"messages": 1, "start_at": 3, "rate": Fraction(1), "mode": mode, "failures": (Failure("a", reaction),)}
    return simulate_send(TOPIC, SendScenario(**given | settings))  # type: ignore[arg-type]


@every_case(("version", "isolated"), [("4.9.7", [1, 1, 1]), ("5.2.0", [1, 1, 1]), ("5.5.0", [1, 0, 0])])
def test_before_5_3_an_async_timeout_isolates_healthy_brokers(version: str, isolated: list[int]) -> None:
    """Retries without any time left fail before anything is sent, and count against the broker they chose."""
    seeds = [
        [
            min(b.isolations, 1)
            for b in sent(TIMEOUT, "async", client_version=version, latency_fault=True, seed=s).brokers
        ]
        for s in range(20)
    ]
    assert isolated in seeds
    if version == "5.5.0":
        assert seeds == [isolated] * 20
    else:  # the first retry goes to another broker, the second perhaps back
        assert all(seed[0] == 1 and sum(seed) >= 2 for seed in seeds)


def test_a_oneway_message_to_a_dead_broker_is_lost_unnoticed_since_5_3() -> None:
    new, old = sent(REFUSED, "oneway"), sent(REFUSED, "oneway", client_version="5.2.0")
    assert new.totals.lost_by == {"lost unnoticed": 1}
    assert old.totals.lost_by == {"RemotingConnectException": 1}
    assert [a.outcome for a in new.attempts or ()] == ["ONEWAY_LOST"]


@pytest.mark.parametrize(("took_ms", "outcome"), [(2000, "SEND_OK"), (2001, "RemotingTimeoutException")])
def test_an_async_answer_counts_until_the_table_is_scanned(took_ms: int, outcome: str) -> None:
    report = sent(Reaction("slow", "slow", 0, took_ms * 1000), "async", timeout_ms=300)
    assert [attempt.outcome for attempt in report.attempts or ()] == [outcome]
