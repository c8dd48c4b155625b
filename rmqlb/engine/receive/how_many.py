"""How many receives in parallel keep waits within a time.

When messages are rare a closed form says it. At rates it is found by simulation: receives that end early may need fewer
loops, since they come round sooner, or more, since they bunch up where nothing comes. The number is doubled until it is
enough for the first messages of one simulation, and the least one between is looked for, as if more were never worse.
Long waits at rates are rare events, so that one number may pass where the next does not: from there on it is the first
number that is enough in several longer simulations, as are the next ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import cache

from msgspec.structs import replace

from rmqlb.engine.arguments import require
from rmqlb.engine.receive.closed_forms import rare_receives, rare_wait_us
from rmqlb.engine.receive.rules import longest_receive_us
from rmqlb.engine.receive.simulate import check, longest_wait_us
from rmqlb.model.limits import PositiveTime
from rmqlb.model.receive_report import TargetWait
from rmqlb.model.receive_scenario import MOST_LOOPS, ReceiveScenario
from rmqlb.model.route import TopicRouteData
from rmqlb.model.times import milliseconds, milliseconds_if_known

TRIALS = 3
FIRST_MESSAGES = 5_000
MOST_MESSAGES = 20_000
"""Of each simulation: while a number is looked for, and of the number."""
IN_A_ROW = 4
"""Numbers that must be enough, of which the answer is the first."""


def receives_within(
    route: TopicRouteData, scenario: ReceiveScenario, target_us: int, progress: Callable[[int], None] | None = None
) -> TargetWait:
    """The number for a time; `progress` is told each number tried (raises as `simulate_receive` does).

    A PushConsumer and a POP client wait at every broker with one receive each, and cannot have more.
    """
    queues = check(route, scenario)
    require(target_us, PositiveTime, "target_us")
    counts = list(Counter(queue.broker_name for queue in queues).values())
    receive_us = longest_receive_us(scenario)
    simple = scenario.client == "simple"
    rare = rare_receives(counts, target_us, receive_us) if simple else 1
    if scenario.rare and not scenario.failures and not scenario.crashes:
        longest = None if rare is None else rare_wait_us(counts, rare, receive_us) if simple else scenario.round_trip_us
        return TargetWait(
            wait_ms=milliseconds(target_us),
            receives=rare,
            rare=rare,
            simulated=False,
            trials=0,
            max_ms=milliseconds_if_known(longest),
        )
    first, whole = _with_at_most(scenario, FIRST_MESSAGES), _with_at_most(scenario, MOST_MESSAGES)

    def seems_enough(loops: int) -> bool:
        if progress is not None:
            progress(loops)
        longest = longest_wait_us(route, replace(first, loops=loops), 0, target_us)
        return longest is not None and longest <= target_us

    @cache
    def longest_of(loops: int) -> int | None:
        return _longest(route, replace(whole, loops=loops), target_us)

    def is_too_few(loops: int) -> bool:
        longest = longest_of(loops)
        return longest is None or longest > target_us

    most = MOST_LOOPS if simple else 1
    found = _least(seems_enough, most)
    while found is not None:
        row = range(min(found + IN_A_ROW - 1, most), found - 1, -1)
        too_few = next((loops for loops in row if is_too_few(loops)), None)
        if too_few is None:
            break
        found = too_few + 1 if too_few < most else None
    return TargetWait(
        wait_ms=milliseconds(target_us),
        receives=found,
        rare=rare,
        simulated=True,
        trials=TRIALS,
        max_ms=None if found is None else milliseconds_if_known(longest_of(found)),
    )


def _with_at_most(scenario: ReceiveScenario, messages: int) -> ReceiveScenario:
    """The scenario with its first messages only; whole when something happens to brokers or consumers in it."""
    if scenario.failures or scenario.crashes:
        return scenario
    return replace(scenario, messages=min(scenario.messages or messages, messages))


def _longest(route: TopicRouteData, scenario: ReceiveScenario, target_us: int) -> int | None:
    """The longest wait of several trials, up to the first that exceeds the target; None when one has no end."""
    longest = 0
    for trial in range(TRIALS):
        found = longest_wait_us(route, scenario, trial, target_us)
        if found is None:
            return None
        longest = max(longest, found)
        if longest > target_us:
            break
    return longest


def _least(enough: Callable[[int], bool], most: int) -> int | None:
    """The least number that is enough, found by doubling and halving; None when `most` is not.

    >>> _least(lambda number: number >= 9, 100), _least(lambda number: False, 100)
    (9, None)
    """
    below, above = 0, 1
    while not enough(above):
        if above >= most:
            return None
        below, above = above, min(2 * above, most)
    while above - below > 1:
        middle = (below + above) // 2
        if enough(middle):
            above = middle
        else:
            below = middle
    return above
