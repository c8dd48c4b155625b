"""Groups with faults, and healthy ones, on one cluster: each fault is named first, and healthy groups have none.

First come faults that are there from the start; then processes are stopped or killed and a link falls silent; then a
broker has broken connections, stands still, and dies at last.
"""

import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec import convert

from rmqlb.model.diagnosis import Diagnosis
from rmqlb.views.diagnose import sentence
from tests.cli.run import data_of, run

from .broker_requests import more_channels
from .cluster import RocketMQCluster, TopicOnBroker
from .faults import (
    NAMED_DEADLINE,
    PATIENCE,
    Fault,
    Lab,
    crew_of,
    cut_from,
    false_causes,
    grave,
    is_named,
    lab,
    last_alone,
    one_id_twice,
    pop_alone,
    silenced,
)
from .jvm import JavaProcess, wait_until
from .members import consumers, receivers
from .proxies import grpc_java, proxy_by_itself

pytestmark = pytest.mark.live

BROKERS = ("broker-a", "broker-b")
TOPIC, OTHER, HOT, POPPED, PULLED, WRITTEN = "OrderEvents", "Skewed", "HotKeys", "Popped", "Pulled", "WriteOnly"
WRITE_ONLY = 2
PER_SECOND = {TOPIC: 20, OTHER: 5, HOT: 20, POPPED: 20, PULLED: 20}
SYMPTOMS = ("lag-stalled", "lag-growing")
"""What stands first as long as the looks do not show yet for how long no call of a listener has ended."""
MOVING, STALE = "moving-svc", "stale-svc"


def faults(topic: str, other: str) -> tuple[Fault, ...]:
    return (
        Fault("dup-svc", ("duplicate-client-id",), one_id_twice(topic), ("dup-svc-0",)),
        Fault("mix-svc", ("mixed-strategies",), crew_of(topic, {}, {}, {"strategy": "AVG_BY_CIRCLE"}), ("mix-svc-2",)),
        Fault("topics-svc", ("subscription-mismatch",), crew_of(topic, {}, {}, {"topics": other}), ("topics-svc-2",)),
        Fault("cut-svc", ("broker-unreachable-from-consumer",), cut_from("broker-b", topic, strategy="AVG_BY_CIRCLE"), ("cut-svc-2",), before=("split-consumer-view",)),
    )  # fmt: skip


SLOW_FAULTS = (
    *faults(TOPIC, OTHER),
    Fault("tags-svc", ("subscription-mismatch",), crew_of(TOPIC, {"topics": f"{TOPIC}:red"}, {"topics": f"{TOPIC}:red"}, {"topics": f"{TOPIC}:blue"}), ("tags-svc-2",)),
    Fault("hang-svc", ("blocked-consumer",), crew_of(TOPIC, {}, {}, {"listener": "hangs"}), ("hang-svc-2",), SYMPTOMS),
    Fault("hang-orderly-svc", ("blocked-consumer",), crew_of(TOPIC, *[{"orderly": "true", "listener": each} for each in ("ok", "ok", "hangs")]), ("hang-orderly-svc-2",), SYMPTOMS),
    Fault("fail-orderly-svc", ("consume-failing",), crew_of(TOPIC, *[{"orderly": "true", "listener": each} for each in ("ok", "ok", "fails")]), ("fail-orderly-svc-2",), (*SYMPTOMS, "head-blocked")),
    Fault("slow-svc", ("slow-consumer",), crew_of(TOPIC, {}, {}, {"listener": "1800"}), ("slow-svc-2",), SYMPTOMS),
)  # fmt: skip
TWO_FAULTS = (
    Fault("two-a-svc", ("mixed-strategies", "blocked-consumer"), crew_of(TOPIC, {}, {}, {"strategy": "AVG_BY_CIRCLE", "listener": "hangs"}), ("two-a-svc-2",), SYMPTOMS),
    Fault("two-b-svc", ("duplicate-client-id", "blocked-consumer"), one_id_twice(TOPIC, listener="hangs"), ("two-b-svc-0",), SYMPTOMS),
)  # fmt: skip
CONSUMPTION = (
    Fault("fail-svc", ("consume-failing",), crew_of(TOPIC, *[{"listener": "fails"}] * 2), ("fail-svc-0", "fail-svc-1")),
    Fault("dead-svc", ("consume-failing",), crew_of(TOPIC, *[{"listener": "fails", "tries": "0"}] * 2), None),
    Fault("written-svc", ("no-read-queues",), crew_of(WRITTEN, {}, {}), None),
    Fault("both-svc", ("no-read-queues",), crew_of(f"{WRITTEN},{TOPIC}", {}, {}), None),
    Fault("hot-svc", ("hot-queue",), crew_of(HOT, *[{"listener": "100"}] * 3), None),
)
FROZEN = Fault("frozen-svc", ("frozen-consumer",), last_alone(TOPIC), ("frozen-svc-2",), SYMPTOMS)
KILLED = Fault("killed-svc", ("consumer-gone",), last_alone(TOPIC, orderly="true"))
SILENT = Fault("link-svc", ("broker-unreachable-from-consumer",), silenced("broker-b", TOPIC), ("link-svc-2",), SYMPTOMS)  # fmt: skip
POP = Fault("pop-svc", ("lag-stalled",), pop_alone(POPPED), None)
GRPC = Fault("grpc-svc", ("lag-stalled",), crew_of(PULLED), None)  # planted with the Proxy
HEALTHY = {
    "avg-svc": crew_of(TOPIC, {}, {}, {}), "circle-svc": crew_of(TOPIC, *[{"strategy": "AVG_BY_CIRCLE"}] * 3),
    "hash-svc": crew_of(TOPIC, *[{"strategy": "CONSISTENT_HASH"}] * 3),
    "orderly-svc": crew_of(TOPIC, *[{"orderly": "true"}] * 3),
    "retry-svc": crew_of(TOPIC, *[{"listener": "retries"}] * 2), STALE: crew_of(TOPIC, {}, {}),
}  # fmt: skip


def test_a_few_faults_are_named_first_and_a_healthy_group_has_none(cluster: RocketMQCluster) -> None:
    with lab(cluster, fast=True) as few:
        planted = faults(TOPIC, OTHER)
        for fault in planted:
            fault.plant(few, fault.group)
        HEALTHY["avg-svc"](few, "avg-svc")
        few.until_named(planted, "avg-svc")
    assert {fault.group: few.brief(fault.group) for fault in planted if wrong(few, fault)} == {}
    assert [grave(said) for said in few.said["avg-svc"] if grave(said)] == []


def wrong(of: Lab, fault: Fault) -> list[str]:
    return [
        f"{found['code']}: {[(each['fact'], each['value']) for each in found['evidence']]}"
        for said in of.said[fault.group]
        for found in said["findings"]
        if found["code"] in false_causes(fault, said)
    ]


@contextmanager
def always_rebalancing(cluster: RocketMQCluster) -> Iterator[None]:
    ended = threading.Event()
    with consumers(cluster, MOVING) as program:
        for number in range(3):
            program.join(MOVING, f"{MOVING}-{number}", TOPIC)

        def go_on() -> None:
            number = 3
            while not ended.wait(15):
                program.leave(MOVING, f"{MOVING}-{number - 3}")
                program.join(MOVING, f"{MOVING}-{number}", TOPIC)
                number += 1

        moving = threading.Thread(target=go_on)
        moving.start()
        try:
            yield
        finally:
            ended.set()
            moving.join()


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with ExitStack() as alive:
        # Brokers forget a process that stands still after two minutes, when not set: less than some diagnoses take.
        config: dict[str, str | int] = {"timerWheelEnable": "true", "channelExpiredTimeout": 600_000}
        cluster = alive.enter_context(RocketMQCluster("5.5.0", BROKERS, config=config))
        topics = [TopicOnBroker(topic, name, 4, 4) for topic in PER_SECOND for name in BROKERS]
        cluster.create_topics([*topics, *(TopicOnBroker(WRITTEN, name, 4, 4, WRITE_ONLY) for name in BROKERS)])
        it = alive.enter_context(lab(cluster, fast=False))
        folder = tmp_path_factory.mktemp("proxy")
        endpoint, it.proxy = alive.enter_context(proxy_by_itself(cluster))
        behind = alive.enter_context(receivers(grpc_java(cluster), endpoint, folder / "grpc.log"))
        it.grpc = behind.process
        for _ in range(2):
            behind.push(GRPC.group, PULLED)
        for topic, number in PER_SECOND.items():
            it.crew.produce(topic, number)
        it.crew.fill(HOT, 100)
        for group, plant in HEALTHY.items():  # first, as until a retry comes each message of retry-svc has failed
            plant(it, group)
        begun = (*SLOW_FAULTS, *TWO_FAULTS, *CONSUMPTION)
        for fault in (*begun, FROZEN, KILLED, SILENT, POP):
            fault.plant(it, fault.group)
        with always_rebalancing(cluster):
            it.until_named(begun, *HEALTHY, MOVING)
        yield it


def last(of: Lab, group: str) -> dict[str, Any]:
    return of.said[group][-1]


def first_finding(of: Lab, group: str) -> dict[str, Any]:
    finding: dict[str, Any] = last(of, group)["findings"][0]
    return finding


def facts(finding: dict[str, Any]) -> dict[str, Any]:
    return {each["fact"]: each["value"] for each in finding["evidence"]}


@pytest.mark.slow
def test_each_planted_fault_is_named_first(planted: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    named = [fault for fault in SLOW_FAULTS if is_named(fault, last(planted, fault.group))]
    others = {fault.group: wrong(planted, fault) for fault in SLOW_FAULTS if wrong(planted, fault)}
    number = sum(len(said) for said in planted.said.values())
    with capsys.disabled():
        told = (
            f"{len(named)} of {len(SLOW_FAULTS)} faults named first; false causes in {number} diagnoses: {len(others)}"
        )
        sys.stdout.write(f"\n{told}\n")
    assert (named, others) == ([*SLOW_FAULTS], {})


@pytest.mark.slow
def test_of_two_faults_at_once_both_are_named_and_no_other(planted: Lab) -> None:
    assert [fault.group for fault in TWO_FAULTS if not is_named(fault, last(planted, fault.group))] == []
    assert {fault.group: wrong(planted, fault) for fault in TWO_FAULTS if wrong(planted, fault)} == {}


@pytest.mark.slow
def test_a_healthy_group_has_no_finding_above_info(planted: Lab) -> None:
    said = {group: planted.said[group] for group in (*HEALTHY, MOVING)}
    assert min(map(len, said.values())) > 1
    found = {group: [grave(each) for each in its if grave(each)] for group, its in said.items()}
    assert {group: its for group, its in found.items() if its} == {}


@pytest.mark.slow
def test_a_finding_about_listeners_that_fail_counts_their_messages(planted: Lab) -> None:
    def came_into(topic: str, group: str) -> int:
        found = facts(first_finding(planted, group))
        (number,) = [its for fact, its in found.items() if fact.startswith(f"messages that came into the {topic}")]
        return int(number)

    assert first_finding(planted, "fail-svc")["severity"] == "error"
    assert came_into("retry", "fail-svc") > 0
    assert came_into("dead-letter", "dead-svc") > 0
    followed = {each["code"]: each["causes"] for each in last(planted, "fail-orderly-svc")["consequences"]}
    assert followed["head-blocked"] == ["consume-failing"]


@pytest.mark.slow
def test_a_topic_that_nobody_can_read_is_the_cause(planted: Lab) -> None:
    for group in ("written-svc", "both-svc"):
        first = first_finding(planted, group)
        assert (group, first["topic"], set(facts(first).values())) == (group, WRITTEN, {"perm 2, readQueueNums 4"})
        assert "more-consumers-than-queues" not in {each["code"] for each in last(planted, group)["findings"]}


@pytest.mark.slow
def test_a_hot_queue_is_named_with_its_shares(planted: Lab) -> None:
    first = first_finding(planted, "hot-svc")
    shares = [value for fact, value in facts(first).items() if fact.startswith("percent")]
    assert first["topic"] == HOT
    assert min(shares) >= 70
    assert "more consumers do not help" in first["remedy"]


@pytest.mark.slow
def test_blocked_consumers_show_where_their_listeners_wait(planted: Lab) -> None:
    (diagnosis,) = planted.diagnose(["hang-svc"], "--stacks").values()
    (stacks,) = diagnosis["stacks"]
    assert stacks["clientId"] == "127.0.0.1@hang-svc-2"
    assert any("Consumers.waitForTheDatabase" in thread for thread in stacks["threads"])


@pytest.mark.slow
@pytest.mark.parametrize(("group", "is_orderly"), [("hang-svc", False), ("hang-orderly-svc", True)])
def test_the_evidence_of_a_consumer_with_messages_in_hand_is_read(planted: Lab, group: str, is_orderly: bool) -> None:
    source = ("-s", f"rocketmq://{planted.cluster.name_server}", *PATIENCE[:2])
    (its,) = data_of("fetch-routes", *source, "-g", group, "--evidence")["groups"]
    (report,) = (each for each in its["reports"] if each["clientId"] == f"127.0.0.1@{group}-2")
    evidence = report["evidence"]
    assert (evidence["orderly"], evidence["limits"]) == (is_orderly, {"messages": 1000, "mib": 100, "span": 2000})
    assert evidence["filters"] == {TOPIC: "*", f"%RETRY%{group}": "*"}
    assert {*evidence["statuses"]} == {TOPIC, f"%RETRY%{group}"}
    held = [each for each in evidence["queues"] if each["queue"]["topic"] == TOPIC]
    assert len(held) == 2
    for queue in held:
        first = queue["consumingMinOffset"] if is_orderly else queue["minOffset"]
        assert (queue["consuming"], queue["commitOffset"], queue["locked"]) == (int(is_orderly), first, True)
        assert queue["cached"] > 1
        assert queue["maxOffset"] - queue["minOffset"] == queue["cached"] - 1
        assert evidence["readAt"] - queue["lastConsume"] > 60_000
        assert evidence["readAt"] - queue["lastPull"] < 60_000
        assert (evidence["readAt"] - queue["lastLock"] < 60_000) == is_orderly


@contextmanager
def frozen(*processes: JavaProcess) -> Iterator[None]:
    for process in processes:
        process.freeze()
    try:
        yield
    finally:
        for process in processes:
            process.unfreeze()


@pytest.mark.slow
def test_lag_of_pop_and_grpc_groups_whose_processes_are_stopped(planted: Lab) -> None:
    groups, asked = (POP.group, GRPC.group), ("--proxy", planted.proxy)
    wait_until(
        lambda: not any(map(grave, planted.diagnose(groups, *asked).values())), NAMED_DEADLINE,
        lambda: "\n".join(f"{group}: {planted.brief(group)[-1]}" for group in groups), 1.0,
    )  # fmt: skip
    with frozen(planted.own[POP.group].process, planted.grpc):
        planted.until_named((POP, GRPC), more=asked)
    assert first_finding(planted, POP.group)["remedy"].startswith("Check whether the processes of its consumers run")
    assert {each["code"] for each in last(planted, GRPC.group)["findings"]} == {"lag-stalled", "behind-proxy"}


@pytest.mark.slow
def test_a_process_that_stands_still_is_named_while_brokers_list_it(planted: Lab) -> None:
    assert grave(planted.diagnose([FROZEN.group])[FROZEN.group]) == []
    with frozen(planted.own[FROZEN.group].process):
        planted.until_named([FROZEN], more=("--source-timeout", "3s"))
    assert wrong(planted, FROZEN) == []


@pytest.mark.slow
def test_a_silent_link_is_named_and_its_consumer_is_not_frozen(planted: Lab) -> None:
    planted.links[SILENT.group].hush()
    planted.until_named([SILENT], more=("--source-timeout", "3s"))
    found = last(planted, SILENT.group)
    assert {queue["brokerName"] for queue in found["findings"][0]["queues"]} == {"broker-b"}
    assert "broker-unreachable-from-consumer" not in found["checked"]
    assert not any("frozen-consumer" in code for said in planted.brief(SILENT.group) for code in said)
    assert "lag-stalled" not in grave(found)


@pytest.mark.slow
def test_queues_of_an_orderly_consumer_that_was_killed_are_named_as_long_as_it_has_their_locks(planted: Lab) -> None:
    """Brokers keep its locks for 60 s, so that no other consumer gets its queues."""
    assert grave(planted.diagnose([KILLED.group])[KILLED.group]) == []
    planted.own[KILLED.group].process.kill()
    planted.until_named([KILLED])
    assert len(first_finding(planted, KILLED.group)["queues"]) == 2
    assert "a crashed consumer" in headline(last(planted, KILLED.group))
    assert wrong(planted, KILLED) == []
    wait_until(
        lambda: grave(planted.diagnose([KILLED.group])[KILLED.group]) == [], NAMED_DEADLINE,
        lambda: f"still: {planted.brief(KILLED.group)}", 1.0,
    )  # fmt: skip


def headline(diagnosis: dict[str, Any]) -> str:
    return sentence(convert(diagnosis, Diagnosis))


def one_look(of: Lab, *more: str) -> dict[str, Any]:
    """At the group whose broker fails; who waits 3 s for an answer has looked before its consumers have moved."""
    return of.diagnose([STALE], "--samples", "1", "--source-timeout", "3s", *more)[STALE]


@pytest.mark.slow
def test_channels_at_one_broker_alone_are_no_processes(planted: Lab) -> None:
    with more_channels(planted.cluster, "broker-b", STALE, f"127.0.0.1@{STALE}-0", TOPIC, 22):
        found = one_look(planted)
    codes = [each["code"] for each in found["findings"]]
    assert "stale-connections" in codes, found
    assert "duplicate-client-id" not in codes
    assert "processes share" not in headline(found)
    assert found["counts"]["processes"] == 2
    stale = next(each for each in found["findings"] if each["code"] == "stale-connections")
    assert stale["evidence"][0]["value"] == 23


@pytest.mark.slow
def test_a_paused_broker_is_the_headline(planted: Lab) -> None:
    with planted.cluster.paused("broker-b"):
        found = one_look(planted)
    assert found["findings"][0]["code"] == "broker-silent"
    assert headline(found).startswith("broker-b did not answer")


@pytest.mark.slow
def test_a_broker_that_was_killed_seconds_ago_is_named(planted: Lab, tmp_path: Path) -> None:
    wait_until(lambda: not grave(one_look(planted)), 120, lambda: f"still: {planted.brief(STALE)[-1]}", 3.0)
    before = str(tmp_path / "before.json")
    source = ("-s", f"rocketmq://{planted.cluster.name_server}", "-g", STALE)
    run("fetch-routes", *source, "--evidence", "--to", before)
    planted.cluster.kill_broker("broker-b")
    at_once = one_look(planted)
    found = one_look(planted, "--earlier", before)
    assert found["findings"][0]["code"] == "broker-gone", found
    assert headline(found).startswith("broker-b left the routes")
    assert " since 20" in found["findings"][0]["consequence"]
    assert grave(at_once) in (["broker-gone"], []), at_once  # nothing, once its consumers have given its queues up
