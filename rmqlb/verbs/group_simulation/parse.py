"""Option values of `simulate-rebalance` and `plan-rollout` as typed, parsed. Each error names the option."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import get_args

from rmqlb.errors import UsageError
from rmqlb.model.group import RETRY_PREFIX, ConsumerType
from rmqlb.model.group_scenario import TIMER_NAMES, Timers
from rmqlb.model.snapshot import suggestion
from rmqlb.verbs.amounts import duration_us, rate

_MAY_BE_ZERO = ("pull-delay", "release-wait", "notify-batch", "unlock-delay")


def timers(texts: Sequence[str]) -> Timers:
    """`--timer NAME=TIME`: the clocks that differ from the defaults."""
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


def consumer_types(texts: Sequence[str]) -> tuple[ConsumerType | None, dict[str, ConsumerType]]:
    """`--consumer-type [ID=]TYPE`: that of all members, or None, and client id → its own."""
    types = get_args(ConsumerType)
    usual: ConsumerType | None = None
    said: dict[str, ConsumerType] = {}
    for text in texts:
        client_id, equals, name = text.rpartition("=")
        if name.lower() not in types:
            raise UsageError(f"--consumer-type {text}: there is no type {name}", hint=f"write {', '.join(types)}")
        if client_id in said or (not equals and usual is not None):
            raise UsageError(f"--consumer-type {text}: it is given twice", code="given-twice")
        kind: ConsumerType = name.lower()  # type: ignore[assignment]
        if equals:
            said[client_id] = kind
        else:
            usual = kind
    return usual, said


def rates(texts: Sequence[str], topics: Sequence[str]) -> Mapping[str, float]:
    """`--rate [TOPIC=]R`: topic → messages a second; R alone is of each other topic, retry topics left out."""
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
