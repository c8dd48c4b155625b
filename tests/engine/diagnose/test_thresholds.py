"""Each rule of consumers' reports below, at and above its threshold.

Reports are received half a second after the look, at which consumers have just pulled: their clocks are ours.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from msgspec.structs import replace

from rmqlb.model.diagnosis import Diagnosis, Evidence, GroupFinding
from rmqlb.model.group import BROADCASTING, Connection, ConsumerGroup
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.process_queue import PullLimits
from rmqlb.model.snapshot import ClusterSnapshot
from tests.engine.diagnose.consuming import LOOKS, Doing, Reporting, earlier, owned, stored, watched
from tests.engine.diagnose.running import Process, diagnosed, grave, running
from tests.engine.diagnose.watched_faults import (
    FAILS_IN_ORDER,
    HANGS_IN_ORDER,
    HEAD,
    ORDERLY,
    PAIR,
    SLOW,
    UNLOCKED,
    UNPULLED,
    Looks,
    of,
    slower,
    stops_at,
)
from tests.support.mismatches import every_case

NOW = Doing(pulled_at=lambda t: t + 0.5)
X, Y = owned(PAIR, "x")[0], owned(PAIR, "y")[0]


def of_looks(looks: Looks) -> Diagnosis:
    return diagnosed(looks[-1], earlier=earlier(looks))


def seen(
    doing: Mapping[tuple[str, MessageQueue], Doing] | None = None,
    reporting: Mapping[str, Reporting] | None = None,
    looks: tuple[float, ...] = LOOKS,
) -> Diagnosis:
    return of_looks(watched(PAIR, doing, reporting, looks))


def answer(found: Diagnosis, code: str) -> str:
    """Severity, what it comes of, or how else the rule answered."""
    for finding in found.findings:
        if finding.code == code:
            return finding.severity
    for consequence in found.consequences:
        if consequence.code == code:
            return f"of {', '.join(consequence.causes)}"
    if code in found.checked:
        return "in order"
    return "unknown" if code in {each.code for each in found.unknown} else "not applicable"


def reason(found: Diagnosis, code: str) -> str:
    return next(each.reason for each in (*found.unknown, *found.not_applicable) if each.code == code)


def finding(found: Diagnosis, code: str) -> GroupFinding:
    (one,) = (each for each in found.findings if each.code == code)
    return one


def facts(its: tuple[Evidence, ...]) -> list[tuple[str, str | int, str | int | None]]:
    return [(each.fact, each.value, each.threshold) for each in its]


# --- blocked-consumer


def since(s: float) -> Doing:
    """It consumes nothing from then on, and pulls."""
    return replace(NOW, done=stops_at(s, NOW.done), consumed_at=stops_at(s, lambda t: t))


def test_a_listener_is_blocked_after_more_than_a_minute() -> None:
    assert answer(seen(of("x", since(-59.501))), "blocked-consumer") == "error"
    assert answer(seen(of("x", since(-59.5))), "blocked-consumer") == "in order"  # calls ended within the last minute
    idle = {"x": Reporting(consumed_per_s=0.0)}
    assert answer(seen(of("x", since(-59.5)), idle), "blocked-consumer") == "unknown"
    assert reason(seen(of("x", since(-59.5)), idle), "blocked-consumer").startswith(
        "x has had messages for less than 60 s"
    )
    assert reason(seen(of("x", since(-300)), looks=(0,)), "blocked-consumer") == (
        "the listener of x has messages, and ended no call for 0 s or more; more than usual is 8 s"
    )


def test_a_listener_without_messages_is_not_blocked() -> None:
    nothing = replace(since(-300), pulled=stops_at(-300, NOW.done))
    assert answer(seen(of("x", nothing)), "blocked-consumer") == "in order"


def test_one_queue_that_is_consumed_shows_a_listener_that_returns() -> None:
    some = {**of("x", since(-300)), ("x", X): replace(NOW, pulled=NOW.done)}
    assert answer(seen(some), "blocked-consumer") == "in order"
    before = replace(some["x", X], consumed_at=lambda _: -59.5, locked_at=lambda _: -60)
    assert answer(seen({**some, ("x", X): before}, looks=(0,)), "blocked-consumer") == "in order"
    taken = replace(before, locked_at=before.consumed_at)  # it has only begun to have the queue then
    assert answer(seen({**some, ("x", X): taken}), "blocked-consumer") == "error"


@every_case(
    ("call_ms", "span_s", "expected"),
    [
        (20.0, 8, "error"),
        (20.0, 7.999, "unknown"),
        (800.0, 8, "error"),
        (900.0, 8.999, "unknown"),
        (900.0, 9, "error"),
        (7000.0, 59.999, "unknown"),
        (7000.0, 60, "error"),
        (0.0, 59.999, "unknown"),
        (0.0, 60, "error"),
    ],
)
def test_looks_must_show_more_than_a_usual_call(call_ms: float, span_s: float, expected: str) -> None:
    """Ten times the mean, 8 s at least, a minute at most or where no mean is known; much is pulled all the time."""
    says = {"x": Reporting(call_ms=call_ms, pulled_per_s=1e6, consumed_per_s=None if call_ms else 0.0)}
    assert answer(seen(of("x", since(-500)), says, (-span_s, 0)), "blocked-consumer") == expected


def test_messages_that_were_pulled_more_than_a_minute_ago_need_no_long_looks() -> None:
    """4 queues with 4,002 - 10 x 10 messages each at the look before; the listener ended no call in an hour."""

    def blocked(pulled_per_s: float | None, before: float = -10) -> str:
        says = {"x": Reporting(call_ms=0.0, pulled_per_s=pulled_per_s, consumed_per_s=0.0)}
        return answer(seen(of("x", since(-400)), says, (before, 0)), "blocked-consumer")

    # 4 x 3,902 messages are more than what is pulled of the topic in 60 s.
    assert blocked(4 * 3902 / 60 - 0.01) == "error"
    assert blocked(4 * 3902 / 60) == "unknown"
    assert blocked(0, -9.999) == "unknown"  # what was pulled since the last sample may be new
    assert blocked(0) == "error"


def test_the_evidence_of_a_blocked_listener() -> None:
    stacks = (
        "ConsumeMessageThread_g_1 WAITING\njdk.Unsafe.park\nPool.borrow\nMine.consume\nmore",
        "ConsumeMessageThread_g_2 WAITING\njdk.Unsafe.park\nPool.borrow\nMine.consume\nother",
        "ConsumeMessageThread_g_3 RUNNABLE\nSocket.read",
    )
    found = seen(of("x", since(-100)), {"x": Reporting(stacks=stacks)})
    its = finding(found, "blocked-consumer")
    assert (its.consumers, len(its.queues), its.topic, its.severity) == (("x",), 4, "T", "error")
    # 100 s x 10 messages and the 2 before, in each of 4 queues.
    assert facts(its.evidence) == [
        ("messages that x has pulled and not consumed", 4 * 1002, 1),
        ("seconds since x consumed a message of these queues", 100, 60),
        ("seconds between looks in which no call of its listener ended at x", 20, 8),
        ("first frames of 2 of 3 consume threads of x", "jdk.Unsafe.park < Pool.borrow < Mine.consume", None),
        ("first frames of 1 of 3 consume threads of x", "Socket.read", None),
    ]
    assert its.evidence[0].at == "2026-11-21T02:00:00.500000Z"
    assert its.consequence == "1 consumer consumes nothing: 4 queues wait; 4,008 messages unread there."
    assert its.remedy.startswith("Look at the stack traces of x to see")


def test_what_a_blocked_listener_leads_to_is_not_a_cause() -> None:
    full = replace(since(-500), pulled=lambda _: NOW.done(-500) + 1001)
    found = seen(of("x", full))
    assert grave(found) == ["blocked-consumer"]
    assert {each.code for each in found.consequences} == {"head-blocked", "flow-control", "lag-stalled"}


# --- head-blocked


def test_a_message_that_is_not_finished_while_later_ones_are() -> None:
    looks = (-8, 0)
    assert answer(seen({("x", X): HEAD}, looks=looks), "head-blocked") == "warning"
    assert answer(seen({("x", X): HEAD}, looks=(-7.999, 0)), "head-blocked") == "unknown"
    stands = replace(HEAD, consumed_at=lambda _: -90)  # no other message of the queue was finished meanwhile
    # Threads take messages in the order in which they were pulled, and other queues got and finished theirs.
    assert answer(seen({("x", X): stands}, looks=looks), "head-blocked") == "warning"
    quiet = replace(
        NOW,
        end=lambda _: 5000,
        done=lambda _: 5000,
        pulled=lambda _: 5000,
        consumed_at=lambda _: -20,
        locked_at=lambda _: -5000,
    )
    alone = {**of("x", quiet), ("x", X): stands}
    assert answer(seen(alone, looks=looks), "head-blocked") == "unknown"


def test_a_consumer_that_has_never_finished_a_message_of_the_queue_commits_none() -> None:
    """It reports what the broker has stored: nothing, or 0."""
    for reported in (-1, 0):
        assert answer(seen({("x", X): replace(HEAD, reports=reported)}), "head-blocked") == "warning"
        moved = replace(HEAD, reports=reported, gaps=0, done=lambda t: stored(-90) + (t > -5))
        assert answer(seen({("x", X): moved}), "head-blocked") == "in order"


def test_a_first_message_that_moves_is_in_order() -> None:
    assert answer(seen(), "head-blocked") == "in order"
    moved = replace(HEAD, done=lambda t: stored(-90) + (t > -5))
    assert answer(seen({("x", X): moved}), "head-blocked") == "in order"


def test_a_message_that_was_only_just_pulled_is_not_judged() -> None:
    new = replace(NOW, end=lambda t: 5000 + (t > -5), done=lambda _: 5000, pulled=lambda t: 5000 + (t > -5))
    assert answer(seen({("x", X): new}), "head-blocked") == "unknown"


def test_a_span_that_keeps_the_consumer_from_pulling_is_an_error() -> None:
    def span(messages: int) -> str:
        does = replace(HEAD, pulled=lambda _: HEAD.done(0) + messages + 1, gaps=messages - 500)
        return answer(seen({("x", X): does}), "head-blocked")

    assert span(2000) == "warning"
    assert span(2001) == "error"


def test_an_orderly_consumer_stops_at_a_message_that_fails_or_hangs() -> None:
    for does in (FAILS_IN_ORDER, HANGS_IN_ORDER):
        found = seen({("x", X): does}, ORDERLY)
        assert grave(found) == ["head-blocked"]
        assert finding(found, "head-blocked").severity == "error"
    found = seen({("x", X): HANGS_IN_ORDER}, ORDERLY)
    # 90 s x 10 messages and 2 before, of which the listener has one.
    assert facts(finding(found, "head-blocked").evidence) == [
        ("seconds for which offset 109098 of T a:0 is not finished at x", 20, 8),
        ("messages of T a:0 after it that x has", 901, None),
    ]


# --- flow-control


@every_case(
    ("does", "orderly", "expected"),
    [
        (replace(SLOW, pulled=lambda t: SLOW.done(t) + 1001), False, "warning"),
        (replace(SLOW, pulled=lambda t: SLOW.done(t) + 1000), False, "in order"),
        (replace(SLOW, mib=101), False, "warning"),
        (replace(SLOW, mib=100), False, "in order"),
        (replace(SLOW, pulled=lambda t: SLOW.done(t) + 2002, gaps=1500), False, "warning"),
        (replace(SLOW, pulled=lambda t: SLOW.done(t) + 2001, gaps=1500), False, "in order"),
        (replace(SLOW, pulled=lambda t: SLOW.done(t) + 2002, gaps=1500), True, "in order"),
        (replace(SLOW, pulled=lambda t: SLOW.done(t) + 1001, consuming=1), True, "warning"),
        (replace(SLOW, pulled=lambda t: SLOW.done(t) + 1000, consuming=1), True, "in order"),
    ],
)
def test_a_consumer_holds_more_than_it_may(does: Doing, orderly: bool, expected: str) -> None:
    """Of messages, those included that an orderly listener has; of MiB; of the span, unless it is orderly."""
    both = {**of("x", does), **of("y", does)}
    assert answer(seen(both, {i: Reporting(orderly=orderly) for i in "xy"}), "flow-control") == expected


def test_a_consumer_that_may_hold_more() -> None:
    does = replace(SLOW, pulled=lambda t: SLOW.done(t) + 1001)
    both = {**of("x", does), **of("y", does)}
    wide = {i: Reporting(limits=PullLimits(1001, 100, 2000)) for i in "xy"}
    assert answer(seen(both, wide), "flow-control") == "in order"
    unknown = {i: Reporting(limits=PullLimits(1001, None, 2000)) for i in "xy"}
    assert answer(seen(both, unknown), "flow-control") == "unknown"


def test_a_consumer_that_catches_up_may_be_held_back() -> None:
    backlog = Doing(done=lambda t: stored(t) - 50_000 - 5 * t, pulled=lambda t: stored(t) - 50_000 - 5 * t + 1010)
    both = {**of("x", backlog), **of("y", backlog)}
    assert answer(seen(both), "flow-control") == "warning"  # 5 messages per second are consumed, 10 arrive
    catching_up = Doing(done=lambda t: stored(t) - 50_000 + 15 * t, pulled=lambda t: stored(t) - 50_000 + 15 * t + 1010)
    found = seen({**of("x", catching_up), **of("y", catching_up)})
    assert answer(found, "flow-control") == "info"
    assert finding(found, "flow-control").remedy == "Nothing is wrong while the lag shrinks."
    assert answer(seen({**of("x", catching_up)}, looks=(0,)), "flow-control") == "unknown"


# --- pull-stopped


def pulls_until(s: float) -> Doing:
    return replace(
        UNPULLED,
        pulled_at=stops_at(s, lambda t: t),
        done=stops_at(s, stored),
        pulled=stops_at(s, stored),
        locked_at=lambda _: -5000,
    )


def test_pulls_have_stopped_after_two_minutes() -> None:
    others = dict.fromkeys(of("x", NOW), NOW)
    assert answer(seen({**others, ("x", X): pulls_until(-119.501)}), "pull-stopped") == "error"
    assert answer(seen({**others, ("x", X): pulls_until(-119.5)}), "pull-stopped") == "in order"
    nothing_waits = replace(pulls_until(-300), end=stops_at(-300, stored))
    assert answer(seen({("x", X): nothing_waits}), "pull-stopped") == "warning"


def test_a_consumer_that_pulls_nothing_at_all_is_judged_when_a_pull_must_have_ended() -> None:
    """Its clock may be behind, but a pull of an idle queue takes 20 s at most."""
    all_of_x = of("x", pulls_until(-300))
    assert answer(seen(all_of_x, looks=(-20, -10, 0)), "pull-stopped") == "unknown"
    assert answer(seen(all_of_x, looks=(-20.001, -10, 0)), "pull-stopped") == "error"
    one_moved = {**all_of_x, ("x", X): replace(pulls_until(-300), pulled_at=lambda t: -280 if t > -15 else -300)}
    assert answer(seen(one_moved, looks=(-30.001, -20, -10, 0)), "pull-stopped") == "in order"


# --- lock-lost


def locked_until(s: float) -> Doing:
    return replace(UNLOCKED, locked_at=stops_at(s, lambda t: t), pulled_at=NOW.pulled_at)


def test_a_lock_is_lost_after_30_s() -> None:
    assert answer(seen({("x", X): locked_until(-29.501)}, ORDERLY), "lock-lost") == "error"
    assert answer(seen({("x", X): locked_until(-29.5)}, ORDERLY), "lock-lost") == "in order"
    unlocked = replace(locked_until(-29.5), locked=False)
    assert answer(seen({("x", X): unlocked}, ORDERLY), "lock-lost") == "unknown"
    nothing_waits = replace(locked_until(-100), end=stops_at(-100, stored), done=stops_at(-100, stored))
    assert answer(seen({("x", X): nothing_waits}, ORDERLY), "lock-lost") == "warning"


def test_consumers_that_are_not_orderly_need_no_lock() -> None:
    found = seen({("x", X): locked_until(-300)})
    assert (answer(found, "lock-lost"), reason(found, "lock-lost")) == (
        "not applicable",
        "its consumers do not consume in order",
    )
    all_read = watched(PAIR, {("x", X): locked_until(-300)}, ORDERLY)
    looks = tuple(
        replace(look, groups={"g": replace(look.groups["g"], message_model=BROADCASTING)}) for look in all_read
    )
    assert answer(of_looks(looks), "lock-lost") == "not applicable"


def test_two_consumers_with_one_lock() -> None:
    found = seen({("x", Y): Doing()}, ORDERLY)
    assert answer(found, "lock-lost") == "error"
    assert finding(found, "lock-lost").consumers == ("x", "y")
    assert facts(finding(found, "lock-lost").evidence) == [("consumers that report the lock of T b:0: x, y", 2, 2)]
    new = replace(Doing(), since=-5)
    assert answer(seen({("x", Y): new}, ORDERLY), "lock-lost") == "unknown"
    assert answer(seen({("x", Y): replace(Doing(), locked=False)}, ORDERLY), "lock-lost") == "unknown"
    assert answer(seen({("x", Y): replace(Doing(), dropped=True)}, ORDERLY), "lock-lost") == "in order"


def test_a_group_that_has_just_changed_may_lack_locks() -> None:
    def severity(age_s: int) -> str:
        young = running(Process("x"), Process("y", age_s=age_s))
        return answer(of_looks(watched(young, {("x", X): locked_until(-40)}, ORDERLY)), "lock-lost")

    assert (severity(49), severity(50)) == ("info", "error")


# --- dropped-but-consuming


def test_a_queue_that_was_taken_away_and_is_still_consumed() -> None:
    dropped = replace(Doing(), dropped=True)
    assert answer(seen({("x", Y): dropped}), "dropped-but-consuming") == "error"
    still = replace(dropped, consumed_at=lambda _: -0.1)
    assert answer(seen({("x", Y): still}), "dropped-but-consuming") == "in order"
    assert answer(seen({("x", Y): replace(dropped, since=-5)}), "dropped-but-consuming") == "unknown"
    assert answer(seen({("x", Y): dropped}, looks=(0,)), "dropped-but-consuming") == "unknown"
    nobody = {("x", X): dropped}
    assert answer(seen(nobody), "dropped-but-consuming") == "warning"


# --- frozen-consumer


def silent(*client_ids: str) -> dict[str, Reporting]:
    return {i: Reporting(answers=False) for i in client_ids}


def test_a_consumer_that_does_not_answer_and_whose_queues_stand_is_frozen() -> None:
    stands = of("x", since(-90))
    assert answer(seen(stands, silent("x"), (-8, 0)), "frozen-consumer") == "error"
    assert answer(seen(stands, silent("x"), (-7.999, 0)), "frozen-consumer") == "unknown"
    one_moves = {**stands, ("x", X): Doing()}
    assert answer(seen(one_moves, silent("x")), "frozen-consumer") == "in order"
    nothing_waits = of("x", replace(since(-90), end=stops_at(-90, stored), done=stops_at(-90, stored)))
    assert answer(seen(nothing_waits, silent("x")), "frozen-consumer") == "unknown"
    assert answer(seen(stands), "frozen-consumer") == "in order"  # it answers


def test_consumers_that_all_do_not_answer_may_subscribe_to_different_topics() -> None:
    found = seen({**of("x", since(-90)), **of("y", since(-90))}, silent("x", "y"))
    assert "different subscriptions" in reason(found, "frozen-consumer")
    one = running(Process("x"))
    alone = {("x", queue): since(-90) for queue in owned(one, "x")}
    assert answer(of_looks(watched(one, alone, silent("x"))), "frozen-consumer") == "error"


def test_the_evidence_of_a_frozen_consumer() -> None:
    its = finding(seen(of("x", since(-90)), silent("x")), "frozen-consumer")
    assert facts(its.evidence) == [
        ("consumers that a:10911 lists", "x", None),
        ("consumers that b:10911 lists", "x", None),
        ("answer of x to the request for its running information", "timed out after 5 s", None),
        ("seconds in which no message of 4 queues predicted for x was consumed", 20, 8),
    ]
    # 90 s x 10 messages and 2 before, in each of 4 queues.
    assert its.consequence == "1 consumer is connected but not running: 4 queues not read; 3,608 messages unread there."


def test_a_request_that_failed_otherwise_shows_no_frozen_consumer() -> None:
    looks = watched(PAIR, of("x", since(-90)), silent("x"))
    refused = replace(looks[-1], unread=tuple(replace(part, no_answer=False) for part in looks[-1].unread))
    found = of_looks((*looks[:-1], refused))
    assert reason(found, "frozen-consumer") == "x did not report: timed out after 5 s"
    unasked = replace(looks[-1], unread=())
    assert "the snapshot has no request to it" in reason(of_looks((*looks[:-1], unasked)), "frozen-consumer")


# --- slow-consumer


@pytest.mark.parametrize(("call_ms", "expected"), [(40.0, "warning"), (39.9, "in order")])
def test_a_slow_consumer_takes_twice_what_others_take(call_ms: float, expected: str) -> None:
    found = seen(of("x", SLOW), {"x": Reporting(call_ms=call_ms)})
    assert answer(found, "slow-consumer") == expected
    assert answer(found, "lag-growing") == ("of slow-consumer" if expected == "warning" else "warning")


def test_no_consumer_is_slow_where_the_lag_of_all_grows() -> None:
    found = seen({**of("x", SLOW), **of("y", SLOW)}, {"x": Reporting(call_ms=500.0)})
    assert (answer(found, "slow-consumer"), answer(found, "lag-growing")) == ("in order", "warning")


# --- lag


@every_case(
    ("looks", "expected"),
    [
        ((-20, -10, 0), "warning"),
        ((-20, 0), "unknown"),
        ((-15, -5, 0), "warning"),
        ((-14.999, -5, 0), "unknown"),
    ],
)
def test_growth_needs_three_looks_over_15_s(looks: tuple[float, ...], expected: str) -> None:
    does = Doing(done=slower(0.2, -150), pulled=lambda t: slower(0.2, -150)(t) + 500)
    assert answer(seen({**of("x", does), **of("y", does)}, looks=looks), "lag-growing") == expected


def group_with(offsets: list[tuple[int, int]], **changes: object) -> Looks:
    """Looks 10 s apart, in each of which all queues have this end and this offset."""

    def at(number: int, end: int, offset: int) -> ConsumerGroup:
        look = watched(PAIR, looks=(10.0 * (number + 1 - len(offsets)),))[0].groups["g"]
        queues = {
            queue: replace(state, broker_offset=end, consumer_offset=offset, **changes)
            for queue, state in look.queues.items()
        }
        return replace(look, queues=queues)

    last = watched(PAIR)[-1]
    return tuple(replace(last, taken_at=None, groups={"g": at(number, *pair)}) for number, pair in enumerate(offsets))


@every_case(
    ("offsets", "growing", "stalled"),
    [
        # 10 messages per second consumed: 70 are committed late. 600 and more of 15 per second are 40 s.
        ([(1200, 100), (1350, 200), (1500, 300)], "warning", "in order"),
        ([(700, 100), (850, 200), (1000, 300)], "info", "in order"),
        ([(1200, 100), (1335, 200), (1470, 300)], "unknown", "in order"),  # it grew by 70 only
        ([(1200, 100), (1335, 200), (1471, 300)], "warning", "in order"),
        ([(1200, 100), (1299, 200), (1469, 300)], "in order", "in order"),  # less once, and then no more than that
        ([(1200, 100), (1299, 200), (1500, 300)], "unknown", "in order"),  # less once, and then more
        ([(170, 100), (350, 200), (370, 300)], "in order", "in order"),  # as little as is committed late
        ([(170, 100), (350, 200), (500, 300)], "info", "in order"),  # a small first value proves nothing
        ([(171, 100), (350, 200), (500, 300)], "info", "in order"),
        ([(100, 100), (1350, 200), (1500, 300)], "info", "in order"),  # nothing unread at first
        ([(100, 100), (200, 200), (1500, 300)], "unknown", "in order"),  # nothing unread until just now
        ([(100, 100), (300, 100), (500, 100)], "unknown", "unknown"),  # for 10 s
        ([(100, 100), (100, 100), (500, 100)], "in order", "in order"),  # for less than 10 s
        ([(1200, 100), (1350, 100), (1500, 100)], "in order", "error"),
        ([(1200, 100), (1200, 100), (1200, 100)], "in order", "error"),
        ([(1200, 100), (1200, 100)], "unknown", "unknown"),
        ([(1200, 100)], "unknown", "unknown"),
        ([(100, 100)], "in order", "in order"),
        ([(1200, 300), (1350, 200), (1500, 200)], "in order", "in order"),  # rewound
        ([(1200, -1), (1350, 0), (1500, 0)], "in order", "error"),
    ],
)
def test_states_of_lag(offsets: list[tuple[int, int]], growing: str, stalled: str) -> None:
    found = of_looks(group_with(offsets))
    assert (answer(found, "lag-growing"), answer(found, "lag-stalled")) == (growing, stalled)


def test_a_group_is_behind_by_more_than_a_minute() -> None:
    """By what arrives now: 15 messages per second, 900 of which are unread."""
    assert answer(of_looks(group_with([(900, 100), (1050, 200), (1200, 300)])), "lag-growing") == "info"
    assert answer(of_looks(group_with([(901, 100), (1051, 200), (1201, 300)])), "lag-growing") == "warning"


def test_a_call_that_takes_long_lets_offsets_stand() -> None:
    def stalled(call_ms: float) -> str:
        idle = replace(NOW, end=lambda _: 101, done=lambda _: 100, pulled=lambda _: 101)
        both = {**of("x", idle), **of("y", idle)}
        return answer(seen(both, {i: Reporting(call_ms=call_ms) for i in "xy"}), "lag-stalled")

    assert stalled(10_000.0) == "error"
    assert stalled(10_001.0) == "unknown"


def test_a_queue_that_changes_hands_may_stand() -> None:
    moved = {
        ("x", X): replace(Doing(), done=lambda _: 100_000, until=-5),
        ("y", X): replace(Doing(), done=lambda _: 100_000, since=-5, pulled=lambda _: 100_000),
    }
    assert answer(seen(moved), "lag-stalled") == "info"


def test_the_queues_of_a_consumer_that_brokers_have_just_forgotten_change_hands() -> None:
    """It did not answer before, so that it is not known to have owned them."""

    def before(look: ClusterSnapshot, *gone: str) -> ClusterSnapshot:
        its = look.groups["g"]
        views = tuple(
            replace(view, connections=(*view.connections, *(Connection(each) for each in gone)))
            for view in its.views or ()
        )
        queues = {queue: replace(state, owners=None) for queue, state in its.queues.items()}
        return replace(look, groups={"g": replace(its, views=views, queues=queues)})

    first, second, last = group_with([(1200, 100)] * 3)
    assert answer(of_looks((before(first, "z"), before(second, "z"), last)), "lag-stalled") == "info"
    assert answer(of_looks((before(first), before(second), last)), "lag-stalled") == "error"


def test_the_evidence_of_lag() -> None:
    found = of_looks(group_with([(1200, 100), (1350, 200), (1500, 300)]))
    its = finding(found, "lag-growing")
    assert [(each.fact, each.value, each.at) for each in its.evidence] == [
        ("unread messages", 8 * 1100, "2026-11-21T01:59:40Z"),
        ("unread messages", 8 * 1150, "2026-11-21T01:59:50Z"),
        ("unread messages", 8 * 1200, "2026-11-21T02:00:00Z"),
        ("messages that arrive per second", 8 * 15, "2026-11-21T02:00:00Z"),
        ("messages consumed per second", 8 * 10, "2026-11-21T02:00:00Z"),
        ("most seconds behind of a queue", 80, "2026-11-21T02:00:00Z"),
    ]
    assert its.consequence == "The lag of 8 queues grew by 800 messages in 20 s; 9,600 messages unread there."
    stalled = finding(of_looks(group_with([(1200, 100)] * 3)), "lag-stalled")
    assert stalled.consequence == "8 queues not read for at least 20 s; 8,800 messages unread there."


def test_looks_that_are_not_in_the_order_of_time_are_refused() -> None:
    looks = group_with([(1200, 100), (1350, 200), (1500, 300)])
    found = of_looks((looks[1], looks[0], looks[2]))
    assert reason(found, "lag-growing") == "the earlier looks are not in the order of time"
