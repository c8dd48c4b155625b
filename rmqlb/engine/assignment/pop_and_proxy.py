"""Consumption that makes nobody an owner: by POP, and through a Proxy, which are not modelled."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rmqlb.errors import DataError
from rmqlb.model.finding import INFO, Finding
from rmqlb.model.group import RETRY_PREFIX, ConsumerGroup, ProxyView, is_grpc
from rmqlb.model.route import TopicRouteData
from rmqlb.model.words import counted

_RECENT_MS = 60_000
"""Who has read a message that was stored within it was there within it; consume TPS are of a minute too."""
_POP = "POP"


def popped_topics(group: ConsumerGroup) -> frozenset[str]:
    """The topics whose messages the group takes by POP, or may: what nobody's share can be computed of.

    Members that rebalance by themselves pull (`RebalanceImpl.clientRebalance`). Of the others the mode counts that
    brokers have for topic and group, and once they hold queues of it, what they hold.
    """
    reported = frozenset[str]().union(*(report.pop_topics or () for report in group.reports.values()))
    ids = set(group.client_ids or ())
    if ids and all(each in group.reports and group.reports[each].client_rebalance for each in ids):
        return reported
    pulled = {queue.topic for queue, state in group.queues.items() if state.owners}
    modes = group.request_modes or {}
    return reported | {topic for topic, its in modes.items() if _POP in its and topic not in pulled}


def pulled_routes(
    group: ConsumerGroup, routes: tuple[TopicRouteData, ...]
) -> tuple[tuple[TopicRouteData, ...], list[Finding]]:
    """The routes of the topics that the group pulls, and a finding about the others (raises DataError)."""
    popped = popped_topics(group)
    pulled = tuple(route for route in routes if route.topic not in popped)
    left_out = [route.topic for route in routes if route.topic in popped]
    if not left_out:
        return routes, []
    if all(route.topic.startswith(RETRY_PREFIX) for route in pulled):
        raise pop_refusal(group, left_out)
    text = f"left out: {', '.join(left_out)}, which group {group.group} consumes by POP: no consumer owns a queue there"
    return pulled, [Finding("pop-consumption", text, group.group, INFO)]


def pop_refusal(group: ConsumerGroup, topics: Iterable[str]) -> DataError:
    """The error for topics that are consumed by POP; for the whole group when none is named."""
    what = ", ".join(sorted(topics))
    return DataError(
        f"group {group.group} consumes {what}{' ' if what else ''}by POP: several consumers may take messages from one "
        "queue, none owns it",
        hint="show-owners and plan-rebalance say who may read what; a consumer that comes or goes moves no queue",
        group=group.group,
        code="pop-consumption",
    )


def behind_proxy(group: ConsumerGroup) -> str | None:
    """What shows that the group is consumed although no consumer of it is visible; None when nothing does.

    A Proxy in cluster mode keeps its clients to itself, unless it is asked for them (`--proxy`). Their receive requests
    wait at brokers under the group's name, and brokers count what they give out.
    """
    if group.views is None or group.client_ids:
        return None
    if group.polling_num:
        waiting = counted(group.polling_num, "receive request")
        return f"{waiting} of it {'waits' if group.polling_num == 1 else 'wait'} there"
    if group.consume_tps:
        return f"they gave it {group.consume_tps:.3g} messages per second over the last minute"
    read = max((state.last_timestamp or 0 for state in group.queues.values()), default=0)
    if group.seen.at is None or not read:
        return None
    age_ms = group.seen.at.timestamp() * 1000 - read
    return (
        None if age_ms > _RECENT_MS else f"it has read a message that was stored {max(age_ms, 0) / 1000:.0f} s before"
    )


def only_grpc(group: ConsumerGroup) -> bool:
    """All consumers that are visible are gRPC clients, which a Proxy gives messages."""
    return bool(group.client_ids) and all(map(is_grpc, group.client_ids or ()))


def must_be_listed(group: ConsumerGroup, *, assumed: bool = False) -> None:
    """Refuse (DataError) a group whose consumers are behind a Proxy, unless others are assumed in their place."""
    evidence = behind_proxy(group)
    if evidence is not None and not assumed:
        raise DataError(
            f"{_proxy_text(group, evidence)}; they are not visible here",
            hint=ask_proxy(group)
            + ("" if group.polling_num else "; or the consumers have left within the last minute"),
            group=group.group,
            code="behind-proxy",
        )


def proxy_findings(group: ConsumerGroup) -> list[Finding]:
    """The finding where other consumers than those behind a Proxy are looked at."""
    evidence = behind_proxy(group)
    return (
        []
        if evidence is None
        else [Finding("behind-proxy", f"{_proxy_text(group, evidence)}; they are not visible here", group.group, INFO)]
    )


def _proxy_text(group: ConsumerGroup, evidence: str) -> str:
    sure = "" if group.polling_num else "probably "
    text = f"brokers list no consumer of group {group.group}, but {evidence}"
    return f"{text}: its consumers are {sure}connected to a Proxy (gRPC)"


def ask_proxy(group: ConsumerGroup | None) -> str:
    """What to try where consumers may be behind a Proxy and none is visible."""
    if group is None or group.proxies is None:
        return "--proxy HOST:8080, a Proxy's remoting port, tells the consumers behind it (of a file: in fetch-routes)"
    if not group.proxies:
        return "no Proxy that was given has answered"
    return f"give each Proxy with --proxy; {_asked(group.proxies)} lists no consumer of it"


def is_surely_offline(group: ConsumerGroup) -> bool:
    """Neither brokers nor Proxies list a consumer, and some Proxy was asked; without one it may be behind one."""
    return group.client_ids == () and bool(group.proxies)


def nobody_online(name: str | None, group: ConsumerGroup | None, hint: str, more: str = "") -> DataError:
    """The error for a group without a visible consumer where one is needed."""
    title = "the group" if name is None else f"group {name}"
    if group is None:
        problem = f"{title} has no consumer online"
    elif group.proxies and is_surely_offline(group):
        problem = f"{title} has no consumer online, at brokers or at {_asked(group.proxies)}"
    else:
        unpolled = ", no receive request of it waits at a broker" if group.polling_num == 0 else ""
        problem = f"no consumer of {title} is visible{unpolled}: it is offline, or behind a Proxy"
        hint += f"; {ask_proxy(group)}"
    return DataError(problem + more, hint=hint, group=name, code="no-consumer-online")


def _asked(proxies: Sequence[ProxyView]) -> str:
    return "Proxy " + ", ".join(view.proxy_addr for view in proxies)
