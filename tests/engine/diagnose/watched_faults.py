from collections.abc import Callable, Mapping

from msgspec.structs import replace

from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.snapshot import ClusterSnapshot
from tests.engine.diagnose.consuming import PER_S, Doing, Reporting, owned, stored, watched
from tests.engine.diagnose.running import Process, running

Looks = tuple[ClusterSnapshot, ...]
PAIR = running(Process("x"), Process("y"))


def stops_at(since: float, before: Callable[[float], float]) -> Callable[[float], float]:
    return lambda t: before(min(t, since))


def slower(share: float, since: float) -> Callable[[float], float]:
    return lambda t: stored(t) - 2 if t < since else stored(since) - 2 + share * PER_S * (t - since)


BLOCKED = Doing(done=stops_at(-90, Doing().done), consumed_at=stops_at(-90, Doing().consumed_at))
FULL = Doing(
    done=stops_at(-200, Doing().done),
    consumed_at=stops_at(-200, Doing().consumed_at),
    pulled=lambda _: stored(-200) + 1010,
)
HEAD = Doing(done=stops_at(-90, Doing().done), gaps=800)
FAILS_IN_ORDER = Doing(done=stops_at(-90, Doing().done), consumed_at=lambda t: t - 0.5)
HANGS_IN_ORDER = Doing(
    done=stops_at(-90, Doing().done),
    consumed_at=stops_at(-90, Doing().consumed_at),
    consuming=1,
    locked_at=lambda t: t - 5,
)
UNPULLED = Doing(
    done=stops_at(-300, stored),
    pulled=stops_at(-300, stored),
    consumed_at=stops_at(-300, Doing().consumed_at),
    pulled_at=stops_at(-300, Doing().pulled_at),
)
UNLOCKED = Doing(
    done=stops_at(-70, Doing().done),
    pulled=stops_at(-60, stored),
    consumed_at=stops_at(-70, Doing().consumed_at),
    locked_at=lambda _: -100,
)
DROPPED = Doing(dropped=True)
SLOW = Doing(done=slower(0.4, -150))
LIMITED = Doing(done=slower(0.4, -300), pulled=lambda t: slower(0.4, -300)(t) + 1005)
HOT = Doing(
    end=lambda t: 100_000 + 200 * (t + 1000),
    done=lambda t: 100_000 + 200 * 600 - 2 + 100 * (t + 400),
    pulled=lambda t: 100_000 + 200 * (t + 1000),
)
"""A queue that gets 200 messages per second, of which its consumer has consumed 100 for 400 s."""
PAUSED = Doing(done=stops_at(-300, stored), pulled=stops_at(-300, stored), consumed_at=lambda _: -300)
"""A consumer that its application has suspended: it goes round and does not pull."""


def of(client_id: str, does: Doing, number: int | None = None) -> dict[tuple[str, MessageQueue], Doing]:
    return {(client_id, queue): does for queue in owned(PAIR, client_id)[:number]}


FAILS = Reporting(consumed_per_s=0.0, failed_per_s=4.0)
ORDERLY = {i: Reporting(orderly=True) for i in "xy"}
X_FIRST = owned(PAIR, "x")[0]
Y_FIRST = owned(PAIR, "y")[0]

WATCHED_FAULTS: Mapping[str, Looks] = {
    "frozen-consumer": watched(PAIR, of("x", BLOCKED), {"x": Reporting(answers=False)}),
    "consume-failing": watched(PAIR, of("x", FAILS_IN_ORDER), {"x": replace(FAILS, orderly=True), "y": Reporting(orderly=True)}),
    "blocked-consumer": watched(PAIR, of("x", BLOCKED)),
    "head-blocked": watched(PAIR, of("x", HEAD, 1)),
    "pull-stopped": watched(PAIR, of("x", UNPULLED, 1)),
    "lock-lost": watched(PAIR, of("x", UNLOCKED, 1), ORDERLY),
    "dropped-but-consuming": watched(PAIR, {("x", Y_FIRST): DROPPED}),
    "hot-queue": watched(PAIR, of("x", HOT, 1)),
    "slow-consumer": watched(PAIR, of("x", SLOW), {"x": Reporting(call_ms=200.0, consumed_per_s=16.0)}),
    "flow-control": watched(PAIR, {**of("x", LIMITED), **of("y", LIMITED)}),
    "lag-growing": watched(PAIR, {**of("x", SLOW), **of("y", SLOW)}),
    "lag-stalled": watched(PAIR, of("x", PAUSED)),
}  # fmt: skip
"""Code → looks at a group that has what the code means, and no other fault."""

WATCHED_PAIRS: Mapping[str, tuple[Looks, set[str]]] = {
    "x blocked, y held back": (watched(PAIR, {**of("x", FULL), **of("y", LIMITED)}), {"blocked-consumer", "flow-control"}),
    "x frozen, a message of y not finished": (
        watched(PAIR, {**of("x", BLOCKED), **of("y", HEAD, 1)}, {"x": Reporting(answers=False)}),
        {"frozen-consumer", "head-blocked"},
    ),
    "x without a lock, y without a pull": (
        watched(PAIR, {**of("x", UNLOCKED, 1), **of("y", UNPULLED, 1)}, ORDERLY),
        {"lock-lost", "pull-stopped"},
    ),
    "x blocked, y suspended": (watched(PAIR, {**of("x", BLOCKED), **of("y", PAUSED)}), {"blocked-consumer", "lag-stalled"}),
    "x slow, y consumes what was taken from it": (
        watched(PAIR, {**of("x", SLOW), ("y", X_FIRST): DROPPED}, {"x": Reporting(call_ms=200.0, consumed_per_s=16.0)}),
        {"slow-consumer", "dropped-but-consuming"},
    ),
}  # fmt: skip
"""What is planted → the looks, and the codes that are named."""
