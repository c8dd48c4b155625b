"""Rules for what makes consumers compute shares that do not add up: each is a hypothesis that predicts owners."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from rmqlb.engine.assignment.consumers import other_subscriptions
from rmqlb.engine.diagnose.evidence import (
    ASK_CONSUMERS,
    CONVERGES_MS,
    FORGETS_MS,
    MAKE_EVIDENCE,
    GroupEvidence,
)
from rmqlb.engine.diagnose.hypotheses import DUPLICATE, MIXED, SPLIT, SUBSCRIPTIONS, UNREACHABLE, Cause, Hypotheses
from rmqlb.engine.diagnose.links import cut_links, finding_of_links
from rmqlb.engine.diagnose.rule import ComesOf
from rmqlb.errors import DataError
from rmqlb.model.diagnosis import Evidence, GroupFinding
from rmqlb.model.finding import ERROR, INFO, WARNING, Severity
from rmqlb.model.group import MemberView, ProxyView
from rmqlb.model.message_queue import MessageQueue, sort_client_ids, sort_queues
from rmqlb.model.words import counted, messages


def duplicate_client_ids(case: Hypotheses) -> Iterator[GroupFinding]:
    """Several connections with one client ID at one broker: each process takes the same share."""
    evidence = case.evidence
    # A process that restarts with its former ID is listed twice until brokers forget its former connection.
    passes = DUPLICATE not in case.explanation and evidence.is_younger_than(FORGETS_MS)
    for client_id in sort_client_ids(each for each, number in evidence.processes.items() if number > 1):
        yield finding_of_cause(
            case,
            DUPLICATE,
            severity=INFO if passes else ERROR if evidence.facts.apart is None else WARNING,
            consumers=(client_id,),
            facts=[_addresses(evidence, view, client_id) for view in evidence.lists if _is_twice(view, client_id)],
            meaning=f"{evidence.processes[client_id]} processes take the same share under one client ID",
            doubled=tuple(queue for queue, owners in evidence.observed.items() if owners == (client_id,)),
            remedy="Give each process its own instanceName, or do not set it.",
        )
    evidence.must_be_all_lists()


def split_consumer_view(case: Hypotheses) -> Iterator[GroupFinding]:
    """Brokers list different consumers, so that consumers share the queues by different lists."""
    evidence = case.evidence
    evidence.must_share()
    if evidence.group.has_split_view:
        if UNREACHABLE in case.present or any(link.reason is None for link in cut_links(evidence)):
            raise ComesOf((UNREACHABLE,))
        listed = [Counter(evidence.group.processes_in(view)) for view in evidence.views]
        ids = [each for each in evidence.processes if len({counts[each] for counts in listed}) > 1]
        # Brokers hear of a consumer that starts or ends one after another, and may be read in between.
        passes = evidence.is_younger_than(FORGETS_MS if SPLIT not in case.explanation else CONVERGES_MS)
        yield finding_of_cause(
            case,
            SPLIT,
            severity=INFO if passes else None,
            consumers=tuple(sort_client_ids(ids)),
            facts=[each for view in evidence.views for each in (_listed(evidence, view), *_fitting(case, view))],
            meaning="consumers that ask different brokers share the queues by different lists of consumers",
            remedy="Look again after two minutes; if it stays, look for what keeps these consumers from the brokers "
            "that do not list them.",
        )
    evidence.must_be_all_lists()


def broker_unreachable(case: Hypotheses) -> Iterator[GroupFinding]:
    """A broker does not list a consumer that others list, and the consumer owns none of its queues there."""
    evidence = case.evidence
    evidence.must_share()
    links = cut_links(evidence)
    if links:
        yield finding_of_links(evidence, links)
        evidence.must_be_all_lists()
        return
    if evidence.group.has_split_view:
        if UNREACHABLE not in case.suspected:
            raise DataError(
                "brokers list different consumers, and the owners of some queues are unknown", hint=ASK_CONSUMERS
            )
        if UNREACHABLE in case.explanation:
            cut = case.cut_off
            yield finding_of_cause(
                case,
                UNREACHABLE,
                consumers=tuple(cut),
                facts=[
                    *(_listed(evidence, view) for view in evidence.views),
                    *(_owned_there(evidence, client_id, brokers) for client_id, brokers in cut.items()),
                ],
                meaning=f"{_pairs(cut)}: its queues there are read by no consumer",
                remedy="Look at the network between these consumers and the brokers that do not list them.",
            )
        elif case.smallest is None:
            raise DataError(
                "brokers list different consumers, and no prediction gives the observed owners",
                hint="look again after two minutes, when brokers have forgotten consumers that left",
            )
    evidence.must_be_all_lists()


def mixed_strategies(case: Hypotheses) -> Iterator[GroupFinding]:
    """Consumers run different strategies, whose shares overlap and leave gaps."""
    evidence = case.evidence
    evidence.must_share()
    names = Counter(evidence.strategies.values())
    if len(names) > 1:
        usual = most(names)
        yield finding_of_cause(
            case,
            MIXED,
            consumers=tuple(sort_client_ids(i for i, name in evidence.strategies.items() if name != usual)),
            facts=[evidence.seen(f"strategy of {i}", name) for i, name in evidence.strategies.items()],
            meaning="shares of different strategies overlap and leave queues out",
            remedy="Let all consumers run the same strategy" + (f"; most run {usual}." if usual else "."),
        )
    evidence.must_be_of_all(evidence.strategies, "strategy")


def subscription_mismatch(case: Hypotheses) -> Iterator[GroupFinding]:
    """Consumers subscribe to different topics: the share of one that does not read a topic stays unassigned."""
    evidence = case.evidence
    evidence.must_share()
    if len(set(evidence.subscriptions.values())) > 1:
        passes = SUBSCRIPTIONS not in case.explanation and evidence.is_younger_than(FORGETS_MS)
        yield finding_of_cause(
            case,
            SUBSCRIPTIONS,
            severity=INFO if passes else None,
            consumers=other_subscriptions(evidence.group),
            facts=[
                evidence.seen(f"topics of {i}", ", ".join(sorted(topics)))
                for i, topics in evidence.subscriptions.items()
            ],
            meaning="a consumer that does not subscribe to a topic leaves its share of it unassigned",
            remedy="Give all consumers of the group the same subscriptions, or other topics another group.",
        )
    else:
        yield from _other_filters(evidence)
    evidence.must_be_of_all(evidence.subscriptions, "subscription")
    if not evidence.filters and evidence.processes.keys() <= evidence.group.reports.keys():
        raise DataError("the snapshot has no tag filters of its consumers", hint=MAKE_EVIDENCE)
    evidence.must_be_of_all(evidence.filters, "tag filter")


def _other_filters(evidence: GroupEvidence) -> Iterator[GroupFinding]:
    """Consumers take different messages of a topic; a broker sends each what the last heartbeat of any asks for."""
    for topic in sorted({topic for its in evidence.filters.values() for topic in its}):
        taken = {i: its[topic] for i, its in evidence.filters.items() if topic in its}
        if len(set(taken.values())) > 1:
            usual = Counter(taken.values()).most_common(1)[0][0]
            yield GroupFinding(
                SUBSCRIPTIONS,
                INFO if evidence.is_younger_than(FORGETS_MS) else WARNING,
                evidence.group.group,
                topic,
                consumers=tuple(sort_client_ids(i for i, its in taken.items() if its != usual)),
                evidence=tuple(evidence.seen(f"messages of {topic} that {i} takes", its) for i, its in taken.items()),
                consequence="A consumer skips messages of its queues that only others take; the group never gets them.",
                remedy="Give all consumers of the group the same tags, or other tags another group.",
            )


def finding_of_cause(
    case: Hypotheses,
    cause: Cause,
    *,
    severity: Severity | None = None,
    consumers: tuple[str, ...],
    facts: Sequence[Evidence],
    meaning: str,
    remedy: str,
    doubled: tuple[MessageQueue, ...] = (),
) -> GroupFinding:
    """The finding of a cause, as grave as what comes of it unless that is given.

    Args:
        doubled: queues with one owner that several processes are.
    """
    bad = _queues(case, cause)
    queues = tuple(sort_queues({*bad, *doubled}))
    topics = {queue.topic for queue in queues}
    return GroupFinding(
        cause,
        severity or (ERROR if queues else WARNING),
        case.evidence.group.group,
        next(iter(topics)) if len(topics) == 1 else None,
        queues,
        consumers,
        tuple(facts),
        consequence_of(case, meaning, bad, doubled),
        remedy,
        case.explains(cause),
    )


def _queues(case: Hypotheses, cause: Cause) -> tuple[MessageQueue, ...]:
    try:
        return case.queues_of(cause)
    except DataError:
        return ()


def consequence_of(
    case: Hypotheses, meaning: str, bad: tuple[MessageQueue, ...], doubled: tuple[MessageQueue, ...]
) -> str:
    """What a cause means, with the queues that it leaves without exactly one owner, in a sentence."""
    owners = Counter(min(len(case.now[queue]), 2) for queue in bad)
    parts = [
        f"{counted(number, 'queue')} {what}"
        for number, what in (
            (owners[0], "unassigned"),
            (owners[2], "with duplicate owners"),
            (len(doubled), "read by each of these processes"),
        )
        if number
    ]
    waiting = case.evidence.lag(tuple(queue for queue in bad if not case.now[queue]))
    text = ": ".join([meaning[0].upper() + meaning[1:], *([", ".join(parts)] if parts else [])])
    return f"{text}; {messages(waiting)} unread in unassigned queues." if waiting else f"{text}."


def most(numbers: Counter[str]) -> str | None:
    """What most consumers have; None when others have as many."""
    first, second = numbers.most_common(2)
    return first[0] if first[1] > second[1] else None


def _is_twice(view: MemberView | ProxyView, client_id: str) -> bool:
    return view.client_ids.count(client_id) > 1


def _addresses(evidence: GroupEvidence, view: MemberView | ProxyView, client_id: str) -> Evidence:
    channels = [each for each in view.connections if each.client_id == client_id]
    known = sorted(each.client_addr for each in channels if each.client_addr is not None)
    broker = view.seen.where if isinstance(view, ProxyView) else evidence.broker_name(view) or view.broker_addr
    text = (
        f"connections of {client_id}"
        + (f" at {broker}" if broker else "")
        + (f" from {', '.join(known)}" if known else "")
    )
    return evidence.seen(text, len(channels), threshold=2, by=view.seen)


def _listed(evidence: GroupEvidence, view: MemberView) -> Evidence:
    return evidence.seen(
        f"consumers that {view.broker_addr or view.seen.where} lists", ", ".join(view.client_ids), by=view.seen
    )


def _fitting(case: Hypotheses, view: MemberView) -> Iterator[Evidence]:
    """How many consumers own what they would by this list, where that can be predicted."""
    fitting = case.owning_by(view.client_ids)
    if fitting is not None:
        text = f"consumers with the owners that the list of {view.broker_addr or view.seen.where} gives"
        yield case.evidence.seen(text, fitting, by=view.seen)


def _owned_there(evidence: GroupEvidence, client_id: str, brokers: frozenset[str]) -> Evidence:
    owned = sum(client_id in its and queue.broker_name in brokers for queue, its in evidence.observed.items())
    return evidence.seen(f"queues of {client_id} at {', '.join(sorted(brokers))}", owned)


def _pairs(cut: Mapping[str, frozenset[str]]) -> str:
    return "; ".join(f"{client_id} does not reach {', '.join(sorted(its))}" for client_id, its in cut.items())
