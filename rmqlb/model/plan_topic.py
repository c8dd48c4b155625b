"""A change of a topic's queues, in steps: what to run, what to wait for, and what each step does."""

from typing import Annotated, Literal

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
    """Something to wait for, that a snapshot can show."""

    kind: Annotated[WaitKind, "readable, owned, drained (no unread messages), writable (only these), not-readable"]
    queues: Annotated[tuple[QueueName, ...], "the queues of the condition"]


class Checked(Struct, frozen=True, rename="camel"):
    """Whether an awaited state is reached."""

    kind: Annotated[WaitKind, "number of items to wait for"]
    holds: Annotated[bool | None, "whether it holds; null when unknown"]
    found: Annotated[str, "the current state, or the missing data; empty when it holds"]


class AdminCommand(Struct, frozen=True, rename="camel"):
    """A command of mqadmin; rmqlb never runs it."""

    broker_name: Annotated[str | None, "the broker that it changes; null for the NameServers' configuration"]
    address: Annotated[str | None, "of that broker's master; null when it is unknown, and the text has a placeholder"]
    text: Annotated[str, "the command to copy"]


class BrokerQueues(Struct, frozen=True, rename="camel"):
    """What a broker has of the topic after a step."""

    broker_name: str
    read_queue_nums: Annotated[int, "queues that consumers can read"]
    write_queue_nums: Annotated[int, "queues that producers can write"]
    perm: Annotated[int, "bits: 4 read, 2 write"]


class StartCount(Struct, frozen=True, rename="camel"):
    """How owners of new queues begin."""

    rule: Annotated[str, "stored, beginning, end, timestamp, refused or unknown"]
    queues: Annotated[int, "how many queues begin there"]


class GroupEffect(Struct, frozen=True, rename="camel"):
    """What a step does to a group."""

    group: Annotated[str, "its name"]
    strategy: Annotated[str | None, "strategy that assigns its queues; null when none decides"] = None
    moved: Annotated[int | None, "queues that change their owner; null like the others when unknown"] = None
    added: Annotated[int | None, "queues that its consumers get, and that were not readable before"] = None
    removed: Annotated[int | None, "queues that are no longer readable"] = None
    unassigned: Annotated[int | None, "queues without an owner afterwards"] = None
    idle: Annotated[int | None, "consumers without a queue afterwards"] = None
    imbalance: Annotated[float | None, "of the queues per consumer afterwards"] = None
    starts: Annotated[tuple[StartCount, ...], "how the owners of new queues begin"] = ()
    skipped: Annotated[int | None, "messages in new queues that their owners never read; null when unknown"] = None
    first_lost: Annotated[int | None, "new queues that lose messages stored before an owner; null when unknown"] = None
    lag_removed: Annotated[int | None, "unread messages in queues no longer readable; null when unknown"] = None
    out_of_order_unheld: Annotated[int | None, "unread messages out of order if producers are not held"] = None


class MovedKey(Struct, frozen=True, rename="camel"):
    """A key that goes to another queue."""

    key: Annotated[str, "a message group or sharding key"]
    queue: Annotated[QueueName | None, "that it is stored in before; null when no queue takes it"]
    queue_after: Annotated[QueueName | None, "that it is stored in afterwards; null when no queue takes it"]


class KeysMoved(Struct, frozen=True, rename="camel"):
    """Keys that go to another queue, of one SDK's producers."""

    sdk: Annotated[str, "the SDK"]
    moved: Annotated[int | None, "keys of --keys that move; null when unknown"]
    moved_share: Annotated[float | None, "the same as a share (0..1)"]
    keys: Annotated[tuple[MovedKey, ...], "those that move, as given"] = ()


class PlanStep(Struct, frozen=True, rename="camel"):
    """One step."""

    number: Annotated[int, "from 1; the same in every run with the same options"]
    kind: Annotated[StepKind, "what it does"]
    done: Annotated[bool, "the route already has the change, or none is needed"]
    commands: Annotated[tuple[AdminCommand, ...], "what to run, in this order; empty where nothing is run"]
    wait_for: Annotated[tuple[WaitFor, ...], "all conditions, before the next step"]
    estimated_ms: Annotated[float | None, "time until then, at most where timers decide; null when unknown"]
    brokers: Annotated[tuple[BrokerQueues, ...], "what each broker has of the topic afterwards"]
    readable_queues: Annotated[int, "queues that consumers can read afterwards"]
    writable_queues: Annotated[int, "queues that producers can write afterwards"]
    groups: Annotated[tuple[GroupEffect, ...], "what it does to each group, by name"] = ()
    keys: Annotated[tuple[KeysMoved, ...], "keys that move, SDK by SDK; empty where none moves or none is given"] = ()
    uniform_share: Annotated[float, "share of evenly hashed keys that move to another queue"] = 0.0
    order_broken_ms: Annotated[float | None, "time with moved keys out of order; 0 where producers are held"] = 0.0
    order_broken_unheld_ms: Annotated[float | None, "the same if producers are not held, at most"] = 0.0


class StepCheck(Struct, frozen=True, rename="camel"):
    """Whether all that a step waits for holds."""

    number: Annotated[int, "of the step"]
    holds: Annotated[bool | None, "whether the next step may begin; null when unknown"]
    conditions: Annotated[tuple[Checked, ...], "each condition, those of earlier steps that must still hold included"]


class TopicChangePlan(Result, frozen=True):
    """How to change a topic's queues."""

    topic: str
    changes: Annotated[tuple[str, ...], "the requested changes, in words"]
    ordered: Annotated[bool, "producers that send by key are held while writable queues change"]
    readable_queues_before: Annotated[int, "queues that consumers can read now"]
    readable_queues_after: Annotated[int, "queues that consumers can read in the end"]
    writable_queues_before: Annotated[int, "queues that producers can write now"]
    writable_queues_after: Annotated[int, "queues that producers can write in the end"]
    next_step: Annotated[int | None, "number of the first step that is not done; null when all are"]
    estimated_ms: Annotated[float | None, "how long all steps take; null when it is unknown"]
    steps: Annotated[tuple[PlanStep, ...], "in their order"] = field(default_factory=tuple)
    checked: Annotated[StepCheck | None, "what --check-step found; null without it"] = None
