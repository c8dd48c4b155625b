"""A producer's queue list with the round robin's place in it, and the plain pick.

Rules of this file:
- Integers are Java's: 32 bits, wrapping. `send_which_queue` is the value stored before the next step.
- One `TopicPublishInfo` is one thread's view: the index is a ThreadLocal. Threads share the list, not the index.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from rmqlb.engine.arguments import items, require
from rmqlb.engine.send.profile import ClientProfile
from rmqlb.model.limits import MOST_QUEUES
from rmqlb.model.message_queue import MessageQueue

MASK = 0x7FFFFFFF
_WRAP = 0x100000000
Accepts = Callable[[str], bool]


def int32(value: int) -> int:
    """The number as Java's `int` holds it."""
    return (value + 0x80000000) % _WRAP - 0x80000000


class TopicPublishInfo:
    """What a producer thread knows of a topic (`impl.producer.TopicPublishInfo`).

    Args:
        queues: the publish list, in order.
        send_which_queue: the round robin's index before the next pick, a 32-bit number (`ThreadLocalIndex`).
        write_queue_nums: broker name → write queues that the route gives it; default: as many as the list has. Only
            clients before 5.1.4 look at it, when every broker is isolated.
        random: gives the next `Random.nextInt(2^31 − 1)`, for clients that start anew on a retry; default: Python's.

    Raises:
        UsageError: an argument is of the wrong type.

    Attributes:
        queues: the list; clients before 5.1.4 but 4.9.8 change it in place when every broker is isolated.
        send_which_queue: the index now.
    """

    __slots__ = ("queues", "random", "send_which_queue", "write_queue_nums")

    def __init__(
        self,
        queues: Iterable[MessageQueue],
        send_which_queue: int = 0,
        write_queue_nums: Mapping[str, int] | None = None,
        random: Callable[[], int] | None = None,
    ) -> None:
        self.queues = [] if queues == () else items(queues, MessageQueue, "queues", MOST_QUEUES)
        require(send_which_queue, int, "send_which_queue")
        require(write_queue_nums, Mapping[str, int] | None, "write_queue_nums")
        require(random, Callable[[], int] | None, "random")
        self.send_which_queue = int32(send_which_queue)
        self.write_queue_nums = (
            Counter(queue.broker_name for queue in self.queues) if write_queue_nums is None else dict(write_queue_nums)
        )
        self.random = random or _any_index

    def next_index(self, profile: ClientProfile) -> int:
        """Advance the round robin (`ThreadLocalIndex.incrementAndGet`, before 4.9.0 `getAndIncrement`).

        The list's length divides the number with a remainder; −2^31 is possible in 4.8.0 to 4.9.3.
        """
        index = self.send_which_queue + 1 if self.send_which_queue < MASK else -0x80000000
        if profile.index_step == "mask":
            self.send_which_queue = index
            return index & MASK
        if profile.index_step == "wrap":
            self.send_which_queue = index
            return java_abs(index)
        # Before 4.8.0 `Math.abs` of −2^31, still negative, is set to 0; in 4.8.0 it is stored and used as it is.
        index = java_abs(index)
        if profile.index_step == "clamp" and index < 0:
            index = 0
        self.send_which_queue = index
        return index

    def reset_index(self) -> None:
        """Start anew at a random place (`ThreadLocalIndex.reset`, 5.1.4 and newer)."""
        start = self.random()
        require(start, int, "the random number")
        self.send_which_queue = int32(start)

    def select(self, profile: ClientProfile, last_broker_name: str | None = None) -> MessageQueue:
        """The plain pick, without latency fault (`TopicPublishInfo.selectOneMessageQueue`).

        The broker of the attempt before is passed over if another one is there. An empty list divides by zero, as in
        Java; `sendDefaultImpl` asks before.
        """
        if last_broker_name is not None:
            found = self._other_broker(profile, last_broker_name)
            if found is not None:
                return found
        queues = self.queues
        return queues[position(self.next_index(profile), len(queues))]

    def select_where(self, profile: ClientProfile, accepts: Accepts) -> MessageQueue | None:
        """The next queue whose broker is accepted, or None; each try is a step (`TopicPublishInfo.select`, 5.1.4)."""
        queues = self.queues
        for _ in range(len(queues)):
            queue = queues[position(self.next_index(profile), len(queues))]
            if accepts(queue.broker_name):
                return queue
        return None

    def _other_broker(self, profile: ClientProfile, last_broker_name: str) -> MessageQueue | None:
        if profile.skip != "scan":
            return self.select_where(profile, last_broker_name.__ne__)
        queues = self.queues
        index = self.next_index(profile)
        for i in range(len(queues)):
            queue = queues[position(java_abs(int32(index + i)), len(queues))]
            if queue.broker_name != last_broker_name:
                return queue
        return None


def java_abs(value: int) -> int:
    """`Math.abs` of an int: −2^31 stays what it is."""
    return value if value >= 0 or value == -0x80000000 else -value


def position(index: int, size: int) -> int:
    """Where in a list of that size an index points: Java's remainder, and 0 where that is negative.

    Raises ZeroDivisionError.
    """
    place = index % size
    return place if index >= 0 else 0


def _any_index() -> int:
    import random

    return random.randrange(MASK)  # noqa: S311 - it imitates java.util.Random
