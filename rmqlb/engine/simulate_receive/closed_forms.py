"""What needs no simulation: how long a message waits at worst, and how many receives in parallel bound that.

A SimpleConsumer's receives share one counter over all queues, broker by broker (`SubscriptionLoadBalancer
.takeMessageQueue`), and each waits at its queue's broker only. Let L receives go round; an empty one takes P; the
others' queues in a row, seen from a broker, are g = all queues − its own.

- One loop: a message that comes when the broker's last receive has just ended waits g·P. With b brokers of q queues
  each that is q·(b−1)·P.
- L loops, when messages are rare: the receive number n+L begins P after number n. The row of g queues holds at most
  ⌊g/L⌋ of these steps that lie in it whole, so that the wait is ⌊g/L⌋·P, and L > g leaves no gap.
- At any rates: receives that end early let the loops bunch up at other brokers. In each P every loop takes at least one
  more queue, and the loop that left the broker takes its next queue after its batch. With P as a receive and the work W
  on its batch, the gap is at most ⌈g/L⌉·P + W.

A PushConsumer and a POP client wait at every broker at all times.
"""

from __future__ import annotations

from collections.abc import Sequence

from rmqlb.engine.simulate_receive.rules import longest_receive_us
from rmqlb.model.simulate_receive import MOST_LOOPS, ClosedForms, ReceiveScenario
from rmqlb.model.times import milliseconds


def longest_row(queues: Sequence[int]) -> int:
    """The most queues of other brokers in a row; `queues` has the readable queues of each broker.

    >>> longest_row([8, 8]), longest_row([8, 4, 4]), longest_row([8])
    (8, 12, 0)
    """
    return sum(queues) - min(queues)


def rare_wait_us(queues: Sequence[int], loops: int, receive_us: int) -> int:
    """The longest wait when messages are rare.

    >>> rare_wait_us([8, 8], 1, 20), rare_wait_us([8, 8], 3, 20), rare_wait_us([8, 8], 9, 20)
    (160, 40, 0)
    """
    return longest_row(queues) // loops * receive_us


def unpolled_us(queues: Sequence[int], loops: int, receive_us: int, work_us: int) -> int:
    """The longest time without a receive at a broker, at any rates; each receive is followed by work on its batch.

    >>> unpolled_us([8, 8], 3, 20, 0), unpolled_us([8, 8], 9, 20, 0), unpolled_us([8, 8], 9, 20, 5)
    (60, 20, 30)
    """
    return -(-longest_row(queues) // loops) * (receive_us + work_us) + work_us


def rare_receives(queues: Sequence[int], target_us: int, receive_us: int) -> int | None:
    """How many receives in parallel keep the wait within a time when messages are rare; None when too many.

    >>> rare_receives([8, 8], 1, 20), rare_receives([8, 8], 40, 20), rare_receives([8, 8], 160, 20)
    (9, 3, 1)
    """
    whole = target_us // receive_us if receive_us else longest_row(queues)
    wanted = longest_row(queues) // (whole + 1) + 1
    return wanted if wanted <= MOST_LOOPS else None


def closed_forms(queues: Sequence[int], scenario: ReceiveScenario) -> ClosedForms:
    """All of them; `queues` has the readable queues of each broker."""
    receive_us = longest_receive_us(scenario)
    if scenario.client != "simple":
        return ClosedForms(
            receive_ms=milliseconds(receive_us),
            cycle_ms=None,
            wait_ms=milliseconds(scenario.round_trip_us),
            unpolled_ms=milliseconds(scenario.round_trip_us),
            always_polled=1,
        )
    work_us = scenario.batch * scenario.consume_us
    return ClosedForms(
        receive_ms=milliseconds(receive_us),
        cycle_ms=milliseconds(-(-sum(queues) // scenario.loops) * receive_us),
        wait_ms=milliseconds(rare_wait_us(queues, scenario.loops, receive_us)),
        unpolled_ms=milliseconds(unpolled_us(queues, scenario.loops, receive_us, work_us)),
        always_polled=longest_row(queues) + 1,
    )
