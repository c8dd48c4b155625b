"""What brokers answer consumers that let them assign their queues (QUERY_ASSIGNMENT, 400).

The question changes nothing: it names a client ID and needs no connection of that client, so that it can be asked on
behalf of any consumer. The broker registers and stores nothing (`QueryAssignmentProcessor.queryAssignment` of 5.5.0).
It reads the topic's route from a NameServer if it has not done so, and from then on every 30 s with the others
(`TopicRouteInfoManager`), as it does for each consumer that asks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from rmqlb.errors import EndpointError
from rmqlb.model.progress import Progress
from rmqlb.model.snapshot import AssignmentAnswer, AssignmentQuestion
from rmqlb.sources.concurrent import ask_concurrently
from rmqlb.sources.source import Refused


class AssignmentReads(Protocol):
    """The question; a broker before 5.0 does not know it, and None stands for its answer."""

    # raises `EndpointError` when there is no answer or it is an error
    def assignment(self, group: str, question: AssignmentQuestion) -> AssignmentAnswer | None: ...


def reported_assignments(
    reads: AssignmentReads, group: str, questions: Sequence[AssignmentQuestion], at_once: int, progress: Progress
) -> dict[AssignmentQuestion, AssignmentAnswer]:
    """The answers, of at most `at_once` brokers at a time; a question without an answer is left out."""
    by_address: dict[str, list[AssignmentQuestion]] = {}
    for question in questions:
        by_address.setdefault(question.address, []).append(question)
    answers: dict[AssignmentQuestion, AssignmentAnswer] = {}
    batches = list(by_address.values())
    with ask_concurrently(lambda batch: list(_answers(reads, group, batch)), batches, at_once) as futures:
        for done, future in enumerate(futures):
            progress("what brokers assign", done, len(futures))
            answers.update(future.result())
    return answers


def _answers(
    reads: AssignmentReads, group: str, questions: Sequence[AssignmentQuestion]
) -> Iterator[tuple[AssignmentQuestion, AssignmentAnswer]]:
    """The answers of one broker; once it does not answer it is asked nothing more."""
    for question in questions:
        try:
            answer = reads.assignment(group, question)
        except Refused:
            continue
        except EndpointError:
            return
        if answer is None:
            return
        yield question, answer
