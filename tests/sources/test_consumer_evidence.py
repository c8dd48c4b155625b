from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from rmqlb.errors import DocumentError
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.process_queue import ConsumerEvidence, ConsumeStatus, ProcessQueue, PullLimits
from rmqlb.model.snapshot import ClusterSnapshot, Wanted
from rmqlb.remoting.frame import FrameDecoder
from rmqlb.sources.formats import documents as docs
from rmqlb.sources.formats.consumer_evidence import consumer_evidence
from rmqlb.sources.formats.snapshot_file import to_document
from rmqlb.views.formats.machine import as_json
from tests.support.mismatches import every_case
from tests.support.vectors import captured_frames

from .captures import dashboard_data, queue
from .strategies import SNAPSHOTS
from .test_snapshot_file import read, snapshot_text, whole

ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)
FIGURES = (
    *("cachedMsgCount", "cachedMsgSizeInMiB", "cachedMsgMinOffset", "cachedMsgMaxOffset", "transactionMsgCount"),
    *("transactionMsgMinOffset", "transactionMsgMaxOffset", "commitOffset", "droped", "locked", "tryUnlockTimes"),
    *("lastLockTimestamp", "lastPullTimestamp", "lastConsumeTimestamp"),
)
FLAGS = ("droped", "locked")
T0 = "MessageQueue [topic=T, brokerName=a, queueId=0]"
JSTACK = """\
ConsumeMessageThread_g_10               TID: 51 STATE: WAITING
ConsumeMessageThread_g_10               sun.misc.Unsafe.park(Native Method)
ConsumeMessageThread_g_10               java.util.concurrent.ThreadPoolExecutor.getTask(ThreadPoolExecutor.java:1074)

main                                    TID: 1 STATE: TIMED_WAITING
main                                    java.lang.Thread.sleep(Native Method)

ConsumeMessageThread_g_2                TID: 42 STATE: TIMED_WAITING
ConsumeMessageThread_g_2                java.lang.Thread.sleep(Native Method)
ConsumeMessageThread_g_2                com.example.Handler.handle(Handler.java:7)

ConsumeMessageThread_other_group_1      TID: 43 STATE: RUNNABLE
ConsumeMessageThread_other_group_1      com.example.Other.run(Other.java:1)

"""


def evidence(**document: Any) -> ConsumerEvidence:
    given = {"properties": {}, "mqTable": {}, **document}
    return consumer_evidence(docs.convert(given, docs.RunningInfoDocument, "x"), "x")


def stacks(text: object, group: str = "g") -> tuple[str, ...] | None:
    return evidence(properties={"consumerGroup": group}, jstack=text).stacks


@pytest.mark.parametrize("form", ["dashboard", "broker"])
def test_a_java_consumers_report_has_its_queues_rates_and_limits(form: str) -> None:
    (command,) = FrameDecoder().feed(captured_frames()["5.5.0-b0-running-info"]["frame"])
    value = dashboard_data("running-order-svc-inst0")
    if form == "broker":
        value = docs.parse_document(command.body or b"", "x")
    found = consumer_evidence(docs.convert(value, docs.RunningInfoDocument, "x"), "x", 1795226746000)
    assert (found.read_at, found.orderly, found.stacks) == (1795226746000, False, None)
    assert found.limits == PullLimits(messages=1000, mib=100, span=2000)
    topics = ["%RETRY%order-svc", *["OrderEvents"] * 6, *["Skewed"] * 3]
    assert [item.queue.topic for item in found.queues or ()] == topics
    assert (found.queues or ())[1] == ProcessQueue(
        queue("OrderEvents broker-a 0"), *(0, 0, 0, 0, 0, 0, 0, 31), False, True, 0, 1795226485402, 1795226745965, 1795226486133
    )  # fmt: skip
    assert found.filters == dict.fromkeys(("%RETRY%order-svc", "OrderEvents", "Skewed"), "*")
    assert list(found.statuses or ()) == ["%RETRY%order-svc", "OrderEvents", "Skewed"]


def test_each_figure_is_taken_from_its_own_field() -> None:
    state = {name: number for number, name in enumerate(FIGURES, 1)} | {"droped": True, "locked": False}
    rates = {"pullRT": 1.5, "pullTPS": 2.5, "consumeRT": 3, "consumeOKTPS": 4.5, "consumeFailedTPS": 5.5}
    found = evidence(mqTable={T0: state}, statusTable={"T": {**rates, "consumeFailedMsgs": 6}})
    numbers = (1, 2, 3, 4, 5, 6, 7, 8, True, False, 11, 12, 13, 14)
    assert found.queues == (ProcessQueue(MessageQueue("T", "a", 0), *numbers),)
    assert found.statuses == {"T": ConsumeStatus(3.0, 4.5, 5.5, 6, 2.5)}


def test_properties_that_are_absent_or_odd_are_unknown() -> None:
    for properties, limits, orderly in (
        ({}, PullLimits(), None),
        ({"PROP_CONSUMEORDERLY": "true", "pullThresholdForQueue": "-1"}, PullLimits(), True),
        ({"PROP_CONSUMEORDERLY": "maybe", "pullThresholdSizeForQueue": None}, PullLimits(), None),
        ({"pullThresholdForQueue": "7", "consumeMaxSpan": "9"}, PullLimits(messages=7, span=9), None),
    ):
        found = evidence(properties=properties)
        assert (found.limits, found.orderly) == (limits, orderly)


def test_what_a_consumer_takes_of_a_topic() -> None:
    assert evidence().filters is None
    for subscription, taken in (
        ({"subString": "*", "expressionType": "TAG"}, "*"),
        ({"subString": "red||  blue || red ||", "expressionType": "TAG"}, "blue || red"),
        ({"subString": "red"}, "red"),
        ({"subString": "a > 1", "expressionType": "SQL92"}, "SQL92: a > 1"),
        *((odd, None) for odd in ({}, {"subString": 1}, {"subString": "a", "expressionType": 2})),
    ):
        found = evidence(subscriptionSet=[{"topic": "U", "subString": "*"}, {"topic": "T", **subscription}]).filters
        assert (None if found is None else list(found.items())) == (taken and [("T", taken), ("U", "*")])


@every_case("wrong", ["5", 1.5, None, [], {}, True, 2**63, 10**40, -(2**63) - 1, float("nan"), float("inf"), 10**400])
def test_what_is_no_such_figure_is_unknown(wrong: object) -> None:
    is_rate = wrong in (1.5, 2**63, 10**40, -(2**63) - 1) and wrong is not True
    for name in FIGURES:
        state = {name: 1 if wrong is True and name in FLAGS else wrong}
        assert evidence(mqTable={T0: state}).queues == (ProcessQueue(MessageQueue("T", "a", 0)),)
    for name in () if is_rate else ("consumeRT", "consumeOKTPS", "consumeFailedTPS", "consumeFailedMsgs", "pullTPS"):
        assert evidence(statusTable={"T": {name: wrong}}).statuses == {"T": ConsumeStatus()}
    assert evidence(statusTable={"T": wrong}).statuses == {"T": ConsumeStatus()}
    assert evidence(statusTable=wrong).statuses == ({} if wrong == {} else None)


def test_a_key_that_is_no_queue_is_refused_in_one_line() -> None:
    with pytest.raises(DocumentError, match=r"^x: 'T' is not a MessageQueue$"):
        evidence(mqTable={"T": {}})


@settings(deadline=None)
@given(st.fixed_dictionaries({}, optional=dict.fromkeys(FIGURES, ANY_JSON)), ANY_JSON, ANY_JSON)
def test_whatever_a_report_holds_can_be_written_and_read_again(
    state: dict[str, object], statuses: object, jstack: object
) -> None:
    found = evidence(mqTable={T0: state}, statusTable=statuses, jstack=jstack)
    snapshot = read(snapshot_text({"groups": [{"group": "g", "reports": [{"clientId": "a"}]}]}))
    group = snapshot.group("g")
    group = replace(group, reports={"a": replace(group.reports["a"], evidence=found)})
    reports = to_document(replace(snapshot, groups={"g": group}))["groups"][0]["reports"]
    text = snapshot_text({"groups": [{"group": "g", "reports": json.loads(as_json(reports))}]})
    assert read(text).group("g").reports["a"].evidence == found


def test_only_the_consume_threads_of_the_group_are_kept_by_their_numbers() -> None:
    second, tenth = (stack.splitlines() for stack in stacks(JSTACK) or ())
    assert (second[0], len(second)) == ("ConsumeMessageThread_g_2 TIMED_WAITING", 3)
    assert second[1:] == ["java.lang.Thread.sleep(Native Method)", "com.example.Handler.handle(Handler.java:7)"]
    assert (tenth[0], len(tenth)) == ("ConsumeMessageThread_g_10 WAITING", 3)
    for group in ("other", "other_group_1", "unheard-of"):
        assert len(stacks(JSTACK, group) or ()) == 3, "a group that no thread names gets all consume threads"
    name = f"ConsumeMessageThread_{'g' * 100}_1"  # no blank follows a long name
    text = f"{name}TID: 5 STATE: RUNNABLE\n{name}a.B.c(B.java:1)\n\n"
    assert stacks(text, "g" * 120) == (f"{name} RUNNABLE\na.B.c(B.java:1)",)
    assert [stacks(unknown) for unknown in (None, "", 5)] == [None] * 3
    for text in ("java.lang.SecurityException: no", "\n\n", "main TID: 1 STATE: RUNNABLE\nmain x\n"):
        assert stacks(text) == ()


@given(st.text(st.sampled_from("ConsumeMessageThread_g1 TID: STATE\n\u2028"), max_size=200))
def test_any_text_gives_stack_traces_of_consume_threads(text: str) -> None:
    assert all(stack.startswith("ConsumeMessageThread_") for stack in stacks(text) or ())


@settings(max_examples=50, deadline=None)
@given(SNAPSHOTS)
def test_a_snapshot_file_is_read_without_evidence_where_it_is_not_wanted(snapshot: ClusterSnapshot) -> None:
    found = read(as_json(whole(snapshot)), Wanted())
    for name, group in snapshot.groups.items():
        reports = {i: replace(report, evidence=None) for i, report in group.reports.items()}
        assert found.groups[name] == replace(group, reports=reports)
    written = json.loads(as_json(to_document(found)["groups"]))
    assert not [report for group in written for report in group["reports"] if "evidence" in report]
