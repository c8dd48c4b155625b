"""What only a diagnosis needs of a consumer's report: queues, times, limits and stack traces."""

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
from tests.support.captured_frames import captured_frames
from tests.support.mismatches import every_case

from .captures import dashboard_data, queue
from .strategies import SNAPSHOTS
from .test_snapshot_file import read, snapshot_text, whole

ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)
FIGURES = (
    "cachedMsgCount",
    "cachedMsgSizeInMiB",
    "cachedMsgMinOffset",
    "cachedMsgMaxOffset",
    "transactionMsgCount",
    "transactionMsgMinOffset",
    "transactionMsgMaxOffset",
    "commitOffset",
    "droped",
    "locked",
    "tryUnlockTimes",
    "lastLockTimestamp",
    "lastPullTimestamp",
    "lastConsumeTimestamp",
)
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


def convert(**document: Any) -> docs.RunningInfoDocument:
    return docs.convert({"properties": {}, "mqTable": {}, **document}, docs.RunningInfoDocument, "x")


def evidence(**document: Any) -> ConsumerEvidence:
    return consumer_evidence(convert(**document), "x")


def stacks(text: object, group: str = "g") -> tuple[str, ...] | None:
    return evidence(properties={"consumerGroup": group}, jstack=text).stacks


def of_capture(form: str) -> ConsumerEvidence:
    """The evidence of one consumer, as a broker and as a Dashboard handed it on."""
    if form == "dashboard":
        document = docs.convert(dashboard_data("running-order-svc-inst0"), docs.RunningInfoDocument, "x")
    else:
        (command,) = FrameDecoder().feed(captured_frames()["5.5.0-b0-running-info"]["frame"])
        document = docs.convert(docs.parse_document(command.body or b"", "x"), docs.RunningInfoDocument, "x")
    return consumer_evidence(document, "x", 1795226746000)


@pytest.mark.parametrize("form", ["dashboard", "broker"])
def test_a_java_consumers_report_has_its_queues_rates_and_limits(form: str) -> None:
    found = of_capture(form)
    assert (found.read_at, found.orderly, found.stacks) == (1795226746000, False, None)
    assert found.limits == PullLimits(messages=1000, mib=100, span=2000)
    assert found.queues is not None
    assert [str(item.queue.topic) for item in found.queues] == [
        "%RETRY%order-svc",
        *["OrderEvents"] * 6,
        *["Skewed"] * 3,
    ]
    assert found.queues[1] == ProcessQueue(
        queue=queue("OrderEvents broker-a 0"),
        cached=0,
        cached_mib=0,
        min_offset=0,
        max_offset=0,
        consuming=0,
        consuming_min_offset=0,
        consuming_max_offset=0,
        commit_offset=31,
        dropped=False,
        locked=True,
        unlock_tries=0,
        last_lock=1795226485402,
        last_pull=1795226745965,
        last_consume=1795226486133,
    )
    assert found.filters == {"%RETRY%order-svc": "*", "OrderEvents": "*", "Skewed": "*"}
    assert list(found.statuses or ()) == ["%RETRY%order-svc", "OrderEvents", "Skewed"]


def test_each_figure_is_taken_from_its_own_field() -> None:
    state = {name: number for number, name in enumerate(FIGURES, 1)} | {"droped": True, "locked": False}
    rates = {"pullRT": 1.5, "pullTPS": 2.5, "consumeRT": 3, "consumeOKTPS": 4.5, "consumeFailedTPS": 5.5}
    found = evidence(mqTable={T0: state}, statusTable={"T": {**rates, "consumeFailedMsgs": 6}})
    assert found.queues == (
        ProcessQueue(MessageQueue("T", "a", 0), 1, 2, 3, 4, 5, 6, 7, 8, True, False, 11, 12, 13, 14),
    )
    assert found.statuses == {
        "T": ConsumeStatus(consume_ms=3.0, consumed_per_s=4.5, failed_per_s=5.5, failed_last_hour=6, pulled_per_s=2.5)
    }


@every_case(
    ("properties", "limits", "orderly"),
    [
        ({}, PullLimits(), None),
        ({"PROP_CONSUMEORDERLY": "true", "pullThresholdForQueue": "-1"}, PullLimits(), True),
        ({"PROP_CONSUMEORDERLY": "maybe", "pullThresholdSizeForQueue": None}, PullLimits(), None),
        ({"pullThresholdForQueue": "7", "consumeMaxSpan": "9"}, PullLimits(messages=7, span=9), None),
    ],
)
def test_properties_that_are_absent_or_odd_are_unknown(
    properties: dict[str, str], limits: PullLimits, orderly: bool | None
) -> None:
    found = evidence(properties=properties)
    assert (found.limits, found.orderly) == (limits, orderly)


@every_case(
    ("subscription", "taken"),
    [
        ({"subString": "*", "expressionType": "TAG"}, "*"),
        ({"subString": "red||  blue || red ||", "expressionType": "TAG"}, "blue || red"),
        ({"subString": "red"}, "red"),
        ({"subString": "a > 1", "expressionType": "SQL92"}, "SQL92: a > 1"),
    ],
)
def test_what_a_consumer_takes_of_a_topic(subscription: dict[str, str], taken: str) -> None:
    items = [{"topic": "U", "subString": "*"}, {"topic": "T", **subscription}]
    assert list((evidence(subscriptionSet=items).filters or {}).items()) == [("T", taken), ("U", "*")]


@every_case("odd", [{}, {"subString": 1}, {"subString": "a", "expressionType": 2}, {"subString": None}])
def test_what_it_takes_is_unknown_when_it_is_not_reported_of_some_topic(odd: dict[str, object]) -> None:
    assert evidence(subscriptionSet=[{"topic": "U", "subString": "*"}, {"topic": "T", **odd}]).filters is None
    assert evidence().filters is None


@every_case("wrong", ["5", 1.5, None, [], {}, True, 2**63, 10**40, -(2**63) - 1])
@every_case("name", [name for name in FIGURES if name not in {"droped", "locked"}])
def test_what_is_no_whole_number_is_unknown(name: str, wrong: object) -> None:
    assert evidence(mqTable={T0: {name: wrong}}).queues == (ProcessQueue(MessageQueue("T", "a", 0)),)


@every_case("wrong", ["true", 1, 0, None, []])
@every_case("name", ["droped", "locked"])
def test_what_is_neither_true_nor_false_is_unknown(name: str, wrong: object) -> None:
    assert evidence(mqTable={T0: {name: wrong}}).queues == (ProcessQueue(MessageQueue("T", "a", 0)),)


@every_case("wrong", ["5", None, [], True, float("nan"), float("inf"), 10**400])
@every_case("name", ["consumeRT", "consumeOKTPS", "consumeFailedTPS", "pullTPS"])
def test_what_is_no_finite_rate_is_unknown(name: str, wrong: object) -> None:
    assert evidence(statusTable={"T": {name: wrong}}).statuses == {"T": ConsumeStatus()}


@every_case("wrong", ["x", 1, [], True])
def test_rates_that_are_no_table_are_unknown(wrong: object) -> None:
    assert evidence(statusTable=wrong).statuses is None
    assert evidence(statusTable={"T": wrong}).statuses == {"T": ConsumeStatus()}


def test_a_key_that_is_no_queue_is_refused_in_one_line() -> None:
    with pytest.raises(DocumentError, match=r"^x: 'T' is not a MessageQueue$"):
        evidence(mqTable={"T": {}})


@settings(deadline=None)
@given(st.fixed_dictionaries({}, optional=dict.fromkeys(FIGURES, ANY_JSON)), ANY_JSON, ANY_JSON)
def test_whatever_a_report_holds_can_be_written_and_read_again(
    state: dict[str, object], statuses: object, jstack: object
) -> None:
    found = evidence(mqTable={T0: state}, statusTable=statuses, jstack=jstack)
    reports = to_document(_with_evidence(found))["groups"][0]["reports"]
    text = snapshot_text({"groups": [{"group": "g", "reports": json.loads(as_json(reports))}]})
    assert read(text).group("g").reports["a"].evidence == found


def _with_evidence(found: ConsumerEvidence) -> ClusterSnapshot:
    snapshot = read(snapshot_text({"groups": [{"group": "g", "reports": [{"clientId": "a"}]}]}))
    group = snapshot.group("g")
    return replace(snapshot, groups={"g": replace(group, reports={"a": replace(group.reports["a"], evidence=found)})})


def test_only_the_consume_threads_of_the_group_are_kept_by_their_numbers() -> None:
    second, tenth = (stack.splitlines() for stack in stacks(JSTACK) or ())
    assert second == [
        "ConsumeMessageThread_g_2 TIMED_WAITING",
        "java.lang.Thread.sleep(Native Method)",
        "com.example.Handler.handle(Handler.java:7)",
    ]
    assert tenth == [
        "ConsumeMessageThread_g_10 WAITING",
        "sun.misc.Unsafe.park(Native Method)",
        "java.util.concurrent.ThreadPoolExecutor.getTask(ThreadPoolExecutor.java:1074)",
    ]


@every_case("group", ["other", "other_group_1", "unheard-of"])
def test_a_group_that_no_thread_names_gets_all_consume_threads(group: str) -> None:
    assert len(stacks(JSTACK, group) or ()) == 3


def test_a_thread_with_a_long_name_has_no_blank_behind_it() -> None:
    name = f"ConsumeMessageThread_{'g' * 100}_1"
    text = f"{name}TID: 5 STATE: RUNNABLE\n{name}a.B.c(B.java:1)\n\n"
    assert stacks(text, "g" * 120) == (f"{name} RUNNABLE\na.B.c(B.java:1)",)


@every_case("text", [None, "", 5, []])
def test_no_stack_traces_are_unknown(text: object) -> None:
    assert stacks(text) is None


@every_case("text", ["java.lang.SecurityException: no", "\n\n", "main TID: 1 STATE: RUNNABLE\nmain x\n"])
def test_no_consume_thread_is_none_of_them(text: str) -> None:
    assert stacks(text) == ()


@given(st.text(st.sampled_from("ConsumeMessageThread_g1 TID: STATE\n\u2028"), max_size=200))
def test_any_text_gives_stack_traces_of_consume_threads(text: str) -> None:
    assert all(stack.startswith("ConsumeMessageThread_") for stack in stacks(text) or ())


@settings(max_examples=50, deadline=None)
@given(SNAPSHOTS)
def test_a_snapshot_file_is_read_without_evidence_where_it_is_not_wanted(snapshot: ClusterSnapshot) -> None:
    found = read(as_json(whole(snapshot)), Wanted())
    assert found == replace(
        snapshot,
        groups={
            name: replace(group, reports={i: replace(report, evidence=None) for i, report in group.reports.items()})
            for name, group in snapshot.groups.items()
        },
    )
    assert '"evidence"' not in as_json(to_document(found)["groups"])


@every_case(
    ("broken", "said"),
    [
        ({"queues": [{"cached": 1}]}, "queue"),
        ({"queues": {}}, "queues"),
        ({"statuses": {"T": {"consumeMs": "slow"}}}, "consumeMs"),
        ({"limits": None}, "limits"),
        ({"orderly": "yes"}, "orderly"),
        ({"stacks": [1]}, "stacks"),
    ],
)
def test_evidence_of_the_wrong_shape_is_refused_with_its_place(broken: dict[str, object], said: str) -> None:
    text = snapshot_text({"groups": [{"group": "g", "reports": [{"clientId": "a", "evidence": broken}]}]})
    with pytest.raises(DocumentError) as caught:
        read(text)
    assert said in caught.value.message
    assert "\n" not in caught.value.message
