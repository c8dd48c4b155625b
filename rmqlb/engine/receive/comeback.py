"""When a message that is not acknowledged can be received again.

Rules of this file:
- Out of order it goes through the retry topic, after a lag (`PopReviveService`, 5.5.0, without
  `popConsumerKVServiceEnable`). How long the lag is depends on where that service is in its round; one that has nothing
  to catch up with is taken. With many checkpoints to read it may take up to 10 s more (`reviveScanTime`).
- In order it stays at the head of its queue, which is blocked until then (`ConsumerOrderInfoManager.checkBlock`).
"""

from __future__ import annotations

from rmqlb.engine.receive.rules import (
    CLEARED_US,
    EXPIRED_US,
    EXPIRY_SCAN_US,
    HEARTBEAT_US,
    LOCK_TICK_US,
    REVIVE_EARLY_US,
    REVIVE_LAG_US,
    REVIVE_READ_US,
    REVIVE_REST_US,
    REVIVE_STEP_US,
    invisible_us,
)
from rmqlb.model.receive_scenario import ReceiveScenario

_ROUND_US = REVIVE_REST_US + REVIVE_READ_US


def revived_at(visible_at: int, phase: int) -> int:
    """When a message is in the retry topic, of a service that began a rest at `phase`.

    The checkpoint is handed over a second before the message is visible. A service that reads then finds it at once,
    one that rests when it reads again; in either case the message goes at the first step more than two seconds after
    it is visible.

    >>> revived_at(10_000_000, phase=0), revived_at(10_000_000, phase=9_000_000)
    (12100000, 13100000)
    """
    handed_over = visible_at - REVIVE_EARLY_US
    place = (handed_over - phase) % _ROUND_US
    found = handed_over if place >= REVIVE_REST_US else handed_over + REVIVE_REST_US - place
    wanted = max(visible_at + REVIVE_LAG_US, found)
    return wanted + REVIVE_STEP_US - (wanted - phase) % REVIVE_STEP_US


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

    For one that was received at the very moment of the death; one received earlier by so much is earlier, except with
    a PushConsumer, of which the Proxy must first know that it is dead.

    >>> again_after_us(ReceiveScenario(invisible_us=30_000_000)), again_after_us(ReceiveScenario("push"))
    ((32000000, 33200000), (113000000, 134200000))
    """
    early = late = invisible_us(scenario)
    if scenario.client == "push":
        early = EXPIRED_US - HEARTBEAT_US + CLEARED_US
        late = EXPIRED_US + EXPIRY_SCAN_US + CLEARED_US
    if scenario.fifo:
        return early, late + LOCK_TICK_US
    # The longest rest begins just before the checkpoint is handed over.
    return early + REVIVE_LAG_US, late + REVIVE_REST_US - REVIVE_EARLY_US + 2 * REVIVE_STEP_US
