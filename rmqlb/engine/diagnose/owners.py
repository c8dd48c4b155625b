"""Rules for the owners themselves; what a cause explains is not listed as a cause."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from rmqlb.engine.assignment.balance import counts
from rmqlb.engine.diagnose.evidence import ASK_BROKERS, ASK_CONSUMERS, CONVERGES_MS, DoesNotApply, GroupEvidence
from rmqlb.engine.diagnose.hypotheses import DUPLICATE, Hypotheses
from rmqlb.engine.diagnose.rule import Case, ComesOf
from rmqlb.errors import DataError
from rmqlb.model.diagnosis import GroupFinding
from rmqlb.model.finding import ERROR, INFO, WARNING, Severity
from rmqlb.model.message_queue import MessageQueue, sort_client_ids, sort_queues
from rmqlb.model.words import counted, messages

_BAD = ("unassigned-queues", "duplicate-owners")
_LOOK_AGAIN = "Look again after 50 s: a change of consumers or queues has reached all of them by then."


def unassigned_queues(case: Case) -> Iterator[GroupFinding]:
    """No consumer reads these queues, and nothing that was found explains it."""
    queues = _bad(case, lambda owners: not owners)
    if queues:
        evidence = case.evidence
        waiting = evidence.lag(queues)
        yield GroupFinding(
            "unassigned-queues",
            _severity(evidence, ERROR),
            evidence.group.group,
            _topic(queues),
            queues,
            evidence=(evidence.seen("queues without an owner", len(queues), threshold=1),),
            consequence=f"{counted(len(queues), 'queue')} unassigned; {messages(waiting)} unread there.",
            remedy=_LOOK_AGAIN,
        )


def duplicate_owners(case: Case) -> Iterator[GroupFinding]:
    """Several consumers read these queues, and nothing that was found explains it."""
    queues = _bad(case, lambda owners: len(owners) > 1)
    if queues:
        evidence = case.evidence
        ids = {client_id for queue in queues for client_id in evidence.observed[queue]}
        yield GroupFinding(
            "duplicate-owners",
            _severity(evidence, ERROR),
            evidence.group.group,
            _topic(queues),
            queues,
            tuple(sort_client_ids(ids)),
            (evidence.seen("queues with two or more owners", len(queues), threshold=1),),
            f"{counted(len(queues), 'queue')} with duplicate owners, each of which delivers the same messages.",
            _LOOK_AGAIN,
        )
    elif any(_is_several_processes(case.evidence, owners) for owners in case.evidence.observed.values()):
        raise ComesOf((DUPLICATE,))


def mismatch(case: Case) -> Iterator[GroupFinding]:
    """Each queue has one owner, but no prediction gives these."""
    evidence = case.evidence
    _must_share(evidence)
    if case.smallest is not None:
        evidence.must_be_observed()
        return
    bad = {_BAD[len(owners) > 1] for owners in evidence.observed.values() if len(owners) != 1}
    if case.answer("broker-gone").findings:  # consumers share the queues by a route that has it until they poll it
        raise ComesOf(("broker-gone",))
    if bad:
        queues = [q for q, its in evidence.observed.items() if len(its) != 1]
        _, causes = case.without_those_of(queues, ("consumer-gone", "mixed-sdks"))
        raise ComesOf(causes or tuple(sorted(bad)))
    evidence.must_be_of_all(evidence.strategies, "strategy")
    evidence.must_be_of_all(evidence.subscriptions, "subscription")
    members = evidence.facts.members
    if evidence.facts.basis == "assumed":
        raise DataError("the strategy of its consumers is unknown", hint=ASK_CONSUMERS)
    (predicted, *_) = case.possible(case.present)
    differ = [queue for queue, owners in predicted.items() if evidence.observed.get(queue, owners) != owners]
    yield GroupFinding(
        "mismatch",
        _severity(evidence, WARNING),
        evidence.group.group,
        _topic(tuple(differ)),
        tuple(sort_queues(differ)),
        tuple(sort_client_ids({i for q in differ for i in {*evidence.observed[q]} ^ {*predicted[q]}})),
        evidence=(evidence.seen(f"queues with other owners than {members.name} predicts", len(differ), threshold=1),),
        consequence="The owners are not those of any prediction; what decides them is not all known.",
        remedy=_LOOK_AGAIN,
    )


def more_consumers_than_queues(case: Hypotheses) -> Iterator[GroupFinding]:
    """Consumers without a queue, since no topic has as many queues as the group has consumers."""
    evidence = case.evidence
    evidence.must_share()
    most = _most_queues(evidence)
    consumers = len(evidence.processes)
    if evidence.facts.untold is not None:
        raise DataError(evidence.facts.untold, hint=ASK_BROKERS)
    if consumers <= most:
        return
    numbers = counts(evidence.facts.ownership.owners, evidence.processes)
    idle = tuple(sort_client_ids(client_id for client_id, number in numbers.items() if not number))
    if idle:
        yield GroupFinding(
            "more-consumers-than-queues",
            INFO,
            evidence.group.group,
            consumers=idle,
            evidence=(evidence.seen("consumers", consumers, threshold=most + 1),),
            consequence=f"{counted(len(idle), 'consumer')} idle: a queue has one owner.",
            remedy="Nothing is wrong; more queues would let all consumers work.",
        )


def _is_several_processes(evidence: GroupEvidence, owners: tuple[str, ...]) -> bool:
    """The owner is a client ID of several processes, each of which reads the queue."""
    return any(evidence.processes[client_id] > 1 for client_id in owners)


def idle_by_strategy(case: Hypotheses) -> Iterator[GroupFinding]:
    """Consumers to which their strategy gives no queue, although some topic has enough for all."""
    evidence = case.evidence
    evidence.must_share()
    if not evidence.facts.ownership.spread.idle:
        return
    if len(evidence.processes) > _most_queues(evidence):
        raise DoesNotApply("it has more consumers than queues")
    owners, predicted = evidence.facts.ownership.owners, evidence.facts.predicted
    numbers, shares = (counts(its, evidence.processes) for its in (owners, predicted))
    idle = tuple(sort_client_ids(i for i, number in numbers.items() if not number and not shares[i]))
    if idle:
        them = "it" if len(idle) == 1 else "them"
        yield GroupFinding(
            "idle-by-strategy",
            INFO,
            evidence.group.group,
            consumers=idle,
            evidence=(evidence.seen("consumers to which the strategy gives no queue", len(idle), threshold=1),),
            consequence=f"{counted(len(idle), 'consumer')} idle: the strategy gives {them} no queue.",
            remedy="Nothing is wrong; show-owners --explain gives the reason, and shows other strategies.",
        )


def _most_queues(evidence: GroupEvidence) -> int:
    """Of a topic: a client shares each topic by itself."""
    return max(Counter(queue.topic for queue in evidence.queues).values(), default=0)


def _must_share(evidence: GroupEvidence) -> None:
    """Refuse groups whose queues have no single owners; those of which no consumer is known have bad ones for sure."""
    if evidence.facts.apart is not None:
        raise DoesNotApply(evidence.facts.apart)
    evidence.facts.must_be_assigned()
    if evidence.group.client_ids == () and evidence.facts.untold is None:
        raise DoesNotApply("no consumer is visible")
    if evidence.group.client_ids == () and evidence.facts.name not in evidence.facts.gaps.members:
        raise DataError(evidence.facts.untold or "", hint=ASK_BROKERS)


def _bad(case: Case, is_bad: Callable[[tuple[str, ...]], bool]) -> tuple[MessageQueue, ...]:
    """The queues whose observed owners are so and that no cause explains (raises as a rule does)."""
    evidence = case.evidence
    _must_share(evidence)
    queues = tuple(sort_queues(q for q in evidence.queues if q in evidence.observed and is_bad(evidence.observed[q])))
    if not queues:
        evidence.must_be_observed()
        return ()
    if case.explanation:
        raise ComesOf(case.explanation)
    left = tuple(queue for queue in queues if not case.gives(queue, evidence.observed[queue]))
    if not left:
        raise ComesOf(case.present)
    left, causes = case.without_those_of(left, ("consumer-gone", "mixed-sdks"))
    if not left:
        raise ComesOf(causes)
    return left


def _severity(evidence: GroupEvidence, otherwise: Severity) -> Severity:
    return INFO if evidence.is_younger_than(CONVERGES_MS) else otherwise


def _topic(queues: tuple[MessageQueue, ...]) -> str | None:
    topics = {queue.topic for queue in queues}
    return topics.pop() if len(topics) == 1 else None
