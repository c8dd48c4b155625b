"""What is said of queues without an owner or with several, and of consumers without a queue."""

from __future__ import annotations

from rmqlb.engine.assignment.detect import owner_findings
from rmqlb.model.finding import ERROR, Finding
from rmqlb.model.group import QueueState
from tests.support.builders import queues


def test_queues_without_an_owner_and_with_several_are_counted_and_named() -> None:
    """What waits is told of unassigned queues only, as far as it is known."""
    q = queues(6, "x")
    owners = {q[0]: ("a",), q[1]: (), q[2]: (), q[3]: ("b", "a"), q[4]: ("c", "b"), q[5]: ()}
    states = {
        q[0]: QueueState(None, 7, 0),
        q[1]: QueueState(None, 1200, 0),
        q[2]: QueueState(),
        q[3]: QueueState(None, 9, 0),
    }
    assert list(owner_findings(owners, "group g", "g", "observed", states)) == [
        Finding(
            "unassigned-queues",
            "3 of 6 queues of group g are unassigned (observed), 1,200 messages waiting: T x 1-2,5",
            "g",
            ERROR,
        ),
        Finding(
            "duplicate-owners",
            "2 of 6 queues of group g have duplicate owners (observed): T x 3-4",
            "g",
            ERROR,
            ("a", "b", "c"),
        ),
    ]


def test_one_queue_is_told_as_one() -> None:
    one, other = queues(2, "x")
    (unassigned,) = owner_findings({one: (), other: ("a",)}, "the group", None, "predicted", {})
    assert unassigned.message == "1 of 2 queues of the group is unassigned (predicted): T x 0"
    (several,) = owner_findings({one: ("b", "a")}, "the group", None, "assumed", {})
    assert several.message == "1 of 1 queue of the group has duplicate owners (assumed): T x 0"
    assert list(owner_findings({one: ("a",), other: ("a",)}, "the group", None, "observed", {})) == []
