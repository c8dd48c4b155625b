"""What a plan or a simulation was made from, so that it can be told later whether the cluster has moved on since."""

from __future__ import annotations

from msgspec import Struct

from rmqlb.model.diff import GroupDiff, TopicDiff


class UsedBroker(Struct, frozen=True, rename="camel"):
    """A broker of a topic; its addresses, which a restart may change, are left out.

    Attributes:
        broker_name: its name.
        read_queue_nums: queues that consumers can read.
        write_queue_nums: queues that producers can write.
        perm: bits: 4 read, 2 write; 6 is usual.
        broker_ids: IDs of the brokers that have an address; 0 is the master.
    """

    broker_name: str
    read_queue_nums: int
    write_queue_nums: int
    perm: int
    broker_ids: tuple[int, ...]


class UsedMapping(Struct, frozen=True, rename="camel"):
    """Which logical queues of a static topic a broker says that it serves.

    Attributes:
        broker_name: the broker that says so.
        scope: of the queues; null when none is named.
        total_queues: logical queues of the whole topic.
        bname: the broker that it names; null when none is named.
        epoch: in milliseconds; the newer one counts.
        queue_ids: the logical queues, sorted.
    """

    broker_name: str
    scope: str | None
    total_queues: int
    bname: str | None
    epoch: int
    queue_ids: tuple[int, ...]


class UsedTopic(Struct, frozen=True, rename="camel"):
    """A topic's route.

    Attributes:
        topic: its name.
        brokers: by name.
        order_topic_conf: `broker:count;broker:count` of an ordered topic, or null.
        mappings: of a static topic, by broker; empty for ordinary ones.
    """

    topic: str
    brokers: tuple[UsedBroker, ...]
    order_topic_conf: str | None
    mappings: tuple[UsedMapping, ...]


class UsedConsumer(Struct, frozen=True, rename="camel"):
    """A consumer as it was taken to be.

    Attributes:
        client_id: its client ID.
        processes: how many processes have the ID.
        strategy: the strategy that it was taken to run.
        topics: to which it subscribes, by name; null when it does not report them.
        sdk: the client library that it was taken to run.
    """

    client_id: str
    processes: int
    strategy: str
    topics: tuple[str, ...] | None
    sdk: str = "java"


class MadeFrom(Struct, frozen=True, rename="camel"):
    """What a plan or a simulation was made from.

    Attributes:
        fingerprint: of the topics' routes, the consumers and their strategies: equal as long as none of them changes.
        owners_fingerprint: of the owners observed; null when none is reported.
        offsets_fingerprint: of the offsets; null when none is reported.
        taken_at: when the source was read, ISO-8601 in UTC; null when it does not report it.
        group: the group; null when there is none.
        broadcasting: its consumers read every queue each.
        topics: by name.
        consumers: as clients sort them.
    """

    fingerprint: str
    owners_fingerprint: str | None
    offsets_fingerprint: str | None
    taken_at: str | None
    group: str | None
    broadcasting: bool
    topics: tuple[UsedTopic, ...]
    consumers: tuple[UsedConsumer, ...]


class Against(Struct, frozen=True, rename="camel"):
    """What the cluster is now beside what an earlier result was made from.

    Attributes:
        file: that holds the earlier result.
        taken_at: when its source was read; null when that is unknown.
        fingerprint: the earlier one.
        same: neither routes nor consumers nor strategies have changed.
        same_owners: nor have the owners observed; null when they are not reported on both sides.
        same_offsets: nor have the offsets; null when they are not reported on both sides.
        group: what changed of the group, and which queues its predicted owners move; null when nothing did.
        topics: what changed of the routes.
    """

    file: str
    taken_at: str | None
    fingerprint: str
    same: bool
    same_owners: bool | None
    same_offsets: bool | None
    group: GroupDiff | None
    topics: tuple[TopicDiff, ...]

    @property
    def changes(self) -> int:
        """How many consumers, strategies, subscriptions and topics have changed; 0 only when nothing has."""
        group = self.group
        number = len(self.topics)
        if group is not None:
            each = (group.joined, group.left, group.processes, group.topics_added, group.topics_removed, group.settings)
            number += sum(map(len, each)) + group.strategy_changed
        return 0 if self.same else max(number, 1)
