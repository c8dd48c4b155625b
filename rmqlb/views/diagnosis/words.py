"""Each rule of a diagnosis in words: what is in order where it finds nothing, and what is the case where it does."""

from __future__ import annotations

from collections.abc import Sequence

from rmqlb.model.diagnosis import WORDS, GroupFinding, RuleWords
from rmqlb.model.words import at_least, counted, named, of_all


def words_of(code: str) -> RuleWords:
    return WORDS.get(code) or RuleWords(f"no {code}", code)


def in_order(codes: Sequence[str]) -> list[str]:
    return [words_of(code).in_order for code in codes]


def what_is_found(
    findings: Sequence[GroupFinding], queues: int | None = None, owners_unknown: int | None = None
) -> str:
    """The findings of one code in words.

    Args:
        findings: the findings.
        queues: the number of queues of the group; None when unknown.
        owners_unknown: queues with unknown owners, which may be unassigned or have duplicate owners too.
    """
    words = words_of(findings[0].code)
    ids = list(dict.fromkeys(client_id for each in findings for client_id in each.consumers))
    values = [fact.value for each in findings for fact in each.evidence]
    number = max((value for value in values if isinstance(value, int)), default=0)
    concerned = {queue: queue.broker_name for each in findings for queue in each.queues}
    least = at_least(owners_unknown) if findings[0].code in ("unassigned-queues", "duplicate-owners") else ""
    one = len(ids) == 1
    return (words.found + (words.queues if concerned else "")).format(
        who=named(ids) or "consumers",
        values=named(dict.fromkeys(map(str, values))),
        number=number or "several",
        brokers=named(dict.fromkeys(concerned.values())) or "a broker",
        topics=named(dict.fromkeys(each.topic for each in findings if each.topic is not None)) or "a topic",
        queues=least + (counted(len(concerned), "queue") if queues is None else of_all(len(concerned), queues)),
        wait="waits" if len(concerned) == 1 else "wait",
        each_of="" if one else "each of ",
        plural="" if one else "s",
        s="s" if one else "",
        **{"is": "is" if one else "are"},
        does="does" if one else "do",
        has="has" if one else "have",
        its="its" if one else "their",
    )
