"""What a broker tells of consumption by POP, which no list of consumers shows.

RocketMQ 5's gRPC clients are connected to a Proxy. In cluster mode it keeps them to itself: brokers list none of them,
and see receive requests (POP) of their group come from the Proxy. Consumers of the remoting protocol may use POP too,
when they let brokers assign their queues.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeVar

from msgspec import Struct

from rmqlb.model.group import RETRY_PREFIX, ConsumerGroup, States
from rmqlb.model.snapshot import AssignmentQuestion
from rmqlb.sources.assignments import AssignmentReads

_Value = TypeVar("_Value", str, int)
MOST_TOPICS = 16  # topics of one group that brokers are asked about


class SetMode(Struct, frozen=True):
    """PULL or POP, and of how many further consumers a consumer may read the queues by POP, where the broker says."""

    mode: str
    pop_share_queue_num: int | None = None


class RequestModes(Struct, frozen=True):
    """What brokers have for a group: topic → modes and `popShareQueueNum`, several where they differ; None: unknown."""

    modes: Mapping[str, tuple[str, ...]] | None = None
    shares: Mapping[str, tuple[int, ...]] | None = None


class PopReads(AssignmentReads, Protocol):
    """The questions; a broker before 5.0 knows none of them but the first, and None stands for its answers.

    What does not know, refuses or does not answer them leaves it unknown: nothing else depends on them.
    """

    # how far the group has read its queues, and how many messages a second it got over the last minute
    def consumed(self, group: str, address: str) -> tuple[States, float | None]: ...
    # topic → the mode that was set for the group
    def request_modes(self, group: str, address: str) -> Mapping[str, SetMode] | None: ...
    # how many receive requests of the group wait for a message of the topic
    def polling_num(self, group: str, topic: str, address: str) -> int | None: ...


def request_modes(reads: PopReads | None, group: ConsumerGroup, via: Mapping[str, str]) -> RequestModes:
    """The modes that brokers have for the group.

    They play no part, and are not asked for, when all members say that they rebalance by themselves: those pull. `via`
    is client id → address of a broker that lists it.
    """
    reports = group.reports
    if reads is None or all(client_id in reports and reports[client_id].client_rebalance for client_id in via):
        return RequestModes()
    answers = [reads.request_modes(group.group, address) for address in dict.fromkeys(via.values())]
    found: dict[str, set[str]] = {}
    shares: dict[str, set[int]] = {}
    for topic, given in (pair for answer in answers if answer is not None for pair in answer.items()):
        found.setdefault(topic, set()).add(given.mode)
        if given.pop_share_queue_num is not None:
            shares.setdefault(topic, set()).add(given.pop_share_queue_num)
    led = next((client_id for client_id, report in reports.items() if report.client_rebalance is False), None)
    if led is not None:
        rest = [topic for topic in group.own_topics or () if topic not in found]
        for topic in rest[:MOST_TOPICS]:
            question = AssignmentQuestion(topic, led, "AVG", "", via[led])
            reported = reads.assignment(group.group, question)
            if reported is not None and reported.mode is not None:
                found[topic] = {reported.mode}
    unknown = not found and all(answer is None for answer in answers)
    if unknown:
        return RequestModes()
    return RequestModes(_sorted(found), _sorted(shares))


def _sorted(found: Mapping[str, set[_Value]]) -> dict[str, tuple[_Value, ...]]:
    return {topic: tuple(sorted(values)) for topic, values in found.items()}


def polling_num(reads: PopReads | None, group: str, topics: Sequence[str], addresses: Sequence[str]) -> int | None:
    """How many receive requests of the group wait at the brokers, over its topics; None when no broker tells."""
    if reads is None:
        return None
    asked = [topic for topic in topics if not topic.startswith(RETRY_PREFIX)][:MOST_TOPICS]
    numbers = [reads.polling_num(group, topic, address) for topic in asked for address in addresses]
    known = [number for number in numbers if number is not None]
    return sum(known) if known else None
