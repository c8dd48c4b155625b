"""How much can be asked for: the bounds of numbers, shared by the command line, the Python API and documents."""

import re
from typing import Annotated

from msgspec import Meta

DAY_US = 86_400_000_000
LONGEST_US = 366 * DAY_US
LONGEST_MS = LONGEST_US // 1000
MOST_MESSAGES = 10**12
MOST_RATE = 10**7  # messages a second
MOST_THREADS = 1000
MOST_RETRIES = 100
MOST_FAILURES = 20_000
MOST_SEND_TRIALS = 10**7
MOST_GROUP_TRIALS = 10**6
MOST_VIRTUAL_NODES = 10**6
MOST_QUEUES = 200_000  # of one topic
MOST_QUEUES_OF_A_BROKER = 100_000
MOST_CONSUMERS = 100_000
MOST_EVENTS = 1_000_000
MOST_STEPS = 30_000_000  # of one simulation of a group: messages, timers and waits; some minutes on one core
SHORTEST_US = 1000  # of what repeats itself: RocketMQ's timers count whole milliseconds

Time = Annotated[int, Meta(ge=0, le=LONGEST_US)]  # microseconds
PositiveTime = Annotated[int, Meta(ge=1, le=LONGEST_US)]
Milliseconds = Annotated[int, Meta(ge=0, le=LONGEST_MS)]
Threshold = Annotated[int, Meta(ge=0, le=999_999_999)]  # milliseconds of a latency fault table
Seed = Annotated[int, Meta(ge=-(2**63), le=2**64 - 1)]
TrialNumber = Annotated[int, Meta(ge=0, le=10**9)]
Priority = Annotated[int, Meta(ge=0, le=2**31 - 1)]  # of a message (`Message.setPriority`)
JavaInt = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
GivenQueues = Annotated[int, Meta(ge=0, le=MOST_QUEUES_OF_A_BROKER - 1)]  # how many queues an event gives a broker
UNITS_US = {"us": 1, "ms": 1000, "s": 1_000_000, "m": 60_000_000, "h": 3_600_000_000, "d": DAY_US}
_PART = re.compile(r"(\d+(?:\.\d+)?)(us|ms|s|m|h|d)")


def time_us(text: str) -> int | None:
    """Microseconds of a time such as `1m30s`, more than `LONGEST_US` for a longer one; None for another text.

    >>> time_us("1m30s"), time_us("0.5ms"), time_us("90")
    (90000000, 500, None)
    """
    parts = _PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        return None
    if any(len(number) > 20 for number, _ in parts):
        return LONGEST_US + 1
    value = sum(int(number) * UNITS_US[unit] for number, unit in parts if "." not in number)
    if "." in text:
        from decimal import Decimal

        value += round(sum(Decimal(number) * UNITS_US[unit] for number, unit in parts if "." in number))
    return value
