"""Who owns each queue of one topic, as computed for a list of consumers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct, field

from rmqlb.model.message_queue import MessageQueue

Basis = Literal["observed", "predicted", "assumed"]
"""How owners are known."""


class Assignment(Struct, frozen=True):
    """Who owns each queue of a topic once every consumer has run its strategy."""

    topic: str
    strategy: str
    # the topic's queues in the clients' order, then queues that only a CONFIG list names
    queues: tuple[MessageQueue, ...]
    client_ids: tuple[str, ...]
    owners: Mapping[MessageQueue, tuple[str, ...]]  # queue → client ids, sorted; empty when it is unassigned
    # queue → why it goes where it goes; empty unless asked for
    reasons: Mapping[MessageQueue, str] = field(default_factory=dict)
    idle: Mapping[str, str] = field(default_factory=dict)  # consumer that gets no queue of this topic → why
    # consumer → the text its client throws; it keeps what it held before
    failures: Mapping[str, str] = field(default_factory=dict)
