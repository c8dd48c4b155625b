"""Every case of `RebalancePushImpl.computePullFromWhereWithException`, as a table."""

from __future__ import annotations

from rmqlb.engine.rebalance.start_offsets import pull_from_where, start_of
from rmqlb.model.group import QueueState
from tests.support.mismatches import every_case

LAST = ("CONSUME_FROM_LAST_OFFSET", "CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST", "CONSUME_FROM_MIN_OFFSET")
FIRST, TIMESTAMP = "CONSUME_FROM_FIRST_OFFSET", "CONSUME_FROM_TIMESTAMP"
NORMAL, RETRY = "OrderEvents", "%RETRY%order-svc"


@every_case("where", [*LAST, "CONSUME_FROM_MAX_OFFSET", FIRST, TIMESTAMP])
@every_case("topic", [NORMAL, RETRY])
def test_a_stored_offset_is_where_it_starts(where: str, topic: str) -> None:
    for stored in (0, 1, 10**12):
        start = pull_from_where(where, stored, topic=topic, end=5)
        assert (start.rule, start.offset) == ("stored", stored)


@every_case(
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


def test_a_reported_zero_may_mean_that_nothing_is_stored() -> None:
    """`AdminBrokerProcessor.getConsumeStats` reports 0 where the group has no offset."""
    assert start_of(QueueState(broker_offset=9, consumer_offset=0), FIRST, topic=NORMAL).rule == "unknown"
    empty = start_of(QueueState(broker_offset=0, consumer_offset=0), FIRST, topic=NORMAL)
    assert (empty.rule, empty.offset) == ("stored", 0)


@every_case("stored", [-1, -2, -(2**63)])
def test_an_offset_below_0_that_is_stored_is_none(stored: int) -> None:
    """`ConsumerManageProcessor.queryConsumerOffset` answers all of them as it answers a queue without an offset."""
    state = QueueState(broker_offset=100, consumer_offset=stored)
    start = start_of(state, LAST[0], topic=NORMAL)
    assert (start.rule, start.offset) == ("end", 100)
    assert start_of(state, FIRST, topic=NORMAL).offset == 0


@every_case(
    ("end", "stored", "lag"),
    [(100, 60, 40), (100, 0, 100), (100, -1, 100), (100, -2, 100), (5, 9, 0), (-1, -1, 0), (None, 3, None)],
)
def test_no_more_messages_are_unread_than_a_queue_has_and_no_fewer_than_none(
    end: int | None, stored: int, lag: int | None
) -> None:
    assert QueueState(broker_offset=end, consumer_offset=stored).lag == lag
