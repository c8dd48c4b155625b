"""What is said of a group in a few words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rmqlb.model.diagnosis import GroupFinding
from rmqlb.model.finding import SEVERITIES
from rmqlb.model.groups import ConsumerProcess, GroupState
from rmqlb.model.words import at_least, counted, messages, named, of_all

_COUNTED = {
    "unassigned-queues": ("unassigned", "unassigned"),
    "duplicate-owners": ("duplicate_owners", "with duplicate owners"),
    "mismatch": ("mismatches", "with other owners than predicted"),
}
"""Finding → the count that says all of it, and what is counted: queues."""
_OF_CONSUMERS = ("duplicate-client-id", "more-consumers-than-queues", "idle-by-strategy")
_MOST_OF_IT = 0.5


def strategies_text(state: GroupState) -> str:
    """What its consumers run; empty where that is not known."""
    names = ", ".join(state.strategies)
    return f"{names} (assumed)" if state.strategy_origin == "assumed" else names


def lag_text(state: GroupState) -> str:
    """Messages not yet read, at least so many with a plus sign; a question mark where none are known."""
    if state.lag is not None:
        return f"{state.lag:,}"
    return f"{state.lag_at_least:,}+" if state.lag_at_least else "?"


def worst_text(state: GroupState, findings: Sequence[GroupFinding]) -> str:
    """The worst finding by its code and what it is about, and the others that are as grave, in a few words."""
    if not findings:
        return ""
    grave: dict[str, list[GroupFinding]] = {}
    for one in findings:
        if one.severity == findings[0].severity:
            grave.setdefault(one.code, []).append(one)
    first, *others = grave.values()
    texts = [f"{first[0].code}: {_brief(first, state) or first[0].message}"]
    left = 0 if _brief(first, state) else len(first) - 1
    for some_of in others:
        text = _brief(some_of, state)
        left += 0 if text else len(some_of)
        texts += [text + _what(some_of[0])] if text else []
    if findings[0].explains is not None:  # what comes of it is no finding by itself
        bad = (code for code in ("unassigned-queues", "duplicate-owners") if code not in grave)
        texts += (
            _queues_of(code, state) + f" {_COUNTED[code][1]}" for code in bad if getattr(state, _COUNTED[code][0])
        )
    return "; ".join([*texts, *([f"and {counted(left, 'more finding')}"] if left else [])])


def _what(finding: GroupFinding) -> str:
    return f" {_COUNTED[finding.code][1]}" if finding.code in _COUNTED else ""


def _brief(findings: Sequence[GroupFinding], state: GroupState) -> str:
    """Findings of one code in a few words; empty where figures or client IDs do not say it."""
    code = findings[0].code
    if code in _COUNTED:
        return _queues_of(code, state)
    if code in _OF_CONSUMERS:
        return named(client_id for one in findings for client_id in one.consumers)
    return ", ".join(state.strategies) if code == "mixed-strategies" else ""


def _queues_of(code: str, state: GroupState) -> str:
    number, queues = getattr(state, _COUNTED[code][0]), state.queues
    return at_least(state.owners_unknown) + (counted(number, "queue") if queues is None else of_all(number, queues))


def consumers_text(state: GroupState) -> str:
    """How many consumers and, where they differ, processes."""
    if state.consumers is None:
        return "consumers unknown"
    more = f" ({state.processes} processes)" if state.processes != state.consumers else ""
    return f"{counted(state.consumers, 'consumer')}{more}"


def verdict(state: GroupState, findings: Sequence[GroupFinding], processes: Sequence[ConsumerProcess]) -> str:
    """The group in a sentence: what is wrong, or that nothing is, and whose lag it is."""
    texts = [*_verdicts(state, findings), *_whose_lag(state, processes)]
    if state.status == "inOrder":
        texts.reverse()
    return f"{state.group}, {consumers_text(state)}: {'; '.join(texts)}"


def _whose_lag(state: GroupState, processes: Sequence[ConsumerProcess]) -> Iterator[str]:
    """The consumer that has more than half of the lag, where there are several."""
    lags = {each.client_id: each.lag for each in processes if each.lag}
    if not state.lag or not lags or not state.consumers:
        return
    worst = max(lags, key=lambda client_id: lags[client_id] or 0)
    share = (lags[worst] or 0) / state.lag
    if state.consumers > 1 and share > _MOST_OF_IT:
        yield f"lag {state.lag:,}, {'all' if share == 1 else f'{share:.0%}'} of it on {worst}"


def _verdicts(state: GroupState, findings: Sequence[GroupFinding]) -> Iterator[str]:
    queues = "?" if state.queues is None else counted(state.queues, "queue")
    bad = list(_owned_badly(state, queues))
    yield from bad
    causes = [one for one in findings if one.severity == SEVERITIES[0] and one.code not in _COUNTED]
    if state.duplicate_client_ids:
        ids = [client_id for one in findings if one.code == "duplicate-client-id" for client_id in one.consumers]
        yield f"{counted(state.duplicate_client_ids, 'duplicate client ID')} {named(ids)}"
    if len(state.strategies) > 1:
        yield f"mixed strategies {strategies_text(state)}"
    if state.status == "offline" or any(one.code == "no-consumer-online" for one in causes):
        yield "no consumer is visible" + (
            f", {messages(state.lag_at_least)} left waiting" if state.lag_at_least else ""
        )
    elif state.status == "warning" and not bad:
        left = len(findings) - 1
        yield findings[0].message + (f"; and {counted(left, 'more finding')}" if left else "")
    elif state.status == "unknown":
        yield findings[0].message if findings else "who owns its queues is not known"
    elif state.status == "inOrder":
        yield f"in order, {queues}"


def _owned_badly(state: GroupState, queues: str) -> Iterator[str]:
    if state.unassigned and state.consumers:
        yield f"{at_least(state.owners_unknown)}{state.unassigned} of {queues} unassigned"
    if state.duplicate_owners:
        yield f"{at_least(state.owners_unknown)}{state.duplicate_owners} of {queues} with duplicate owners"
    if state.mismatches:
        yield f"observed owners of {state.mismatches} of {queues} differ from the prediction"
