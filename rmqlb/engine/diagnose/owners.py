"""Rules for the owners of queues: groups whose queues no consumer owns, and owners that no cause explains."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from rmqlb.engine.assignment.balance import counts
from rmqlb.engine.assignment.consumers import ask_proxy, only_grpc, popped_topics
from rmqlb.engine.assignment.consumers import behind_proxy as proxy_evidence
from rmqlb.engine.diagnose.evidence import ASK_BROKERS, ASK_CONSUMERS, CONVERGES_MS, DoesNotApply, GroupEvidence
from rmqlb.engine.diagnose.hypotheses import DUPLICATE
from rmqlb.engine.diagnose.rule import Case, ComesOf, rule
from rmqlb.engine.group import known
from rmqlb.errors import DataError
from rmqlb.model.diagnosis import Evidence, GroupFinding
from rmqlb.model.finding import ERROR, INFO, WARNING, Severity
from rmqlb.model.group import CONSUME_POP, RETRY_PREFIX, is_grpc
from rmqlb.model.message_queue import MessageQueue, sort_client_ids, sort_queues
from rmqlb.model.times import utc_text
from rmqlb.model.words import counted, messages, named

LOCK_LASTS_MS = 60_000
"""A broker gives a queue to another client once its lock is older than this (`RebalanceLockManager`)."""
_REBALANCES_MS = 20_000
_LOOK_AGAIN = "Look again after 50 s: a change of consumers or queues has reached all of them by then."


# -- groups whose queues no listed consumer owns -----------------------------------------------------------------------


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
            WARNING if mixed else INFO,
            consumers=ids,
            facts=_listed_grpc(evidence, ids),
            consequence=consequence,
            remedy="Do not mix gRPC clients and older ones in a group." if mixed else "Nothing is wrong.",
        )
    elif (shown := proxy_evidence(group)) is not None:
        likely = "" if group.polling_num else "probably "
        yield case.finding(
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


# -- owners ------------------------------------------------------------------------------------------------------------


@rule("unassigned-queues")
def unassigned_queues(case: Case) -> Iterator[GroupFinding]:
    queues = _unexplained(case, lambda owners: not owners)
    if queues:
        waiting = messages(case.evidence.lag(queues))
        yield case.finding(
            _severity(case.evidence, ERROR),
            queues=queues,
            facts=[case.evidence.seen("queues without an owner", len(queues), threshold=1)],
            consequence=f"{counted(len(queues), 'queue')} unassigned; {waiting} unread there.",
            remedy=_LOOK_AGAIN,
        )


@rule("duplicate-owners")
def duplicate_owners(case: Case) -> Iterator[GroupFinding]:
    evidence = case.evidence
    queues = _unexplained(case, lambda owners: len(owners) > 1)
    if queues:
        yield case.finding(
            _severity(evidence, ERROR),
            queues=queues,
            consumers=[client_id for queue in queues for client_id in evidence.observed[queue]],
            facts=[evidence.seen("queues with two or more owners", len(queues), threshold=1)],
            consequence=f"{counted(len(queues), 'queue')} with duplicate owners, each of which delivers the same "
            "messages.",
            remedy=_LOOK_AGAIN,
        )
    elif any(evidence.processes[client_id] > 1 for owners in evidence.observed.values() for client_id in owners):
        raise ComesOf((DUPLICATE,))  # the owner is a client ID of several processes, each of which reads the queue


@rule("mismatch")
def mismatch(case: Case) -> Iterator[GroupFinding]:
    """Each queue has one owner, but no prediction gives these owners."""
    evidence = case.evidence
    _must_share(evidence)
    if not evidence.queues and case.has("no-read-queues"):
        raise ComesOf(("no-read-queues",))
    if case.smallest is not None:
        evidence.must_be_observed()
        return
    if case.answer("broker-gone").findings:  # consumers share the queues by a route that has it until they poll it
        raise ComesOf(("broker-gone",))
    bad = [queue for queue, owners in evidence.observed.items() if len(owners) != 1]
    if bad:
        _, causes = case.explained(bad, ("consumer-gone", "mixed-sdks"))
        codes = {"duplicate-owners" if evidence.observed[queue] else "unassigned-queues" for queue in bad}
        raise ComesOf(tuple(causes or sorted(codes)))
    evidence.must_be_of_all(evidence.strategies, "strategy")
    evidence.must_be_of_all(evidence.subscriptions, "subscription")
    if evidence.facts.basis == "assumed":
        raise DataError("the strategy of its consumers is unknown", hint=ASK_CONSUMERS)
    (predicted, *_) = case.possible(case.present)
    differ = [queue for queue, owners in predicted.items() if evidence.observed.get(queue, owners) != owners]
    strategy = evidence.facts.members.name
    yield case.finding(
        _severity(evidence, WARNING),
        queues=differ,
        consumers=[i for queue in differ for i in {*evidence.observed[queue]} ^ {*predicted[queue]}],
        facts=[evidence.seen(f"queues with other owners than {strategy} predicts", len(differ), threshold=1)],
        consequence="No prediction gives the observed owners: something that decides them is unknown.",
        remedy=_LOOK_AGAIN,
    )


@rule("more-consumers-than-queues")
def more_consumers_than_queues(case: Case) -> Iterator[GroupFinding]:
    evidence = case.evidence
    evidence.must_share()
    most, consumers = _most_queues(evidence), len(evidence.processes)
    if evidence.facts.untold is not None:
        raise DataError(evidence.facts.untold, hint=ASK_BROKERS)
    if consumers > most and (idle := _idle(case, evidence.processes)):
        yield case.finding(
            INFO,
            consumers=idle,
            facts=[evidence.seen("consumers", consumers, threshold=most + 1)],
            consequence=f"{counted(len(idle), 'consumer')} idle: a queue has one owner.",
            remedy="Nothing is wrong; more queues would let all consumers work.",
        )


@rule("idle-by-strategy")
def idle_by_strategy(case: Case) -> Iterator[GroupFinding]:
    """The strategy gives some consumers no queue, although some topic has enough for all."""
    evidence = case.evidence
    evidence.must_share()
    if not evidence.facts.ownership.spread.idle:
        return
    if len(evidence.processes) > _most_queues(evidence):
        raise DoesNotApply("it has more consumers than queues")
    shares = counts(evidence.facts.predicted, evidence.processes)
    idle = _idle(case, [client_id for client_id, number in shares.items() if not number])
    if idle:
        yield case.finding(
            INFO,
            consumers=idle,
            facts=[evidence.seen("consumers to which the strategy gives no queue", len(idle), threshold=1)],
            consequence=f"{counted(len(idle), 'consumer')} idle: the strategy gives "
            f"{'it' if len(idle) == 1 else 'them'} no queue.",
            remedy="Nothing is wrong; show-owners --explain gives the reason, and shows other strategies.",
        )


def _idle(case: Case, among: Iterable[str]) -> tuple[str, ...]:
    """Those of these consumers without a queue, even of topics that brokers do not list (raises ComesOf)."""
    evidence = case.evidence
    numbers = counts(evidence.facts.ownership.owners, evidence.processes)
    owning = {
        client_id
        for queue, state in evidence.group.queues.items()
        if not queue.topic.startswith(RETRY_PREFIX)
        for client_id in state.owners or ()
    }
    idle = tuple(client_id for client_id in among if not numbers[client_id] and client_id not in owning)
    if idle and case.has("no-read-queues"):
        raise ComesOf(("no-read-queues",))
    return idle


def _most_queues(evidence: GroupEvidence) -> int:
    """The queues of the largest topic: a client shares each topic separately."""
    return max(Counter(queue.topic for queue in evidence.queues).values(), default=0)


@rule("consumer-gone")
def consumer_gone(case: Case) -> Iterator[GroupFinding]:
    """A consumer ended without unregistering, and its queues wait for new owners.

    A killed consumer unlocks nothing. The others learn of its end at once, and each of them leaves out a queue whose
    lock it does not get (`RebalanceImpl.updateProcessQueueTableInRebalance`), until the broker's 60 s are over.
    """
    evidence = case.evidence
    evidence.must_share()
    waiting = tuple(queue for queue in evidence.queues if evidence.observed.get(queue) == ())
    if not waiting or case.explanation or case.present:
        return
    evidence.must_be_all_lists()
    left, locked = _left(evidence), _locked(case, waiting)
    queues = [queue for queue in waiting if queue in locked or any(queue in owned for owned in left.values())]
    if not queues:
        return
    ids = sort_client_ids(client_id for client_id, owned in left.items() if not owned.isdisjoint(queues))
    who = named(ids) if ids else "a consumer that ended"
    lasts = (LOCK_LASTS_MS + _REBALANCES_MS if locked else CONVERGES_MS) // 1000
    why = f"{who} left without a word and keeps their locks" if locked else f"{who} left the lists"
    yield case.finding(
        ERROR if evidence.lag(queues) else WARNING,
        queues=queues,
        consumers=ids,
        facts=[*_last_lists(evidence, ids), *_waiting(evidence, len(queues), is_orderly=bool(locked))],
        consequence=f"{counted(len(queues), 'queue')} unassigned: {why}; others get them within {lasts} s; "
        f"{evidence.unread_in(queues)}.",
        remedy=f"Wait {lasts} s. Look at why the process of {who} ended: kill -9, out of memory, a lost host.",
    )


def _left(evidence: GroupEvidence) -> dict[str, set[MessageQueue]]:
    """Consumer that only earlier looks list → the queues that it owned and that have no owner now."""
    found: dict[str, set[MessageQueue]] = {}
    for look in evidence.earlier:
        for client_id in {*(look.client_ids or ())} - evidence.processes.keys():
            owned = {queue for queue, state in look.queues.items() if client_id in (state.owners or ())}
            found.setdefault(client_id, set()).update(q for q in owned if evidence.observed.get(q) == ())
    return found


def _locked(case: Case, queues: tuple[MessageQueue, ...]) -> tuple[MessageQueue, ...]:
    """The queues that are an orderly consumer's by prediction, and whose lock may still be another one's."""
    evidence = case.evidence
    if evidence.is_rebalancing:
        return ()
    since = evidence.read_at[-1]  # from when on the looks show these queues without an owner
    for look, at in zip(reversed(evidence.looks), reversed(evidence.read_at), strict=True):
        if any(queue not in look.queues or look.queues[queue].owners != frozenset() for queue in queues):
            break
        since = at
    if evidence.read_at[-1] - since > LOCK_LASTS_MS + _REBALANCES_MS:
        return ()
    predictions = known(lambda: case.possible(())) or ()
    if len(predictions) != 1:
        return ()
    predicted = predictions[0]
    others = {q: owners for q, owners in evidence.observed.items() if q not in queues and q in predicted}
    if any(owners != predicted[queue] for queue, owners in others.items()):
        return ()
    return tuple(
        queue
        for queue in queues
        if predicted.get(queue) and all(evidence.report_of(owner).orderly is True for owner in predicted[queue])
    )


def _last_lists(evidence: GroupEvidence, ids: list[str]) -> Iterator[Evidence]:
    for client_id in ids:
        last = next(look for look in reversed(evidence.earlier) if client_id in (look.client_ids or ()))
        at = "at an earlier look" if last.seen.at is None else utc_text(last.seen.at)
        yield evidence.seen(f"brokers listed {client_id} last", at, by=last.seen)


def _waiting(evidence: GroupEvidence, number: int, *, is_orderly: bool) -> Iterator[Evidence]:
    yield evidence.seen("queues without an owner", number, threshold=1)
    if is_orderly:
        yield evidence.seen("their owners by prediction", "orderly consumers, which do not get the locks")


def _must_share(evidence: GroupEvidence) -> None:
    """Reject groups whose queues have no single owners, and groups without a visible consumer.

    A group of which no consumer is visible although its brokers answered has bad owners for sure.
    """
    if evidence.facts.apart is not None:
        raise DoesNotApply(evidence.facts.apart)
    evidence.facts.must_be_assigned()
    if evidence.group.client_ids == () and evidence.facts.untold is None:
        raise DoesNotApply("no consumer is visible")
    if evidence.group.client_ids == () and evidence.facts.name not in evidence.facts.gaps.members:
        raise DataError(evidence.facts.untold or "", hint=ASK_BROKERS)


def _unexplained(case: Case, is_bad: Callable[[tuple[str, ...]], bool]) -> tuple[MessageQueue, ...]:
    """The queues with bad observed owners that no cause explains (raises as a rule does)."""
    evidence = case.evidence
    _must_share(evidence)
    queues = [q for q in sort_queues(evidence.queues) if q in evidence.observed and is_bad(evidence.observed[q])]
    if not queues:
        evidence.must_be_observed()
        return ()
    if case.explanation:
        raise ComesOf(case.explanation)
    left = [queue for queue in queues if not case.gives(queue, evidence.observed[queue])]
    if not left:
        raise ComesOf(case.present)
    return case.unexplained(left, ("consumer-gone", "mixed-sdks"))


def _severity(evidence: GroupEvidence, otherwise: Severity) -> Severity:
    return INFO if evidence.is_rebalancing else otherwise
