"""Evidence taken away makes an answer unknown: never in order, and never another cause."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from rmqlb.model.diagnosis import Diagnosis
from rmqlb.model.group import ConsumerGroup, MemberReport
from rmqlb.model.process_queue import ConsumerEvidence, ProcessQueue, PullLimits
from rmqlb.model.snapshot import ClusterSnapshot, Unread
from tests.engine.diagnose.consuming import earlier
from tests.engine.diagnose.running import diagnosed, grave
from tests.engine.diagnose.test_diagnose import FAULTS, TWO_FAULTS
from tests.engine.diagnose.watched_faults import WATCHED_FAULTS, WATCHED_PAIRS, Looks

Withhold = Callable[[ClusterSnapshot], ClusterSnapshot]


def of_group(change: Callable[[ConsumerGroup], ConsumerGroup]) -> Withhold:
    return lambda snapshot: replace(snapshot, groups={name: change(g) for name, g in snapshot.groups.items()})


def of_reports(takes: Callable[[str], bool], **changes: object) -> Withhold:
    def change(report: MemberReport) -> MemberReport:
        return replace(report, **changes) if takes(report.client_id) else report

    return of_group(lambda g: replace(g, reports={i: change(report) for i, report in g.reports.items()}))


def of_queues(broker: str, **changes: object) -> Withhold:
    return of_group(
        lambda g: replace(
            g,
            queues={q: replace(s, **changes) if q.broker_name in broker else s for q, s in g.queues.items()},
        )
    )


def of_connections(**changes: object) -> Withhold:
    def change(g: ConsumerGroup) -> ConsumerGroup:
        views = g.views or ()
        bare = (replace(view, connections=tuple(replace(c, **changes) for c in view.connections)) for view in views)
        return replace(g, views=None if g.views is None else tuple(bare))

    return of_group(change)


def list_of(broker: str) -> Withhold:
    """The broker does not answer who the consumers are."""

    def withhold(snapshot: ClusterSnapshot) -> ClusterSnapshot:
        def change(g: ConsumerGroup) -> ConsumerGroup:
            kept = (view for view in g.views or () if view.broker_addr != f"{broker}:10911")
            return replace(g, views=None if g.views is None else tuple(kept))

        unread = Unread("members", "g", "timed out", broker)
        return replace(of_group(change)(snapshot), unread=(*snapshot.unread, unread))

    return withhold


def answer_of(client_id: str) -> Withhold:
    """The consumer does not say what it runs and owns: what it may own besides is unknown."""

    def change(g: ConsumerGroup) -> ConsumerGroup:
        if client_id not in g.reports:
            return g
        reports = {i: report for i, report in g.reports.items() if i != client_id}
        queues = {}
        for queue, state in g.queues.items():
            left = (state.owners or frozenset()) - {client_id}
            queues[queue] = replace(state, owners=left or None)
        return replace(g, reports=reports, queues=queues)

    return of_group(change)


def route_of(topic: str) -> Withhold:
    def withhold(snapshot: ClusterSnapshot) -> ClusterSnapshot:
        routes = {name: sighting for name, sighting in snapshot.routes.items() if name != topic}
        return replace(snapshot, routes=routes, unread=(*snapshot.unread, Unread("route", topic, "timed out")))

    return withhold


PIECES: Mapping[str, Withhold] = {
    "all lists": of_group(lambda g: replace(g, views=None)),
    "list of a": list_of("a"),
    "list of b": list_of("b"),
    "answer of x": answer_of("x"),
    "answer of y": answer_of("y"),
    "strategies": of_reports(lambda _: True, strategy_class=None),
    "strategy of y": of_reports(lambda i: i == "y", strategy_class=None),
    "subscriptions": of_reports(lambda _: True, topics=None),
    "subscription of y": of_reports(lambda i: i == "y", topics=None),
    "start times": of_reports(lambda _: True, started_at=None),
    "rebalance": of_reports(lambda _: True, client_rebalance=None),
    "owners": of_queues("ab", owners=None),
    "owners at b": of_queues("b", owners=None),
    "offsets": of_queues("ab", consumer_offset=None, broker_offset=None),
    "addresses": of_connections(client_addr=None),
    "languages": of_connections(language=None, version=None),
    "topics": of_group(lambda g: replace(g, topics=None)),
    "kind": of_group(lambda g: replace(g, consume_type=None, message_model=None)),
    "modes": of_group(lambda g: replace(g, request_modes=None)),
    "waiting requests": of_group(lambda g: replace(g, polling_num=None)),
    "route of T": route_of("T"),
    "route of U": route_of("U"),
}
FAULTY = {**FAULTS, **{name: snapshot for name, (snapshot, _) in TWO_FAULTS.items()}}


def in_order(found: Diagnosis) -> set[str]:
    return {*found.checked, *(each.code for each in found.not_applicable)}


@given(st.sampled_from(sorted(FAULTY)), st.lists(st.sampled_from(sorted(PIECES)), min_size=1, max_size=4, unique=True))
@settings(max_examples=300)
def test_withheld_evidence_gives_the_same_answer_or_unknown(name: str, pieces: list[str]) -> None:
    whole = diagnosed(FAULTY[name])
    snapshot = FAULTY[name]
    for piece in pieces:
        snapshot = PIECES[piece](snapshot)
    found = diagnosed(snapshot)
    symptoms = {each.code for each in whole.consequences} | {"unassigned-queues", "duplicate-owners"}
    assert set(grave(found)) <= {*grave(whole), *symptoms}
    assert in_order(found).isdisjoint(grave(whole))
    assert found.outcome != "inOrder"


def test_each_piece_of_each_fault_alone() -> None:
    for name, faulty in FAULTY.items():
        causes = set(grave(diagnosed(faulty)))
        for piece, withhold in PIECES.items():
            assert in_order(diagnosed(withhold(faulty))).isdisjoint(causes), (name, piece)


# -- what consumers report and what looks show

FromLooks = Callable[[Looks], Looks]
OWNERS = {"unassigned-queues", "duplicate-owners"}


def of_evidence(change: Callable[[ConsumerEvidence], ConsumerEvidence | None], client_ids: str = "xy") -> Withhold:
    def changed(group: ConsumerGroup) -> ConsumerGroup:
        reports = {
            i: replace(report, evidence=None if report.evidence is None else change(report.evidence))
            if i in client_ids
            else report
            for i, report in group.reports.items()
        }
        return replace(group, reports=reports)

    return of_group(changed)


def of_process_queues(**changes: object) -> Withhold:
    def changed(evidence: ConsumerEvidence) -> ConsumerEvidence:
        if evidence.queues is None:
            return evidence
        return replace(evidence, queues=tuple(replace(item, **changes) for item in evidence.queues))

    return of_evidence(changed)


def of_statuses(**changes: object) -> Withhold:
    return of_evidence(
        lambda its: replace(its, statuses={t: replace(s, **changes) for t, s in (its.statuses or {}).items()})
    )


def without_answers(snapshot: ClusterSnapshot) -> ClusterSnapshot:
    return replace(snapshot, unread=tuple(replace(part, no_answer=False) for part in snapshot.unread))


def undated(snapshot: ClusterSnapshot) -> ClusterSnapshot:
    return replace(of_group(lambda g: replace(g, seen=replace(g.seen, at=None)))(snapshot), taken_at=None)


OF_A_LOOK: Mapping[str, Withhold] = {
    **PIECES,
    "all evidence": of_evidence(lambda _: None),
    "evidence of x": of_evidence(lambda _: None, "x"),
    "evidence of y": of_evidence(lambda _: None, "y"),
    "process queues": of_evidence(lambda its: replace(its, queues=None)),
    "process queues of x": of_evidence(lambda its: replace(its, queues=None), "x"),
    "statuses": of_evidence(lambda its: replace(its, statuses=None)),
    "statuses of x": of_evidence(lambda its: replace(its, statuses=None), "x"),
    "duration of calls": of_statuses(consume_ms=None),
    "rates": of_statuses(consumed_per_s=None, failed_per_s=None, pulled_per_s=None, failed_last_hour=None),
    "limits": of_evidence(lambda its: replace(its, limits=PullLimits())),
    "order": of_evidence(lambda its: replace(its, orderly=None)),
    "times of reports": of_evidence(lambda its: replace(its, read_at=None)),
    "kinds of consumers": of_reports(lambda _: True, consumer_type=None),
    "times of messages": of_queues("ab", last_timestamp=None),
    "ends of queues": of_queues("ab", broker_offset=None),
    "offsets at b": of_queues("b", consumer_offset=None),
    "answers": without_answers,
    "unread parts": lambda snapshot: replace(snapshot, unread=()),
    "time": undated,
    **{
        f"field {name}": of_process_queues(**{name: None}) for name in ProcessQueue.__struct_fields__ if name != "queue"
    },
}


def in_the_last(withhold: Withhold) -> FromLooks:
    return lambda looks: (*looks[:-1], withhold(looks[-1]))


def in_the_first(withhold: Withhold) -> FromLooks:
    return lambda looks: (withhold(looks[0]), *looks[1:])


def in_all(withhold: Withhold) -> FromLooks:
    return lambda looks: tuple(withhold(look) for look in looks)


PIECES_OF_LOOKS: Mapping[str, FromLooks] = {
    "the first look": lambda looks: looks[1:] or looks,
    "the look before": lambda looks: (*looks[:-2], looks[-1]),
    "all but the last": lambda looks: looks[-1:],
    **{f"{name}, last": in_the_last(withhold) for name, withhold in OF_A_LOOK.items()},
    **{f"{name}, first": in_the_first(withhold) for name, withhold in OF_A_LOOK.items()},
    **{f"{name}, all": in_all(withhold) for name, withhold in OF_A_LOOK.items()},
}
FAULTY_LOOKS: Mapping[str, Looks] = {**WATCHED_FAULTS, **{name: looks for name, (looks, _) in WATCHED_PAIRS.items()}}


@cache
def diagnosis_of(name: str) -> Diagnosis:
    return diagnosed(FAULTY_LOOKS[name][-1], earlier=earlier(FAULTY_LOOKS[name]))


def violations(name: str, looks: Looks) -> list[str]:
    whole = diagnosis_of(name)
    found = diagnosed(looks[-1], earlier=earlier(looks))
    symptoms = {each.code for each in whole.consequences} | OWNERS
    return [
        *(f"in order: {code}" for code in in_order(found).intersection(grave(whole))),
        *(f"another cause: {code}" for code in set(grave(found)) - {*grave(whole), *symptoms}),
        *(["all in order"] if found.outcome == "inOrder" else []),
    ]


def test_each_piece_of_each_fault_of_looks_alone() -> None:
    bad = {
        (name, piece): wrong
        for name in FAULTY_LOOKS
        for piece, withhold in PIECES_OF_LOOKS.items()
        if (wrong := violations(name, withhold(FAULTY_LOOKS[name])))
    }
    assert bad == {}


@given(
    st.sampled_from(sorted(FAULTY_LOOKS)),
    st.lists(st.sampled_from(sorted(PIECES_OF_LOOKS)), min_size=2, max_size=4, unique=True),
)
@settings(max_examples=300)
def test_withheld_evidence_of_looks_gives_the_same_answer_or_unknown(name: str, pieces: list[str]) -> None:
    looks = FAULTY_LOOKS[name]
    for piece in pieces:
        looks = PIECES_OF_LOOKS[piece](looks)
    assert violations(name, looks) == []
