"""A diagnosis of less evidence says the same, or that it is unknown: never that all is in order, or another cause."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct
from msgspec.structs import fields, replace

from rmqlb.model.diagnosis import Diagnosis
from rmqlb.model.group import Connection, ConsumerGroup, MemberReport, QueueState
from rmqlb.model.process_queue import ConsumerEvidence, ConsumeStatus, ProcessQueue, PullLimits
from rmqlb.model.snapshot import ClusterSnapshot, Unread
from tests.engine.diagnose.cases import FAULTS, WATCHED_FAULTS, WATCHED_PAIRS, Looks, missing, without_list
from tests.engine.diagnose.running import changed, grave, of_looks

Withhold = Callable[[ClusterSnapshot], ClusterSnapshot]
FromLooks = Callable[[Looks], Looks]
KINDS = (ConsumerGroup, MemberReport, QueueState, Connection, ConsumerEvidence, PullLimits, ConsumeStatus, ProcessQueue)
IN_PART = (MemberReport, QueueState)
FIELDS = [(kind, each.name) for kind in KINDS for each in fields(kind) if each.default is None]


def less(value: Any, kind: type[Struct], field: str) -> Any:
    """The value without this field of the structs of this kind in it."""
    if isinstance(value, dict):
        return {key: less(each, kind, field) for key, each in value.items()}
    if isinstance(value, tuple):
        return tuple(less(each, kind, field) for each in value)
    if type(value) in KINDS or hasattr(value, "connections"):
        value = replace(value, **{name: less(getattr(value, name), kind, field) for name in value.__struct_fields__})
    return replace(value, **{field: None}) if isinstance(value, kind) else value


def field_of(kind: type[Struct], field: str, part: str) -> Withhold:
    """Withhold the field everywhere, or from consumer x and the queues at broker b alone."""

    def withhold(snapshot: ClusterSnapshot) -> ClusterSnapshot:
        old = snapshot.groups["g"]
        new = less(old, kind, field)
        if part:
            reports = {i: (new if i == "x" else old).reports[i] for i in old.reports}
            queues = {q: (new if q.broker_name == "b" else old).queues[q] for q in old.queues}
            new = replace(old, reports=reports, queues=queues)
        return replace(snapshot, groups={"g": new})

    return withhold


def list_of(broker: str) -> Withhold:
    def withhold(snapshot: ClusterSnapshot) -> ClusterSnapshot:
        left = snapshot if snapshot.groups["g"].views is None else without_list(snapshot, broker)
        return missing(left, *snapshot.unread, Unread("members", "g", "timed out", broker))

    return withhold


def answer_of(client_id: str) -> Withhold:
    """The consumer does not say what it runs and owns: what it may own besides is unknown."""

    def withhold(snapshot: ClusterSnapshot) -> ClusterSnapshot:
        g = snapshot.groups["g"]
        if client_id not in g.reports:
            return snapshot
        queues = {q: replace(s, owners=(s.owners or frozenset()) - {client_id} or None) for q, s in g.queues.items()}
        return changed(snapshot, reports={i: r for i, r in g.reports.items() if i != client_id}, queues=queues)

    return withhold


def route_of(topic: str) -> Withhold:
    def withhold(snapshot: ClusterSnapshot) -> ClusterSnapshot:
        routes = {name: sighting for name, sighting in snapshot.routes.items() if name != topic}
        return replace(snapshot, routes=routes, unread=(*snapshot.unread, Unread("route", topic, "timed out")))

    return withhold


def undated(snapshot: ClusterSnapshot) -> ClusterSnapshot:
    return replace(changed(snapshot, seen=replace(snapshot.groups["g"].seen, at=None)), taken_at=None)


OF_A_LOOK: Mapping[str, Withhold] = {
    **{f"{kind.__name__}.{name}": field_of(kind, name, "") for kind, name in FIELDS},
    **{f"{kind.__name__}.{name} of x, b": field_of(kind, name, "x, b") for kind, name in FIELDS if kind in IN_PART},
    **{f"list of {broker}": list_of(broker) for broker in "ab"},
    **{f"answer of {client_id}": answer_of(client_id) for client_id in "xy"},
    **{f"route of {topic}": route_of(topic) for topic in "TU"},
    "answers": lambda snapshot: missing(snapshot, *(replace(part, no_answer=False) for part in snapshot.unread)),
    "unread parts": missing,
    "time": undated,
}  # fmt: skip
FAULTY: Mapping[str, Looks] = {
    **{name: (snapshot,) for name, snapshot in FAULTS.items()},
    **WATCHED_FAULTS,
    **{name: looks for name, (looks, _) in WATCHED_PAIRS.items()},
}


def in_looks(piece: Withhold, which: slice) -> FromLooks:
    return lambda looks: tuple(piece(look) if n in range(len(looks))[which] else look for n, look in enumerate(looks))


LAST = {f"{name}, last": in_looks(piece, slice(-1, None)) for name, piece in OF_A_LOOK.items()}
OF_LOOKS: Mapping[str, FromLooks] = {
    **LAST, **{f"{name}, first": in_looks(piece, slice(1)) for name, piece in OF_A_LOOK.items()},
    **{f"{name}, all": in_looks(piece, slice(None)) for name, piece in OF_A_LOOK.items()},
    "the first look": lambda looks: looks[1:] or looks, "the look before": lambda looks: (*looks[:-2], looks[-1]),
    "all but the last": lambda looks: looks[-1:],
}  # fmt: skip


def pieces_of(name: str) -> Mapping[str, FromLooks]:
    return LAST if len(FAULTY[name]) == 1 else OF_LOOKS


@cache
def diagnosis_of(name: str) -> Diagnosis:
    return of_looks(FAULTY[name])


def violations(name: str, *pieces: str) -> list[str]:
    looks, whole = FAULTY[name], diagnosis_of(name)
    for piece in pieces:
        looks = pieces_of(name)[piece](looks)
    if looks == FAULTY[name]:
        return []
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
