from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.builders import snapshot_text
from tests.support.mismatches import every_case

from .run import envelope_of, error_of, run

IDS = ["10.0.0.1@DEFAULT", "10.0.0.2@DEFAULT"]


def snapshot(**group: object) -> str:
    names = ("topic", "brokerName", "queueId", "brokerOffset", "consumerOffset", "minOffset")
    queues = [dict(zip(names, ("T", "a", number, 100 + number, 0, 7), strict=True)) for number in range(3)]
    whole = {"messageModel": "BROADCASTING", "topics": ["T"], "clientIds": IDS, "queues": queues, **group}
    return snapshot_text("T", number=3, **whole)


def told(*args: str, **group: object) -> tuple[Any, dict[str, str]]:
    document = envelope_of(*args, "-s", "-", "-g", "g", stdin=snapshot(**group))
    return document["data"], {each["code"]: each["message"] for each in document["findings"]}


def test_show_owners_gives_every_queue_to_every_consumer() -> None:
    data, findings = told("show-owners")
    assert [queue["owners"] for queue in data["queues"]] == [{"BROADCASTING": IDS}] * 3
    (only,) = data["strategies"]
    assert [(each["clientId"], each["queues"]) for each in only["consumers"]] == [(client_id, 3) for client_id in IDS]
    assert (only["duplicateOwners"], only["unassigned"], only["idle"]) == (0, 0, 0)
    assert only["queuesOfDuplicateClientIds"] == 0
    assert "broadcasting" in findings
    assert "strategy-differs" not in findings


def test_its_lag_is_unknown_for_brokers_store_no_offset_of_it() -> None:
    for command in (("show-owners",), ("plan-rebalance", "--remove", "1")):
        data, _ = told(*command)
        queues = data["queues"] if "queues" in data else data["topics"][0]["queues"]
        assert [queue["lag"] for queue in queues] == [None] * 3
    clustering, _ = told("show-owners", messageModel="CLUSTERING")
    assert [queue["lag"] for queue in clustering["queues"]] == [100, 101, 102]


def test_observed_owners_are_no_duplicates_and_one_that_lacks_a_queue_is_a_mismatch() -> None:
    queues = json.loads(snapshot())["data"]["groups"][0]["queues"]
    everybody = [{**queue, "owners": IDS} for queue in queues]
    ran = run("show-owners", "-s", "-", "-g", "g", stdin=snapshot(queues=everybody))
    assert "duplicate" not in ran.stdout.splitlines()[0]
    assert ran.stdout.splitlines()[0] == "g, 2 consumers: BROADCASTING, each consumer reads every queue, as observed"
    lacking, _ = told("plan-rebalance", "--add", "x", queues=[{**everybody[0], "owners": IDS[:1]}, *everybody[1:]])
    assert lacking["summary"]["observed"]["mismatches"] == 1
    assert lacking["summary"]["observed"]["duplicateOwners"] == 0


@pytest.mark.parametrize(
    ("consume_from", "rule", "offsets"),
    [("CONSUME_FROM_LAST_OFFSET", "end", [100, 101, 102]), ("CONSUME_FROM_FIRST_OFFSET", "beginning", [7, 7, 7])],
)
def test_a_plan_says_what_a_new_consumer_starts_with(consume_from: str, rule: str, offsets: list[int]) -> None:
    data, findings = told("plan-rebalance", "--add", "10.0.0.3@DEFAULT", consumeFromWhere=consume_from)
    queues = data["topics"][0]["queues"]
    assert [(each["startRule"], each["startOffset"]) for each in queues] == [(rule, offset) for offset in offsets]
    assert [each["change"] for each in queues] == ["same"] * 3
    assert [each["ownersAfter"] for each in queues] == [[*IDS, "10.0.0.3@DEFAULT"]] * 3
    assert data["summary"]["moved"] == 0
    assert [(c["clientId"], c["queuesBefore"], c["queuesAfter"]) for c in data["consumers"]][-1] == (
        "10.0.0.3@DEFAULT",
        0,
        3,
    )
    assert findings["own-offset-file"] == (
        "1 new consumer taken to have no offset file (~/.rocketmq_offsets/10.0.0.3@DEFAULT/g/offsets.json): without one a "
        f"BROADCASTING consumer starts by {consume_from}"
    )


def test_a_plan_in_which_nobody_comes_starts_nowhere_and_moves_nothing() -> None:
    data, findings = told("plan-rebalance", "--remove", IDS[0], "--fail-on", "duplicate-owners>0")
    queues = data["topics"][0]["queues"]
    assert [(q["change"], q["startRule"], q["ownersAfter"]) for q in queues] == [("same", None, IDS[1:])] * 3
    assert not {"own-offset-file", "placeholder-ids"} & findings.keys()
    for number, verdict in (
        ("1", "g, 2 → 1 consumer: BROADCASTING, so each consumer reads every queue and none moves"),
        ("2", "g, 2 → 0 consumers: all 3 queues become unassigned"),
    ):
        ran = run("plan-rebalance", "-s", "-", "-g", "g", "--remove", number, stdin=snapshot())
        assert ran.stdout.splitlines()[0].startswith(verdict)


def test_several_groups_count_no_duplicates_of_one_that_broadcasts() -> None:
    queues = [{**queue, "owners": IDS} for queue in json.loads(snapshot())["data"]["groups"][0]["queues"]]
    whole = json.loads(snapshot(queues=queues))
    (group,) = whole["data"]["groups"]
    whole["data"]["groups"].append({**group, "group": "h", "messageModel": "CLUSTERING"})
    ran = run("show-owners", "-s", "-", "-g", "g", "-g", "h", "-o", "json", stdin=json.dumps(whole))
    assert json.loads(ran.stdout)["data"]["summary"]["observedDuplicateOwners"] == 3


GROUP = ("-s", "examples/cluster.json", "--group", "order-svc")


def planned(*more: str) -> str:
    ran = run("plan-rebalance", *GROUP, "-t", "Skewed", "--pop-share", *more)
    assert ran.code == 0, ran.stderr
    return ran.stdout


def test_the_verdict_says_how_many_may_read_a_queue() -> None:
    for share, verdict in (("1", "a queue may be read by 2 consumers"), ("0", "every consumer may read every queue")):
        ran = run("show-owners", *GROUP, "--pop-share", share)
        first = f"order-svc, 3 consumers: consumes by POP, no consumer owns a queue; {verdict}"
        assert ran.stdout.splitlines()[0] == first
    silent = run("show-owners", *GROUP, "--pop-share", "1", "--strategy", "CONSISTENT_HASH")
    assert "brokers assign nothing of OrderEvents, Skewed" in silent.stdout
    assert "broker-strategy" in silent.stderr


NONE_MOVES = "consumes by POP, no consumer owns a queue and none moves"
OTHERS = "may be read by other consumers than before"


@every_case(
    ("share", "change", "consumers", "verdict"),
    [
        ("1", "--add z@1", "3 → 4 consumers", f"6 of 9 queues {OTHERS}"),
        ("0", "--add z@1", "3 → 4 consumers", f"2 of 2 brokers {OTHERS}"),
        ("0", "--remove-broker broker-b", "3 consumers", f"1 broker is removed; 0 of 2 brokers {OTHERS}"),
        ("1", "--scale-to 1", "3 → 1 consumer", f"9 of 9 queues {OTHERS}"),
        ("1", "--read-queues broker-b=4", "3 consumers", f"1 queue is added; 2 of 10 queues {OTHERS}"),
        ("1", "--to-strategy CONSISTENT_HASH", "3 consumers", "brokers assign nothing of Skewed"),
    ],
)
def test_a_plan_says_who_may_read_what_before_and_after(share: str, change: str, consumers: str, verdict: str) -> None:
    first = planned(share, *change.split()).splitlines()[0]
    assert first == f"order-svc, {consumers}: {NONE_MOVES}; {verdict}"


def test_both_sides_are_shown_queue_by_queue_where_one_of_them_is() -> None:
    data = json.loads(planned("1", "--scale-to", "2", "-o", "json"))["data"]
    (topic,) = data["popTopics"]
    assert {queue["queueId"] for queue in topic["queues"]} == {0, 1, 2, 3, 4, 5}
    assert all(queue["consumersAfter"] == ["192.0.2.2@inst0", "192.0.2.2@inst1"] for queue in topic["queues"])
    assert (data["topics"], data["convergence"], data["summary"]["moved"]) == ([], None, 0)


def test_a_queue_that_goes_is_not_one_that_no_consumer_may_read() -> None:
    lines = planned("1", "--remove-broker", "broker-b", "-o", "csv").splitlines()
    assert lines[-1].endswith(",'-")  # as every cell that a spreadsheet would take for a formula


def test_plans_of_several_groups_are_counted() -> None:
    ran = run("plan-rebalance", "-s", "examples/cluster.json", "-g", "*-svc", "--add", "1", "--pop-share", "0", "-q")
    assert ran.stdout.splitlines()[0] == "3 groups: 3 of 3 groups consume by POP"
    assert "order-svc  3 → 4" in ran.stdout


@pytest.mark.parametrize("command", [("show-owners",), ("plan-rebalance", "--add", "1")])
def test_a_broadcasting_group_has_no_pop(command: tuple[str, ...]) -> None:
    ran = run(*command, "-s", "-", "-g", "g", "--pop-share", "1", "-q", stdin=snapshot())
    assert ran.code == 2
    assert error_of(ran.stderr).message.endswith("of group g, because it is BROADCASTING")
