"""Questions to brokers beyond the list of a group's consumers: assignments, offsets of single queues, POP.

- QUERY_ASSIGNMENT (400) changes nothing. It names a client ID and needs no connection of that client, so `rmqlb` can
  ask on behalf of any consumer (`QueryAssignmentProcessor.queryAssignment` of 5.5.0).
- `GET_CONSUME_STATS` reports offset 0 where nothing is stored. Consumers ask otherwise
  (`RebalancePushImpl.computePullFromWhereWithException`), and so does this file.
- RocketMQ 5's gRPC clients are connected to a Proxy. In cluster mode brokers list none of them, and see receive
  requests (POP) of their group come from the Proxy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from rmqlb.errors import EndpointError
from rmqlb.model.group import NOT_STORED, RETRY_PREFIX, ConsumerGroup, QueueState, States
from rmqlb.model.message_queue import MessageQueue, sort_queues
from rmqlb.model.progress import Progress
from rmqlb.model.snapshot import AssignmentAnswer, AssignmentQuestion, OffsetQuestion
from rmqlb.sources.concurrent import ask_concurrently
from rmqlb.sources.source import Refused

if TYPE_CHECKING:
    from rmqlb.sources.native.source import NameServerReads

_Question = TypeVar("_Question", bound=AssignmentQuestion | OffsetQuestion)
_Answer = TypeVar("_Answer")
_Value = TypeVar("_Value", str, int)
MOST_ASKED = 256  # queues of one group per broker whose stored offset is requested while a snapshot is taken
MOST_TOPICS = 16  # topics of one group that brokers are asked about


class RequestModes(Struct, frozen=True):
    """What brokers have for a group: topic → modes and `popShareQueueNum`, several where they differ; None: unknown."""

    modes: Mapping[str, tuple[str, ...]] | None = None
    shares: Mapping[str, tuple[int, ...]] | None = None


def reported_assignments(
    reads: NameServerReads, group: str, questions: Sequence[AssignmentQuestion], at_once: int, progress: Progress
) -> dict[AssignmentQuestion, AssignmentAnswer]:
    """The answers to assignment questions; a question without an answer is left out."""
    answers = _ask(lambda question: reads.assignment(group, question), questions, at_once, progress, "assignments")
    return {question: answer for question, answer in answers if answer is not None}


def reported_offsets(
    reads: NameServerReads, group: str, questions: Sequence[OffsetQuestion], at_once: int, progress: Progress
) -> States:
    """The answers to questions about offsets; a question without an answer is left out."""
    answers = _ask(lambda question: _reported(reads, group, question), questions, at_once, progress, "start offsets")
    return {question.queue: state for question, state in answers}


def _ask(
    ask: Callable[[_Question], _Answer],
    questions: Sequence[_Question],
    at_once: int,
    progress: Progress,
    what: str,
) -> list[tuple[_Question, _Answer]]:
    """The answers of at most `at_once` brokers at a time."""
    by_address: dict[str, list[_Question]] = {}
    for question in questions:
        by_address.setdefault(question.address, []).append(question)
    answers: list[tuple[_Question, _Answer]] = []
    with ask_concurrently(lambda batch: list(_of_broker(ask, batch)), [*by_address.values()], at_once) as futures:
        for done, future in enumerate(futures):
            progress(what, done, len(futures))
            answers += future.result()
    return answers


def _of_broker(
    ask: Callable[[_Question], _Answer], questions: Sequence[_Question]
) -> Iterator[tuple[_Question, _Answer]]:
    """The answers of one broker, until it is silent or does not know the question, so that its silence costs little."""
    for question in questions:
        try:
            answer = ask(question)
        except Refused:
            continue
        except EndpointError:
            return
        if answer is None:
            return
        yield question, answer


def without_answer(states: Mapping[MessageQueue, QueueState]) -> list[MessageQueue]:
    """The queues whose reported 0 may stand for no offset at all; of an empty queue it makes no difference."""
    return sort_queues(
        queue for queue, state in states.items() if state.consumer_offset == 0 and state.broker_offset != 0
    )


def with_stored(reads: NameServerReads, group: str, states: States, address: str) -> tuple[States, str | None]:
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


def _reported(reads: NameServerReads, group: str, question: OffsetQuestion) -> QueueState:
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


def request_modes(reads: NameServerReads | None, group: ConsumerGroup, via: Mapping[str, str]) -> RequestModes:
    """The modes that brokers have for the group.

    They play no part, and are not asked for, when all members say that they rebalance by themselves: those pull. `via`
    is client id → address of a broker that lists it.
    """
    reports = group.reports
    if reads is None or all(client_id in reports and reports[client_id].client_rebalance for client_id in via):
        return RequestModes()
    answers = [reads.request_modes(group.group, address) for address in dict.fromkeys(via.values())]
    found: dict[str, set[str]] = {}
    shares: dict[str, set[int]] = {}
    for topic, given in (pair for answer in answers if answer is not None for pair in answer.items()):
        found.setdefault(topic, set()).add(given.mode)
        if given.pop_share_queue_num is not None:
            shares.setdefault(topic, set()).add(given.pop_share_queue_num)
    led = next((client_id for client_id, report in reports.items() if report.client_rebalance is False), None)
    if led is not None:
        rest = [topic for topic in group.own_topics or () if topic not in found]
        for topic in rest[:MOST_TOPICS]:
            question = AssignmentQuestion(topic, led, "AVG", "", via[led])
            reported = reads.assignment(group.group, question)
            if reported is not None and reported.mode is not None:
                found[topic] = {reported.mode}
    unknown = not found and all(answer is None for answer in answers)
    if unknown:
        return RequestModes()
    return RequestModes(_sorted(found), _sorted(shares))


def _sorted(found: Mapping[str, set[_Value]]) -> dict[str, tuple[_Value, ...]]:
    return {topic: tuple(sorted(values)) for topic, values in found.items()}


def polling_num(
    reads: NameServerReads | None, group: str, topics: Sequence[str], addresses: Sequence[str]
) -> int | None:
    """How many receive requests of the group wait at the brokers, over its topics; None when no broker tells."""
    if reads is None:
        return None
    asked = [topic for topic in topics if not topic.startswith(RETRY_PREFIX)][:MOST_TOPICS]
    numbers = [reads.polling_num(group, topic, address) for topic in asked for address in addresses]
    known = [number for number in numbers if number is not None]
    return sum(known) if known else None
