"""Consumption that makes nobody an owner: which topics are consumed by POP, and what shows consumers behind a Proxy."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from rmqlb.engine.assignment.consumers import (
    behind_proxy,
    is_surely_offline,
    must_be_listed,
    must_rebalance,
    nobody_online,
    only_grpc,
    popped_topics,
    proxy_findings,
)
from rmqlb.errors import DataError
from rmqlb.model.group import Connection, ConsumerGroup, MemberReport, ProxyView, QueueState, Seen
from rmqlb.model.message_queue import MessageQueue
from tests.support.builders import group
from tests.support.mismatches import every_case

NOW = datetime(2026, 11, 22, 3, tzinfo=UTC)
QUEUE = MessageQueue("T", "x", 0)


def reports(**told: tuple[bool | None, str | None]) -> dict[str, MemberReport]:
    """Of each member: whether it rebalances by itself, and the topics of its POP table, in one text."""
    return {
        name: MemberReport(name, client_rebalance=own, pop_topics=None if pop is None else frozenset(pop.split()))
        for name, (own, pop) in told.items()
    }


@every_case(
    ("told", "modes", "popped"),
    [
        ({"a": (True, ""), "b": (True, "")}, {"T": ("POP",)}, set()),
        ({"a": (False, ""), "b": (True, "")}, {"T": ("POP",)}, {"T"}),
        ({"a": (False, ""), "b": (False, "")}, {"T": ("PULL",)}, set()),
        ({"a": (False, ""), "b": (False, "")}, {"T": ("PULL", "POP")}, {"T"}),
        ({"a": (False, ""), "b": (False, "")}, None, set()),
        ({"a": (False, "T"), "b": (False, "")}, None, {"T"}),
        ({"a": (False, "T U")}, {"V": ("POP",)}, {"T", "U", "V"}),
        ({"a": (True, "")}, {"T": ("POP",)}, {"T"}),
        ({}, {"T": ("POP",)}, {"T"}),
        ({}, None, set()),
    ],
)
def test_pop_is_what_members_report_or_what_brokers_tell_those_who_do_not_rebalance(
    told: dict[str, tuple[bool | None, str | None]], modes: dict[str, tuple[str, ...]] | None, popped: set[str]
) -> None:
    assert popped_topics(replace(group("a b"), reports=reports(**told), request_modes=modes)) == popped


def test_a_topic_whose_queues_are_held_is_pulled_whatever_its_mode_is_by_now() -> None:
    held = replace(group("a"), request_modes={"T": ("POP",)}, queues={QUEUE: QueueState(frozenset({"a"}))})
    assert popped_topics(held) == set()
    assert popped_topics(replace(held, queues={QUEUE: QueueState(frozenset())})) == {"T"}


def test_a_group_that_pulls_nothing_does_not_rebalance() -> None:
    rest = "by POP: several consumers may take messages from one queue, none owns it"
    for popped, start in (
        (group("a", consume_type="CONSUME_POP"), "group g consumes "),
        (replace(group("a"), topics=("T", "%RETRY%g"), reports=reports(a=(False, "T"))), "group g consumes T "),
        (replace(group("a"), topics=("U", "T"), reports=reports(a=(False, "T U V"))), "group g consumes T, U "),
    ):
        with pytest.raises(DataError) as raised:
            must_rebalance(popped)
        assert (raised.value.code, raised.value.message) == ("pop-consumption", start + rest)
    must_rebalance(replace(group("a"), topics=("T", "U"), reports=reports(a=(False, "T"))))
    must_rebalance(replace(group("a"), topics=("%RETRY%g",), reports=reports(a=(False, "%RETRY%g"))))


ASK = "--proxy HOST:8080, a Proxy's remoting port, tells the consumers behind it (of a file: in fetch-routes)"


def unlisted(age_s: float | None = None, **known: Any) -> ConsumerGroup:
    """A group without consumers, which has read a message of that age."""
    read = None if age_s is None else round((NOW - timedelta(seconds=age_s)).timestamp() * 1000)
    states = {QUEUE: QueueState(broker_offset=5, consumer_offset=5, last_timestamp=read)}
    return replace(group(), views=(), seen=Seen("a test", NOW), queues=states, **known)


@every_case(
    ("seen", "evidence"),
    [
        (unlisted(polling_num=2), "2 receive requests of it wait there"),
        (unlisted(polling_num=1, consume_tps=3.0), "1 receive request of it waits there"),
        (unlisted(consume_tps=2.56, polling_num=0), "they gave it 2.56 messages per second over the last minute"),
        (unlisted(3.2), "it has read a message that was stored 3 s before"),
        (unlisted(-2), "it has read a message that was stored 0 s before"),
        (unlisted(30.48), "it has read a message that was stored 30 s before"),
        (unlisted(30.52), "it has read a message that was stored 31 s before"),
        (unlisted(60), "it has read a message that was stored 60 s before"),
        (unlisted(60.001), None),
        (unlisted(3600, consume_tps=0.0, polling_num=0), None),
        (unlisted(), None),
        (replace(unlisted(3), seen=Seen("a test")), None),
        (replace(unlisted(3), views=None), None),
        (replace(group("a"), polling_num=2, consume_tps=9.0), None),
    ],
)
def test_what_shows_consumers_that_no_broker_lists(seen: ConsumerGroup, evidence: str | None) -> None:
    assert behind_proxy(seen) == evidence
    if evidence is None:
        must_be_listed(seen)
        assert proxy_findings(seen) == []
        return
    with pytest.raises(DataError) as raised:
        must_be_listed(seen)
    assert raised.value.code == "behind-proxy"
    assert raised.value.message.startswith(f"brokers list no consumer of group g, but {evidence}: its consumers are ")
    assert ("probably" in raised.value.message) == (seen.polling_num in (0, None))
    left = "" if seen.polling_num else "; or the consumers have left within the last minute"
    assert raised.value.hint == ASK + left
    must_be_listed(seen, assumed=True)
    (finding,) = proxy_findings(seen)
    connected, _, _ = raised.value.message.partition("; they are")
    assert (finding.code, finding.message) == ("behind-proxy", f"{connected}; they are not visible here")


def test_of_several_queues_the_last_message_read_is_what_counts() -> None:
    ages = (90, 2, None, 70)
    states = [next(iter(unlisted(age).queues.values())) for age in ages]
    seen = replace(unlisted(), queues={MessageQueue("T", "x", i): state for i, state in enumerate(states)})
    assert behind_proxy(seen) == "it has read a message that was stored 2 s before"


def listing(address: str, *client_ids: str) -> ProxyView:
    """What a Proxy lists."""
    return ProxyView(tuple(map(Connection, client_ids)), Seen(f"Proxy {address}", NOW), address)


def test_nobody_is_offline_who_may_be_behind_a_proxy() -> None:
    either = "it is offline, or behind a Proxy"
    idle = nobody_online("g", unlisted(polling_num=0), "try this")
    assert idle.message == f"no consumer of group g is visible, no receive request of it waits at a broker: {either}"
    old = nobody_online("g", unlisted(), "try this")
    assert (old.message, old.hint) == (f"no consumer of group g is visible: {either}", f"try this; {ASK}")
    nobody = nobody_online(None, None, "try this", " on the broker")
    assert (nobody.message, nobody.hint) == ("the group has no consumer online on the broker", "try this")
    silent = nobody_online("g", unlisted(proxies=()), "try this")
    assert silent.message == f"no consumer of group g is visible: {either}"
    assert silent.hint == "try this; no Proxy that was given has answered"


def test_who_is_at_no_broker_and_at_no_proxy_is_offline() -> None:
    asked = unlisted(polling_num=0, proxies=(listing("p:8080"), listing("q:8080")))
    told = nobody_online("g", asked, "try this")
    assert told.message == "group g has no consumer online, at brokers or at Proxy p:8080, q:8080"
    assert told.hint == "try this"
    assert is_surely_offline(asked)
    assert not is_surely_offline(unlisted())
    assert not is_surely_offline(replace(asked, proxies=(listing("p:8080"), listing("q:8080", "a"))))


def test_a_proxy_that_lists_nobody_of_a_group_that_is_consumed_is_not_the_one() -> None:
    with pytest.raises(DataError) as raised:
        must_be_listed(unlisted(polling_num=2, proxies=(listing("p:8080"),)))
    assert raised.value.hint == "give each Proxy with --proxy; Proxy p:8080 lists no consumer of it"


def test_consumers_that_a_proxy_lists_are_the_groups_own() -> None:
    seen = unlisted(polling_num=2, proxies=(listing("p:8080", "b", "a"), listing("q:8080", "a", "c")))
    assert seen.client_ids == ("a", "b", "c")
    assert behind_proxy(seen) is None
    assert not only_grpc(seen)
    assert only_grpc(unlisted(proxies=(listing("p:8080", "h@1@0@zz"),)))
    assert not only_grpc(unlisted())
