"""A diagnosis in a sentence: what is the case because of what, or that all is in order, or what is unknown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from rmqlb.model.diagnosis import Diagnosis, GroupFinding
from rmqlb.model.finding import INFO
from rmqlb.model.words import counted, named, of_all
from rmqlb.views.diagnosis.words import what_is_found


def status(found: Diagnosis) -> str:
    """How grave it is: as its gravest finding, unknown or in order."""
    return found.severity or "" if found.outcome == "found" else found.outcome


def verdict(found: Diagnosis) -> str:
    """What a screen begins with."""
    return f"{found.group}: {sentence(found)}"


def sentence(found: Diagnosis, *, brief: bool = False) -> str:
    """The same without the name of the group.

    Args:
        brief: without the reasons for which rules could not be decided.
    """
    codes = _by_code([each for each in found.findings if each.severity != INFO])
    causes = [same for same in codes if same[0].explains is not None]
    others = [same for same in codes if same[0].explains is None]
    owners = ", ".join(_owners(found))
    if causes and owners:
        return f"{owners} because {' and because '.join(_said(causes, found))}{_also(others)}"
    if causes or others:
        first, *left = [*causes, *others]
        return f"{what_is_found(first, found.counts.queues, found.counts.owners_unknown)}{_also(left)}"
    return "; ".join(
        [_undecided(found, brief=brief) if found.unknown else _in_order(found), *_said(_by_code(found.findings), found)]
    )


def _said(groups: Sequence[Sequence[GroupFinding]], found: Diagnosis) -> Iterator[str]:
    return (what_is_found(same, found.counts.queues, found.counts.owners_unknown) for same in groups)


def _by_code(findings: Sequence[GroupFinding]) -> list[list[GroupFinding]]:
    groups: dict[str, list[GroupFinding]] = {}
    for each in findings:
        groups.setdefault(each.code, []).append(each)
    return list(groups.values())


def _owners(found: Diagnosis) -> Iterator[str]:
    """What is wrong with the owners."""
    queues, first = found.counts.queues, True
    for number, one, several in (
        (found.counts.unassigned, "is unassigned", "are unassigned"),
        (found.counts.duplicate_owners, "has duplicate owners", "have duplicate owners"),
    ):
        if number:
            which = of_all(number, queues or number) if first else str(number)
            first = False
            yield f"{which} {one if number == 1 else several}"


def _also(others: Sequence[Sequence[GroupFinding]]) -> str:
    codes = [same[0].code for same in others]
    return f"; also {named(codes)}" if codes else ""


def _in_order(found: Diagnosis) -> str:
    text = f"in order: {counted(len(found.checked), 'rule')} checked"
    number = len(found.not_applicable)
    return text + (f", {number} {'does' if number == 1 else 'do'} not apply" if number else "")


def _undecided(found: Diagnosis, *, brief: bool) -> str:
    """That it is unknown, and the reason that most rules give."""
    reasons = Counter(each.reason for each in found.unknown).most_common()
    rules = len(found.unknown) + len(found.checked) + len(found.consequences) + len({f.code for f in found.findings})
    more = f", and {counted(len(reasons) - 1, 'more reason')}" if len(reasons) > 1 else ""
    known = f"; {len(found.checked)} found nothing" if found.checked else ""
    why = "" if brief else f" ({reasons[0][0]}{more})"
    return f"unknown: {of_all(len(found.unknown), rules, 'rule')} could not be decided{why}{known}"
