"""The tables of the warehouse: each is one Struct, a column a field, and its description the line in the docstring.

Spark's DDL, the Arrow schema and the documentation derive from these classes. Column names are those of rmqlb's JSON.
Every table is partitioned by `date`, the night, and every row has its cluster. Null means unknown or not applicable.
"""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import Iterator, Sequence
from datetime import date, datetime
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, Union, get_args, get_origin, get_type_hints

from msgspec import Struct, to_builtins

if TYPE_CHECKING:
    import pyarrow as pa


class Row(Struct, frozen=True, rename="camel", kw_only=True):
    """A row of any table.

    Attributes:
        date: the night, a date in UTC; the folder of the partition.
        cluster: the cluster's name in the fleet; null for a rejected document that names none, and a rule of the fleet.
    """

    date: date
    cluster: str | None


class ReadFile(Struct, frozen=True, rename="camel"):
    """A file that was read.

    Attributes:
        path: its URI.
        length: its bytes.
        modified: when it was changed, in milliseconds since 1970.
    """

    path: str
    length: int
    modified: int


class Snapshots(Row, frozen=True):
    """A snapshot that was read; of several of a cluster and night the last one counts.

    Attributes:
        snapshot: its ID: when it was taken and 8 hex digits of its hash.
        taken_at: when it was taken; null when no document says.
        counts: the night's other tables come from it.
        files: the files that it was read from; several when it consists of pieces.
        hash: SHA-256 of the documents.
        topics: topics with a route.
        groups: consumer groups.
        brokers: broker names in the routes.
        unread: parts of the cluster that the snapshot could not read.
        broker_addresses: addresses of its brokers; two snapshots of one cluster share some.
        version: the version of rmqlb that read it.
        document: the snapshot without its groups, as `fetch-routes` writes it.
    """

    snapshot: str
    taken_at: datetime | None
    counts: bool
    files: tuple[ReadFile, ...]
    hash: str
    topics: int
    groups: int
    brokers: int
    unread: int
    broker_addresses: tuple[str, ...]
    version: str
    document: str


class Quarantine(Row, frozen=True):
    """A rejected document.

    Attributes:
        file: its URI, length and modification time.
        position: which document of the file it is, from 1; 0 is the whole file.
        other: the other file, where two contradict each other.
        code: future-date, name-conflict, negative-count or unreadable.
        reason: why it is rejected, one line.
        version: the version of rmqlb that rejected it; another version tries again.
    """

    file: ReadFile
    position: int
    other: str | None
    code: Literal["future-date", "name-conflict", "negative-count", "unreadable"]
    reason: str
    version: str


class Consumer(Struct, frozen=True, rename="camel"):
    """A process of a group; several may have one client ID.

    Attributes:
        client_id: its client ID.
        language: of its client library.
        version: of its client library.
        strategy: the allocation strategy that it reports.
    """

    client_id: str
    language: str | None
    version: str | None
    strategy: str | None


class Groups(Row, frozen=True):
    """A consumer group of the night.

    Attributes:
        snapshot: the snapshot that shows it.
        group: its name.
        consume_type: CONSUME_PASSIVELY (push), CONSUME_ACTIVELY (pull) or CONSUME_POP.
        message_model: CLUSTERING or BROADCASTING.
        consume_from_where: where a consumer starts a queue without a stored offset.
        topics: its topics without the one for retries.
        consumers: its processes in the order of RocketMQ's clients; null when they are not known.
        strategies: the allocation strategies that its consumers report, sorted.
        split_view: brokers list different consumers.
        document: a snapshot of this group and its routes, as `fetch-routes` writes it; every command reads it.
    """

    snapshot: str
    group: str
    consume_type: str | None
    message_model: str | None
    consume_from_where: str | None
    topics: tuple[str, ...] | None
    consumers: tuple[Consumer, ...] | None
    strategies: tuple[str, ...]
    split_view: bool
    document: str


class Queues(Row, frozen=True):
    """A queue as the cluster reports it for a group.

    Attributes:
        snapshot: the snapshot that shows it.
        group: the group.
        topic: the queue's topic.
        broker_name: its broker.
        queue_id: its number there, from 0.
        owners_observed: the client IDs that hold it; null when they were not observed, empty when none does.
        broker_offset: the next message to be stored.
        consumer_offset: the next message that the group has not finished; -1 when it has stored none.
        lag: unread messages.
        last_timestamp: when the last consumed message was stored, in milliseconds since 1970.
    """

    snapshot: str
    group: str
    topic: str
    broker_name: str
    queue_id: int
    owners_observed: tuple[str, ...] | None
    broker_offset: int | None
    consumer_offset: int | None
    lag: int | None
    last_timestamp: int | None


class Assignments(Row, frozen=True):
    """A predicted owner of a queue: a row for each owner, and one row with null for a queue without.

    Attributes:
        group: the group.
        strategy: the allocation strategy.
        runs: the group runs this strategy.
        topic: the queue's topic.
        broker_name: its broker.
        queue_id: its number there, from 0.
        owner: the client ID; null when no consumer gets the queue.
        owners: how many owners the queue has under the strategy.
        owners_observed: the client IDs that hold it; null when they were not observed.
        mismatch: the observed owners are others; null when they were not observed.
        lag: unread messages of the group.
    """

    group: str
    strategy: str
    runs: bool
    topic: str
    broker_name: str
    queue_id: int
    owner: str | None
    owners: int
    owners_observed: tuple[str, ...] | None
    mismatch: bool | None
    lag: int | None


class Figures(Row, frozen=True):
    """A group under a strategy: one row as it runs, as `show-groups` counts it, and one for each `--strategy`.

    Attributes:
        group: the group.
        strategy: the allocation strategy; several joined by a comma when consumers run different ones; null when none
            decides, or it is unknown.
        runs: the row is about the group as it runs; every group has one such row.
        origin: how the strategy is known: reported, observed, assumed; given for a `--strategy`.
        status: of `show-groups`: error, warning, unknown, offline or inOrder; null for a `--strategy`.
        basis: how the owners are known: observed, predicted or assumed.
        shares_queues: consumers share the queues among themselves; false in BROADCASTING, by POP and behind a Proxy.
        topics: its topics.
        consumers: distinct client IDs.
        processes: running clients.
        queues: readable queues of its topics.
        unassigned: queues that certainly have no owner.
        duplicate_owners: queues that certainly have two or more owners.
        owners_unknown: queues whose owners are unknown.
        idle: consumers without a queue.
        min_queues_per_consumer: queues of the consumer with the fewest.
        mean_queues_per_consumer: mean queues per consumer.
        max_queues_per_consumer: queues of the consumer with the most.
        imbalance: most queues of one consumer over the mean.
        mismatches: queues whose observed owners differ from the predicted ones.
        duplicate_client_ids: client IDs that several processes have.
        lag: unread messages; null when they are not known of every queue.
        lag_at_least: unread messages of the queues of which they are known.
        max_lag_per_consumer: unread messages of the consumer with the most, by predicted owners; null when one of its
            queues' is unknown.
        moved: queues that another consumer would own than as the group runs; 0 as it runs.
        code: why figures are missing, a code of `rmqlb explain`.
        problem: the same in a sentence.
    """

    group: str
    strategy: str | None
    runs: bool
    origin: str | None
    status: str | None
    basis: str | None
    shares_queues: bool | None
    topics: int | None
    consumers: int | None
    processes: int | None
    queues: int | None
    unassigned: int | None
    duplicate_owners: int | None
    owners_unknown: int | None
    idle: int | None
    min_queues_per_consumer: int | None
    mean_queues_per_consumer: float | None
    max_queues_per_consumer: int | None
    imbalance: float | None
    mismatches: int | None
    duplicate_client_ids: int | None
    lag: int | None
    lag_at_least: int | None
    max_lag_per_consumer: int | None
    moved: int | None
    code: str | None
    problem: str | None


class Findings(Row, frozen=True):
    """A finding: of a diagnosis, of a policy, or of the fleet.

    Attributes:
        kind: group (as `show-groups` finds it), policy (a limit that did not pass) or fleet (a silent cluster).
        group: the group; null when it is about none.
        topic: the topic; null when it is about no single one.
        code: of `rmqlb explain`; of a policy the limit's name, or rule when a rule found nothing to check.
        severity: error, warning or info.
        message: one line for people.
        queues: how many queues it concerns.
        consumers: the client IDs that it is about.
        evidence: what was seen, `fact: value` in a line each.
        consequence: what comes of it.
        remedy: what to do.
        rule: the policy's rule.
        verdict: failed, waived or incomplete; null when no policy decides.
        value: what was measured against the limit, as text.
        bound: what the limit allows, as text.
        waived_until: the last day on which the waiver counts.
        waived_by: who answers for the waiver.
        waived_reason: why the waiver is there.
        command: the command that shows it.
    """

    kind: Literal["group", "policy", "fleet"]
    group: str | None
    topic: str | None
    code: str
    severity: Literal["error", "warning", "info"]
    message: str
    queues: int = 0
    consumers: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    consequence: str = ""
    remedy: str = ""
    rule: str | None = None
    verdict: Literal["failed", "waived", "incomplete"] | None = None
    value: str | None = None
    bound: str | None = None
    waived_until: date | None = None
    waived_by: str | None = None
    waived_reason: str | None = None
    command: str | None = None


class WhatIf(Row, frozen=True):
    """A group after one loss, or with one more consumer, as `sweep-failures` and `plan-rebalance` answer.

    Attributes:
        group: the group.
        strategy: the strategy that it runs.
        change: what is lost (consumer, host, broker, master), or consumer-added.
        subject: the client ID, host or broker name; `+1` for one more consumer, whose client ID sorts last.
        consumers: client IDs afterwards.
        queues: readable queues afterwards.
        unassigned: queues without an owner afterwards.
        duplicate_owners: queues with two or more owners afterwards.
        idle: consumers without a queue afterwards.
        imbalance: most queues of one consumer over the mean afterwards.
        moved: queues that go from one owner to another.
        lag_moved: unread messages in the queues that move; null when not known for all of them.
        without_lock: queues of an orderly group that no broker locks; null when that is unknown.
    """

    group: str
    strategy: str
    change: Literal["consumer", "host", "broker", "master", "consumer-added"]
    subject: str
    consumers: int
    queues: int
    unassigned: int
    duplicate_owners: int
    idle: int
    imbalance: float | None
    moved: int
    lag_moved: int | None
    without_lock: int | None


class Sends(Row, frozen=True):
    """A topic that producers cannot write to: now, or once one broker, master or host is lost.

    Attributes:
        topic: the topic.
        change: what is lost: none (it cannot be written to now), broker, master or host.
        subject: the broker's name, or the host; null for none.
        writable_brokers: brokers that producers can write to now.
        writable_queues: queues that producers can write to now.
        groups: consumer groups of the cluster that subscribe to the topic.
    """

    topic: str
    change: Literal["none", "broker", "master", "host"]
    subject: str | None
    writable_brokers: int
    writable_queues: int
    groups: int


class Changes(Row, frozen=True):
    """What is different from the night before, for clusters that both nights have.

    Attributes:
        previous: the night before, the fleet's last one before this date.
        group: the group; null when it is about none.
        topic: the topic; null when it is about none.
        broker_name: the queue's broker.
        queue_id: its number there.
        change: queue-moved (other owners), consumer-joined, consumer-left, strategy, queue-count (of a topic of the
            group), finding-new, finding-gone, group-new or group-gone.
        subject: the client ID of a consumer, the code of a finding; null otherwise.
        before: what was: owners, the strategy, the number of queues, the finding's message.
        after: what is.
        severity: of a finding.
        observed: the owners of both nights were observed; false when one is predicted. Null for other changes.
        rule: the policy's rule of a finding.
    """

    previous: date
    group: str | None
    topic: str | None
    broker_name: str | None
    queue_id: int | None
    change: Literal[
        "queue-moved",
        "consumer-joined",
        "consumer-left",
        "strategy",
        "queue-count",
        "finding-new",
        "finding-gone",
        "group-new",
        "group-gone",
    ]
    subject: str | None
    before: str | None
    after: str | None
    severity: str | None
    observed: bool | None
    rule: str | None


INGESTED: tuple[type[Row], ...] = (Snapshots, Quarantine, Groups, Queues)
"""What `pipeline ingest` writes."""
JUDGED: tuple[type[Row], ...] = (Assignments, Figures, Findings, WhatIf, Sends, Changes)
"""What `pipeline judge` writes."""
TABLES = (*INGESTED, *JUDGED)

_WORD = re.compile(r"(?<!^)(?=[A-Z])")
_SPARK = {
    str: "string",
    int: "bigint",
    float: "double",
    bool: "boolean",
    datetime: "timestamp",
    date: "date",
}


def name(table: type[Row]) -> str:
    """The table's folder.

    >>> name(WhatIf)
    'what_if'
    """
    return _WORD.sub("_", table.__name__).lower()


@cache
def columns(table: type[Struct]) -> dict[str, str]:
    """Column → Spark's type, the cluster first, `date` last as Spark reads a partition.

    >>> columns(Quarantine)["file"]
    'struct<`path`: string, `length`: bigint, `modified`: bigint>'
    """
    hints = get_type_hints(table)
    named = zip(table.__struct_fields__, table.__struct_encode_fields__, strict=True)
    found = {column: _spark(hints[field]) for field, column in named}
    if "date" in found:
        found = {"cluster": found.pop("cluster"), **found, "date": found.pop("date")}
    return found


def ddl(table: type[Struct]) -> str:
    """The table's schema as Spark reads it."""
    return ", ".join(f"`{column}` {kind}" for column, kind in columns(table).items())


def arrow_schema(table: type[Struct]) -> pa.Schema:
    """The table's schema in Arrow."""
    import pyarrow as pa

    hints = get_type_hints(table)
    encoded = dict(zip(table.__struct_encode_fields__, table.__struct_fields__, strict=True))
    return pa.schema([(column, _arrow(hints[encoded[column]])) for column in columns(table)])


def union_ddl(tables: tuple[type[Row], ...]) -> str:
    """A schema with a struct for each table, of which every row has one."""
    return ", ".join(f"`{name(table)}` struct<{_fields(table)}>" for table in tables)


def union_batch(tables: tuple[type[Row], ...], rows: Sequence[Row]) -> pa.RecordBatch:
    """Rows of one table, at least one, as a batch of the `union_ddl` of these tables."""
    import pyarrow as pa

    own = type(rows[0])
    columns_: list[pa.Array] = []
    for table in tables:
        kind = pa.struct(list(arrow_schema(table)))
        if table is own:
            encoded = dict(zip(own.__struct_encode_fields__, own.__struct_fields__, strict=True))
            arrays = [pa.array(_values(rows, encoded[field.name]), field.type) for field in kind]
            columns_.append(pa.StructArray.from_arrays(arrays, fields=list(kind)))
        else:
            columns_.append(pa.nulls(len(rows), kind))
    return pa.RecordBatch.from_arrays(columns_, [name(table) for table in tables])


def _values(rows: Sequence[Row], field: str) -> list[Any]:
    values = [getattr(row, field) for row in rows]
    some = next((value for value in values if value), None)
    is_nested = isinstance(some, Struct) or (isinstance(some, tuple) and isinstance(some[0], Struct))
    return to_builtins(values, builtin_types=(date, datetime)) if is_nested else values


def documentation() -> str:
    """All tables and columns as Markdown."""
    return "\n".join(line for table in TABLES for line in _documented(table))


def _documented(table: type[Row]) -> Iterator[str]:
    own = inspect.cleandoc(table.__doc__ or "").partition("\n")[0]
    meanings = {**_meanings(Row), **_meanings(table)}
    yield from (f"## {name(table)}", "", own, "", "| column | type | meaning |", "|---|---|---|")
    for field, column in zip(table.__struct_fields__, table.__struct_encode_fields__, strict=True):
        yield f"| `{column}` | {columns(table)[column].replace('`', '')} | {meanings[field]} |"
    yield ""


def _meanings(table: type[Struct]) -> dict[str, str]:
    text = inspect.cleandoc(table.__doc__ or "").partition("Attributes:\n")[2]
    parts = re.split(r"^    (\w+): ", text, flags=re.MULTILINE)[1:]
    return {field: " ".join(meaning.split()) for field, meaning in zip(parts[::2], parts[1::2], strict=True)}


def _fields(table: type[Struct]) -> str:
    return ", ".join(f"`{column}`: {kind}" for column, kind in columns(table).items())


def _required(hint: Any) -> Any:
    """The type without None, a Literal as the type of its values, a tuple as `(tuple, its element)`."""
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
