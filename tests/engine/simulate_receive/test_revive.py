from collections.abc import Sequence
from typing import Any, NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as some

from rmqlb.engine.kernel import Clock
from rmqlb.engine.simulate_receive.broker import Message
from rmqlb.engine.simulate_receive.revive import IDLE_US, ReviveService, TimerWheel
from rmqlb.engine.simulate_receive.rules import again_after_us
from rmqlb.model.simulate_receive import INVISIBLE_US, SECOND_US, ReceiveScenario
from tests.support.mismatches import every_case

MS = 1000
EXACT = TimerWheel(0, 0)
NOWHERE: Any = None


class Taken(NamedTuple):
    """A receive took a message, which is visible again later, unless it was acknowledged."""

    at_us: int
    visible_us: int
    acknowledged: bool = False


def brought_back(takes: Sequence[Taken], timer: TimerWheel = EXACT, age: int = 0) -> list[int]:
    """How long after it was visible again each message was in the retry topic; a rest began so long before the start."""
    clock = Clock()
    back: dict[int, int] = {}

    def revive(messages: tuple[Message, ...]) -> None:
        for message in messages:
            assert message.number not in back, "once"
            back[message.number] = clock.now - message.stored

    service = ReviveService(clock, timer, age, revive)

    def take(number: int, taken: Taken) -> None:
        own = () if taken.acknowledged else (Message(number, NOWHERE, 0, taken.visible_us),)
        service.checkpoint(taken.visible_us, own, acknowledged=taken.acknowledged)

    for number, taken in enumerate(takes):
        clock.call(taken.at_us, take, number, taken)
    while clock.do_next(max(taken.visible_us for taken in takes) + 60 * SECOND_US):
        pass
    assert sorted(back) == [number for number, taken in enumerate(takes) if not taken.acknowledged]
    return [back[number] for number in sorted(back)]


# With nothing to do a service rests from 0 s to 4 s and from 8.1 s to 12.1 s; it looks in between, every 100 ms.
BY_HAND = {
    "visible at 12 s, handed over at 11 s, read at 12.1 s: 3 s later than due at 14.1 s": ([Taken(0, 12_000 * MS)], [2100 * MS]),
    "visible at 9.3 s, handed over at 9 s, old enough when it is read at 12.1 s": ([Taken(0, 9300 * MS)], [2800 * MS]),
    "visible at 7 s, handed over at 6 s in a look": ([Taken(0, 7000 * MS)], [2100 * MS]),
    "the second, due at 12.5 s and read at 13 s, lets the first wait until 15.6 s": (
        [Taken(0, 12_000 * MS), Taken(0, 13_500 * MS)],
        [3600 * MS, 2100 * MS],
    ),
    "the second is due 2.1 s after the first is visible: it is read at 15 s, and itself with the next look": (
        [Taken(0, 12_000 * MS), Taken(0, 15_100 * MS)],
        [2100 * MS, 2100 * MS],
    ),
    "handed over at once where it is due already, at 10 s; read at 12.1 s": ([Taken(10_000 * MS, 11_000 * MS)], [2100 * MS]),
    # An acknowledgement that stays ends each look at once: after that of 8.1 s it looks at 9.1, 11.1, 14.1 and 18.1 s.
    "handed over at 15 s, read at 18.1 s": ([Taken(0, 5000 * MS, acknowledged=True), Taken(0, 15_500 * MS)], [2600 * MS]),
}  # fmt: skip


@every_case("name", BY_HAND)
def test_messages_are_brought_back_as_worked_out_by_hand(name: str) -> None:
    takes, expected = BY_HAND[name]
    assert brought_back(takes) == expected


@settings(max_examples=150, deadline=None)
@given(
    some.lists(some.tuples(some.integers(0, 6_000_000), some.booleans()), min_size=1, max_size=40),
    some.builds(TimerWheel, some.integers(0, SECOND_US - 1), some.integers(0, 100 * MS - 1)),
    some.integers(0, IDLE_US - 1),
)
def test_messages_are_brought_back_within_the_closed_form(
    gaps: list[tuple[int, bool]], timer: TimerWheel, age: int
) -> None:
    at, takes = 0, []
    for gap, acknowledged in gaps:
        at += gap
        takes.append(Taken(at, at + INVISIBLE_US, acknowledged))
    early_us, late_us = (end - INVISIBLE_US for end in again_after_us(ReceiveScenario()))
    assert all(early_us < after <= late_us for after in brought_back(takes, timer, age))
