"""Rules for how far the group has read, which need an earlier look."""

from __future__ import annotations

from collections.abc import Iterator

from rmqlb.engine.diagnose.evidence import CONVERGES_MS, AnotherLookNeeded, DoesNotApply
from rmqlb.engine.diagnose.hypotheses import CAUSES
from rmqlb.engine.diagnose.reports import named
from rmqlb.engine.diagnose.rule import Case, ComesOf
from rmqlb.errors import DataError
from rmqlb.model.diagnosis import GroupFinding
from rmqlb.model.finding import INFO, WARNING
from rmqlb.model.group import BROADCASTING
from rmqlb.model.message_queue import MessageQueue, sort_queues
from rmqlb.model.words import counted, messages

_SHOWN = 4


def offset_rewound(case: Case) -> Iterator[GroupFinding]:
    """The group's offset is smaller than in an earlier look: messages are delivered again until it has caught up."""
    evidence = case.evidence
    if evidence.group.message_model == BROADCASTING:
        raise DoesNotApply("a BROADCASTING group keeps its offsets at its consumers")
    if not evidence.earlier:
        raise AnotherLookNeeded("one look shows no change of offsets")
    back: dict[MessageQueue, int] = {}
    for look in evidence.earlier:
        for queue, was in look.queues.items():
            state = evidence.group.queues.get(queue)
            if state is None or was.consumer_offset is None or state.consumer_offset is None:
                raise DataError("some offsets are known of one look only", hint=evidence.ask_offsets)
            by = max(was.consumer_offset, 0) - max(state.consumer_offset, 0)
            if by > 0:
                back[queue] = max(by, back.get(queue, 0))
    # While a queue changes hands, its former and its new owner store offsets over each other's.
    left, causes = case.without_those_of(tuple(back), (*CAUSES, "duplicate-owners"))
    if back and not left:
        raise ComesOf(causes)  # two owners store offsets over each other's
    back = {queue: back[queue] for queue in left}
    lasting = [q for q in back if not evidence.changes_hands(q) and not evidence.is_younger_than(CONVERGES_MS)]
    queues = tuple(sort_queues(lasting or back))
    again = sum(back[queue] for queue in queues)
    if queues:
        yield GroupFinding(
            "offset-rewound",
            WARNING if lasting else INFO,
            evidence.group.group,
            queues=queues,
            evidence=tuple(
                evidence.seen(f"messages back in {named(queue)}", back[queue], threshold=1)
                for queue in sorted(queues, key=lambda queue: -back[queue])[:_SHOWN]
            ),
            consequence=f"{messages(again)} of {counted(len(queues), 'queue')} redelivered.",
            remedy="If no one has reset the offsets, look for consumers that store offsets over each other's."
            if lasting
            else "Nothing is wrong: a rebalance may redeliver messages.",
        )
