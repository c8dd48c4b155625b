"""Each rule of consumers' reports below, at and above its threshold.

Reports are received half a second after the look, at which consumers have just pulled: their clocks are ours.
"""

from itertools import accumulate
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from rmqlb.engine.diagnose.lags import queue_lag
from rmqlb.model.group import Connection, ConsumerGroup
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.process_queue import PullLimits
from rmqlb.model.snapshot import ClusterSnapshot
from tests.engine.diagnose.cases import (
    HEAD,
    ORDERLY,
    PAIR,
    SLOW,
    UNLOCKED,
    UNPULLED,
    Looks,
    of,
    rated,
    silent,
    since,
    slower,
    stops_at,
)
from tests.engine.diagnose.running import LOOKS, Doing, Reporting, answer, changed, of_looks, owned, stored, watched
from tests.support.mismatches import every_case

NOW = Doing(pulled_at=lambda t: t + 0.5)
X, Y = owned(PAIR, "x")[0], owned(PAIR, "y")[0]
XX, XY = ("x", X), ("x", Y)
YOURS = Doing()
IDLE = {"x": Reporting(consumed_per_s=0.0)}


def both(does: Doing) -> dict[tuple[str, MessageQueue], Doing]:
    return {**of("x", does), **of("y", does)}


def quiet(offset: int, **more: Any) -> Doing:
    still = replace(NOW, end=lambda _: offset, done=lambda _: offset, pulled=lambda _: offset)
    return replace(still, consumed_at=lambda _: -20, locked_at=lambda _: -5000, **more)


def holding(messages: int, **more: Any) -> Doing:
    return replace(SLOW, pulled=lambda t: SLOW.done(t) + messages, **more)


def span(messages: int) -> Doing:
    return replace(HEAD, pulled=lambda _: HEAD.done(0) + messages + 1, gaps=messages - 500)


def backlog(consumed: float) -> Doing:
    return Doing(
        done=lambda t: stored(t) - 50_000 + (consumed - 10) * t,
        pulled=lambda t: stored(t) - 50_000 + (consumed - 10) * t + 1010,
    )


def pulls_until(s: float) -> Doing:
    return replace(
        UNPULLED, pulled_at=stops_at(s, lambda t: t), done=stops_at(s, stored), pulled=stops_at(s, stored),
        locked_at=lambda _: -5000,
    )  # fmt: skip


def locked_until(s: float, **more: Any) -> Doing:
    return replace(UNLOCKED, locked_at=stops_at(s, lambda t: t), pulled_at=NOW.pulled_at, **more)


def wide(mib: int | None) -> dict[str, Reporting]:
    return {i: Reporting(limits=PullLimits(1001, mib, 2000)) for i in "xy"}


def calls(ms: float) -> dict[str, Reporting]:
    return {"x": Reporting(call_ms=ms, pulled_per_s=1e6, consumed_per_s=None if ms else 0.0)}


def pulled(per_s: float) -> dict[str, Reporting]:
    return {"x": Reporting(call_ms=0.0, pulled_per_s=per_s, consumed_per_s=0.0)}


BEFORE = replace(NOW, pulled=NOW.done, consumed_at=lambda _: -59.5, locked_at=lambda _: -60)
STANDS = replace(HEAD, consumed_at=lambda _: -90)  # no other message of the queue was finished meanwhile
DROPPED = replace(Doing(), dropped=True)
NEW = replace(NOW, end=lambda t: 5000 + (t > -5), done=lambda _: 5000, pulled=lambda t: 5000 + (t > -5))
SMALL = Doing(done=slower(0.2, -150), pulled=lambda t: slower(0.2, -150)(t) + 500)
ONE_UNREAD = both(replace(NOW, end=lambda _: 101, done=lambda _: 100, pulled=lambda _: 101))
MOVED = {
    XX: replace(Doing(), done=lambda _: 100_000, until=-5),
    ("y", X): replace(Doing(), done=lambda _: 100_000, since=-5, pulled=lambda _: 100_000),
}


@every_case(("code", "expected", "doing", "reporting", "looks"), [
    # A listener is blocked when no call has ended for more than a minute; one queue shows that it returns.
    ("blocked-consumer", "error", of("x", since(-59.501)), {}, LOOKS),
    ("blocked-consumer", "in order", of("x", since(-59.5)), {}, LOOKS),  # calls ended within the last minute
    ("blocked-consumer", "unknown", of("x", since(-59.5)), IDLE, LOOKS),
    ("blocked-consumer", "unknown", of("x", since(-300)), {}, (0,)),
    ("blocked-consumer", "in order", of("x", replace(since(-300), pulled=stops_at(-300, NOW.done))), {}, LOOKS),
    ("blocked-consumer", "in order", {**of("x", since(-300)), XX: replace(NOW, pulled=NOW.done)}, {}, LOOKS),
    ("blocked-consumer", "in order", {**of("x", since(-300)), XX: BEFORE}, {}, (0,)),
    # it has only begun to have the queue then
    ("blocked-consumer", "error", {**of("x", since(-300)), XX: replace(BEFORE, locked_at=lambda _: -59.5)}, {}, LOOKS),
    # Looks must cover ten times the mean call: 8 s at least, a minute at most or where no mean is known.
    *(
        ("blocked-consumer", expected, of("x", since(-500)), calls(ms), (-span_s, 0))
        for ms, span_s, expected in (
            *((20.0, 8, "error"), (20.0, 7.999, "unknown"), (800.0, 8, "error"), (900.0, 8.999, "unknown")),
            *((900.0, 9, "error"), (7000.0, 59.999, "unknown"), (7000.0, 60, "error")),
            *((0.0, 59.999, "unknown"), (0.0, 60, "error")),
        )
    ),
    # Unless there are more messages than were pulled in a minute: 4 queues with 4,002 - 10 x 10 at the look before.
    ("blocked-consumer", "error", of("x", since(-400)), pulled(4 * 3902 / 60 - 0.01), (-10, 0)),
    ("blocked-consumer", "unknown", of("x", since(-400)), pulled(4 * 3902 / 60), (-10, 0)),
    ("blocked-consumer", "error", of("x", since(-400)), pulled(0), (-10, 0)),
    ("blocked-consumer", "unknown", of("x", since(-400)), pulled(0), (-9.999, 0)),
    # A head that is not finished while later messages are, for 8 s.
    ("head-blocked", "warning", {XX: HEAD}, {}, (-8, 0)),
    ("head-blocked", "unknown", {XX: HEAD}, {}, (-7.999, 0)),
    ("head-blocked", "in order", {}, {}, LOOKS),
    ("head-blocked", "in order", {XX: replace(HEAD, done=lambda t: stored(-90) + (t > -5))}, {}, LOOKS),
    ("head-blocked", "unknown", {XX: NEW}, {}, LOOKS),  # only just pulled
    # Threads take messages in the order in which they were pulled, and other queues got and finished theirs.
    ("head-blocked", "warning", {XX: STANDS}, {}, (-8, 0)),
    ("head-blocked", "unknown", {**of("x", quiet(5000)), XX: STANDS}, {}, (-8, 0)),
    ("head-blocked", "warning", {XX: span(2000)}, {}, LOOKS),
    ("head-blocked", "error", {XX: span(2001)}, {}, LOOKS),  # the span keeps it from pulling
    # A consumer that has finished no message reports what the broker has stored: nothing, or 0.
    *(("head-blocked", "warning", {XX: replace(HEAD, reports=reported)}, {}, LOOKS) for reported in (-1, 0)),
    *(("head-blocked", "in order", {XX: replace(HEAD, reports=n, gaps=0, done=lambda t: stored(-90) + (t > -5))}, {}, LOOKS) for n in (-1, 0)),
    # Messages that it holds, those of an orderly listener included; MiB; the span, unless it is orderly.
    ("flow-control", "warning", both(holding(1001)), {}, LOOKS),
    ("flow-control", "in order", both(holding(1000)), {}, LOOKS),
    ("flow-control", "warning", both(replace(SLOW, mib=101)), {}, LOOKS),
    ("flow-control", "in order", both(replace(SLOW, mib=100)), {}, LOOKS),
    ("flow-control", "warning", both(holding(2002, gaps=1500)), {}, LOOKS),
    ("flow-control", "in order", both(holding(2001, gaps=1500)), {}, LOOKS),
    ("flow-control", "in order", both(holding(2002, gaps=1500)), ORDERLY, LOOKS),
    ("flow-control", "warning", both(holding(1001, consuming=1)), ORDERLY, LOOKS),
    ("flow-control", "in order", both(holding(1000, consuming=1)), ORDERLY, LOOKS),
    ("flow-control", "in order", both(holding(1001)), wide(100), LOOKS),
    ("flow-control", "unknown", both(holding(1001)), wide(None), LOOKS),
    ("flow-control", "warning", both(backlog(5)), {}, LOOKS),
    ("flow-control", "info", both(backlog(25)), {}, LOOKS),  # it catches up
    ("flow-control", "unknown", of("x", backlog(25)), {}, (0,)),
    # Pulls have stopped after two minutes; a clock may be behind, but a pull of an idle queue takes 20 s at most.
    ("pull-stopped", "error", {**of("x", NOW), XX: pulls_until(-119.501)}, {}, LOOKS),
    ("pull-stopped", "in order", {**of("x", NOW), XX: pulls_until(-119.5)}, {}, LOOKS),
    ("pull-stopped", "warning", {XX: replace(pulls_until(-300), end=stops_at(-300, stored))}, {}, LOOKS),
    ("pull-stopped", "unknown", of("x", pulls_until(-300)), {}, (-20, -10, 0)),
    ("pull-stopped", "error", of("x", pulls_until(-300)), {}, (-20.001, -10, 0)),
    ("pull-stopped", "in order", {**of("x", pulls_until(-300)), XX: replace(pulls_until(-300), pulled_at=lambda t: -280 if t > -15 else -300)}, {}, (-30.001, -20, -10, 0)),
    # A lock is lost after 30 s, or when two consumers have it in two samples.
    ("lock-lost", "error", {XX: locked_until(-29.501)}, ORDERLY, LOOKS),
    ("lock-lost", "in order", {XX: locked_until(-29.5)}, ORDERLY, LOOKS),
    ("lock-lost", "unknown", {XX: locked_until(-29.5, locked=False)}, ORDERLY, LOOKS),
    ("lock-lost", "warning", {XX: locked_until(-100, end=stops_at(-100, stored), done=stops_at(-100, stored))}, ORDERLY, LOOKS),
    ("lock-lost", "not applicable", {XX: locked_until(-300)}, {}, LOOKS),
    ("lock-lost", "error", {XY: YOURS}, ORDERLY, LOOKS),
    ("lock-lost", "unknown", {XY: replace(YOURS, since=-5)}, ORDERLY, LOOKS),
    ("lock-lost", "error", {XY: replace(YOURS, since=-15)}, ORDERLY, LOOKS),
    ("lock-lost", "unknown", {XY: replace(YOURS, locked=False)}, ORDERLY, LOOKS),
    ("lock-lost", "in order", {XY: replace(YOURS, dropped=True)}, ORDERLY, LOOKS),
    # A queue that was taken away in two samples and is still consumed.
    ("dropped-but-consuming", "error", {XY: DROPPED}, {}, LOOKS),
    ("dropped-but-consuming", "in order", {XY: replace(DROPPED, consumed_at=lambda _: -0.1)}, {}, LOOKS),
    ("dropped-but-consuming", "unknown", {XY: replace(DROPPED, since=-5)}, {}, LOOKS),
    ("dropped-but-consuming", "unknown", {XY: DROPPED}, {}, (0,)),
    ("dropped-but-consuming", "warning", {XX: DROPPED}, {}, LOOKS),
    # A consumer that does not answer and none of whose queues is read for 8 s.
    ("frozen-consumer", "error", of("x", since(-90)), silent("x"), (-8, 0)),
    ("frozen-consumer", "unknown", of("x", since(-90)), silent("x"), (-7.999, 0)),
    ("frozen-consumer", "in order", {**of("x", since(-90)), XX: Doing()}, silent("x"), LOOKS),
    ("frozen-consumer", "unknown", of("x", replace(since(-90), end=stops_at(-90, stored), done=stops_at(-90, stored))), silent("x"), LOOKS),
    ("frozen-consumer", "in order", of("x", since(-90)), {}, LOOKS),
    # Twice the calls of the others, whose lag does not grow.
    ("slow-consumer", "warning", of("x", SLOW), {"x": Reporting(call_ms=40.0)}, LOOKS),
    ("lag-growing", "of slow-consumer", of("x", SLOW), {"x": Reporting(call_ms=40.0)}, LOOKS),
    ("slow-consumer", "in order", of("x", SLOW), {"x": Reporting(call_ms=39.9)}, LOOKS),
    ("lag-growing", "warning", of("x", SLOW), {"x": Reporting(call_ms=39.9)}, LOOKS),
    ("slow-consumer", "in order", both(SLOW), {"x": Reporting(call_ms=500.0)}, LOOKS),
    # Growth needs three looks over 15 s; a call keeps an offset for as long as it takes.
    ("lag-growing", "warning", both(SMALL), {}, (-20, -10, 0)),
    ("lag-growing", "unknown", both(SMALL), {}, (-20, 0)),
    ("lag-growing", "warning", both(SMALL), {}, (-15, -5, 0)),
    ("lag-growing", "unknown", both(SMALL), {}, (-14.999, -5, 0)),
    ("lag-stalled", "error", ONE_UNREAD, {i: Reporting(call_ms=10_000.0) for i in "xy"}, LOOKS),
    ("lag-stalled", "unknown", ONE_UNREAD, {i: Reporting(call_ms=10_001.0) for i in "xy"}, LOOKS),
    ("lag-stalled", "error", ONE_UNREAD, {"x": Reporting(call_ms=10_000.0), "y": Reporting(call_ms=10_001.0)}, LOOKS),
    ("lag-stalled", "info", MOVED, {}, LOOKS),  # it changes hands
])  # fmt: skip
def test_each_rule_at_its_threshold(
    code: str, expected: str, doing: dict[Any, Doing], reporting: dict[str, Reporting], looks: tuple[float, ...]
) -> None:
    assert answer(of_looks(watched(PAIR, doing, reporting, looks)), code) == expected


def group_with(offsets: list[tuple[int, int]], **changes: object) -> Looks:

    def at(number: int, end: int, offset: int) -> ConsumerGroup:
        look = watched(PAIR, looks=(10.0 * (number + 1 - len(offsets)),))[0].groups["g"]
        queues = {
            queue: replace(state, broker_offset=end, consumer_offset=offset, **changes)
            for queue, state in look.queues.items()
        }
        return replace(look, queues=queues)

    last = watched(PAIR)[-1]
    return tuple(replace(last, taken_at=None, groups={"g": at(number, *pair)}) for number, pair in enumerate(offsets))


@every_case(("offsets", "growing", "stalled"), [
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
    # Behind by more than a minute, by what arrives now: 15 messages per second, 900 of which are unread.
    ([(900, 100), (1050, 200), (1200, 300)], "info", "in order"),
    ([(901, 100), (1051, 200), (1201, 300)], "warning", "in order"),
    ([(40_301, 100), (50_301, 200), (60_301, 300)], "warning", "in order"),  # by 60.001 s
    ([(120, 100), (125, 102), (130, 104)], "info", "in order"),  # by half a message per second: 52 s
])  # fmt: skip
def test_states_of_lag(offsets: list[tuple[int, int]], growing: str, stalled: str) -> None:
    found = of_looks(group_with(offsets))
    assert (answer(found, "lag-growing"), answer(found, "lag-stalled")) == (growing, stalled)


def test_the_queues_of_a_consumer_that_brokers_have_just_forgotten_change_hands() -> None:
    """It did not answer before, so that it is not known to have owned them."""

    def before(look: ClusterSnapshot, *gone: str) -> ClusterSnapshot:
        more, its = tuple(map(Connection, gone)), look.groups["g"]
        views = tuple(replace(view, connections=(*view.connections, *more)) for view in its.views or ())
        queues = {queue: replace(state, owners=None) for queue, state in its.queues.items()}
        return changed(look, views=views, queues=queues)

    first, second, last = group_with([(1200, 100)] * 3)
    assert answer(of_looks((before(first, "z"), before(second, "z"), last)), "lag-stalled") == "info"
    assert answer(of_looks((before(first), before(second), last)), "lag-stalled") == "error"


@given(
    st.integers(0, 2000),
    st.integers(0, 2000),
    st.lists(st.integers(0, 5000), min_size=3, max_size=6),
    st.integers(1, 60),
)
@settings(max_examples=300)
def test_looks_over_a_minute_decide(per_look: int, first: int, arriving: list[int], every_s: int) -> None:
    at = tuple(number * every_s * 1000 for number in range(len(arriving)))
    offsets = tuple(number * per_look for number in range(len(arriving)))
    ends = accumulate([first, *arriving[1:]])
    lag = queue_lag(at, offsets, tuple(max(end - offset, 0) for end, offset in zip(ends, offsets, strict=True)))
    if lag.state in ("standing", "undecided"):
        assert lag.shown_ms < lag.needed_ms or lag.samples < 3


@given(st.floats(0.1, 1000), st.floats(0, 0.1), st.integers(0, 16), st.booleans())
@settings(max_examples=100)
def test_retries_and_few_poisonous_messages_are_fine(per_s: float, poisoned: float, tries: int, orderly: bool) -> None:
    """A message that always fails is tried 17 times; every other one fails once at the most."""
    healthy = per_s * (1 - poisoned)
    failed = healthy * (tries % 2) * 0.4 + per_s * poisoned * 17
    looks = rated([{"T": (healthy, failed)}] * 3, {i: Reporting(orderly=orderly) for i in "xy"})
    assert answer(of_looks(looks), "consume-failing") == "in order"
