"""Who owns each queue of one topic, as computed for a list of consumers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct, field

from rmqlb.model.message_queue import MessageQueue

Basis = Literal["observed", "predicted", "assumed"]
Change = Literal["same", "moved", "assigned", "unassigned", "added", "removed"]
"""How a queue's owner differs from the one before."""


class Assignment(Struct, frozen=True):
    """Who owns each queue of a topic once every consumer has run its strategy."""

    topic: str
    strategy: str
    queues: tuple[MessageQueue, ...]  # in the clients' order, then queues that only a CONFIG list names
    client_ids: tuple[str, ...]
    owners: Mapping[MessageQueue, tuple[str, ...]]  # queue → client IDs, sorted; empty when it is unassigned
    reasons: Mapping[MessageQueue, str] = field(default_factory=dict)  # queue → why it goes there, if requested
    idle: Mapping[str, str] = field(default_factory=dict)  # consumer without a queue of this topic → why
    failures: Mapping[str, str] = field(default_factory=dict)  # consumer that keeps its queues → text that it throws
