from collections.abc import Generator

import pytest

from rmqlb.engine import kernel
from rmqlb.engine.kernel import Bell, Clock, Draws, in_processes
from rmqlb.errors import UsageError
from tests.support.mismatches import every_case


def run(clock: Clock, until: int = 10**9) -> None:
    while clock.do_next(until):
        pass


def test_things_happen_in_the_order_of_time_and_then_of_asking_until_the_end() -> None:
    clock, seen = Clock(), []
    for delay, name in [(5, 1), (3, 2), (5, 3), (0, 4)]:
        clock.call(delay, lambda number: seen.append((clock.now, number)), name)
    run(clock, 4)
    assert (seen, clock.now) == ([(0, 4), (3, 2)], 3)
    run(clock, 5)
    assert seen[2:] == [(5, 1), (5, 3)]


def ticking(clock: Clock, seen: list[int]) -> Generator[int, None, None]:
    while True:
        seen.append(clock.now)
        yield 10


def test_a_process_sleeps_as_long_as_it_says_and_ends_for_good() -> None:
    clock, seen = Clock(), list[int]()
    process = clock.start(ticking(clock, seen), 5)
    run(clock, 30)
    process.end()
    run(clock)
    assert seen == [5, 15, 25]


@every_case(("frozen", "thawed", "expected"), [(25, 63, [0, 10, 20, 63, 73]), (25, 28, [0, 10, 20, 30])])
def test_what_was_due_during_a_freeze_is_done_once_at_the_end(frozen: int, thawed: int, expected: list[int]) -> None:
    clock, seen = Clock(), list[int]()
    process = clock.start(ticking(clock, seen))
    clock.call(frozen, process.freeze)
    clock.call(thawed, process.unfreeze)
    run(clock, expected[-1])
    assert seen == expected


@every_case(("busy", "rings", "until", "expected"), [
    (0, [30], 250, [(30, True), (130, False), (230, False)]),  # the next wait is a whole one
    (0, [40, 40], 139, [(40, True)]),
    # `hasNotified` is a flag: three wake-ups during a run cause one more run, not three.
    (20, [50, 55, 60, 65], 189, [(50, True), (70, True)]),
    (20, [50, 55, 60, 65], 200, [(50, True), (70, True), (190, False)]),
])  # fmt: skip
def test_a_bell_ends_the_wait(busy: int, rings: list[int], until: int, expected: list[tuple[int, bool]]) -> None:
    clock, bell, seen = Clock(), Bell(), list[tuple[int, bool]]()

    def sleeper() -> Generator[int, None, None]:
        while True:
            rang = yield from bell.wait(100)
            seen.append((clock.now, rang))
            if busy:
                yield busy

    bell.sleeper = clock.start(sleeper())
    for moment in rings:
        clock.call(moment, bell.ring)
    run(clock, until)
    assert seen == expected


def test_so_many_steps_are_done_at_the_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "MOST_STEPS", 1)
    clock = Clock()
    clock.call(1, lambda: None)
    assert clock.do_next(10)
    clock.call(1, lambda: None)
    with pytest.raises(UsageError, match="more than 1 steps; it reached 0 ms") as raised:
        clock.do_next(10)
    assert raised.value.code == "too-many-steps"
    assert (raised.value.hint or "").startswith("simulate a shorter time, longer timers, or fewer consumers")


def test_numbers_are_those_of_splitmix() -> None:
    """The first numbers of SplitMix64 from the state 1234567, as its author published them."""
    numbers = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    bits, below = Draws(1234567), Draws(1234567)
    assert [bits.bits() for _ in range(3)] == [below.below(1 << 64) for _ in range(3)] == numbers


@pytest.mark.parametrize("jobs", [None, 1, 2])
def test_work_in_processes_comes_back_in_order(jobs: int | None) -> None:
    assert list(in_processes(lambda number: number * number, range(3, 100), jobs)) == [n * n for n in range(3, 100)]
