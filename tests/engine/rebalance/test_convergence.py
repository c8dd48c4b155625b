from rmqlb.engine.plan.changes import Changes, NewBroker, QueueCount, change_members, change_route
from rmqlb.engine.plan.rebalance import Side, plan_rebalance
from rmqlb.engine.rebalance.reported_clients import client_version
from rmqlb.engine.rebalance.simulate import change_events, convergence
from rmqlb.model.group import Connection, ConsumerGroup, MemberView
from rmqlb.model.plan import Convergence
from tests.support.builders import HERE, route, side
from tests.support.mismatches import every_case

LAST = "CONSUME_FROM_LAST_OFFSET"


GROUP = side("a b c", route(x=8, y=8))


def after(before: Side, changes: Changes) -> Side:
    members = change_members(before.members.client_ids, changes)
    return side(" ".join(members), *(change_route(each, changes) for each in before.routes))


def takes(before: Side, version: str = "5.5.0") -> Convergence:
    changes = Changes(add=("d",))
    other = after(before, changes)
    plan = plan_rebalance("g", before, other)
    found = convergence(plan, before, other, changes, states={}, client_version=version, consume_from=LAST)
    assert found is not None
    return found


def test_a_change_is_events_of_one_moment_those_who_go_first() -> None:
    changes = Changes(
        add=("d", 1),
        remove=("b",),
        replace=(("a", "z"),),
        remove_brokers=("y",),
        add_brokers=(NewBroker("v"), NewBroker("w", 4)),
        read_queues=(QueueCount(9, "x"),),
        write_queues=(QueueCount(3),),
    )
    events = list(change_events(GROUP, after(GROUP, changes), changes))
    assert [(event.kind, event.subject, event.read_queues, event.write_queues) for event in events] == [
        *(("leave", name, None, None) for name in ("a", "b")),
        *(("join", name, None, None) for name in ("d", "placeholder-01", "z")),
        ("broker-down", "y", None, None),
        ("broker-up", "v", None, None),
        ("broker-up", "w", 4, 4),
        ("route-change", "T", 9, None),
    ]
    assert {event.at_us for event in events} == {0}


def test_a_join_is_over_within_the_second_pass_of_newer_clients_and_at_once_in_older_ones() -> None:
    new, old = takes(GROUP), takes(GROUP, "4.9.7")
    assert (new.trials, new.converged) == (old.trials, old.converged) == (5, 5)
    assert 1000 <= (new.convergence_ms or 0) <= (new.max_convergence_ms or 0) < 2000
    assert (old.max_convergence_ms or 1000) < 100
    assert 0 < (new.longest_gap_ms or 0) <= (new.max_convergence_ms or 0)


def test_a_window_without_end_is_not_called_a_window() -> None:
    twice, idle = takes(side("a a b", route(x=6))), takes(side("a b", route(x=0)))
    assert (twice.longest_gap_ms, twice.longest_overlap_ms) == (None, None)
    assert (idle.longest_gap_ms, idle.longest_overlap_ms) == (0, 0)


def reporting(*versions: str | None, language: str | None = "JAVA") -> ConsumerGroup:
    connections = tuple(
        Connection(f"c{number}", version=version, language=language) for number, version in enumerate(versions)
    )
    return ConsumerGroup("g", HERE, views=(MemberView(connections, HERE),))


@every_case(("group", "given", "version", "codes"), [
    (None, None, "5.5.0", []),
    (None, "4.9", "4.9", []),
    (reporting(), None, "5.5.0", []),
    (reporting(None, "HIGHER_VERSION"), None, "5.5.0", []),
    (reporting("V4_9_7", "V4_9_7"), None, "4.9.7", []),
    (reporting("V4_9_7"), "5.2.0", "5.2.0", []),
    (reporting("V5_5_0", "V4_9_7"), None, "4.9.7", ["mixed-versions"]),
    (reporting("V5_5_0", "V5_5_0", "V5_1_4"), None, "5.5.0", ["mixed-versions"]),
    (reporting("V5_3_0", "V5_2_0"), None, "5.2.0", []),
    (reporting("V4_6_0", language="CPP"), None, "5.5.0", []),
])  # fmt: skip
def test_the_version_is_said_or_what_most_members_report(
    group: ConsumerGroup | None, given: str | None, version: str, codes: list[str]
) -> None:
    found, findings = client_version(group, given)
    assert (found, [finding.code for finding in findings]) == (version, codes)
