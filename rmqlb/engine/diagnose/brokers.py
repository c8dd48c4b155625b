"""Rules for brokers that do not answer, or that have left the routes while consumers still have their queues."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from rmqlb.engine.diagnose.evidence import CONVERGES_MS, DoesNotApply, GroupEvidence
from rmqlb.engine.diagnose.links import addresses_of
from rmqlb.engine.diagnose.reports import one_topic
from rmqlb.engine.diagnose.rule import Case
from rmqlb.model.diagnosis import Evidence, GroupFinding
from rmqlb.model.finding import ERROR
from rmqlb.model.group import RETRY_PREFIX
from rmqlb.model.message_queue import MessageQueue, sort_queues
from rmqlb.model.times import utc_text
from rmqlb.model.words import counted, named

_SILENT = ("members", "offsets")


def broker_silent(case: Case) -> Iterator[GroupFinding]:
    """A broker of the group's topics does not answer."""
    evidence = case.evidence
    if evidence.group.views is None:
        raise DoesNotApply("its consumers were not asked for at brokers")
    reasons = _silent_brokers(evidence)
    if reasons:
        queues = tuple(sort_queues(queue for queue in evidence.queues if queue.broker_name in reasons))
        names = named(list(reasons))
        yield GroupFinding(
            "broker-silent",
            ERROR,
            evidence.group.group,
            one_topic(queues),
            queues,
            evidence=tuple(evidence.seen(f"answer of {name}", reason) for name, reason in reasons.items()),
            consequence=f"{names} {'does' if len(reasons) == 1 else 'do'} not answer: "
            f"{counted(len(queues), 'queue')} there; who reads them, and how far, is unknown.",
            remedy=f"Look at the process of {next(iter(reasons))}: paused, stuck, overloaded, or out of memory. "
            "Is it reachable from here (--map-address)?",
        )


def broker_gone(case: Case) -> Iterator[GroupFinding]:
    """A broker has left the routes, and consumers still have its queues, or earlier looks show them."""
    evidence = case.evidence
    had = _queues_without_broker(evidence)
    for name, queues in sorted(had.items()):
        owners = {client_id for queue in queues for client_id in evidence.observed.get(queue, ())}
        since, number = _since(evidence, name), counted(len(queues), "queue")
        yield GroupFinding(
            "broker-gone",
            ERROR,
            evidence.group.group,
            one_topic(queues),
            queues,
            evidence=tuple(_when(evidence, name, queues)),
            consequence=f"{name} has left the routes{since}: {number} not read; "
            + (
                f"{counted(len(owners), 'consumer')} still {'has' if len(owners) == 1 else 'have'} them, "
                f"for up to {CONVERGES_MS // 1000} s."
                if owners
                else "its messages wait until it is back."
            ),
            remedy=f"Look at the process and the log of {name}; its queues come back when it registers again.",
        )


def _silent_brokers(evidence: GroupEvidence) -> dict[str, str]:
    """Broker → why it did not answer."""
    names = addresses_of(evidence)
    found: dict[str, str] = {}
    for part in evidence.facts.snapshot.unread:
        if part.kind in _SILENT and part.name == evidence.group.group and part.no_answer and part.detail:
            broker = names.get(part.detail, part.detail)
            if broker in evidence.broker_names:
                found.setdefault(broker, part.reason)
    return dict(sorted(found.items()))


def _queues_without_broker(evidence: GroupEvidence) -> Mapping[str, tuple[MessageQueue, ...]]:
    """Broker that is in no route → its queues of the group's topics, as consumers or earlier looks have them."""
    routes = evidence.facts.snapshot.routes
    present = {broker.broker_name for sighting in routes.values() for broker in sighting.route.broker_datas}
    topics = {route.topic for route in evidence.routes}
    held = {queue for queue, owners in evidence.observed.items() if owners}
    before = {queue for look in evidence.earlier for queue in look.queues if not queue.topic.startswith(RETRY_PREFIX)}
    found: dict[str, set[MessageQueue]] = {}
    for queue in held | before:
        if queue.topic in topics and queue.broker_name not in present:
            found.setdefault(queue.broker_name, set()).add(queue)
    return {name: tuple(sort_queues(queues)) for name, queues in found.items()}


def _last_seen(evidence: GroupEvidence, name: str) -> str | None:
    """The time of the last look that shows queues of the broker with their offsets, which only the broker tells."""
    for look in reversed(evidence.looks):
        told = any(
            queue.broker_name == name and state.broker_offset is not None for queue, state in look.queues.items()
        )
        if told and look.seen.at is not None:
            return utc_text(look.seen.at)
    return None


def _since(evidence: GroupEvidence, name: str) -> str:
    seen = _last_seen(evidence, name)
    return f" since {seen}" if seen is not None else f" within the last {CONVERGES_MS // 1000} s"


def _when(evidence: GroupEvidence, name: str, queues: tuple[MessageQueue, ...]) -> Iterator[Evidence]:
    yield evidence.seen(f"routes of the group's topics that have {name}", 0, threshold=1)
    pulls = [
        item.last_pull
        for report in evidence.group.reports.values()
        for item in (report.evidence.queues if report.evidence is not None else None) or ()
        if item.queue in queues and item.last_pull
    ]
    if pulls:
        at = utc_text(datetime.fromtimestamp(max(pulls) // 1000, UTC))
        yield evidence.seen(f"last pull of a consumer from {name}", at)
    seen = _last_seen(evidence, name)
    if seen is not None:
        yield evidence.seen(f"last answer of {name}", seen)
