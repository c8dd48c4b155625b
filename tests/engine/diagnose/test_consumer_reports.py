"""Which groups and consumers the rules of reports look at, and what they say where something is missing."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from msgspec.structs import replace

from rmqlb.model.diagnosis import Diagnosis
from rmqlb.model.group import BROADCASTING, CONSUME_ACTIVELY, CONSUME_POP, ConsumerGroup, MemberReport
from rmqlb.model.process_queue import ConsumerEvidence, ConsumeStatus
from rmqlb.model.snapshot import ClusterSnapshot
from tests.engine.diagnose.consuming import Doing, Reporting, of_looks, owned, stored, watched
from tests.engine.diagnose.running import Process, answer, changed, facts, finding, reason, running
from tests.engine.diagnose.test_thresholds import X, Y, seen, silent, since
from tests.engine.diagnose.watched_faults import HEAD, LIMITED, ORDERLY, PAIR, PAUSED, SLOW, Looks, of
from tests.support.mismatches import every_case

OF_REPORTS = (
    *("blocked-consumer", "head-blocked", "pull-stopped", "lock-lost"),
    *("dropped-but-consuming", "flow-control", "slow-consumer"),
)


def of_groups(looks: Looks, **changes: object) -> Looks:
    return tuple(changed(look, **changes) for look in looks)


def of_reports(looks: Looks, change: Callable[[MemberReport], MemberReport], client_ids: str = "xy") -> Looks:
    def reports(group: ConsumerGroup) -> dict[str, MemberReport]:
        return {i: change(report) if i in client_ids else report for i, report in group.reports.items()}

    return tuple(changed(look, reports=reports(look.groups["g"])) for look in looks)


def of_evidence(looks: Looks, change: Callable[[ConsumerEvidence], ConsumerEvidence], client_ids: str = "xy") -> Looks:
    def changed(report: MemberReport) -> MemberReport:
        return replace(report, evidence=change(report.evidence or ConsumerEvidence()))

    return of_reports(looks, changed, client_ids)


def answers(found: Diagnosis, *codes: str) -> set[str]:
    return {answer(found, code) for code in codes}


# --- which groups


def test_pop_has_no_process_queues_but_offsets_to_judge() -> None:
    found = of_looks(of_groups(watched(PAIR, of("x", since(-300))), consume_type=CONSUME_POP))
    assert answers(found, *OF_REPORTS, "slow-consumer", "frozen-consumer") == {"not applicable"}
    assert (answer(found, "lag-growing"), answer(found, "lag-stalled")) == ("in order", "error")
    healthy = of_looks(of_groups(watched(PAIR), consume_type=CONSUME_POP))
    assert answers(healthy, "lag-growing", "lag-stalled") == {"in order"}


def test_broadcasting_consumers_have_listeners_but_keep_their_offsets() -> None:
    looks = of_groups(watched(PAIR, {**of("x", since(-300)), **of("y", LIMITED)}), message_model=BROADCASTING)
    found = of_looks(looks)
    assert answer(found, "blocked-consumer") == "error"
    assert finding(found, "blocked-consumer").consequence.endswith("lag there unknown.")
    assert answers(found, "lag-growing", "lag-stalled", "slow-consumer", "frozen-consumer") == {"not applicable"}
    assert reason(found, "flow-control") == "BROADCASTING consumers keep their offsets themselves"


def test_consumers_that_pull_on_their_own_decide_when_they_take_messages_and_where_offsets_are() -> None:
    looks = watched(PAIR, {**of("x", since(-300)), **of("y", since(-300))})
    lagging = watched(PAIR, {**of("x", PAUSED), **of("y", SLOW)})
    for kind, lag in (("pull", {"unknown"}), ("lite-pull", {"error", "warning"}), ("assign", {"error", "warning"})):
        found = of_looks(of_reports(looks, partial(replace, consumer_type=kind)))
        assert answer(found, "blocked-consumer") == "not applicable"
        assert reason(found, "pull-stopped") == "its consumers pull on their own"
        found = of_looks(of_reports(lagging, partial(replace, consumer_type=kind)))
        assert answers(found, "lag-stalled", "lag-growing") == lag
    untyped = of_reports(looks, partial(replace, consumer_type=None))
    assert answer(of_looks(untyped), "blocked-consumer") == "error"
    assert answer(of_looks(of_groups(untyped, consume_type=None)), "blocked-consumer") == "error"
    assert answer(of_looks(of_groups(untyped, consume_type=CONSUME_ACTIVELY)), "blocked-consumer") == "not applicable"
    untyped = of_groups(of_reports(lagging, partial(replace, consumer_type=None)), consume_type=CONSUME_ACTIVELY)
    assert answers(of_looks(untyped), "lag-stalled", "lag-growing") == {"unknown"}
    mixed = of_reports(watched(PAIR, of("x", since(-300))), partial(replace, consumer_type="lite-pull"), "y")
    assert finding(of_looks(mixed), "blocked-consumer").consumers == ("x",)


# --- what is missing


def test_consumers_that_do_not_report_are_named() -> None:
    looks = watched(PAIR)
    bare = of_looks(of_reports(looks, partial(replace, evidence=None)))
    assert reason(bare, "blocked-consumer") == "the snapshot has no process queues of its consumers"
    for some in (
        of_reports(looks, partial(replace, evidence=None), "y"),
        of_evidence(looks, partial(replace, queues=None), "y"),
        (*looks[:-1], *of_evidence(looks[-1:], partial(replace, queues=None), "y")),
        watched(PAIR, None, silent("y")),
    ):
        assert reason(of_looks(some), "blocked-consumer") == "y did not report its process queues"
    twice = running(Process("x"), Process("x"), Process("y"))
    found = of_looks(watched(twice, {("x", queue): since(-300) for queue in owned(twice, "x")}))
    assert reason(found, "blocked-consumer") == "2 processes share client ID x: any of them may answer"


@every_case(
    ("field", "code", "text"),
    [
        ("cached", "blocked-consumer", "x does not report how many messages it has pulled"),
        ("cached", "head-blocked", "x does not report how many messages it has pulled"),
        ("last_consume", "blocked-consumer", "x does not report when it last consumed"),
        ("commit_offset", "head-blocked", "x does not report its offsets"),
        ("min_offset", "head-blocked", "x does not report its offsets"),
        ("last_pull", "pull-stopped", "x does not report when it last pulled"),
        ("last_lock", "lock-lost", "x does not report its locks"),
        ("locked", "lock-lost", "x does not report its locks"),
        ("dropped", "dropped-but-consuming", "x does not report which queues were taken from it"),
        ("cached_mib", "flow-control", "x does not report its limits of cached messages"),
        ("min_offset", "flow-control", "x does not report its limits of cached messages"),
        ("max_offset", "flow-control", "x does not report its limits of cached messages"),
    ],
)
def test_what_a_report_lacks_is_named(field: str, code: str, text: str) -> None:
    def without(its: ConsumerEvidence) -> ConsumerEvidence:
        return replace(its, queues=tuple(replace(item, **{field: None}) for item in its.queues or ()))

    looks = of_evidence(watched(PAIR, None, ORDERLY if code == "lock-lost" else None), without, "x")
    assert reason(of_looks(looks), code) == text


def test_the_order_and_the_time_of_a_report_must_be_known() -> None:
    looks = of_evidence(watched(PAIR), partial(replace, orderly=None), "x")
    assert reason(of_looks(looks), "lock-lost") == "x does not report whether it consumes in order"
    looks = of_evidence(watched(PAIR, of("x", HEAD)), partial(replace, read_at=None), "x")
    assert reason(of_looks(looks), "head-blocked") == "when x reported is unknown"
    assert reason(of_looks(looks), "pull-stopped") == "x reports no time, or when it reported is unknown"


# --- listeners


def test_messages_that_an_orderly_listener_has_are_waiting() -> None:
    one = replace(since(-300), pulled=lambda t: since(-300).done(t) + 1, consuming=1, locked_at=lambda t: t - 5)
    found = seen(of("x", one), ORDERLY)
    assert answer(found, "blocked-consumer") == "error"
    assert finding(found, "blocked-consumer").evidence[0].value == 4


def test_calls_that_failed_ended_too() -> None:
    def status(failed: float | None) -> str:
        looks = watched(PAIR, of("x", since(-50)), {"x": Reporting(consumed_per_s=0.0)})
        own = {"T": ConsumeStatus(20.0, 0.0, failed, 0, 40.0)}
        return answer(of_looks(of_evidence(looks, partial(replace, statuses=own), "x")), "blocked-consumer")

    assert (status(0.1), status(0.0), status(None)) == ("in order", "unknown", "unknown")


def test_a_queue_whose_time_moved_since_the_look_before_was_consumed() -> None:
    """An orderly consumer renews its locks, so that only two times tell."""
    moved = replace(since(-300), consumed_at=lambda t: -20.5 if t > -15 else -300, locked_at=lambda t: t - 5)
    stood = replace(moved, consumed_at=lambda t: -20.5 if t > -25 else -300)
    idle = {i: Reporting(orderly=True, consumed_per_s=0.0) for i in "xy"}
    assert answer(seen(of("x", moved), idle), "blocked-consumer") == "in order"
    assert answer(seen(of("x", stood), idle), "blocked-consumer") == "unknown"


def test_the_usual_duration_of_a_call_is_the_last_that_is_known_and_the_longest_of_its_topics() -> None:
    second = tuple(replace(PAIR.routes["T"].route, topic=topic) for topic in "TU")
    two = running(*(Process(i, topics=("T", "U")) for i in "xy"), routes=second)

    def blocked(calls: dict[str, float], before: float = 0.0) -> str:
        looks = watched(two, {("x", queue): since(-300) for queue in owned(two, "x")}, looks=(-8, 0))
        statuses = {topic: ConsumeStatus(ms, 0.0, 0.0, 0, 1e6) for topic, ms in calls.items()}
        first = {topic: ConsumeStatus(before, 0.0, 0.0, 0, 1e6) for topic in calls}
        looks = (
            *of_evidence(looks[:1], partial(replace, statuses=first), "x"),
            *of_evidence(looks[1:], partial(replace, statuses=statuses), "x"),
        )
        return answer(of_looks(looks), "blocked-consumer")

    assert blocked({"T": 800.0, "U": 20.0}) == "error"
    assert blocked({"T": 801.0, "U": 20.0}) == "unknown"
    assert blocked({"T": 20.0, "U": 801.0}) == "unknown"
    assert blocked({"T": 20.0}) == "unknown"  # nothing is known of U
    assert blocked({"T": 0.0, "U": 0.0}, before=20.0) == "error"
    assert blocked({"T": 20.0, "U": 20.0}, before=5000.0) == "error"


def test_the_age_of_a_blocked_listener_is_that_of_the_queues_that_wait() -> None:
    idle = replace(since(-70), pulled=since(-70).done)
    its = finding(seen({**of("x", since(-100)), ("x", X): idle}), "blocked-consumer")
    assert X not in its.queues
    assert its.evidence[1].value == 100


# --- heads, locks and silent consumers


def test_only_a_message_that_was_pulled_later_shows_that_a_head_does_not_wait_for_a_thread() -> None:
    head = replace(HEAD, consumed_at=lambda _: -90)
    still = {"consumed_at": lambda _: -20, "locked_at": lambda _: -5000}
    quiet = replace(Doing(), end=lambda _: 0, done=lambda _: 0, pulled=lambda _: 0, **still)

    def other(done: int) -> str:
        does = replace(
            quiet,
            end=lambda t: 2.0 if t < -5 else float(done),
            done=lambda t: 0.0 if t < -5 else float(done),
            pulled=lambda t: 2.0 if t < -5 else float(done),
        )
        doing = {**of("x", quiet), ("x", owned(PAIR, "x")[1]): does, ("x", X): head}
        return answer(seen(doing, looks=(-10, 0)), "head-blocked")

    assert (other(2), other(3)) == ("unknown", "warning")


def test_locks_of_consumers_that_are_not_orderly_mean_nothing() -> None:
    three = running(*map(Process, "wxyz"))
    mine = owned(three, "x")[0]
    some = {i: Reporting(orderly=True) for i in "xyz"}
    found = of_looks(watched(three, {("z", mine): Doing(), ("w", mine): Doing()}, some))
    assert finding(found, "lock-lost").consumers == ("x", "z")
    assert finding(found, "lock-lost").consequence.startswith("1 queue consumed by two consumers at once; ")


def test_a_consumer_is_silent_at_looks_that_list_it_and_have_no_answer() -> None:
    looks = watched(PAIR, of("x", since(-90)), silent("x"))
    views = tuple(
        replace(view, connections=tuple(each for each in view.connections if each.client_id != "x"))
        for view in looks[0].groups["g"].views or ()
    )
    unlisted, answered = of_groups(looks[:1], views=views), watched(PAIR, of("x", since(-90)))[:1]
    for first in (unlisted, answered):
        assert answer(of_looks((*first, looks[-1])), "frozen-consumer") == "unknown"
    assert answer(of_looks((looks[0], looks[-1])), "frozen-consumer") == "error"
    assert answer(of_looks((*answered, *looks[1:])), "frozen-consumer") == "error"
    other = of_groups(looks[:1], topics=("U",))  # brokers give other topics at another look
    assert "different subscriptions" in reason(of_looks((*other, *looks[1:])), "frozen-consumer")


# --- lag


def test_slow_consumers_need_the_calls_of_others() -> None:
    looks = watched(PAIR, of("x", SLOW), {"x": Reporting(call_ms=200.0)})
    for ids in ("x", "y"):
        found = of_looks(of_evidence(looks, partial(replace, statuses=None), ids))
        assert reason(found, "slow-consumer") == "x or the others do not report how long calls of their listeners take"


def test_the_evidence_of_a_slow_consumer() -> None:
    three = running(*map(Process, "xyz"), Process("w", age_s=3600))
    calls = {"x": 200.0, "y": 90.0, "z": 10.0, "w": 30.0}
    says = {i: Reporting(call_ms=ms, consumed_per_s=8.0) for i, ms in calls.items()}
    looks = watched(three, {("x", queue): SLOW for queue in owned(three, "x")}, says)
    its = finding(of_looks(looks), "slow-consumer")
    # The median of 10, 30 and 90 ms is 30; x has 2 queues of 10 messages per second.
    assert facts(its) == [
        ("ms per call of the listener of x", 200, 60),
        ("messages of T that x consumes per second", 8, None),
        ("messages of T that arrive for x per second", 20, None),
    ]
    assert its.consequence.endswith("that of 3 other consumers does not; 1,804 messages unread there.")


def test_a_queue_that_the_last_look_lacks_is_unknown() -> None:
    def lacking(look: ClusterSnapshot) -> ClusterSnapshot:
        return changed(look, queues={q: state for q, state in look.groups["g"].queues.items() if q != X})

    looks = watched(PAIR)
    assert reason(of_looks((*looks[:-1], lacking(looks[-1]))), "lag-stalled") == "the offsets of 1 queue are unknown"
    made_since = (*map(lacking, looks[:-1]), looks[-1])
    assert reason(of_looks(made_since), "lag-stalled").startswith("lag trend (2 messages in 1 queue): ")


def test_offsets_may_go_back_while_a_queue_changes_hands() -> None:
    """The former owner stores its offset over that of the new one."""
    ahead = Doing(done=lambda t: stored(t) - 2 if t < -7 else stored(t) - 200)
    assert answer(seen({("x", X): ahead}), "offset-rewound") == "warning"
    moved = {("x", X): replace(ahead, until=-5), ("y", X): replace(ahead, since=-5)}
    its = finding(seen(moved), "offset-rewound")
    assert (its.severity, its.consequence) == ("info", "98 messages of 1 queue redelivered.")
    assert its.remedy == "Nothing is wrong: a rebalance may redeliver messages."
    both = finding(seen({**moved, ("y", Y): ahead}), "offset-rewound")
    assert (both.severity, both.queues) == ("warning", (Y,))
    young = running(Process("x"), Process("y", age_s=20))
    assert answer(of_looks(watched(young, {("x", X): ahead})), "offset-rewound") == "info"
