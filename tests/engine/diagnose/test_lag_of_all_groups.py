"""Lag is judged by the last look and in every group with offsets, and other rules name what it comes of."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from rmqlb.engine.diagnose.lags import QueueLag
from rmqlb.model.diagnosis import Diagnosis
from rmqlb.model.group import CONSUME_POP, Connection, ProxyView, Seen
from rmqlb.model.snapshot import ClusterSnapshot
from tests.engine.diagnose.consuming import Doing, Reporting, of_looks, owned, stored, watched
from tests.engine.diagnose.running import AT, Process, causes, changed, diagnosed, grave, running
from tests.engine.diagnose.watched_faults import HOT, LIMITED, PAIR, PAUSED, SLOW, Looks, of
from tests.support.builders import route
from tests.support.mismatches import every_case

MINUTES_5 = (-300, -150, 0)


def stopped_at(since: float, unread: int) -> Doing:
    """Its consumer stopped then, with so many messages unread; before it had read all."""
    return Doing(
        end=lambda t: 100_000 + unread + 1020 * max(t - since, 0),
        done=lambda _: 100_000,
        pulled=lambda _: 100_000,
        consumed_at=lambda _: since,
        stored_at=lambda _: since,
    )


@pytest.mark.parametrize("unread", [0, 4])
def test_offsets_that_never_move_are_stalled_whatever_was_unread_at_first(unread: int) -> None:
    found = of_looks(watched(PAIR, of("x", stopped_at(-300, unread)), looks=MINUTES_5))
    assert grave(found) == ["lag-stalled"]
    unread_at = [each.value for each in found.findings[0].evidence if each.fact == "unread messages"]
    assert unread_at == [4 * unread, 4 * (153_000 + unread), 4 * (306_000 + unread)]


@pytest.mark.parametrize("first", [0, 4])
def test_lag_that_begins_small_grows(first: int) -> None:
    def behind(t: float) -> float:
        return 100_000 + 20 * (t + 300)

    slow = Doing(end=lambda t: 100_000 + first + 1020 * (t + 300), done=behind, pulled=behind)
    assert grave(of_looks(watched(PAIR, {**of("x", slow), **of("y", slow)}, looks=MINUTES_5))) == ["lag-growing"]


def unknown_of(looks: Looks) -> dict[str, tuple[str, str]]:
    return {each.code: (each.reason, each.remedy or "") for each in of_looks(looks).unknown}


def test_a_reason_says_what_the_rule_wants_and_its_advice_gives_that() -> None:
    """A call of 15 s keeps an offset for as long, so that three looks over 21 s say nothing."""
    slow_calls = {i: Reporting(call_ms=15_000.0) for i in "xy"}
    reason, remedy = unknown_of(watched(PAIR, of("x", PAUSED), slow_calls, looks=(-21, -11, 0)))["lag-stalled"]
    assert reason == "lag trend (12,000 messages in 4 queues): needs offsets that stand still for 30 s, got 21 s"
    assert remedy.startswith("look again 15 s later (--interval 15s);")
    followed = watched(PAIR, of("x", PAUSED), slow_calls, looks=(-30, -15, 0))
    assert [each.code for each in of_looks(followed).findings] == ["lag-stalled"]


def test_a_growth_that_commits_may_hide_asks_for_a_minute() -> None:
    lag = QueueLag((0, 10_000, 21_000), (0, 100, 210), (100, 110, 120))
    assert (lag.state, lag.needed_ms, lag.shown_ms) == ("undecided", 60_000, 21_000)


def test_a_lag_that_has_just_come_asks_for_one_more_sample() -> None:
    """Nothing was unread 5 minutes ago: a burst that began just now looks the same."""
    late = Doing(
        end=lambda t: 100_000 + 10 * (t + 600) + (9000 if t == 0 else 0), done=lambda t: 100_000 + 10 * (t + 600)
    )
    reason, remedy = unknown_of(watched(PAIR, of("x", late), looks=MINUTES_5))["lag-growing"]
    assert reason == "lag trend (36,000 messages in 4 queues): needs 3 samples since it was small or shrank, got 2"
    assert remedy.startswith("look again some seconds later")


@given(
    st.integers(0, 2000),
    st.integers(0, 2000),
    st.lists(st.integers(0, 5000), min_size=3, max_size=6),
    st.integers(1, 60),
)
@settings(max_examples=300)
def test_looks_over_a_minute_decide(per_look: int, first: int, arriving: list[int], every_s: int) -> None:
    """Whatever comes, looks over the time that a reason asks for are never undecided for want of time alone."""
    at = tuple(number * every_s * 1000 for number in range(len(arriving)))
    offsets = tuple(number * per_look for number in range(len(arriving)))
    ends = [first]
    for each in arriving[1:]:
        ends.append(ends[-1] + each)
    lags = tuple(max(end - offset, 0) for end, offset in zip(ends, offsets, strict=True))
    lag = QueueLag(at, offsets, lags)
    if lag.state in ("standing", "undecided"):
        assert lag.shown_ms < lag.needed_ms or lag.samples < 3


# -- every group with offsets


def grpc(*looks: ClusterSnapshot) -> Looks:
    """The same group, whose consumers a Proxy lists."""
    view = ProxyView((Connection("host@1@0@abc1"),), Seen("Proxy p:8080", AT), "p:8080")
    return tuple(
        changed(
            look,
            views=(),
            proxies=(view,),
            reports={},
            consume_type=None,
            queues={queue: replace(state, owners=None) for queue, state in look.groups["g"].queues.items()},
        )
        for look in looks
    )


def popped(*looks: ClusterSnapshot) -> Looks:
    return tuple(changed(look, consume_type=CONSUME_POP) for look in looks)


def slower(t: float) -> float:
    return stored(-300) + 5 * (t + 300)


@pytest.mark.parametrize("kind", [grpc, popped])
def test_lag_of_groups_whose_queues_nobody_owns(kind: object) -> None:
    assert callable(kind)

    def found(*does: Doing) -> Diagnosis:
        return of_looks(kind(*watched(PAIR, {key: each for i in "xy" for each in does for key in of(i, each)})))

    (stalled,) = (each for each in found(PAUSED).findings if each.code == "lag-stalled")
    assert (stalled.severity, len(stalled.queues)) == ("error", 8)
    assert stalled.remedy == "Check whether its consumers' processes run, and what their listeners wait for."
    assert grave(found(Doing(done=slower))) == ["lag-growing"]
    assert grave(found()) == []
    assert {"lag-growing", "lag-stalled"} <= {*found().checked}


def test_lag_of_a_group_without_consumers_comes_of_that() -> None:
    found = diagnosed(running())
    assert grave(found) == ["no-consumer-online"]
    assert causes(found)["lag-stalled"] == ("no-consumer-online",)


# -- what other rules say


@every_case("age_s", [60, 100, 200])
def test_queues_that_stall_by_other_tags_come_of_the_tags_at_every_age(age_s: int) -> None:
    pair = running(Process("x", takes="red", age_s=age_s), Process("y", takes="blue", age_s=age_s))
    looks = []
    for look in watched(pair, of("x", PAUSED)):
        group = look.groups["g"]
        reports = {
            i: replace(report, evidence=replace(report.evidence, filters={"T": "red" if i == "x" else "blue"}))
            for i, report in group.reports.items()
            if report.evidence is not None
        }
        looks.append(replace(look, groups={"g": replace(group, reports=reports)}))
    found = of_looks(tuple(looks))
    assert grave(found) == ["subscription-mismatch"]
    assert (found.findings[0].severity, len(found.findings[0].queues)) == ("error", 4)
    assert causes(found)["lag-stalled"] == ("subscription-mismatch",)


@pytest.mark.parametrize("second", [None, 1])
def test_a_topic_that_nobody_can_read_is_the_cause(second: int | None) -> None:
    """More queues would not help, as their permission would be the same; a topic that can be read does not hide it."""
    unreadable = replace(route("T", a=4), queue_datas=(replace(route("T", a=4).queue_datas[0], perm=2),))
    routes = (unreadable, *((route("U", a=second),) if second else ()))
    topics = tuple(each.topic for each in routes)
    readable = (route("T", a=4), *routes[1:])
    looked = running(Process("x", topics=topics), Process("y", topics=topics), routes=readable)
    queues = {queue: state for queue, state in looked.groups["g"].queues.items() if queue.topic != "T"}
    looked = replace(looked, routes={**looked.routes, "T": replace(looked.routes["T"], route=unreadable)})
    found = diagnosed(changed(looked, queues=queues))
    assert grave(found) == ["no-read-queues"]
    (its,) = found.findings
    assert (its.topic, its.consequence) == ("T", "Topic T has no readable queue: consumers get nothing of it.")
    assert [(each.fact, each.value) for each in its.evidence] == [
        ("permission and read queues of T at a", "perm 2, readQueueNums 4")
    ]
    assert causes(found)["more-consumers-than-queues"] == ("no-read-queues",)


@pytest.mark.parametrize("listed", ["T", "U"])
def test_nobody_is_idle_where_both_own_queues_by_different_subscriptions(listed: str) -> None:
    """Brokers list the topics of the last heartbeat only, and consumers that report no topics own queues of others."""
    looked = running(
        Process("x", topics=("T",)), Process("y", topics=("U",)), routes=(route("T", a=1), route("U", a=2))
    )
    reports = {i: replace(report, topics=None) for i, report in looked.groups["g"].reports.items()}
    found = diagnosed(changed(looked, topics=(listed,), reports=reports))
    assert {each.code for each in found.findings}.isdisjoint({"idle-by-strategy", "more-consumers-than-queues"})


# -- a queue that gets most of a topic's messages


FOUR = running(Process("x"), Process("y"), routes=(route(a=4),))


def arriving(per_s: float, consumed: float, since: float = -400) -> Doing:
    """So many messages per second, and so many consumed per second since then."""

    def end(t: float) -> float:
        return 100_000 + per_s * (t + 1000)

    return Doing(end=end, done=lambda t: min(end(since) + consumed * (t - since), end(t)), pulled=end)


def test_the_shares_of_a_hot_queue_are_its_evidence_and_keys_its_remedy() -> None:
    """70 % of the inflow and 66 % of the lag in one of four queues, whose consumer is late in its other queue too."""
    hot, also = owned(FOUR, "x")
    rest = {("y", queue): arriving(20, 20) for queue in owned(FOUR, "y")}
    looks = watched(FOUR, {("x", hot): arriving(140, 48), ("x", also): arriving(20, 3), **rest}, looks=(-40, -20, 0))
    found = of_looks(looks)
    assert grave(found) == ["hot-queue"]
    (its,) = found.findings
    assert (its.severity, its.topic, its.queues, its.consumers) == ("warning", "T", (hot, also), ("x",))
    shares = {each.fact: (each.value, each.threshold) for each in its.evidence}
    assert shares["percent of the messages of T that arrive in T a:0"] == (70, 50)
    unread, least = shares["percent of the unread messages of T in T a:0"]
    assert (int(unread) > 80, least) == (True, 50)
    assert "spread the keys" in its.remedy
    assert "more consumers do not help" in its.remedy
    assert {each.code for each in found.consequences} == {"lag-growing", "flow-control"}


@pytest.mark.parametrize(
    ("share", "named"),
    [(60, "hot-queue"), (40, "flow-control")],  # the others get the rest of 100 messages per second; 50 % is hot
)
def test_from_which_share_on_a_queue_is_hot(share: int, named: str) -> None:
    hot, *others = [(i, queue) for i in "xy" for queue in owned(FOUR, i)]
    doing = {key: arriving((100 - share) / 3, (100 - share) / 3) for key in others} | {hot: arriving(share, 20)}
    assert grave(of_looks(watched(FOUR, doing))) == [named]


def test_even_queues_of_slow_consumers_and_a_hot_queue_that_is_read_are_not_hot() -> None:
    assert grave(of_looks(watched(PAIR, {**of("x", SLOW), **of("y", SLOW)}))) == ["lag-growing"]
    assert grave(of_looks(watched(PAIR, {**of("x", LIMITED), **of("y", LIMITED)}))) == ["flow-control"]
    assert grave(of_looks(watched(PAIR, of("x", arriving(200, 200), 1)))) == []
    alone = running(Process("x"), routes=(route(a=1),))
    assert grave(of_looks(watched(alone, {("x", owned(alone, "x")[0]): HOT}))) == ["flow-control"]


def test_a_queue_that_any_consumer_reads_is_not_hot() -> None:
    looks = watched(PAIR, of("x", HOT, 1), {i: Reporting() for i in "xy"})
    found = of_looks(tuple(changed(look, consume_type=CONSUME_POP) for look in looks))
    assert {each.code: each.reason for each in found.not_applicable}["hot-queue"] == (
        "any of its consumers may read any queue"
    )
    assert grave(found) == ["lag-growing"]
