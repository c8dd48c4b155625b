from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from rmqlb.engine.rebalance.reported_clients import observed_rates, spread_evenly
from rmqlb.engine.rebalance.simulate import in_order, renamed, restarts
from rmqlb.errors import DataError, UsageError
from rmqlb.model.group import ConsumerGroup, QueueState
from rmqlb.model.group_scenario import Event
from rmqlb.model.message_queue import MessageQueue
from tests.engine.rebalance.groups import at
from tests.support.builders import group, queues, route
from tests.support.mismatches import every_case

ROUTES = (route(a=4, b=4),)


@every_case(("events", "complaint"), [
    ([at("leave", "c9")], "leave c9: it is not in the group then"),
    ([at("crash", "c1"), at("leave", "c1", 20)], "leave c1: it is no longer in the group then"),
    ([at("join", "c1")], "join c1: it is already in the group then"),
    ([at("join", "")], "a client id cannot be empty"),
    ([at("leave", "c1", 30), at("join", "c1", 20)], "join c1: it is already in the group then"),
    ([at("pull-stall", "c4")], "pull-stall c4: it is not in the group then"),
    ([at("leave", "c1", -1)], "leave c1: before the start"),
    ([at("broker-down", "z")], "broker-down z: there is no such broker"),
    ([at("broker-down", "a"), at("broker-loss", "a", 20)], "broker-loss a: it is down already"),
    ([at("broker-up", "a")], "broker-up a: it is up already"),
    ([at("broker-down", "a"), at("broker-up", "a", 20, read_queues=3)], "comes back with the queues that it had"),
    ([at("route-change", "U", read_queues=3)], "topic U is not simulated"),
    ([at("route-change", "T", broker_name="z", read_queues=3)], "topic T has no broker z"),
    ([at("freeze", "c9")], "freeze c9: it is not in the group then"),
    ([at("freeze", "c1"), at("freeze", "c1", 20)], "freeze c1: it is frozen then, and does nothing"),
    ([at("freeze", "c1"), at("leave", "c1", 20)], "leave c1: it is frozen then, and does nothing"),
    ([at("freeze", "c1"), at("pull-stall", "c1", 20)], "pull-stall c1: it is frozen then"),
    ([at("unfreeze", "c1", 20)], "unfreeze c1: it is not frozen then"),
    ([at("freeze", "c1"), at("crash", "c1", 20), at("unfreeze", "c1", 30)], "unfreeze c1: it is no longer in"),
    ([at("freeze", "c1"), at("crash", "c1", 20), at("join", "c1", 25), at("unfreeze", "c1", 30)], "it is not frozen"),
])  # fmt: skip
def test_what_cannot_happen_is_refused(events: list[Event], complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint) as caught:
        in_order(events, ["c1", "c2"], ROUTES)
    assert "\n" not in str(caught.value)


def test_restarts_go_down_together_and_may_come_back_under_other_names() -> None:
    events = restarts(
        ["c1", "c2", "c3"], 0, every_us=10, down_us=4, at_once=2, becomes={"c3": "d3"}, strategy="AVG", end="crash"
    )
    assert [(event.kind, event.subject, event.at_us, event.strategy) for event in events] == [
        ("crash", "c1", 0, None),
        ("join", "c1", 4, "AVG"),
        ("crash", "c2", 0, None),
        ("join", "c2", 4, "AVG"),
        ("crash", "c3", 10, None),
        ("join", "d3", 14, "AVG"),
    ]


@every_case(("before", "after"), [
    ("10.0.0.5@1#7000000000999", "10.0.0.5@1#7000000001000"),
    ("10.0.0.5@1#009", "10.0.0.5@1#010"),
    ("10.0.0.5@worker-3", "10.0.0.5@worker-3"),
    ("10.0.0.5@12345", "10.0.0.5@12345"),
    ("c1", "c1"),
])  # fmt: skip
def test_only_ids_with_a_time_in_them_change(before: str, after: str) -> None:
    assert renamed(before) == after


EARLIER = datetime(2026, 1, 1, tzinfo=UTC)
MINUTE = EARLIER + timedelta(minutes=1)
QUEUES = queues(3)


def test_a_topics_rate_is_dealt_evenly() -> None:
    assert spread_evenly({"T": 6.0}, [route(a=2, b=1)]) == dict.fromkeys(route(a=2, b=1).subscribe_queues(), 2.0)
    assert spread_evenly({"T": 0.0}, [route(a=1)]) == {MessageQueue("T", "a", 0): 0.0}
    assert spread_evenly({"U": 6.0}, [route(a=2)]) == {}
    assert spread_evenly({"T": 6.0}, [route()]) == {}


@every_case(("event", "more"), [
    (Event("route-change", 1, "T", read_queues=3, write_queues=3), [("a", 2), ("b", 1), ("b", 2)]),
    (Event("route-change", 1, "T", broker_name="b", read_queues=2), [("b", 1)]),
    (Event("route-change", 1, "U", read_queues=9), []),
    (Event("broker-up", 1, "c", read_queues=1), [("c", 0)]),
    (Event("broker-up", 1, "c"), [("c", 0), ("c", 1)]),
    (Event("broker-up", 1, "a"), []),
    (Event("leave", 1, "c"), []),
])  # fmt: skip
def test_a_queue_that_comes_later_has_the_rate_of_the_others(event: Event, more: list[tuple[str, int]]) -> None:
    before = [("a", 0), ("a", 1), ("b", 0)]
    found = spread_evenly({"T": 6.0}, [route(a=2, b=1)], [event])
    assert found == {MessageQueue("T", broker, queue_id): 2.0 for broker, queue_id in (*before, *more)}


def ends(*offsets: int | None) -> ConsumerGroup:
    states = {queue: QueueState(broker_offset=end) for queue, end in zip(QUEUES, offsets, strict=False)}
    return replace(group("x"), queues=states)


def test_what_came_between_two_snapshots_is_the_rate() -> None:
    now, then = ends(100, 60, 7), ends(40, 60)
    assert observed_rates(now, then, (MINUTE, EARLIER), QUEUES, "then.json") == {QUEUES[0]: 1.0, QUEUES[1]: 0.0}
    assert observed_rates(now, then, (MINUTE, EARLIER), QUEUES[1:], "then.json") == {QUEUES[1]: 0.0}


@every_case(("now", "then", "taken", "error"), [
    (ends(100), ends(40), (MINUTE, None), "then.json does not report when it was taken"),
    (ends(100), ends(40), (None, EARLIER), "the source does not report when it was taken"),
    (ends(100), ends(40), (EARLIER, EARLIER), "then.json is not earlier than the source"),
    (ends(100), ends(40), (EARLIER, MINUTE), "2026-01-01T00:01:00Z"),
    (ends(40), ends(100), (MINUTE, EARLIER), "queue broker-a:0 of T ends at 40, and in then.json at 100"),
    (ends(100), ends(None), (MINUTE, EARLIER), "no queue whose end both know"),
    (ends(), ends(40), (MINUTE, EARLIER), "no queue whose end both know"),
])  # fmt: skip
def test_what_does_not_fit_is_refused(
    now: ConsumerGroup, then: ConsumerGroup, taken: tuple[datetime | None, datetime | None], error: str
) -> None:
    with pytest.raises(DataError) as raised:
        observed_rates(now, then, taken, QUEUES, "then.json")
    assert error in raised.value.message
    assert raised.value.hint
