"""Links that are cut, connections that are left over, brokers and consumers that are silent or gone."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from rmqlb.engine.show_groups import consumers_of
from rmqlb.model.group import Connection, ConsumerGroup
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.process_queue import ConsumerEvidence, ProcessQueue
from rmqlb.model.snapshot import ClusterSnapshot, Unread, unread_link
from rmqlb.views.diagnose import sentence
from tests.engine.diagnose.running import (
    AT,
    Process,
    causes,
    changed,
    diagnosed,
    evidence_of,
    facts,
    finding,
    grave,
    running,
)
from tests.support.builders import route

SILENT = Unread("members", "g", "b:10911 GET_CONSUMER_CONNECTION_LIST: no whole answer within 5 s", "b", no_answer=True)


def looks_before(group: ConsumerGroup, *seconds: int) -> tuple[ConsumerGroup, ...]:
    """The same group at earlier looks."""
    return tuple(replace(group, seen=replace(group.seen, at=AT - timedelta(seconds=each))) for each in seconds)


def waiting(group: ConsumerGroup, owner: str, broker: str) -> ConsumerGroup:
    """The consumer reads nothing of its queues at the broker, where messages wait."""
    queues = {
        queue: replace(state, consumer_offset=900)
        if queue.broker_name == broker and owner in (state.owners or ())
        else state
        for queue, state in group.queues.items()
    }
    return replace(group, queues=queues)


# -- links ---------------------------------------------------------------------------------------------------------------


def test_a_consumer_that_answers_through_another_broker_does_not_reach_this_one() -> None:
    healthy = running(Process("x"), Process("y"), routes=(route(a=4, b=4),))
    group = waiting(healthy.groups["g"], "y", "b")
    snapshot = replace(healthy, groups={"g": group}, unread=(unread_link("g", "no whole answer", "y", "b:10911"),))
    found = diagnosed(snapshot, earlier=looks_before(group, 20, 10))
    assert grave(found) == ["broker-unreachable-from-consumer"]
    link = found.findings[0]
    assert (link.severity, link.consumers) == ("error", ("y",))
    assert {queue.broker_name for queue in link.queues} == {"b"}
    assert "y cannot reach b" in link.consequence
    assert sentence(found).startswith("y does not reach b")
    assert "broker-unreachable-from-consumer" not in found.checked
    assert causes(found)["lag-stalled"] == (link.code,)


def test_a_consumer_that_a_broker_has_forgotten_and_that_keeps_its_queues_there_does_not_reach_it() -> None:
    healthy = running(Process("x"), Process("y", unlisted=("b",)))
    group = waiting(healthy.groups["g"], "y", "b")
    found = diagnosed(replace(healthy, groups={"g": group}), earlier=looks_before(group, 20, 10))
    assert grave(found) == ["broker-unreachable-from-consumer"]
    assert finding(found, "broker-unreachable-from-consumer").consumers == ("y",)
    assert {each.code for each in found.consequences} >= {"split-consumer-view"}


# -- connections that are left over -----------------------------------------------------------------------------------


def with_channels(snapshot: ClusterSnapshot, broker: str, client_id: str, number: int) -> ClusterSnapshot:
    """The broker lists so many more connections of a client."""
    more = tuple(Connection(client_id, f"192.0.2.9:{50_000 + port}", "JAVA", "V5_5_0") for port in range(number))
    views = tuple(
        replace(view, connections=view.connections + more) if view.broker_addr == f"{broker}:10911" else view
        for view in snapshot.groups["g"].views or ()
    )
    return changed(snapshot, views=views)


def test_channels_at_one_broker_alone_are_no_processes() -> None:
    snapshot = with_channels(running(Process("x"), Process("y")), "b", "y", 22)
    found = diagnosed(snapshot)
    assert grave(found) == []
    stale = finding(found, "stale-connections")
    assert (stale.severity, stale.consumers) == ("info", ("y",))
    assert [each.value for each in stale.evidence] == [23, 1]
    assert {"duplicate-client-id", "split-consumer-view"} <= {*found.checked}
    assert (found.counts.consumers, found.counts.processes) == (2, 2)
    shown = consumers_of(evidence_of(snapshot).facts, ())
    assert [each.client_id for each in shown.consumers] == ["x", "y"]


def test_two_brokers_that_list_an_id_twice_support_two_processes() -> None:
    snapshot = with_channels(running(Process("x"), Process("x"), Process("y")), "b", "x", 5)
    found = diagnosed(snapshot)
    assert grave(found)[0] == "duplicate-client-id"
    assert found.counts.processes == 3


def test_stale_channels_by_which_consumers_share_are_the_cause_of_unassigned_queues() -> None:
    """A client counts all channels in a broker's list (`ConsumerGroupInfo.getAllClientId`)."""
    from tests.engine.diagnose import running as lab

    counted = running(Process("x"), *[Process("y")] * 3)
    alone = replace(counted.groups["g"], views=running(Process("x"), Process("y")).groups["g"].views)
    snapshot = with_channels(replace(counted, groups={"g": alone}), "a", "y", 2)
    found = lab.diagnosed(snapshot)
    assert grave(found) == ["stale-connections"]
    assert found.findings[0].severity == "error"


def test_a_client_that_does_not_run_the_group_is_named_with_the_queues_that_it_gets() -> None:
    whole = running(Process("x"), Process("ghost"))
    group = whole.groups["g"]
    queues = {
        queue: replace(state, owners=(state.owners or frozenset()) - {"ghost"}) for queue, state in group.queues.items()
    }
    reports = {client_id: report for client_id, report in group.reports.items() if client_id != "ghost"}
    reason = "The Consumer Group <g> not exist in this consumer"
    snapshot = replace(changed(whole, queues=queues, reports=reports), unread=(Unread("member", "g", reason, "ghost"),))
    found = diagnosed(snapshot)
    assert grave(found) == ["stale-connections"]
    ghost = found.findings[0]
    assert (ghost.severity, ghost.consumers, len(ghost.queues)) == ("error", ("ghost",), 4)
    assert "5.5.1" in ghost.remedy
    assert causes(found)["unassigned-queues"] == ("stale-connections",)


# -- brokers -------------------------------------------------------------------------------------------------------------


def test_a_silent_broker_is_the_headline() -> None:
    whole = running(Process("x"), Process("y"))
    group = whole.groups["g"]
    views = tuple(view for view in group.views or () if view.broker_addr != "b:10911")
    queues = {queue: state for queue, state in group.queues.items() if queue.broker_name == "a"}
    found = diagnosed(replace(changed(whole, views=views, queues=queues), unread=(SILENT,)))
    assert grave(found)[0] == "broker-silent"
    assert sentence(found).startswith("b does not answer")
    assert len(found.findings[0].queues) == 4


@pytest.mark.parametrize("seen_before", [False, True])
def test_a_broker_that_left_the_routes_is_named_while_consumers_have_its_queues(*, seen_before: bool) -> None:
    whole = running(Process("x"), Process("y"), routes=(route(a=4, b=4),))
    now = replace(
        whole, routes={"T": replace(whole.routes["T"], route=running(Process("x"), routes=(route(a=4),)).route("T"))}
    )
    group = whole.groups["g"]
    views = tuple(view for view in group.views or () if view.broker_addr != "b:10911")
    queues = {q: s if q.broker_name == "a" else replace(s, broker_offset=None) for q, s in group.queues.items()}
    earlier = looks_before(group, 10) if seen_before else ()
    found = diagnosed(changed(now, views=views, queues=queues), earlier=earlier)
    assert grave(found) == ["broker-gone"]
    gone = found.findings[0]
    assert "b has left the routes" in gone.consequence
    assert ("2026-11-21T01:59:50Z" if seen_before else "within the last 50 s") in gone.consequence
    assert causes(found).get("mismatch") == ("broker-gone",)


# -- consumers -----------------------------------------------------------------------------------------------------------


def orderly(group: ConsumerGroup) -> ConsumerGroup:
    reports = {
        client_id: replace(report, evidence=replace(report.evidence or ConsumerEvidence(), orderly=True))
        for client_id, report in group.reports.items()
    }
    return replace(group, reports=reports)


def after_a_kill() -> tuple[ConsumerGroup, ClusterSnapshot]:
    """A group of three orderly consumers, and what is left once z is killed: nobody has its queues."""
    before = orderly(running(*map(Process, "xyz"), routes=(route(a=6),)).groups["g"])
    after = running(*map(Process, "xy"), routes=(route(a=6),))
    owners: Mapping[Any, Any] = {
        queue: replace(
            state,
            owners=state.owners if state.owners == before.queues[queue].owners else frozenset(),
            broker_offset=1100,
        )
        for queue, state in after.groups["g"].queues.items()
    }
    return before, replace(after, groups={"g": replace(orderly(after.groups["g"]), queues=owners)})


def test_the_queues_of_an_orderly_consumer_that_was_killed_wait_for_its_locks() -> None:
    _, after = after_a_kill()
    found = diagnosed(after)
    assert grave(found) == ["consumer-gone"]
    assert "keeps their locks" in found.findings[0].consequence
    assert found.findings[0].consumers == ()
    assert causes(found)["unassigned-queues"] == ("consumer-gone",)


def test_an_earlier_look_names_the_consumer_that_is_gone() -> None:
    before, after = after_a_kill()
    found = diagnosed(after, earlier=looks_before(before, 10))
    assert grave(found) == ["consumer-gone"]
    assert found.findings[0].consumers == ("z",)
    assert "z left without a word" in found.findings[0].consequence


def test_queues_that_wait_longer_than_a_lock_lasts_are_not_explained_by_it() -> None:
    _, after = after_a_kill()
    found = diagnosed(after, earlier=looks_before(after.groups["g"], 100, 50))
    assert grave(found)[0] == "unassigned-queues"


def test_a_group_without_order_takes_such_queues_at_once_so_that_no_lock_is_blamed() -> None:
    _, after = after_a_kill()
    concurrent = running(*map(Process, "xy"), routes=(route(a=6),)).groups["g"]
    found = diagnosed(changed(after, reports=concurrent.reports))
    assert grave(found) == ["unassigned-queues"]


def test_a_broker_that_asked_a_stale_connection_says_nothing_of_the_link() -> None:
    snapshot = with_channels(running(Process("x"), Process("y")), "b", "y", 22)
    found = diagnosed(replace(snapshot, unread=(unread_link("g", "no whole answer", "y", "b:10911"),)))
    assert grave(found) == []


def test_the_last_pull_of_a_consumer_shows_when_it_last_reached_a_broker_that_is_gone() -> None:
    whole = running(Process("x"), routes=(route(a=4, b=4),))
    group, now = whole.groups["g"], running(Process("x"), routes=(route(a=4),))
    at = int(AT.timestamp() * 1000)
    ages = {0: 40_000, 1: 30_000}  # of the last pull from each queue of b, in milliseconds
    items = [
        *(ProcessQueue(MessageQueue("T", "b", number), last_pull=at - age) for number, age in ages.items()),
        ProcessQueue(MessageQueue("T", "b", 2), last_pull=0),
        ProcessQueue(MessageQueue("T", "a", 0), last_pull=at - 1000),
    ]
    report = replace(group.reports["x"], evidence=ConsumerEvidence(queues=tuple(items)))
    views = tuple(view for view in group.views or () if view.broker_addr != "b:10911")
    queues = {q: s if q.broker_name == "a" else replace(s, broker_offset=None) for q, s in group.queues.items()}
    found = diagnosed(changed(replace(whole, routes=now.routes), views=views, queues=queues, reports={"x": report}))
    assert facts(finding(found, "broker-gone")) == [
        ("routes of the group's topics that have b", 0, 1),
        ("last pull of a consumer from b", "2026-11-21T01:59:30Z", None),
    ]
