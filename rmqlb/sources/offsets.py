"""What brokers tell of single queues: where a consumer that takes one would begin.

A group's offsets come from `GET_CONSUME_STATS`, which says 0 where nothing is stored. Consumers ask otherwise
(`RebalancePushImpl.computePullFromWhereWithException`), and so does this file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from msgspec.structs import replace

from rmqlb.errors import EndpointError
from rmqlb.model.group import NOT_STORED, QueueState, States
from rmqlb.model.message_queue import MessageQueue, sort_queues
from rmqlb.model.progress import Progress
from rmqlb.model.snapshot import OffsetQuestion
from rmqlb.sources.concurrent import ask_concurrently
from rmqlb.sources.source import Refused

MOST_ASKED = 256  # queues of one group that are asked about at a broker while a snapshot is taken


class OffsetReads(Protocol):
    """The questions about one queue; each raises `EndpointError` when there is no answer or it is an error."""

    # the offset that the group goes on from; −1 when the broker has none
    def stored_offset(self, group: str, queue: MessageQueue, address: str) -> int: ...
    def max_offset(self, queue: MessageQueue, address: str) -> int: ...  # the queue's end
    # its first message that is still there; less than 0 when there is no such queue
    def min_offset(self, queue: MessageQueue, address: str) -> int: ...
    # its first message since a moment, in milliseconds since 1970
    def offset_at(self, queue: MessageQueue, timestamp: int, address: str) -> int: ...


def without_answer(states: Mapping[MessageQueue, QueueState]) -> list[MessageQueue]:
    """The queues whose reported 0 may stand for no offset at all; of an empty queue it makes no difference."""
    return sort_queues(
        queue for queue, state in states.items() if state.consumer_offset == 0 and state.broker_offset != 0
    )


def with_stored(reads: OffsetReads, group: str, states: States, address: str) -> tuple[States, str | None]:
    """The states with what is stored where 0 is reported, and why some still say 0 without telling what it means."""
    unclear = without_answer(states)
    reported = dict(states)
    for queue in unclear[:MOST_ASKED]:
        try:
            stored = reads.stored_offset(group, queue, address)
        except EndpointError as error:
            return reported, error.message
        reported[queue] = replace(states[queue], consumer_offset=stored, stored_offset=stored)
    more = len(unclear) - MOST_ASKED
    return reported, f"at most {MOST_ASKED} queues are asked about, and {more} more report 0" if more > 0 else None


def reported_offsets(
    reads: OffsetReads, group: str, questions: Sequence[OffsetQuestion], at_once: int, progress: Progress
) -> States:
    """The answers to the questions, of so many brokers at once; a question without an answer is left out."""
    by_address: dict[str, list[OffsetQuestion]] = {}
    for question in questions:
        by_address.setdefault(question.address, []).append(question)
    states: dict[MessageQueue, QueueState] = {}
    batches = list(by_address.values())
    with ask_concurrently(lambda batch: dict(_answers(reads, group, batch)), batches, at_once) as futures:
        for done, future in enumerate(futures):
            progress("where new owners start", done, len(futures))
            states.update(future.result())
    return states


def _answers(
    reads: OffsetReads, group: str, questions: Sequence[OffsetQuestion]
) -> Iterator[tuple[MessageQueue, QueueState]]:
    """The answers of one broker; once it does not answer it is asked nothing more, so that its silence costs little."""
    for question in questions:
        try:
            yield question.queue, _reported(reads, group, question)
        except Refused:
            continue
        except EndpointError:
            return


def _reported(reads: OffsetReads, group: str, question: OffsetQuestion) -> QueueState:
    queue, address = question.queue, question.address
    stored = reads.stored_offset(group, queue, address)
    end = reads.max_offset(queue, address)
    begin = max(reads.min_offset(queue, address), 0) if stored < end else None
    found = {reads.offset_at(queue, at, address) for at in question.timestamps} if stored == NOT_STORED else set()
    return QueueState(
        broker_offset=end,
        consumer_offset=stored,
        stored_offset=stored,
        min_offset=begin,
        timestamp_offset=found.pop() if len(found) == 1 else None,
    )
