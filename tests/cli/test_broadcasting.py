from __future__ import annotations

import json
from typing import Any

import pytest

from rmqlb.cli.exit_codes import ExitCode
from tests.cli.run import run
from tests.support.builders import snapshot_text

IDS = ["10.0.0.1@DEFAULT", "10.0.0.2@DEFAULT"]


def snapshot(**group: object) -> str:
    names = ("topic", "brokerName", "queueId", "brokerOffset", "consumerOffset", "minOffset")
    queues = [dict(zip(names, ("T", "a", number, 100 + number, 0, 7), strict=True)) for number in range(3)]
    whole = {"messageModel": "BROADCASTING", "topics": ["T"], "clientIds": IDS, "queues": queues, **group}
    return snapshot_text("T", number=3, **whole)


def told(*args: str, **group: object) -> tuple[Any, dict[str, str]]:
    ran = run(*args, "-s", "-", "-g", "g", "-o", "json", stdin=snapshot(**group))
    assert ran.code == ExitCode.OK, ran.stderr
    document = json.loads(ran.stdout)
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
