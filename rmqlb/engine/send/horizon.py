"""How long sends must be simulated to show what failures do to them."""

from __future__ import annotations

from fractions import Fraction
from math import ceil

from msgspec.structs import replace

from rmqlb.engine.send.profile import ClientProfile
from rmqlb.engine.send.simulate import rules
from rmqlb.model.limits import LONGEST_US
from rmqlb.model.send_scenario import Failure, Moment, SendScenario

ASSUMED_RATE = Fraction(10)
"""Messages per second while something fails, when nothing is said: each queue is tried more than once before a poll."""


_MOST_MESSAGES = 1_000_000
"""More are for those who ask for them."""


def long_enough(scenario: SendScenario) -> SendScenario:
    """The scenario, which has failures, for as long as they are news; at an assumed rate if it has none.

    So it is up to a million messages: a finding says when that ends before a route poll.

    Raises:
        UsageError: the client version is unknown, or its thresholds contradict each other.
    """
    scenario = replace(scenario, rate=scenario.rate or ASSUMED_RATE)
    duration_us = long_enough_us(scenario, rules(scenario))
    messages = min(ceil(Fraction(duration_us, 1_000_000) * (scenario.rate or 1)), _MOST_MESSAGES)
    return replace(scenario, duration_us=duration_us, messages=messages)


def long_enough_us(scenario: SendScenario, profile: ClientProfile) -> int:
    """Until the producer has heard of each failure and of its end, and then as long as a route poll takes to come.

    Args:
        scenario: with at least one failure, and with a rate if a failure counts by messages.
        profile: the rules of its client version, with its own thresholds.
    """
    known_us = max(_known_us(failure, scenario, profile) for failure in scenario.failures)
    return min(known_us + scenario.poll_us, LONGEST_US)


def _known_us(failure: Failure, scenario: SendScenario, profile: ClientProfile) -> int:
    """When nothing of a failure is news to the producer any more."""
    start = _us(failure.start, scenario)
    end = None if failure.end is None else _us(failure.end, scenario)
    dropped = start if failure.reaction.kind == "read-only" else None
    if failure.notices_us is not None:
        dropped = start + failure.notices_us
    times = [start]
    if dropped is not None and (end is None or dropped < end):
        times += [_poll_after(each, scenario) for each in (dropped, end) if each is not None]
    if end is not None:
        isolated_us = 1000 * profile.duration(0, isolation=True) if scenario.latency_fault else 0
        times.append(end + isolated_us)
    return max(times)


def _us(moment: Moment, scenario: SendScenario) -> int:
    """When a moment comes, at the earliest."""
    if moment.us is not None or scenario.rate is None:
        return moment.us or 0
    return int(((moment.message or 1) - 1) * 1_000_000 / scenario.rate)


def _poll_after(at_us: int, scenario: SendScenario) -> int:
    """The first route poll after a time, or at the latest where it is at random."""
    first = scenario.first_poll_us
    if first is None:
        return at_us + scenario.poll_us
    return first + max(-(-(at_us + 1 - first) // scenario.poll_us), 0) * scenario.poll_us
