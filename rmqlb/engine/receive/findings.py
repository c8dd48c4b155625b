"""What is odd about a scenario of receives: settings that are not taken as they are given, and bounds that are long."""

from __future__ import annotations

from collections.abc import Iterator

from rmqlb.engine.receive.rules import RANDOM_QUEUES, RENEWED_US, awaited_us, broker_rules, invisible_us
from rmqlb.engine.receive.simulation import MOST_FURTHER
from rmqlb.model.finding import INFO, Finding
from rmqlb.model.receive_report import ReceiveReport
from rmqlb.model.receive_scenario import ReceiveScenario
from rmqlb.model.words import counted


def receive_findings(scenario: ReceiveScenario, read_queues: list[int]) -> Iterator[Finding]:
    """The findings on a scenario; `read_queues` has the readable queues of each broker."""
    taken_us = awaited_us(scenario)
    if scenario.client == "simple" and taken_us != scenario.await_us:
        limit = "the least" if taken_us > scenario.await_us else "the most"
        text = f"the Proxy lets a receive wait {taken_us // 1_000_000} s, {limit} that its settings allow"
        yield Finding("await-limited", f"await duration of {scenario.await_us / 1_000_000:g} s: {text}")
    if scenario.client == "pop" and invisible_us(scenario) != scenario.invisible_us:
        text = f"POP clients take {RENEWED_US // 1_000_000} s for what is not between 5 s and 5 minutes"
        yield Finding("invisible-limited", f"popInvisibleTime of {scenario.invisible_us / 1_000_000:g} s: {text}")
    lasting_us = scenario.batch * scenario.consume_us
    if scenario.client == "simple" and lasting_us > scenario.invisible_us:
        batch, each = counted(scenario.batch, "message"), f"{scenario.consume_us / 1_000_000:g} s each"
        text = f"a full receive of {batch} at {each} takes longer than the invisible duration"
        yield Finding("longer-than-invisible", f"{text}: messages are redelivered while they are consumed")
    most = max(read_queues)
    if most > RANDOM_QUEUES:
        begin = f"one of queues 0 to {RANDOM_QUEUES - 1} and go up"
        if broker_rules(scenario.broker_version).counts_down:
            begin = f"queue {most - 1} or one of queues 0 to {RANDOM_QUEUES - 2} and go down"
        text = f"a broker has {most} readable queues: receives begin at {begin}"
        yield Finding("queues-beyond-100", text, severity=INFO)


def ended_findings(report: ReceiveReport) -> Iterator[Finding]:
    """The findings on how a simulation ended."""
    if report.totals.further >= MOST_FURTHER:
        text = f"arrivals end {MOST_FURTHER:,} messages after the measured ones, before all of these are received"
        yield Finding("arrivals-ended", f"{text}: the last of them wait as in an idle system")
