"""Rules for groups whose queues no listed consumer owns: nobody is online, a Proxy, POP, no readable queue."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rmqlb.engine.assignment.consumers import ask_proxy, only_grpc, popped_topics
from rmqlb.engine.assignment.consumers import behind_proxy as proxy_evidence
from rmqlb.engine.diagnose.evidence import ASK_CONSUMERS, DoesNotApply, GroupEvidence
from rmqlb.engine.diagnose.rule import Case, rule
from rmqlb.errors import DataError
from rmqlb.model.diagnosis import Evidence, GroupFinding
from rmqlb.model.finding import ERROR, INFO, WARNING
from rmqlb.model.group import CONSUME_POP, is_grpc
from rmqlb.model.message_queue import sort_client_ids
from rmqlb.model.words import messages


@rule("no-consumer-online")
def no_consumer_online(case: Case) -> Iterator[GroupFinding]:
    """All brokers answered, and all known Proxies, and none lists a consumer."""
    evidence = case.evidence
    evidence.must_be_listed()
    if evidence.group.client_ids:
        return
    if proxy_evidence(evidence.group) is not None:
        raise DoesNotApply("its consumers are probably behind a Proxy, which brokers do not list")
    states = evidence.group.without_foreign_offsets.queues
    waiting = evidence.lag(states)
    all_read = bool(states) and all(state.lag == 0 for state in states.values())
    proxies = evidence.group.proxies or ()
    unless = "" if proxies else ", unless through a Proxy, whose consumers are not visible here"
    yield case.finding(
        "no-consumer-online",
        ERROR if waiting else INFO if all_read else WARNING,
        facts=[
            evidence.seen("consumers that brokers list", 0),
            *(evidence.seen(f"consumers that {view.seen.where} lists", 0, by=view.seen) for view in proxies),
        ],
        consequence=f"No queue is read{unless}" + (f"; {messages(waiting)} unread." if waiting else "."),
        remedy="Start a consumer." if proxies else f"Start a consumer; if it has some, {ask_proxy(evidence.group)}.",
    )


@rule("behind-proxy")
def behind_proxy(case: Case) -> Iterator[GroupFinding]:
    """Clients of a Proxy (gRPC), which hands them single messages."""
    evidence, group = case.evidence, case.evidence.group
    ids = sort_client_ids(filter(is_grpc, evidence.processes))
    if ids:
        mixed = len(ids) < len(evidence.processes)
        if not mixed:
            consequence = "A Proxy gives messages to these consumers; none of them owns a queue."
        elif any(client_id in view.client_ids for view in group.views or () for client_id in ids):
            consequence = "Other consumers leave these a share, which stays unassigned."
        else:
            consequence = "Consumers that own queues and consumers of a Proxy read the same queues."
        yield case.finding(
            "behind-proxy",
            WARNING if mixed else INFO,
            consumers=ids,
            facts=_listed_grpc(evidence, ids),
            consequence=consequence,
            remedy="Do not mix gRPC clients and older ones in a group." if mixed else "Nothing is wrong.",
        )
    elif (shown := proxy_evidence(group)) is not None:
        likely = "" if group.polling_num else "probably "
        yield case.finding(
            "behind-proxy",
            INFO,
            facts=[evidence.seen("consumption without a listed consumer", shown)],
            consequence=f"Its consumers are {likely}behind a Proxy, not visible here; none of them owns a queue.",
            remedy=f"Nothing is known to be wrong; {ask_proxy(group)}.",
        )
    else:
        evidence.must_be_listed()
        if group.client_ids:
            evidence.must_be_all_lists()
        elif group.polling_num is None and not group.proxies:
            raise DataError(
                "the number of receive requests that wait at brokers is unknown",
                hint="diagnose a live cluster over its NameServers (-s rocketmq://HOST:9876), or with --proxy "
                "HOST:8080",
            )


def _listed_grpc(evidence: GroupEvidence, ids: Sequence[str]) -> Sequence[Evidence]:
    """The number of gRPC clients at each Proxy that was asked, or at brokers with a Proxy of their own."""
    proxies = [view for view in evidence.group.proxies or () if not {*ids}.isdisjoint(view.client_ids)]
    if not proxies:
        return [evidence.seen("client IDs of the form of gRPC clients", len(ids), threshold=1)]
    return [
        evidence.seen(f"gRPC clients that {view.seen.where} lists", len({*ids} & {*view.client_ids}), by=view.seen)
        for view in proxies
    ]


@rule("pop-consumption")
def pop_consumption(case: Case) -> Iterator[GroupFinding]:
    """Several consumers take messages of a topic at once, so that no consumer owns a queue."""
    group = case.evidence.group
    if only_grpc(group) or proxy_evidence(group) is not None:
        raise DoesNotApply("its consumers are behind a Proxy, which takes messages by POP for them")
    topics = tuple(sorted(popped_topics(group)))
    if group.consume_type == CONSUME_POP or topics:
        fact = "topics in POP mode" if topics else "consume type"
        yield case.finding(
            "pop-consumption",
            INFO,
            topic=topics[0] if len(topics) == 1 else None,
            facts=[case.evidence.seen(fact, ", ".join(topics) or CONSUME_POP)],
            consequence="Several consumers take messages from one queue by POP; none of them owns it.",
            remedy="Nothing is wrong.",
        )
    elif group.consume_type is None:
        hint = "diagnose while one of its consumers is online"
        raise DataError("how its consumers take messages is unknown", hint=hint)
    elif group.request_modes is None and any(
        i not in group.reports or group.reports[i].client_rebalance is None for i in case.evidence.processes
    ):
        raise DataError("whether brokers assign its queues is unknown", hint=ASK_CONSUMERS)


@rule("no-read-queues")
def no_read_queues(case: Case) -> Iterator[GroupFinding]:
    """No broker gives consumers a queue of a topic: it has no read permission, or no read queues."""
    evidence, facts = case.evidence, case.evidence.facts
    if evidence.group.own_topics is None:
        _ = evidence.lists
    for topic in evidence.topics:
        sighting = facts.snapshot.routes.get(topic)
        if sighting is not None and not sighting.route.subscribe_queues():
            waiting = evidence.lag(queue for queue in evidence.group.queues if queue.topic == topic)
            unread = f"; {messages(waiting)} unread there." if waiting else "."
            yield case.finding(
                "no-read-queues",
                WARNING,
                topic=topic,
                facts=[
                    evidence.seen(
                        f"permission and read queues of {topic} at {data.broker_name}",
                        f"perm {data.perm}, readQueueNums {data.read_queue_nums}",
                    )
                    for data in sighting.route.queue_datas
                ],
                consequence=f"Topic {topic} has no readable queue: consumers get nothing of it{unread}",
                remedy=f"Check perm and readQueueNums with show-route -t {topic}; mqadmin updateTopic -p 6 -r N makes "
                "queues readable.",
            )
    for why in facts.unknown_routes.values():
        raise DataError(why.message, hint="diagnose again with that topic's route")
