"""`--pop-share N` of show-owners and plan-rebalance: as if topics were consumed by POP."""

from __future__ import annotations

import json

import pytest

from tests.support.mismatches import every_case

from .run import error_of, run
from .test_broadcasting import snapshot

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
