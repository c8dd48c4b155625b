"""What brokers answer consumers that let them assign their queues, beside the prediction."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from rmqlb.engine.allocate.rules import JAVA_CLASSES
from rmqlb.engine.allocate.strategy import BROKER_STRATEGIES
from rmqlb.engine.assignment.brokers import assignment_findings, assignment_questions, compare_assignments
from rmqlb.model.group import Connection, ConsumerGroup, MemberReport, MemberView, Seen
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.route import BrokerData, QueueData, TopicRouteData
from rmqlb.model.snapshot import AssignmentAnswer, AssignmentQuestion
from tests.support.builders import route

CLASSES = {name: java for java, name in JAVA_CLASSES.items()}
VECTORS = Path(__file__).parents[2] / "data/vectors/query-assignment.jsonl.gz"
T = route("T", a=2, b=2)
ADDRESSES = {data.broker_name: data.address for data in T.broker_datas}


def group(listed: dict[str, str], *, by_broker: str = "x", **more: Any) -> ConsumerGroup:
    """A group of which each broker lists these consumers, one of which lets brokers assign its queues."""
    views = tuple(
        MemberView(tuple(map(Connection, ids.split())), Seen(broker), ADDRESSES[broker])
        for broker, ids in listed.items()
    )
    reports = {
        each: MemberReport(each, client_rebalance=each != by_broker) for ids in listed.values() for each in ids.split()
    }
    return ConsumerGroup("g", Seen("here"), views=views, reports=reports, **more)


def answer(*places: tuple[str, int], mode: str | None = "PULL") -> AssignmentAnswer:
    return AssignmentAnswer(mode, frozenset(MessageQueue("T", *place) for place in places))


def test_each_broker_of_a_topic_is_asked_for_each_consumer_with_the_strategy_of_its_own() -> None:
    seen = group({"a": "x y", "b": "y z"})
    circle = MemberReport("y", None, CLASSES["AVG_BY_CIRCLE"])
    seen = replace(seen, reports={**seen.reports, "y": circle})
    asked = [(each.broker_name, each.client_id, each.strategy) for each in assignment_questions(seen, [T])]
    assert asked == [(b, i, "AVG_BY_CIRCLE" if i == "y" else "AVG") for b in ("a", "b") for i in ("x", "y", "z")]
    assert list(assignment_questions(group({"a": "x y"}, by_broker="nobody"), [T])) == []


def test_a_broker_answers_by_its_own_list() -> None:
    seen = group({"a": "x y", "b": "x"})
    half = {"x": (("a", 0), ("a", 1)), "y": (("b", 0), ("b", 1))}
    answers = {
        each: answer(*half[each.client_id]) for each in assignment_questions(seen, [T]) if each.broker_name == "a"
    }
    alone = AssignmentQuestion("T", "x", "AVG", "b", str(ADDRESSES["b"]))
    answers[alone] = answer(*half["x"], *half["y"])
    asked = compare_assignments(seen, [T], answers)
    assert [(each.broker_name, each.consumers, each.modes, each.mismatches) for each in asked] == [
        ("a", 2, ("PULL",), ()),
        ("b", 1, ("PULL",), ()),
    ]
    assert list(assignment_findings(asked, 3)) == []


def test_an_answer_that_is_not_the_predicted_one_is_shown_and_found() -> None:
    seen = group({"a": "x y"})
    first, second = (AssignmentQuestion("T", i, "AVG", "a", str(ADDRESSES["a"])) for i in "xy")
    asked = compare_assignments(seen, [T], {first: answer(("a", 0)), second: AssignmentAnswer(None, None)})
    (one,) = asked
    assert [(each.client_id, each.queues_answered) for each in one.mismatches][1] == ("y", None)
    mismatch, missing = assignment_findings(asked, 4)
    assert mismatch.message == (
        "2 of 2 answers of brokers differ from the prediction; first a for x, topic T: answered a:0, predicted a:0, a:1"
    )
    assert mismatch.consumers == ("x", "y")
    assert missing.message == "what brokers assign: 2 questions of 4 without an answer"


def test_by_pop_any_share_that_brokers_have_may_be_the_one() -> None:
    seen = group({"a": "x y z"}, pop_share_queue_nums={"T": (0, 1)})
    question = AssignmentQuestion("T", "x", "AVG", "a", str(ADDRESSES["a"]))
    for given, fits in (
        (answer(("a", -1), ("b", -1), mode="POP"), True),
        (answer(("a", 0), ("a", 1), ("b", 0), mode="POP"), True),
        (answer(("a", 0), ("a", 1), mode="POP"), False),
    ):
        (one,) = compare_assignments(seen, [T], {question: given})
        assert (not one.mismatches) is fits
        assert one.modes == ("POP",)


def recorded() -> Iterator[dict[str, Any]]:
    """Answers of a broker of 5.5.0 that balances, to consumers that do not broadcast."""
    with gzip.open(VECTORS, "rt", encoding="utf-8") as lines:
        for line in map(json.loads, lines):
            if line["serverLoadBalancerEnable"] and line["messageModel"] == "CLUSTERING" and line["mode"]:
                yield line


def test_recorded_answers_of_a_broker_are_as_predicted() -> None:
    number = 0
    for line in recorded():
        topic, ids = line["topic"], line["cidAll"]
        queues = {MessageQueue(*queue) for queue in line["mqAll"]}
        if line["strategy"] not in BROKER_STRATEGIES or topic.startswith("%") or not ids:
            continue
        names = sorted({queue.broker_name for queue in queues})
        data = tuple(
            QueueData(name, 1 + max(queue.queue_id for queue in queues if queue.broker_name == name), 1, 6)
            for name in names
        )
        if sum(each.read_queue_nums for each in data) != len(queues):
            continue  # no route has gaps in its numbers
        seen = ConsumerGroup(
            "g",
            Seen("here"),
            views=(MemberView(tuple(map(Connection, ids)), Seen("here"), "1:1"),),
            pop_share_queue_nums={topic: (line["popShareQueueNum"],)},
        )
        answers = {}
        for client_id, expected in line["expected"].items():
            found = None if expected is None else frozenset(MessageQueue(*queue) for queue in expected)
            question = AssignmentQuestion(topic, client_id, line["strategy"], "asked", "1:1")
            answers[question] = AssignmentAnswer(line["mode"] if found else None, found)
        asked = compare_assignments(
            seen, [TopicRouteData(topic, data, (BrokerData("c", "asked", {0: "1:1"}),))], answers
        )
        # an empty answer does not say its mode
        assert [m for each in asked for m in each.mismatches if m.queues_answered] == [], line["id"]
        number += len(answers)
    assert number > 0
