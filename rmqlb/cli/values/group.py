"""Option values of `simulate-rebalance` and `plan-rollout` as typed, parsed. Each error names the option."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from rmqlb.cli.values.amounts import duration_us, rate
from rmqlb.errors import UsageError
from rmqlb.model.group import RETRY_PREFIX
from rmqlb.model.group_scenario import TIMER_NAMES, Timers
from rmqlb.model.snapshot import suggestion

_MAY_BE_ZERO = ("pull-delay", "release-wait", "notify-batch", "unlock-delay")


def timers(texts: Sequence[str]) -> Timers:
    """`--timer NAME=TIME`: the clocks that differ from the defaults.

    Raises:
        UsageError: there is no such timer, it is said twice, or its time makes no sense.
    """
    said: dict[str, int] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        name = name.strip().lower().replace("_", "-")
        if name not in TIMER_NAMES:
            raise UsageError(f"--timer {text}: there is no timer {name}", hint=suggestion("timers", name, TIMER_NAMES))
        if not equals:
            raise UsageError(f"--timer {text}: how long?", hint=f"write {name}=5s")
        if TIMER_NAMES[name] in said:
            raise UsageError(f"--timer {text}: {name} is given twice", code="given-twice")
        time_us = duration_us(value, f"--timer {name}:", zero=name in _MAY_BE_ZERO)
        if time_us % 1000:
            raise UsageError(f"--timer {text}: clients and brokers count whole milliseconds")
        said[TIMER_NAMES[name]] = time_us
    return Timers(**said)


def rates(texts: Sequence[str], topics: Sequence[str]) -> Mapping[str, float]:
    """`--rate [TOPIC=]R`: topic → messages a second; R alone is of each other topic, retry topics left out.

    Raises:
        UsageError: it is malformed, said twice, or about a topic that is not simulated.
    """
    said: dict[str, float] = {}
    for text in texts:
        topic, _, value = text.rpartition("=")
        if topic and topic not in topics:
            raise UsageError(f"--rate {text}: topic {topic} is not simulated", hint=suggestion("topics", topic, topics))
        if topic in said:
            raise UsageError(f"--rate {text}: {topic or 'the rate of each topic'} is given twice", code="given-twice")
        is_none = re.fullmatch(r"0(?:\.0+)?(?:/[smh])?", value.strip())
        said[topic] = 0.0 if is_none else float(rate(value, f"--rate {text}:" if topic else "--rate"))
    others = {topic: said[""] for topic in topics if "" in said and not topic.startswith(RETRY_PREFIX)}
    return others | {topic: each for topic, each in said.items() if topic}
