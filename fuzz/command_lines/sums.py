"""Sums: every figure of a result is what its parts add up to.

Each function takes the `data` of a result in JSON, and yields a sentence for each thing that does not add up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from math import isclose
from typing import Any

Json = Any
Sum = Callable[[Json], Iterator[str]]

_EVERYBODY = "BROADCASTING"
"""What stands for the strategy of a group whose consumers all read every queue: several owners are as it should be."""
MOVES = {
    "moved": "moved",
    "newlyAssigned": "assigned",
    "newlyUnassigned": "unassigned",
    "added": "added",
    "removed": "removed",
}
"""Figure of a plan → what it counts."""

STATUSES = {
    "withErrors": "error",
    "withWarnings": "warning",
    "unknown": "unknown",
    "offline": "offline",
    "inOrder": "inOrder",
}
"""Figure of an overview → the status that it counts."""


def differ(what: str, figure: Any, parts: Any) -> Iterator[str]:
    """A sentence if two figures differ; floats may do so in their last digits."""
    if (
        isinstance(figure, float)
        and isinstance(parts, int | float)
        and isclose(figure, parts, rel_tol=1e-9, abs_tol=1e-6)
    ):
        return
    if figure != parts:
        yield f"{what}: {figure}, and its parts give {parts}"


def plan_adds_up(data: Json) -> Iterator[str]:
    """Changes and owners queue by queue against the summary and the consumers."""
    queues = [queue for topic in data["topics"] for queue in topic["queues"]]
    changes = Counter(queue["change"] for queue in queues)
    summary = data["summary"]
    for name, change in MOVES.items():
        yield from differ(name, summary[name], changes[change])
    yield from differ("all queues", len(queues), changes["same"] + sum(summary[name] for name in MOVES))
    for end, key, absent in (("before", "ownersBefore", "added"), ("after", "ownersAfter", "removed")):
        there = [queue[key] for queue in queues if queue["change"] != absent]
        spread = summary[end]
        yield from differ(f"queues {end}", spread["queues"], len(there))
        yield from differ(f"unassigned {end}", spread["unassigned"], sum(not owners for owners in there))
        several = 0 if data["strategy"] == _EVERYBODY else sum(len(set(owners)) > 1 for owners in there)
        yield from differ(f"duplicate owners {end}", spread["duplicateOwners"], several)
        if data["consumers"]:
            yield from _spread_adds_up(data["consumers"], spread, end)
        else:  # nobody owns a queue: by POP, through a Proxy, or because nobody is there
            listed = {*data[f"sortedConsumers{end.title()}"]}
            yield from differ(f"consumers {end}", spread["consumers"], len(listed))
            yield from differ(f"queues per consumer {end}", spread["queuesPerConsumer"], None)
    for queue in queues:
        yield from _change_is_so(queue, broadcasting=data["strategy"] == _EVERYBODY)
    for consumer in data["consumers"]:
        yield from _consumer_adds_up(consumer, queues)


def _spread_adds_up(consumers: Json, spread: Json, end: str) -> Iterator[str]:
    """Idle, least and most of the consumers; processes that share an ID are one."""
    owned_by = [each[f"queues{end.title()}"] for each in consumers if each[f"processes{end.title()}"]]
    yield from differ(f"consumers {end}", spread["consumers"], len(owned_by))
    yield from differ(f"idle {end}", spread["idle"], owned_by.count(0))
    each = spread["queuesPerConsumer"]
    if not owned_by or each is None:
        yield from differ(f"queues per consumer {end}", each, None)
        return
    yield from differ(f"fewest {end}", each["min"], min(owned_by))
    yield from differ(f"most {end}", each["max"], max(owned_by))
    yield from differ(f"mean {end}", each["mean"], sum(owned_by) / len(owned_by))
    if sum(owned_by):
        yield from differ(f"imbalance {end}", spread["imbalance"], max(owned_by) * len(owned_by) / sum(owned_by))


def _change_is_so(queue: Json, *, broadcasting: bool) -> Iterator[str]:
    before, after = queue["ownersBefore"], queue["ownersAfter"]
    if (queue["change"], bool(before)) == ("added", False) or (queue["change"], bool(after)) == ("removed", False):
        return
    if queue["change"] in ("added", "removed"):
        expected = "another one"
    elif before == after or (broadcasting and before and after):
        expected = "same"
    elif not before:
        expected = "assigned"
    else:
        expected = "moved" if after else "unassigned"
    yield from differ(f"change of {queue['brokerName']}:{queue['queueId']}", queue["change"], expected)


def _consumer_adds_up(consumer: Json, queues: Json) -> Iterator[str]:
    mine = consumer["clientId"]
    owned_by = {
        end: {number for number, queue in enumerate(queues) if mine in (queue[f"owners{end}"] or ())}
        for end in ("Before", "After")
    }
    for end, numbers in owned_by.items():
        yield from differ(f"queues of {mine} {end.lower()}", consumer[f"queues{end}"], len(numbers))
    yield from differ(f"gained by {mine}", consumer["gained"], len(owned_by["After"] - owned_by["Before"]))
    yield from differ(f"lost by {mine}", consumer["lost"], len(owned_by["Before"] - owned_by["After"]))


def owners_add_up(data: Json) -> Iterator[str]:
    """Owners queue by queue against each strategy's figures."""
    for strategy in data["strategies"]:
        name = strategy["strategy"]
        beyond = strategy["queues"] < len(data["queues"])
        owned = [queue["owners"][name] for queue in data["queues"] if not (beyond and _is_configs_alone(queue, name))]
        yield from differ(f"{name}: queues", strategy["queues"], len(owned))
        yield from differ(f"{name}: unassigned", strategy["unassigned"], sum(not owners for owners in owned))
        several = 0 if name == _EVERYBODY else sum(len(set(owners)) > 1 for owners in owned)
        yield from differ(f"{name}: duplicate owners", strategy["duplicateOwners"], several)
        owned_by = Counter(owner for owners in owned for owner in set(owners))
        for consumer in strategy["consumers"]:
            mine = consumer["clientId"]
            yield from differ(f"{name}: queues of {mine}", consumer["queues"], owned_by[mine])
        numbers = [owned_by[client_id] for client_id in set(data["sortedConsumers"])]
        yield from differ(f"{name}: idle", strategy["idle"], numbers.count(0))
        each = strategy["queuesPerConsumer"]
        yield from differ(f"{name}: most", each and each["max"], max(numbers, default=None))


def _is_configs_alone(queue: Json, name: str) -> bool:
    """A queue that no route has: only CONFIG's list names it, and it is no unassigned one of the others."""
    owners = queue["owners"]
    return (
        not owners[name]
        and queue["ownersObserved"] is None
        and any(owners[other] for other in owners if "CONFIG" in other)
    )


def rebalance_adds_up(data: Json) -> Iterator[str]:
    """Intervals cover the time; queues, consumers and figures are what they add up to."""
    figures, queues = data["figures"], data["queues"]
    for queue in queues:
        yield from _intervals_add_up(queue, data["endMs"], broadcasting=data["scenario"]["broadcasting"])
    yield from differ("taken", figures["taken"], sum(len(queue["takeovers"]) for queue in queues))
    for state, named in (("unassigned", "Gap"), ("duplicate-owners", "Overlap"), ("outage", "Outage")):
        yield from _kind_adds_up(state, named, data)
    longest = max((queue["unreadMs"] for queue in queues), default=0)
    yield from differ("unreadMs", figures["unreadMs"], longest)
    for consumer in data["consumers"]:
        mine = consumer["clientId"]
        for key, place in (("queuesAtStart", 0), ("queuesAtEnd", -1)):
            owned_by = sum(mine in queue["intervals"][place]["owners"] for queue in queues if queue["intervals"])
            yield from differ(f"{key} of {mine}", consumer[key], owned_by)
        taken = sum(takeover["clientId"] == mine for queue in queues for takeover in queue["takeovers"])
        yield from differ(f"taken by {mine}", consumer["taken"], taken)


def _kind_adds_up(state: str, named: str, data: Json) -> Iterator[str]:
    """Of one kind of window: all of it, the longest, the queues that have it, and those that have it at the end."""
    figures, queues, total = data["figures"], data["queues"], f"total{named}Ms"
    lengths = [queue[total] for queue in queues]
    yield from differ(total, float(figures[total]), float(sum(lengths)))
    longest = f"longest{named}Ms"
    yield from differ(longest, figures[longest], max((queue[longest] for queue in queues), default=0))
    yield from differ(f"queuesWith{named}", figures[f"queuesWith{named}"], sum(length > 0 for length in lengths))
    at_end = sum(queue["intervals"][-1]["state"] == state for queue in queues if queue["intervals"])
    if state != "duplicate-owners" or not data["scenario"]["broadcasting"]:
        yield from differ(f"queuesWith{named}AtEnd", figures[f"queuesWith{named}AtEnd"], at_end)


def _intervals_add_up(queue: Json, end_ms: float, *, broadcasting: bool) -> Iterator[str]:
    name, intervals = f"{queue['brokerName']}:{queue['queueId']}", queue["intervals"]
    if not intervals:
        return
    yield from differ(f"{name} begins", intervals[0]["fromMs"], 0)
    yield from differ(f"{name} ends", intervals[-1]["toMs"], end_ms)
    for one, following in pairwise(intervals):
        yield from differ(f"{name} goes on", following["fromMs"], one["toMs"])
    for state, named in (("unassigned", "Gap"), ("duplicate-owners", "Overlap"), ("outage", "Outage")):
        if state != "duplicate-owners" or not broadcasting:
            lengths = [each["toMs"] - each["fromMs"] for each in intervals if each["state"] == state]
            yield from differ(f"{name} {named}", float(queue[f"total{named}Ms"]), float(sum(lengths)))


def _groups_and_producers_add_up(data: Json) -> Iterator[str]:
    """What happens to all groups together, and what all producers send."""
    summary, figures = data["summary"], [group["figures"] for group in data["groups"]]
    for name in ("queuesWithGap", "queuesWithOverlap", "queuesWithOutage", "queuesUnreadAtEnd"):
        yield from differ(name, summary[name], sum(each[name] for each in figures))
    for name in ("longestGapMs", "longestOverlapMs", "longestOutageMs", "unreadMs"):
        yield from differ(name, summary[name], max((each[name] for each in figures), default=0))
    misassigned = sum(map(_misassigned_throughout, data["groups"]))
    yield from differ("queuesMisassignedThroughout", summary["queuesMisassignedThroughout"], misassigned)
    for producer in data["producers"]:
        yield from (f"producers of {producer['topic']}: {sentence}" for sentence in send_adds_up(producer))
    for name in ("messages", "lost", "retried"):
        yield from differ(name, summary[name], sum(each["totals"][name] for each in data["producers"]))


def _misassigned_throughout(data: Json) -> int:
    """Queues without one owner at both ends; with BROADCASTING several are as it should be."""
    bad = {"unassigned"} if data["scenario"]["broadcasting"] else {"unassigned", "duplicate-owners"}
    ends = [
        (each["intervals"][0]["state"], each["intervals"][-1]["state"]) for each in data["queues"] if each["intervals"]
    ]
    return sum(first in bad and last in bad for first, last in ends)


def send_adds_up(data: Json) -> Iterator[str]:
    """Messages, attempts and time: totals against brokers, queues, slices and the attempts themselves."""
    totals = data["totals"]
    yield from differ("messages", totals["messages"], totals["stored"] + totals["lost"])
    yield from differ("lost", totals["lost"], sum(totals["lostBy"].values()))
    for parts in ("queues", "brokers"):
        yield from differ(f"attempts by {parts}", totals["attempts"], sum(each["attempts"] for each in data[parts]))
        yield from differ(f"failed by {parts}", totals["failedAttempts"], sum(each["failed"] for each in data[parts]))
        for each in data[parts]:
            if each["attempts"] > each["picks"]:
                yield f"{each['brokerName']}: more attempts than picks: {each}"
    yield from differ(
        "picks", sum(each["picks"] for each in data["queues"]), sum(each["picks"] for each in data["brokers"])
    )
    stored = sum(each["stored"] for each in data["brokers"])
    if stored < totals["stored"]:
        yield f"brokers stored {stored} of {totals['stored']}"
    if stored:
        yield from differ("shares", 1.0, sum(each["share"] for each in data["brokers"]))
    for each in data["brokers"]:
        if each["isolatedMs"] > totals["lastedMs"] + 0.001:
            yield f"{each['brokerName']} is isolated for {each['isolatedMs']} of {totals['lastedMs']} ms"
    yield from _slices_add_up(data)
    yield from _attempts_add_up(data)


def _slices_add_up(data: Json) -> Iterator[str]:
    slices = data["timeline"]
    for one, following in pairwise(slices):
        yield from differ("slices go on", following["fromMs"], one["toMs"])
    for one in slices:
        for broker in one["brokers"]:
            if broker["isolatedMs"] > one["toMs"] - one["fromMs"] + 0.001:
                yield f"a slice from {one['fromMs']} to {one['toMs']} ms has {broker['isolatedMs']} ms isolated"
    if slices:
        yield from differ("lost by slices", data["totals"]["lost"], sum(one["lost"] for one in slices))
        figure = sum(broker["attempts"] for one in slices for broker in one["brokers"])
        yield from differ("attempts by slices", data["totals"]["attempts"], figure)


def _attempts_add_up(data: Json) -> Iterator[str]:
    attempts = data["attempts"]
    if attempts is None:
        return
    yield from differ("attempts listed", data["totals"]["attempts"], len(attempts))
    by_queue = Counter((each["brokerName"], each["queueId"]) for each in attempts)
    for queue in data["queues"]:
        place = queue["brokerName"], queue["queueId"]
        yield from differ(f"attempts at {place}", queue["attempts"], by_queue[place])


def check_adds_up(data: Json) -> Iterator[str]:
    """Verdicts rule by rule against the summary and the lists."""
    summary = data["summary"]
    verdicts = ("passed", "failed", "waived", "incomplete", "notApplicable")
    # A rule that fits nothing, or nothing that its limits apply to, is incomplete as a whole.
    whole = Counter(each["rule"] for each in data["incomplete"] if each["limit"] is None)
    for part, rules in ((summary, whole.total()), *((rule, whole[rule["rule"]]) for rule in data["rules"])):
        yield from differ("limits", part["limits"] + rules, sum(part[verdict] for verdict in verdicts))
    for verdict in (*verdicts, "limits"):
        yield from differ(verdict, summary[verdict], sum(rule[verdict] for rule in data["rules"]))
    for verdict, listed in (("failed", "failed"), ("waived", "waived")):
        yield from differ(listed, summary[verdict], len(data[listed]))


def groups_add_up(data: Json) -> Iterator[str]:
    """Each group's status is that of its worst finding; the summary counts the groups, where all are figure.

    A group without a visible consumer is offline, also where its lag is unknown and that is a warning.
    """
    lines, summary = data["groups"], data["summary"]
    for line in lines:
        found = {(finding["code"], finding["severity"]) for finding in line["findings"]}
        severities = {severity for _, severity in found - {("no-consumer-online", "warning")}}
        worst = next((each for each in ("error", "warning") if each in severities), None)
        yield from differ(f"status of {line['group']}", line["status"] in ("error", "warning"), worst is not None)
        if worst is not None:
            yield from differ(f"status of {line['group']}", line["status"], worst)
    if len(lines) != summary["groups"]:
        return
    statuses = Counter(line["status"] for line in lines)
    for key, status in STATUSES.items():
        yield from differ(key, summary[key], statuses[status])
    for key in ("queues", "duplicateOwners", "idle", "duplicateClientIds", "mismatches"):
        yield from differ(key, summary[key], sum(line[key] or 0 for line in lines))


def consumers_add_up(data: Json) -> Iterator[str]:
    """A row for each process."""
    state, rows = data["overview"], data["consumers"]
    if state["processes"] is not None:
        yield from differ("processes", state["processes"], len(rows))
        yield from differ("consumers", state["consumers"], len({row["clientId"] for row in rows}))
        shared = Counter(row["clientId"] for row in rows)
        for row in rows:
            yield from differ(f"processes of {row['clientId']}", row["processes"], shared[row["clientId"]])


def route_adds_up(data: Json) -> Iterator[str]:
    """Readable queues are those of brokers that can be read; of static topics the queues are another matter."""
    for topic in data["topics"]:
        if topic["isStatic"]:
            continue
        readable = sum(max(b["readQueueNums"], 0) for b in topic["brokers"] if (b["perm"] or 0) & 4)
        yield from differ(f"readable queues of {topic['topic']}", len(topic["readableQueues"]), readable)


_OF_GROUPS = ("plan-rebalance", "show-consumers", "show-owners", "simulate-rebalance")


def adds_up(command: str, data: Json) -> Iterator[str]:
    """The sums of a command's result; of several groups those of each, and what they have together."""
    if "groups" not in data or command not in _OF_GROUPS:
        yield from SUMS[command](data)
        return
    for each in data["groups"]:
        name = each.get("overview", each)["group"]
        yield from (f"group {name}: {sentence}" for sentence in SUMS[command](each))
    yield from differ("groups", data["summary"]["groups"], len(data["groups"]))
    if command == "simulate-rebalance":
        yield from _groups_and_producers_add_up(data)
    for name in MOVES if command == "plan-rebalance" else ():
        yield from differ(name, data["summary"][name], sum(each["summary"][name] for each in data["groups"]))


def receive_adds_up(data: Json) -> Iterator[str]:
    """Every message is somewhere; brokers add up to totals; the distribution ends with the longest wait."""
    totals, brokers = data["totals"], data["brokers"]
    ended = totals["acknowledged"] + totals["deadLettered"] + totals["left"]
    if ended != totals["messages"]:
        yield f"{ended} messages have ended, of {totals['messages']}"
    parts = {"receives": "receives", "emptyReceives": "empty", "failedReceives": "failed", "received": "messages"}
    for whole, part in parts.items():
        found = sum(broker[part] for broker in brokers)
        if found != totals[whole]:
            yield f"{found} {part} of brokers, {totals[whole]} in all"
    yield from differ("received of queues", totals["received"], sum(each["messages"] for each in data["queueWaits"]))
    if data["quantiles"] and data["quantiles"][-1]["waitMs"] != data["wait"]["maxMs"]:
        yield "the last quantile is not the longest wait"


SUMS: Mapping[str, Sum] = {
    "plan-rebalance": plan_adds_up,
    "show-groups": groups_add_up,
    "show-consumers": consumers_add_up,
    "show-owners": owners_add_up,
    "simulate-rebalance": rebalance_adds_up,
    "simulate-send": send_adds_up,
    "simulate-receive": receive_adds_up,
    "check": check_adds_up,
    "show-route": route_adds_up,
}
"""Command → its sums."""
RESULTS = (*SUMS, "plan-rollout", "select-queue", "size-group", "sweep-failures")
"""The commands whose results are compared in all formats."""
