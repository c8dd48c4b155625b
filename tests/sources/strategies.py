from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import strategies as st
from msgspec.structs import replace

from rmqlb.model.group import ConsumerGroup, Seen
from rmqlb.model.route import TopicRouteData
from rmqlb.model.snapshot import ClusterSnapshot, RouteSighting, Unread
from tests.support.any_value import SIMPLE, any_of

LOOK_LIKE_OTHER_THINGS = [
    *("no", "010", "1e5", "1.0e5", "2026-01-01", "null", "~", "<<", "=", "true", ".nan", "*a", "&a", "!!x", "- a"),
    *("a: b", "#", " a ", "a\nb\n", "\x1b[31m", "\x85", "\u2028", "\ufeff", "\U000e0001", "\U0001f600", "x" * 200),
]
NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(LOOK_LIKE_OTHER_THINGS)
FIRST, LAST = datetime(1970, 1, 1), datetime(2100, 1, 1)  # noqa: DTZ001 - as hypothesis wants
ANY = {
    **SIMPLE,
    str: NAMES,
    int: st.integers(-(2**63), 2**63 - 1),
    float: st.floats(allow_nan=False, allow_infinity=False),
    datetime: st.datetimes(FIRST, LAST, timezones=st.just(UTC)),
    "queue_id": st.integers(-1, 2**31 - 1),
}


SIGHTINGS = st.builds(RouteSighting, any_of(TopicRouteData, ANY, 3), any_of(Seen, ANY))


def with_another(one: RouteSighting, other: RouteSighting) -> RouteSighting:
    return replace(one, others=(replace(other, route=replace(other.route, topic=one.route.topic)),))


def by_client_id(group: ConsumerGroup) -> ConsumerGroup:
    return replace(group, reports={report.client_id: report for report in group.reports.values()})


SNAPSHOTS = st.builds(
    ClusterSnapshot,
    kind=st.just("dump"),
    endpoint=st.just("snapshot"),
    taken_at=any_of(datetime | None, ANY),
    routes=st.lists(SIGHTINGS | st.builds(with_another, SIGHTINGS, SIGHTINGS), max_size=2).map(
        lambda found: {each.route.topic: each for each in found}
    ),
    groups=st.lists(any_of(ConsumerGroup, ANY).map(by_client_id), max_size=2).map(
        lambda found: {each.group: each for each in found}
    ),
    unread=any_of(tuple[Unread, ...], ANY),
)
