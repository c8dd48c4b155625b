"""Every table of the warehouse: its name, its columns, and, below it, what they mean where their names do not say it.

Columns have the names of rmqlb's JSON; what is unknown is null. `cluster`, `date` and `snapshot` lead in every table
that comes from snapshots; the first two are its partitions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Table:
    """A named schema: column → Spark's type, in order; partitions are the columns that are folders."""

    name: str
    columns: Mapping[str, str]
    partitions: tuple[str, ...] = ()

    @property
    def ddl(self) -> str:
        """The schema as Spark reads it."""
        return ddl(self.columns)


def ddl(columns: Mapping[str, str]) -> str:
    """Columns as Spark's schema text."""
    return ", ".join(f"`{name}` {kind}" for name, kind in columns.items())


def struct(columns: Mapping[str, str]) -> str:
    """Columns as one of Spark's types."""
    return f"struct<{ddl(columns)}>"


def columns(text: str) -> dict[str, str]:
    """Spark's schema text as columns.

    >>> columns("topic string, addresses map<bigint, string>")
    {'topic': 'string', 'addresses': 'map<bigint, string>'}
    """
    names_and_kinds = (part.strip().partition(" ") for part in parts(text))
    return {name: kind for name, _, kind in names_and_kinds}


def parts(text: str) -> list[str]:
    """What stands between the commas that are in no `<…>`."""
    found, depth = [""], 0
    for char in text:
        depth += (char == "<") - (char == ">")
        if char == "," and depth == 0:
            found.append("")
        else:
            found[-1] += char
    return found


def table(name: str, text: str) -> Table:
    """A table of rows from snapshots: cluster, date and snapshot, then these columns."""
    return Table(name, {**KEY, **columns(text)}, ("cluster", "date"))


def by_cluster(name: str, text: str, *partitions: str) -> Table:
    """A table of rows from many snapshots: the cluster, then these columns; more partitions than the cluster."""
    return Table(name, columns(f"cluster string, {text}"), ("cluster", *partitions))


KEY = columns("cluster string, date date, snapshot string")
GROUP = (*KEY, "group")
"""What names a group of a snapshot."""
SNAPSHOT = ("cluster", "snapshot")
"""By what rows of a snapshot are joined: its date follows from these, and an unknown one would equal no other."""
GROUP_IN_SNAPSHOT = (*SNAPSHOT, "group")
"""By what rows of a group are joined."""
_QUEUE = "topic string, brokerName string, queueId int"
QUEUE = columns(_QUEUE)
RUNS = "array<struct<brokerName: string, queues: int>>"
"""Queues in a client's order, in runs: the first run's queues 0, 1, …, then the next run's."""

# What ingest writes.

DOCUMENTS = table(
    "documents", "file string, position int, hash string, kind string, takenAt timestamp, topics int, groups int"
)
"""One document that was read: a file, or the so many-th of a file with several (position, from 1).

`hash` is the SHA-256 of its bytes, by which it is known again; `kind` snapshot or pieces (routes, Dashboard answers).
`snapshot` names the snapshot that it is, or, for pieces, that it belongs to: all pieces of one folder and cluster.
"""

QUARANTINE = Table("quarantine", columns("file string, position int, hash string, bytes bigint, reason string"))
"""One document that could not be read, and why; `position` is the document in the file, from 1."""

TOPICS = table(
    "topics",
    f"topic string, subscribe {RUNS}, publish {RUNS}, publishProblem string, orderTopicConf string, isStatic boolean",
)
"""`subscribe`: the consumers' queues in the order in which they allocate; `publish`: the producers', null when a client
cannot make them of the route (`publishProblem`)."""

QUEUES = table("queues", f"{_QUEUE}, subscribe int, publish int")
"""One queue; `subscribe` and `publish` are its places in the clients' lists, null when it is not in them."""

BROKERS = table("brokers", "brokerName string, brokerCluster string, addresses map<bigint, string>, hasMaster boolean")

GROUPS = table(
    "groups",
    "group string, consumeType string, messageModel string, consumeFromWhere string, processes int, "
    "hasSplitView boolean, strategy string, mixedStrategies boolean, problem string, "
    "problemCode string",
)
"""`processes`: null when they were not observed; `strategy` is what most of them report (the first by client id of
equals), null when none does. `problem` says why the group's queues are not its clients' to allocate, or why that is
not known, and `problemCode` is the code of that, as `rmqlb explain` has it; both are null for all others."""

PROCESSES = table(
    "processes",
    "group string, place int, clientId string, language string, version string, strategy string, strategyClass string",
)
"""One process of a group; `place` is its index in the clients' sorted list. `strategy` is RocketMQ's name of the
reported `strategyClass`, the class's own name when it is none of RocketMQ's."""

SUBSCRIPTIONS = table("subscriptions", "group string, topic string, hasRoute boolean, absent array<string>")
"""`absent`: client ids that report their topics, and not this one; their shares of it stay unassigned."""

OWNERS = table("owners", f"group string, {_QUEUE}, place int, ownersObserved array<string>")
"""A queue whose owners the cluster reports; an empty list is a queue that it reports without one. `place`: the queue's
index in the clients' order, null when the route does not have it."""

OFFSETS = table(
    "offsets",
    f"group string, {_QUEUE}, place int, brokerOffset bigint, consumerOffset bigint, lag bigint, lastTimestamp bigint",
)

POP_QUEUES = table(
    "pop_queues",
    "group string, topic string, strategy string, popShareQueueNums array<int>, assumedPopShare boolean, "
    "brokerName string, queueId int, consumers array<string>",
)
"""Who may read what by POP, or through a Proxy (`strategy` null): no consumer owns a queue. `queueId` -1: any queue of
the broker; `consumers` null: not known; `brokerName` null: brokers do not have the `strategy`, and answer nothing."""

FILES = Table(
    "files",
    columns(
        "file string, length bigint, modified timestamp, cluster string, documents int, quarantined int, version string"
    ),
)
"""An input file that was read: one of this name, size and time is not read a second time. `cluster` is what `--cluster`
said; of its `documents` so many were `quarantined`, by this `version` of rmqlb; another version tries them
again. A file that changed has a row for each time it was read."""

CLUSTERS = Table(
    "clusters",
    columns(
        "cluster string, date date, snapshot string, takenAt timestamp, revision string, newest timestamp, "
        "snapshots int, untimed int, late int"
    ),
)
"""A cluster: its last snapshot (`date`, `snapshot`, `takenAt`), whose `revision` changes when it is made of other
documents; the `newest` time of any snapshot, how many `snapshots` have a time, how many are `untimed`. `late` changes
whenever one comes that is not newer than all others, or one of before is replaced."""

# What the sweeps read: a group with all that is needed to allocate its queues, in one row.

_GROUP_TOPICS = (
    f"array<struct<topic: string, subscribe: {RUNS}, absent: array<string>, "
    "lags: array<struct<place: int, lag: bigint>>, owners: array<struct<place: int, owners: array<string>>>>>"
)
FLEET = table(
    "fleet",
    "group string, strategy string, queues bigint, clientIds array<string>, "
    f"sdks array<struct<name: string, assumed: boolean>>, topics {_GROUP_TOPICS}, retryTopics {_GROUP_TOPICS}",
)
"""A group whose queues are its clients' to allocate, with the topics that have a route. `strategy`: what the consumers
report, or null; `clientIds`: in the order of Java's clients, duplicates kept. `sdks`: the client library of each of
them, and whether it is assumed; null when all are known to be Java's. `topics` is sorted by name, and has `queues` in
all; the group's `%RETRY%` topics stand apart. `lags` and `owners` name only the queues of which something is known."""

INGESTED = (DOCUMENTS, TOPICS, QUEUES, BROKERS, GROUPS, PROCESSES, SUBSCRIPTIONS, OWNERS, OFFSETS, POP_QUEUES, FLEET)

# What the sweeps write.

ASSIGNMENTS = table(
    "assignments", f"group string, {_QUEUE}, strategy string, owner string, owners int, lag bigint, mismatch boolean"
)
"""Who owns a queue under a strategy: a row for each owner, one row with null when it has none; `owners` is their
number. `mismatch`: the observed owners are others; null when they were not observed."""

REFUSALS = table("refusals", "group string, topic string, strategy string, reason string")
"""A group whose clients cannot run a strategy: the text that each of them throws; they keep what they hold."""

LOADS = table(
    "loads",
    "group string, strategy string, clientId string, place int, processes int, sdk string, assumedSdk boolean, "
    "queues int, lag bigint, excess double",
)
"""What a client id gets from all its topics. `sdk`: its client library, java, go or cpp; `assumedSdk`: its connection
names none, or one whose rules are not known. `lag` null when that of one of its queues is not known; `excess`: queues
beyond the mean of its group."""

SCORES = table(
    "scores",
    "group string, strategy string, runs boolean, origin string, sdk string, mixedSdks boolean, assumedSdks int, "
    "topics int, consumers int, queues int, idle int, unassigned int, duplicateOwners int, "
    "queuesOfDuplicateClientIds int, minQueuesPerConsumer int, meanQueuesPerConsumer double, maxQueuesPerConsumer int, "
    "imbalance double, lag bigint, maxLagPerConsumer bigint, observed int, mismatches int, firstIdBias double",
)
"""A group under a strategy, in the words of `show-owners`. `runs`: the group runs it, as its consumers report, as its
queues show, or by default (`origin`: reported, observed, assumed). `sdk` is the client library of most of its
consumers; `mixedSdks`: there are others, and each computes its share by its own; `assumedSdks`: consumers whose library
is assumed. `queuesOfDuplicateClientIds`: those whose owner's id several processes have. `imbalance` is the largest
number of queues over the mean; `mismatches` counts the `observed` queues whose owners are others; `firstIdBias` is what
the first client id has beyond the mean, summed over the group's topics."""

WHAT_IF = table(
    "what_if",
    "group string, strategy string, change string, subject string, strategyAfter string, consumersBefore int, "
    "consumersAfter int, queuesBefore int, queuesAfter int, moved int, newlyAssigned int, newlyUnassigned int, "
    "removed int, idleBefore int, idleAfter int, unassignedAfter int, duplicateOwnersAfter int, "
    "minQueuesPerConsumerAfter int, meanQueuesPerConsumerAfter double, maxQueuesPerConsumerAfter int, lagMoved bigint",
)
"""A group after a change, as `plan-rebalance` sums it up. `change` is consumers (`subject` +2, -1, …), broker-lost (the
broker), or strategy (the new one)."""

BROKER_LOSSES = table(
    "broker_losses",
    "brokerName string, topic string, readableQueuesBefore int, readableQueuesAfter int, writableQueuesBefore int, "
    "writableQueuesAfter int",
)
"""What a topic has left when a broker is lost."""

SIZES = table(
    "sizes",
    "group string, strategy string, origin string, sdk string, queues int, consumers int, satisfied boolean, "
    "fails string, fewest int, nextFewer int, nextMore int, imbalance double, idle int, share double, problem string, "
    "code string",
)
"""How many consumers a group should have under the strategy that it runs, as `size-group` finds it: `fewest` is the
least number that keeps all limits, null when none does up to the queues of its largest topic; `nextFewer` and
`nextMore` are the numbers that do next to the one that it has, null when none was found. `satisfied` and `fails` (the
limits that do not hold) are about the consumers that it has, null when there are none; `imbalance` and `idle` are those
of `fewest`, or of the size that comes nearest; `share` is the share of sets of client IDs for which all holds there. A
group that cannot be sized has a `problem` and mostly its `code`."""

WORST_LOSSES = table(
    "worst_losses",
    "group string, strategy string, origin string, sdk string, consumers int, queues int, losses int, broken int, "
    "unassigned int, unassignedBy string, imbalance double, imbalanceBy string, idle int, idleBy string, moved int, "
    "movedBy string, problem string, code string",
)
"""A group over every single loss, as `sweep-failures --at-once 1` tries them: the largest of each figure, and which
loss makes it so (`consumer NAME`, `broker NAME`, `master NAME`, `host ADDRESS`; null when no loss makes it larger).
`losses` take something of the group; `broken` of them break a limit that holds without them. A group that cannot be
swept has a `problem` and mostly its `code`."""

BROKEN_LIMITS = table(
    "broken_limits",
    "group string, strategy string, limitName string, bound double, value double, kind string, name string, losses int",
)
"""A limit that a single loss breaks: `value` is what it comes to, `losses` how many losses are alike, of which `kind`
and `name` are one; both are null, and `losses` 0, for a limit that is broken while nothing is lost."""

SENDS = table(
    "sends",
    "topic string, scenario string, latencyFault boolean, trials int, messages double, attempts double, "
    "attemptsPerMessage double, retries double, lost double, lostLow double, lostHigh double, lostShare double, "
    "losingTrials double, longestSendMs double",
)
"""A topic's producer under the failure schedule, means over the trials, in the words of `simulate-send`. `messages`,
`attempts`, `retries` and `lost` are numbers of a trial; `lostLow` and `lostHigh` bound the mean of `lost` with 95 %
confidence. `lostShare` is the share of messages lost, `losingTrials` that of trials that lost one, both 0 to 1."""

SEND_SHARES = table(
    "send_shares",
    "topic string, scenario string, latencyFault boolean, brokerName string, attempts double, failures double, "
    "share double",
)
"""What one broker of the topic gets of it, means over the trials: `attempts` and, of these, `failures` are numbers of
requests of a trial; `share` is its share of the messages stored, 0 to 1, null when no trial stored any."""

SESSIONS = by_cluster(
    "sessions",
    f"group string, {_QUEUE}, owner string, since timestamp, until timestamp, lastSeen timestamp, snapshots int, "
    "endedBy string, isOpen boolean",
    "isOpen",
)
"""From when to when a client held a queue: `since` is the first snapshot that shows it, `until` the first that does not
any more (null while it lasts), `lastSeen` the last that does. `endedBy`: moved, unassigned, unobserved (null while it
lasts). `isOpen`: it lasts or is unobserved, so that a later snapshot may show that it went on."""

MOVES = by_cluster(
    "moves",
    "date date, group string, moved int, newlyUnassigned int, newlyAssigned int, observed int, snapshots int",
    "date",
)
"""A group's day: queues that went from one owner to another between one snapshot and the next, by the date of the
later one; `observed`: queues looked at in both."""

FLAPPING = by_cluster(
    "flapping", "group string, moved int, returns int, queues int, days int, movedPerDay double, flaps boolean"
)
"""How restless a group is: `moved` sums its days; `returns` counts queues that went back to an owner they had before;
`queues` those that moved at least once."""

CHURN = by_cluster("churn", "date date, group string, processes int, joined int, left int", "date")
"""Processes that came and went since the snapshot before, by the date of the later one."""

TREND = table(
    "trend",
    "takenAt timestamp, group string, processes int, queues int, meanQueuesPerConsumer double, "
    "maxQueuesPerConsumer int, imbalance double, idle int, unassigned int, lag bigint",
)
"""A group as it was seen to hold its queues, snapshot by snapshot."""

HISTORY = (SESSIONS, MOVES, FLAPPING, CHURN, TREND)

# What the history goes on from, so that a night more costs one night.

QUEUES_SO_FAR = by_cluster(
    "queues_so_far",
    f"group string, {_QUEUE}, takenAt timestamp, date date, owners array<string>, observedAgain timestamp, "
    "hasMoved boolean, held array<struct<owner: string, since: timestamp, snapshots: int>>, lost array<string>",
)
"""A queue as it was sighted last (`takenAt`, `owners`), and what later nights depend on of its past: the next moment
at which its group was observed without it (`observedAgain`), whether it ever moved, the sessions of its owners
(`held`), and the clients that lost it (`lost`)."""

GROUPS_SO_FAR = by_cluster(
    "groups_so_far",
    "group string, firstDate date, lastDate date, moved int, queues int, restless int, most int, returns int, "
    "moments int, isBroadcasting boolean, takenAt timestamp, date date, processes array<string>",
)
"""A group, and what of its past FLAPPING and CHURN can depend on: the first and the last date at which it was observed,
sums over its steps (as in `history.moves.DAYS`), the `most` queues sighted at one moment, the queues that returned and
at how many `moments`; whether it was ever BROADCASTING; and its processes as they were observed last, at `takenAt`."""

SO_FAR = (QUEUES_SO_FAR, GROUPS_SO_FAR)
WRITTEN_BY: Mapping[str, tuple[Table, ...]] = {
    "ingest": (*INGESTED, QUARANTINE, FILES, CLUSTERS),
    "allocate": (ASSIGNMENTS, REFUSALS),
    "score": (LOADS, SCORES),
    "what-if": (WHAT_IF, BROKER_LOSSES),
    "size": (SIZES,),
    "sweep": (WORST_LOSSES, BROKEN_LIMITS),
    "producers": (SENDS, SEND_SHARES),
    "history": (*HISTORY, *SO_FAR),
}
"""Stage → the tables that it writes, in order."""
ALL = tuple(table for tables in WRITTEN_BY.values() for table in tables if table not in (FLEET, *SO_FAR))
"""The tables that people read."""

FORGOTTEN = Table("forgotten", columns("hash string, snapshot string, kind string"))
"""Documents that `compact --keep` has removed: they are known, and not ingested again."""

MIGRATED: Mapping[str, Mapping[str, str]] = {}
"""Table → a column that earlier versions did not write → what it is, as SQL, of the rows that they wrote. Where such a
column is not named, their rows cannot be known again, and the table is refused."""

# What the report hands on.

WHAT_IF_SUMMARY = table(
    "what_if_summary",
    "change string, subject string, strategy string, strategyAfter string, groups bigint, queuesBefore bigint, "
    "queuesAfter bigint, moved bigint, newlyAssigned bigint, newlyUnassigned bigint, removed bigint, "
    "idleBefore bigint, idleAfter bigint, unassignedAfter bigint, duplicateOwnersAfter bigint, "
    "maxQueuesPerConsumerAfter int, lagMoved bigint, lagUnknown bigint",
)
"""WHAT_IF summed over the groups under a strategy; `maxQueuesPerConsumerAfter` is the largest; `lagMoved` is that of
the groups whose lag is known, `lagUnknown` the number of the others."""

OVERVIEW = table(
    "overview",
    "group string, strategy string, origin string, sdk string, topics int, consumers int, queues int, idle int, "
    "unassigned int, duplicateOwners int, maxQueuesPerConsumer int, meanQueuesPerConsumer double, imbalance double, "
    "lag bigint, maxLagPerConsumer bigint, lagShare double, firstIdBias double, observed int, mismatches int, "
    "observedUnassigned int, observedDuplicateOwners int, mostQueues int, hasDuplicateClientIds boolean, "
    "mixedSubscriptions boolean, hasSplitView boolean, mixedStrategies boolean, mixedSdks boolean, leftOut string, "
    "code string",
)
"""A group in one line, under the strategy that it runs. `leftOut` says why a group is in no figure, and `code` is the
code of that; both are null for all others, and for it nearly all else is. `lagShare` is the part of its lag that waits
for one consumer, `mostQueues` are the queues of its topic with the most."""

CLUSTER_SUMMARY = Table(
    "cluster_summary",
    columns(
        "cluster string, snapshots int, firstDate date, lastDate date, groups int, consumers bigint, queues bigint, "
        "idle bigint, unassigned bigint"
    ),
)
"""A cluster: its snapshots, and its groups in the last of them that was scored, under the strategies that they run."""

POP_GROUPS = Table(
    "pop_groups",
    columns(
        "cluster string, group string, topic string, strategy string, share string, consumers int, fewest int, "
        "unread bigint"
    ),
)
"""POP_QUEUES of the last snapshots, summed up. `share` is popShareQueueNum, `fewest` of how many consumers may read a
queue at least, `unread` how many queues no consumer may read."""

DERIVED = (OVERVIEW, CLUSTER_SUMMARY, POP_GROUPS, WHAT_IF_SUMMARY)
"""What the report itself makes of the warehouse's tables."""
EXPORTED = (
    OVERVIEW,
    CLUSTER_SUMMARY,
    POP_GROUPS,
    SCORES,
    LOADS,
    REFUSALS,
    WHAT_IF,
    WHAT_IF_SUMMARY,
    BROKER_LOSSES,
    SIZES,
    WORST_LOSSES,
    BROKEN_LIMITS,
    SENDS,
    SEND_SHARES,
    MOVES,
    FLAPPING,
    CHURN,
    TREND,
    QUARANTINE,
)
"""The tables of a report, in the order in which the page names them."""
