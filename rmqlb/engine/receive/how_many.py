"""How many receives in parallel keep waits within a time.

When messages are rare a closed form says it. At rates it is found by simulation: receives that end early may need fewer
loops, since they come round sooner, or more, since they bunch up where nothing comes. The number is doubled until it is
enough, then the least one between is looked for, as if more were never worse; the answer itself has been simulated,
with as many messages as a number tried may cost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

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
MOST_MESSAGES = 100_000
"""Of each simulation of a number that is tried."""


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
    if not scenario.failures and not scenario.crashes:
        scenario = replace(scenario, messages=min(scenario.messages or MOST_MESSAGES, MOST_MESSAGES))
    tried: dict[int, int | None] = {}

    def enough(loops: int) -> bool:
        if loops not in tried:
            if progress is not None:
                progress(loops)
            tried[loops] = _longest(route, replace(scenario, loops=loops), target_us)
        longest = tried[loops]
        return longest is not None and longest <= target_us

    found = _least(enough, MOST_LOOPS if simple else 1)
    return TargetWait(
        wait_ms=milliseconds(target_us),
        receives=found,
        rare=rare,
        simulated=True,
        trials=TRIALS,
        max_ms=None if found is None else milliseconds_if_known(tried[found]),
    )


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
