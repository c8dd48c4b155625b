"""Who owns each queue of one topic, as computed for a list of members."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from rmqlb.model.message_queue import MessageQueue


class Assignment(Struct, frozen=True):
    """Who owns each queue of a topic once every member has run its strategy.

    Attributes:
        queues: the topic's queues in the clients' order, then queues that only a CONFIG list names.
        client_ids: the members in the clients' order, duplicates kept.
        owners: queue → client ids, sorted; empty when nobody takes it.
        reasons: queue → why it goes where it goes; empty unless asked for.
        idle: member that gets no queue of this topic → why.
        failures: member → the text its client throws; it keeps what it held before.
    """

    topic: str
    strategy: str
    queues: tuple[MessageQueue, ...]
    client_ids: tuple[str, ...]
    owners: Mapping[MessageQueue, tuple[str, ...]]
    reasons: Mapping[MessageQueue, str] = field(default_factory=dict)
    idle: Mapping[str, str] = field(default_factory=dict)
    failures: Mapping[str, str] = field(default_factory=dict)
