"""What consumers report and what looks show, taken away from faulty groups: the same answer or "unknown"."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from rmqlb.model.diagnosis import Diagnosis
from rmqlb.model.group import ConsumerGroup
from rmqlb.model.process_queue import ConsumerEvidence, ProcessQueue, PullLimits
from rmqlb.model.snapshot import ClusterSnapshot
from tests.engine.diagnose.consuming import earlier
from tests.engine.diagnose.running import diagnosed, grave
from tests.engine.diagnose.test_withheld import PIECES as OF_A_SNAPSHOT
from tests.engine.diagnose.test_withheld import Withhold, in_order, of_group, of_queues, of_reports
from tests.engine.diagnose.watched_faults import WATCHED_FAULTS, WATCHED_PAIRS, Looks

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
    **OF_A_SNAPSHOT,
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


PIECES: Mapping[str, FromLooks] = {
    "the first look": lambda looks: looks[1:] or looks,
    "the look before": lambda looks: (*looks[:-2], looks[-1]),
    "all but the last": lambda looks: looks[-1:],
    **{f"{name}, last": in_the_last(withhold) for name, withhold in OF_A_LOOK.items()},
    **{f"{name}, first": in_the_first(withhold) for name, withhold in OF_A_LOOK.items()},
    **{f"{name}, all": in_all(withhold) for name, withhold in OF_A_LOOK.items()},
}
FAULTY: Mapping[str, Looks] = {**WATCHED_FAULTS, **{name: looks for name, (looks, _) in WATCHED_PAIRS.items()}}


@cache
def diagnosis_of(name: str) -> Diagnosis:
    return diagnosed(FAULTY[name][-1], earlier=earlier(FAULTY[name]))


def violations(name: str, looks: Looks) -> list[str]:
    whole = diagnosis_of(name)
    found = diagnosed(looks[-1], earlier=earlier(looks))
    symptoms = {each.code for each in whole.consequences} | OWNERS
    return [
        *(f"in order: {code}" for code in in_order(found).intersection(grave(whole))),
        *(f"another cause: {code}" for code in set(grave(found)) - {*grave(whole), *symptoms}),
        *(["all in order"] if found.outcome == "inOrder" else []),
    ]


def test_each_piece_of_each_fault_alone() -> None:
    bad = {
        (name, piece): wrong
        for name in FAULTY
        for piece, withhold in PIECES.items()
        if (wrong := violations(name, withhold(FAULTY[name])))
    }
    assert bad == {}


@given(st.sampled_from(sorted(FAULTY)), st.lists(st.sampled_from(sorted(PIECES)), min_size=2, max_size=4, unique=True))
@settings(max_examples=300)
def test_withheld_evidence_gives_the_same_answer_or_unknown(name: str, pieces: list[str]) -> None:
    looks = FAULTY[name]
    for piece in pieces:
        looks = PIECES[piece](looks)
    assert violations(name, looks) == []
