"""Which of a group's members take part in client-side rebalance, and what is odd about them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from rmqlb.engine.allocate.rules import JAVA_CLASSES
from rmqlb.engine.assignment.pop_and_proxy import only_grpc, pop_refusal, popped_topics
from rmqlb.errors import DataError
from rmqlb.model.finding import ERROR, INFO, Finding
from rmqlb.model.group import BROADCASTING, CONSUME_ACTIVELY, CONSUME_POP, RETRY_PREFIX, ConsumerGroup, is_grpc
from rmqlb.model.java import sort_key

_DIGITS = r"([0-9]+)"


def rebalanced_members(
    group: ConsumerGroup, *, broadcasting_too: bool = False, pop_too: bool = False
) -> tuple[str, ...]:
    """The group's members, sorted, duplicates kept, if they allocate queues among themselves (raises DataError).

    With `broadcasting_too` a broadcasting group is no mistake, although each of its members takes every queue; with
    `pop_too` one that consumes by POP is none.
    """
    must_rebalance(group, broadcasting_too=broadcasting_too, pop_too=pop_too)
    ids = group.client_ids
    if ids is None:
        raise DataError(
            f"the consumers of group {group.group} are not in {group.seen.where}",
            hint="name them: --consumers ID,ID,… or --consumers @FILE, or a number of placeholders",
            group=group.group,
            code="consumers-unknown",
        )
    if not pop_too:
        must_not_be_grpc(group)
    return _counted(group, ids)


def _counted(group: ConsumerGroup, client_ids: tuple[str, ...]) -> tuple[str, ...]:
    """Those that the others count: consumers at brokers share the queues by what brokers list.

    So gRPC clients that only a Proxy lists are counted where only Proxies list consumers at all.
    """
    at_brokers = {client_id for view in group.views or () for client_id in view.client_ids}
    if not at_brokers:
        return client_ids
    return tuple(i for i in client_ids if i in at_brokers or not is_grpc(i))


def must_not_be_grpc(group: ConsumerGroup) -> None:
    """Refuse a group whose visible consumers are all gRPC clients, which a Proxy gives messages (raises DataError)."""
    ids = group.client_ids or ()
    if only_grpc(group):
        raise DataError(
            f"the consumers of group {group.group} look like gRPC clients ({ids[0]}): the Proxy gives them messages, "
            "no client owns a queue",
            hint="simulate-receive says how long messages wait; if they are none, name them: --consumers ID,ID,…",
            group=group.group,
            code="behind-proxy",
        )


def must_rebalance(group: ConsumerGroup, *, broadcasting_too: bool = False, pop_too: bool = False) -> None:
    """Refuse a group whose queues are not dealt out by its clients (raises DataError)."""
    if group.message_model == BROADCASTING and not broadcasting_too:
        raise DataError(
            f"group {group.group} is BROADCASTING: every consumer reads every queue, nothing is rebalanced",
            hint="adding or removing a consumer moves no queue",
            group=group.group,
            code="broadcasting-group",
        )
    if pop_too:
        return
    if group.consume_type == CONSUME_POP:
        raise pop_refusal(group, ())
    topics = group.own_topics
    if topics and popped_topics(group).issuperset(topics):
        raise pop_refusal(group, topics)


def member_findings(group: ConsumerGroup) -> Iterator[Finding]:
    """What is odd about the members as they were seen."""
    ids = group.client_ids or ()
    yield from shared_id_findings(ids)
    if group.has_split_view:
        listed = [Counter(connection.client_id for connection in view.connections) for view in group.views or ()]
        views = "; ".join(
            f"{view.broker_addr or view.seen.where}: {len(view.connections)}" for view in group.views or ()
        )
        yield Finding(
            "split-consumer-view",
            f"brokers list different consumers of group {group.group} ({views}); all of them are counted",
            group.group,
            consumers=tuple(i for i in dict.fromkeys(ids) if len({each[i] for each in listed}) > 1),
        )
    grpc = tuple(dict.fromkeys(filter(is_grpc, ids)))
    if grpc and len(grpc) < len(set(ids)):
        counted = set(_counted(group, ids)).issuperset(grpc)
        of_others = "the others count them all the same, and their shares stay unassigned"
        yield Finding(
            "behind-proxy",
            "some consumers look like gRPC clients, which own no queue; "
            + (of_others if counted else "a Proxy gives them messages of the same queues that the others own"),
            consumers=grpc,
        )
    yield from unusual_findings(group)
    yield from _subscription_findings(group)


def unusual_findings(group: ConsumerGroup) -> Iterator[Finding]:
    """Ways to consume of which no prediction is certain."""
    if group.consume_type == CONSUME_ACTIVELY and not only_grpc(group):
        yield Finding(
            "pull-consumers",
            f"group {group.group} pulls: consumers that assign queues to themselves take no part in the rebalance",
            group.group,
            INFO,
        )
    if any(report.client_rebalance is False for report in group.reports.values()):
        yield Finding(
            "broker-rebalance",
            "brokers assign these consumers' queues (clientRebalance=false), and they have AVG and AVG_BY_CIRCLE only",
            severity=INFO,
        )


def assigned_by_broker(group: ConsumerGroup | None, client_ids: Iterable[str]) -> tuple[bool, dict[str, bool]]:
    """Whether most of these let brokers assign their queues, and of those that report it, which differ from that."""
    reports = group.reports if group is not None else {}
    ids = [i for i in dict.fromkeys(client_ids) if i in reports and reports[i].client_rebalance is not None]
    asks = {i: reports[i].client_rebalance is False for i in ids}
    usual = 2 * sum(asks.values()) > len(asks)
    return usual, {i: its for i, its in asks.items() if its != usual}


def shared_id_findings(client_ids: Iterable[str]) -> Iterator[Finding]:
    """Ids that several processes carry."""
    for client_id, processes in Counter(client_ids).items():
        if processes > 1:
            yield Finding(
                "duplicate-client-id",
                f"{processes} processes share the client ID {client_id}: each reads the same queues, and under AVG and "
                "AVG_BY_CIRCLE the other shares stay unassigned; give each process its own instanceName",
                severity=ERROR,
                consumers=(client_id,),
            )


def subscriptions(group: ConsumerGroup) -> dict[str, frozenset[str]]:
    """Client ID → the topics that it subscribes to, without the one for retries, of the consumers that report them."""
    return {
        client_id: frozenset(topic for topic in report.topics if not topic.startswith(RETRY_PREFIX))
        for client_id, report in group.reports.items()
        if report.topics is not None
    }


def other_subscriptions(group: ConsumerGroup) -> tuple[str, ...]:
    """The consumers that subscribe to other topics than most of them."""
    sets = subscriptions(group)
    ids = sorted(sets, key=sort_key)
    usual = Counter(sets[client_id] for client_id in ids).most_common(1)
    return tuple(client_id for client_id in ids if sets[client_id] != usual[0][0])


def _subscription_findings(group: ConsumerGroup) -> Iterator[Finding]:
    sets = subscriptions(group)
    if len(set(sets.values())) > 1:
        ids = sorted(sets, key=sort_key)
        other = next(client_id for client_id in ids if sets[client_id] != sets[ids[0]])
        unlisted = sorted(frozenset[str]().union(*sets.values()).difference(group.topics or ())) if group.topics else []
        more = f"; brokers do not list {', '.join(unlisted)} now, --topic shows what they do not" if unlisted else ""
        yield Finding(
            "subscription-mismatch",
            f"consumers of group {group.group} subscribe to different topics ({ids[0]} and {other}): "
            f"the share of one that does not subscribe to a topic stays unassigned{more}",
            group.group,
            consumers=other_subscriptions(group),
        )


def broadcasting_finding(title: str, group: str | None) -> Finding:
    """What it means that a group broadcasts; the title names it in a sentence."""
    text = f"{title} is BROADCASTING: each consumer reads every queue, and duplicate owners are as it should be"
    return Finding("broadcasting", text, group, INFO)


def sort_findings(names: Sequence[str], what: str) -> Iterator[Finding]:
    """A finding when the names do not sort as a person expects: 10.0.0.10 stands before 10.0.0.9."""
    unique = sorted(set(names), key=sort_key)
    for first, second in pairwise(unique):
        if _is_larger_number(first, second):
            yield Finding(
                "surprising-order", f"{what} sort by character, not by number: {first} stands before {second}"
            )
            return


def _is_larger_number(first: str, second: str) -> bool:
    """Where the names first differ both have a number, and the first has the larger one."""
    one, other = next(((a, b) for a, b in zip(_parts(first), _parts(second), strict=False) if a != b), ((), ()))
    return isinstance(one, tuple) and isinstance(other, tuple) and one > other


def _parts(text: str) -> list[str | tuple[int, str]]:
    """Numbers by length, then by digit: `int` refuses one of more than 4,300 digits, which a name may have."""
    parts = [(part, part.lstrip("0")) for part in re.split(_DIGITS, text) if part]
    return [(len(number), number) if part[0] in "0123456789" else part for part, number in parts]


def reported_strategies(group: ConsumerGroup) -> dict[str, str]:
    """Client id → the strategy's name that it reports; a class that is not RocketMQ's own keeps its class name."""
    return {
        client_id: JAVA_CLASSES.get(report.strategy_class, report.strategy_class)
        for client_id, report in sorted(group.reports.items())
        if report.strategy_class is not None
    }
