import pytest

from rmqlb.engine.rebalance.events import in_order, renamed, restarts
from rmqlb.errors import UsageError
from rmqlb.model.group_scenario import Event
from tests.engine.rebalance.groups import at
from tests.support.builders import route
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
