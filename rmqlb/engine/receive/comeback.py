"""When a message that is not acknowledged can be received again.

Rules of this file:
- Out of order it goes through the retry topic, after a lag (`revive.py`).
- In order it stays at the head of its queue, which is blocked until then (`ConsumerOrderInfoManager.checkBlock`).
"""

from __future__ import annotations

from rmqlb.engine.receive.rules import (
    CLEARED_US,
    EXPIRED_US,
    EXPIRY_SCAN_US,
    HEARTBEAT_US,
    LOCK_TICK_US,
    REVIVE_LAG_US,
    REVIVE_STALE_US,
    REVIVE_STEP_US,
    invisible_us,
)
from rmqlb.model.receive_scenario import ReceiveScenario


def free_at(visible_at: int, phase: int) -> int:
    """When a blocked queue is looked at again: the next tick of a wheel that began at `phase`.

    >>> free_at(10_000_000, phase=0), free_at(10_000_001, phase=0)
    (10000000, 10100000)
    """
    return visible_at + (phase - visible_at) % LOCK_TICK_US


def cleared_at(crash_us: int, heartbeat_phase: int, scan_phase: int) -> int:
    """When a Proxy drops a PushConsumer that died: at its first look after two minutes without a heartbeat.

    >>> cleared_at(60_000_000, heartbeat_phase=0, scan_phase=5_000_000)
    185000000
    """
    last = crash_us - (crash_us - heartbeat_phase) % HEARTBEAT_US
    due = last + EXPIRED_US
    return due + EXPIRY_SCAN_US - (due - scan_phase) % EXPIRY_SCAN_US


def again_after_us(scenario: ReceiveScenario) -> tuple[int, int]:
    """How long after its consumer's death a message can be received again, at the earliest and at the latest.

    It was received at the death, or before by as long as the application takes for a receive; but of a PushConsumer the
    Proxy must first know that it is dead.

    >>> again_after_us(ReceiveScenario(invisible_us=30_000_000)), again_after_us(ReceiveScenario("push"))
    ((32000000, 35200000), (113000000, 136200000))
    """
    late = invisible_us(scenario)
    held_us = scenario.consume_us * (scenario.batch if scenario.client == "simple" else 1)
    early = max(late - held_us, 0)
    if scenario.client == "push":
        early = EXPIRED_US - HEARTBEAT_US + CLEARED_US
        late = EXPIRED_US + EXPIRY_SCAN_US + CLEARED_US
    if scenario.fifo:
        return early, late + LOCK_TICK_US
    # What is read last may be due two seconds after the message is visible, and then nothing comes for three more.
    return early + REVIVE_LAG_US, late + REVIVE_LAG_US + REVIVE_STALE_US + 2 * REVIVE_STEP_US
