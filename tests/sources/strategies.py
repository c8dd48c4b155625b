"""Hypothesis strategies over the model: any snapshot that a source could hand on."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import strategies as st

from rmqlb.model.group import Connection, ConsumerGroup, MemberReport, MemberView, QueueState, Seen
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.process_queue import ConsumerEvidence, ConsumeStatus, ProcessQueue, PullLimits
from rmqlb.model.route import BrokerData, QueueData, TopicQueueMappingInfo, TopicRouteData
from rmqlb.model.snapshot import UNREAD_WORDS, ClusterSnapshot, RouteSighting, Unread

LOOK_LIKE_OTHER_THINGS = [
    "no",
    "010",
    "1e5",
    "1.0e5",
    "2026-01-01",
    "null",
    "~",
    "<<",
    "=",
    "true",
    ".nan",
    "*a",
    "&a",
    "!!x",
    "- a",
    "a: b",
    "#",
    " a ",
    "a\nb\n",
    "\x1b[31m",
    "\x85",
    "\u2028",
    "\ufeff",
    "\U000e0001",
    "\U0001f600",
    "x" * 200,
]
NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(LOOK_LIKE_OTHER_THINGS)
COUNTS = st.integers(-1, 100)
INT64 = st.integers(-(2**63), 2**63 - 1)
MAYBE_TEXT = st.none() | NAMES
MAYBE_INT64 = st.none() | INT64
TIMES = st.none() | st.datetimes(datetime(1970, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 - as hypothesis wants
SEEN = st.builds(Seen, NAMES, TIMES)
QUEUES = st.builds(MessageQueue, NAMES, NAMES, st.integers(-1, 2**31 - 1))

QUEUE_DATAS = st.builds(QueueData, NAMES, COUNTS, COUNTS, st.integers(0, 7), COUNTS)
BROKER_DATAS = st.builds(BrokerData, NAMES, NAMES, st.dictionaries(INT64, NAMES, max_size=2), st.booleans(), MAYBE_TEXT)
MAPPINGS = st.builds(
    TopicQueueMappingInfo,
    MAYBE_TEXT,
    MAYBE_TEXT,
    COUNTS,
    MAYBE_TEXT,
    INT64,
    st.dictionaries(COUNTS, COUNTS, max_size=2),
)


def tuples(items: st.SearchStrategy[object], most: int = 3) -> st.SearchStrategy[tuple[object, ...]]:
    return st.lists(items, max_size=most).map(tuple)


@st.composite
def routes(draw: st.DrawFn) -> dict[str, RouteSighting]:
    parts = st.tuples(
        tuples(QUEUE_DATAS), tuples(BROKER_DATAS), MAYBE_TEXT, st.none() | st.dictionaries(NAMES, MAPPINGS, max_size=2)
    )
    return {
        topic: RouteSighting(TopicRouteData(topic, *draw(parts)), draw(SEEN))  # type: ignore[arg-type]
        for topic in draw(st.sets(NAMES, max_size=2))
    }


_MAYBE_FLAG = st.none() | st.booleans()
_MAYBE_RATE = st.none() | st.floats(allow_nan=False, allow_infinity=False)
EVIDENCE = st.builds(
    ConsumerEvidence,
    read_at=MAYBE_INT64,
    queues=st.none()
    | tuples(
        st.builds(ProcessQueue, QUEUES, *[MAYBE_INT64] * 8, _MAYBE_FLAG, _MAYBE_FLAG, *[MAYBE_INT64] * 4),
        2,
    ),
    statuses=st.none()
    | st.dictionaries(NAMES, st.builds(ConsumeStatus, *[_MAYBE_RATE] * 3, MAYBE_INT64, _MAYBE_RATE), max_size=2),
    limits=st.builds(PullLimits, MAYBE_INT64, MAYBE_INT64, MAYBE_INT64),
    orderly=_MAYBE_FLAG,
    stacks=st.none() | tuples(NAMES, 2),
    filters=st.none() | st.dictionaries(NAMES, NAMES, max_size=2),
)


@st.composite
def groups(draw: st.DrawFn) -> dict[str, ConsumerGroup]:
    """Groups, of which some things are known and others are not."""
    ids = st.frozensets(NAMES, max_size=2)
    views = st.builds(MemberView, tuples(st.builds(Connection, NAMES, MAYBE_TEXT, MAYBE_TEXT, MAYBE_TEXT)), SEEN)
    states = st.builds(QueueState, st.none() | ids, MAYBE_INT64, MAYBE_INT64, MAYBE_INT64)
    reported = st.tuples(st.none() | ids, MAYBE_TEXT, st.none() | st.booleans())
    return {
        name: ConsumerGroup(
            group=name,
            seen=draw(SEEN),
            consume_type=draw(MAYBE_TEXT),
            message_model=draw(MAYBE_TEXT),
            consume_from_where=draw(MAYBE_TEXT),
            views=draw(st.none() | tuples(views, 2)),  # type: ignore[arg-type]
            topics=draw(st.none() | tuples(NAMES)),  # type: ignore[arg-type]
            queues=draw(st.dictionaries(QUEUES, states, max_size=3)),
            reports={i: MemberReport(i, *draw(reported), evidence=draw(st.none() | EVIDENCE)) for i in draw(ids)},
        )
        for name in draw(st.sets(NAMES, max_size=2))
    }


SNAPSHOTS = st.builds(
    ClusterSnapshot,
    kind=st.just("dump"),
    endpoint=st.just("snapshot"),
    taken_at=TIMES,
    routes=routes(),
    groups=groups(),
    unread=tuples(st.builds(Unread, st.sampled_from(list(UNREAD_WORDS)), NAMES, NAMES, st.none() | NAMES)),
)
