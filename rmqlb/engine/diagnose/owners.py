"""Rules for the owners of queues: what another cause explains is a consequence, and no cause itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from rmqlb.engine.assignment.balance import counts
from rmqlb.engine.diagnose.evidence import ASK_BROKERS, ASK_CONSUMERS, CONVERGES_MS, DoesNotApply, GroupEvidence
from rmqlb.engine.diagnose.hypotheses import DUPLICATE
from rmqlb.engine.diagnose.rule import Case, ComesOf, rule
from rmqlb.engine.group import known
from rmqlb.errors import DataError
from rmqlb.model.diagnosis import Evidence, GroupFinding
from rmqlb.model.finding import ERROR, INFO, WARNING, Severity
from rmqlb.model.group import RETRY_PREFIX
from rmqlb.model.message_queue import MessageQueue, sort_client_ids, sort_queues
from rmqlb.model.times import utc_text
from rmqlb.model.words import counted, messages, named

LOCK_LASTS_MS = 60_000
"""A broker gives a queue to another client once its lock is older than this (`RebalanceLockManager`)."""
_REBALANCES_MS = 20_000
_LOOK_AGAIN = "Look again after 50 s: a change of consumers or queues has reached all of them by then."


@rule("unassigned-queues")
def unassigned_queues(case: Case) -> Iterator[GroupFinding]:
    queues = _unexplained(case, lambda owners: not owners)
    if queues:
        waiting = messages(case.evidence.lag(queues))
        yield case.finding(
            "unassigned-queues",
            _severity(case.evidence, ERROR),
            queues=queues,
            facts=[case.evidence.seen("queues without an owner", len(queues), threshold=1)],
            consequence=f"{counted(len(queues), 'queue')} unassigned; {waiting} unread there.",
            remedy=_LOOK_AGAIN,
        )


@rule("duplicate-owners")
def duplicate_owners(case: Case) -> Iterator[GroupFinding]:
    evidence = case.evidence
    queues = _unexplained(case, lambda owners: len(owners) > 1)
    if queues:
        yield case.finding(
            "duplicate-owners",
            _severity(evidence, ERROR),
            queues=queues,
            consumers=[client_id for queue in queues for client_id in evidence.observed[queue]],
            facts=[evidence.seen("queues with two or more owners", len(queues), threshold=1)],
            consequence=f"{counted(len(queues), 'queue')} with duplicate owners, each of which delivers the same "
            "messages.",
            remedy=_LOOK_AGAIN,
        )
    elif any(evidence.processes[client_id] > 1 for owners in evidence.observed.values() for client_id in owners):
        raise ComesOf((DUPLICATE,))  # the owner is a client ID of several processes, each of which reads the queue


@rule("mismatch")
def mismatch(case: Case) -> Iterator[GroupFinding]:
    """Each queue has one owner, but no prediction gives these owners."""
    evidence = case.evidence
    _must_share(evidence)
    if not evidence.queues and case.has("no-read-queues"):
        raise ComesOf(("no-read-queues",))
    if case.smallest is not None:
        evidence.must_be_observed()
        return
    if case.answer("broker-gone").findings:  # consumers share the queues by a route that has it until they poll it
        raise ComesOf(("broker-gone",))
    bad = [queue for queue, owners in evidence.observed.items() if len(owners) != 1]
    if bad:
        _, causes = case.without_those_of(bad, ("consumer-gone", "mixed-sdks"))
        codes = {"duplicate-owners" if evidence.observed[queue] else "unassigned-queues" for queue in bad}
        raise ComesOf(causes or tuple(sorted(codes)))
    evidence.must_be_of_all(evidence.strategies, "strategy")
    evidence.must_be_of_all(evidence.subscriptions, "subscription")
    if evidence.facts.basis == "assumed":
        raise DataError("the strategy of its consumers is unknown", hint=ASK_CONSUMERS)
    (predicted, *_) = case.possible(case.present)
    differ = [queue for queue, owners in predicted.items() if evidence.observed.get(queue, owners) != owners]
    strategy = evidence.facts.members.name
    yield case.finding(
        "mismatch",
        _severity(evidence, WARNING),
        queues=differ,
        consumers=[i for queue in differ for i in {*evidence.observed[queue]} ^ {*predicted[queue]}],
        facts=[evidence.seen(f"queues with other owners than {strategy} predicts", len(differ), threshold=1)],
        consequence="No prediction gives the observed owners: something that decides them is unknown.",
        remedy=_LOOK_AGAIN,
    )


@rule("more-consumers-than-queues")
def more_consumers_than_queues(case: Case) -> Iterator[GroupFinding]:
    evidence = case.evidence
    evidence.must_share()
    most, consumers = _most_queues(evidence), len(evidence.processes)
    if evidence.facts.untold is not None:
        raise DataError(evidence.facts.untold, hint=ASK_BROKERS)
    if consumers > most and (idle := _idle(case, evidence.processes)):
        yield case.finding(
            "more-consumers-than-queues",
            INFO,
            consumers=idle,
            facts=[evidence.seen("consumers", consumers, threshold=most + 1)],
            consequence=f"{counted(len(idle), 'consumer')} idle: a queue has one owner.",
            remedy="Nothing is wrong; more queues would let all consumers work.",
        )


@rule("idle-by-strategy")
def idle_by_strategy(case: Case) -> Iterator[GroupFinding]:
    """The strategy gives some consumers no queue, although some topic has enough for all."""
    evidence = case.evidence
    evidence.must_share()
    if not evidence.facts.ownership.spread.idle:
        return
    if len(evidence.processes) > _most_queues(evidence):
        raise DoesNotApply("it has more consumers than queues")
    shares = counts(evidence.facts.predicted, evidence.processes)
    idle = _idle(case, [client_id for client_id, number in shares.items() if not number])
    if idle:
        yield case.finding(
            "idle-by-strategy",
            INFO,
            consumers=idle,
            facts=[evidence.seen("consumers to which the strategy gives no queue", len(idle), threshold=1)],
            consequence=f"{counted(len(idle), 'consumer')} idle: the strategy gives "
            f"{'it' if len(idle) == 1 else 'them'} no queue.",
            remedy="Nothing is wrong; show-owners --explain gives the reason, and shows other strategies.",
        )


def _idle(case: Case, among: Iterable[str]) -> tuple[str, ...]:
    """Those of these consumers without a queue, even of topics that brokers do not list (raises ComesOf)."""
    evidence = case.evidence
    numbers = counts(evidence.facts.ownership.owners, evidence.processes)
    owning = {
        client_id
        for queue, state in evidence.group.queues.items()
        if not queue.topic.startswith(RETRY_PREFIX)
        for client_id in state.owners or ()
    }
    idle = tuple(client_id for client_id in among if not numbers[client_id] and client_id not in owning)
    if idle and case.has("no-read-queues"):
        raise ComesOf(("no-read-queues",))
    return idle


def _most_queues(evidence: GroupEvidence) -> int:
    """The queues of the largest topic: a client shares each topic separately."""
    return max(Counter(queue.topic for queue in evidence.queues).values(), default=0)


@rule("consumer-gone")
def consumer_gone(case: Case) -> Iterator[GroupFinding]:
    """A consumer ended without unregistering, and its queues wait for new owners.

    A killed consumer unlocks nothing. The others learn of its end at once, and each of them leaves out a queue whose
    lock it does not get (`RebalanceImpl.updateProcessQueueTableInRebalance`), until the broker's 60 s are over.
    """
    evidence = case.evidence
    evidence.must_share()
    waiting = tuple(queue for queue in evidence.queues if evidence.observed.get(queue) == ())
    if not waiting or case.explanation or case.present:
        return
    evidence.must_be_all_lists()
    left, locked = _left(evidence), _locked(case, waiting)
    queues = [queue for queue in waiting if queue in locked or any(queue in owned for owned in left.values())]
    if not queues:
        return
    ids = sort_client_ids(client_id for client_id, owned in left.items() if not owned.isdisjoint(queues))
    who = named(ids) if ids else "a consumer that ended"
    lasts = (LOCK_LASTS_MS + _REBALANCES_MS if locked else CONVERGES_MS) // 1000
    why = f"{who} left without a word and keeps their locks" if locked else f"{who} left the lists"
    yield case.finding(
        "consumer-gone",
        ERROR if evidence.lag(queues) else WARNING,
        queues=queues,
        consumers=ids,
        facts=[*_last_lists(evidence, ids), *_waiting(evidence, len(queues), is_orderly=bool(locked))],
        consequence=f"{counted(len(queues), 'queue')} unassigned: {why}; others get them within {lasts} s; "
        f"{evidence.unread_in(queues)}.",
        remedy=f"Wait {lasts} s. Look at why the process of {who} ended: kill -9, out of memory, a lost host.",
    )


def _left(evidence: GroupEvidence) -> dict[str, set[MessageQueue]]:
    """Consumer that only earlier looks list → the queues that it owned and that have no owner now."""
    found: dict[str, set[MessageQueue]] = {}
    for look in evidence.earlier:
        for client_id in {*(look.client_ids or ())} - evidence.processes.keys():
            owned = {queue for queue, state in look.queues.items() if client_id in (state.owners or ())}
            found.setdefault(client_id, set()).update(q for q in owned if evidence.observed.get(q) == ())
    return found


def _locked(case: Case, queues: tuple[MessageQueue, ...]) -> tuple[MessageQueue, ...]:
    """The queues that are an orderly consumer's by prediction, and whose lock may still be another one's."""
    evidence = case.evidence
    if evidence.is_rebalancing:
        return ()
    since = evidence.read_at[-1]  # from when on the looks show these queues without an owner
    for look, at in zip(reversed(evidence.looks), reversed(evidence.read_at), strict=True):
        if any(queue not in look.queues or look.queues[queue].owners != frozenset() for queue in queues):
            break
        since = at
    if evidence.read_at[-1] - since > LOCK_LASTS_MS + _REBALANCES_MS:
        return ()
    predictions = known(lambda: case.possible(())) or ()
    if len(predictions) != 1:
        return ()
    predicted = predictions[0]
    others = {q: owners for q, owners in evidence.observed.items() if q not in queues and q in predicted}
    if any(owners != predicted[queue] for queue, owners in others.items()):
        return ()
    return tuple(
        queue
        for queue in queues
        if predicted.get(queue) and all(evidence.report_of(owner).orderly is True for owner in predicted[queue])
    )


def _last_lists(evidence: GroupEvidence, ids: list[str]) -> Iterator[Evidence]:
    for client_id in ids:
        last = next(look for look in reversed(evidence.earlier) if client_id in (look.client_ids or ()))
        at = "at an earlier look" if last.seen.at is None else utc_text(last.seen.at)
        yield evidence.seen(f"brokers listed {client_id} last", at, by=last.seen)


def _waiting(evidence: GroupEvidence, number: int, *, is_orderly: bool) -> Iterator[Evidence]:
    yield evidence.seen("queues without an owner", number, threshold=1)
    if is_orderly:
        yield evidence.seen("their owners by prediction", "orderly consumers, which do not get the locks")


def _must_share(evidence: GroupEvidence) -> None:
    """Reject groups whose queues have no single owners, and groups without a visible consumer.

    A group of which no consumer is visible although its brokers answered has bad owners for sure.
    """
    if evidence.facts.apart is not None:
        raise DoesNotApply(evidence.facts.apart)
    evidence.facts.must_be_assigned()
    if evidence.group.client_ids == () and evidence.facts.untold is None:
        raise DoesNotApply("no consumer is visible")
    if evidence.group.client_ids == () and evidence.facts.name not in evidence.facts.gaps.members:
        raise DataError(evidence.facts.untold or "", hint=ASK_BROKERS)


def _unexplained(case: Case, is_bad: Callable[[tuple[str, ...]], bool]) -> tuple[MessageQueue, ...]:
    """The queues with bad observed owners that no cause explains (raises as a rule does)."""
    evidence = case.evidence
    _must_share(evidence)
    queues = [q for q in sort_queues(evidence.queues) if q in evidence.observed and is_bad(evidence.observed[q])]
    if not queues:
        evidence.must_be_observed()
        return ()
    if case.explanation:
        raise ComesOf(case.explanation)
    left = [queue for queue in queues if not case.gives(queue, evidence.observed[queue])]
    if not left:
        raise ComesOf(case.present)
    unexplained, causes = case.without_those_of(left, ("consumer-gone", "mixed-sdks"))
    if not unexplained:
        raise ComesOf(causes)
    return unexplained


def _severity(evidence: GroupEvidence, otherwise: Severity) -> Severity:
    return INFO if evidence.is_rebalancing else otherwise
