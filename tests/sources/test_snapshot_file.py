import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from rmqlb import MessageQueue, TopicRouteData
from rmqlb.errors import DocumentError
from rmqlb.model.group import ConsumerGroup, QueueState, Seen
from rmqlb.model.process_queue import ConsumerEvidence, ConsumeStatus, ProcessQueue, PullLimits
from rmqlb.model.snapshot import ClusterSnapshot, RouteSighting, Unread, Wanted
from rmqlb.remoting.frame import FrameDecoder
from rmqlb.sources.dump import read_document
from rmqlb.sources.formats import documents as docs
from rmqlb.sources.formats.snapshot_file import to_document
from rmqlb.views.formats.machine import as_json, as_yaml, envelope
from rmqlb.views.report import Report
from tests.support.any_value import SIMPLE, any_of
from tests.support.mismatches import captured_frames, every_case, refusal

from .captures import dashboard_data, queue

LOOK_LIKE_OTHER_THINGS = [
    *("no", "010", "1e5", "1.0e5", "2026-01-01", "null", "~", "<<", "=", "true", ".nan", "*a", "&a", "!!x", "- a"),
    *("a: b", "#", " a ", "a\nb\n", "\x1b[31m", "\x85", "\u2028", "\ufeff", "\U000e0001", "\U0001f600", "x" * 200),
]
NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(LOOK_LIKE_OTHER_THINGS)
FIRST, LAST = datetime(1970, 1, 1), datetime(2100, 1, 1)  # noqa: DTZ001 - as hypothesis wants
ANY = {
    **SIMPLE,
    str: NAMES,
    int: st.integers(-(2**63), 2**63 - 1),
    float: st.floats(allow_nan=False, allow_infinity=False),
    datetime: st.datetimes(FIRST, LAST, timezones=st.just(UTC)),
    "queue_id": st.integers(-1, 2**31 - 1),
}


SIGHTINGS = st.builds(RouteSighting, any_of(TopicRouteData, ANY, 3), any_of(Seen, ANY))


def with_another(one: RouteSighting, other: RouteSighting) -> RouteSighting:
    return replace(one, others=(replace(other, route=replace(other.route, topic=one.route.topic)),))


def by_client_id(group: ConsumerGroup) -> ConsumerGroup:
    return replace(group, reports={report.client_id: report for report in group.reports.values()})


SNAPSHOTS = st.builds(
    ClusterSnapshot,
    kind=st.just("dump"),
    endpoint=st.just("snapshot"),
    taken_at=any_of(datetime | None, ANY),
    routes=st.lists(SIGHTINGS | st.builds(with_another, SIGHTINGS, SIGHTINGS), max_size=2).map(
        lambda found: {each.route.topic: each for each in found}
    ),
    groups=st.lists(any_of(ConsumerGroup, ANY).map(by_client_id), max_size=2).map(
        lambda found: {each.group: each for each in found}
    ),
    unread=any_of(tuple[Unread, ...], ANY),
)


EXAMPLE = Path(__file__).parent.parent.parent / "examples" / "cluster.json"
ALL = Wanted(evidence=True)


def whole(snapshot: ClusterSnapshot) -> dict[str, Any]:
    report = Report("rmqlb/snapshot", to_document(snapshot), (), (), {})
    return dict(msgspec.to_builtins(envelope(report, "a test", snapshot, ())))


def read(text: str, wanted: Wanted = ALL) -> ClusterSnapshot:
    return replace(read_document(text.encode(), "stdin", wanted).snapshot, endpoint="snapshot", notes=())


def snapshot_text(data: dict[str, Any], version: object = "1.0", **more: object) -> str:
    return json.dumps({"schema": "rmqlb/snapshot", "formatVersion": version, "data": data, **more})


def only_group(**fields: object) -> ConsumerGroup:
    return read(snapshot_text({"groups": [{"group": "g", **fields}]})).group("g")


def problem(text: str, wanted: Wanted = ALL) -> DocumentError:
    return refusal(DocumentError, read, text, wanted)


@settings(max_examples=100, deadline=None)
@given(SNAPSHOTS)
def test_what_is_written_is_read_back_and_written_again_to_the_byte(snapshot: ClusterSnapshot) -> None:
    text = as_json(whole(snapshot))
    assert read(text) == read(as_yaml(whole(snapshot))) == snapshot
    assert as_json(whole(read(text))) == text


def test_a_newer_major_version_or_none_is_refused_before_the_fields_are_read() -> None:
    for version in ("3.0", "3", "10.3"):
        error = problem(snapshot_text({"topics": "another shape"}, version))
        assert error.message == f"stdin: snapshot format {version} is too new: this rmqlb reads up to 2.0"
        assert error.hint == "use a newer rmqlb"
    odd: tuple[object, ...] = ("", "x", "²", "1x", "-1", "9" * 5000, None, True, [1])
    for error in (problem(snapshot_text({}, version)) for version in odd):
        assert error.message.startswith("stdin: the snapshot's formatVersion is ")
        assert (len(error.message) < 100, error.hint) == (True, "write '2.0'")


def test_an_older_or_newer_minor_version_is_read_without_its_new_keys() -> None:
    for version in ("2.0", "2.7", "2", "1.0", "1.7", "1.0.1", "0.9"):
        data = {"groups": [{"group": "g", "mood": "good"}], "weather": []}
        assert list(read(snapshot_text(data, version, extra={"a": [1]})).groups) == ["g"]
    assert list(read("schema: rmqlb/snapshot\nformatVersion: 1.0\ndata: {groups: [{group: g}]}").groups) == ["g"]


def test_what_is_left_out_or_null_is_unknown_and_what_is_empty_is_empty() -> None:
    assert only_group() == ConsumerGroup("g", Seen("stdin"))
    queue = {"topic": "T", "brokerName": "a", "queueId": 0}
    group = only_group(views=[], topics=[], queues=[{**queue, "owners": None}, {**queue, "queueId": 1, "owners": []}])
    assert (group.client_ids, group.topics) == ((), ())
    assert list(group.queues.values()) == [QueueState(owners=None), QueueState(owners=frozenset())]
    assert list(group.queues) == [MessageQueue("T", "a", 0), MessageQueue("T", "a", 1)]
    assert only_group(clientIds=["b", "a", "b"]).client_ids == ("a", "b", "b")
    assert only_group(clientIds=[]).client_ids == ()


def test_parts_have_a_time_and_a_name_and_only_wanted_ones_are_kept() -> None:
    group = {"group": "g", "seen": {"where": "x", "at": "2026-11-01T02:00:00"}}
    data = {"topics": [{"topic": "T", "route": {}}], "groups": [group]}
    found = read(snapshot_text(data, source={"takenAt": "2026-11-01T00:00:00"}))
    assert found.routes["T"].seen == Seen("stdin", datetime(2026, 11, 1, tzinfo=UTC))
    assert found.taken_at == datetime(2026, 11, 1, tzinfo=UTC)
    assert found.group("g").seen == Seen("x", datetime(2026, 11, 1, 2, tzinfo=UTC))
    unread = read(snapshot_text({"unread": [{"what": "group g", "reason": "timed out"}]})).unread
    assert unread == (Unread("other", "group g", "timed out"),)
    assert "has a name" in problem(snapshot_text({"unread": [{"kind": "group", "reason": "timed out"}]})).message
    snapshot = read(EXAMPLE.read_text(), Wanted(group="bill-svc"))
    assert (list(snapshot.groups), list(snapshot.routes)) == (["bill-svc"], ["Skewed"])


def one_group(**fields: object) -> dict[str, object]:
    return {"groups": [{"group": "g", **fields}]}


GROUP0 = "$.data.groups[0]"


@every_case(("data", "message"), [
    ({"topics": [{"topic": "T"}]}, "Object missing required field route at $.data.topics[0]"),
    ({"topics": [{"topic": 1, "route": {}}]}, "Expected str, got int at $.data.topics[0].topic"),
    ({"topics": None}, "Expected array, got null at $.data.topics"),
    ({"groups": [{}]}, f"Object missing required field group at {GROUP0}"),
    (one_group(views=[{}]), f"Object missing required field connections at {GROUP0}.views[0]"),
    (one_group(clientIds="a"), f"Expected array | null, got str at {GROUP0}.clientIds"),
    (one_group(queues=[{"topic": "T", "brokerName": "a", "queueId": "0"}]), f"Expected int, got str at {GROUP0}.queues[0].queueId"),
    (one_group(seen={"where": "x", "at": "soon"}), f"Invalid RFC3339 encoded datetime at {GROUP0}.seen.at"),
    (one_group(reports=[{"clientId": "a", "evidence": {"queues": {}}}]), f"Expected array | null, got object at {GROUP0}.reports[0].evidence.queues"),
])  # fmt: skip
def test_a_wrong_field_is_named_by_its_path(data: dict[str, Any], message: str) -> None:
    assert problem(snapshot_text(data)).message == f"stdin: {message}"
    as_yaml_text = as_yaml({"schema": "rmqlb/snapshot", "formatVersion": "1.0", "data": data})
    assert problem(as_yaml_text).message == f"stdin: {message}"


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
    return docs.consumer_evidence(docs.convert(given, docs.RunningInfoDocument, "x"), "x")


def stacks(text: object, group: str = "g") -> tuple[str, ...] | None:
    return evidence(properties={"consumerGroup": group}, jstack=text).stacks


@pytest.mark.parametrize("form", ["dashboard", "broker"])
def test_a_java_consumers_report_has_its_queues_rates_and_limits(form: str) -> None:
    (command,) = FrameDecoder().feed(captured_frames()["5.5.0-b0-running-info"]["frame"])
    value = dashboard_data("running-order-svc-inst0")
    if form == "broker":
        value = docs.parse_document(command.body or b"", "x")
    found = docs.consumer_evidence(docs.convert(value, docs.RunningInfoDocument, "x"), "x", 1795226746000)
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


def test_an_offset_is_any_java_long_and_a_key_that_is_no_queue_is_refused_in_one_line() -> None:
    for number in (-(2**63), 2**63 - 1):
        (state,) = evidence(mqTable={T0: {"commitOffset": number}}).queues or ()
        assert state.commit_offset == number
    assert refusal(DocumentError, evidence, mqTable={"T": {}}).message == "x: 'T' is not a MessageQueue"


@settings(deadline=None)
@given(st.fixed_dictionaries({}, optional=dict.fromkeys(FIGURES, ANY_JSON)), ANY_JSON, ANY_JSON)
def test_whatever_a_report_holds_is_read_again(state: dict[str, object], statuses: object, jstack: object) -> None:
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
