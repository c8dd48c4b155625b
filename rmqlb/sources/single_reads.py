"""The single reads that a live source is made of, as protocols: what a NameServer or Dashboard does, and a Proxy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from rmqlb.model.group import ProxyView, QueueState
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.snapshot import RouteSighting, Unread
from rmqlb.sources.formats import documents as docs
from rmqlb.sources.questions import OffsetReads, PopReads


class AdminReads(Protocol):
    """The single reads that a live source is made of; each may be called by several threads.

    Each raises `Refused` when the far side answers with an error, `EndpointError` when it does not answer.
    """

    kind: str
    endpoint: str
    offsets_at_once: bool  # one call of `offsets` serves all brokers

    # how brokers are asked about single queues; None where they cannot be
    @property
    def offset_reads(self) -> OffsetReads | None: ...
    # how brokers are asked about consumption by POP; None where they cannot be
    @property
    def pop_reads(self) -> PopReads | None: ...
    def topics(self) -> list[str]: ...  # the names of all topics
    def groups(self) -> list[str]: ...  # the names of all consumer groups
    def has_group(self, group: str) -> bool: ...  # the cluster knows the group, whether it has members or not
    def route(self, topic: str) -> RouteSighting | None: ...  # a topic's route, or None when there is no such topic
    def brokers(self, group: str) -> dict[str, str]: ...  # name → address of the brokers to ask about a group's members
    # a group's members as one broker lists them, or None when it lists none
    def connections(self, group: str, address: str) -> docs.ConnectionsDocument | None: ...
    # how far the group has read its queues on these brokers
    def offsets(self, group: str, addresses: Sequence[str]) -> dict[MessageQueue, QueueState]: ...
    # what a member says of itself, asked through one broker
    def running_info(
        self, group: str, client_id: str, address: str, *, stacks: bool = False
    ) -> docs.RunningInfoDocument: ...
    # the topic's message.type at a broker; None where the broker does not report it
    def message_type(self, topic: str, address: str) -> str | None: ...
    # ask brokers that were silent once more; True when one of them answers now
    def silent_brokers_answer(self) -> bool: ...
    # what could not be read on the way, such as a NameServer that does not answer
    def unread(self) -> list[Unread]: ...
    def close(self) -> None: ...  # close all connections


class ProxyReads(Protocol):
    """What Proxies are asked; it may be called by several threads, and raises nothing: see `unread`."""

    # what each Proxy lists, of those that answer, and the whole document when a consumer is online there
    def consumers(self, group: str) -> list[tuple[ProxyView, docs.ConnectionsDocument | None]]: ...
    def unread(self) -> list[Unread]: ...  # the Proxies that did not answer, or that are none
    def close(self) -> None: ...  # close all connections
