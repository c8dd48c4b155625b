"""The findings of a diagnosis as blocks: the cause, its evidence, what comes of it, what to do, what follows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rmqlb.model.diagnosis import Diagnosis, Evidence, GroupFinding, Undecided
from rmqlb.model.finding import INFO
from rmqlb.model.message_queue import queue_ranges
from rmqlb.model.words import counted, named, of_all
from rmqlb.views.diagnosis.words import in_order
from rmqlb.views.report import BETWEEN, Block, Part

_MOST_EVIDENCE = 4
_MOST_STACK = 12
_MOST_REASONS = 5
_RANGES = 6


def finding_blocks(found: Diagnosis, *, with_name: bool = False) -> tuple[Block, ...]:
    """A block per finding.

    Args:
        with_name: the group's name stands in the heading.
    """
    causes = {each.code for each in found.findings if _is_cause(each)}
    return tuple(
        Block(
            tuple(_parts(each, found)),
            each.severity,
            f"{each.group}: {each.code}" if with_name else each.code,
            _explains(each, len(causes)),
        )
        for each in found.findings
    )


def _is_cause(finding: GroupFinding) -> bool:
    return finding.explains is not None and finding.severity != INFO and bool(finding.queues)


def _explains(finding: GroupFinding, causes: int) -> str:
    if not _is_cause(finding) or finding.explains is None or finding.explains.reproduces is None:
        return ""
    if not finding.explains.reproduces:
        return "does not explain all that is observed"
    return "cause of all that is observed" if causes == 1 else f"one of {causes} causes of all that is observed"


def _parts(finding: GroupFinding, found: Diagnosis) -> Iterator[Part]:
    evidence = dict.fromkeys((_fact(each), _where(each, found)) for each in finding.evidence)
    if held := _held_against(finding, found):
        evidence[held, ""] = None
    if evidence:
        yield Part("evidence", tuple(evidence), _MOST_EVIDENCE)
    if len(finding.consumers) > 1 or (finding.consumers and not finding.evidence):
        yield Part("consumers", ((named(finding.consumers), ""),))
    if finding.queues:
        number = of_all(len(finding.queues), found.counts.queues or len(finding.queues))
        yield Part("queues", ((f"{number}: {queue_ranges(finding.queues, _RANGES)}", ""),))
    if finding.consequence:
        yield Part("consequence", ((finding.consequence, ""),))
    for stacks in found.stacks or ():
        if stacks.client_id in finding.consumers and finding.code == "blocked-consumer":
            lines = [line for thread in stacks.threads for line in thread.splitlines()]
            yield Part("stacks", tuple((line, "") for line in lines or ["no consume thread is running"]), _MOST_STACK)
    if finding.remedy:
        yield Part("remedy", ((finding.remedy, ""),))
    if after := _afterwards(finding, found.counts.queues):
        yield Part("afterwards", ((after, ""),))


def _fact(evidence: Evidence) -> str:
    threshold = "" if evidence.threshold is None else f" (threshold {_figure(evidence.threshold)})"
    return f"{evidence.fact}: {_figure(evidence.value)}{threshold}"


def _held_against(finding: GroupFinding, found: Diagnosis) -> str:
    """The predictions with all causes and without this one, held against what is observed."""
    explains, queues = finding.explains, found.counts.queues
    if explains is None or explains.queues_explained is None or queues is None or finding.severity == INFO:
        return ""
    several = len({each.code for each in found.findings if _is_cause(each)}) > 1
    otherwise = (
        "" if explains.queues_explained_without is None else f", without it {explains.queues_explained_without:,}"
    )
    given = of_all(explains.queues_explained, queues, "queue")
    return f"the prediction with {'all causes' if several else 'it'} gives the observed owners of {given}{otherwise}"


def _figure(value: str | int) -> str:
    return f"{value:,}" if isinstance(value, int) else value


def _where(evidence: Evidence, found: Diagnosis) -> str:
    """Where and when, as far as that is not the same of all evidence, and said above."""
    every = [each for finding in found.findings for each in finding.evidence]
    looks = {(look.source, look.at) for look in found.looks[-1:]}
    sources, times = ({getattr(each, name) for each in every} for name in ("source", "at"))
    where = [evidence.source] if len(sources) > 1 or not looks else []
    when = [_clock(evidence.at)] if evidence.at is not None and (len(times) > 1 or not looks) else []
    return ", ".join([*where, *when])


def _clock(at: str) -> str:
    """The time of day; the day stands where the looks are listed.

    >>> _clock("2026-11-21T02:00:00Z"), _clock("?")
    ('02:00:00 UTC', '?')
    """
    day, t, time = at.partition("T")
    return f"{time.removesuffix('Z')} UTC" if t and time.endswith("Z") else day


def _afterwards(finding: GroupFinding, queues: int | None) -> str:
    """What is predicted with the cause gone."""
    explains = finding.explains
    if explains is None or explains.fixes_all is None or finding.severity == INFO:
        return ""
    if explains.fixes_all:
        return f"{'all queues' if queues is None else of_all(queues, queues)} have one owner (predicted)"
    bad = [
        f"{counted(number, 'queue')} {what}"
        for number, what in (
            (explains.unassigned_after, "unassigned"),
            (explains.duplicate_owners_after, "with duplicate owners"),
        )
        if number
    ]
    return f"still {', '.join(bad)} (predicted)" if bad else "brokers still list different consumers"


def rules_block(found: Diagnosis, *, with_name: bool = False) -> Block:
    """What else the rules say, in lines: what comes of the findings, what is in order, unknown, and does not apply.

    Args:
        with_name: the group's name stands above them.
    """
    parts = []
    if found.consequences:
        because: dict[tuple[str, ...], list[str]] = {}
        for each in found.consequences:
            because.setdefault(each.causes, []).append(each.code)
        texts = [f"{', '.join(codes)} (because of {', '.join(causes)})" for causes, codes in because.items()]
        parts.append(Part("consequences", ((BETWEEN.join(texts), ""),)))
    checked = BETWEEN.join(in_order(found.checked))
    parts.append(Part("checked", ((checked or "nothing", ""),)))
    unknown = [(f"{reason}: {', '.join(codes)}", "") for reason, codes in _by_reason(found.unknown)]
    parts.append(Part("unknown", tuple(unknown) or (("nothing", ""),), _MOST_REASONS))
    hints = dict.fromkeys(each.remedy for each in found.unknown if each.remedy)
    if hints:
        parts.append(Part("to know more", tuple((hint, "") for hint in hints)))
    if found.not_applicable:
        lines = [(f"{reason}: {', '.join(codes)}", "") for reason, codes in _by_reason(found.not_applicable)]
        parts.append(Part("not applicable", tuple(lines), _MOST_REASONS))
    return Block(tuple(parts), heading=f"{found.group}: other rules" if with_name else "")


def _by_reason(undecided: Sequence[Undecided]) -> list[tuple[str, list[str]]]:
    reasons: dict[str, list[str]] = {}
    for each in undecided:
        reasons.setdefault(each.reason, []).append(each.code)
    return list(reasons.items())
