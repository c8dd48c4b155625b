"""Rules for causes of wrong owners: brokers, links between brokers and consumers, and clients that differ."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from operator import itemgetter

from msgspec import Struct

from rmqlb.engine.assignment.consumers import only_grpc, other_subscriptions
from rmqlb.engine.diagnose.case import CAUSES, Case, Cause, ComesOf, rule
from rmqlb.engine.diagnose.evidence import ASK_CONSUMERS, CONVERGES_MS, FORGETS_MS, HELD_MS, MAKE_EVIDENCE, DoesNotApply
from rmqlb.engine.diagnose.lags import lags_of
from rmqlb.engine.group import known
from rmqlb.errors import DataError
from rmqlb.model.diagnosis import Evidence, GroupFinding
from rmqlb.model.group import RETRY_PREFIX, MemberView, ProxyView, is_grpc
from rmqlb.model.message_queue import MessageQueue, grouped, sort_client_ids, sort_key
from rmqlb.model.result import ERROR, INFO, WARNING, Severity, counted, have, messages, named, utc_text
from rmqlb.model.snapshot import through


@rule("broker-silent")
def broker_silent(case: Case) -> Iterator[GroupFinding]:
    if case.group.views is None:
        raise DoesNotApply("brokers were not queried for its consumers")
    addresses, reasons = case.addresses, dict[str, str]()  # broker → why it did not answer
    for part in case.facts.snapshot.unread:
        if part.kind in ("members", "offsets") and part.name == case.group.group and part.no_answer and part.detail:
            broker = addresses.get(part.detail, part.detail)
            if broker in case.broker_names:
                reasons.setdefault(broker, part.reason)
    if reasons:
        names = sorted(reasons)
        queues = [queue for queue in case.queues if queue.broker_name in reasons]
        yield case.finding(
            ERROR,
            f"{'Broker' if len(names) == 1 else 'Brokers'} {named(names)} {'does' if len(names) == 1 else 'do'} not "
            f"answer: owners and offsets of {counted(len(queues), 'queue')} there are unknown.",
            f"Check whether the process of {names[0]} is paused, stuck, overloaded, or out of memory. "
            "If only rmqlb cannot reach it, use --map-address.",
            queues=queues,
            facts=[case.seen(f"answer of {name}", reasons[name]) for name in names],
        )


@rule("broker-gone")
def broker_gone(case: Case) -> Iterator[GroupFinding]:
    for name, queues in sorted(_queues_without_broker(case).items()):
        owners = {client_id for queue in queues for client_id in case.owners(queue)}
        ends = (
            {q.broker_name for q, s in sample.queues.items() if s.broker_offset is not None} for sample in case.samples
        )
        times = [sample.seen.at for sample, brokers in zip(case.samples, ends, strict=True) if name in brokers]
        answered = next((utc_text(at) for at in reversed(times) if at is not None), None)
        still = f"{CONVERGES_MS // 1000} s"
        consequence = "their messages wait until the broker is back"
        if owners:
            consequence = f"{counted(len(owners), 'consumer')} still {have(len(owners))} them, for up to {still}"
        since = f"within the last {still}" if answered is None else f"since {answered}"
        facts = [case.seen(f"routes of the group's topics that have {name}", 0, 1)]
        items = [item for client_id in case.group.reports for item in case.report_of(client_id).queues or ()]
        pulls = [item.last_pull for item in items if item.queue in queues and item.last_pull]
        if pulls:
            at = utc_text(datetime.fromtimestamp(max(pulls) // 1000, UTC))
            facts.append(case.seen(f"last pull of a consumer from {name}", at))
        if answered is not None:
            facts.append(case.seen(f"last answer of {name}", answered))
        yield case.finding(
            ERROR,
            f"Broker {name} left the routes {since}: {counted(len(queues), 'queue')} not read; {consequence}.",
            f"Check the process and the log of {name}. Its queues come back when it registers again.",
            queues=queues,
            facts=facts,
        )


def _queues_without_broker(case: Case) -> Mapping[str, set[MessageQueue]]:
    """Broker in no route → its queues of the group's topics at consumers or in earlier samples."""
    present = {broker.broker_name for broker in case.facts.snapshot.brokers}
    topics = {route.topic for route in case.routes}
    owned = {queue for queue, owners in case.observed.items() if owners}
    before = {queue for sample in case.earlier for queue in sample.queues if not queue.topic.startswith(RETRY_PREFIX)}
    gone = (queue for queue in owned | before if queue.topic in topics and queue.broker_name not in present)
    return {name: {*queues} for name, queues in grouped((queue.broker_name, queue) for queue in gone).items()}


@rule("stale-connections")
def stale_connections(case: Case) -> Iterator[GroupFinding]:
    if not case.views:
        raise DoesNotApply("no broker lists its consumers")
    acts = "stale-connections" in case.explanation
    channels, facts = case.group.stale_channels, list[Evidence]()
    for view, client_id, number in channels:
        broker, processes = case.broker_name(view) or view.place, case.processes[client_id]
        facts.append(case.seen(f"connections of {client_id} at {broker}", number, processes + 1, by=view.seen))
        facts.append(case.seen(f"connections of {client_id} at other brokers", processes))
    if channels:
        yield finding_of_cause(
            case,
            "stale-connections",
            None if acts else INFO,
            consumers={client_id for _, client_id, _ in channels},
            facts=facts,
            meaning="a broker still lists broken connections",
            remedy=f"Wait {FORGETS_MS // 1000} s: the broker drops silent connections. If they remain, look for "
            "processes that share the client ID.",
        )
    ghosts = sort_client_ids(case.ghosts & case.processes.keys())
    if ghosts:
        yield finding_of_cause(
            case,
            "stale-connections",
            None if acts else WARNING,
            consumers=ghosts,
            facts=[case.seen(f"answer of {ghost} about the group", "it does not run it") for ghost in ghosts],
            meaning="brokers list a client that does not run the group; consumers leave it a share of the queues",
            remedy="Restart that process. Brokers up to 5.5.0 keep it in the list while it sends heartbeats for "
            "another group. 5.5.1 does so only with heartbeats of version 2.",
        )
    case.must_be_all_lists()


@rule("split-consumer-view")
def split_consumer_view(case: Case) -> Iterator[GroupFinding]:
    case.must_share()
    if case.group.has_split_view:
        if "broker-unreachable-from-consumer" in case.present or any(link.reason is None for link in _cut_links(case)):
            raise ComesOf("broker-unreachable-from-consumer")
        listed = [Counter(case.group.processes_in(view)) for view in case.views]
        # A consumer that starts or ends registers at one broker after another, and samples may fall in between.
        is_cause = "split-consumer-view" in case.explanation
        passes = case.is_younger_than(CONVERGES_MS if is_cause else FORGETS_MS)
        facts = []
        for view in case.views:
            facts.append(_listed(case, view))
            if (fitting := case.owning_by(view.client_ids)) is not None:
                text = f"consumers with the owners that the list of {view.place} gives"
                facts.append(case.seen(text, fitting, by=view.seen))
        yield finding_of_cause(
            case,
            "split-consumer-view",
            INFO if passes else None,
            consumers=[each for each in case.processes if len({counts[each] for counts in listed}) > 1],
            facts=facts,
            meaning="consumers compute their shares from different lists of consumers",
            remedy="Diagnose again after two minutes. If the lists still differ, find out why these consumers do not "
            "reach the brokers that leave them out.",
        )
    case.must_be_all_lists()


def _listed(case: Case, view: MemberView) -> Evidence:
    return case.seen(f"consumers that {view.place} lists", ", ".join(view.client_ids), by=view.seen)


@rule("broker-unreachable-from-consumer")
def broker_unreachable(case: Case) -> Iterator[GroupFinding]:
    """Report a consumer and a broker that answer others, but have no connection with each other."""
    case.must_share()
    if links := _cut_links(case):
        yield _finding_of_links(case, links)
    elif case.group.has_split_view:
        differ = "brokers list different consumers"
        if "broker-unreachable-from-consumer" not in case.suspected:
            raise DataError(f"{differ}, and the owners of some queues are unknown", hint=ASK_CONSUMERS)
        if "broker-unreachable-from-consumer" in case.explanation:
            cut = {client_id: ", ".join(sorted(brokers)) for client_id, brokers in case.cut_off.items()}
            number = {i: sum(len(_owned(case, i, broker)) for broker in case.cut_off[i]) for i in cut}
            pairs = "; consumer ".join(f"{client_id} cannot reach {brokers}" for client_id, brokers in cut.items())
            yield finding_of_cause(
                case,
                "broker-unreachable-from-consumer",
                consumers=cut,
                facts=[
                    *(_listed(case, view) for view in case.views),
                    *(case.seen(f"queues of {i} at {brokers}", number[i]) for i, brokers in cut.items()),
                ],
                meaning=f"consumer {pairs}, so no consumer reads its queues there",
                remedy="Check the network between these consumers and the brokers that do not list them.",
            )
        elif case.smallest is None:
            hint = "diagnose again after two minutes, when brokers have dropped consumers that left"
            raise DataError(f"{differ}, and no prediction matches the observed owners", hint=hint)
    case.must_be_all_lists()


class _Link(Struct, frozen=True):
    """A consumer and a broker without a connection."""

    client_id: str
    broker_name: str
    reason: str | None  # why the consumer did not answer through the broker; None where the broker has forgotten it
    queues: tuple[MessageQueue, ...]  # the consumer's queues at the broker


def _cut_links(case: Case) -> list[_Link]:
    found = {(sort_key(link.client_id), link.broker_name): link for link in (*_forgotten(case), *_silent(case))}
    return [link for _, link in sorted(found.items(), key=itemgetter(0))]


def _silent(case: Case) -> Iterator[_Link]:
    """Consumers that answer through one broker, but not two requests through another."""
    stale = {(client_id, view.broker_addr) for view, client_id, _ in case.group.stale_channels}
    for part in case.facts.snapshot.unread:
        if part.kind == "link" and part.name == case.group.group:
            client_id, address = through(part)
            broker = case.addresses.get(address)
            # A broker uses any connection that it lists for a client (`ConsumerManager.findChannel`).
            if broker is not None and client_id in case.group.reports and (client_id, address) not in stale:
                yield _Link(client_id, broker, part.reason, _owned(case, client_id, broker))


def _forgotten(case: Case) -> Iterator[_Link]:
    """Consumers that a broker forgot after 120 s of silence (`ConsumerManager.scanNotActiveChannel`).

    Such a consumer keeps its queues there; only their offsets show whether it reads them.
    """
    for view in case.views:
        if (broker := case.broker_name(view)) is not None:
            for client_id in case.processes.keys() - set(view.client_ids):
                queues = _owned(case, client_id, broker)
                if client_id in case.group.reports and _stand_still(case, queues):
                    yield _Link(client_id, broker, None, queues)


def _owned(case: Case, client_id: str, broker_name: str) -> tuple[MessageQueue, ...]:
    observed = case.observed.items()
    return tuple(queue for queue, ids in observed if queue.broker_name == broker_name and client_id in ids)


def _stand_still(case: Case, queues: tuple[MessageQueue, ...]) -> bool:
    """Whether messages wait, and the samples show no consumption in any queue for longer than usual."""
    waits = False
    for queue in queues:
        states = [sample.queues.get(queue) for sample in case.samples]
        offsets = {None if state is None else state.consumer_offset for state in states}
        if len(offsets) != 1 or None in offsets:
            return False
        waits = waits or all(state is not None and state.lag for state in states)
    return waits and case.read_at[-1] - case.read_at[0] >= HELD_MS


def _finding_of_links(case: Case, links: list[_Link]) -> GroupFinding:
    first, facts = links[0], list[Evidence]()
    for link in links:
        own, broker = link.client_id, link.broker_name
        if link.reason is None:
            facts.append(case.seen(f"{broker} lists {own}", "no; other brokers do"))
        else:
            facts.append(case.seen(f"answer of {own} through {broker}", link.reason))
            facts.append(case.seen(f"answer of {own} through another broker", "its running information"))
        if link.queues:
            facts.append(case.seen(f"queues of {own} at {broker}", len(link.queues)))
    queues = {queue for link in links for queue in link.queues}
    pairs = "; consumer ".join(f"{link.client_id} cannot reach {link.broker_name}" for link in links)
    return case.finding(
        ERROR if case.lag(queues) else WARNING,
        f"Consumer {pairs}: {case.summary(queues, 'not read') if queues else 'it owns no queue there.'}",
        f"Check the network between {first.client_id} and {first.broker_name}: firewalls, addresses, a proxy "
        "between them. A restart of the consumer also moves its queues at other brokers to other consumers.",
        queues=queues,
        consumers=[link.client_id for link in links],
        facts=facts,
    )


@rule("duplicate-client-id")
def duplicate_client_ids(case: Case) -> Iterator[GroupFinding]:
    # After a restart with the same ID, brokers list the process twice until they forget its former connection.
    passes = "duplicate-client-id" not in case.explanation and case.is_younger_than(FORGETS_MS)
    for client_id in sort_client_ids(each for each, number in case.processes.items() if number > 1):
        lists = [view for view in case.lists if view.client_ids.count(client_id) > 1]
        yield finding_of_cause(
            case,
            "duplicate-client-id",
            INFO if passes else ERROR if case.facts.apart is None else WARNING,
            consumers=[client_id],
            facts=[_connections(case, view, client_id) for view in lists],
            meaning=f"{case.processes[client_id]} processes share a client ID and take the same queues",
            doubled=tuple(queue for queue, owners in case.observed.items() if owners == (client_id,)),
            remedy="Give each process its own instanceName, or do not set it.",
        )
    case.must_be_all_lists()


def _connections(case: Case, view: MemberView | ProxyView, client_id: str) -> Evidence:
    channels = [each for each in view.connections if each.client_id == client_id]
    known = sorted(each.client_addr for each in channels if each.client_addr is not None)
    broker = view.seen.where if isinstance(view, ProxyView) else case.broker_name(view) or view.broker_addr
    at, addresses = f" at {broker}" if broker else "", f" from {', '.join(known)}" if known else ""
    return case.seen(f"connections of {client_id}{at}{addresses}", len(channels), 2, by=view.seen)


@rule("mixed-strategies")
def mixed_strategies(case: Case) -> Iterator[GroupFinding]:
    case.must_share()
    numbers = Counter(case.strategies.values())
    if len(numbers) > 1:
        usual = _most(numbers)
        yield finding_of_cause(
            case,
            "mixed-strategies",
            consumers=[client_id for client_id, name in case.strategies.items() if name != usual],
            facts=[case.seen(f"strategy of {ids}", name) for ids, name in _by_value(case.strategies)],
            meaning="shares of different strategies overlap and leave gaps",
            remedy="Run the same strategy in all consumers" + (f"; most run {usual}." if usual else "."),
        )
    case.must_be_of_all(case.strategies, "strategy")


@rule("subscription-mismatch")
def subscription_mismatch(case: Case) -> Iterator[GroupFinding]:
    """Report different subscriptions: the share of a consumer without a topic stays unassigned."""
    case.must_share()
    if len(set(case.subscriptions.values())) > 1:
        topics = {client_id: ", ".join(sorted(names)) for client_id, names in case.subscriptions.items()}
        passes = "subscription-mismatch" not in case.explanation and case.is_younger_than(FORGETS_MS)
        yield finding_of_cause(
            case,
            "subscription-mismatch",
            INFO if passes and not _stalled(case) else None,
            consumers=other_subscriptions(case.group),
            facts=[case.seen(f"topics of {ids}", names) for ids, names in _by_value(topics)],
            meaning="a consumer's share of a topic that it does not subscribe to stays unassigned",
            remedy="Give all consumers of the group the same subscriptions, or use another group for other topics.",
        )
    else:
        yield from _other_filters(case)
    case.must_be_of_all(case.subscriptions, "subscription")
    if not case.filters and case.processes.keys() <= case.group.reports.keys():
        raise DataError("the snapshot has no tag filters of its consumers", hint=MAKE_EVIDENCE)
    case.must_be_of_all(case.filters, "tag filter")


def _other_filters(case: Case) -> Iterator[GroupFinding]:
    """Report different tags of a topic: a broker filters by the tags of the last heartbeat from any consumer.

    A consumer drops the other messages, and its offset stands still while only such messages arrive
    (`PullAPIWrapper.processPullResult`, `DefaultMQPushConsumerImpl.correctTagsOffset`).
    """
    for topic in sorted({topic for filters in case.filters.values() for topic in filters}):
        tags = {i: filters[topic] for i, filters in case.filters.items() if topic in filters}
        if len(set(tags.values())) > 1:
            usual = Counter(tags.values()).most_common(1)[0][0]
            queues = _stalled(case, topic)
            stops = f" {counted(len(queues), 'queue')} not read; {case.unread_in(queues)}." if queues else ""
            skips = "A consumer skips messages whose tags only other consumers take, so the group never gets them."
            yield case.finding(
                ERROR if queues else INFO if case.is_younger_than(FORGETS_MS) else WARNING,
                skips + stops,
                "Give all consumers of the group the same tags, or use another group for other tags.",
                topic=topic,
                queues=queues,
                consumers=[client_id for client_id, own in tags.items() if own != usual],
                facts=[case.seen(f"messages of {topic} for {ids}", own) for ids, own in _by_value(tags)],
            )


def _stalled(case: Case, topic: str | None = None) -> tuple[MessageQueue, ...]:
    """The queues of the topic, or of all topics, whose offsets do not move, without another cause."""
    lags = known(lambda: lags_of(case))
    stalled = [] if lags is None else [queue for queue in lags.of("stalled") if topic in (None, queue.topic)]
    causes = ("frozen-consumer", "consume-failing", "blocked-consumer", "pull-stopped")
    explained, _ = case.explained(stalled, causes)
    return tuple(queue for queue in stalled if queue not in explained)


@rule("mixed-sdks")
def mixed_sdks(case: Case) -> Iterator[GroupFinding]:
    """Report client libraries of several languages, with a severity by the predicted shares."""
    languages = {i: each.language for i, each in case.group.connection_of.items() if each.language is not None}
    if only_grpc(case.group):
        raise DoesNotApply("its consumers are gRPC clients, which share no queues")
    numbers = Counter(language for i, language in languages.items() if not is_grpc(i))
    if len(numbers) > 1:
        yield _sdk_finding(case, languages, _most(numbers))
    case.must_be_of_all(languages, "language")


def _sdk_finding(case: Case, languages: Mapping[str, str], usual: str | None) -> GroupFinding:
    others = {i for i, language in languages.items() if language != usual and not is_grpc(i)}
    facts = [case.seen(f"language of {ids}", each) for ids, each in _by_value(dict(sorted(languages.items())))]
    differ = "client libraries compute different shares"
    remedy = "Use one client library in a group" + (f"; most consumers use {usual}." if usual else ", or AVG in each.")
    blamed = _shared_differently(case, others) if usual else ()
    is_same = _is_same(case)
    if not blamed and "mixed-sdks" in case.present and is_same is False:
        return finding_of_cause(case, "mixed-sdks", consumers=others, facts=facts, meaning=differ, remedy=remedy)
    unknown = sorted({languages[i] for i in case.facts.sdks.assumed if i in languages})
    what = f"The rules of {', '.join(unknown)} are unknown" if unknown else "Client libraries have different rules"
    severity, consequence = WARNING, f"{what}; shares may overlap or leave gaps."
    if blamed:
        severity, consequence = ERROR, _consequence(case, differ, blamed)
    elif case.is_explained if unknown else is_same:
        severity, consequence = INFO, "Client libraries compute the same shares; with another strategy they may not."
        remedy = "Do nothing: AVG and AVG_BY_CIRCLE are the same in Java and Go, and AVG also in C++."
    return case.finding(severity, consequence, remedy, queues=blamed, consumers=others, facts=facts)


def _is_same(case: Case) -> bool | None:
    """Whether each consumer owns the same as if all ran the most used library; None if unpredictable."""
    if case.is_explained and "mixed-sdks" not in case.explanation:
        return True
    acting = tuple(cause for cause in CAUSES if cause in {*case.present, *case.explanation})
    with_all = known(lambda: case.possible(acting))
    without = known(lambda: case.possible(tuple(cause for cause in acting if cause != "mixed-sdks")))
    return None if with_all is None or without is None else with_all == without


def _shared_differently(case: Case, others: set[str]) -> tuple[MessageQueue, ...]:
    """The queues without exactly one owner, if only these consumers own other queues than predicted.

    A Go consumer does not report its strategy, which may differ from that of the others.
    """
    observed = case.observed
    predictions = known(lambda: case.possible(case.present) if case.smallest is None else ())
    if predictions is None or len(predictions) != 1:
        return ()
    differ = {queue: {*owners} ^ {*observed.get(queue, owners)} for queue, owners in predictions[0].items()}
    bad = [queue for queue in differ if differ[queue] and len(observed[queue]) != 1]
    return tuple(bad) if set[str]().union(*differ.values()) <= others else ()


def finding_of_cause(
    case: Case,
    cause: Cause,
    severity: Severity | None = None,
    *,
    consumers: Collection[str],
    facts: Iterable[Evidence],
    meaning: str,
    remedy: str,
    doubled: tuple[MessageQueue, ...] = (),
) -> GroupFinding:
    """The finding of a cause of owners; `meaning` begins the consequence.

    By default an error where the cause leaves queues without exactly one owner, otherwise a warning. `doubled` are
    queues whose single owner is several processes.
    """
    bad = known(lambda: case.queues_of(cause)) or ()
    queues = {*bad, *doubled}
    return case.finding(
        severity or (ERROR if queues else WARNING),
        _consequence(case, meaning, bad, doubled),
        remedy,
        queues=queues,
        consumers=consumers,
        facts=facts,
        explains=case.explains(cause),
    )


def _consequence(
    case: Case, meaning: str, bad: tuple[MessageQueue, ...], doubled: tuple[MessageQueue, ...] = ()
) -> str:
    unassigned = [queue for queue in bad if not case.now[queue]]
    numbers = (
        (len(unassigned), "unassigned"),
        (sum(len(case.now[queue]) > 1 for queue in bad), "with duplicate owners"),
        (len(doubled), "read by each of these processes"),
    )
    parts = ", ".join(f"{counted(number, 'queue')} {what}" for number, what in numbers if number)
    text = meaning[0].upper() + meaning[1:] + (f": {parts}" if parts else "")
    waiting = case.lag(unassigned)
    return f"{text}; {messages(waiting)} unread in unassigned queues." if waiting else f"{text}."


def _by_value(values: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for value in dict.fromkeys(values.values()):
        yield named(client_id for client_id, own in values.items() if own == value), value


def _most(numbers: Counter[str]) -> str | None:
    """The most frequent value; None when another value is as frequent."""
    first, second = numbers.most_common(2)
    return first[0] if first[1] > second[1] else None
