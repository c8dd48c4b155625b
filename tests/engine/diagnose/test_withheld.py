from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from rmqlb.model.diagnosis import Diagnosis
from rmqlb.model.process_queue import ProcessQueue, PullLimits
from rmqlb.model.snapshot import ClusterSnapshot, Unread
from tests.engine.diagnose.cases import (
    FAULTS,
    TWO_FAULTS,
    at_broker,
    each_look,
    evidence,
    missing,
    reports,
    states,
    without_list,
)
from tests.engine.diagnose.consuming import of_looks
from tests.engine.diagnose.running import changed, grave
from tests.engine.diagnose.watched_faults import WATCHED_FAULTS, WATCHED_PAIRS, Looks

Withhold = Callable[[ClusterSnapshot], ClusterSnapshot]


def list_of(snapshot: ClusterSnapshot, broker: str) -> ClusterSnapshot:
    unread = (*snapshot.unread, Unread("members", "g", "timed out", broker))
    left = snapshot if snapshot.groups["g"].views is None else without_list(snapshot, broker)
    return missing(left, *unread)


def answer_of(snapshot: ClusterSnapshot, client_id: str) -> ClusterSnapshot:
    """The consumer does not say what it runs and owns: what it may own besides is unknown."""
    g = snapshot.groups["g"]
    if client_id not in g.reports:
        return snapshot
    left = {queue: (state.owners or frozenset()) - {client_id} or None for queue, state in g.queues.items()}
    queues = {queue: replace(state, owners=left[queue]) for queue, state in g.queues.items()}
    return changed(snapshot, reports={i: r for i, r in g.reports.items() if i != client_id}, queues=queues)


def route_of(snapshot: ClusterSnapshot, topic: str) -> ClusterSnapshot:
    routes = {name: sighting for name, sighting in snapshot.routes.items() if name != topic}
    return replace(snapshot, routes=routes, unread=(*snapshot.unread, Unread("route", topic, "timed out")))


def connected(snapshot: ClusterSnapshot, **changes: Any) -> ClusterSnapshot:
    views = snapshot.groups["g"].views
    bare = (replace(v, connections=tuple(replace(c, **changes) for c in v.connections)) for v in views or ())
    return changed(snapshot, views=None if views is None else tuple(bare))


PIECES: Mapping[str, Withhold] = {
    "all lists": partial(changed, views=None),
    "list of a": partial(list_of, broker="a"),
    "list of b": partial(list_of, broker="b"),
    "answer of x": partial(answer_of, client_id="x"),
    "answer of y": partial(answer_of, client_id="y"),
    "strategies": partial(reports, strategy_class=None),
    "strategy of y": partial(reports, ids="y", strategy_class=None),
    "subscriptions": partial(reports, topics=None),
    "subscription of y": partial(reports, ids="y", topics=None),
    "start times": partial(reports, started_at=None),
    "rebalance": partial(reports, client_rebalance=None),
    "owners": partial(states, owners=None),
    "owners at b": partial(at_broker, broker="b", owners=None),
    "offsets": partial(states, consumer_offset=None, broker_offset=None),
    "addresses": partial(connected, client_addr=None),
    "languages": partial(connected, language=None, version=None),
    "topics": partial(changed, topics=None),
    "kind": partial(changed, consume_type=None, message_model=None),
    "modes": partial(changed, request_modes=None),
    "waiting requests": partial(changed, polling_num=None),
    "route of T": partial(route_of, topic="T"),
    "route of U": partial(route_of, topic="U"),
}


def of_process_queues(snapshot: ClusterSnapshot, field: str) -> ClusterSnapshot:
    for client_id, report in snapshot.groups["g"].reports.items():
        if report.evidence is not None and report.evidence.queues is not None:
            items = tuple(replace(item, **{field: None}) for item in report.evidence.queues)
            snapshot = evidence(snapshot, (client_id,), queues=items)
    return snapshot


def of_statuses(snapshot: ClusterSnapshot, **changes: object) -> ClusterSnapshot:
    for client_id, report in snapshot.groups["g"].reports.items():
        statuses = {} if report.evidence is None else report.evidence.statuses or {}
        less = {topic: replace(status, **changes) for topic, status in statuses.items()}
        snapshot = evidence(snapshot, (client_id,), statuses=less)
    return snapshot


def undated(snapshot: ClusterSnapshot) -> ClusterSnapshot:
    return replace(changed(snapshot, seen=replace(snapshot.groups["g"].seen, at=None)), taken_at=None)


OF_A_LOOK: Mapping[str, Withhold] = {
    **PIECES,
    **{f"evidence of {ids}": partial(reports, ids=ids, evidence=None) for ids in ("xy", "x", "y")},
    **{f"process queues of {ids}": partial(evidence, ids=ids, queues=None) for ids in ("xy", "x")},
    **{f"statuses of {ids}": partial(evidence, ids=ids, statuses=None) for ids in ("xy", "x")},
    "duration of calls": partial(of_statuses, consume_ms=None),
    "rates": partial(of_statuses, consumed_per_s=None, failed_per_s=None, pulled_per_s=None, failed_last_hour=None),
    "limits": partial(evidence, limits=PullLimits()),
    "order": partial(evidence, orderly=None),
    "times of reports": partial(evidence, read_at=None),
    "kinds of consumers": partial(reports, consumer_type=None),
    "times of messages": partial(states, last_timestamp=None),
    "ends of queues": partial(states, broker_offset=None),
    "offsets at b": partial(at_broker, broker="b", consumer_offset=None),
    "answers": lambda snapshot: missing(snapshot, *(replace(part, no_answer=False) for part in snapshot.unread)),
    "unread parts": missing,
    "time": undated,
    **{f"field {n}": partial(of_process_queues, field=n) for n in ProcessQueue.__struct_fields__ if n != "queue"},
}
FromLooks = Callable[[Looks], Looks]


def in_the_last(withhold: Withhold) -> FromLooks:
    return lambda looks: (*looks[:-1], withhold(looks[-1]))


def in_the_first(withhold: Withhold) -> FromLooks:
    return lambda looks: (withhold(looks[0]), *looks[1:])


PIECES_OF_LOOKS: Mapping[str, FromLooks] = {
    "the first look": lambda looks: looks[1:] or looks,
    "the look before": lambda looks: (*looks[:-2], looks[-1]),
    "all but the last": lambda looks: looks[-1:],
    **{f"{name}, last": in_the_last(withhold) for name, withhold in OF_A_LOOK.items()},
    **{f"{name}, first": in_the_first(withhold) for name, withhold in OF_A_LOOK.items()},
    **{f"{name}, all": partial(each_look, change=withhold) for name, withhold in OF_A_LOOK.items()},
}
FAULTY: Mapping[str, Looks] = {
    **{name: (snapshot,) for name, snapshot in FAULTS.items()},
    **{name: (snapshot,) for name, (snapshot, _) in TWO_FAULTS.items()},
    **WATCHED_FAULTS,
    **{name: looks for name, (looks, _) in WATCHED_PAIRS.items()},
}


@cache
def diagnosis_of(name: str) -> Diagnosis:
    return of_looks(FAULTY[name])


def pieces_of(name: str) -> Mapping[str, FromLooks]:
    single = {piece: in_the_last(withhold) for piece, withhold in PIECES.items()}
    return single if len(FAULTY[name]) == 1 else PIECES_OF_LOOKS


def violations(name: str, *pieces: str) -> list[str]:
    looks, whole = FAULTY[name], diagnosis_of(name)
    for piece in pieces:
        looks = pieces_of(name)[piece](looks)
    found = of_looks(looks)
    symptoms = {each.code for each in whole.consequences} | {"unassigned-queues", "duplicate-owners"}
    in_order = {*found.checked, *(each.code for each in found.not_applicable)}
    return [
        *(f"in order: {code}" for code in in_order.intersection(grave(whole))),
        *(f"another cause: {code}" for code in set(grave(found)) - {*grave(whole), *symptoms}),
        *(["all in order"] if found.outcome == "inOrder" else []),
    ]


def test_each_piece_of_each_fault_alone() -> None:
    bad = {(name, piece): wrong for name in FAULTY for piece in pieces_of(name) if (wrong := violations(name, piece))}
    assert bad == {}


@given(st.data(), st.sampled_from(sorted(FAULTY)))
@settings(max_examples=600)
def test_withheld_evidence_gives_the_same_answer_or_unknown(data: st.DataObject, name: str) -> None:
    pieces = st.lists(st.sampled_from(sorted(pieces_of(name))), min_size=1, max_size=4, unique=True)
    assert violations(name, *data.draw(pieces)) == []
