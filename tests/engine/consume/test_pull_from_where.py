"""Every case of `RebalancePushImpl.computePullFromWhereWithException`, as a table."""

from __future__ import annotations

import pytest

from rmqlb.engine.consume.pull_from_where import pull_from_where, start_of
from rmqlb.model.group import QueueState

LAST = ("CONSUME_FROM_LAST_OFFSET", "CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST", "CONSUME_FROM_MIN_OFFSET")
FIRST, TIMESTAMP = "CONSUME_FROM_FIRST_OFFSET", "CONSUME_FROM_TIMESTAMP"
NORMAL, RETRY = "OrderEvents", "%RETRY%order-svc"


@pytest.mark.parametrize("where", [*LAST, "CONSUME_FROM_MAX_OFFSET", FIRST, TIMESTAMP])
@pytest.mark.parametrize("topic", [NORMAL, RETRY])
def test_a_stored_offset_is_where_it_starts(where: str, topic: str) -> None:
    for stored in (0, 1, 10**12):
        start = pull_from_where(where, stored, topic=topic, end=5)
        assert (start.rule, start.offset) == ("stored", stored)


@pytest.mark.parametrize(
    ("where", "topic", "rule", "offset"),
    [
        *((where, NORMAL, "end", 70) for where in LAST),
        *((where, RETRY, "beginning", 0) for where in LAST),
        (FIRST, NORMAL, "beginning", 0),
        (FIRST, RETRY, "beginning", 0),
        (TIMESTAMP, NORMAL, "timestamp", None),
        (TIMESTAMP, RETRY, "end", 70),
    ],
)
def test_without_a_stored_offset_consume_from_where_decides(
    where: str, topic: str, rule: str, offset: int | None
) -> None:
    start = pull_from_where(where, -1, topic=topic, end=70)
    assert (start.rule, start.offset) == (rule, offset)


@pytest.mark.parametrize("stored", [-2, -3])
def test_an_error_of_the_broker_takes_nothing(stored: int) -> None:
    assert pull_from_where(FIRST, stored, topic=NORMAL).rule == "refused"


def test_what_was_not_observed_is_unknown() -> None:
    assert start_of(None, FIRST, topic=NORMAL).rule == "unknown"
    assert start_of(QueueState(), FIRST, topic=NORMAL).rule == "unknown"
    assert pull_from_where(LAST[0], -1, topic=NORMAL).offset is None


def test_a_reported_zero_may_mean_that_nothing_is_stored() -> None:
    """`AdminBrokerProcessor.getConsumeStats` reports 0 where the group has no offset."""
    assert start_of(QueueState(broker_offset=9, consumer_offset=0), FIRST, topic=NORMAL).rule == "unknown"
    empty = start_of(QueueState(broker_offset=0, consumer_offset=0), FIRST, topic=NORMAL)
    assert (empty.rule, empty.offset) == ("stored", 0)
