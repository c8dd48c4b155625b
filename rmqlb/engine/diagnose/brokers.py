"""Rules for brokers, and for what brokers and consumers hear of each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from msgspec import Struct

from rmqlb.engine.diagnose.clients import finding_of_cause
from rmqlb.engine.diagnose.evidence import ASK_CONSUMERS, CONVERGES_MS, FORGETS_MS, DoesNotApply, GroupEvidence
from rmqlb.engine.diagnose.hypotheses import SPLIT, STALE, UNREACHABLE
from rmqlb.engine.diagnose.reports import HELD_MS
from rmqlb.engine.diagnose.rule import Case, ComesOf, rule
from rmqlb.errors import DataError
from rmqlb.model.diagnosis import Evidence, GroupFinding
from rmqlb.model.finding import ERROR, INFO, WARNING
from rmqlb.model.group import RETRY_PREFIX, MemberView
from rmqlb.model.message_queue import MessageQueue, sort_client_ids
from rmqlb.model.snapshot import through
from rmqlb.model.times import utc_text
from rmqlb.model.words import counted, named


@rule("broker-silent")
def broker_silent(case: Case) -> Iterator[GroupFinding]:
    evidence = case.evidence
    if evidence.group.views is None:
        raise DoesNotApply("its consumers were not asked for at brokers")
    reasons: dict[str, str] = {}  # broker → why it did not answer
    addresses = evidence.addresses
    for part in evidence.facts.snapshot.unread:
        if part.kind in ("members", "offsets") and part.name == evidence.group.group and part.no_answer and part.detail:
            broker = addresses.get(part.detail, part.detail)
            if broker in evidence.broker_names:
                reasons.setdefault(broker, part.reason)
    if reasons:
        names = sorted(reasons)
        queues = [queue for queue in evidence.queues if queue.broker_name in reasons]
        yield case.finding(
            "broker-silent",
            ERROR,
            queues=queues,
            facts=[evidence.seen(f"answer of {name}", reasons[name]) for name in names],
            consequence=f"{named(names)} {'does' if len(names) == 1 else 'do'} not answer: "
            f"{counted(len(queues), 'queue')} there; who reads them, and how far, is unknown.",
            remedy=f"Look at the process of {names[0]}: paused, stuck, overloaded, or out of memory. "
            "Is it reachable from here (--map-address)?",
        )


@rule("broker-gone")
def broker_gone(case: Case) -> Iterator[GroupFinding]:
    """A broker has left the routes, and consumers still have its queues, or earlier looks show them."""
    evidence = case.evidence
    for name, queues in sorted(_queues_without_broker(evidence).items()):
        owners = {client_id for queue in queues for client_id in evidence.observed.get(queue, ())}
        seen, still = _last_answer(evidence, name), f"{CONVERGES_MS // 1000} s"
        consequence = "its messages wait until it is back."
        if owners:
            have = "has" if len(owners) == 1 else "have"
            consequence = f"{counted(len(owners), 'consumer')} still {have} them, for up to {still}."
        since = f"within the last {still}" if seen is None else f"since {seen}"
        yield case.finding(
            "broker-gone",
            ERROR,
            queues=queues,
            facts=list(_last_signs(evidence, name, queues, seen)),
            consequence=f"{name} has left the routes {since}: {counted(len(queues), 'queue')} not read; {consequence}",
            remedy=f"Look at the process and the log of {name}; its queues come back when it registers again.",
        )


def _queues_without_broker(evidence: GroupEvidence) -> Mapping[str, set[MessageQueue]]:
    """Broker in no route → its queues of the group's topics that consumers or earlier looks have."""
    routes = evidence.facts.snapshot.routes
    present = {broker.broker_name for sighting in routes.values() for broker in sighting.route.broker_datas}
    topics = {route.topic for route in evidence.routes}
    owned = {queue for queue, owners in evidence.observed.items() if owners}
    before = {queue for look in evidence.earlier for queue in look.queues if not queue.topic.startswith(RETRY_PREFIX)}
    found: dict[str, set[MessageQueue]] = {}
    for queue in owned | before:
        if queue.topic in topics and queue.broker_name not in present:
            found.setdefault(queue.broker_name, set()).add(queue)
    return found


def _last_answer(evidence: GroupEvidence, name: str) -> str | None:
    """The time of the last look with an offset of the broker, which no other broker has."""
    for look in reversed(evidence.looks):
        answered = any(q.broker_name == name and state.broker_offset is not None for q, state in look.queues.items())
        if answered and look.seen.at is not None:
            return utc_text(look.seen.at)
    return None


def _last_signs(evidence: GroupEvidence, name: str, queues: set[MessageQueue], seen: str | None) -> Iterator[Evidence]:
    yield evidence.seen(f"routes of the group's topics that have {name}", 0, threshold=1)
    pulls = [
        item.last_pull
        for client_id in evidence.group.reports
        for item in evidence.report_of(client_id).queues or ()
        if item.queue in queues and item.last_pull
    ]
    if pulls:
        at = utc_text(datetime.fromtimestamp(max(pulls) // 1000, UTC))
        yield evidence.seen(f"last pull of a consumer from {name}", at)
    if seen is not None:
        yield evidence.seen(f"last answer of {name}", seen)


@rule("stale-connections")
def stale_connections(case: Case) -> Iterator[GroupFinding]:
    """A broker lists broken connections, or a client that no longer runs the group."""
    evidence = case.evidence
    if not evidence.views:
        raise DoesNotApply("no broker lists its consumers")
    acts = STALE in case.explanation
    channels = evidence.group.stale_channels
    if channels:
        yield finding_of_cause(
            case,
            STALE,
            severity=None if acts else INFO,
            consumers={client_id for _, client_id, _ in channels},
            facts=[fact for channel in channels for fact in _stale_channel(evidence, *channel)],
            meaning="connections that broke are still in a broker's list",
            remedy=f"Wait {FORGETS_MS // 1000} s: the broker forgets silent connections. If they stay, look for "
            "processes that share the client ID.",
        )
    ghosts = sort_client_ids(evidence.ghosts & evidence.processes.keys())
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


def _stale_channel(evidence: GroupEvidence, view: MemberView, client_id: str, number: int) -> Iterator[Evidence]:
    broker = evidence.broker_name(view) or view.broker_addr or view.seen.where
    processes = evidence.processes[client_id]
    yield evidence.seen(f"connections of {client_id} at {broker}", number, threshold=processes + 1, by=view.seen)
    yield evidence.seen(f"connections of {client_id} at other brokers", processes)


@rule("split-consumer-view")
def split_consumer_view(case: Case) -> Iterator[GroupFinding]:
    """Brokers list different consumers, so that consumers share the queues by different lists."""
    evidence = case.evidence
    evidence.must_share()
    if evidence.group.has_split_view:
        if UNREACHABLE in case.present or any(link.reason is None for link in _cut_links(evidence)):
            raise ComesOf((UNREACHABLE,))
        listed = [Counter(evidence.group.processes_in(view)) for view in evidence.views]
        # Brokers hear of a consumer that starts or ends one after another, and may be read in between.
        passes = evidence.is_younger_than(FORGETS_MS if SPLIT not in case.explanation else CONVERGES_MS)
        yield finding_of_cause(
            case,
            SPLIT,
            severity=INFO if passes else None,
            consumers=[each for each in evidence.processes if len({counts[each] for counts in listed}) > 1],
            facts=[each for view in evidence.views for each in (_listed(evidence, view), *_fitting(case, view))],
            meaning="consumers that ask different brokers share the queues by different lists of consumers",
            remedy="Look again after two minutes; if it stays, look for what keeps these consumers from the brokers "
            "that do not list them.",
        )
    evidence.must_be_all_lists()


def _listed(evidence: GroupEvidence, view: MemberView) -> Evidence:
    where = view.broker_addr or view.seen.where
    return evidence.seen(f"consumers that {where} lists", ", ".join(view.client_ids), by=view.seen)


def _fitting(case: Case, view: MemberView) -> Iterator[Evidence]:
    """The number of consumers that own what this list predicts, where that can be predicted."""
    fitting = case.owning_by(view.client_ids)
    if fitting is not None:
        text = f"consumers with the owners that the list of {view.broker_addr or view.seen.where} gives"
        yield case.evidence.seen(text, fitting, by=view.seen)


@rule("broker-unreachable-from-consumer")
def broker_unreachable(case: Case) -> Iterator[GroupFinding]:
    """A consumer and a broker do not hear of each other, and both are well otherwise."""
    evidence = case.evidence
    evidence.must_share()
    links = _cut_links(evidence)
    if links:
        yield _finding_of_links(case, links)
    elif evidence.group.has_split_view:
        if UNREACHABLE not in case.suspected:
            raise DataError(
                "brokers list different consumers, and the owners of some queues are unknown", hint=ASK_CONSUMERS
            )
        if UNREACHABLE in case.explanation:
            cut = {client_id: ", ".join(sorted(brokers)) for client_id, brokers in case.cut_off.items()}
            pairs = "; ".join(f"{client_id} does not reach {brokers}" for client_id, brokers in cut.items())
            owned = [
                evidence.seen(
                    f"queues of {client_id} at {brokers}",
                    sum(len(_owned(evidence, client_id, broker)) for broker in case.cut_off[client_id]),
                )
                for client_id, brokers in cut.items()
            ]
            yield finding_of_cause(
                case,
                UNREACHABLE,
                consumers=cut,
                facts=[*(_listed(evidence, view) for view in evidence.views), *owned],
                meaning=f"{pairs}: its queues there are read by no consumer",
                remedy="Look at the network between these consumers and the brokers that do not list them.",
            )
        elif case.smallest is None:
            raise DataError(
                "brokers list different consumers, and no prediction gives the observed owners",
                hint="look again after two minutes, when brokers have forgotten consumers that left",
            )
    evidence.must_be_all_lists()


class _Link(Struct, frozen=True):
    """A consumer and a broker that do not hear of each other."""

    client_id: str
    broker_name: str
    reason: str | None  # why the broker got no answer of the consumer; None where the broker has forgotten the consumer
    queues: tuple[MessageQueue, ...]  # the consumer's queues at the broker


def _cut_links(evidence: GroupEvidence) -> list[_Link]:
    found = {(link.client_id, link.broker_name): link for link in (*_forgotten(evidence), *_silent(evidence))}
    order = {client_id: place for place, client_id in enumerate(sort_client_ids({each for each, _ in found}))}
    return [found[key] for key in sorted(found, key=lambda key: (order[key[0]], key[1]))]


def _silent(evidence: GroupEvidence) -> Iterator[_Link]:
    """Consumers that answer through one broker, and not through another one that was asked twice."""
    stale = {(client_id, view.broker_addr) for view, client_id, _ in evidence.group.stale_channels}
    for part in evidence.facts.snapshot.unread:
        if part.kind == "link" and part.name == evidence.group.group:
            client_id, address = through(part)
            broker = evidence.addresses.get(address)
            # A broker asks any of the connections that it lists for a client (`ConsumerManager.findChannel`).
            if broker is not None and client_id in evidence.group.reports and (client_id, address) not in stale:
                yield _Link(client_id, broker, part.reason, _owned(evidence, client_id, broker))


def _forgotten(evidence: GroupEvidence) -> Iterator[_Link]:
    """Consumers that a broker has forgotten after 120 s of silence (`ConsumerManager.scanNotActiveChannel`).

    Such a consumer keeps its queues there, so that only their offsets show whether it reads them.
    """
    for view in evidence.views:
        broker = evidence.broker_name(view)
        for client_id in evidence.processes.keys() - set(view.client_ids) if broker is not None else ():
            queues = _owned(evidence, client_id, broker or "")
            if client_id in evidence.group.reports and _stand_still(evidence, queues):
                yield _Link(client_id, broker or "", None, queues)


def _owned(evidence: GroupEvidence, client_id: str, broker_name: str) -> tuple[MessageQueue, ...]:
    observed = evidence.observed.items()
    return tuple(queue for queue, ids in observed if queue.broker_name == broker_name and client_id in ids)


def _stand_still(evidence: GroupEvidence, queues: tuple[MessageQueue, ...]) -> bool:
    """Messages wait in at least one queue, and the looks show none read in any, for longer than is usual."""
    waits = False
    for queue in queues:
        states = [look.queues.get(queue) for look in evidence.looks]
        offsets = {None if state is None else state.consumer_offset for state in states}
        if len(offsets) != 1 or None in offsets:
            return False
        waits = waits or all(state is not None and state.lag for state in states)
    return waits and evidence.read_at[-1] - evidence.read_at[0] >= HELD_MS


def _finding_of_links(case: Case, links: list[_Link]) -> GroupFinding:
    evidence, first = case.evidence, links[0]
    queues = {queue for link in links for queue in link.queues}
    pairs = "; ".join(f"{link.client_id} does not reach {link.broker_name}" for link in links)
    read = f"{counted(len(queues), 'queue')} not read; {evidence.unread_in(queues)}"
    return case.finding(
        UNREACHABLE,
        ERROR if evidence.lag(queues) else WARNING,
        queues=queues,
        consumers=[link.client_id for link in links],
        facts=[fact for link in links for fact in _link_facts(evidence, link)],
        consequence=f"{pairs}: {read if queues else 'no queue of it there'}.",
        remedy=f"Look at the network between {first.client_id} and {first.broker_name}: firewalls, addresses, a proxy "
        "between them. A restart of the consumer gives its queues at other brokers to others, too.",
    )


def _link_facts(evidence: GroupEvidence, link: _Link) -> Iterator[Evidence]:
    if link.reason is None:
        yield evidence.seen(f"{link.broker_name} lists {link.client_id}", "no; other brokers do")
    else:
        yield evidence.seen(f"answer of {link.client_id} through {link.broker_name}", link.reason)
        yield evidence.seen(f"answer of {link.client_id} through another broker", "its running information")
    if link.queues:
        yield evidence.seen(f"queues of {link.client_id} at {link.broker_name}", len(link.queues))
