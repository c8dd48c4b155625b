"""Where the keys of messages go, SDK by SDK, and what a change of the queues does to them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from msgspec import Struct

from rmqlb.model.message_queue import QueueName
from rmqlb.model.send_scenario import ProxyMode


class KeyedSdk(Struct, frozen=True, rename="camel"):
    """An SDK whose producers send the keys."""

    sdk: Annotated[str, "as it was asked for, such as go-grpc or go-grpc@5.1.4"]
    mirrors: Annotated[str, "the version whose rules are followed, with the SDK where that is another one"]
    vectors: Annotated[int, "answers of the SDK itself that hold the rules; 0 where its source was read"]
    live: Annotated[bool, "the rules were held against a producer that really ran too"]
    assumed: Annotated[bool, "the SDK or version asked for was not read; the rules are those of `mirrors`"]
    grpc: Annotated[bool, "its messages go to a Proxy, which picks the queue"]
    note: Annotated[str | None, "what the rules assume besides; null when they assume nothing"]
    unknown: Annotated[str | None, "why it cannot be said where its keys go; null when it can"]
    queues_used: Annotated[int | None, "queues that at least one key goes to; null when that cannot be known"]
    most_keys: Annotated[int | None, "keys of the queue that gets the most; null in the same case"]
    moved: Annotated[int | None, "keys that change their queue; null without a change, or when unknown"]
    moved_share: Annotated[float | None, "the same as a share of the keys (0..1)"]


class SdkPair(Struct, frozen=True, rename="camel"):
    """Two SDKs compared."""

    sdk: Annotated[str, "the one"]
    other_sdk: Annotated[str, "the other"]
    differ: Annotated[int, "keys that they send to different queues"]
    differ_share: Annotated[float, "the same as a share of the keys (0..1)"]


class KeyQueue(Struct, frozen=True, rename="camel"):
    """A key and where it goes."""

    key: Annotated[str, "a message group or sharding key"]
    picks: Annotated[Mapping[str, QueueName | None], "SDK → the queue that the SDK picks; null when unknown"]
    queues: Annotated[Mapping[str, QueueName | None], "SDK → the queue that stores it; null when unknown or none"]
    queues_after: Annotated[Mapping[str, QueueName | None] | None, "the same after the change; null without a change"]


class KeyQueues(Struct, frozen=True, rename="camel"):
    """Where the keys of a topic go."""

    topic: Annotated[str, "its name"]
    writable_queues: Annotated[int, "its queues that producers can write"]
    proxy_mode: Annotated[ProxyMode, "mode of the gRPC producers' Proxy: local (in each broker) or cluster"]
    sdks: Annotated[tuple[KeyedSdk, ...], "in the order asked for"]
    pairs: Annotated[tuple[SdkPair, ...], "each two SDKs whose queues can be known"]
    changes: Annotated[tuple[str, ...], "what changes, in words; empty when nothing does"]
    keys: Annotated[tuple[KeyQueue, ...], "key by key, as given, each once"]
