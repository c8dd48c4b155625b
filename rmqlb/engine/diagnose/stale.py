"""The rule for connections that brokers list and no process has any more."""

from __future__ import annotations

from collections.abc import Iterator

from rmqlb.engine.diagnose.causes import finding_of_cause
from rmqlb.engine.diagnose.evidence import FORGETS_MS, DoesNotApply, GroupEvidence
from rmqlb.engine.diagnose.hypotheses import STALE, Hypotheses
from rmqlb.model.diagnosis import Evidence, GroupFinding
from rmqlb.model.finding import INFO, WARNING
from rmqlb.model.group import MemberView
from rmqlb.model.message_queue import sort_client_ids


def stale_connections(case: Hypotheses) -> Iterator[GroupFinding]:
    """A broker lists connections that are left over, or a client that does not run the group any more."""
    evidence = case.evidence
    if not evidence.views:
        raise DoesNotApply("no broker lists its consumers")
    acts = STALE in case.explanation
    channels = evidence.group.stale_channels
    if channels:
        ids = tuple(sort_client_ids({client_id for _, client_id, _ in channels}))
        yield finding_of_cause(
            case,
            STALE,
            severity=None if acts else INFO,
            consumers=ids,
            facts=[fact for channel in channels for fact in _facts(evidence, *channel)],
            meaning="connections that broke are still in a broker's list",
            remedy=f"Wait {FORGETS_MS // 1000} s: the broker forgets silent connections. If they stay, look for "
            "processes that share the client ID.",
        )
    ghosts = tuple(sort_client_ids(evidence.ghosts & evidence.processes.keys()))
    if ghosts:
        yield finding_of_cause(
            case,
            STALE,
            severity=None if acts else WARNING,
            consumers=ghosts,
            facts=[evidence.seen(f"answer of {ghost} about the group", "it does not run it") for ghost in ghosts],
            meaning="brokers list a client that does not run the group; others leave it a share of the queues",
            remedy="Restart that process. Brokers up to 5.5.0 keep it in the list while it sends heartbeats for "
            "another group; 5.5.1 does so with heartbeats of version 2 only.",
        )
    evidence.must_be_all_lists()


def _facts(evidence: GroupEvidence, view: MemberView, client_id: str, number: int) -> Iterator[Evidence]:
    broker = evidence.broker_name(view) or view.broker_addr or view.seen.where
    processes = evidence.processes[client_id]
    yield evidence.seen(f"connections of {client_id} at {broker}", number, threshold=processes + 1, by=view.seen)
    yield evidence.seen(f"connections of {client_id} at other brokers", processes)
