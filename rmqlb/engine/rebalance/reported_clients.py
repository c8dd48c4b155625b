"""The client libraries and consumer types of a group, as reported or given."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from rmqlb.engine.rebalance.profile import consumer_profile_of
from rmqlb.errors import DataError, UsageError
from rmqlb.model.client_versions import parse_version
from rmqlb.model.group import CONSUME_ACTIVELY, ConsumerGroup, ConsumerType
from rmqlb.model.group_scenario import Event, GroupScenario
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.result import Finding, utc_text
from rmqlb.model.route import TopicRouteData


def client_version(group: ConsumerGroup | None, given: str | None = None) -> tuple[str, tuple[Finding, ...]]:
    """The version whose rules Java follows: as given, or most reported (the older of equals), or the newest."""
    if given is not None:
        return given, ()
    connections = [connection for view in (group.lists if group else ()) for connection in view.connections]
    versions, rules = Counter[str](), set[str]()
    for version in (c.version for c in connections if c.language in (None, "JAVA")):  # others report none of theirs
        try:
            rules.add(consumer_profile_of(version or "").name)
        except UsageError:
            continue
        versions[".".join(map(str, parse_version(version or "")))] += 1
    if not versions:
        return GroupScenario().client_version, ()
    usual = min(versions, key=lambda version: (-versions[version], parse_version(version)))
    if len(rules) == 1:
        return usual, ()
    text = ", ".join(f"{version} ({number})" for version, number in versions.most_common())
    return usual, (Finding("mixed-versions", f"consumers report the versions {text}: all are simulated as {usual}"),)


def orderly_findings(sdks: Iterable[str]) -> Iterator[Finding]:
    if "cpp" in sdks:
        text = "C++ consumers take an orderly queue first and lock it later; simulated with the lock first, as in Java"
        yield Finding("other-language", text)


def consumer_types(
    group: ConsumerGroup | None, given: ConsumerType | None = None, given_of: Mapping[str, ConsumerType] | None = None
) -> tuple[ConsumerType, dict[str, ConsumerType], tuple[Finding, ...]]:
    """The type of most consumers, the type of each known consumer, and the findings about them.

    Brokers report only push or pull (`consumeType`), for the whole group by its last heartbeat. A consumer reports its
    own type.
    """
    if group is None:
        return given or "push", dict(given_of or {}), ()
    reported = {client_id: report.consumer_type for client_id, report in group.reports.items() if given is None}
    known = {client_id: kind for client_id, kind in {**reported, **(given_of or {})}.items() if kind is not None}
    usual: ConsumerType = given or ("lite-pull" if group.consume_type == CONSUME_ACTIVELY else "push")
    ids, findings = list(dict.fromkeys(group.client_ids or ())), []
    silent = [client_id for client_id in ids if client_id not in known]
    if group.consume_type == CONSUME_ACTIVELY and silent and given is None:
        text = "pulls, and does not say whether as DefaultMQPullConsumer or DefaultLitePullConsumer"
        how = "simulated as the latter; --set consumer-type=ID=pull says otherwise"
        findings.append(Finding("consumer-type-unknown", f"{silent[0]}{_more(silent)} {text}: {how}"))
    assigned = [client_id for client_id in ids if known.get(client_id, usual) == "assign"]
    if assigned:
        text = f"{assigned[0]}{_more(assigned)} assigns itself queues (assign) and takes no part in the rebalance"
        effect = "brokers list it all the same, so that the others leave it a share that stays unread"
        findings.append(Finding("assigns-itself", f"{text}: {effect}"))
    return usual, known, tuple(findings)


def _more(ids: list[str]) -> str:
    return f" and {len(ids) - 1} more" if len(ids) > 1 else ""


def spread_evenly(
    rates: Mapping[str, float], routes: Sequence[TopicRouteData], events: Sequence[Event] = ()
) -> dict[MessageQueue, float]:
    """Each topic's rate per second, divided evenly among the read queues of the beginning.

    A queue that an event adds has the same rate as the others, which is more than an even share: bounds stay bounds.
    """
    found: dict[MessageQueue, float] = {}
    for route in routes:
        queues = route.subscribe_queues()
        if route.topic not in rates or not queues:
            continue
        rate = rates[route.topic] / len(queues)
        found |= dict.fromkeys(queues, rate)
        brokers = [data.broker_name for data in route.queue_datas]
        usual = max(data.read_queue_nums for data in route.queue_datas)
        for event in events:
            names: list[str] = []
            if event.kind == "route-change" and event.subject == route.topic:
                names = brokers if event.broker_name is None else [event.broker_name]
            elif event.kind == "broker-up" and event.subject not in brokers:
                names = [event.subject]
            number = usual if event.read_queues is None else event.read_queues
            found |= {MessageQueue(route.topic, name, queue_id): rate for name in names for queue_id in range(number)}
    return found


def seconds_between(later: datetime | None, earlier: datetime | None, where: str, hint: str | None = None) -> float:
    """The time between two snapshots; `where` names the earlier one in errors (DataError)."""
    if later is None or earlier is None:
        which = f"{where} does" if earlier is None else "the source does"
        raise DataError(f"{which} not report when it was taken, so that no rate follows", hint=hint)
    if later <= earlier:
        text = f"{where} is not earlier than the source: {utc_text(earlier)} and {utc_text(later)}"
        raise DataError(text, hint="-s is the later snapshot, --earlier the earlier one")
    return (later - earlier).total_seconds()


def observed_rates(
    now: ConsumerGroup,
    then: ConsumerGroup,
    taken: tuple[datetime | None, datetime | None],  # times of the later and the earlier snapshot
    queues: Iterable[MessageQueue],
    where: str,
) -> dict[MessageQueue, float]:
    length = seconds_between(*taken, where, hint="pass --rate R")
    rates: dict[MessageQueue, float] = {}
    for queue in queues:
        ends = [group.queues[queue].broker_offset if queue in group.queues else None for group in (now, then)]
        if ends[0] is None or ends[1] is None:
            continue
        if ends[0] < ends[1]:
            text = f"queue {queue.broker_name}:{queue.queue_id} of {queue.topic} ends at {ends[0]}, and in {where} at"
            hint = "are both snapshots of the same cluster?"
            raise DataError(f"{text} {ends[1]}: offsets run backwards", hint=hint)
        rates[queue] = (ends[0] - ends[1]) / length
    if not rates:
        hint = "fetch both with fetch-routes --group, which reads offsets"
        raise DataError(f"{where} and the source have no queue whose end both know", hint=hint)
    return rates
