"""The consumers that own queues, how they consume, and findings about them."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Literal

from msgspec import Struct, field

from rmqlb.engine.allocate.rules import JAVA, JAVA_CLASSES, SDKS, SdkGuess, sdk_named, sdk_of_connection
from rmqlb.errors import DataError
from rmqlb.model.client_versions import SdkUse
from rmqlb.model.group import BROADCASTING, CONSUME_ACTIVELY, CONSUME_POP, RETRY_PREFIX, ConsumerGroup, is_grpc
from rmqlb.model.message_queue import MessageQueue, sort_key
from rmqlb.model.result import ERROR, INFO, WARNING, Finding, counted
from rmqlb.model.route import TopicRouteData

Reason = Literal["broadcasting", "pop", "hidden", "unknown", "grpc"]
"""Why consumers do not share queues; `hidden` ones are behind a Proxy that did not report them."""
_RECENT_MS = 60_000  # a group that has read a message stored within it was online then; consume TPS are per minute too
_POP = "POP"
_PARTS = re.compile(r"([0-9]+)")


def popped_topics(group: ConsumerGroup) -> frozenset[str]:
    """The topics that the group consumes, or may consume, by POP: no consumer has a share of them.

    Consumers that rebalance themselves pull (`RebalanceImpl.clientRebalance`). For others the brokers' mode for topic
    and group counts, or, once they own queues of the topic, that.
    """
    reported = frozenset[str]().union(*(report.pop_topics or () for report in group.reports.values()))
    ids = set(group.client_ids or ())
    if ids and all(each in group.reports and group.reports[each].client_rebalance for each in ids):
        return reported
    pulled = {queue.topic for queue, state in group.queues.items() if state.owners}
    modes = group.request_modes or {}
    return reported | {topic for topic, own in modes.items() if _POP in own and topic not in pulled}


def pop_refusal(group: ConsumerGroup, topics: Iterable[str]) -> DataError:
    """The error for topics that are consumed by POP; without topics, for the whole group."""
    what = ", ".join(sorted(topics))
    return DataError(
        f"group {group.group} consumes {what}{' ' if what else ''}by POP: several consumers may take messages from one "
        "queue, and none owns it",
        hint="to see who may read each queue, use show-owners; adding or removing a consumer moves no queue",
        group=group.group,
        code="pop-consumption",
    )


def behind_proxy(group: ConsumerGroup) -> str | None:
    """Evidence that the group is consumed although no consumer is visible; None without any.

    A Proxy in cluster mode lists its clients only on request (`--proxy`). Their receive requests wait at brokers under
    the group's name, and brokers count the messages that they give out.
    """
    if group.views is None or group.client_ids:
        return None
    if group.polling_num:
        waiting = counted(group.polling_num, "receive request")
        return f"{waiting} of the group {'waits' if group.polling_num == 1 else 'wait'} there"
    if group.consume_tps:
        return f"they gave it {group.consume_tps:.3g} messages per second over the last minute"
    read = max((state.last_timestamp or 0 for state in group.queues.values()), default=0)
    if group.seen.at is None or not read:
        return None
    age_ms = group.seen.at.timestamp() * 1000 - read
    if age_ms > _RECENT_MS:
        return None
    return f"it has read a message that was stored {max(age_ms, 0) / 1000:.0f} s before"


def only_grpc(group: ConsumerGroup) -> bool:
    return bool(group.client_ids) and all(map(is_grpc, group.client_ids or ()))


def ask_proxy(group: ConsumerGroup | None) -> str:
    """The hint for a group whose consumers may be behind a Proxy, because none is visible."""
    if group is None or group.proxies is None:
        return "to list a Proxy's consumers, pass its remoting port, --proxy HOST:8080 (for a file, to fetch-routes)"
    if not group.proxies:
        return "none of the given Proxies answered"
    return f"pass each Proxy with --proxy; {_named_proxies(group)} lists no consumer of the group"


def is_surely_offline(group: ConsumerGroup) -> bool:
    """Whether brokers and Proxies list no consumer; without a Proxy's answer, the group may be behind one."""
    return group.client_ids == () and bool(group.proxies)


def nobody_online(name: str | None, group: ConsumerGroup | None, hint: str, more: str = "") -> DataError:
    title = "the group" if name is None else f"group {name}"
    if group is None:
        problem = f"{title} has no consumer online"
    elif group.proxies and is_surely_offline(group):
        problem = f"{title} has no consumer online, at brokers or at {_named_proxies(group)}"
    else:
        unpolled = ", and no broker holds a receive request of it" if group.polling_num == 0 else ""
        problem = f"no consumer of {title} is visible{unpolled}: it is offline, or behind a Proxy"
        hint += f"; {ask_proxy(group)}"
    return DataError(problem + more, hint=hint, group=name, code="no-consumer-online")


def _named_proxies(group: ConsumerGroup) -> str:
    return "Proxy " + ", ".join(view.proxy_addr for view in group.proxies or ())


def refusals(group: ConsumerGroup) -> dict[Reason, DataError]:
    """Why the clients of the group do not share its queues among themselves, or why that is unknown."""
    found: dict[Reason, DataError] = {}
    name, topics = group.group, group.own_topics
    if group.message_model == BROADCASTING:
        problem = f"group {name} is BROADCASTING: every consumer reads every queue, so nothing is rebalanced"
        hint = "adding or removing a consumer moves no queue"
        found["broadcasting"] = DataError(problem, hint=hint, group=name, code="broadcasting-group")
    if group.consume_type == CONSUME_POP:
        found["pop"] = pop_refusal(group, ())
    elif topics and popped_topics(group).issuperset(topics):
        found["pop"] = pop_refusal(group, topics)
    if (evidence := behind_proxy(group)) is not None:
        probably, left = "probably ", "; or the consumers have left within the last minute"
        if group.polling_num:
            probably = left = ""
        problem = f"brokers list no consumer of group {name}, but {evidence}: its consumers are {probably}connected to"
        problem += " a Proxy (gRPC), so they are not visible here"
        found["hidden"] = DataError(problem, hint=ask_proxy(group) + left, group=name, code="behind-proxy")
    if group.client_ids is None:
        problem = f"{group.seen.where} does not report the consumers of group {name}"
        hint = "name the consumers with --consumers ID,ID,… or --consumers @FILE, or give a number of placeholders"
        found["unknown"] = DataError(problem, hint=hint, group=name, code="consumers-unknown")
    elif only_grpc(group):
        found["grpc"] = DataError(
            f"the consumers of group {name} look like gRPC clients ({group.client_ids[0]}): the Proxy gives them "
            "messages, so no client owns a queue",
            hint="simulate-receive shows how long messages wait; "
            "if these are not gRPC clients, pass --consumers ID,ID,…",
            group=name,
            code="behind-proxy",
        )
    return found


def rebalanced_members(group: ConsumerGroup) -> tuple[str, ...]:
    """The consumers that allocate queues among themselves, sorted, duplicates kept.

    Consumers share queues by the brokers' lists, so gRPC clients that only a Proxy lists count only where no broker
    lists a consumer.
    """
    ids, at_brokers = group.client_ids or (), {i for view in group.views or () for i in view.client_ids}
    return tuple(i for i in ids if i in at_brokers or not is_grpc(i)) if at_brokers else ids


def unusual_findings(group: ConsumerGroup) -> Iterator[Finding]:
    """Findings on ways to consume for which no prediction is certain."""
    if group.consume_type == CONSUME_ACTIVELY and not only_grpc(group):
        text = f"group {group.group} pulls: consumers that assign queues to themselves do not rebalance"
        yield Finding("pull-consumers", text, group.group, INFO)
    if any(report.client_rebalance is False for report in group.reports.values()):
        text = "brokers, which have only AVG and AVG_BY_CIRCLE, assign these consumers' queues (clientRebalance=false)"
        yield Finding("broker-rebalance", text, severity=INFO)


def assigned_by_broker(group: ConsumerGroup | None, client_ids: Iterable[str]) -> tuple[bool, dict[str, bool]]:
    """Whether brokers assign the queues of most of these consumers, and the consumers that differ."""
    reports = group.reports if group is not None else {}
    ids = [i for i in dict.fromkeys(client_ids) if i in reports and reports[i].client_rebalance is not None]
    asks = {i: reports[i].client_rebalance is False for i in ids}
    usual = 2 * sum(asks.values()) > len(asks)
    return usual, {i: own for i, own in asks.items() if own != usual}


def shared_id_findings(client_ids: Iterable[str]) -> Iterator[Finding]:
    for client_id, processes in Counter(client_ids).items():
        if processes > 1:
            text = (
                f"{processes} processes share the client ID {client_id}: each reads the same queues, and under AVG and "
                "AVG_BY_CIRCLE the other shares stay unassigned; give each process its own instanceName"
            )
            yield Finding("duplicate-client-id", text, severity=ERROR, consumers=(client_id,))


def subscriptions(group: ConsumerGroup) -> dict[str, frozenset[str]]:
    """Client ID → reported topics, without the retry topic."""
    reported = {i: report.topics for i, report in group.reports.items() if report.topics is not None}
    return {i: frozenset(t for t in topics if not t.startswith(RETRY_PREFIX)) for i, topics in reported.items()}


def other_subscriptions(group: ConsumerGroup) -> tuple[str, ...]:
    sets = subscriptions(group)
    ids = sorted(sets, key=sort_key)
    usual = Counter(sets[client_id] for client_id in ids).most_common(1)
    return tuple(client_id for client_id in ids if sets[client_id] != usual[0][0])


def broadcasting_finding(title: str, group: str | None) -> Finding:
    text = f"{title} is BROADCASTING: each consumer reads every queue, so duplicate owners are correct"
    return Finding("broadcasting", text, group, INFO)


def sort_findings(names: Sequence[str], what: str) -> Iterator[Finding]:
    """Report names that sort unexpectedly: 10.0.0.10 before 10.0.0.9."""
    for first, second in pairwise(sorted(set(names), key=sort_key)):
        # Numbers compare by length, then by digit: `int` refuses more than 4,300 digits, which a name may have.
        parts = (
            [(len(n := p.lstrip("0")), n) if p[0] in "0123456789" else p for p in _PARTS.split(text) if p]
            for text in (first, second)
        )
        one, other = next(((a, b) for a, b in zip(*parts, strict=False) if a != b), ("", ""))
        if isinstance(one, tuple) and isinstance(other, tuple) and one > other:
            text = f"{what} sort by character, not by number: {first} comes before {second}"
            yield Finding("surprising-order", text)
            return


def reported_strategies(group: ConsumerGroup) -> dict[str, str]:
    """Client ID → the strategy that it reports; an unknown class keeps its class name."""
    classes = {client_id: report.strategy_class for client_id, report in sorted(group.reports.items())}
    return {client_id: JAVA_CLASSES.get(name, name) for client_id, name in classes.items() if name is not None}


def is_orderly(group: ConsumerGroup) -> bool | None:
    """True if a consumer reports that it consumes in order; None unless all report."""
    known = [None if report.evidence is None else report.evidence.orderly for report in group.reports.values()]
    if any(known):
        return True
    return None if None in known or set(group.client_ids or ()) - group.reports.keys() else False


def unlocked_queues(routes: Iterable[TopicRouteData], lost_masters: Collection[str] = ()) -> list[MessageQueue]:
    """The queues on brokers without a master; only masters lock queues (`RebalanceImpl.lock`, `lockAll`)."""
    found: list[MessageQueue] = []
    for route in routes:
        masters = {broker.broker_name for broker in route.broker_datas if broker.has_master}.difference(lost_masters)
        if not masters.issuperset(data.broker_name for data in route.queue_datas):
            found += [queue for queue in route.subscribe_queues() if queue.broker_name not in masters]
    return found


def without_lock(routes: Iterable[TopicRouteData], lost: Collection[str] = (), *, orderly: bool | None) -> int | None:
    """The number of queues that no broker locks, with these masters `lost` too.

    None where it depends on whether the group is orderly, or whether a slave acts as the master (5.x: a broker with
    enableActingMaster, where the NameServers have supportActingMaster).
    """
    if orderly is False:
        return 0
    routes = tuple(routes)
    queues = unlocked_queues(routes, lost)
    names = {queue.broker_name for queue in queues}
    acting = any(b.enable_acting_master for route in routes for b in route.broker_datas if b.broker_name in names)
    return None if queues and (orderly is None or acting) else len(queues)


class GroupSdks(Struct, frozen=True):
    usual: str = JAVA.name  # of most consumers, and assumed for future ones
    sdk_of: Mapping[str, str] = field(default_factory=dict)  # client ID → its library, where it is not the usual one
    assumed: frozenset[str] = frozenset()  # client IDs whose library or its rules are unknown; the nearest is used
    findings: tuple[Finding, ...] = ()

    def numbers(self, client_ids: Iterable[str]) -> Counter[str]:
        return Counter(self.sdk_of.get(client_id, self.usual) for client_id in client_ids)

    def uses(self, client_ids: Iterable[str]) -> tuple[SdkUse, ...]:
        """The libraries of these consumers that own queues, the most usual first."""
        ids = owning_ids(client_ids)
        numbers, guessed = self.numbers(ids), self.numbers(self.assumed.intersection(ids))
        return tuple(
            SdkUse(name, sdk.library, sdk.newest, sdk.oldest, sdk.vectors, sdk.live, numbers[name], guessed[name])
            for name, sdk in SDKS.items()
            if numbers[name]
        )


def owning_ids(client_ids: Iterable[str]) -> list[str]:
    """Each client ID once, without gRPC clients, which own no queue."""
    return [client_id for client_id in dict.fromkeys(client_ids) if not is_grpc(client_id)]


def group_sdks(
    group: ConsumerGroup | None,
    client_ids: Iterable[str],
    *,
    given: str | None = None,  # the library of all, such as `go` or `go@2.1.2`; it replaces what connections report
    given_of: Mapping[str, str] | None = None,  # client ID → its own library; it replaces `given`
) -> GroupSdks:
    named = given_of or {}
    connections = {} if group is None or given is not None else group.connection_of
    guesses: dict[str, SdkGuess] = {}
    assumed: dict[str, dict[str, str]] = {}  # library whose rules are assumed → client ID → what it runs
    for i in owning_ids(client_ids):
        text, seen = named.get(i, given), connections.get(i)
        language, version = (None, None) if seen is None else (seen.language, seen.version)
        guesses[i] = sdk_of_connection(language, version) if text is None else sdk_named(text)
        if text is None and language is not None:
            text = f"{language} {version or ''}".strip()
        if guesses[i].assumed and text is not None:
            assumed.setdefault(guesses[i].sdk.name, {})[i] = text
    findings = tuple(
        Finding(
            "assumed-sdk",
            f"consumers run {', '.join(sorted(set(run.values())))}, whose rules are not known: predicted by those of "
            f"{SDKS[name]}, the nearest",
            severity=INFO,
            consumers=tuple(run),
        )
        for name, run in sorted(assumed.items(), key=lambda each: [*SDKS].index(each[0]))
    )
    numbers = Counter[str](guess.sdk.name for guess in guesses.values())
    usual = max(SDKS, key=lambda name: numbers[name]) if numbers else sdk_named(given or JAVA.name).sdk.name
    guesses |= {i: sdk_named(text) for i, text in named.items() if i not in guesses}  # consumers to come
    others = {i: guess.sdk.name for i, guess in guesses.items() if guess.sdk.name != usual}
    return GroupSdks(usual, others, frozenset(i for i, guess in guesses.items() if guess.assumed), findings)


def mixed_finding(sdks: GroupSdks, client_ids: Iterable[str], unassigned: int, several: int) -> Iterator[Finding]:
    """A finding for several libraries, graver with queues without exactly one owner."""
    ids = owning_ids(client_ids)
    numbers = sdks.numbers(ids)
    if len(numbers) > 1:
        texts = ", ".join(f"{name} ({number})" for name, number in numbers.most_common())
        what = "each queue still has one owner"
        if unassigned or several:
            what = f"{counted(unassigned, 'queue')} unassigned and {several} with duplicate owners, as predicted"
        yield Finding(
            "mixed-sdks",
            f"consumers run different client libraries: {texts}; each computes its own share by its own rules: {what}",
            severity=WARNING if unassigned or several else INFO,
            consumers=tuple(i for i in ids if sdks.sdk_of.get(i, sdks.usual) != sdks.usual),
        )
