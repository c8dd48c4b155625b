from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from rmqlb import FailureSweep, UsageError
from rmqlb.engine.sweep_failures.cases import ZoneRule
from rmqlb.engine.sweep_failures.sweep import Commands, sweep_snapshot
from rmqlb.model.group import BROADCASTING
from rmqlb.model.policy import GROUP, Limit, Policy, Rule
from rmqlb.model.process_queue import ConsumerEvidence
from rmqlb.model.result import Finding
from rmqlb.model.route import TopicQueueMappingInfo
from rmqlb.model.snapshot import ClusterSnapshot, Unread
from tests.support.recorded_answers import assert_recorded

from .clusters import DAY, ROOMS, broker, cluster, clusters, consumers, policy, request, route, swept

IDS = tuple(f"10.1.0.{number}@app" for number in (1, 2, 3))


def two_brokers(ids: Sequence[str] = IDS, **more: object) -> ClusterSnapshot:
    brokers = broker("a", "10.0.0.1", "10.0.0.9"), broker("b", "10.0.0.2")
    return cluster([consumers("g", ids, ["T"], **more)], [route("T", brokers, [4, 4])])  # type: ignore[arg-type]


def limited(**limits: float) -> Policy:
    return policy(dict(limits), {})


def orderly(snapshot: ClusterSnapshot, *, reported: bool | None) -> ClusterSnapshot:
    group = snapshot.groups["g"]
    evidence = ConsumerEvidence(orderly=reported)
    reports = {each: replace(report, evidence=evidence) for each, report in group.reports.items()}
    return replace(snapshot, groups={"g": replace(group, reports=reports)})


def zoned() -> ClusterSnapshot:
    snapshot = two_brokers()
    here = snapshot.routes["T"].route
    datas = tuple(replace(each, zone_name=f"z-{each.broker_name}") for each in here.broker_datas)
    return cluster(list(snapshot.groups.values()), [replace(here, broker_datas=datas)])


def not_to_judge() -> ClusterSnapshot:
    """Groups without a consumer, of broadcasting consumers and of a static topic."""
    gone = replace(consumers("empty", (), ["T"]), reports={})
    everyone = replace(consumers("all", IDS, ["T"]), message_model=BROADCASTING)
    mapping = {"a": TopicQueueMappingInfo("S", "__global__", 4, "a", 1, {0: 0})}
    static = replace(route("S", (broker("a", "10.0.0.1"),), [4]), topic_queue_mapping_by_broker=mapping)
    logical = consumers("logical", IDS[:2], ["S"])
    return cluster([two_brokers().groups["g"], gone, everyone, logical], [two_brokers().routes["T"].route, static])


Found = tuple[FailureSweep, Sequence[Finding]]


def found(snapshot: ClusterSnapshot, rules: Policy | None = None, **more: object) -> Found:
    return sweep_snapshot(snapshot, rules or policy(), request(snapshot, **more), DAY, settings=ROOMS)


def named_sweeps() -> Iterator[tuple[str, Found]]:
    two, no_lock = two_brokers(), limited(withoutLock=0)
    yield "everything that can be lost", found(two_brokers(IDS[:2]), zones=(ZoneRule("z", "10.0.0.0/29"),))
    # Nobody locks the queues of a lost master for an orderly group.
    for reported in (True, False):
        yield f"orderly as consumers report, {reported}", found(orderly(two, reported=reported), no_lock)
    yield "orderly or not, unknown", found(two, no_lock)
    yield "orderly as is said", found(two, no_lock, orderly=("g",))
    given: dict[str, Any] = {"commands": Commands(("-s", "a file.json")), "kinds": ("host",), "zones": ()}
    odd = two_brokers(("10.0.0.1@x", "10.0.0.1@y", "-z@1"))
    yield "a command names all that a host has", found(odd, limited(minConsumers=2), **given)
    yield "a command of a topic", found(odd, policy({}, {"writableBrokers": 1}), **given)
    for kind, more in (("consumer", {}), ("host", {"zones": ()}), ("consumer", {"orderly": ("g",)})):
        given = {"kinds": (kind,), "commands": Commands(("-s", "x")), "at_once": 1, **more}
        yield f"the gap of a {kind}, {more}", found(two, limited(minConsumers=3), **given)
    yield "what cannot be judged", found(not_to_judge())
    unread = (Unread("group", "lost", "timed out"), Unread("route", "Gone", "no answer"))
    asked = request(two)
    asked = replace(asked, groups=[*asked.groups, "lost"], topics=[*asked.topics, "Gone"])
    yield "what could not be read", sweep_snapshot(replace(two, unread=unread), policy(), asked, DAY)
    yield "zones that brokers report", found(zoned(), zones=())
    rule = Rule("r", GROUP, ("*",), (Limit("forbiddenFindings", ("more-consumers-than-queues",)),))
    few = cluster(
        [consumers("g", IDS, ["T"])], [route("T", (broker("a", "10.0.0.1"), broker("b", "10.0.0.2")), [2, 2])]
    )
    yield "a forbidden finding", found(few, replace(policy(), rules=(rule,)), kinds=("broker",), at_once=1)


def lines_of(sweep: FailureSweep, findings: Sequence[Finding]) -> Iterator[str]:
    yield f"{sweep.cases}"
    for loss in sweep.losses:
        yield f"loss {loss.kind} {loss.name}: {' '.join((*loss.consumers, *loss.addresses))}"
    for each in sweep.counterexamples:
        losses = " + ".join(f"{loss.kind} {loss.name}" for loss in each.losses)
        yield f"{each.name} {each.limit} {each.value} by {losses}, {each.cases} cases"
        yield from (f"  {command}" for command in (each.command, each.gap_command) if command)
    yield from (f"worst {each}" for each in (*sweep.groups, *sweep.topics))
    yield from (f"already broken {each}" for each in sweep.broken_already)
    yield from (f"unjudged {each.about} {each.name} {each.limit}: {each.why}" for each in sweep.unjudged)
    yield from (f"{each.code}: {each.message}" for each in findings)


def test_named_sweeps_are_as_recorded(request: pytest.FixtureRequest) -> None:
    answers = {name: lines_of(*each) for name, each in named_sweeps()}
    assert_recorded(Path(__file__).with_name("sweeps.txt"), answers, request)


def test_a_zone_with_nothing_in_it_is_refused() -> None:
    with pytest.raises(UsageError) as raised:
        swept(two_brokers(), zones=(ZoneRule("az9", "10.9.*"),))
    assert raised.value.message == "zone az9: 10.9.* matches no consumer, broker or address"
    with pytest.raises(UsageError, match="zone b"):
        swept(two_brokers(), zones=(ZoneRule("a", "*"), ZoneRule("b", "10.0.0.1")))


def test_groups_divided_among_processes_come_to_the_same() -> None:
    brokers = broker("a", "10.0.0.1"), broker("b", "10.0.0.2")
    strategies = ("AVG", "CONSISTENT_HASH", "AVG_BY_CIRCLE")
    groups = [consumers(f"g{at}", IDS, ["T"], strategy) for at, strategy in enumerate(strategies)]
    snapshot = cluster(groups, [route("T", brokers, [4, 3])])
    assert swept(snapshot, jobs=2) == swept(snapshot)


def test_too_many_pairs_are_refused_and_single_losses_are_not() -> None:
    ids = [f"10.{n // 60000}.{n // 250 % 240}.{n % 250}@a" for n in range(3300)]
    snapshot = two_brokers(ids)
    with pytest.raises(UsageError) as raised:
        swept(snapshot, limited(minConsumers=1), kinds=("consumer",))
    assert raised.value.code == "too-many-cases"


@settings(max_examples=60, deadline=None)
@given(clusters(), st.integers(1, 400))
def test_a_bounded_sweep_tries_single_losses_and_counts_the_others(snapshot: ClusterSnapshot, most_steps: int) -> None:
    whole, part = swept(snapshot), swept(snapshot, most_steps=most_steps)
    assert swept(snapshot, most_steps=most_steps) == part, "the bound counts work: equal input, equal result"
    assert (part.cases.all, part.cases.broken_singles) == (whole.cases.all, whole.cases.broken_singles)
    assert part.cases.singles <= part.cases.tried <= part.cases.all == whole.cases.tried
    left_out = whole.cases.tried - part.cases.tried
    assert 0 <= whole.cases.broken - part.cases.broken <= left_out
    _, findings = sweep_snapshot(snapshot, policy(), request(snapshot, most_steps=most_steps), DAY, settings=ROOMS)
    told = [each.message for each in findings if each.code == "searched-in-part"]
    assert told or not left_out, "a pair that breaks a limit of another subject counts as tried"
    assert told or part == whole
