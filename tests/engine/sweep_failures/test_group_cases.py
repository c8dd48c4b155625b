"""Where one result stands for many cases, each of them comes to it; and where it would not, every case is run."""

from __future__ import annotations

from itertools import combinations

import pytest
from msgspec.structs import replace

from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.group import Given, Group, gaps
from rmqlb.engine.plan.changes import Changes, change_members, change_routes
from rmqlb.engine.plan.rebalance import Side, plan_rebalance
from rmqlb.engine.sweep_failures.subjects import Effect, GroupSubject, bits_of
from rmqlb.model.group import Connection, ConsumerGroup, MemberReport
from tests.support.mismatches import every_case

from .clusters import broker, cluster, consumers, route

ROOMS = Settings(consumer_idcs=frozenset({"r1"}))
IDS = tuple(f"10.1.0.{number}@app" for number in range(1, 6))
CLASSES = {
    "AVG": "AllocateMessageQueueAveragely",
    "AVG_BY_CIRCLE": "AllocateMessageQueueAveragelyByCircle",
    "MACHINE_ROOM": "AllocateMessageQueueByMachineRoom",
}


def cases(group: ConsumerGroup, *numbers: int) -> GroupSubject:
    """The group on a topic with so many queues on brokers of rooms r1 and r2 in turn."""
    brokers = [broker(f"r{1 + at % 2}@{at}", f"10.0.0.{at}") for at in range(len(numbers))]
    snapshot = cluster([group], [route("T", brokers, numbers)])
    return GroupSubject(Group(snapshot, group.group, ROOMS, Given(), gaps(snapshot)), orderly=False)


def group(strategy: str) -> ConsumerGroup:
    found = consumers("g", IDS, ["T"])
    return replace(found, reports={each: MemberReport(each, strategy_class=CLASSES[strategy]) for each in IDS})


@every_case("strategy", CLASSES)
def test_of_consumers_whose_place_alone_counts_every_case_is_what_its_plan_says(strategy: str) -> None:
    of = cases(group(strategy), 3, 4, 2)
    assert of.by_place
    every = (1 << len(of.client_ids) + 3) - 1
    masks = {0, every, *(sum(each) for size in (1, 2, 3) for each in combinations(bits_of(every), size))}
    for effect in map(of.effect, sorted(masks)):
        lost = tuple(of.client_ids[place] for place in effect.places)
        members = replace(of.members, client_ids=change_members(of.members.client_ids, Changes(remove=lost)))
        routes = change_routes(of.routes, Changes(remove_brokers=effect.brokers))
        plan = plan_rebalance("g", Side(of.members, of.routes), Side(members, routes)).summary
        found = of.outcome(effect)
        assert (found.moved, found.unassigned, found.idle) == (plan.moved, plan.unassigned, plan.idle), effect
        assert (found.imbalance, found.queues) == (plan.imbalance, plan.after.queues), effect


@pytest.mark.parametrize("language", ["GO", "CPP"])
def test_clients_of_other_libraries_sort_as_they_like_and_every_case_is_run(language: str) -> None:
    found = group("AVG")
    view = (found.views or ())[0]
    connections = tuple(Connection(each.client_id, None, language, "V5_1_0") for each in view.connections)
    of = cases(replace(found, views=(replace(view, connections=connections),), reports={}), 4)
    assert not of.by_place


def test_consumers_that_differ_in_strategy_topics_or_number_are_run() -> None:
    mixed = group("AVG")
    other = MemberReport(IDS[0], strategy_class=CLASSES["AVG_BY_CIRCLE"])
    assert not cases(replace(mixed, reports={**mixed.reports, IDS[0]: other}), 4).by_place
    narrow = replace(mixed.reports[IDS[0]], topics=frozenset({"%RETRY%g"}))
    assert not cases(replace(mixed, reports={**mixed.reports, IDS[0]: narrow}), 4).by_place
    assert not cases(consumers("g", (IDS[0], *IDS), ["T"]), 4).by_place


def test_a_slave_alone_is_no_loss_and_a_broker_is_gone_with_its_last_address() -> None:
    of = cases(consumers("g", IDS[:1], ["T"]), 4)
    assert of.effect(0) == Effect()
    brokers = [broker("a", "10.0.0.1", "10.0.0.2")]
    snapshot = cluster([consumers("g", IDS[:1], ["T"])], [route("T", brokers, [4])])
    several = GroupSubject(Group(snapshot, "g", ROOMS, Given(assume=None), gaps(snapshot)), orderly=False)
    consumer, master, slave = bits_of(0b111)
    assert several.effect(slave) == Effect()
    assert several.effect(master) == Effect(masters=("a",))
    assert several.effect(master | slave | consumer) == Effect((0,), ("a",))
