"""Rules for the owners of queues: groups whose queues no consumer owns, and owners that no cause explains."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from rmqlb.engine.assignment.assign import counts
from rmqlb.engine.assignment.consumers import ask_proxy, only_grpc, popped_topics
from rmqlb.engine.assignment.consumers import behind_proxy as proxy_evidence
from rmqlb.engine.diagnose.case import Case, ComesOf, rule
from rmqlb.engine.diagnose.evidence import ASK_BROKERS, ASK_CONSUMERS, CONVERGES_MS, DoesNotApply
from rmqlb.engine.group import known
from rmqlb.errors import DataError
from rmqlb.model.diagnosis import GroupFinding
from rmqlb.model.group import CONSUME_POP, RETRY_PREFIX, is_grpc
from rmqlb.model.message_queue import MessageQueue, sort_client_ids, sort_queues
from rmqlb.model.result import ERROR, INFO, WARNING, counted, messages, named, utc_text

LOCK_LASTS_MS = 60_000  # age of a lock at which a broker gives it to another client (`RebalanceLockManager`)
_REBALANCES_MS = 20_000
_CHECK_AGAIN = "Diagnose again after 50 s: by then, a change of consumers or queues has reached all consumers."
_EXPLAINING = ("consumer-gone", "mixed-sdks")


@rule("no-consumer-online")
def no_consumer_online(case: Case) -> Iterator[GroupFinding]:
    case.must_be_listed()
    if case.group.client_ids:
        return
    if proxy_evidence(case.group) is not None:
        raise DoesNotApply("its consumers are probably behind a Proxy, so brokers do not list them")
    states = case.facts.states
    waiting = case.lag(states)
    all_read = bool(states) and all(state.lag == 0 for state in states.values())
    proxies = case.group.proxies or ()
    unless = "" if proxies else ", unless by consumers of a Proxy, which are not visible here"
    yield case.finding(
        ERROR if waiting else INFO if all_read else WARNING,
        f"No queue is read{unless}" + (f"; {messages(waiting)} unread." if waiting else "."),
        "Start a consumer." if proxies else f"Start a consumer. If some are running, {ask_proxy(case.group)}.",
        facts=[
            case.seen("consumers that brokers list", 0),
            *(case.seen(f"consumers that {view.seen.where} lists", 0, by=view.seen) for view in proxies),
        ],
    )


@rule("behind-proxy")
def behind_proxy(case: Case) -> Iterator[GroupFinding]:
    group = case.group
    ids = sort_client_ids(filter(is_grpc, case.processes))
    if ids:
        mixed = len(ids) < len(case.processes)
        if not mixed:
            consequence = "A Proxy gives messages to these consumers; none of them owns a queue."
        elif any(client_id in view.client_ids for view in group.views or () for client_id in ids):
            consequence = "The other consumers leave gRPC clients a share, which stays unassigned."
        else:
            consequence = "Consumers that own queues and consumers of a Proxy read the same queues."
        # Proxies list them, or brokers with a Proxy in them.
        facts = [
            case.seen(f"gRPC clients that {view.seen.where} lists", number, by=view.seen)
            for view in group.proxies or ()
            if (number := len({*ids} & {*view.client_ids}))
        ]
        yield case.finding(
            WARNING if mixed else INFO,
            consequence,
            "Do not mix gRPC clients and older clients in a group." if mixed else "Nothing is wrong.",
            consumers=ids,
            facts=facts or [case.seen("client IDs of the form of gRPC clients", len(ids), 1)],
        )
    elif (shown := proxy_evidence(group)) is not None:
        likely = "" if group.polling_num else "probably "
        yield case.finding(
            INFO,
            f"Its consumers are {likely}behind a Proxy and not visible here; none of them owns a queue.",
            f"No problem is known. To check further: {ask_proxy(group)}.",
            facts=[case.seen("consumption without a listed consumer", shown)],
        )
    else:
        case.must_be_listed()
        if group.client_ids:
            case.must_be_all_lists()
        elif group.polling_num is None and not group.proxies:
            hint = (
                "diagnose a live cluster through its NameServers (-s rocketmq://HOST:9876), or with --proxy HOST:8080"
            )
            raise DataError("the number of receive requests that wait at brokers is unknown", hint=hint)


@rule("pop-consumption")
def pop_consumption(case: Case) -> Iterator[GroupFinding]:
    """Report consumption by POP: several consumers take messages from one queue, so none owns it."""
    group = case.group
    if only_grpc(group) or proxy_evidence(group) is not None:
        raise DoesNotApply("its consumers are behind a Proxy, which takes messages by POP for them")
    topics = tuple(sorted(popped_topics(group)))
    if group.consume_type == CONSUME_POP or topics:
        fact = "topics in POP mode" if topics else "consume type"
        yield case.finding(
            INFO,
            "Several consumers take messages from one queue by POP; none of them owns it.",
            "Nothing is wrong.",
            topic=topics[0] if len(topics) == 1 else None,
            facts=[case.seen(fact, ", ".join(topics) or CONSUME_POP)],
        )
    elif group.consume_type is None:
        hint = "diagnose while one of its consumers is online"
        raise DataError("the consume type of its consumers is unknown", hint=hint)
    elif group.request_modes is None and any(
        i not in group.reports or group.reports[i].client_rebalance is None for i in case.processes
    ):
        raise DataError("the group's request modes are unknown, so brokers may assign its queues", hint=ASK_CONSUMERS)


@rule("no-read-queues")
def no_read_queues(case: Case) -> Iterator[GroupFinding]:
    if case.group.own_topics is None:
        _ = case.lists
    for topic in case.topics:
        sighting = case.facts.snapshot.routes.get(topic)
        if sighting is not None and not sighting.route.subscribe_queues():
            waiting = case.lag(queue for queue in case.group.queues if queue.topic == topic)
            unread = f"; {messages(waiting)} unread there." if waiting else "."
            yield case.finding(
                WARNING,
                f"Topic {topic} has no readable queue: consumers get nothing from it{unread}",
                f"Check perm and readQueueNums with show-route -t {topic}; mqadmin updateTopic -p 6 -r N makes "
                "queues readable.",
                topic=topic,
                facts=[
                    case.seen(
                        f"permission and read queues of {topic} at {data.broker_name}",
                        f"perm {data.perm}, readQueueNums {data.read_queue_nums}",
                    )
                    for data in sighting.route.queue_datas
                ],
            )
    for why in case.facts.unknown_routes.values():
        raise DataError(why.message, hint="diagnose with the route of that topic")


@rule("unassigned-queues")
def unassigned_queues(case: Case) -> Iterator[GroupFinding]:
    queues = _unexplained(case, lambda owners: not owners)
    state = f"unassigned; {messages(case.lag(queues))} unread there"
    yield from _badly_owned(case, queues, state, "queues without an owner")


@rule("duplicate-owners")
def duplicate_owners(case: Case) -> Iterator[GroupFinding]:
    queues = _unexplained(case, lambda owners: len(owners) > 1)
    state = "with duplicate owners: each owner delivers the same messages"
    yield from _badly_owned(case, queues, state, "queues with two or more owners")
    if not queues and any(case.processes[client_id] > 1 for owners in case.observed.values() for client_id in owners):
        raise ComesOf("duplicate-client-id")  # the only owner is a client ID of several processes


def _badly_owned(case: Case, queues: tuple[MessageQueue, ...], state: str, fact: str) -> Iterator[GroupFinding]:
    if queues:
        yield case.finding(
            INFO if case.is_rebalancing else ERROR,
            f"{counted(len(queues), 'queue')} {state}.",
            _CHECK_AGAIN,
            queues=queues,
            consumers=[client_id for queue in queues for client_id in case.observed[queue]],
            facts=[case.seen(fact, len(queues), 1)],
        )


def _unexplained(case: Case, is_bad: Callable[[tuple[str, ...]], bool]) -> tuple[MessageQueue, ...]:
    _must_share(case)
    queues = [q for q in sort_queues(case.queues) if q in case.observed and is_bad(case.observed[q])]
    if not queues:
        case.must_be_observed()
        return ()
    if case.explanation:
        raise ComesOf(*case.explanation)
    left = [queue for queue in queues if not case.gives(queue, case.observed[queue])]
    if not left:
        raise ComesOf(*case.present)
    return case.unexplained(left, _EXPLAINING)


def _must_share(case: Case) -> None:
    """Reject groups whose queues have no single owners, or that have no visible consumer."""
    facts = case.facts
    if facts.apart is not None:
        raise DoesNotApply(facts.apart)
    facts.must_be_assigned()
    if case.group.client_ids == () and facts.untold is None:
        raise DoesNotApply("no consumer is visible")
    if case.group.client_ids == () and facts.name not in facts.snapshot.gaps.members:
        raise DataError(facts.untold or "", hint=ASK_BROKERS)


@rule("mismatch")
def mismatch(case: Case) -> Iterator[GroupFinding]:
    _must_share(case)
    if not case.queues and case.has("no-read-queues"):
        raise ComesOf("no-read-queues")
    if case.smallest is not None:
        case.must_be_observed()
        return
    if case.answer("broker-gone").findings:  # consumers use the former route until their next poll
        raise ComesOf("broker-gone")
    bad = [queue for queue, owners in case.observed.items() if len(owners) != 1]
    if bad:
        _, causes = case.explained(bad, _EXPLAINING)
        codes = {"duplicate-owners" if case.observed[queue] else "unassigned-queues" for queue in bad}
        raise ComesOf(*(causes or sorted(codes)))
    case.must_be_of_all(case.strategies, "strategy")
    case.must_be_of_all(case.subscriptions, "subscription")
    if case.facts.basis == "assumed":
        raise DataError("the strategy of its consumers is unknown", hint=ASK_CONSUMERS)
    (predicted, *_) = case.possible(case.present)
    differ = [queue for queue, owners in predicted.items() if case.observed.get(queue, owners) != owners]
    strategy = case.facts.members.name
    yield case.finding(
        INFO if case.is_rebalancing else WARNING,
        "No prediction matches the observed owners: their cause is unknown.",
        _CHECK_AGAIN,
        queues=differ,
        consumers=[i for queue in differ for i in {*case.observed[queue]} ^ {*predicted[queue]}],
        facts=[case.seen(f"queues with other owners than {strategy} predicts", len(differ), 1)],
    )


@rule("more-consumers-than-queues")
def more_consumers_than_queues(case: Case) -> Iterator[GroupFinding]:
    case.must_share()
    most, consumers = _most_queues(case), len(case.processes)
    if case.facts.untold is not None:
        raise DataError(case.facts.untold, hint=ASK_BROKERS)
    if consumers > most and (idle := _idle(case, case.processes)):
        yield case.finding(
            INFO,
            f"{counted(len(idle), 'consumer')} idle: a queue has one owner.",
            "Nothing is wrong. With more queues, all consumers could work.",
            consumers=idle,
            facts=[case.seen("consumers", consumers, most + 1)],
        )


@rule("idle-by-strategy")
def idle_by_strategy(case: Case) -> Iterator[GroupFinding]:
    case.must_share()
    if not case.facts.ownership.spread.idle:
        return
    if len(case.processes) > _most_queues(case):
        raise DoesNotApply("it has more consumers than queues")
    shares = counts(case.facts.predicted, case.processes)
    if idle := _idle(case, [client_id for client_id, number in shares.items() if not number]):
        yield case.finding(
            INFO,
            f"{counted(len(idle), 'consumer')} idle: the strategy gives {'it' if len(idle) == 1 else 'them'} no queue.",
            "Nothing is wrong. show-owners --explain gives the reason and compares other strategies.",
            consumers=idle,
            facts=[case.seen("consumers to which the strategy gives no queue", len(idle), 1)],
        )


def _idle(case: Case, among: Iterable[str]) -> tuple[str, ...]:
    """The consumers among these without a queue, even of topics that brokers do not list (raises ComesOf)."""
    numbers = counts(case.facts.ownership.owners, case.processes)
    states = case.group.queues.items()
    owning = {i for queue, state in states if not queue.topic.startswith(RETRY_PREFIX) for i in state.owners or ()}
    idle = tuple(client_id for client_id in among if not numbers[client_id] and client_id not in owning)
    if idle and case.has("no-read-queues"):
        raise ComesOf("no-read-queues")
    return idle


def _most_queues(case: Case) -> int:
    """The number of queues of the largest topic, as clients share each topic separately."""
    return max(Counter(queue.topic for queue in case.queues).values(), default=0)


@rule("consumer-gone")
def consumer_gone(case: Case) -> Iterator[GroupFinding]:
    """Report a consumer that ended without unregistering, while its queues wait for new owners.

    A killed consumer unlocks nothing. Other consumers notice at once, but each leaves out queues whose lock it does not
    get (`RebalanceImpl.updateProcessQueueTableInRebalance`), for the broker's 60 s.
    """
    case.must_share()
    waiting = tuple(queue for queue in case.queues if case.observed.get(queue) == ())
    if not waiting or case.explanation or case.present:
        return
    case.must_be_all_lists()
    left, locked = _left(case), _locked(case, waiting)
    queues = [queue for queue in waiting if queue in locked or any(queue in owned for owned in left.values())]
    if not queues:
        return
    ids = sort_client_ids(client_id for client_id, owned in left.items() if not owned.isdisjoint(queues))
    who = named(ids) if ids else "an unknown consumer"
    lasts = (LOCK_LASTS_MS + _REBALANCES_MS if locked else CONVERGES_MS) // 1000
    why = f"{who} ended without releasing their locks" if locked else f"brokers no longer list {who}"
    facts = []
    for client_id in ids:
        last = next(sample.seen for sample in reversed(case.earlier) if client_id in (sample.client_ids or ()))
        at = "in an earlier sample" if last.at is None else utc_text(last.at)
        facts.append(case.seen(f"brokers listed {client_id} last", at, by=last))
    facts.append(case.seen("queues without an owner", len(queues), 1))
    if locked:
        facts.append(case.seen("their owners by prediction", "orderly consumers, which do not get the locks"))
    yield case.finding(
        ERROR if case.lag(queues) else WARNING,
        f"{counted(len(queues), 'queue')} unassigned: {why}; other consumers take them within {lasts} s; "
        f"{case.unread_in(queues)}.",
        f"Wait {lasts} s. Find out why the process of {who} ended: kill -9, out of memory, a lost host.",
        queues=queues,
        consumers=ids,
        facts=facts,
    )


def _left(case: Case) -> dict[str, set[MessageQueue]]:
    """Consumers that only earlier samples list → their former queues that have no owner now."""
    found: dict[str, set[MessageQueue]] = {}
    for sample in case.earlier:
        for client_id in {*(sample.client_ids or ())} - case.processes.keys():
            owned = {queue for queue, state in sample.queues.items() if client_id in (state.owners or ())}
            found.setdefault(client_id, set()).update(q for q in owned if case.observed.get(q) == ())
    return found


def _locked(case: Case, queues: tuple[MessageQueue, ...]) -> tuple[MessageQueue, ...]:
    """The queues predicted for orderly consumers whose locks may still belong to another one."""
    if case.is_rebalancing:
        return ()
    since = case.read_at[-1]  # start of the samples without owners of these queues
    for sample, at in zip(reversed(case.samples), reversed(case.read_at), strict=True):
        if any(queue not in sample.queues or sample.queues[queue].owners != frozenset() for queue in queues):
            break
        since = at
    predictions = known(lambda: case.possible(())) or ()
    if case.read_at[-1] - since > LOCK_LASTS_MS + _REBALANCES_MS or len(predictions) != 1:
        return ()
    predicted = predictions[0]
    others = {q: owners for q, owners in case.observed.items() if q not in queues and q in predicted}
    if any(owners != predicted[queue] for queue, owners in others.items()):
        return ()
    orderly = {i for owners in predicted.values() for i in owners if case.report_of(i).orderly}
    return tuple(queue for queue in queues if predicted.get(queue) and orderly.issuperset(predicted[queue]))
