"""Links that are cut: a consumer and a broker do not hear of each other, and both are well otherwise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct

from rmqlb.engine.diagnose.evidence import GroupEvidence
from rmqlb.engine.diagnose.reports import HELD_MS, one_topic
from rmqlb.model.diagnosis import Evidence, GroupFinding
from rmqlb.model.finding import ERROR, WARNING
from rmqlb.model.message_queue import MessageQueue, sort_client_ids, sort_queues
from rmqlb.model.snapshot import through
from rmqlb.model.words import counted, named

CODE = "broker-unreachable-from-consumer"


class Link(Struct, frozen=True):
    """A consumer and a broker that do not hear of each other.

    Attributes:
        client_id: the consumer.
        broker_name: the broker.
        reason: why the broker got no answer of the consumer; None where the broker has forgotten the consumer.
        queues: of the consumer at the broker.
    """

    client_id: str
    broker_name: str
    reason: str | None
    queues: tuple[MessageQueue, ...]


def cut_links(evidence: GroupEvidence) -> tuple[Link, ...]:
    """The links that are cut (raises as the evidence does).

    A consumer that answers through one broker and not through another one, asked twice, does not hear of the other.
    One that a broker has forgotten has not been heard there for 120 s (`ConsumerManager.scanNotActiveChannel`); as it
    keeps the queues that it has, only their offsets show whether it reads them.
    """
    found = {(link.client_id, link.broker_name): link for link in (*_forgotten(evidence), *_silent(evidence))}
    order = {client_id: place for place, client_id in enumerate(sort_client_ids(each for each, _ in found))}
    return tuple(found[key] for key in sorted(found, key=lambda key: (order[key[0]], key[1])))


def finding_of_links(evidence: GroupEvidence, links: tuple[Link, ...]) -> GroupFinding:
    """The finding that names the links."""
    queues = tuple(sort_queues({queue for link in links for queue in link.queues}))
    pairs = "; ".join(f"{link.client_id} does not reach {link.broker_name}" for link in links)
    unread = evidence.lag(queues)
    read = (
        f"{counted(len(queues), 'queue')} not read; {evidence.unread_in(queues)}" if queues else "no queue of it there"
    )
    return GroupFinding(
        CODE,
        ERROR if unread else WARNING,
        evidence.group.group,
        one_topic(queues),
        queues,
        tuple(dict.fromkeys(link.client_id for link in links)),
        tuple(fact for link in links for fact in _facts(evidence, link)),
        f"{pairs}: {read}.",
        f"Look at the network between {links[0].client_id} and {links[0].broker_name}: firewalls, addresses, a proxy "
        "between them. A restart of the consumer gives its queues at other brokers to others, too.",
    )


def _silent(evidence: GroupEvidence) -> Iterator[Link]:
    names = addresses_of(evidence)
    stale = {(client_id, view.broker_addr) for view, client_id, _ in evidence.group.stale_channels}
    for part in evidence.facts.snapshot.unread:
        if part.kind == "link" and part.name == evidence.group.group:
            client_id, address = through(part)
            # A broker asks any of the connections that it lists for a client (`ConsumerManager.findChannel`).
            is_known = client_id in evidence.group.reports and address in names and (client_id, address) not in stale
            if is_known:
                queues = _owned(evidence, client_id, names[address])
                yield Link(client_id, names[address], part.reason, queues)


def _forgotten(evidence: GroupEvidence) -> Iterator[Link]:
    for view in evidence.views:
        name = evidence.broker_name(view)
        for client_id in evidence.processes.keys() - set(view.client_ids) if name is not None else ():
            queues = _owned(evidence, client_id, name or "")
            if client_id in evidence.group.reports and _stand(evidence, queues):
                yield Link(client_id, name or "", None, queues)


def _owned(evidence: GroupEvidence, client_id: str, broker_name: str) -> tuple[MessageQueue, ...]:
    owned = (q for q, its in evidence.observed.items() if q.broker_name == broker_name and client_id in its)
    return tuple(sort_queues(owned))


def _stand(evidence: GroupEvidence, queues: tuple[MessageQueue, ...]) -> bool:
    """Messages wait in one of them at least, and the looks show none read in any, for longer than is usual."""
    states = {queue: [look.queues.get(queue) for look in evidence.looks] for queue in queues}
    offsets = [{None if state is None else state.consumer_offset for state in its} for its in states.values()]
    waits = any(all(state is not None and state.lag for state in its) for its in states.values())
    stood = bool(queues) and all(len(its) == 1 and None not in its for its in offsets)
    return stood and waits and evidence.read_at[-1] - evidence.read_at[0] >= HELD_MS


def addresses_of(evidence: GroupEvidence) -> Mapping[str, str]:
    """Address → broker, of the brokers in the routes of the group's topics (raises DataError)."""
    brokers = [broker for route in evidence.routes for broker in route.broker_datas]
    return {address: broker.broker_name for broker in brokers for address in broker.broker_addrs.values()}


def _facts(evidence: GroupEvidence, link: Link) -> Iterator[Evidence]:
    if link.reason is None:
        yield evidence.seen(f"{link.broker_name} lists {link.client_id}", "no; other brokers do")
    else:
        yield evidence.seen(f"answer of {link.client_id} through {link.broker_name}", link.reason)
        yield evidence.seen(f"answer of {link.client_id} through another broker", "its running information")
    if link.queues:
        brokers = named([link.broker_name])
        yield evidence.seen(f"queues of {link.client_id} at {brokers}", len(link.queues))
