"""The rule for client libraries of several languages in one group, whose shares may not add up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from rmqlb.engine.assignment.consumers import only_grpc
from rmqlb.engine.diagnose.causes import by_value, consequence_of, finding_of_cause, most
from rmqlb.engine.diagnose.evidence import DoesNotApply
from rmqlb.engine.diagnose.hypotheses import CAUSES, SDKS, Hypotheses
from rmqlb.errors import RmqlbError
from rmqlb.model.diagnosis import Evidence, GroupFinding
from rmqlb.model.finding import ERROR, INFO, WARNING
from rmqlb.model.group import is_grpc
from rmqlb.model.message_queue import MessageQueue, sort_client_ids, sort_queues

_DIFFER = "client libraries compute different shares"


def mixed_sdks(case: Hypotheses) -> Iterator[GroupFinding]:
    """Consumers use client libraries of different languages; how grave that is, their predicted shares say."""
    evidence = case.evidence
    languages = {i: each.language for i, each in evidence.group.connection_of.items() if each.language is not None}
    if only_grpc(evidence.group):
        raise DoesNotApply("its consumers are gRPC clients, which share no queues")
    numbers = Counter(language for i, language in languages.items() if not is_grpc(i))
    if len(numbers) > 1:
        usual = most(numbers)
        others = tuple(sort_client_ids(i for i, language in languages.items() if language != usual and not is_grpc(i)))
        languages = dict(sorted(languages.items()))
        facts = tuple(evidence.seen(f"language of {ids}", language) for ids, language in by_value(languages))
        yield _finding(case, languages, others, facts, usual)
    evidence.must_be_of_all(languages, "language")


def _finding(
    case: Hypotheses,
    languages: Mapping[str, str],
    others: tuple[str, ...],
    facts: tuple[Evidence, ...],
    usual: str | None,
) -> GroupFinding:
    remedy = "Use one client library in a group" + (f"; most consumers use {usual}." if usual else ", or AVG in each.")
    blamed = _otherwise_shared(case, frozenset(others)) if usual else ()
    is_same = _is_same(case)
    if not blamed and SDKS in case.present and is_same is False:
        return finding_of_cause(case, SDKS, consumers=others, facts=facts, meaning=_DIFFER, remedy=remedy)
    unknown = sorted({languages[i] for i in case.evidence.facts.sdks.assumed if i in languages})
    if blamed:
        severity, consequence = ERROR, consequence_of(case, _DIFFER, blamed, ())
    elif case.is_explained if unknown else is_same:
        severity, consequence = INFO, "Client libraries compute the same shares; with another strategy they may not."
        remedy = "Nothing to do; AVG and AVG_BY_CIRCLE are the same in Java and Go, AVG in C++ too."
    else:
        what = f"The rules of {', '.join(unknown)} are unknown" if unknown else "Client libraries have different rules"
        severity, consequence = WARNING, f"{what}; shares may not add up."
    topics = {queue.topic for queue in blamed}
    group, topic = case.evidence.group.group, next(iter(topics)) if len(topics) == 1 else None
    return GroupFinding(SDKS, severity, group, topic, blamed, others, facts, consequence, remedy)


def _is_same(case: Hypotheses) -> bool | None:
    """Each consumer owns what it would if all ran the library that most run; None where that cannot be predicted."""
    if case.is_explained and SDKS not in case.explanation:
        return True
    acting = {*case.present, *case.explanation}
    try:
        with_all, alone = (
            case.possible(tuple(c for c in CAUSES if c in causes)) for causes in (acting, acting - {SDKS})
        )
    except RmqlbError:
        return None
    return with_all == alone


def _otherwise_shared(case: Hypotheses, others: frozenset[str]) -> tuple[MessageQueue, ...]:
    """The queues without exactly one owner, where only these consumers own other queues than predicted.

    A Go consumer does not report its strategy, which may be another one than that of the others.
    """
    observed = case.evidence.observed
    try:
        if case.smallest is not None or len(predictions := case.possible(case.present)) != 1:
            return ()
    except RmqlbError:
        return ()
    differ = {queue: {*owners} ^ {*observed.get(queue, owners)} for queue, owners in predictions[0].items()}
    blamed = frozenset[str]().union(*differ.values())
    bad = (queue for queue in differ if differ[queue] and len(observed[queue]) != 1)
    return tuple(sort_queues(bad)) if blamed <= others else ()
