"""A change of a topic's queues, in steps: what to run, what to wait for, and what each step does."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field

from rmqlb.model.message_queue import QueueName
from rmqlb.model.result import Result

StepKind = Literal[
    "add-read-queues",
    "hold-producers",
    "change-write-queues",
    "release-producers",
    "drain-queues",
    "remove-read-queues",
]
WaitKind = Literal["readable", "owned", "drained", "writable", "not-readable"]


class WaitFor(Struct, frozen=True, rename="camel"):
    """Something to wait for, that a snapshot can be asked.

    Attributes:
        kind: readable (NameServers show all these queues to consumers), owned (in each group with consumers every one
            of these queues has an observed owner), drained (no group has unread messages in these queues), writable
            (producers have exactly these queues, in this order), not-readable (consumers have none of these queues).
        queues: which queues it is about.
    """

    kind: WaitKind
    queues: tuple[QueueName, ...]


class Checked(Struct, frozen=True, rename="camel"):
    """What came of waiting for something.

    Attributes:
        kind: of what is waited for.
        holds: whether it holds; null when that cannot be known.
        found: what there is instead, or what is missing to know; empty when it holds.
    """

    kind: WaitKind
    holds: bool | None
    found: str


class AdminCommand(Struct, frozen=True, rename="camel"):
    """A command of mqadmin; rmqlb never runs it.

    Attributes:
        broker_name: the broker that it changes; null when it changes the NameServers' order configuration.
        address: of that broker's master; null when it is unknown, and the text has a placeholder.
        text: the command to copy.
    """

    broker_name: str | None
    address: str | None
    text: str


class BrokerQueues(Struct, frozen=True, rename="camel"):
    """What a broker has of the topic after a step.

    Attributes:
        broker_name: the broker.
        read_queue_nums: queues that consumers can read.
        write_queue_nums: queues that producers can write.
        perm: bits: 4 read, 2 write.
    """

    broker_name: str
    read_queue_nums: int
    write_queue_nums: int
    perm: int


class StartCount(Struct, frozen=True, rename="camel"):
    """How owners of new queues begin.

    Attributes:
        rule: stored, beginning, end, timestamp, refused or unknown.
        queues: how many begin so.
    """

    rule: str
    queues: int


class GroupEffect(Struct, frozen=True, rename="camel"):
    """What a step does to a group.

    Attributes:
        group: its name.
        strategy: by which its queues are assigned; null when none decides, as in BROADCASTING or POP.
        moved: queues that go from one owner to another; null like the others when the group has no consumer online or
            no strategy decides.
        added: queues that its consumers get and that were not readable before.
        removed: queues that are no longer readable.
        unassigned: queues without an owner afterwards.
        idle: consumers without a queue afterwards.
        imbalance: of the queues per consumer afterwards.
        starts: how the owners of new queues begin.
        skipped: messages in new queues that their owners never read, because they begin at the end; null when that
            cannot be known.
        first_lost: new queues in which messages are lost that come before there is an owner: the group has no offset of
            them and begins at the end, and their first message is gone or not in the broker's memory; null when that
            cannot be known.
        lag_removed: messages now unread in the queues that are no longer readable, which the group loses if it does not
            read them first; null when it cannot be known.
        out_of_order_unheld: of the step that changes write queues: messages now unread that the group reads after newer
            ones of their key if producers are not held, where it reads the former queues last; those whose key moves,
            of the keys given (each equally often) or evenly hashed; null when it cannot be known.
    """

    group: str
    strategy: str | None
    moved: int | None
    added: int | None
    removed: int | None
    unassigned: int | None
    idle: int | None
    imbalance: float | None
    starts: tuple[StartCount, ...]
    skipped: int | None
    first_lost: int | None
    lag_removed: int | None
    out_of_order_unheld: int | None = None


class MovedKey(Struct, frozen=True, rename="camel"):
    """A key that goes to another queue.

    Attributes:
        key: a message group or sharding key.
        queue: that it is stored in before; null when no queue takes it.
        queue_after: that it is stored in afterwards; null when no queue takes it.
    """

    key: str
    queue: QueueName | None
    queue_after: QueueName | None


class KeysMoved(Struct, frozen=True, rename="camel"):
    """Keys that go to another queue, of one SDK's producers.

    Attributes:
        sdk: the SDK.
        moved: keys of --keys-file that move; null when that cannot be known.
        moved_share: the same as a share (0..1).
        keys: those that move, as given.
    """

    sdk: str
    moved: int | None
    moved_share: float | None
    keys: tuple[MovedKey, ...] = ()


class Step(Struct, frozen=True, rename="camel"):
    """One step.

    Attributes:
        number: from 1; the same in every run with the same options.
        kind: what it does.
        done: its change is in the route already, or none is needed.
        commands: what to run, in this order; empty where nothing is run.
        wait_for: all of it, before the next step.
        estimated_ms: how long until then, at most where clients' timers decide; null when it is unknown.
        brokers: what each broker has of the topic afterwards.
        readable_queues: queues that consumers can read afterwards.
        writable_queues: queues that producers can write afterwards.
        groups: what it does to each group, by name.
        keys: keys that move, SDK by SDK; empty where no key moves or no keys are given.
        uniform_share: share of evenly hashed keys (hash % number of queues) that go to another queue.
        order_broken_ms: for how long messages of a moved key can be consumed out of order; 0 where producers are held.
        order_broken_unheld_ms: the same if producers are not held, at most; null when it is unknown.
    """

    number: int
    kind: StepKind
    done: bool
    commands: tuple[AdminCommand, ...]
    wait_for: tuple[WaitFor, ...]
    estimated_ms: float | None
    brokers: tuple[BrokerQueues, ...]
    readable_queues: int
    writable_queues: int
    groups: tuple[GroupEffect, ...] = ()
    keys: tuple[KeysMoved, ...] = ()
    uniform_share: float = 0.0
    order_broken_ms: float | None = 0.0
    order_broken_unheld_ms: float | None = 0.0


class StepCheck(Struct, frozen=True, rename="camel"):
    """Whether all that a step waits for holds.

    Attributes:
        number: of the step.
        holds: whether the next step may begin; null when that cannot be known.
        conditions: each thing waited for, those of earlier steps that must still hold included.
    """

    number: int
    holds: bool | None
    conditions: tuple[Checked, ...]


class TopicChangePlan(Result, frozen=True):
    """How to change a topic's queues.

    Attributes:
        topic: its name.
        changes: what is asked for, in words.
        ordered: producers that send by key are held while writable queues change.
        readable_queues_before: queues that consumers can read now.
        readable_queues_after: queues that consumers can read in the end.
        writable_queues_before: queues that producers can write now.
        writable_queues_after: queues that producers can write in the end.
        next_step: number of the first step that is not done; null when all are.
        estimated_ms: how long all steps take; null when it is unknown.
        steps: in their order.
        checked: what --check-step found; null without it.
    """

    topic: str
    changes: tuple[str, ...]
    ordered: bool
    readable_queues_before: int
    readable_queues_after: int
    writable_queues_before: int
    writable_queues_after: int
    next_step: int | None
    estimated_ms: float | None
    steps: tuple[Step, ...] = field(default_factory=tuple)
    checked: StepCheck | None = None
