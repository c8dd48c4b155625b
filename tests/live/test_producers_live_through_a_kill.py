"""Producers that send at a steady pace to three brokers, of which one is killed: every attempt, against the rules.

The rules here need no simulator: where the round robin stands is recorded, and the order of the queues is known.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

import pytest

from .broker_failures import BROKERS, EVERY, KILLED, WRITE_QUEUES, Kill, Recording
from .producers import RecordedAttempt

pytestmark = [pytest.mark.live, pytest.mark.slow]

ATTEMPTS = 3
FAILURES = {"RemotingConnectException", "RemotingSendRequestException"}
ISOLATED_MS = {"5.5.0": 10_000, "4.9.7": 600_000}

Recordings = Mapping[tuple[str, bool], Recording]


@pytest.fixture
def recordings(kill: Kill) -> Recordings:
    return kill.recordings


def index(attempt: RecordedAttempt) -> int:
    """The position in Java's round robin, which drops the sign of the counter."""
    assert attempt.index is not None
    return attempt.index & 0x7FFFFFFF


@pytest.fixture(params=EVERY, ids=lambda of: f"{of[0]}-{'latency-fault' if of[1] else 'plain'}")
def recording(recordings: Recordings, request: pytest.FixtureRequest) -> Recording:
    return recordings[request.param]


@pytest.fixture(params=list(ISOLATED_MS))
def plain(recordings: Recordings, request: pytest.FixtureRequest) -> Recording:
    return recordings[request.param, False]


@pytest.fixture(params=list(ISOLATED_MS))
def careful(recordings: Recordings, request: pytest.FixtureRequest) -> Recording:
    return recordings[request.param, True]


def test_the_publish_list_has_all_queues_of_a_broker_before_those_of_the_next(recording: Recording) -> None:
    assert recording.queues_before == tuple((name, i) for name in BROKERS for i in range(WRITE_QUEUES))
    assert recording.queues_after == tuple(queue for queue in recording.queues_before if queue[0] != KILLED)


def test_while_all_is_well_queues_follow_one_another_as_in_the_publish_list(recording: Recording) -> None:
    well = [message for message in recording.messages if message.ended_ms < recording.killed_ms[0]]
    attempts = [attempt for message in well for attempt in message.attempts]
    assert len(attempts) == len(well) > len(recording.queues_before)
    for attempt in attempts:
        assert attempt.queue == recording.queues_before[index(attempt) % len(recording.queues_before)]
    for before, after in pairwise(attempts):
        assert index(after) == (index(before) + 1) & 0x7FFFFFFF


def test_no_message_is_lost_and_each_refused_attempt_is_followed_by_one_at_another_broker(recording: Recording) -> None:
    for message in recording.spared:
        assert message.outcome == "SEND_OK"
        assert len(message.attempts) <= ATTEMPTS
        *refused, last = message.attempts
        assert last.outcome == "SEND_OK"
        assert {attempt.outcome for attempt in refused} <= FAILURES
        assert all(before.broker_name != after.broker_name for before, after in pairwise(message.attempts))
    assert {attempt.outcome for attempt in recording.to_the_dead[1:]} <= FAILURES


def test_a_producer_that_isolates_nobody_stumbles_in_every_round_until_its_route_changes(plain: Recording) -> None:
    """Only at the first queue of the dead broker: the retry moves the round robin past the others."""
    assert {attempt.queue for attempt in plain.to_the_dead[1:]} == {(KILLED, 0)}
    assert len(plain.to_the_dead) > 5
    for before, after in pairwise(plain.to_the_dead[1:]):
        assert index(after) - index(before) == len(plain.queues_before)
    assert plain.to_the_dead[-1].ended_ms <= plain.noticed_ms
    assert all(message.faults == () for message in plain.messages)


def test_a_new_route_starts_the_round_robin_anew_in_another_place(plain: Recording) -> None:
    breaks = [n for n, (one, next_) in enumerate(pairwise(plain.attempts), 1) if not is_near(one, next_)]
    assert len(breaks) == 1
    for attempts, queues in (
        (plain.attempts[: breaks[0]], plain.queues_before),
        (plain.attempts[breaks[0] :], plain.queues_after),
    ):
        assert [attempt.queue for attempt in attempts] == [queues[index(attempt) % len(queues)] for attempt in attempts]


def is_near(one: RecordedAttempt, next_: RecordedAttempt) -> bool:
    """Whether the second index follows on the first, at most a broker's queues further."""
    return 0 < (index(next_) - index(one)) & 0x7FFFFFFF <= WRITE_QUEUES


def test_the_first_refusal_isolates_the_broker_for_the_time_of_the_version(careful: Recording) -> None:
    first = careful.to_the_dead[0]
    message = careful.messages[first.message]
    assert message.isolated_ms(KILLED) == ISOLATED_MS[careful.version]
    assert [message.isolated_ms(name) for name in BROKERS if name != KILLED] == [0, 0]
    fault = message.fault(KILLED)
    assert fault is not None
    assert fault.reachable is {"5.5.0": True, "4.9.7": None}[careful.version]


def test_an_isolated_broker_is_avoided_until_its_time_is_over_and_then_isolated_again(careful: Recording) -> None:
    isolated_ms = ISOLATED_MS[careful.version]
    for one, next_ in pairwise(careful.to_the_dead):
        assert next_.began_ms - one.ended_ms >= isolated_ms
    tried = {"5.5.0": 2, "4.9.7": 1}[careful.version]
    assert len(careful.to_the_dead) == tried
    assert careful.messages[careful.to_the_dead[-1].message].isolated_ms(KILLED) == isolated_ms


def test_version_4_moves_its_counter_once_an_attempt_however_many_queues_it_skips(recordings: Recordings) -> None:
    careful = recordings["4.9.7", True]
    seen_new_route = [n for n, (one, next_) in enumerate(pairwise(careful.attempts), 1) if not is_near(one, next_)]
    assert len(seen_new_route) == 1
    for part in (careful.attempts[: seen_new_route[0]], careful.attempts[seen_new_route[0] :]):
        assert [index(next_) - index(one) for one, next_ in pairwise(part)] == [1] * (len(part) - 1)


def test_version_5_picks_a_retry_anywhere_when_latency_fault_tolerance_is_on(recordings: Recordings) -> None:
    careful = recordings["5.5.0", True]
    for refused in careful.to_the_dead:
        message = careful.messages[refused.message]
        retry = message.attempts[refused.number]
        assert not is_near(refused, retry)
        assert retry.queue == careful.queues_before[index(retry) % len(careful.queues_before)]
