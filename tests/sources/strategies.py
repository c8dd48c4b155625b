from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from hypothesis import strategies as st
from msgspec.structs import replace

from rmqlb.model.group import Connection, ConsumerGroup, MemberReport, MemberView, QueueState, Seen
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.process_queue import ConsumerEvidence, ConsumeStatus, ProcessQueue, PullLimits
from rmqlb.model.route import BrokerData, QueueData, TopicQueueMappingInfo, TopicRouteData
from rmqlb.model.snapshot import UNREAD_WORDS, ClusterSnapshot, RouteSighting, Unread

LOOK_LIKE_OTHER_THINGS = [
    *("no", "010", "1e5", "1.0e5", "2026-01-01", "null", "~", "<<", "=", "true", ".nan", "*a", "&a", "!!x", "- a"),
    *("a: b", "#", " a ", "a\nb\n", "\x1b[31m", "\x85", "\u2028", "\ufeff", "\U000e0001", "\U0001f600", "x" * 200),
]
Any_ = st.SearchStrategy[Any]
NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(LOOK_LIKE_OTHER_THINGS)
COUNTS = st.integers(-1, 100)
INT64 = st.integers(-(2**63), 2**63 - 1)


def maybe(items: Any_) -> Any_:
    return st.none() | items


def some(items: Any_, most: int = 3) -> Any_:
    return st.lists(items, max_size=most).map(tuple)


def named(values: Any_, most: int = 2) -> Any_:
    return st.dictionaries(NAMES, values, max_size=most)


FLAG, NUMBER, TEXT = maybe(st.booleans()), maybe(INT64), maybe(NAMES)
RATE = maybe(st.floats(allow_nan=False, allow_infinity=False))
TIMES = maybe(st.datetimes(datetime(1970, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC)))  # noqa: DTZ001 - as hypothesis wants
SEEN = st.builds(Seen, NAMES, TIMES)
QUEUES = st.builds(MessageQueue, NAMES, NAMES, st.integers(-1, 2**31 - 1))
MAPPINGS = st.builds(
    TopicQueueMappingInfo, TEXT, TEXT, COUNTS, TEXT, INT64, st.dictionaries(COUNTS, COUNTS, max_size=2)
)
ROUTES = st.builds(
    TopicRouteData,
    NAMES,
    some(st.builds(QueueData, NAMES, COUNTS, COUNTS, st.integers(0, 7), COUNTS)),
    some(st.builds(BrokerData, NAMES, NAMES, st.dictionaries(INT64, NAMES, max_size=2), st.booleans(), TEXT)),
    TEXT,
    maybe(named(MAPPINGS)),
)
PROCESS_QUEUES = st.builds(ProcessQueue, QUEUES, *[NUMBER] * 8, FLAG, FLAG, *[NUMBER] * 4)
EVIDENCE = st.builds(
    ConsumerEvidence,
    read_at=NUMBER,
    queues=maybe(some(PROCESS_QUEUES, 2)),
    statuses=maybe(named(st.builds(ConsumeStatus, *[RATE] * 3, NUMBER, RATE))),
    limits=st.builds(PullLimits, NUMBER, NUMBER, NUMBER),
    orderly=FLAG,
    stacks=maybe(some(NAMES, 2)),
    filters=maybe(named(NAMES)),
)
IDS = st.frozensets(NAMES, max_size=2)
REPORTS = st.builds(MemberReport, NAMES, maybe(IDS), TEXT, FLAG, evidence=maybe(EVIDENCE))
GROUPS = st.builds(
    ConsumerGroup,
    group=NAMES,
    seen=SEEN,
    consume_type=TEXT,
    message_model=TEXT,
    consume_from_where=TEXT,
    views=maybe(some(st.builds(MemberView, some(st.builds(Connection, NAMES, TEXT, TEXT, TEXT)), SEEN), 2)),
    topics=maybe(some(NAMES)),
    queues=st.dictionaries(QUEUES, st.builds(QueueState, maybe(IDS), NUMBER, NUMBER, NUMBER), max_size=3),
    reports=some(REPORTS, 2).map(lambda found: {report.client_id: report for report in found}),
)
SIGHTINGS = st.builds(RouteSighting, ROUTES, SEEN)
OTHERS = st.tuples(SIGHTINGS, some(SIGHTINGS, 1)).map(
    lambda found: replace(
        found[0], others=tuple(replace(o, route=replace(o.route, topic=found[0].route.topic)) for o in found[1])
    )
)
SNAPSHOTS = st.builds(
    ClusterSnapshot,
    kind=st.just("dump"),
    endpoint=st.just("snapshot"),
    taken_at=TIMES,
    routes=some(OTHERS, 2).map(lambda found: {each.route.topic: each for each in found}),
    groups=some(GROUPS, 2).map(lambda found: {group.group: group for group in found}),
    unread=some(st.builds(Unread, st.sampled_from(list(UNREAD_WORDS)), NAMES, NAMES, TEXT, st.booleans())),
)
