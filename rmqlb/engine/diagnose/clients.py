"""Rules for clients whose shares do not add up: each cause is a hypothesis that predicts owners."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

from rmqlb.engine.assignment.consumers import only_grpc, other_subscriptions
from rmqlb.engine.diagnose.evidence import FORGETS_MS, MAKE_EVIDENCE, DoesNotApply, GroupEvidence
from rmqlb.engine.diagnose.hypotheses import CAUSES, DUPLICATE, MIXED, SDKS, SUBSCRIPTIONS, Cause
from rmqlb.engine.diagnose.lags import lags_of
from rmqlb.engine.diagnose.rule import Case, rule
from rmqlb.engine.group import known
from rmqlb.errors import DataError
from rmqlb.model.diagnosis import Evidence, GroupFinding
from rmqlb.model.finding import ERROR, INFO, WARNING, Severity
from rmqlb.model.group import MemberView, ProxyView, is_grpc
from rmqlb.model.message_queue import MessageQueue, sort_client_ids
from rmqlb.model.words import counted, messages, named

_DIFFER = "client libraries compute different shares"


@rule("duplicate-client-id")
def duplicate_client_ids(case: Case) -> Iterator[GroupFinding]:
    """Each process with the same client ID takes the same share."""
    evidence = case.evidence
    # Brokers list a process that restarted with its former ID twice until they forget its former connection.
    passes = DUPLICATE not in case.explanation and evidence.is_younger_than(FORGETS_MS)
    for client_id in sort_client_ids(each for each, number in evidence.processes.items() if number > 1):
        yield finding_of_cause(
            case,
            DUPLICATE,
            severity=INFO if passes else ERROR if evidence.facts.apart is None else WARNING,
            consumers=[client_id],
            facts=[
                _connections(evidence, view, client_id)
                for view in evidence.lists
                if view.client_ids.count(client_id) > 1
            ],
            meaning=f"{evidence.processes[client_id]} processes take the same share under one client ID",
            doubled=tuple(queue for queue, owners in evidence.observed.items() if owners == (client_id,)),
            remedy="Give each process its own instanceName, or do not set it.",
        )
    evidence.must_be_all_lists()


def _connections(evidence: GroupEvidence, view: MemberView | ProxyView, client_id: str) -> Evidence:
    channels = [each for each in view.connections if each.client_id == client_id]
    known = sorted(each.client_addr for each in channels if each.client_addr is not None)
    broker = view.seen.where if isinstance(view, ProxyView) else evidence.broker_name(view) or view.broker_addr
    at, addresses = f" at {broker}" if broker else "", f" from {', '.join(known)}" if known else ""
    return evidence.seen(f"connections of {client_id}{at}{addresses}", len(channels), threshold=2, by=view.seen)


@rule("mixed-strategies")
def mixed_strategies(case: Case) -> Iterator[GroupFinding]:
    evidence = case.evidence
    evidence.must_share()
    numbers = Counter(evidence.strategies.values())
    if len(numbers) > 1:
        usual = _most(numbers)
        yield finding_of_cause(
            case,
            MIXED,
            consumers=[client_id for client_id, name in evidence.strategies.items() if name != usual],
            facts=[evidence.seen(f"strategy of {ids}", name) for ids, name in _by_value(evidence.strategies)],
            meaning="shares of different strategies overlap and leave queues out",
            remedy="Let all consumers run the same strategy" + (f"; most run {usual}." if usual else "."),
        )
    evidence.must_be_of_all(evidence.strategies, "strategy")


@rule("subscription-mismatch")
def subscription_mismatch(case: Case) -> Iterator[GroupFinding]:
    """The share of a consumer that does not subscribe to a topic stays unassigned."""
    evidence = case.evidence
    evidence.must_share()
    if len(set(evidence.subscriptions.values())) > 1:
        topics = {client_id: ", ".join(sorted(names)) for client_id, names in evidence.subscriptions.items()}
        passes = SUBSCRIPTIONS not in case.explanation and evidence.is_younger_than(FORGETS_MS)
        yield finding_of_cause(
            case,
            SUBSCRIPTIONS,
            severity=INFO if passes and not _stalled(case) else None,
            consumers=other_subscriptions(evidence.group),
            facts=[evidence.seen(f"topics of {ids}", names) for ids, names in _by_value(topics)],
            meaning="a consumer that does not subscribe to a topic leaves its share of it unassigned",
            remedy="Give all consumers of the group the same subscriptions, or other topics another group.",
        )
    else:
        yield from _other_filters(case)
    evidence.must_be_of_all(evidence.subscriptions, "subscription")
    if not evidence.filters and evidence.processes.keys() <= evidence.group.reports.keys():
        raise DataError("the snapshot has no tag filters of its consumers", hint=MAKE_EVIDENCE)
    evidence.must_be_of_all(evidence.filters, "tag filter")


def _other_filters(case: Case) -> Iterator[GroupFinding]:
    """Consumers take different tags of a topic; a broker sends each the tags of the last heartbeat of any of them.

    A consumer drops the other messages, and its offset stands still while only such messages arrive
    (`PullAPIWrapper.processPullResult`, `DefaultMQPushConsumerImpl.correctTagsOffset`).
    """
    evidence = case.evidence
    for topic in sorted({topic for filters in evidence.filters.values() for topic in filters}):
        tags = {i: filters[topic] for i, filters in evidence.filters.items() if topic in filters}
        if len(set(tags.values())) > 1:
            usual = Counter(tags.values()).most_common(1)[0][0]
            queues = _stalled(case, topic)
            stops = f" {counted(len(queues), 'queue')} not read; {evidence.unread_in(queues)}." if queues else ""
            yield case.finding(
                SUBSCRIPTIONS,
                ERROR if queues else INFO if evidence.is_younger_than(FORGETS_MS) else WARNING,
                topic=topic,
                queues=queues,
                consumers=[client_id for client_id, own in tags.items() if own != usual],
                facts=[evidence.seen(f"messages of {topic} for {ids}", own) for ids, own in _by_value(tags)],
                consequence="A consumer skips messages of its queues that only others take; the group never gets them."
                + stops,
                remedy="Give all consumers of the group the same tags, or other tags another group.",
            )


def _stalled(case: Case, topic: str | None = None) -> tuple[MessageQueue, ...]:
    """The queues of the topic, or of all, whose offsets stand still without a reason at their consumers."""
    lags = known(lambda: lags_of(case.evidence))
    stalled = [] if lags is None else [queue for queue in lags.of("stalled") if topic in (None, queue.topic)]
    causes = ("frozen-consumer", "consume-failing", "blocked-consumer", "pull-stopped")
    return case.without_those_of(stalled, causes)[0]


@rule("mixed-sdks")
def mixed_sdks(case: Case) -> Iterator[GroupFinding]:
    """Consumers use client libraries of several languages; their predicted shares decide the severity."""
    evidence = case.evidence
    languages = {i: each.language for i, each in evidence.group.connection_of.items() if each.language is not None}
    if only_grpc(evidence.group):
        raise DoesNotApply("its consumers are gRPC clients, which share no queues")
    numbers = Counter(language for i, language in languages.items() if not is_grpc(i))
    if len(numbers) > 1:
        usual = _most(numbers)
        others = {i for i, language in languages.items() if language != usual and not is_grpc(i)}
        yield _sdk_finding(case, languages, others, usual)
    evidence.must_be_of_all(languages, "language")


def _sdk_finding(case: Case, languages: Mapping[str, str], others: set[str], usual: str | None) -> GroupFinding:
    evidence = case.evidence
    facts = [evidence.seen(f"language of {ids}", each) for ids, each in _by_value(dict(sorted(languages.items())))]
    remedy = "Use one client library in a group" + (f"; most consumers use {usual}." if usual else ", or AVG in each.")
    blamed = _shared_differently(case, others) if usual else ()
    is_same = _is_same(case)
    if not blamed and SDKS in case.present and is_same is False:
        return finding_of_cause(case, SDKS, consumers=others, facts=facts, meaning=_DIFFER, remedy=remedy)
    unknown = sorted({languages[i] for i in evidence.facts.sdks.assumed if i in languages})
    if blamed:
        severity, consequence = ERROR, _consequence(case, _DIFFER, blamed)
    elif case.is_explained if unknown else is_same:
        severity, consequence = INFO, "Client libraries compute the same shares; with another strategy they may not."
        remedy = "Nothing to do; AVG and AVG_BY_CIRCLE are the same in Java and Go, AVG in C++ too."
    else:
        what = f"The rules of {', '.join(unknown)} are unknown" if unknown else "Client libraries have different rules"
        severity, consequence = WARNING, f"{what}; shares may not add up."
    return case.finding(
        SDKS, severity, queues=blamed, consumers=others, facts=facts, consequence=consequence, remedy=remedy
    )


def _is_same(case: Case) -> bool | None:
    """Each consumer owns what it would if all ran the most used library; None where that cannot be predicted."""
    if case.is_explained and SDKS not in case.explanation:
        return True
    acting = {*case.present, *case.explanation}
    with_all = known(lambda: case.possible(tuple(cause for cause in CAUSES if cause in acting)))
    without = known(lambda: case.possible(tuple(cause for cause in CAUSES if cause in acting and cause != SDKS)))
    return None if with_all is None or without is None else with_all == without


def _shared_differently(case: Case, others: set[str]) -> tuple[MessageQueue, ...]:
    """The queues without exactly one owner, where only these consumers own other queues than predicted.

    A Go consumer does not report its strategy, which may differ from that of the others.
    """
    observed = case.evidence.observed
    predictions = known(lambda: case.possible(case.present) if case.smallest is None else ())
    if predictions is None or len(predictions) != 1:
        return ()
    differ = {queue: {*owners} ^ {*observed.get(queue, owners)} for queue, owners in predictions[0].items()}
    blamed = set[str]().union(*differ.values())
    bad = [queue for queue in differ if differ[queue] and len(observed[queue]) != 1]
    return tuple(bad) if blamed <= others else ()


# -- causes ------------------------------------------------------------------------------------------------------------


def finding_of_cause(
    case: Case,
    cause: Cause,
    *,
    severity: Severity | None = None,
    consumers: Collection[str],
    facts: Sequence[Evidence],
    meaning: str,
    remedy: str,
    doubled: tuple[MessageQueue, ...] = (),
) -> GroupFinding:
    """The finding of a cause of owners.

    Args:
        case: the group.
        cause: the cause.
        severity: None is error where the cause leaves queues without exactly one owner, otherwise warning.
        consumers: client IDs.
        facts: the evidence.
        meaning: the beginning of the consequence.
        remedy: the remedy.
        doubled: queues whose single owner is several processes.
    """
    bad = known(lambda: case.queues_of(cause)) or ()
    queues = {*bad, *doubled}
    return case.finding(
        cause,
        severity or (ERROR if queues else WARNING),
        queues=queues,
        consumers=consumers,
        facts=facts,
        consequence=_consequence(case, meaning, bad, doubled),
        remedy=remedy,
        explains=case.explains(cause),
    )


def _consequence(
    case: Case, meaning: str, bad: tuple[MessageQueue, ...], doubled: tuple[MessageQueue, ...] = ()
) -> str:
    """The meaning of a cause, and the number of its queues without exactly one owner."""
    unassigned = [queue for queue in bad if not case.now[queue]]
    numbers = (
        (len(unassigned), "unassigned"),
        (sum(len(case.now[queue]) > 1 for queue in bad), "with duplicate owners"),
        (len(doubled), "read by each of these processes"),
    )
    parts = ", ".join(f"{counted(number, 'queue')} {what}" for number, what in numbers if number)
    text = meaning[0].upper() + meaning[1:] + (f": {parts}" if parts else "")
    waiting = case.evidence.lag(unassigned)
    return f"{text}; {messages(waiting)} unread in unassigned queues." if waiting else f"{text}."


def _by_value(values: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for value in dict.fromkeys(values.values()):
        yield named(client_id for client_id, own in values.items() if own == value), value


def _most(numbers: Counter[str]) -> str | None:
    """The value of most consumers; None when another value is as frequent."""
    first, second = numbers.most_common(2)
    return first[0] if first[1] > second[1] else None
