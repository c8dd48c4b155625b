"""The tables of the warehouse: each is one Struct, and a column is a field with its description.

Spark's DDL, the Arrow schema and the documentation derive from these classes. Column names are those of rmqlb's JSON.
Every table is partitioned by `date`, the night, and every row has its cluster. Null is unknown or not applicable.
"""

from __future__ import annotations

import re
import types
from collections.abc import Sequence
from datetime import date, datetime
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from msgspec import Struct, to_builtins

if TYPE_CHECKING:
    import pyarrow as pa


class Row(Struct, frozen=True, rename="camel", kw_only=True):
    """A row of any table."""

    date: Annotated[date, "the night, a date in UTC; the folder of the partition"]
    cluster: Annotated[
        str | None,
        "the cluster's name in the fleet; null for a rejected document that names none, and a rule of the fleet",
    ]


class ReadFile(Struct, frozen=True, rename="camel"):
    """A file that was read."""

    path: Annotated[str, "its URI"]
    length: Annotated[int, "its bytes"]
    modified: Annotated[int, "when it was changed, in milliseconds since 1970"]


class Snapshots(Row, frozen=True):
    """A snapshot that was read; of several of a cluster and night the last one counts."""

    snapshot: Annotated[str, "its ID: when it was taken and 8 hex digits of its hash"]
    taken_at: Annotated[datetime | None, "when it was taken; null when no document says"]
    counts: Annotated[bool, "the night's other tables are made from it"]
    files: Annotated[tuple[ReadFile, ...], "the files that it was read from; several when it consists of pieces"]
    hash: Annotated[str, "SHA-256 of the documents"]
    topics: Annotated[int, "topics with a route"]
    groups: Annotated[int, "consumer groups"]
    brokers: Annotated[int, "broker names in the routes"]
    unread: Annotated[int, "parts of the cluster that the snapshot could not read"]
    broker_addresses: Annotated[tuple[str, ...], "addresses of its brokers; two snapshots of one cluster share some"]
    version: Annotated[str, "the version of rmqlb that read it"]
    document: Annotated[str, "the snapshot without its groups, as `fetch-routes` writes it"] = ""


class Quarantine(Row, frozen=True):
    """A rejected document."""

    file: Annotated[ReadFile, "its URI, length and modification time"]
    position: Annotated[int, "which document of the file it is, from 1; 0 is the whole file"]
    other: Annotated[str | None, "the other file, where two contradict each other"]
    code: Annotated[str, "future-date, name-conflict, negative-count or unreadable"]
    reason: Annotated[str, "why it is rejected, one line"]
    version: Annotated[str, "the version of rmqlb that rejected it; another version tries again"]


class Running(Struct, frozen=True, rename="camel"):
    """A process of a group; several may have one client ID."""

    client_id: Annotated[str, "its client ID"]
    language: Annotated[str | None, "of its client library"]
    version: Annotated[str | None, "of its client library"]
    strategy: Annotated[str | None, "the allocation strategy that it reports"]


class Groups(Row, frozen=True):
    """A consumer group of the night."""

    snapshot: Annotated[str, "the snapshot that shows it"]
    group: Annotated[str, "its name"]
    consume_type: Annotated[str | None, "CONSUME_PASSIVELY (push), CONSUME_ACTIVELY (pull) or CONSUME_POP"]
    message_model: Annotated[str | None, "CLUSTERING or BROADCASTING"]
    consume_from_where: Annotated[str | None, "where a consumer starts a queue without a stored offset"]
    topics: Annotated[tuple[str, ...] | None, "its topics without the one for retries"]
    consumers: Annotated[
        tuple[Running, ...] | None, "its processes in the order of RocketMQ's clients; null when they are not known"
    ]
    strategies: Annotated[tuple[str, ...], "the allocation strategies that its consumers report, sorted"]
    split_view: Annotated[bool, "brokers list different consumers"]
    document: Annotated[
        str, "a snapshot of this group and its routes, as `fetch-routes` writes it; every command reads it"
    ]


class Queues(Row, frozen=True):
    """A queue as the cluster reports it for a group."""

    snapshot: Annotated[str, "the snapshot that shows it"]
    group: Annotated[str, "the group"]
    topic: Annotated[str, "the queue's topic"]
    broker_name: Annotated[str, "its broker"]
    queue_id: Annotated[int, "its number there, from 0"]
    owners_observed: Annotated[
        tuple[str, ...] | None, "the client IDs that own it; null when they were not observed, empty when none does"
    ]
    broker_offset: Annotated[int | None, "the next message to be stored"]
    consumer_offset: Annotated[
        int | None, "the next message that the group has not finished; -1 when it has stored none"
    ]
    lag: Annotated[int | None, "unread messages"]
    last_timestamp: Annotated[int | None, "when the last consumed message was stored, in milliseconds since 1970"]


class Assignments(Row, frozen=True):
    """A predicted owner of a queue: a row for each owner, and one row with null for a queue without."""

    group: Annotated[str, "the group"]
    strategy: Annotated[str, "the allocation strategy"]
    runs: Annotated[bool, "the group runs this strategy"]
    topic: Annotated[str, "the queue's topic"]
    broker_name: Annotated[str, "its broker"]
    queue_id: Annotated[int, "its number there, from 0"]
    owner: Annotated[str | None, "the client ID; null when no consumer gets the queue"]
    owners: Annotated[int, "how many owners the queue has under the strategy"]
    owners_observed: Annotated[tuple[str, ...] | None, "the client IDs that own it; null when they were not observed"]
    mismatch: Annotated[bool | None, "the observed owners differ; null when they were not observed"]
    lag: Annotated[int | None, "unread messages of the group"]


class Figures(Row, frozen=True):
    """A group under a strategy: one row as it runs, as `show-groups` counts it, and one for each `--strategy`."""

    group: Annotated[str, "the group"]
    strategy: Annotated[
        str | None,
        "the allocation strategy; several joined by a comma when consumers run different ones; "
        "null when none decides, or it is unknown",
    ]
    runs: Annotated[bool, "the row is about the group as it runs; every group has one such row"]
    origin: Annotated[str | None, "how the strategy is known: reported, observed, assumed; given for a `--strategy`"]
    status: Annotated[
        str | None, "of `show-groups`: error, warning, lagging, unknown, offline or inOrder; null for a `--strategy`"
    ]
    basis: Annotated[str | None, "how the owners are known: observed, predicted or assumed"]
    shares_queues: Annotated[
        bool | None, "consumers share the queues among themselves; false in BROADCASTING, by POP and behind a Proxy"
    ]
    topics: Annotated[int | None, "its topics"]
    consumers: Annotated[int | None, "distinct client IDs"]
    processes: Annotated[int | None, "running clients"]
    queues: Annotated[int | None, "readable queues of its topics"]
    unassigned: Annotated[int | None, "queues that certainly have no owner"]
    duplicate_owners: Annotated[int | None, "queues that certainly have two or more owners"]
    owners_unknown: Annotated[int | None, "queues whose owners are unknown"]
    idle: Annotated[int | None, "consumers without a queue"]
    min_queues_per_consumer: Annotated[int | None, "queues of the consumer with the fewest"]
    mean_queues_per_consumer: Annotated[float | None, "mean queues per consumer"]
    max_queues_per_consumer: Annotated[int | None, "queues of the consumer with the most"]
    imbalance: Annotated[float | None, "most queues of one consumer over the mean"]
    mismatches: Annotated[int | None, "queues whose observed owners differ from the predicted ones"]
    duplicate_client_ids: Annotated[int | None, "client IDs with several processes"]
    lag: Annotated[int | None, "unread messages; null when they are not known of every queue"]
    lag_at_least: Annotated[int | None, "unread messages of the queues of which they are known"]
    max_lag_per_consumer: Annotated[
        int | None,
        "unread messages of the consumer with the most, by predicted owners; null when one of its queues' is unknown",
    ]
    moved: Annotated[int | None, "queues that another consumer would own than as the group runs; 0 as it runs"]
    code: Annotated[str | None, "why figures are missing, a code of `rmqlb explain`"]
    problem: Annotated[str | None, "the same in a sentence"]


class Findings(Row, frozen=True):
    """A finding: of a diagnosis, of a policy, or of the fleet."""

    kind: Annotated[
        Literal["group", "policy", "fleet"],
        "group (as `show-groups` finds it), policy (a limit that did not pass) or fleet (a silent cluster)",
    ]
    group: Annotated[str | None, "the group; null when it is about none"]
    topic: Annotated[str | None, "the topic; null when it is about no single one"]
    code: Annotated[str, "of `rmqlb explain`; of a policy the limit's name, or rule when a rule found nothing to check"]
    severity: Annotated[Literal["error", "warning", "info"], "error, warning or info"]
    message: Annotated[str, "one line for people"]
    queues: Annotated[int, "how many queues it concerns"] = 0
    consumers: Annotated[tuple[str, ...], "the client IDs that it is about"] = ()
    evidence: Annotated[tuple[str, ...], "the evidence, one `fact: value` per line"] = ()
    consequence: Annotated[str, "the consequence"] = ""
    remedy: Annotated[str, "what to do"] = ""
    rule: Annotated[str | None, "the policy's rule"] = None
    verdict: Annotated[
        Literal["failed", "waived", "incomplete"] | None, "failed, waived or incomplete; null when no policy decides"
    ] = None
    value: Annotated[str | None, "what was measured against the limit, as text"] = None
    bound: Annotated[str | None, "what the limit allows, as text"] = None
    waived_until: Annotated[date | None, "the last day on which the waiver counts"] = None
    waived_by: Annotated[str | None, "who is responsible for the waiver"] = None
    waived_reason: Annotated[str | None, "the reason of the waiver"] = None
    command: Annotated[str | None, "the command that shows it"] = None


class WhatIf(Row, frozen=True):
    """A group after one loss, or with one more consumer, as `sweep-failures` and `plan-rebalance` answer."""

    group: Annotated[str, "the group"]
    strategy: Annotated[str, "the strategy that it runs"]
    change: Annotated[str, "what is lost (consumer, host, broker, master), or consumer-added"]
    subject: Annotated[
        str, "the client ID, host or broker name; `+1` for one more consumer, whose client ID sorts last"
    ]
    consumers: Annotated[int, "client IDs afterwards"]
    queues: Annotated[int, "readable queues afterwards"]
    unassigned: Annotated[int, "queues without an owner afterwards"]
    duplicate_owners: Annotated[int, "queues with two or more owners afterwards"]
    idle: Annotated[int, "consumers without a queue afterwards"]
    imbalance: Annotated[float | None, "most queues of one consumer over the mean afterwards"]
    moved: Annotated[int, "queues that go from one owner to another"]
    lag_moved: Annotated[int | None, "unread messages in the queues that move; null when not known for all of them"]
    without_lock: Annotated[int | None, "queues of an orderly group that no broker locks; null when that is unknown"]


class Sends(Row, frozen=True):
    """A topic that producers cannot write to: now, or once one broker, master or host is lost."""

    topic: Annotated[str, "the topic"]
    change: Annotated[str, "what is lost: none (it cannot be written to now), broker, master or host"]
    subject: Annotated[str | None, "the broker's name, or the host; null for none"]
    writable_brokers: Annotated[int, "brokers that producers can write to now"]
    writable_queues: Annotated[int, "queues that producers can write to now"]
    groups: Annotated[int, "consumer groups of the cluster that subscribe to the topic"]


class Changes(Row, frozen=True):
    """The differences from the night before, for clusters that both nights have."""

    previous: Annotated[date, "the night before, the fleet's last one before this date"]
    group: Annotated[str | None, "the group; null when it is about none"]
    topic: Annotated[str | None, "the topic; null when it is about none"]
    broker_name: Annotated[str | None, "the queue's broker"]
    queue_id: Annotated[int | None, "its number there"]
    change: Annotated[
        str,
        "queue-moved (other owners), consumer-joined, consumer-left, strategy, queue-count (of a "
        "topic of the group), finding-new, finding-gone, group-new or group-gone",
    ]
    subject: Annotated[str | None, "the client ID of a consumer, the code of a finding; null otherwise"]
    before: Annotated[str | None, "the former value: owners, the strategy, the number of queues, the finding's message"]
    after: Annotated[str | None, "the new value"]
    severity: Annotated[str | None, "of a finding"]
    observed: Annotated[
        bool | None, "the owners of both nights were observed; false when one is predicted. Null for other changes"
    ]
    rule: Annotated[str | None, "the policy's rule of a finding"]


INGESTED: tuple[type[Row], ...] = (Snapshots, Quarantine, Groups, Queues)
JUDGED: tuple[type[Row], ...] = (Assignments, Figures, Findings, WhatIf, Sends, Changes)
TABLES = (*INGESTED, *JUDGED)

_WORD = re.compile(r"(?<!^)(?=[A-Z])")
_SPARK = {str: "string", int: "bigint", float: "double", bool: "boolean", datetime: "timestamp", date: "date"}


def name(table: type[Row]) -> str:
    """The table's folder, such as `what_if`."""
    return _WORD.sub("_", table.__name__).lower()


@cache
def columns(table: type[Struct]) -> dict[str, str]:
    """Column → Spark's type, the cluster first, `date` last as Spark reads a partition."""
    hints = get_type_hints(table)
    named = zip(table.__struct_fields__, table.__struct_encode_fields__, strict=True)
    found = {column: _spark(hints[field]) for field, column in named}
    if "date" in found:
        found = {"cluster": found.pop("cluster"), **found, "date": found.pop("date")}
    return found


def ddl(table: type[Struct]) -> str:
    return ", ".join(f"`{column}` {kind}" for column, kind in columns(table).items())


def arrow_schema(table: type[Struct]) -> pa.Schema:
    import pyarrow as pa

    hints = get_type_hints(table)
    encoded = dict(zip(table.__struct_encode_fields__, table.__struct_fields__, strict=True))
    return pa.schema([(column, _arrow(hints[encoded[column]])) for column in columns(table)])


def union_ddl(tables: tuple[type[Row], ...]) -> str:
    """A schema with a struct for each table, one of which every row has."""
    return ", ".join(f"`{name(table)}` struct<{_fields(table)}>" for table in tables)


def union_batch(tables: tuple[type[Row], ...], rows: Sequence[Row]) -> pa.RecordBatch:
    """Rows of one table, at least one, as a batch of `union_ddl`."""
    import pyarrow as pa

    values: list[dict[str, Any]] = to_builtins(rows, builtin_types=(date, datetime))
    kinds = {table: pa.struct(list(arrow_schema(table))) for table in tables}
    arrays = [
        pa.array(values, kind) if table is type(rows[0]) else pa.nulls(len(rows), kind) for table, kind in kinds.items()
    ]
    return pa.RecordBatch.from_arrays(arrays, [name(table) for table in tables])


def _fields(table: type[Struct]) -> str:
    return ", ".join(f"`{column}`: {kind}" for column, kind in columns(table).items())


def _required(hint: Any) -> Any:
    """The type without None; a Literal as text."""
    if get_origin(hint) in (Union, types.UnionType):
        (hint,) = (each for each in get_args(hint) if each is not type(None))
    if get_origin(hint) is Literal:
        return str
    return hint


def _spark(hint: Any) -> str:
    kind = _required(hint)
    if get_origin(kind) is tuple:
        return f"array<{_spark(get_args(kind)[0])}>"
    if kind in _SPARK:
        return _SPARK[kind]
    return f"struct<{_fields(kind)}>"


def _arrow(hint: Any) -> Any:
    import pyarrow as pa

    kind = _required(hint)
    if get_origin(kind) is tuple:
        return pa.list_(_arrow(get_args(kind)[0]))
    if isinstance(kind, type) and issubclass(kind, Struct):
        return pa.struct(list(arrow_schema(kind)))
    plain = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_(), date: pa.date32()}
    return plain.get(kind) or pa.timestamp("us", tz="UTC")
