"""Rules for how far the group has read, which need an earlier look."""

from __future__ import annotations

from collections.abc import Iterator

from rmqlb.engine.diagnose.evidence import ASK_BROKERS, AnotherLookNeeded, DoesNotApply
from rmqlb.engine.diagnose.hypotheses import Hypotheses
from rmqlb.errors import DataError
from rmqlb.model.diagnosis import GroupFinding
from rmqlb.model.finding import WARNING
from rmqlb.model.group import BROADCASTING
from rmqlb.model.message_queue import MessageQueue, sort_queues
from rmqlb.model.words import counted, messages


def offset_rewound(case: Hypotheses) -> Iterator[GroupFinding]:
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
                raise DataError("some offsets are known of one look only", hint=ASK_BROKERS)
            by = max(was.consumer_offset, 0) - max(state.consumer_offset, 0)
            if by > 0:
                back[queue] = max(by, back.get(queue, 0))
    if back:
        yield GroupFinding(
            "offset-rewound",
            WARNING,
            evidence.group.group,
            queues=tuple(sort_queues(back)),
            evidence=tuple(
                evidence.seen(f"messages back in {q.topic} {q.broker_name}:{q.queue_id}", back[q], threshold=1)
                for q in sort_queues(back)
            ),
            consequence=f"{messages(sum(back.values()))} of {counted(len(back), 'queue')} redelivered.",
            remedy="If no one has reset the offsets, look for consumers that store offsets over each other's.",
        )
