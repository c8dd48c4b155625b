"""Where the keys of messages go, SDK by SDK, and what a change of the queues does to them."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from rmqlb.model.message_queue import QueueName
from rmqlb.model.send_scenario import ProxyMode


class KeyedSdk(Struct, frozen=True, rename="camel"):
    """An SDK whose producers send the keys.

    Attributes:
        sdk: as it was asked for, such as go-grpc or go-grpc@5.1.4.
        mirrors: the version whose rules are followed, with the SDK where that is another one.
        vectors: questions that the SDK itself has answered, to which the rules are held; 0 where its source was read.
        live: the rules were held against a producer that really ran too.
        assumed: the SDK or version asked for was not read; its rules are taken to be those of the one that was.
        grpc: its messages go to a Proxy, which picks the queue.
        note: what the rules assume besides; null when they assume nothing.
        unknown: why it cannot be said where its keys go; null when it can.
        queues_used: queues that at least one key goes to; null when that cannot be known.
        most_keys: keys of the queue that gets the most; null in the same case.
        moved: keys that go to another queue after the change; null without a change, or when it cannot be known.
        moved_share: the same as a share of the keys (0..1).
    """

    sdk: str
    mirrors: str
    vectors: int
    live: bool
    assumed: bool
    grpc: bool
    note: str | None
    unknown: str | None
    queues_used: int | None
    most_keys: int | None
    moved: int | None
    moved_share: float | None


class SdkPair(Struct, frozen=True, rename="camel"):
    """Two SDKs compared.

    Attributes:
        sdk: the one.
        other_sdk: the other.
        differ: keys that they send to different queues.
        differ_share: the same as a share of the keys (0..1).
    """

    sdk: str
    other_sdk: str
    differ: int
    differ_share: float


class KeyQueue(Struct, frozen=True, rename="camel"):
    """A key and where it goes.

    Attributes:
        key: a message group or sharding key.
        picks: SDK → the queue that the SDK itself picks; a Proxy may store it in another one; null when that cannot be
            known.
        queues: SDK → the queue that it is stored in; null when that cannot be known, or no queue takes it.
        queues_after: the same after the change; null without a change.
    """

    key: str
    picks: Mapping[str, QueueName | None]
    queues: Mapping[str, QueueName | None]
    queues_after: Mapping[str, QueueName | None] | None


class KeyQueues(Struct, frozen=True, rename="camel"):
    """Where the keys of a topic go.

    Attributes:
        topic: its name.
        writable_queues: its queues that producers can write.
        proxy_mode: how the Proxy runs that gRPC producers send to: local, in each broker; cluster, by itself.
        sdks: in the order asked for.
        pairs: each two SDKs whose queues can be known.
        changes: what changes, in words; empty when nothing does.
        keys: key by key, as given, each once.
    """

    topic: str
    writable_queues: int
    proxy_mode: ProxyMode
    sdks: tuple[KeyedSdk, ...]
    pairs: tuple[SdkPair, ...]
    changes: tuple[str, ...]
    keys: tuple[KeyQueue, ...]
