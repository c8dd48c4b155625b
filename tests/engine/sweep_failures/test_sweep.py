from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from rmqlb import UsageError
from rmqlb.engine.sweep_failures.cases import ZoneRule
from rmqlb.engine.sweep_failures.sweep import Commands, sweep_snapshot
from rmqlb.model.group import BROADCASTING, ConsumerGroup
from rmqlb.model.policy import GROUP, Limit, Policy, Rule
from rmqlb.model.process_queue import ConsumerEvidence
from rmqlb.model.route import TopicQueueMappingInfo
from rmqlb.model.snapshot import ClusterSnapshot, Unread
from rmqlb.model.sweep_failures import Counterexample, FailureSweep, Loss, LossParts, Worst

from .clusters import DAY, ROOMS, broker, cluster, clusters, consumers, policy, request, route, swept

IDS = tuple(f"10.1.0.{number}@app" for number in (1, 2, 3))


def two_brokers(ids: Sequence[str] = IDS, **more: object) -> ClusterSnapshot:
    brokers = broker("a", "10.0.0.1", "10.0.0.9"), broker("b", "10.0.0.2")
    return cluster([consumers("g", ids, ["T"], **more)], [route("T", brokers, [4, 4])])  # type: ignore[arg-type]


def limited(**limits: float) -> Policy:
    return policy(dict(limits), {})


def losses(sweep: FailureSweep) -> list[str]:
    return [" + ".join(f"{loss.kind} {loss.name}" for loss in each.losses) for each in sweep.counterexamples]


def only(sweep: FailureSweep) -> Counterexample:
    (found,) = sweep.counterexamples
    return found


def test_everything_that_can_be_lost_is_listed_with_what_it_takes() -> None:
    found = swept(two_brokers(IDS[:2]), zones=(ZoneRule("z", "10.0.0.0/29"),)).losses
    assert found == (
        LossParts("consumer", IDS[0], (IDS[0],)),
        LossParts("consumer", IDS[1], (IDS[1],)),
        LossParts("broker", "a", (), ("a/0", "a/1")),
        LossParts("broker", "b", (), ("b/0",)),
        LossParts("master", "a", (), ("a/0",)),
        LossParts("master", "b", (), ("b/0",)),
        LossParts("host", "10.0.0.1", (), ("a/0",)),
        LossParts("host", "10.0.0.2", (), ("b/0",)),
        LossParts("host", "10.0.0.9", (), ("a/1",)),
        LossParts("host", "10.1.0.1", (IDS[0],)),
        LossParts("host", "10.1.0.2", (IDS[1],)),
        LossParts("zone", "z", (), ("a/0", "b/0")),
    )


def orderly(snapshot: ClusterSnapshot, *, reported: bool | None) -> ClusterSnapshot:
    group = snapshot.groups["g"]
    evidence = ConsumerEvidence(orderly=reported)
    reports = {each: replace(report, evidence=evidence) for each, report in group.reports.items()}
    return replace(snapshot, groups={"g": replace(group, reports=reports)})


def test_an_orderly_group_has_nobody_who_locks_the_queues_of_a_lost_master() -> None:
    snapshot = orderly(two_brokers(), reported=True)
    sweep = swept(snapshot, limited(withoutLock=0))
    assert losses(sweep) == ["master a"]
    assert only(sweep).value == 4
    assert sweep.groups[0].without_lock == Worst(4, (Loss("master", "a"),))
    assert sweep.unjudged == ()


def test_whether_a_group_is_orderly_is_unknown_unless_it_is_said() -> None:
    snapshot = two_brokers()
    sweep = swept(snapshot, limited(withoutLock=0))
    assert [(each.name, each.limit) for each in sweep.unjudged] == [("g", "withoutLock")]
    assert sweep.groups[0].without_lock is None
    assert losses(swept(snapshot, limited(withoutLock=0), orderly=("g",))) == ["master a"]
    assert swept(orderly(snapshot, reported=False), limited(withoutLock=0)).unjudged == ()


def test_a_loss_is_shown_by_a_command_that_names_all_that_it_takes() -> None:
    commands = Commands(("-s", "a file.json"))
    ids = ("10.0.0.1@x", "10.0.0.1@y", "-z@1")
    sweep = swept(two_brokers(ids), limited(minConsumers=2), commands=commands, kinds=("host",), zones=())
    assert only(sweep).command == (
        "rmqlb plan-rebalance -s 'a file.json' -g g --remove 10.0.0.1@x --remove 10.0.0.1@y --remove-master a"
    )
    topics = swept(two_brokers(ids), policy({}, {"writableBrokers": 1}), commands=commands, kinds=("host",), zones=())
    assert only(topics).command == "rmqlb simulate-send -s 'a file.json' -t T --fail a:timeout --fail b:timeout"


def test_the_gap_of_a_loss_is_simulated_by_a_command_that_ends_processes_and_silences_machines() -> None:
    def gap(kind: str, **more: object) -> str | None:
        commands = Commands(("-s", "x"))
        return only(swept(two_brokers(), limited(minConsumers=3), kinds=(kind,), commands=commands, **more)).gap_command

    assert gap("consumer", at_once=1) == f"rmqlb simulate-rebalance -s x -g g --event 'crash {IDS[0]}@0s' --trials 3"
    lost = f"rmqlb simulate-rebalance -s x -g g --event 'host-loss {IDS[0]}@0s' --trials 3"
    assert gap("host", at_once=1, zones=()) == lost
    assert gap("consumer", at_once=1, orderly=("g",)) == (
        f"rmqlb simulate-rebalance -s x -g g --event 'crash {IDS[0]}@0s' --trials 3 --orderly"
    )


def test_what_cannot_be_judged_is_named() -> None:
    snapshot = two_brokers()
    gone = replace(consumers("empty", (), ["T"]), reports={})
    everyone: ConsumerGroup = replace(consumers("all", IDS, ["T"]), message_model=BROADCASTING)
    mapping = {"a": TopicQueueMappingInfo("S", "__global__", 4, "a", 1, {0: 0})}
    static = replace(route("S", (broker("a", "10.0.0.1"),), [4]), topic_queue_mapping_by_broker=mapping)
    logical = consumers("logical", IDS[:2], ["S"])
    routes = [snapshot.routes["T"].route, static]
    sweep = swept(cluster([*snapshot.groups.values(), gone, everyone, logical], routes))
    named = {f"{each.about} {each.name}" for each in sweep.unjudged if each.limit is None}
    assert named == {"group empty", "group all", "group logical", "topic S"}
    assert [each.group for each in sweep.groups] == ["g", "logical"]
    kinds = {loss.kind for each in sweep.counterexamples if each.name == "logical" for loss in each.losses}
    assert kinds == {"consumer", "zone"}


def test_what_could_not_be_read_is_not_judged() -> None:
    snapshot = two_brokers()
    unread = (Unread("group", "lost", "timed out"), Unread("route", "Gone", "no answer"))
    asked = request(snapshot)
    asked = replace(asked, groups=[*asked.groups, "lost"], topics=[*asked.topics, "Gone"])
    sweep, _ = sweep_snapshot(replace(snapshot, unread=unread), policy(), asked, DAY)
    whole = [(each.name, each.why) for each in sweep.unjudged if each.limit is None]
    assert whole == [
        ("lost", "the group could not be read: timed out"),
        ("Gone", "its route could not be read: no answer"),
    ]


def test_a_zone_with_nothing_in_it_is_refused() -> None:
    with pytest.raises(UsageError) as raised:
        swept(two_brokers(), zones=(ZoneRule("az9", "10.9.*"),))
    assert raised.value.message == "zone az9: 10.9.* matches no consumer, broker or address"
    with pytest.raises(UsageError, match="zone b"):
        swept(two_brokers(), zones=(ZoneRule("a", "*"), ZoneRule("b", "10.0.0.1")))


def test_brokers_say_their_zone_themselves_and_who_has_none_is_named() -> None:
    snapshot = two_brokers()
    here = snapshot.routes["T"].route
    zoned = [replace(each, zone_name=f"z-{each.broker_name}") for each in here.broker_datas]
    snapshot = cluster(list(snapshot.groups.values()), [replace(here, broker_datas=tuple(zoned))])
    sweep, findings = sweep_snapshot(snapshot, policy(), request(snapshot, zones=()), DAY)
    assert [each.name for each in sweep.losses if each.kind == "zone"] == ["z-a", "z-b"]
    assert [(each.code, "3 consumers" in each.message) for each in findings] == [("in-no-zone", True)]


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


def test_findings_of_a_diagnosis_can_be_forbidden_after_a_loss() -> None:
    rule = Rule("r", GROUP, ("*",), (Limit("forbiddenFindings", ("more-consumers-than-queues",)),))
    snapshot = cluster(
        [consumers("g", IDS, ["T"])], [route("T", (broker("a", "10.0.0.1"), broker("b", "10.0.0.2")), [2, 2])]
    )
    sweep = swept(snapshot, replace(policy(), rules=(rule,)), kinds=("broker",), at_once=1)
    assert only(sweep).value == ("more-consumers-than-queues",)
    assert only(sweep).cases == 2


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
