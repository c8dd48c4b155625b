"""The consumers of a group, process by process."""

from __future__ import annotations

from msgspec.structs import replace

from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.group import Group, assumption, gaps
from rmqlb.engine.show_groups import consumers_of, unread_of_groups
from rmqlb.model.group import Connection, ConsumerGroup, MemberView
from rmqlb.model.groups import ConsumerProcess
from rmqlb.model.snapshot import Unread
from tests.engine.check.clusters import cluster, members
from tests.support.builders import HERE


def processes(group: ConsumerGroup, *unread: Unread) -> tuple[ConsumerProcess, ...]:
    snapshot = cluster(group, unread=unread)
    facts = Group(snapshot, group.group, Settings(), assumption(snapshot, group.group), gaps(snapshot))
    return consumers_of(facts, unread_of_groups(snapshot).get(group.group, ())).consumers


def listed(**brokers: str) -> tuple[MemberView, ...]:
    """What brokers list: `broker="id=ip:port …"`."""
    return tuple(
        MemberView(tuple(Connection(*each.split("=")) for each in text.split()), HERE, broker)
        for broker, text in brokers.items()
    )


def addresses(one: ConsumerProcess) -> list[tuple[str | None, str]]:
    return [(each.broker_addr, each.client_addr) for each in one.addresses]


def test_a_process_has_an_address_at_each_broker() -> None:
    group = replace(members("x y"), views=listed(a="x=h1:1 y=h2:2", b="y=h2:3 x=h1:4"))
    x, y = processes(group)
    assert (addresses(x), addresses(y)) == ([("a", "h1:1"), ("b", "h1:4")], [("a", "h2:2"), ("b", "h2:3")])
    assert (x.processes, x.not_listed_by, x.findings) == (1, (), ())


def test_two_processes_with_one_id_are_two_rows() -> None:
    group = replace(members("x x", owners="x x - -"), views=listed(a="x=h2:1 x=h1:2", b="x=h1:3 x=h2:4"))
    one, two = processes(group)
    assert (addresses(one), addresses(two)) == ([("a", "h1:2"), ("b", "h1:3")], [("a", "h2:1"), ("b", "h2:4")])
    assert one.findings == two.findings == ("duplicate-client-id",)
    assert (one.processes, one.queues_observed, two.queues_observed, two.queues_predicted) == (2, 2, 2, 2)


def test_processes_on_one_host_are_told_apart_at_one_broker_only() -> None:
    group = replace(members("x x"), views=listed(a="x=h:1 x=h:4", b="x=h:2 x=h:3"))
    assert [addresses(each) for each in processes(group)] == [[("a", "h:1")], [("a", "h:4")]]


def test_stale_connections_at_one_broker_are_no_processes() -> None:
    group = replace(members("x"), views=listed(a="x=h:1", b="x=h:2 x=h:3"))
    assert [addresses(each) for each in processes(group)] == [[("a", "h:1")]]


def test_a_consumer_that_a_broker_does_not_list() -> None:
    group = replace(members("x y"), views=listed(a="x=h1:1 y=h2:1", b="x=h1:2"))
    x, y = processes(group)
    assert (x.not_listed_by, x.findings, y.not_listed_by, y.findings) == ((), (), ("b",), ("split-consumer-view",))


def test_lag_is_that_of_the_queues_it_owns() -> None:
    x, y = processes(members("x y", owners="x x y y", lag={0: 4, 1: 0, 2: 0}))
    assert (x.lag, y.lag) == (4, None)
    assert [each.lag for each in processes(members("x y", lag={0: 4, 1: 1, 2: 0, 3: 7}))] == [5, 7]
    broadcast = members("x y", message_model="BROADCASTING", owners="x+y x+y x+y x+y", lag={0: 4, 1: 0, 2: 0, 3: 0})
    assert [(each.lag, each.queues_observed, each.queues_predicted) for each in processes(broadcast)] == [
        (None, 4, 4),
        (None, 4, 4),
    ]


def test_observed_queues_are_unknown_where_the_consumer_did_not_say() -> None:
    group = members("x y", owners="x x ? ?")
    group = replace(group, reports={"x": group.reports["x"]})
    x, y = processes(group, Unread("member", "g", "late", "y"))
    assert (x.queues_observed, y.queues_observed, y.strategy, y.findings) == (2, None, None, ("unread",))


def test_consume_type_as_far_as_it_is_known() -> None:
    def types(group: ConsumerGroup) -> list[str | None]:
        return [each.consume_type for each in processes(group)]

    assert types(members("x")) == ["push"]
    assert types(members("x", consume_type="CONSUME_ACTIVELY")) == [None]
    assert types(members("x", consume_type="CONSUME_POP")) == ["pop"]
    assert types(members("h@1@0@2abc x")) == ["grpc", "push"]
    group = members("x y", consume_type="CONSUME_ACTIVELY")
    group = replace(group, reports={i: replace(r, consumer_type="lite-pull") for i, r in group.reports.items()})
    assert types(group) == ["lite-pull", "lite-pull"]


def test_what_it_says_of_itself() -> None:
    group = members("x y", subscribed={"x": "T %RETRY%g", "y": "T U"})
    reports = {i: replace(report, started_at=1_767_225_600_123) for i, report in group.reports.items()}
    x, y = processes(replace(group, reports=reports))
    assert (x.topics, y.topics, x.strategy, x.started_at) == (("T",), ("T", "U"), "AVG", "2026-01-01T00:00:00Z")
    assert (x.findings, y.findings) == ((), ("subscription-mismatch",))
    absurd = {"x": replace(reports["x"], started_at=10**30)}
    assert processes(replace(group, reports=absurd))[0].started_at is None


def test_nobody_online_has_no_rows() -> None:
    assert processes(members("")) == ()
    assert processes(replace(members(""), views=None)) == ()
